"""The write-ahead log of a file: whoever opens the file begins it, the last one to close the file ends it.

While a process begins or ends it, a mark of that process lies beside the file: if it is killed meanwhile, the file may say
that it has a log and have none, and nothing is missing all the same.
"""

from __future__ import annotations

import glob
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from wellworn.core.errors import StoreError
from wellworn.core.locks import process_runs

SEAL_TRIES = 20
SWITCHING = "-switching"
"""In the name of the marks beside a file, between the name of the file and the number of the process."""


def begin_log(connection: sqlite3.Connection, path: Path, wait_s: float) -> None:
    """Switch to write-ahead logging; the switch itself does not wait for others, so it is tried again."""
    deadline = time.monotonic() + wait_s
    with suppress(OSError):
        _mark_of(path).touch(0o600)
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        else:
            if mode == "wal":
                connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # only this makes the log
                break
            if time.monotonic() > deadline:
                raise StoreError(f"the file system does not allow write-ahead logging (mode {mode})")
        time.sleep(0.01)
    for mark in marks(path):
        if mark == _mark_of(path) or not _is_of_living(mark):
            with suppress(OSError):
                mark.unlink()


def close_sealed(connection: sqlite3.Connection, path: Path, again: Callable[[], sqlite3.Connection]) -> None:
    """Close a connection, and leave one whole file behind if nobody else has it open; `again` connects anew.

    Who close at the same moment hinder each other. The mark of each is there from before its first try until its end, and
    each looks for those of others after a try: so whoever sees none was hindered by somebody who closes later.
    """
    with suppress(OSError):
        _mark_of(path).touch(0o600)
    settled = _settled(connection)
    with suppress(sqlite3.Error):
        connection.close()
    for _ in range(SEAL_TRIES):
        others = (mark for mark in marks(path) if mark != _mark_of(path) and _is_of_living(mark))
        if settled or (beside(path, "-wal").exists() and not any(others)):
            break
        time.sleep(0.02 * os.urandom(1)[0] / 255)
        with suppress(sqlite3.Error), closing(again()) as other:
            settled = _settled(other)
    else:
        if not settled:
            return  # the mark stays: there may be no log, and nothing is missing
    with suppress(OSError):
        _mark_of(path).unlink()


def _settled(connection: sqlite3.Connection) -> bool:
    """Turn logging off, which only the last one can; whether it worked, or never will, as with a damaged file."""
    try:
        connection.execute("PRAGMA busy_timeout = 0")
        return connection.execute("PRAGMA journal_mode = DELETE").fetchall() == [("delete",)]  # to its end: it commits
    except sqlite3.Error as error:
        return not isinstance(error, sqlite3.OperationalError)


def marks(path: Path) -> Iterator[Path]:
    """The marks beside a file, also of processes that are dead."""
    return path.parent.glob(f"{glob.escape(path.name + SWITCHING)}*")


def _mark_of(path: Path) -> Path:
    return beside(path, f"{SWITCHING}-{os.getpid()}")


def _is_of_living(mark: Path) -> bool:
    number = mark.name.rpartition("-")[2]
    return number.isdecimal() and len(number) < 10 and process_runs(int(number))


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)

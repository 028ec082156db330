"""The write-ahead log of a file: whoever opens the file begins it, the last one to close the file ends it.

While anybody begins or ends it, the folder is locked, so that nobody else of ours looks or does so too, and a mark lies
beside the file: if that process is killed meanwhile, the file may say that it has a log and have none, and nothing is
missing all the same. Who opens the file next removes the mark.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wellworn.core.errors import StoreError
from wellworn.store.sqlite.db import BROKEN

LOCK_TRIES, LOCK_PAUSE_S = 1_000, 0.005
SWITCHING = "-switching"
"""Ends the name of the mark beside a file."""
_mine = threading.local()


@contextmanager
def alone_beside(path: Path) -> Iterator[None]:
    """Nobody else of ours begins or ends a log in the folder of this file; where there are such locks, and whoever has
    one gives it back in time."""
    folder, held = path.parent, vars(_mine).setdefault("folders", set())
    if folder in held or os.name != "posix":  # a memory may be collected, and closed, while this thread has the lock
        yield
        return
    import fcntl

    handle = None
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        for _ in range(LOCK_TRIES):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(LOCK_PAUSE_S)
    held.add(folder)
    try:
        yield
    finally:
        held.discard(folder)
        if handle is not None:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)  # a fork may have another handle of it
            os.close(handle)


@contextmanager
def _switching(path: Path) -> Iterator[None]:
    """The mark stays if the block raises: there may be no log."""
    mark = beside(path, SWITCHING)
    with alone_beside(path):
        with suppress(OSError):  # nobody makes one in a folder that cannot be written to
            mark.touch(mode=path.stat().st_mode & 0o666)
        yield
        with suppress(OSError):
            mark.unlink()


def is_marked(path: Path) -> bool:
    """Whether somebody was killed while switching, and nobody has opened the file since."""
    return beside(path, SWITCHING).exists()


def begin_log(connection: sqlite3.Connection, path: Path, wait_s: float) -> None:
    """Switch to write-ahead logging; the switch itself does not wait for others, so it is tried again."""
    deadline = time.monotonic() + wait_s
    with _switching(path):
        while True:
            try:
                (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
            else:
                if mode == "wal":
                    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # only this makes the log
                    return
                if time.monotonic() > deadline:
                    raise StoreError(f"the file system does not allow write-ahead logging (mode {mode})")
            time.sleep(0.01)


def end_log(connection: sqlite3.Connection, path: Path) -> bool:
    """Turn logging off and leave one whole file, which only the last one can; False if somebody else has it open."""
    with _switching(path):
        return _settled(connection)


def close_sealed(connection: sqlite3.Connection, path: Path) -> None:
    """Close a connection, and leave one whole file behind if nobody else has it open."""
    with _switching(path):
        _settled(connection)
        with suppress(sqlite3.Error):
            connection.close()


def _settled(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("PRAGMA busy_timeout = 0")
        return connection.execute("PRAGMA journal_mode = DELETE").fetchall() == [("delete",)]  # to its end: it commits
    except BROKEN:
        return False


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)

"""The write-ahead log of a file: whoever opens the file begins it, the last one to close the file ends it.

While anybody begins or ends it, a mark lies beside the file: if all of them are killed meanwhile, the file may say that it
has a log and have none, and nothing is missing all the same. Who opens the file next removes the mark.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from wellworn.core.errors import StoreError
from wellworn.store.sqlite.db import BROKEN

SEAL_TRIES = 20
SWITCHING = "-switching"
"""Ends the name of the mark beside a file."""


class _Mark:
    """The mark of all who switch now: an empty file that they lock together. Whoever leaves it last removes it, and a lock
    ends with its process. Where there are no such locks, everyone is the last one."""

    def __init__(self, path: Path) -> None:
        self._file, self._path = path, beside(path, SWITCHING)
        self._handle: int | None = None

    def __enter__(self) -> _Mark:
        self.take()
        return self

    def __exit__(self, *error: object) -> None:
        """The mark stays unless it was left: there may be no log."""
        if self._handle is not None:
            os.close(self._handle)

    def take(self) -> None:
        """Make the mark, or hold that of others; nobody does in a folder that cannot be written to."""
        with suppress(OSError):
            for _ in range(SEAL_TRIES if os.name == "posix" and self._handle is None else 0):
                mode = self._file.stat().st_mode & 0o666
                handle = os.open(self._path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, mode)
                if _locked(handle, alone=False) and os.fstat(handle).st_nlink:
                    self._handle = handle
                    return
                os.close(handle)  # somebody removes it at this moment
                time.sleep(0.001)

    def leave(self) -> bool:
        """Let go of the mark; whether nobody else holds it, so that it is removed."""
        handle, self._handle = self._handle, None
        if handle is None:
            return True
        try:
            alone = _locked(handle, alone=True) and os.fstat(handle).st_nlink > 0  # else another was the last one
            if alone and not os.fstat(handle).st_size:
                with suppress(OSError):
                    self._path.unlink()
        finally:
            os.close(handle)
        return alone


def _locked(handle: int, *, alone: bool) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_UN)
        fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)
    return True


def is_marked(path: Path) -> bool:
    """Whether somebody switches, or was killed while switching and nobody has opened the file since."""
    try:
        found = beside(path, SWITCHING).lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and not found.st_size  # else it is somebody's own


def begin_log(connection: sqlite3.Connection, path: Path, wait_s: float) -> None:
    """Switch to write-ahead logging; the switch itself does not wait for others, so it is tried again."""
    deadline = time.monotonic() + wait_s
    with _Mark(path) as mark:
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
        mark.leave()


def end_log(connection: sqlite3.Connection, path: Path) -> bool:
    """Turn logging off and leave one whole file; False if somebody else has it open."""
    with _Mark(path) as mark:
        settled = _settled(connection)
        mark.leave()
    return settled


def close_sealed(connection: sqlite3.Connection, path: Path, again: Callable[[], sqlite3.Connection]) -> None:
    """Close a connection, and leave one whole file behind if nobody else has it open; `again` connects anew.

    Who close at the same moment hinder each other. Each holds the mark from before its first try, and lets go of it only
    before another try or at its end: so whoever leaves it alone was hindered by somebody who closes later.
    """
    with _Mark(path) as mark:
        settled = _settled(connection)
        with suppress(sqlite3.Error):
            connection.close()
        for _ in range(SEAL_TRIES):
            if settled or (beside(path, "-wal").exists() and mark.leave()):
                break
            mark.take()
            time.sleep(0.02 * os.urandom(1)[0] / 255)
            with suppress(sqlite3.Error), closing(again()) as other:
                settled = _settled(other)
        if settled:
            mark.leave()


def _settled(connection: sqlite3.Connection) -> bool:
    """Turn logging off, which only the last one can; whether it worked, or never will, as with a damaged file."""
    try:
        connection.execute("PRAGMA busy_timeout = 0")
        return connection.execute("PRAGMA journal_mode = DELETE").fetchall() == [("delete",)]  # to its end: it commits
    except BROKEN as error:
        return not isinstance(error, sqlite3.OperationalError)


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)

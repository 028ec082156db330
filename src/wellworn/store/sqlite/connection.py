"""Connections to one SQLite file: one writer, pooled readers, driver errors translated.

Write-ahead logging, so readers never wait for the writer. Knows nothing about what the tables mean.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from wellworn.core.errors import InvalidInput, StoreBusy, StoreClosed, StoreCorrupt, StoreError
from wellworn.store.sqlite.schema import migrate

BUSY_TIMEOUT_S = 60.0
CHECKPOINT_TIMEOUT_S = 1.0
MAX_IDLE_READERS = 8
_SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL", "off": "OFF"}


@contextmanager
def translated() -> Iterator[None]:
    """Driver errors as `StoreError`s: nothing of `sqlite3` escapes the store."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translation(error) from error


def _translation(error: sqlite3.Error) -> StoreError:
    text = str(error)
    if isinstance(error, sqlite3.OperationalError):
        if "locked" in text or "busy" in text:
            return StoreBusy(f"another writer held the file for over {BUSY_TIMEOUT_S:.0f} s ({text})")
        return StoreError(f"the store could not be read or written: {text}")
    if isinstance(error, sqlite3.IntegrityError):
        return StoreError(f"refused by the store: {text}")
    if isinstance(error, sqlite3.DatabaseError):
        return StoreCorrupt(f"the file is damaged or no SQLite file: {text}")
    return StoreError(f"the store failed: {text}")


class Connections:
    """The connections of one open file in this process. A forked child gets its own."""

    def __init__(self, path: Path, *, durability: str) -> None:
        if durability not in _SYNCHRONOUS:
            raise InvalidInput("durability", f"{durability!r} is unknown", f"use one of {', '.join(_SYNCHRONOUS)}")
        self._path = path
        self._synchronous = _SYNCHRONOUS[durability]
        self._closed = False
        self._start()
        with translated():
            _enter_wal(self._writer)
            self.was_former = migrate(self._writer)

    def _start(self) -> None:
        self._pid = os.getpid()
        self._write_lock = threading.RLock()
        self._pool_lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        with translated():
            self._writer = self._connect()

    def _connect(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_S, cached_statements=256
            )
        except sqlite3.OperationalError as error:
            raise StoreError(f"cannot open {str(self._path)!r}: {error}; check that the folder exists") from error
        for pragma in (
            f"busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}",
            "foreign_keys = ON",
            f"synchronous = {self._synchronous}",
            "secure_delete = ON",  # what is removed is overwritten with zeros, not only unlinked
            "temp_store = MEMORY",
            "cache_size = -16000",
        ):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def check_open(self) -> None:
        if self._closed:
            raise StoreClosed("this memory was closed; open it again")

    def _alive(self) -> None:
        self.check_open()
        if os.getpid() != self._pid:
            # After a fork the parent's connections must be neither used nor closed here: keep them, unused.
            self._of_parent = (self._writer, self._idle)
            self._start()

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """One write transaction, serialised over threads and processes; rolled back when the block raises."""
        return _Writing(self)

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection that sees committed data."""
        return _Reading(self)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Like `reading`, with every query seeing the same moment."""
        with self.reading() as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # BEGIN alone does not fix the moment
            yield connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._pool_lock:
            if not self._closed and len(self._idle) < MAX_IDLE_READERS:
                self._idle.append(connection)
                return
        connection.close()

    def checkpoint(self) -> bool:
        """Move the log into the file and empty it, so that nothing removed stays readable there.

        False when someone's open read kept the log in use for all of a second; the next checkpoint will do it.
        """
        self._alive()
        with self._write_lock, translated():
            self._writer.execute(f"PRAGMA busy_timeout = {int(CHECKPOINT_TIMEOUT_S * 1000)}")
            try:
                busy, _, _ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                self._writer.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")
        return not busy

    def close(self) -> None:
        if self._closed:
            return
        with self._write_lock, self._pool_lock:
            self._closed = True
            if os.getpid() == self._pid:
                for connection in (*self._idle, self._writer):
                    connection.close()
            self._idle = []


# Classes, not generators: those took as long as the statements that begin and end a transaction.


class _Writing:
    """`Connections.writing`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def __enter__(self) -> sqlite3.Connection:
        connections = self._connections
        connections._alive()
        self._lock = connections._write_lock
        self._lock.acquire()
        try:
            connections._alive()  # it may have been closed while we waited
            self._db = connections._writer
            if self._db.in_transaction:
                raise StoreError("a transaction is open in this thread already")
            self._db.execute("BEGIN IMMEDIATE")
        except BaseException as error:
            self._lock.release()
            if isinstance(error, sqlite3.Error):
                raise _translation(error) from error
            raise
        return self._db

    def __exit__(self, type_: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._db.execute("COMMIT")
        except sqlite3.Error as failed:
            raise _translation(failed) from failed
        finally:
            try:
                _roll_back(self._db)
            finally:
                self._lock.release()
        if isinstance(error, sqlite3.Error):
            raise _translation(error) from error


class _Reading:
    """`Connections.reading`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def __enter__(self) -> sqlite3.Connection:
        connections = self._connections
        connections._alive()
        with connections._pool_lock:
            idle = connections._idle.pop() if connections._idle else None
        if idle is None:
            with translated():
                idle = connections._connect()
        self._db = idle
        return idle

    def __exit__(self, type_: object, error: BaseException | None, trace: object) -> None:
        try:
            _roll_back(self._db)
        except sqlite3.Error as failed:
            raise _translation(failed) from failed
        finally:
            self._connections._give_back(self._db)
        if isinstance(error, sqlite3.Error):
            raise _translation(error) from error


def _roll_back(connection: sqlite3.Connection) -> None:
    """End a transaction that is still open; SQLite ends some by itself when they fail."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; the switch itself does not wait for others, so it is tried again."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        else:
            if mode == "wal":
                return
            if time.monotonic() > deadline:
                raise StoreError(f"the file system does not allow write-ahead logging (mode {mode})")
        time.sleep(0.01)

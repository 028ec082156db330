"""Connections to one SQLite file: one writer, pooled readers, driver errors translated.

Write-ahead logging while the file is open, so readers never wait for the writer. The last one to close it moves the
log into the file and turns logging off, so a file at rest is one file, whole, and can be read from a read-only disk.
A file that says it has a log and has none was therefore copied while somebody used it; or it was killed while it turned
logging on or off, and then a mark lies beside it. Knows nothing about what the tables mean.

SQLite must not be carried through a fork: a child would inherit locks that it does not hold. So a fork waits until no
thread is inside SQLite and closes every connection first; parent and child each open their own again.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from wellworn.core.errors import StoreBusy, StoreClosed, StoreCorrupt, StoreError
from wellworn.core.locks import patience_left
from wellworn.store.sqlite.db import BROKEN, SqliteDb, translated, translation
from wellworn.store.sqlite.driver import PLAIN_HEADER, connect, raw_key, salt_of
from wellworn.store.sqlite.log import (
    BUSY_TIMEOUT_S,
    READ,
    alone_beside,
    begin_log,
    beside,
    can_lock,
    close_sealed,
    end_log,
    inode_of,
    is_lone,
    lacks_log,
    look_at,
)
from wellworn.store.sqlite.schema import VERSION, migrate, version_of

CHECKPOINT_TIMEOUT_S = 1.0
FORK_WAIT_S = 30.0
MAX_IDLE_READERS = 8
PAGES_AT_ONCE = 1_000
_FULL = ("disk is full", "disk I/O error")
"""What a disk without room ends in; the second where a quota or a limit is reached. What is there can be read."""
_SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL", "off": "OFF"}

_logger = logging.getLogger(__name__)


class Connections:
    """See `store.sql.SqlConnections`; of one open file in this process. A forked child gets its own."""

    def __init__(self, path: Path, *, durability: str, secret: bytes | None = None) -> None:
        self._path = path
        self._synchronous = _SYNCHRONOUS[durability]
        self._closed = False
        self.log_missing = False
        """Whether the file was copied while it was in use, without its log: what was written last may be missing."""
        self.read_only, self._lone = False, False
        self._write_lock = threading.RLock()
        self._pool_lock = threading.Lock()
        self._held = _Held(path, secret)
        self._inode, self._full = (0, 0), False
        weakref.finalize(self, self._held.close_if_unused)
        with _gate, _one_at_a_time(path):
            shared = next((one for one in _opened() if one.is_of(path)), None)
            self.alone = shared is None
            """Whether this process had not opened the file before."""
            if shared is None:
                with alone_beside(path):
                    self.read_only = look_at(path, secret)
                    self._lone = self.read_only and is_lone(path, secret)
                    self.log_missing = not self.read_only and secret is None and lacks_log(path)
                self._held.salt = PLAIN_HEADER if secret is None else salt_of(path)
            else:  # looked at already; opening and closing it beside SQLite would drop the locks of this process
                self.read_only, self._lone = shared.read_only and not shared._full, shared._lone
                self.log_missing = shared.log_missing
                self._held.salt = shared._held.salt
            if self.log_missing:
                _logger.warning("%s was copied while in use, without its -wal file: run `wellworn doctor`", path)
            with _list_lock:
                _open_files.add(self)
            try:
                self._start()
            except StoreCorrupt:  # of two processes that make an encrypted file, one finds the salt of the other in it
                self._held.close()
                self._closed = secret is None or shared is not None or self._held.salt == (salt := salt_of(path))
                if self._closed:
                    raise
                self._held.salt = salt
                self._start()

    def _start(self) -> None:
        """Open the writer, for the first time or after a fork."""
        now = inode_of(self._path)
        if now in _spoiled:
            raise StoreError(
                f"this process was forked while {str(self._path)!r} was being read or written; fork when nothing is "
                "under way, or start processes with spawn"
            )
        if self._inode not in ((0, 0), now):
            raise self._replaced()
        self._inode = now
        self._held.pid = os.getpid()
        with translated():
            self._held.seals = False
            self._held.writer = writer = self._connect()
            if self.read_only:
                if version_of(writer) != VERSION:
                    raise StoreError(f"{str(self._path)!r} is of an older release and cannot be changed; copy it first")
                return
            with _busy_timeout(writer, wait_s := patience_left(BUSY_TIMEOUT_S)):
                if version_of(writer) != VERSION:  # else it need not be written to, which others may do
                    writer.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a new file; has no effect on any other
                    migrate(writer)
                self._held.seals = not self.log_missing and self._synchronous != "OFF"
                try:
                    begin_log(writer, self._path, wait_s)
                except sqlite3.OperationalError as error:
                    if not any(reason in str(error) for reason in _FULL):
                        raise
                    self.read_only, self._full, self._held.seals = True, True, False

    def _connect(self) -> SqliteDb:
        how = "?mode=rw"
        if self.read_only:
            how = READ[self._lone and not beside(self._path, "-wal").exists()]
        try:
            connection = self._held.connect(
                how, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_S, cached_statements=256
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

    def is_of(self, path: Path) -> bool:
        """Whether this is an open file of that path."""
        return not self._closed and self._inode == inode_of(path)

    def check_open(self) -> None:
        if self._closed:
            raise StoreClosed("this memory was closed; open it again")

    def alive(self) -> None:
        """Raise when closed; open the connections again after a fork. Call it inside the gate."""
        self.check_open()
        if self._held.writer is None:
            with self._write_lock:
                if self._held.writer is None:
                    self.check_open()
                    self._start()

    def writing(self, tenant: str | None = None) -> AbstractContextManager[SqliteDb]:
        """Serialised over threads, processes and tenants."""
        return _Use(self, writes=True)

    def reading(self) -> AbstractContextManager[SqliteDb]:
        return _Use(self, writes=False)

    translated = staticmethod(translated)

    @contextmanager
    def snapshot(self) -> Iterator[SqliteDb]:
        with self.reading() as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # BEGIN alone does not fix the moment
            yield connection

    def moment(self) -> Hashable:
        """As one connection sees it, which never writes: SQLite tells each of what the others committed."""
        with _gate:
            self.alive()
            with self._pool_lock:
                self.check_open()  # it may have been closed while we waited
                self._check_key()
                try:
                    watcher = self._held.watcher = self._held.watcher or self._connect()
                    return watcher, watcher.execute("PRAGMA data_version").fetchone()[0]
                except BROKEN as error:
                    raise translation(error) from error

    def check_there(self) -> None:
        """Raise when the file was deleted or replaced: what is written now would be lost."""
        if inode_of(self._path) != self._inode:
            raise self._replaced()

    def _replaced(self) -> StoreError:
        return StoreError(
            f"{str(self._path)!r} was deleted or replaced while it was open; nothing was written. Close this memory and "
            "open it again"
        )

    def take_writer(self) -> SqliteDb:
        """The writer, for one transaction; waits for its turn no longer than the present call may."""
        wait_s = patience_left(BUSY_TIMEOUT_S)
        began = time.monotonic()
        if not self._write_lock.acquire(timeout=wait_s):
            raise StoreBusy(f"another thread held the file for over {wait_s:.1f} s")
        try:
            self.alive()  # it may have been closed while we waited
            db = self._held.writer
            if self.read_only or db is None:
                raise StoreError(f"{str(self._path)!r} can only be read; check the disk and the rights, then reopen it")
            if db.in_transaction:
                raise StoreError("a transaction is open in this thread already")
            if wait_s == BUSY_TIMEOUT_S:
                db.execute("BEGIN IMMEDIATE")
            else:
                with _busy_timeout(db, max(0.0, wait_s - (time.monotonic() - began))):
                    db.execute("BEGIN IMMEDIATE")
            self._held.writing = True
        except BaseException:
            self._write_lock.release()
            raise
        return db

    def give_writer_back(self) -> None:
        self._held.writing = False
        self._write_lock.release()

    def take_reader(self) -> SqliteDb:
        self.alive()
        with self._pool_lock:
            self._check_key()
            self._held.readers += 1
            idle = self._held.idle.pop() if self._held.idle else None
        if idle is not None:
            return idle
        try:
            return self._connect()
        except BaseException:
            self._held.readers -= 1
            raise

    def _check_key(self) -> None:
        if self._held.rekeying:
            raise StoreBusy(f"the key of {str(self._path)!r} is being changed; open it with the new one")

    def give_reader_back(self, connection: SqliteDb) -> None:
        with self._pool_lock:
            self._held.readers -= 1
            if not self._closed and len(self._held.idle) < MAX_IDLE_READERS:
                self._held.idle.append(connection)
                return
        with _one_at_a_time(self._path):
            self._held.end(connection, last=self._closed)

    def checkpoint(self) -> bool:
        """Move the log into the file and empty it, so that nothing removed stays readable there.

        False when someone's open read kept the log in use for all of a second; the next checkpoint will do it.
        """
        with _gate:
            self.alive()
            writer = self._held.writer
            with self._write_lock, translated():
                if writer is None or self.read_only:
                    return False
                with _busy_timeout(writer, CHECKPOINT_TIMEOUT_S):
                    busy, _, _ = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    def rekey(self, secret: bytes) -> None:
        """Encrypt every page of a file that nobody else has open with another key, and close: whoever goes on opens it again."""
        with _gate:
            self.alive()
            writer = self._held.writer
            with self._write_lock, translated():
                if writer is None or self.read_only:
                    raise StoreError(f"{str(self._path)!r} cannot be changed; its key stays")
                with self._pool_lock:
                    self._held.rekeying = True
                    self._held.close_readers()
                try:
                    with _busy_timeout(writer, 0):
                        if not end_log(writer, self._path):
                            raise StoreBusy(f"{str(self._path)!r} is open elsewhere: close that first; its key stays")
                    writer.execute(f"PRAGMA rekey = \"x'{raw_key(secret, self._held.salt)}'\"")
                except BaseException as error:
                    self._held.rekeying = False
                    if isinstance(error, sqlite3.Error):  # its text is about the use of SQLCipher
                        problem = f"the key of {str(self._path)!r} could not be changed; it stays. Is the disk full?"
                        raise StoreError(problem) from error
                    raise
                self._held.secret = secret
        self.close()

    def return_space(self) -> None:
        """Give pages that nothing uses back to the disk, some at a time; a file of an older release keeps them."""
        free = 1
        while free:
            with self.writing() as db:
                db.execute(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})").fetchall()
                before, free = free, int(db.execute("PRAGMA freelist_count").fetchone()[0])
                if free == before:
                    return

    def accept_loss(self) -> None:
        """Take the file as it is, although its log is missing."""
        self.log_missing = False
        self._held.seals = self._synchronous != "OFF"

    def close(self) -> None:
        with _gate, self._write_lock, _one_at_a_time(self._path), self._pool_lock:
            self._closed = True
            self._held.close()

    def let_go(self) -> None:
        """Close every connection before a fork; the next use opens them again."""
        self._held.close()

    def begin_anew(self, *, clean: bool) -> None:
        """In the child of a fork: nothing is open here. Without a clean fork SQLite's state is that of the parent."""
        if not clean and self._held.writer is not None:
            _spoiled.add(self._inode)
            _of_parent.append((self._held.writer, self._held.idle, self._held.watcher))  # neither used nor closed here
            self._held.writer, self._held.idle, self._held.watcher = None, [], None
        self._write_lock, self._pool_lock = threading.RLock(), threading.Lock()


class _Held:
    """What is open in a process; apart from `Connections`, so that it can be closed when those are gone."""

    def __init__(self, path: Path, secret: bytes | None) -> None:
        self._path = path
        self.secret, self.salt = secret, b""
        self.pid = os.getpid()
        self.writer: SqliteDb | None = None
        self.idle: list[SqliteDb] = []
        self.watcher: SqliteDb | None = None
        """See `Connections.moment`."""
        self.seals = False
        self.readers = 0
        """Connections that are in use now."""
        self.writing = False
        self.rekeying = False

    def close_if_unused(self) -> None:
        """When nobody refers to it any more, or when the program ends: then a thread may still be at work."""
        if not (self.readers or self.writing):
            self.close()

    def close(self) -> None:
        """Close all, in the process that opened it."""
        writer, self.writer = self.writer, None
        if os.getpid() == self.pid:
            self.close_readers()
            if writer is not None:
                self.end(writer, last=True)
        self.idle, self.watcher = [], None

    def close_readers(self) -> None:
        """Close those that nobody uses."""
        while self.idle:
            self.idle.pop().close()
        if self.watcher is not None:
            self.watcher.close()
            self.watcher = None

    def connect(self, how: str, **options: Any) -> SqliteDb:  # options of sqlite3.connect
        return connect(self._path, self.secret, how, salt=self.salt, **options)

    def end(self, connection: SqliteDb, *, last: bool) -> None:
        """Close a connection that may be the last one."""
        if last and self.seals:
            close_sealed(connection, self._path)
        else:
            with suppress(sqlite3.Error):
                connection.close()


# -- forks ---------------------------------------------------------------------------------------------------------


class _Gate:
    """Threads that are inside SQLite. A fork shuts the gate: who is inside may finish, nobody else comes in."""

    def __init__(self) -> None:
        self.forget()

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._lock:
            while self._shut and me not in self._inside:
                self._changed.wait()
            self._inside[me] = self._inside.get(me, 0) + 1

    def __exit__(self, *error: object) -> None:
        me = threading.get_ident()
        with self._lock:
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
            if self._shut:
                self._changed.notify_all()

    def shut(self) -> bool:
        """Wait until nobody is inside; False when that took too long, or when it is this thread that is."""
        me = threading.get_ident()
        with self._changed:
            self._shut += 1
            self._changed.wait_for(lambda: not self._inside.keys() - {me}, FORK_WAIT_S)
            return not self._inside

    def open(self) -> None:
        with self._changed:
            self._shut -= 1
            self._changed.notify_all()

    def forget(self) -> None:
        """In the child of a fork, where no other thread is."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._inside: dict[int, int] = {}
        self._shut = 0


_gate = _Gate()
_open_files: weakref.WeakSet[Connections] = weakref.WeakSet()
_list_lock = threading.Lock()
_opening: dict[Path, threading.RLock] = {}
_spoiled: set[tuple[int, int]] = set()
"""Files that the parent was reading or writing when this process was forked."""
_of_parent: list[object] = []
_clean_fork = True


def fold(path: Path) -> None:
    """Take the log of a file that nobody has open into it, and what a crash left half written out of it.

    Both are pages, so no key is needed, and the file may be damaged; one that is cut off keeps its log.
    """
    with _gate, _one_at_a_time(path):
        busy = any(one.is_of(path) for one in _opened())
        if not busy and os.name == "posix":
            with path.open("r+b", buffering=0) as file:
                busy = not can_lock(file.fileno())
        if busy:
            raise StoreBusy(f"{str(path)!r} is open: close every memory and program on it first")
        connection = connect(path, None, "?mode=rw", isolation_level=None, timeout=0.0)
        with suppress(sqlite3.Error):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("COMMIT")
        close_sealed(connection, path)


def _opened() -> list[Connections]:
    with _list_lock:
        return [*_open_files]


def _one_at_a_time(path: Path) -> threading.RLock:
    """Held by the thread that opens or closes a file. What it looks at must not change between two looks."""
    return _opening.setdefault(path.resolve(), threading.RLock())


def _before_fork() -> None:
    global _clean_fork
    _clean_fork = _gate.shut()
    if _clean_fork:
        for connections in _opened():
            connections.let_go()


def _after_fork_in_child() -> None:
    global _list_lock
    _list_lock = threading.Lock()
    _opening.clear()
    _gate.forget()
    for connections in _opened():
        connections.begin_anew(clean=_clean_fork)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_gate.open, after_in_child=_after_fork_in_child)


# -- transactions and reads: a class, because generators took as long as the statements around a transaction -------


class _Use:
    """`Connections.writing` and `Connections.reading`: a connection, taken inside the gate and given back."""

    def __init__(self, connections: Connections, *, writes: bool) -> None:
        self._connections, self._writes = connections, writes

    def __enter__(self) -> SqliteDb:
        _gate.__enter__()
        try:
            self._db = self._connections.take_writer() if self._writes else self._connections.take_reader()
        except BaseException as error:
            _gate.__exit__()
            if isinstance(error, sqlite3.Error):
                raise translation(error) from error
            raise
        return self._db

    def __exit__(self, type_: object, error: BaseException | None, trace: object) -> None:
        try:
            if self._writes and error is None:
                self._connections.check_there()
                self._db.execute("COMMIT")
        except sqlite3.Error as failed:
            raise translation(failed) from failed
        finally:
            try:
                if self._db.in_transaction:  # SQLite ends some by itself when they fail
                    self._db.execute("ROLLBACK")
            except sqlite3.Error as failed:
                raise translation(failed) from failed
            finally:
                if self._writes:
                    self._connections.give_writer_back()
                else:
                    self._connections.give_reader_back(self._db)
                _gate.__exit__()
        if isinstance(error, sqlite3.Error):
            raise translation(error) from error


@contextmanager
def _busy_timeout(connection: sqlite3.Connection, seconds: float) -> Iterator[None]:
    connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")

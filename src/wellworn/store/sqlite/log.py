"""The write-ahead log of a file: whoever opens the file begins it, the last one to close the file ends it.

While anybody begins or ends it, the folder is locked, so that nobody else of ours looks or does so too, and a mark lies
beside the file: if that process is killed meanwhile, the file may say that it has a log and have none, and nothing is
missing all the same. Who opens the file next removes the mark. Before SQLite has a file we look at it ourselves.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from wellworn.core.errors import StoreCorrupt, StoreError
from wellworn.store.sqlite.db import BROKEN, translated
from wellworn.store.sqlite.driver import connect
from wellworn.store.sqlite.schema import APPLICATION_ID, version_of

BUSY_TIMEOUT_S = 60.0
LOCK_TRIES, LOCK_PAUSE_S = 1_000, 0.005
SWITCHING = "-switching"
"""Ends the name of the mark beside a file."""
READ = {False: "?mode=ro", True: "?mode=ro&immutable=1"}
"""How to open a file that can only be read, by whether it has lost its log."""
_FIRST_LOCK_BYTE, _LOCK_BYTES = 0x40000000, 512
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


# -- the file before SQLite has it -----------------------------------------------------------------------------------


def look_at(path: Path, secret: bytes | None) -> bool:
    """Make the file when it is new, readable by its owner only; refuse one that is not ours, without touching it.

    Says whether it can only be read.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            reason = f"{error.strerror or error}; check that the folder exists and can be written to"
            raise StoreError(f"cannot open {str(path)!r}: {reason}") from error
        return False
    except OSError as error:
        raise StoreError(f"cannot open {str(path)!r}: {error.strerror or error}") from error
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"cannot open {str(path)!r}: it is not a file; give another path")
    if not os.access(path, os.R_OK):
        raise StoreError(f"cannot open {str(path)!r}: this user may not read it")
    if found.st_size:
        _check_ours(path, secret)
    return not (os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK))


def _check_ours(path: Path, secret: bytes | None) -> None:
    """Raise when a file is damaged or another program's.

    Others may be writing to it at this moment, so it is read under SQLite's locks. Only a file that has lost its log is
    read without: SQLite would make a new log beside it.
    """
    how = READ[is_lone(path, secret)]
    try:
        with translated(), closing(connect(path, secret, how, timeout=BUSY_TIMEOUT_S)) as connection:
            version_of(connection)
    except StoreCorrupt:
        raise
    except StoreError:  # a crash left a write half done: who opens the file to write takes it back
        if not beside(path, "-journal").exists():
            raise


def lacks_log(path: Path) -> bool:
    """Whether the file says that it has a log, there is none, and nobody has it open: it was copied alone."""
    with path.open("r+b", buffering=0) as file:
        ours = file.read(72)[68:] == APPLICATION_ID.to_bytes(4)
        return ours and is_lone(path) and not is_marked(path) and can_lock(file.fileno())


def is_lone(path: Path, secret: bytes | None = None) -> bool:
    """Whether the header of a plain file says that it has a log, and there is none."""
    with path.open("rb", buffering=0) as file:
        return secret is None and file.read(20)[18:] == b"\x02\x02" and not beside(path, "-wal").exists()


def can_lock(handle: int) -> bool:
    """Whether no other process has the file open by SQLite, which locks these bytes."""
    try:
        import fcntl

        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCK_BYTES, _FIRST_LOCK_BYTE)
    except (ImportError, OSError):
        return False
    return True


def inode_of(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (-1, -1)
    return (found.st_dev, found.st_ino)

"""Which library opens a file: Python's own SQLite, or SQLCipher for one that is encrypted as a whole.

A key is 32 bytes, given as such or as 64 hexadecimal digits, or any passphrase; scrypt makes a key of a passphrase, with
the salt that stands in the first bytes of every encrypted file. Errors of SQLCipher arrive as those of `sqlite3`, so that
nobody else needs to know which library it is.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from wellworn.core.errors import InvalidInput, MissingExtra, StoreCorrupt, StoreError, WrongKey
from wellworn.store.sqlite.db import SqliteDb, SqliteWords

Key = str | bytes | Path | Callable[[], str | bytes]
"""A passphrase, 32 bytes or 64 hexadecimal digits; a file that holds it; or a function that returns it."""
PLAIN_HEADER = b"SQLite format 3\x00"
_SALT_BYTES = 16


def key_of(key: Key | None) -> bytes | None:
    """The secret that a setting means: given, read from a file, or asked of a function. None: there is none."""
    if key is None:
        return None
    if callable(key):
        key = key()
    if isinstance(key, Path):
        try:
            key = key.read_bytes().strip()
        except OSError as error:
            raise InvalidInput(
                "key", f"{str(key)!r} cannot be read: {error.strerror}", "name a file that holds the key"
            ) from error
    secret = key.encode() if isinstance(key, str) else key
    if not isinstance(secret, bytes) or len(secret) < 8:
        raise InvalidInput("key", "has fewer than 8 characters", "use a passphrase, or 64 hexadecimal digits")
    return secret


def connect(
    path: Path, secret: bytes | None, how: str = "", *, salt: bytes = b"", **options: Any
) -> SqliteDb:  # options of sqlite3.connect
    """A connection to a file; nothing is read of it yet. `how` is the query of a URI, as in `?mode=ro`.

    Without a salt it is read from the file, which drops the locks of this process: so nobody here may have it open.
    """
    name = f"file:{quote(str(path.absolute()))}{how}"
    if secret is None:
        return sqlite3.connect(name, uri=True, factory=SqliteDb, **options)
    salt = salt or salt_of(path)
    if salt == PLAIN_HEADER:
        raise WrongKey(
            f"{str(path)!r} is not encrypted: open it without a key, or encrypt it with `wellworn admin rekey`"
        )
    connection: SqliteDb = _cipher().connect(name, uri=True, factory=_connection_class(), **options)
    connection.execute("PRAGMA cipher_log_level = NONE")
    connection.execute(f"PRAGMA key = \"x'{raw_key(secret, salt)}'\"")
    return connection


def salt_of(path: Path) -> bytes:
    """The salt of an encrypted file, which is its beginning; a new one for a file that is new."""
    salt = b""
    if path.exists():
        with path.open("rb") as file:
            salt = file.read(_SALT_BYTES)
    return salt if len(salt) == _SALT_BYTES else os.urandom(_SALT_BYTES)


def raw_key(secret: bytes, salt: bytes) -> str:
    """Key and salt of a file, as SQLCipher wants them."""
    return derived(secret, salt) + salt.hex()


@lru_cache(maxsize=64)
def derived(secret: bytes, salt: bytes) -> str:
    """32 bytes as hexadecimal digits: the secret itself if it is that long, else made of a passphrase."""
    if re.fullmatch(rb"[0-9a-fA-F]{64}", secret):
        return secret.decode().lower()
    if len(secret) == 32:
        return secret.hex()
    return hashlib.scrypt(secret, salt=salt, n=2**14, r=8, p=1, dklen=32).hex()


def is_plain(path: Path) -> bool:
    """Whether a file begins as every SQLite file does that is not encrypted."""
    with path.open("rb") as file:
        return file.read(len(PLAIN_HEADER)) == PLAIN_HEADER


def encrypt_file(path: Path, secret: bytes) -> None:
    """Encrypt a plain file that nobody else has open. It is replaced when the encrypted copy is whole; the blocks of the
    old file may stay readable on the disk until something else is written there."""
    path = Path(os.path.realpath(path))
    made = path.with_name(f".{path.name}.encrypting.part")
    made.unlink(missing_ok=True)
    try:
        with closing(_cipher().connect(str(path), factory=_connection_class(), isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = DELETE")  # nothing may stay in a log beside it
            numbers = {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id")}
            db.execute(f"ATTACH DATABASE ? AS copy KEY \"x'{raw_key(secret, os.urandom(_SALT_BYTES))}'\"", (str(made),))
            db.execute("SELECT sqlcipher_export('copy')").fetchall()
            for name, number in numbers.items():
                db.execute(f"PRAGMA copy.{name} = {number}")
    except sqlite3.Error as error:
        made.unlink(missing_ok=True)
        raise StoreError(f"{str(path)!r} cannot be encrypted: {error}; it stays as it was") from error
    made.chmod(0o600)
    os.replace(made, path)


def explained(path: Path, secret: bytes | None, error: Exception) -> Exception:
    """What a file that cannot be opened most likely is."""
    if "not a database" not in str(error):
        return error
    if secret is not None:
        return WrongKey(f"the key does not open {str(path)!r}: check the key, WELLWORN_KEY or WELLWORN_KEY_FILE")
    with path.open("rb") as file:
        if b"\0" not in file.read(4096):  # a text: every database, encrypted or not, has zeros in its first page
            return StoreCorrupt(f"{str(path)!r} is not a wellworn file: give another path")
    return StoreCorrupt(
        f"{str(path)!r} is encrypted, or no database: give its key (key=…, WELLWORN_KEY or WELLWORN_KEY_FILE), or "
        "another path; if it was a plain file of yours, its beginning is damaged: `wellworn doctor --repair`"
    )


def _cipher() -> Any:  # the module has no types
    try:
        from sqlcipher3 import dbapi2
    except ImportError:
        raise MissingExtra("an encrypted store", "encryption") from None
    return dbapi2


@contextmanager
def _as_sqlite3(errors: Any) -> Iterator[None]:  # exception classes of the module
    try:
        yield
    except errors.Error as error:
        raise getattr(sqlite3, type(error).__name__, sqlite3.DatabaseError)(*error.args) from error


@cache
def _connection_class() -> Any:
    """A connection to SQLCipher whose errors, and those of its cursors, are those of `sqlite3`."""
    module: Any = _cipher()

    def translating(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            with _as_sqlite3(module):
                return method(*args)

        return call

    names = ("execute", "executemany", "fetchone", "fetchall", "__next__")
    methods = {name: translating(getattr(module.Cursor, name)) for name in names}
    cursor_class = type("CipherCursor", (module.Cursor,), methods)

    class CipherConnection(SqliteWords, module.Connection):  # type: ignore[misc]  # a module without types
        def cursor(self, factory: Any = cursor_class) -> Any:
            return super().cursor(factory)

    return CipherConnection

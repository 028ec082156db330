"""Encrypted text columns: what people said is unreadable to whoever has the database but not the key.

Every text is sealed with one data key (AES-256-GCM); the data key lies in the database, sealed with the key that the
user gives. Another key therefore seals the data key anew and leaves the texts alone. What the database must compare stays
readable: ids, times, counts, tags, sources, hashes of words and vectors.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wellworn.core.errors import MissingExtra, StoreCorrupt, WrongKey
from wellworn.store.sqlite.driver import Key, derived, key_of

if TYPE_CHECKING:
    from wellworn.store.postgres.db import PostgresDb

NONCE_BYTES, SALT_BYTES = 12, 16
EMPTY = "{}"
"""Stays as it is: a record without a body says nothing, and the database looks for it."""


class Sealer:
    """Seals and opens texts with the data key of one store; without a key it leaves them as they are."""

    def __init__(self, data_key: bytes | None = None) -> None:
        self.on, self.data_key = data_key is not None, data_key or b""
        self._cipher: Any = None if data_key is None else _cipher(data_key)

    def seal(self, text: str | None) -> str | None:
        if self._cipher is None or text is None or text == EMPTY:
            return text
        return b64encode(_sealed(self._cipher, text.encode())).decode()

    def open(self, sealed: str | None) -> str | None:
        if self._cipher is None or sealed is None or sealed == EMPTY:
            return sealed
        try:
            return _opened(self._cipher, b64decode(sealed)).decode()
        except ValueError as error:
            raise StoreCorrupt("a text does not open with the key of the store") from error

    def seal_columns(self, row: tuple[Any, ...], places: Sequence[int]) -> tuple[Any, ...]:
        """The row with the texts at these places sealed."""
        if self._cipher is None:
            return row
        return tuple(self.seal(value) if place in places else value for place, value in enumerate(row))

    def open_columns(self, rows: list[tuple[Any, ...]], places: Sequence[int]) -> list[tuple[Any, ...]]:
        """The rows with the texts at these places opened; one that cannot be opened is a value of no type."""
        if self._cipher is None:
            return rows
        return [tuple(self._or_none(v) if n in places else v for n, v in enumerate(row)) for row in rows]

    def _or_none(self, sealed: Any) -> Any:
        try:
            return self.open(sealed)
        except StoreCorrupt as error:
            return error  # the row is damaged: its reader says so and leaves it out


def sealer_of(db: PostgresDb, key: Key | None, name: str) -> Sealer:
    """The sealer of a store; a new one gets a data key if a key is given. Call it alone in changing the tables."""
    secret = key_of(key)
    rows = db.ask("SELECT salt, sealed FROM data_key")
    if secret is None:
        if rows:
            raise WrongKey(f"{name} is encrypted: give its key (key=…, WELLWORN_KEY or WELLWORN_KEY_FILE)")
        return Sealer()
    if not rows:
        if db.ask("SELECT 1 FROM partitions LIMIT 1") or db.ask("SELECT 1 FROM records LIMIT 1"):
            raise WrongKey(f"{name} is not encrypted: open it without a key, or move it to a new schema with one")
        data_key = os.urandom(32)
        put_key(db, secret, data_key)
        return Sealer(data_key)
    return Sealer(data_key_of(rows[0], secret, name))


def data_key_of(row: tuple[Any, ...], secret: bytes, name: str) -> bytes:
    """The data key that lies in the database, opened."""
    salt, sealed = row
    try:
        return _opened(_cipher(bytes.fromhex(derived(secret, salt))), sealed)
    except ValueError:
        raise WrongKey(f"the key does not open {name}: check the key, WELLWORN_KEY or WELLWORN_KEY_FILE") from None


def put_key(db: PostgresDb, secret: bytes, data_key: bytes) -> None:
    """Seal the data key with this key, in the place of another."""
    salt = os.urandom(SALT_BYTES)
    sealed = _sealed(_cipher(bytes.fromhex(derived(secret, salt))), data_key)
    db.run("DELETE FROM data_key")
    db.run("INSERT INTO data_key (salt, sealed) VALUES (?, ?)", (salt, sealed))


def _cipher(key: bytes) -> Any:  # cryptography's class, which is loaded for encrypted stores only
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise MissingExtra("an encrypted store in Postgres", "encryption") from None
    return AESGCM(key)


def _sealed(cipher: Any, data: bytes) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return nonce + bytes(cipher.encrypt(nonce, data, None))


def _opened(cipher: Any, sealed: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag

    try:
        return bytes(cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None))
    except InvalidTag:
        raise ValueError("it was sealed with another key") from None

"""Who is `[EMAIL_1]`: numbers by shelf, kept in the store without the values.

A value is known by its HMAC under a random salt of the shelf, so the same value gets the same number in every process
and after a restart. Whoever has the file has the salt too and can try values out: this hides secrets, not the few
hundred million social security numbers there are. A shelf's salt and numbers go with the shelf.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from recollect.clock import Clock
from recollect.ingest.pii.finding import Finding
from recollect.stores.base import Dossier, Store, Tx
from recollect.types import Shelf

HEAD, ONE = "pseudonyms", "pseudonym"
"""Kinds of dossiers: the salt, the last numbers and the counts of a shelf; the number of one value."""
_HEAD_KEY = "head"


class Pseudonyms:
    """The numbers of one store's shelves."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def known(self, shelf: Shelf, found: Sequence[Finding]) -> list[int | None]:
        """The numbers that are given already; writes nothing. Two reads, however many there are."""
        return self._looked_up(shelf, found)[1]

    def _looked_up(self, shelf: Shelf, found: Sequence[Finding]) -> tuple[str, list[int | None]]:
        """The shelf's salt, empty when it has none, and the numbers under it."""
        head = self._store.dossier(shelf, HEAD, _HEAD_KEY)
        if head is None:
            return "", [None] * len(found)
        salt = head.body["salt"]
        keys = _keys(salt, found)
        given = self._store.bodies(shelf, ONE, [*dict.fromkeys(keys)])
        return salt, [None if (one := given.get(key)) is None else int(one["number"]) for key in keys]

    def numbered(self, shelf: Shelf, found: Sequence[Finding]) -> list[int]:
        """The numbers of all, new ones given where there are none: a transaction, only then."""
        salt, known = self._looked_up(shelf, found)
        new = [one for one, number in zip(found, known, strict=True) if number is None]
        if not new:
            return [number for number in known if number is not None]
        with self._store.transact() as tx:
            if salt and self._head(tx, shelf)["salt"] != salt:  # forgotten meanwhile, and begun anew
                return self._given(tx, shelf, found)
            given = iter(self._given(tx, shelf, new))
        return [next(given) if number is None else number for number in known]

    def _given(self, tx: Tx, shelf: Shelf, found: Sequence[Finding]) -> list[int]:
        body = self._head(tx, shelf)
        last: dict[str, int] = body["last"]
        keys = _keys(body["salt"], found)
        there = tx.bodies(shelf, ONE, [*dict.fromkeys(keys)])
        new: dict[str, dict[str, Any]] = {}
        for one, key in zip(found, keys, strict=True):
            if key not in there:
                last[one.type] = last.get(one.type, 0) + 1
                there[key] = new[key] = {"number": last[one.type]}
        if new:
            tx.put_bodies(shelf, ONE, new, self._clock())
            tx.put_dossier(self._dossier(shelf, HEAD, _HEAD_KEY, body))
        return [int(there[key]["number"]) for key in keys]

    def count(self, tx: Tx, shelf: Shelf, counts: Mapping[str, int]) -> None:
        """Add to how often something was taken out."""
        body = self._head(tx, shelf)
        taken: dict[str, int] = body["taken"]
        for type_, number in counts.items():
            taken[type_] = taken.get(type_, 0) + number
        tx.put_dossier(self._dossier(shelf, HEAD, _HEAD_KEY, body))

    def counts(self, shelf: Shelf) -> dict[str, int]:
        head = self._store.dossier(shelf, HEAD, _HEAD_KEY)
        return {} if head is None else dict(head.body["taken"])

    def _head(self, tx: Tx, shelf: Shelf) -> dict[str, Any]:  # as in the store's JSON
        head = tx.dossier(shelf, HEAD, _HEAD_KEY)
        if head is None:
            return {"salt": secrets.token_hex(16), "last": {}, "taken": {}}
        return {"salt": head.body["salt"], "last": dict(head.body["last"]), "taken": dict(head.body["taken"])}

    def _dossier(self, shelf: Shelf, kind: str, key: str, body: dict[str, Any]) -> Dossier:
        now = self._clock()
        return Dossier(shelf=shelf, kind=kind, key=key, body=body, created_at=now, updated_at=now)


def _keys(salt: str, found: Sequence[Finding]) -> list[str]:
    """What the values are known by; each is computed once."""
    key, known = bytes.fromhex(salt), dict[tuple[str, str], str]()
    for _, _, type_, value in found:
        if (type_, value) not in known:
            told = f"{type_}\x1f{value}".encode("utf-8", "surrogatepass")
            known[type_, value] = hmac.digest(key, told, "sha256").hex()
    return [known[one.type, one.value] for one in found]

"""Who is `[EMAIL_1]`: numbers by partition, kept in the store without the values.

A value is known by its HMAC under a random salt of the partition, so the same value gets the same number in every process
and after a restart. Whoever has the file has the salt too and can try values out: this hides secrets, not the few
hundred million social security numbers there are. A partition's salt and numbers go with the partition.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from wellworn.core.clock import Clock
from wellworn.core.values import Partition
from wellworn.ingest.pii.finding import Finding
from wellworn.store.port import Record, Store, Tx

HEAD, ONE = "pseudonyms", "pseudonym"
"""Kinds of records: the salt, the last numbers and the counts of a partition; the number of one value."""
_HEAD_KEY = "head"


class Pseudonyms:
    """The numbers of one store's partitions."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def known(self, partition: Partition, found: Sequence[Finding]) -> list[int | None]:
        """The numbers that are given already; writes nothing. Two reads, however many there are."""
        return self._looked_up(partition, found)[1]

    def _looked_up(self, partition: Partition, found: Sequence[Finding]) -> tuple[str, list[int | None]]:
        """The partition's salt, empty when it has none, and the numbers under it."""
        head = self._store.record(partition, HEAD, _HEAD_KEY)
        if head is None:
            return "", [None] * len(found)
        salt = head.body["salt"]
        keys = _keys(salt, found)
        given = self._store.bodies(partition, ONE, [*dict.fromkeys(keys)])
        return salt, [None if (one := given.get(key)) is None else int(one["number"]) for key in keys]

    def numbered(self, partition: Partition, found: Sequence[Finding]) -> list[int]:
        """The numbers of all, new ones given where there are none: a transaction, only then."""
        salt, known = self._looked_up(partition, found)
        new = [one for one, number in zip(found, known, strict=True) if number is None]
        if not new:
            return [number for number in known if number is not None]
        with self._store.transact() as tx:
            if salt and self._head(tx, partition)["salt"] != salt:  # forgotten meanwhile, and begun anew
                return self._given(tx, partition, found)
            given = iter(self._given(tx, partition, new))
        return [next(given) if number is None else number for number in known]

    def _given(self, tx: Tx, partition: Partition, found: Sequence[Finding]) -> list[int]:
        body = self._head(tx, partition)
        last: dict[str, int] = body["last"]
        keys = _keys(body["salt"], found)
        there = tx.bodies(partition, ONE, [*dict.fromkeys(keys)])
        new: dict[str, dict[str, Any]] = {}
        for one, key in zip(found, keys, strict=True):
            if key not in there:
                last[one.type] = last.get(one.type, 0) + 1
                there[key] = new[key] = {"number": last[one.type]}
        if new:
            tx.put_bodies(partition, ONE, new, self._clock())
            tx.put_record(self._record(partition, HEAD, _HEAD_KEY, body))
        return [int(there[key]["number"]) for key in keys]

    def count(self, tx: Tx, partition: Partition, counts: Mapping[str, int]) -> None:
        """Add to how often something was taken out."""
        body = self._head(tx, partition)
        taken: dict[str, int] = body["taken"]
        for type_, number in counts.items():
            taken[type_] = taken.get(type_, 0) + number
        tx.put_record(self._record(partition, HEAD, _HEAD_KEY, body))

    def counts(self, partition: Partition) -> dict[str, int]:
        head = self._store.record(partition, HEAD, _HEAD_KEY)
        return {} if head is None else dict(head.body["taken"])

    def _head(self, tx: Tx, partition: Partition) -> dict[str, Any]:  # as in the store's JSON
        head = tx.record(partition, HEAD, _HEAD_KEY)
        if head is None:
            return {"salt": secrets.token_hex(16), "last": {}, "taken": {}}
        return {"salt": head.body["salt"], "last": dict(head.body["last"]), "taken": dict(head.body["taken"])}

    def _record(self, partition: Partition, kind: str, key: str, body: dict[str, Any]) -> Record:
        now = self._clock()
        return Record(partition=partition, kind=kind, key=key, body=body, created_at=now, updated_at=now)


def _keys(salt: str, found: Sequence[Finding]) -> list[str]:
    """What the values are known by; each is computed once."""
    key, known = bytes.fromhex(salt), dict[tuple[str, str], str]()
    for _, _, type_, value in found:
        if (type_, value) not in known:
            told = f"{type_}\x1f{value}".encode("utf-8", "surrogatepass")
            known[type_, value] = hmac.digest(key, told, "sha256").hex()
    return [known[one.type, one.value] for one in found]

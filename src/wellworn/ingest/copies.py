"""Copies that sharing made of entries: found when the original is forgotten, so that they go with it.

A copy says so in its metadata (`shared`), is linked to what it was copied from (`derived_from`), and stands in a
record of kind `share` beside the original, also after it was taken back. Links outlive an export, records a
revocation: both are asked. Copies of copies go too. One that others have shared in the same words stays for them,
without a trace of the one that goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from wellworn.core.values import Entry, Partition
from wellworn.store.port import Selection, Store, Tx

SHARE = "share"
"""The kind of record that tells of one copy."""
SHARED = "shared"
"""The key of a copy's metadata that tells where it comes from."""
_PAGE = 500
_MANY = 100_000


@dataclass(frozen=True, kw_only=True)
class Copies:
    """What is to become of them."""

    go: dict[Partition, list[str]]
    """Ids by partition: nobody else shared them."""
    stay: list[Entry]
    """Others did: they lose what they say of the one that goes."""


def ids_on(store: Store, partition: Partition, selection: Selection) -> Iterable[list[str]]:
    """Ids of a partition's entries, a page at a time."""
    page = store.select([partition], selection, limit=_PAGE)
    while page:
        yield [entry.id for _, entry in page]
        page = store.select([partition], selection, after=page[-1][0], limit=_PAGE)


def copies_of(store: Store, going: Sequence[tuple[Partition, str]]) -> Copies:
    """Copies of entries that go, on other partitions of their tenant; call it inside the transaction that removes them."""
    gone = {id for _, id in going}
    go: dict[str, Entry] = {}
    stay: dict[str, Entry] = {}
    listed = [
        (share.body["id"], share.body["copy"])
        for partition in dict.fromkeys(partition for partition, _ in going)
        for share in store.records(partition=partition, kinds=[SHARE], limit=_MANY)
    ]
    tenants = {partition.tenant for partition, _ in going}
    wave = set(gone)
    while wave:
        made = {copy for original, copy in listed if original in wave}
        edges = store.links(sorted(wave))
        made |= {link.source for link in edges if link.type == "derived_from" and link.target in wave}
        there = _get(store, sorted(made - gone))
        found = [entry for entry in there if entry.tenant in tenants and SHARED in entry.metadata]
        for entry in found:
            (stay if _others(store, entry.id, gone) else go)[entry.id] = entry
        wave = {entry.id for entry in found if entry.id in go}
        gone |= wave
        listed += [
            (share.body["id"], share.body["copy"])
            for partition in dict.fromkeys(entry.partition for entry in found)
            for share in store.records(partition=partition, kinds=[SHARE], limit=_MANY)
        ]
    by_partition: dict[Partition, list[str]] = {}
    for entry in go.values():
        by_partition.setdefault(entry.partition, []).append(entry.id)
    return Copies(go=by_partition, stay=[entry for id, entry in stay.items() if id not in go])


def cut(tx: Tx, copy: Entry, now: datetime) -> None:
    """A copy that stays, without where it came from and the count of somebody's work that it rested on."""
    metadata = {key: value for key, value in copy.metadata.items() if key not in (SHARED, "origin")}
    metadata[SHARED] = {"cut": True}
    changed = replace(copy, metadata=metadata, evidence="", updated_at=max(now, copy.updated_at))
    tx.update(changed, change=None)


def _get(store: Store, ids: Sequence[str]) -> list[Entry]:
    where = store.where(ids)
    return [*store.get([*dict.fromkeys(where.values())], [*where]).values()]


def _others(store: Store, copy_id: str, gone: set[str]) -> bool:
    """Whether it was also copied from an entry that stays."""
    return any(
        link.type == "derived_from" and link.source == copy_id and link.target not in gone
        for link in store.links([copy_id])
    )

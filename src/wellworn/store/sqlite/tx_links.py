"""Writing links, and finding the entries that a new one may be linked to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from wellworn.core.clock import from_micros, to_micros
from wellworn.core.errors import StoreError
from wellworn.core.values import Link, Partition
from wellworn.store.port import IndexRecord, Neighbour
from wellworn.store.sqlite.rows import index_from, list_from
from wellworn.store.sqlite.tx_numbers import NumbersTx

_SHARING_A_SKETCH = " UNION ALL ".join(
    f"SELECT * FROM (SELECT i.entry FROM index_records i CROSS JOIN entries e ON e.no = i.entry "
    f"WHERE i.{column} = ? AND i.{column} <> 0 AND i.partition = ? AND e.state IN ('active', 'flagged') "
    "ORDER BY i.entry DESC LIMIT ?)"
    for column in ("near_a", "near_b")
)

RECENT_PER_TAG = 64
"""Entries looked at per tag: a tag that ten thousand entries have must not make the next one slow."""


class LinksTx(NumbersTx):
    """Edges and neighbours."""

    def add_links(self, links: Sequence[Link]) -> int:
        return len({(link.source, link.target, link.type) for link in links if self._add_link(link)})

    def _add_link(self, link: Link) -> int:
        if link.source == link.target:
            raise StoreError(f"entry {link.source!r} cannot be linked to itself")
        return self._db.execute(
            "INSERT INTO links VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET automatic = 0, "
            "confidence = excluded.confidence, created_at = excluded.created_at "
            "WHERE automatic = 1 AND excluded.automatic = 0",
            (
                self._no_of(link.source),
                self._no_of(link.target),
                link.type,
                link.confidence,
                link.automatic,
                to_micros(link.created_at),
            ),
        ).rowcount

    def remove_link(self, source: str, target: str, type_: str) -> bool:
        return bool(
            self._db.execute(
                "DELETE FROM links WHERE source = (SELECT no FROM entries WHERE id = ?) "
                "AND target = (SELECT no FROM entries WHERE id = ?) AND type = ?",
                (source, target, type_),
            ).rowcount
        )

    def latest(self, partition: Partition) -> Neighbour | None:
        if partition in self._latest:
            return self._latest[partition]
        found = self._neighbours("e.partition = ?", (self._known_partition(partition),), 1)
        return found[0] if found else None

    def session_tail(self, partition: Partition, session_id: str, limit: int) -> list[Neighbour]:
        return self._neighbours(
            "e.partition = ? AND e.session_id = ?", (self._known_partition(partition), session_id), limit
        )

    def sharing_tags(self, partition: Partition, tags: Sequence[str], at_least: int, limit: int) -> list[Neighbour]:
        partition_no = self._known_partition(partition)
        shared: Counter[int] = Counter()
        for tag in dict.fromkeys(tags):
            rows = self._db.execute(
                "SELECT entry FROM entry_tags WHERE partition = ? AND tag = ? ORDER BY entry DESC LIMIT ?",
                (partition_no, tag, RECENT_PER_TAG),
            )
            shared.update(no for (no,) in rows)
        found = [no for no, number in shared.items() if number >= at_least]
        return (
            self._neighbours("e.no IN (SELECT value FROM json_each(?))", (json.dumps(found),), limit) if found else []
        )

    def near(self, partition: Partition, near: tuple[int, int], limit: int) -> list[Neighbour]:
        partition_no = self._known_partition(partition)
        sharing = self._db.execute(
            _SHARING_A_SKETCH, (near[0], partition_no, limit, near[1], partition_no, limit)
        ).fetchall()
        if not sharing:
            return []
        found = {no for (no,) in sharing}
        rows = self._db.execute(
            """
            SELECT e.no, e.id, e.at, e.tags, i.near_a, i.near_b, i.length, i.chars, i.traits, i.speaker, i.terms,
                   i.counts
            FROM entries e JOIN index_records i ON i.entry = e.no
            WHERE e.no IN (SELECT value FROM json_each(?)) ORDER BY e.no DESC LIMIT ?
            """,
            (json.dumps(list(found)), limit),
        )
        return [self._neighbour(no, id_, at, tags, index_from(index)) for no, id_, at, tags, *index in rows]

    def _neighbours(self, condition: str, values: tuple[Any, ...], limit: int) -> list[Neighbour]:
        rows = self._db.execute(
            f"SELECT e.no, e.id, e.at, e.tags FROM entries e WHERE {condition} "
            "AND e.state IN ('active', 'flagged') ORDER BY e.no DESC LIMIT ?",
            (*values, limit),
        )
        return [self._neighbour(*row) for row in rows]

    def _neighbour(self, no: int, entry_id: str, at: int, tags: str, index: IndexRecord | None = None) -> Neighbour:
        self._nos[entry_id] = no
        return Neighbour(id=entry_id, at=from_micros(at), tags=list_from(tags), index=index)

"""What a chain of evidence or a program may see of a memory: one scope, one time, one set of filters.

Every entry it gives has passed all three, by whichever way it was reached. Nothing is logged for learning: no person
asked these queries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from wellworn.core.values import Entry, Link, Recall, Scope
from wellworn.search.filters import Filters
from wellworn.search.pipeline import Searcher
from wellworn.store.port import Store

PAGE = 500


@dataclass(frozen=True, kw_only=True, eq=False)
class Library:
    """The entries that one question may see."""

    searcher: Searcher
    """One that does not learn."""
    store: Store
    scope: Scope
    filters: Filters
    moment: datetime
    """Entries that are valid then are seen."""

    def search(self, query: str, k: int) -> Recall:
        """The k best entries by plain search."""
        filters = replace(self.filters, as_of=self.moment)
        return self.searcher.recall(query, scope=self.scope, k=k, filters=filters)

    def read(self, id: str) -> Entry | None:
        """One entry, if it may be seen."""
        entry = self.store.get(self.scope.partitions(), [id]).get(id)
        return entry if entry is not None and admits(entry, self.filters, self.moment) else None

    def tagged(self, tag: str, limit: int) -> list[Entry]:
        """Entries with a tag, oldest first."""
        wanted = replace(self.filters, tags=[*(self.filters.tags or []), tag])
        found: list[Entry] = []
        after = 0
        while len(found) < limit:
            page = self.store.select(self.scope.partitions(), wanted.selection(), after=after, limit=PAGE)
            found += [entry for _, entry in page if admits(entry, wanted, self.moment)]
            if len(page) < PAGE:
                break
            after = page[-1][0]
        return found[:limit]

    def linked(self, id: str) -> list[tuple[Entry, Link]]:
        """The links of an entry, each with the entry at its other end."""
        if self.read(id) is None:
            return []
        ends = [(self.read(link.target if link.source == id else link.source), link) for link in self.store.links([id])]
        return [(entry, link) for entry, link in ends if entry is not None]


def admits(entry: Entry, filters: Filters, moment: datetime) -> bool:
    """Whether a recall with these filters might return an entry of its scope; as `Bank.live` and `Bank.wanted`."""
    least = float(np.float32(filters.min_confidence or 0.0))  # as the index keeps it
    conditions = (
        entry.state != "pruned",
        entry.valid_from <= moment and (entry.valid_to is None or moment < entry.valid_to),
        filters.kinds is None or entry.kind in filters.kinds,
        filters.tags is None or set(filters.tags) <= set(entry.tags),
        filters.layers is None or entry.layer in filters.layers,
        filters.session_id is None or entry.session_id == filters.session_id,
        filters.except_session is None or entry.session_id != filters.except_session,
        filters.since is None or entry.at >= filters.since,
        filters.until is None or entry.at < filters.until,
        float(np.float32(entry.confidence)) >= least,
    )
    return all(conditions)

"""Views over a bank's items and links: levels of memory, and walks over the links between items.

| level                | holds                                                                        |
|----------------------|------------------------------------------------------------------------------|
| `episodic.recent`    | learned in the last 24 hours, not promoted                                   |
| `episodic.working`   | learned in the last 30 days, not promoted                                    |
| `episodic.older`     | learned earlier, not promoted: what pruning and decay work on                |
| `semantic.knowledge` | promoted                                                                     |
| `semantic.meta`      | promoted, and about others: it `entails` or `refines` at least two items     |
| `procedural.skills`  | promoted, and says what to do step by step                                   |

Computed when asked for and stored nowhere. The links are those of the memory (`Memory.link`).
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.values import Entry, LinkType, Scope
from wellworn.ingest.validate import checked_id
from wellworn.tasks.consolidate import live_items
from wellworn.tasks.engine import Parts
from wellworn.tasks.items import LIVE, PROMOTED

RECENT, WORKING = timedelta(hours=24), timedelta(days=30)
LEVELS = (
    "episodic.recent",
    "episodic.working",
    "episodic.older",
    "semantic.knowledge",
    "semantic.meta",
    "procedural.skills",
)
LINKS: tuple[LinkType, ...] = ("entails", "contradicts", "refines", "requires", "enables")
MAX_HOPS = 8


@dataclass(frozen=True, kw_only=True)
class Path:
    """A way from one item to another: `ids` is one longer than `types`. As sure as the product of its links."""

    ids: tuple[str, ...]
    types: tuple[str, ...]
    confidence: float
    entry: Entry
    """Where it ends."""

    @property
    def hops(self) -> int:
        return len(self.types)


class Graph:
    """Reads levels and links of what a scope sees."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.engine.store

    def levels(self, *, scope: Scope | None = None) -> dict[str, list[Entry]]:
        """Every active item by level, each in exactly one, by falling confidence, then by age."""
        partitions = self._parts.scope(scope).partitions()
        rows = [row for partition in partitions for row in live_items(self._store, partition)]
        entries = [entry for _, entry in rows if entry.state == "active"]
        links = set(self._store.links([entry.id for entry in entries], types=["entails", "refines"]))
        about = Counter(link.source for link in links)
        found: dict[str, list[Entry]] = {level: [] for level in LEVELS}
        for entry in sorted(entries, key=lambda entry: (-entry.confidence, entry.created_at, entry.id)):
            found[self._level(entry, about[entry.id])].append(entry)
        return found

    def _level(self, entry: Entry, about: int) -> str:
        promoted = entry.metadata.get(PROMOTED)
        if promoted:
            procedural = promoted["to"] == "procedural"
            return "procedural.skills" if procedural else "semantic.meta" if about >= 2 else "semantic.knowledge"
        age = self._parts.engine.clock() - entry.created_at
        return "episodic.recent" if age <= RECENT else "episodic.working" if age <= WORKING else "episodic.older"

    def walk(self, id: str, *, scope: Scope | None = None, hops: int = 2) -> list[Path]:
        """The items that links lead to from one, in the way they point, the surest first. Of several ways to an item
        the surest is given."""
        partitions = self._parts.scope(scope).partitions()
        if not 1 <= hops <= MAX_HOPS:
            raise InvalidInput("hops", f"{hops} is not from 1 to {MAX_HOPS}")
        start = self._store.get(partitions, [checked_id(id)]).get(id)
        if start is None:
            raise NotFound("entry", id)
        best = {id: Path(ids=(id,), types=(), confidence=1.0, entry=start)}
        ahead = [id]
        for _ in range(hops):
            links = [link for link in self._store.links(ahead, types=LINKS) if link.source in ahead]
            found = self._store.get(partitions, sorted({link.target for link in links}))
            sources, ahead = {id: best[id] for id in ahead}, []
            for link in sorted(links, key=lambda link: (link.source, link.target, link.type)):
                way, entry = sources[link.source], found.get(link.target)
                sure = way.confidence * link.confidence
                known = best[link.target].confidence if link.target in best else -1.0
                if entry is None or entry.state not in LIVE or link.target in way.ids or sure <= known:
                    continue
                ids, steps = (*way.ids, link.target), (*way.types, link.type)
                best[link.target] = Path(ids=ids, types=steps, confidence=sure, entry=entry)
                ahead.append(link.target)
        return sorted((path for path in best.values() if path.hops), key=lambda p: (-p.confidence, p.hops, p.ids))

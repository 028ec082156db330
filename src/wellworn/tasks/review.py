"""What people look at in a bank: questions that they decide, levels of memory, and walks over the links between items.

Questions are which of two items that contradict each other holds, and whether one is right at all.

A question is not stored. It follows from the bank: two flagged items with a `contradicts` link between them, or an item
that is often used and little trusted. Decisions are edits like any other: the entries as they stood stay in their
history. What was decided is not asked again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import timedelta

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.values import Entry, LinkType, Partition, Scope
from wellworn.ingest.validate import checked_id, checked_line
from wellworn.store.events import Event, audit
from wellworn.tasks.consolidate import contradicting, live_items
from wellworn.tasks.engine import OfBank
from wellworn.tasks.items import LIVE, PROMOTED, REVIEWED, is_item

PAIR_DECISIONS = ("keep_both", "keep_one")
VERDICTS = ("correct", "partial", "incorrect")
CORRECT_CONFIDENCE, PARTIAL_CONFIDENCE = 0.9, 0.6
ASK_USAGE, ASK_CONFIDENCE = 5, 0.6
"""People are asked about what is used more often and less sure than this."""


@dataclass(frozen=True, kw_only=True)
class Review:
    """One question, about two items that contradict each other or about a single one."""

    entries: list[Entry]
    """The surer first."""

    @property
    def key(self) -> str:
        """What `decide` takes: the id of the item, or both ids with a colon between them."""
        return ":".join(sorted(entry.id for entry in self.entries))

    @property
    def decisions(self) -> tuple[str, ...]:
        """What can be decided."""
        return VERDICTS if len(self.entries) == 1 else PAIR_DECISIONS

    @property
    def question(self) -> str:
        if len(self.entries) > 1:
            return "These two cannot both be right. Which holds?"
        entry = self.entries[0]
        return (
            f"Is this correct? Used {entry.usage_count} times, {entry.success_count} successes and "
            f"{entry.failure_count} failures, confidence {entry.confidence:.2f}."
        )


class Reviews(OfBank):
    """The questions about a scope's bank."""

    def questions(self, *, scope: Scope | None = None) -> list[Review]:
        """Contradictions first, then doubtful items; each by its key."""
        entries = {entry.id: entry for _, entry in live_items(self._store, self._parts.partition(scope))}
        pairs = self._pairs([entry for entry in entries.values() if entry.state == "flagged"])
        unread = [entry for entry in entries.values() if REVIEWED not in entry.metadata]
        asked = [entry for entry in unread if entry.usage_count > ASK_USAGE and entry.confidence < ASK_CONFIDENCE]
        doubtful = [Review(entries=[entry]) for entry in asked]
        return [*sorted(pairs, key=lambda one: one.key), *sorted(doubtful, key=lambda one: one.key)]

    def _pairs(self, flagged: Sequence[Entry]) -> list[Review]:
        own = {entry.id: entry for entry in flagged}
        found = [[own[id] for id in pair] for pair in contradicting(self._store, own) if pair <= own.keys()]
        return [Review(entries=sorted(pair, key=lambda entry: (-entry.confidence, entry.id))) for pair in found]

    def decide(
        self, key: str, decision: str, *, keep: str | None = None, text: str | None = None, scope: Scope | None = None
    ) -> None:
        """Answer a question. A person may also judge any item that nobody asked about, by its id.

        `keep_one` needs `keep`, the id of the one that holds; `partial` needs `text`, better words. Where both hold,
        each for other tasks, keep both and edit their tags. What is wrong altogether can be forgotten.
        """
        own, partition = self._parts.scope(scope), self._parts.partition(scope)
        review = self._asked(partition, key)
        if decision not in review.decisions:
            apart = "; keep_both where each holds for other tasks" if len(review.entries) > 1 else ""
            remedy = f"use {', '.join(review.decisions)}{apart}"
            raise InvalidInput("decision", f"{decision!r} does not answer this", remedy)
        entries = {entry.id: entry for entry in review.entries}
        if decision == "keep_one":
            if keep not in [*entries]:
                raise InvalidInput("keep", f"{keep!r} is not in this review", f"give one of {', '.join(entries)}")
            for id in entries.keys() - {keep}:
                self._parts.memory.supersede(id, keep, scope=own)
        elif decision != "keep_both":
            self._judge(own, review.entries[0], decision, text)
        self._close(partition, entries.keys(), decision)

    def _asked(self, partition: Partition, key: str) -> Review:
        ids = checked_line("review", key).split(":")
        found = [entry for entry in self._store.get([partition], ids).values() if is_item(entry)]
        if len(found) != len(ids):
            raise NotFound("review or item", key, "see `wellworn tasks review` and `wellworn tasks list`")
        asked = [Review(entries=found)] if len(ids) == 1 else self._pairs([e for e in found if e.state == "flagged"])
        if not asked:
            raise InvalidInput("review", f"{key} is not open", "edit the entries instead")
        return asked[0]

    def _judge(self, scope: Scope, entry: Entry, decision: str, text: str | None) -> None:
        read = {**entry.metadata, REVIEWED: self._clock().isoformat()}
        if decision == "incorrect":
            self._parts.memory.edit(entry.id, scope=scope, state="pruned")
        elif decision == "correct":
            sure = max(entry.confidence, CORRECT_CONFIDENCE)
            self._parts.memory.edit(entry.id, scope=scope, confidence=sure, trust="trusted", metadata=read)
        elif text is None:
            raise InvalidInput("text", "is needed for a partial verdict", "say it in better words")
        else:
            sure = max(entry.confidence, PARTIAL_CONFIDENCE)
            better = self._writer.scrubbing.stored(entry.partition)(text)
            self._parts.memory.edit(entry.id, scope=scope, text=better, confidence=sure, metadata=read)

    def _close(self, partition: Partition, ids: Set[str], decision: str) -> None:
        """What no other question is about is active again."""
        now = self._clock()
        with self._store.transact() as tx:
            near = {id for pair in contradicting(tx, ids) for id in pair} | ids
            pairs = contradicting(tx, near) - {frozenset(ids)}
            found = tx.get([partition], sorted({id for pair in (near, *pairs) for id in pair}))
            flagged = {id for id, entry in found.items() if entry.state == "flagged"}
            waiting = {id for pair in pairs if pair <= flagged for id in pair}
            for id in sorted(near & flagged - waiting):
                updated = max(now, found[id].updated_at)
                tx.update(replace(found[id], state="active", updated_at=updated), change="reviewed")
            for id in sorted(ids):
                detail: dict[str, int | float | str] = {"decision": decision}
                audit(tx, Event(at=now, tenant=partition.tenant, action="review", entry_id=id, detail=detail))


# -- levels and links --------------------------------------------------------------------------------------------------

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


class Graph(OfBank):
    """Reads levels and links of what a scope sees. Computed when asked for and stored nowhere.

    | level                | holds                                                                        |
    |----------------------|------------------------------------------------------------------------------|
    | `episodic.recent`    | learned in the last 24 hours, not promoted                                   |
    | `episodic.working`   | learned in the last 30 days, not promoted                                    |
    | `episodic.older`     | learned earlier, not promoted: what pruning and decay work on                |
    | `semantic.knowledge` | promoted                                                                     |
    | `semantic.meta`      | promoted, and about others: it `entails` or `refines` at least two items     |
    | `procedural.skills`  | promoted, and says what to do step by step                                   |
    """

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
        age = self._clock() - entry.created_at
        return "episodic.recent" if age <= RECENT else "episodic.working" if age <= WORKING else "episodic.older"

    def walk(self, id: str, *, scope: Scope | None = None, hops: int = 2) -> list[Path]:
        """The items that links lead to from one, in the way they point, the surest first. Of several ways to an item
        the surest is given."""
        partitions = self._parts.scope(scope).partitions()
        if not 1 <= hops <= MAX_HOPS:
            raise InvalidInput("hops", f"{hops} is not from 1 to {MAX_HOPS}")
        start = self._store.one(partitions, checked_id(id))
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

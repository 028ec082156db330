"""Questions that people decide: which of two items that contradict each other holds, and whether one is right at all.

A question is not stored. It follows from the bank: two flagged items with a `contradicts` link between them, or an item
that is often used and little trusted. Decisions are edits like any other: the entries as they stood stay in their
history. What was decided is not asked again.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.values import Entry, Partition, Scope
from wellworn.store.events import Event, audit
from wellworn.tasks.consolidate import contradicting, live_items
from wellworn.tasks.engine import Parts
from wellworn.tasks.items import REVIEWED, is_item

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


class Reviews:
    """The questions about a scope's bank."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.engine.store

    def questions(self, *, scope: Scope | None = None) -> list[Review]:
        """Contradictions first, then doubtful items; each by its key."""
        entries = {entry.id: entry for _, entry in live_items(self._store, self._parts.partition(scope))}
        pairs = self._pairs([entry for entry in entries.values() if entry.state == "flagged"])
        doubtful = [
            Review(entries=[entry])
            for entry in entries.values()
            if entry.usage_count > ASK_USAGE and entry.confidence < ASK_CONFIDENCE and REVIEWED not in entry.metadata
        ]
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
            if keep not in entries:
                raise InvalidInput("keep", f"{keep!r} is not in this review", f"give one of {', '.join(entries)}")
            for id in entries.keys() - {keep}:
                self._parts.memory.supersede(id, keep, scope=own)
        elif decision != "keep_both":
            self._judge(own, review.entries[0], decision, text)
        self._close(partition, entries.keys(), decision)

    def _asked(self, partition: Partition, key: str) -> Review:
        ids = key.split(":")
        found = [entry for entry in self._store.get([partition], ids).values() if is_item(entry)]
        if len(found) != len(ids):
            raise NotFound("review or item", key, "see `wellworn tasks review` and `wellworn tasks list`")
        asked = [Review(entries=found)] if len(ids) == 1 else self._pairs([e for e in found if e.state == "flagged"])
        if not asked:
            raise InvalidInput("review", f"{key} is not open", "edit the entries instead")
        return asked[0]

    def _judge(self, scope: Scope, entry: Entry, decision: str, text: str | None) -> None:
        read = {**entry.metadata, REVIEWED: self._parts.engine.clock().isoformat()}
        if decision == "incorrect":
            self._parts.memory.edit(entry.id, scope=scope, state="pruned")
        elif decision == "correct":
            sure = max(entry.confidence, CORRECT_CONFIDENCE)
            self._parts.memory.edit(entry.id, scope=scope, confidence=sure, trust="trusted", metadata=read)
        elif text is None:
            raise InvalidInput("text", "is needed for a partial verdict", "say it in better words")
        else:
            sure, better = max(entry.confidence, PARTIAL_CONFIDENCE), self._parts.writer.scrubber(entry.partition)(text)
            self._parts.memory.edit(entry.id, scope=scope, text=better, confidence=sure, metadata=read)

    def _close(self, partition: Partition, ids: Set[str], decision: str) -> None:
        """What no other question is about is active again."""
        now = self._parts.engine.clock()
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

"""Questions that people decide: which of two items that contradict each other holds, and whether one is right at all.

Consolidation asks. A pair is decided by `keep_both`, `keep_one`, `merge` or `delete`; an item that is often used and
little trusted by `correct`, `partial` (with better words), `incorrect` or `delete`. Decisions are edits like any other:
the entries as they stood stay in their history. What was decided is not asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.values import Entry, Partition, Scope
from wellworn.ingest.validate import checked_count
from wellworn.store.events import Event, audit
from wellworn.store.port import Record, RecordFilter
from wellworn.tasks.consolidate import REVIEW
from wellworn.tasks.engine import Parts
from wellworn.tasks.items import LIVE, REVIEWED, is_item
from wellworn.tasks.settle import merged, quality

PAIR_DECISIONS = ("keep_both", "keep_one", "merge", "delete")
VERDICTS = ("correct", "partial", "incorrect", "delete")
CORRECT_CONFIDENCE, PARTIAL_CONFIDENCE = 0.9, 0.6
_MANY = 100_000


@dataclass(frozen=True, kw_only=True)
class Review:
    """One question."""

    key: str
    reason: str
    """`outcome`, `negation` or `exclusive`: how two contradict each other; `verdict`: whether one is right."""
    entries: list[Entry]
    """The surer first."""
    similarity: float
    state: str
    """`open`, `moot` (another decision settled it) or what was decided."""
    asked_at: datetime

    @property
    def decisions(self) -> tuple[str, ...]:
        """What can be decided."""
        return VERDICTS if self.reason == "verdict" else PAIR_DECISIONS

    @property
    def question(self) -> str:
        if self.reason != "verdict":
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
        self._store = parts.store

    def questions(
        self, *, scope: Scope | None = None, layer: str | None = None, open_only: bool = True, limit: int = 100
    ) -> list[Review]:
        """Newest first."""
        partition, limit = self._parts.partition(scope, layer), checked_count("limit", limit, least=1)
        return [self._review(record) for record in self._records(partition, open_only=open_only)[:limit]]

    def _records(self, partition: Partition, *, open_only: bool) -> list[Record]:
        states = ["open"] if open_only else None
        return self._store.records(RecordFilter(partition=partition, kinds=[REVIEW], states=states, limit=_MANY))

    def _review(self, record: Record) -> Review:
        found = self._store.get([record.home], record.body["ids"])
        return Review(
            key=record.key,
            reason=record.body["reason"],
            entries=[found[id] for id in record.body["ids"] if id in found],
            similarity=record.body["similarity"],
            state=record.state,
            asked_at=record.created_at,
        )

    def decide(
        self,
        key: str,
        decision: str,
        *,
        keep: str | None = None,
        text: str | None = None,
        ids: Sequence[str] | None = None,
        scope: Scope | None = None,
        layer: str | None = None,
    ) -> Review | None:
        """Answer a question; returns it as decided, None when its entries were deleted.

        `keep_one` needs `keep`; `merge` takes `keep` and better words (`text`); `partial` needs `text`; `delete` takes
        `ids`, by default all. Where both hold, each for other tasks, keep both and edit their tags.
        """
        own, partition = self._parts.scope(scope), self._parts.partition(scope, layer)
        record = self._store.record(partition, REVIEW, key) or self._question(partition, key)
        review = self._review(record)
        if review.state != "open":
            raise InvalidInput("review", f"{key} was decided: {review.state}", "edit the entries instead")
        if decision not in review.decisions:
            apart = "; keep_both where each holds for other tasks" if review.reason != "verdict" else ""
            remedy = f"use {', '.join(review.decisions)}{apart}"
            raise InvalidInput("decision", f"{decision!r} does not answer this", remedy)
        entries = {entry.id: entry for entry in review.entries}
        text = None if text is None else self._parts.writer.scrubber(partition)(text)
        if decision == "delete":
            going = _known(ids if ids is not None else [*entries], entries, "ids")
            self._parts.memory.forget(scope=own, ids=going)  # the question goes with them
            self._close(record, decision)
            return None
        if decision in ("keep_one", "merge"):
            self._keep_one(own, entries, keep, text, merging=decision == "merge")
        elif decision in VERDICTS:
            self._judge(own, review.entries[0], decision, text)
        self._close(record, decision)
        return self._review(self._store.record(partition, REVIEW, key) or record)

    def _question(self, partition: Partition, id: str) -> Record:
        """A person may judge any item, asked or not."""
        entry, now = self._store.get([partition], [id]).get(id), self._parts.clock()
        if entry is None or not is_item(entry):
            raise NotFound("review or item", id, "see `wellworn tasks review` and `wellworn tasks list`")
        body = {"reason": "verdict", "ids": [id], "similarity": 0.0, "run": ""}
        asked = Record(
            partition=partition,
            kind=REVIEW,
            key=id,
            state="open",
            body=body,
            names=(id,),
            created_at=now,
            updated_at=now,
        )
        with self._store.transact() as tx:
            tx.put_records([asked])
        return asked

    def _keep_one(
        self, scope: Scope, entries: dict[str, Entry], keep: str | None, text: str | None, *, merging: bool
    ) -> None:
        if keep is None and not merging:
            raise InvalidInput("keep", "says not which entry stays", f"give one of {', '.join(entries)}")
        best = max(entries.values(), key=lambda entry: (quality(entry), entry.confidence, entry.id)).id
        (kept,) = _known([keep or best], entries, "keep")
        others = [entry for id, entry in entries.items() if id != kept]
        if merging and text is not None:
            entries[kept] = self._parts.memory.edit(kept, scope=scope, text=text)
        if merging:
            with self._store.transact() as tx:
                tx.update(merged(entries[kept], others, self._parts.clock()), change="reviewed")
        for other in others:
            self._parts.memory.supersede(other.id, kept, scope=scope)

    def _judge(self, scope: Scope, entry: Entry, decision: str, text: str | None) -> None:
        if decision == "incorrect":
            self._parts.memory.edit(entry.id, scope=scope, state="pruned")
        elif decision == "correct":
            sure, at = max(entry.confidence, CORRECT_CONFIDENCE), self._parts.clock().isoformat()
            read = {**entry.metadata, REVIEWED: at}
            self._parts.memory.edit(entry.id, scope=scope, confidence=sure, trust="trusted", metadata=read)
        elif text is None:
            raise InvalidInput("text", "is needed for a partial verdict", "say it in better words")
        else:
            sure = max(entry.confidence, PARTIAL_CONFIDENCE)
            self._parts.memory.edit(entry.id, scope=scope, text=text, confidence=sure)

    def _close(self, record: Record, decision: str) -> None:
        """Write the decision. Other questions about an entry that ended are moot; what no question is about any more
        is active again."""
        partition, now = record.home, self._parts.clock()
        open_ = self._records(partition, open_only=True)
        with self._store.transact() as tx:
            asked = {id for one in (record, *open_) for id in one.body["ids"]}
            entries = tx.get([partition], sorted(asked))
            live = {id for id, entry in entries.items() if entry.state in LIVE}
            waiting: set[str] = set()
            for one in open_:
                if one.key == record.key or not live.issuperset(one.body["ids"]):
                    state = decision if one.key == record.key else "moot"
                    tx.put_records([replace(one, state=state, updated_at=now)])
                elif one.body["reason"] != "verdict":
                    waiting.update(one.body["ids"])
            for id in sorted(live - waiting):
                if entries[id].state == "flagged":
                    updated = max(now, entries[id].updated_at)
                    tx.update(replace(entries[id], state="active", updated_at=updated), change="reviewed")
            for id in record.body["ids"]:
                detail: dict[str, int | float | str] = {"decision": decision}
                audit(tx, Event(at=now, tenant=partition.tenant, action="review", entry_id=id, detail=detail))


def _known(ids: Sequence[str], entries: Mapping[str, Entry], field: str) -> list[str]:
    unknown = [id for id in ids if id not in entries]
    if unknown:
        raise InvalidInput(field, f"{unknown[0]!r} is not in this review", f"it is about {', '.join(entries)}")
    return list(dict.fromkeys(ids))

"""Questions that people decide: which of two entries that contradict each other holds, and whether one is right at all.

Consolidation asks (`consolidation.settle`); this module answers. Each decision is one transaction, and the entries as
they stood stay in their history. A pair is decided by `keep_both`, `keep_one`, `merge`, `scope` (each gets a domain of
its own) or `delete`; an entry that is often used and little trusted by `correct`, `partial` (with better words),
`incorrect` or `delete`. What was decided is not asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.tokens import count_tokens
from wellworn.core.values import Entry, Link, Partition
from wellworn.ingest.hashing import content_hash
from wellworn.ingest.remember import Writer
from wellworn.ingest.validate import checked_text
from wellworn.store.port import Event, NewEntry, Record, Store, Tx
from wellworn.tasks.consolidation.report import REVIEW
from wellworn.tasks.consolidation.settle import ended, merged, quality
from wellworn.tasks.domains import TAG, checked_domain, domain_tags

PAIR_DECISIONS = ("keep_both", "keep_one", "merge", "scope", "delete")
VERDICTS = ("correct", "partial", "incorrect", "delete")
CORRECT_CONFIDENCE = 0.9
PARTIAL_CONFIDENCE = 0.6
OPEN = ("open", "deleting")
"""A review whose deletion was broken off is open still."""
_MANY = 100_000


@dataclass(frozen=True, kw_only=True)
class ReviewCase:
    """One question."""

    key: str
    reason: str
    """`outcome`, `negation` or `exclusive`: how two contradict each other; `verdict`: whether one is right."""
    entries: list[Entry]
    """The surer first."""
    similarity: float
    state: str
    """`open`, `deleting`, `moot` (another decision settled it) or what was decided."""
    asked_at: datetime

    @property
    def decisions(self) -> tuple[str, ...]:
        """What can be decided."""
        return VERDICTS if self.reason == "verdict" else PAIR_DECISIONS

    @property
    def question(self) -> str:
        """The question in words."""
        if self.reason != "verdict":
            return "These two cannot both be right. Which holds?"
        entry = self.entries[0]
        return (
            f"Is this correct? Used {entry.usage_count} times, {entry.success_count} successes and "
            f"{entry.failure_count} failures, confidence {entry.confidence:.2f}."
        )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A decision and what it needs."""

    decision: str
    keep: str | None = None
    """The id that stays: of `keep_one`, and of `merge` (default: the better one)."""
    text: str | None = None
    """Better words: of `partial`, and if wanted of `merge`."""
    domains: Mapping[str, str] | None = None
    """Id → domain: of `scope`."""
    ids: Sequence[str] | None = None
    """What goes: of `delete` (default: all)."""


@dataclass(frozen=True, kw_only=True)
class Reviews:
    """The questions about a partition. `delete` only marks: the caller forgets, which empties caches and files too."""

    store: Store
    writer: Writer

    def cases(self, partition: Partition, *, open_only: bool = True, limit: int = 100) -> list[ReviewCase]:
        """Newest first."""
        states = OPEN if open_only else None
        return [
            self._case(record)
            for record in self.store.records(partition=partition, kinds=[REVIEW], states=states, limit=limit)
        ]

    def get(self, partition: Partition, key: str) -> ReviewCase:
        record = self.store.record(partition, REVIEW, key)
        if record is None:
            raise NotFound("review", key, "see `wellworn bank review`")
        return self._case(record)

    def _case(self, record: Record) -> ReviewCase:
        found = self.store.get([record.partition], record.body["ids"])
        entries = [found[id] for id in record.body["ids"] if id in found]
        return ReviewCase(
            key=record.key,
            reason=record.body["reason"],
            entries=entries,
            similarity=record.body["similarity"],
            state=record.state,
            asked_at=record.created_at,
        )

    def decide(self, partition: Partition, key: str, answer: Answer) -> list[str]:
        """Write a decision; returns the ids that the caller must forget (`delete`)."""
        case = self.get(partition, key)
        if case.state not in OPEN:
            raise InvalidInput("review", f"{key} was decided: {case.state}", "edit the entries instead")
        if answer.decision not in case.decisions:
            raise InvalidInput(
                "decision", f"{answer.decision!r} does not answer this", f"use {', '.join(case.decisions)}"
            )
        if answer.text is not None:
            answer = replace(answer, text=self.writer.scrubber(partition)(checked_text("text", answer.text)))
        now = self.writer.clock()
        after, going = _decided(case, answer, now)
        records = {
            record.entry.id: record
            for record in self.writer.records_of([entry for entry in after.values() if _reworded(entry, case)])
        }
        with self.writer.transact() as tx:
            self._unchanged(tx, partition, key, case)
            self._write(tx, partition, case, after, records, now)
            self._close(tx, partition, case, "deleting" if going else answer.decision, now)
        return going

    def _unchanged(self, tx: Tx, partition: Partition, key: str, case: ReviewCase) -> None:
        record = tx.record(partition, REVIEW, key)
        found = tx.get([partition], [entry.id for entry in case.entries])
        if record is None or record.state not in OPEN or len(found) < len(case.entries):
            raise InvalidInput("review", f"{key} was settled meanwhile", "look at the queue again")
        changed = [entry.id for entry in case.entries if found[entry.id].content_hash != entry.content_hash]
        if changed:
            raise InvalidInput("review", f"entry {changed[0]} was changed meanwhile", "look at it again")

    def _write(
        self,
        tx: Tx,
        partition: Partition,
        case: ReviewCase,
        after: Mapping[str, Entry],
        records: Mapping[str, NewEntry],
        now: datetime,
    ) -> None:
        waiting = self._waiting(partition, case.key)
        before = {entry.id: entry for entry in case.entries}
        for id, entry in after.items():
            live = entry.state in ("active", "flagged")
            if live and entry.state == "active" and id in waiting:
                entry = replace(entry, state="flagged")
            same = tx.find_same(partition, entry.content_hash) if live else None
            if same is not None and same.id != id and same.id not in after:
                raise InvalidInput("text", f"entry {same.id} already says this", "keep or merge that one instead")
            record = records.get(id)
            tx.update(
                entry,
                change="reviewed",
                index=None if record is None else record.index,
                vector=None if record is None else record.vector,
            )
            if before[id].state in ("active", "flagged") and entry.state == "superseded" and len(after) == 2:
                winner = next(other for other in after if other != id)
                tx.add_links([Link(source=winner, target=id, type="supersedes", created_at=now)])
                self._close_moot(tx, partition, id, case.key, now)

    def _waiting(self, partition: Partition, key: str) -> set[str]:
        """Entries that another open question is about."""
        others = self.store.records(partition=partition, kinds=[REVIEW], states=OPEN, limit=_MANY)
        pairs = [record for record in others if record.key != key and record.body["reason"] != "verdict"]
        return {id for record in pairs for id in record.body["ids"]}

    def _close_moot(self, tx: Tx, partition: Partition, id: str, key: str, now: datetime) -> None:
        """An entry that no longer holds contradicts nobody: other questions about it are settled, too."""
        for record in self.store.records(partition=partition, kinds=[REVIEW], states=OPEN, limit=_MANY):
            if record.key == key or id not in record.body["ids"]:
                continue
            tx.put_record(replace(record, state="moot", updated_at=now))
            waiting = self._waiting(partition, record.key)
            others = [other for other in record.body["ids"] if other != id and other not in waiting]
            for entry in tx.get([partition], others).values():
                if entry.state == "flagged":
                    tx.update(replace(entry, state="active", updated_at=max(now, entry.updated_at)), change="reviewed")

    def _close(self, tx: Tx, partition: Partition, case: ReviewCase, state: str, now: datetime) -> None:
        record = tx.record(partition, REVIEW, case.key)
        if record is not None:
            tx.put_record(replace(record, state=state, updated_at=now))
        for entry in case.entries:
            tx.audit(
                Event(at=now, tenant=partition.tenant, action="review", entry_id=entry.id, detail={"decision": state})
            )


# -- what each decision makes of the entries ---------------------------------------------------------------------


def _decided(case: ReviewCase, answer: Answer, now: datetime) -> tuple[dict[str, Entry], list[str]]:
    """The entries as the decision leaves them, and the ids that are to go."""
    entries = {entry.id: replace(entry, updated_at=max(now, entry.updated_at)) for entry in case.entries}
    if answer.decision == "delete":
        going = _known(answer.ids if answer.ids is not None else list(entries), entries, "ids")
        return {id: _active(entry) for id, entry in entries.items() if id not in going}, going
    if case.reason == "verdict":
        return {id: _judged(entry, answer) for id, entry in entries.items()}, []
    if answer.decision == "keep_both":
        return {id: _active(entry) for id, entry in entries.items()}, []
    if answer.decision == "scope":
        return _scoped(entries, answer), []
    return _one_kept(entries, answer, now), []


def _one_kept(entries: dict[str, Entry], answer: Answer, now: datetime) -> dict[str, Entry]:
    merging = answer.decision == "merge"
    if answer.keep is None and not merging:
        raise InvalidInput("keep", "says not which entry stays", f"give one of {', '.join(entries)}")
    best = max(entries.values(), key=lambda entry: (quality(entry), entry.confidence, entry.id)).id
    keep = _known([answer.keep or best], entries, "keep")[0]
    others = [entry for id, entry in entries.items() if id != keep]
    kept = merged(entries[keep], others, now) if merging else entries[keep]
    kept = kept if answer.text is None or not merging else _with_text(kept, answer.text)
    return {keep: _active(kept), **{other.id: ended(other, now) for other in others}}


def _scoped(entries: dict[str, Entry], answer: Answer) -> dict[str, Entry]:
    domains = dict(answer.domains or {})
    _known(list(domains), entries, "domains")
    if not domains:
        raise InvalidInput("domains", "names no domain", "give one entry, or each, a domain of its own")
    moved = {id: _moved(entry, domains[id]) if id in domains else entry for id, entry in entries.items()}
    if len({tuple(tag for tag in entry.tags if tag.startswith(TAG)) for entry in moved.values()}) == 1:
        raise InvalidInput("domains", "are the same for both", "give them different ones")
    return {id: _active(entry) for id, entry in moved.items()}


def _moved(entry: Entry, domain: str) -> Entry:
    others = [tag for tag in entry.tags if not tag.startswith(TAG)]
    return replace(entry, tags=[*domain_tags(checked_domain(domain)), *others])


def _judged(entry: Entry, answer: Answer) -> Entry:
    if answer.decision == "correct":
        return replace(_active(entry), confidence=max(entry.confidence, CORRECT_CONFIDENCE))
    if answer.decision == "incorrect":
        return replace(entry, state="pruned")
    if answer.text is None:
        raise InvalidInput("text", "is needed for a partial verdict", "say it in better words")
    return replace(_with_text(_active(entry), answer.text), confidence=max(entry.confidence, PARTIAL_CONFIDENCE))


def _with_text(entry: Entry, text: str) -> Entry:
    worded = replace(entry, text=checked_text("text", text))
    return replace(worded, content_hash=content_hash(worded), token_count=count_tokens(worded.text))


def _active(entry: Entry) -> Entry:
    return replace(entry, state="active") if entry.state == "flagged" else entry


def _reworded(entry: Entry, case: ReviewCase) -> bool:
    before = next(old for old in case.entries if old.id == entry.id)
    return (entry.text, entry.tags) != (before.text, before.tags)


def _known(ids: Sequence[str], entries: Mapping[str, Entry], field: str) -> list[str]:
    unknown = [id for id in ids if id not in entries]
    if unknown:
        raise InvalidInput(field, f"{unknown[0]!r} is not in this review", f"it is about {', '.join(entries)}")
    return list(dict.fromkeys(ids))

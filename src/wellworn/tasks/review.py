"""Questions that people decide: which of two items that contradict each other holds, and whether one is right at all.

Consolidation asks. Each decision is one transaction, and the entries as they stood stay in their history. A pair is
decided by `keep_both`, `keep_one`, `merge`, `scope` (each gets a domain of its own) or `delete`; an item that is often
used and little trusted by `correct`, `partial` (with better words), `incorrect` or `delete`. What was decided is not
asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.tokens import count_tokens
from wellworn.core.values import Entry, Link, Partition, Scope
from wellworn.ingest.hashing import content_hash
from wellworn.ingest.validate import checked_count, checked_text
from wellworn.store.port import Event, NewEntry, Record, Tx
from wellworn.tasks.consolidate import REVIEW
from wellworn.tasks.engine import Parts
from wellworn.tasks.items import LIVE, TAG, checked_domain, domain_tags
from wellworn.tasks.settle import ended, merged, quality

PAIR_DECISIONS = ("keep_both", "keep_one", "merge", "scope", "delete")
VERDICTS = ("correct", "partial", "incorrect", "delete")
CORRECT_CONFIDENCE, PARTIAL_CONFIDENCE = 0.9, 0.6
OPEN = ("open", "deleting")
"""A review whose deletion was interrupted is still open."""
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
    """`open`, `deleting`, `moot` (another decision settled it) or what was decided."""
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


@dataclass(frozen=True, kw_only=True)
class _Answer:
    decision: str
    keep: str | None
    text: str | None
    domains: Mapping[str, str]
    ids: Sequence[str] | None


class Reviews:
    """The questions about a scope's bank."""

    def __init__(self, parts: Parts, forget: Callable[[Scope, list[str]], object]) -> None:
        self._parts = parts
        self._store = parts.store
        self._forget = forget

    def questions(
        self, *, scope: Scope | None = None, layer: str | None = None, open_only: bool = True, limit: int = 100
    ) -> list[Review]:
        """Newest first."""
        partition, limit = self._parts.partition(scope, layer), checked_count("limit", limit, least=1)
        states = OPEN if open_only else None
        found = self._store.records(partition=partition, kinds=[REVIEW], states=states, limit=limit)
        return [self._review(record) for record in found]

    def _review(self, record: Record) -> Review:
        found = self._store.get([record.partition], record.body["ids"])
        return Review(
            key=record.key,
            reason=record.body["reason"],
            entries=[found[id] for id in record.body["ids"] if id in found],
            similarity=record.body["similarity"],
            state=record.state,
            asked_at=record.created_at,
        )

    def _get(self, partition: Partition, key: str) -> Review:
        record = self._store.record(partition, REVIEW, key)
        if record is None:
            raise NotFound("review", key, "see `wellworn tasks review`")
        return self._review(record)

    def decide(
        self,
        key: str,
        decision: str,
        *,
        keep: str | None = None,
        text: str | None = None,
        domains: Mapping[str, str] | None = None,
        ids: Sequence[str] | None = None,
        scope: Scope | None = None,
        layer: str | None = None,
    ) -> Review | None:
        """Answer a question; returns it as decided, None when its entries were deleted.

        `keep_one` needs `keep`; `merge` takes `keep` and better words (`text`); `partial` needs `text`; `scope` needs
        `domains` (id → domain); `delete` takes `ids`, by default all.
        """
        partition = self._parts.partition(scope, layer)
        review = self._get(partition, key)
        if review.state not in OPEN:
            raise InvalidInput("review", f"{key} was decided: {review.state}", "edit the entries instead")
        if decision not in review.decisions:
            raise InvalidInput("decision", f"{decision!r} does not answer this", f"use {', '.join(review.decisions)}")
        if text is not None:
            text = self._parts.writer.scrubber(partition)(checked_text("text", text))
        answer = _Answer(decision=decision, keep=keep, text=text, domains=domains or {}, ids=ids)
        now = self._parts.clock()
        after, going = _decided(review, answer, now)
        old = {entry.id: (entry.text, entry.tags) for entry in review.entries}
        reworded = [entry for entry in after.values() if (entry.text, entry.tags) != old[entry.id]]
        records = {record.entry.id: record for record in self._parts.writer.records_of(reworded)} if reworded else {}
        with self._parts.writer.transact() as tx:
            self._check_unchanged(tx, partition, review)
            self._write(tx, partition, review, after, records)
            self._close(tx, partition, key, "deleting" if going else decision, now)
            for entry in review.entries:
                detail: dict[str, int | float | str] = {"decision": decision}
                event = Event(at=now, tenant=partition.tenant, action="review", entry_id=entry.id, detail=detail)
                tx.audit(event)
        if going:
            self._forget(self._parts.scope(scope), going)
            return None
        return self._get(partition, key)

    def _check_unchanged(self, tx: Tx, partition: Partition, review: Review) -> None:
        record = tx.record(partition, REVIEW, review.key)
        found = tx.get([partition], [entry.id for entry in review.entries])
        same = all(entry.id in found and found[entry.id].content_hash == entry.content_hash for entry in review.entries)
        if record is None or record.state not in OPEN or not same:
            raise InvalidInput("review", f"{review.key} was changed meanwhile", "look at it again")

    def _write(
        self, tx: Tx, partition: Partition, review: Review, after: Mapping[str, Entry], records: Mapping[str, NewEntry]
    ) -> None:
        now = self._parts.clock()
        waiting = self._waiting(partition, review.key)
        for id, entry in after.items():
            if entry.state == "active" and id in waiting:
                entry = replace(entry, state="flagged")
            same = tx.find_same(partition, entry.content_hash) if entry.state in LIVE else None
            if same is not None and same.id not in after:
                raise InvalidInput("text", f"entry {same.id} already says this", "keep or merge that one instead")
            made = records.get(id)
            index, vector = (None, None) if made is None else (made.index, made.vector)
            tx.update(entry, change="reviewed", index=index, vector=vector)
            if entry.state == "superseded":
                winner = next(other for other in after if other != id)
                tx.add_links([Link(source=winner, target=id, type="supersedes", created_at=now)])
                self._settle_others(tx, partition, id, review.key, now)

    def _waiting(self, partition: Partition, key: str) -> dict[str, list[str]]:
        """Entries that other open questions about a pair are about, with the keys of these."""
        found: dict[str, list[str]] = {}
        for record in self._store.records(partition=partition, kinds=[REVIEW], states=OPEN, limit=_MANY):
            if record.key != key and record.body["reason"] != "verdict":
                for id in record.body["ids"]:
                    found.setdefault(id, []).append(record.key)
        return found

    def _settle_others(self, tx: Tx, partition: Partition, id: str, key: str, now: datetime) -> None:
        """An entry that no longer holds contradicts nobody: the other questions about it are moot."""
        waiting = self._waiting(partition, key)
        moot = set(waiting.get(id, ()))
        for other in moot:
            self._close(tx, partition, other, "moot", now)
        free = [one for one, keys in waiting.items() if one != id and moot.issuperset(keys)]
        for entry in tx.get([partition], free).values():
            if entry.state == "flagged":
                tx.update(replace(entry, state="active", updated_at=max(now, entry.updated_at)), change="reviewed")

    def _close(self, tx: Tx, partition: Partition, key: str, state: str, now: datetime) -> None:
        record = tx.record(partition, REVIEW, key)
        if record is not None:
            tx.put_record(replace(record, state=state, updated_at=now))


# -- what each decision makes of the entries -------------------------------------------------------------------------


def _decided(review: Review, answer: _Answer, now: datetime) -> tuple[dict[str, Entry], list[str]]:
    """The entries as the decision leaves them, and the ids that are to go."""
    entries = {entry.id: _active(entry, now) for entry in review.entries}
    if answer.decision == "delete":
        going = _known(answer.ids if answer.ids is not None else [*entries], entries, "ids")
        return {id: entry for id, entry in entries.items() if id not in going}, going
    if review.reason == "verdict":
        return {id: _judged(entry, answer) for id, entry in entries.items()}, []
    if answer.decision == "scope":
        return _scoped(entries, answer), []
    return entries if answer.decision == "keep_both" else _one_kept(entries, answer, now), []


def _one_kept(entries: dict[str, Entry], answer: _Answer, now: datetime) -> dict[str, Entry]:
    merging = answer.decision == "merge"
    if answer.keep is None and not merging:
        raise InvalidInput("keep", "says not which entry stays", f"give one of {', '.join(entries)}")
    best = max(entries.values(), key=lambda entry: (quality(entry), entry.confidence, entry.id)).id
    (keep,) = _known([answer.keep or best], entries, "keep")
    others = [entry for id, entry in entries.items() if id != keep]
    kept = merged(entries[keep], others, now) if merging else entries[keep]
    kept = _with_text(kept, answer.text) if merging and answer.text is not None else kept
    return {keep: kept, **{other.id: ended(other, now) for other in others}}


def _scoped(entries: dict[str, Entry], answer: _Answer) -> dict[str, Entry]:
    _known([*answer.domains], entries, "domains")
    if not answer.domains:
        raise InvalidInput("domains", "names no domain", "give one entry, or each, a domain of its own")
    moved = dict(entries)
    for id, domain in answer.domains.items():
        others = [tag for tag in entries[id].tags if not tag.startswith(TAG)]
        moved[id] = replace(entries[id], tags=[*domain_tags(checked_domain(domain)), *others])
    if len({tuple(tag for tag in entry.tags if tag.startswith(TAG)) for entry in moved.values()}) == 1:
        raise InvalidInput("domains", "are the same for both", "give them different ones")
    return moved


def _judged(entry: Entry, answer: _Answer) -> Entry:
    if answer.decision == "correct":
        return replace(entry, confidence=max(entry.confidence, CORRECT_CONFIDENCE))
    if answer.decision == "incorrect":
        return replace(entry, state="pruned")
    if answer.text is None:
        raise InvalidInput("text", "is needed for a partial verdict", "say it in better words")
    return replace(_with_text(entry, answer.text), confidence=max(entry.confidence, PARTIAL_CONFIDENCE))


def _with_text(entry: Entry, text: str) -> Entry:
    worded = replace(entry, text=checked_text("text", text))
    return replace(worded, content_hash=content_hash(worded), token_count=count_tokens(worded.text))


def _active(entry: Entry, now: datetime) -> Entry:
    state = "active" if entry.state == "flagged" else entry.state
    return replace(entry, state=state, updated_at=max(now, entry.updated_at))


def _known(ids: Sequence[str], entries: Mapping[str, Entry], field: str) -> list[str]:
    unknown = [id for id in ids if id not in entries]
    if unknown:
        raise InvalidInput(field, f"{unknown[0]!r} is not in this review", f"it is about {', '.join(entries)}")
    return list(dict.fromkeys(ids))

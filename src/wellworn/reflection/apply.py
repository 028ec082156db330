"""Decisions written: all of a session's at once, with their links, or none.

Everything slow happens before the transaction. Inside it, an existing memory that was changed by someone else since it
was looked at raises `ChangedMeanwhile`, and the caller decides anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import WellwornError
from wellworn.core.tokens import count_tokens
from wellworn.core.values import Entry, Link, Partition, Trust, Turn
from wellworn.ingest.hashing import content_hash
from wellworn.ingest.outdate import INSTANT, outdate
from wellworn.ingest.remember import MAX_LEARNED_CONFIDENCE, REPEAT_CONFIDENCE_STEP, Writer, keep
from wellworn.ingest.validate import Draft
from wellworn.reflection.decide import UpdateDecision
from wellworn.reflection.extract import evidence_of
from wellworn.reflection.values import Candidate, ReflectedMemory
from wellworn.store.events import Event, audit
from wellworn.store.port import NewEntry, Tx

MAX_EVIDENCE_CHARS = 20_000
SOURCE = "reflection"


class ChangedMeanwhile(WellwornError):
    """A memory was changed while it was being decided on."""


@dataclass(frozen=True, kw_only=True)
class PlannedWrite:
    """A decision ready to be written: the record is a new entry, or the merged one in its new state."""

    decision: UpdateDecision
    draft: str
    """The id that the proposed memory had while it was decided on."""
    record: NewEntry
    said: list[Turn]


def drafted(
    candidates: Sequence[Candidate],
    writer: Writer,
    *,
    partition: Partition,
    session_id: str,
    turns: Mapping[int, Turn],
    trust: Mapping[int, Trust],
) -> list[Entry]:
    """The proposed memories as entries that are not stored yet."""
    now = writer.clock()
    entries = []
    for candidate in candidates:
        said = [turns[number] for number in candidate.turns]
        at = max(turn.at for turn in said)
        since = min(at, candidate.valid_from or at)
        until = candidate.valid_to if candidate.valid_to is not None and candidate.valid_to > since else None
        # A name that the text has counts once: as the speaker's too, it costs a point of recall (docs/experiments.md).
        named = candidate.speaker is not None and candidate.speaker.lower() in candidate.summary.lower()
        draft = Draft(
            text=candidate.summary,
            kind=candidate.kind,
            layer=partition.layer,
            session_id=session_id,
            turn_refs=sorted(candidate.turns),
            evidence=evidence_of(said)[:MAX_EVIDENCE_CHARS],
            source=SOURCE,
            speaker=None if named else candidate.speaker,
            confidence=candidate.confidence,
            at=at,
            valid_from=min(since, now),
            valid_to=until,
            trust="untrusted" if any(trust.get(turn.number) == "untrusted" for turn in said) else "trusted",
        )
        entries.append(writer.entry(draft, partition.scope, now))
    return entries


def prepare(
    decisions: Sequence[UpdateDecision], drafts: Sequence[Entry], writer: Writer, turns: Mapping[int, Turn]
) -> list[PlannedWrite]:
    """The decisions with their records, embedded in one batch. A memory is changed at most once."""
    now = writer.clock()
    taken: set[str] = set()
    planned: list[UpdateDecision] = []
    for decision in decisions:
        if decision.action != "add":
            olds = [old for old in decision.olds if old.id not in taken]
            taken.update(old.id for old in olds if decision.action != "same")
            decision = replace(decision, olds=tuple(olds)) if olds else replace(decision, action="add", olds=())
        planned.append(decision)
    entries = [
        _merged(decision, draft, writer, now) if decision.action == "merge" else draft
        for decision, draft in zip(planned, drafts, strict=True)
    ]
    return [
        PlannedWrite(
            decision=decision,
            draft=draft.id,
            record=record,
            said=[turns[number] for number in decision.candidate.turns],
        )
        for decision, draft, record in zip(planned, drafts, writer.records_of(entries), strict=True)
    ]


def _merged(decision: UpdateDecision, new: Entry, writer: Writer, now: datetime) -> Entry:
    """The existing memory as the merge leaves it: the text that says both, resting on the evidence of both."""
    old = decision.olds[0]
    evidence = old.evidence if new.evidence in old.evidence else f"{old.evidence}\n{new.evidence}"
    surer = max(old.confidence, min(MAX_LEARNED_CONFIDENCE, round(old.confidence + REPEAT_CONFIDENCE_STEP, 6)))
    text = writer.scrubbing.stored(new.partition)(decision.text)
    merged = replace(
        old,
        text=text,
        evidence=evidence[:MAX_EVIDENCE_CHARS],
        confidence=surer,
        at=max(old.at, new.at),
        trust="untrusted" if "untrusted" in (old.trust, new.trust) else "trusted",
        token_count=count_tokens(text),
        updated_at=max(now, old.updated_at),
    )
    return replace(merged, content_hash=content_hash(merged))


def write(tx: Tx, steps: Sequence[PlannedWrite], now: datetime) -> list[ReflectedMemory]:
    """Write every step, in order. A step may replace what one before it has written."""
    written: dict[str, str] = {}
    for step in steps:
        written[step.draft] = _write(tx, step, written, now)
    return [_reported(step, written[step.draft]) for step in steps]


def _write(tx: Tx, step: PlannedWrite, written: Mapping[str, str], now: datetime) -> str:
    decision, record = step.decision, step.record
    olds = [_stored(tx, old, written.get(old.id)) for old in decision.olds]
    if decision.action == "merge":
        entry_id = _write_merged(tx, record, olds[0], now)
    elif decision.action == "same":
        entry_id = keep(tx, replace(record, entry=replace(record.entry, content_hash=olds[0].content_hash)), now)
    else:
        entry_id = keep(tx, record, now)
    link_to_turns(tx, entry_id, step.said, record.entry.partition, now)
    if decision.action in ("supersede", "correct"):
        for old in olds:
            if old.id != entry_id and old.state in ("active", "flagged"):
                _write_replaced(tx, old, entry_id, now, wrong=decision.action == "correct")
    return entry_id


def _stored(tx: Tx, seen: Entry, written: str | None) -> Entry:
    """The memory that a decision is about: as this session wrote it, or as it was stored before and still is."""
    now = tx.get([seen.partition], [written or seen.id]).get(written or seen.id)
    if now is not None and written is not None:
        return now
    if now is None or (now.text, now.state, now.valid_to) != (seen.text, seen.state, seen.valid_to):
        raise ChangedMeanwhile(f"entry {seen.id} was changed meanwhile")
    return now


def _write_merged(tx: Tx, record: NewEntry, old: Entry, now: datetime) -> str:
    same = tx.find_same(old.partition, record.entry.content_hash)
    if same is not None and same.id != old.id:  # the merged text is there already
        return keep(tx, record, now)
    counted = replace(
        record.entry,
        repeats=old.repeats,
        usage_count=old.usage_count,
        success_count=old.success_count,
        failure_count=old.failure_count,
    )
    tx.update(counted, change="merged", index=record.index, vector=record.vector)
    audit(tx, Event(at=now, tenant=old.tenant, action="merge", entry_id=old.id))
    return old.id


def _write_replaced(tx: Tx, old: Entry, new_id: str, now: datetime, *, wrong: bool) -> None:
    """End the old memory. What was said later wins, also when an earlier session is reflected on afterwards."""
    new = tx.get([old.partition], [new_id])[new_id]
    first, second = (old, new) if new.at >= old.at else (new, old)
    at_once = second.valid_from <= first.valid_from  # said in one session: the first held for a moment
    outdate(tx, first, second, now, at=first.valid_from + INSTANT if at_once else None, wrong=wrong)


def link_to_turns(tx: Tx, entry_id: str, said: Sequence[Turn], partition: Partition, now: datetime) -> None:
    """Say which turns an entry was derived from, as far as they are there."""
    episodes = [turn.entry_id for turn in said if turn.entry_id is not None and turn.entry_id != entry_id]
    there = tx.get([partition], episodes)
    tx.add_links(
        [
            Link(source=entry_id, target=episode, type="derived_from", automatic=True, created_at=now)
            for episode in episodes
            if episode in there
        ]
    )


def _reported(step: PlannedWrite, entry_id: str) -> ReflectedMemory:
    """The step for a report."""
    decision, entry = step.decision, step.record.entry
    return ReflectedMemory(
        action=decision.action,
        text=entry.text if decision.action == "merge" else decision.candidate.summary,
        kind=entry.kind,
        turns=decision.candidate.turns,
        evidence=evidence_of(step.said),
        confidence=decision.candidate.confidence,
        why=decision.why,
        id=entry_id,
        old_id=decision.old.id if decision.old else None,
        old_text=decision.old.text if decision.old else "",
    )

"""Decisions written: all of a session's at once, with their links, or none.

Everything slow happens before the transaction. Inside it, an existing memory that was changed by someone else since it
was looked at raises `ChangedMeanwhile`, and the caller decides anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from wellworn.core.errors import WellwornError
from wellworn.core.tokens import count_tokens
from wellworn.core.values import Entry, Layer, Link, Partition, Scope, Trust, Turn
from wellworn.ingest.outdate import outdate_sources, superseded
from wellworn.ingest.hashing import content_hash
from wellworn.ingest.remember import MAX_LEARNED_CONFIDENCE, REPEAT_CONFIDENCE_STEP, Writer, keep
from wellworn.ingest.validate import Draft
from wellworn.reflection.candidate import Candidate
from wellworn.reflection.decide import UpdateDecision
from wellworn.reflection.evidence import evidence_of
from wellworn.reflection.report import ReflectedMemory
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
    record: NewEntry
    said: list[Turn]


def prepare(
    decisions: Sequence[UpdateDecision],
    writer: Writer,
    *,
    partition: Partition,
    session_id: str,
    turns: Mapping[int, Turn],
    trust: Mapping[int, Trust],
) -> list[PlannedWrite]:
    """The decisions with their records, embedded in one batch. An existing memory is changed at most once."""
    now = writer.clock()
    taken: set[str] = set()
    planned: list[tuple[UpdateDecision, Entry, list[Turn]]] = []
    for decision in decisions:
        if decision.old is not None and decision.old.id in taken and decision.action != "same":
            decision = UpdateDecision(candidate=decision.candidate, action="add", why="the other was changed already")
        if decision.old is not None and decision.action != "same":
            taken.add(decision.old.id)
        said = [turns[number] for number in decision.candidate.turns]
        new = _entry(decision.candidate, said, writer, now, partition=partition, session_id=session_id, trust=trust)
        planned.append((decision, _merged(decision, new, writer, now) if decision.action == "merge" else new, said))
    records = writer.records_of([entry for _, entry, _ in planned])
    return [
        PlannedWrite(decision=decision, record=record, said=said)
        for (decision, _, said), record in zip(planned, records, strict=True)
    ]


def _entry(
    candidate: Candidate,
    said: Sequence[Turn],
    writer: Writer,
    now: datetime,
    *,
    partition: Partition,
    session_id: str,
    trust: Mapping[int, Trust],
) -> Entry:
    at = max(turn.at for turn in said)
    since = min(at, candidate.valid_from or at)
    until = candidate.valid_to if candidate.valid_to is not None and candidate.valid_to > since else None
    # A name that the text has counts once: as the speaker's too, it costs a point of recall (docs/experiments.md).
    named = candidate.speaker is not None and candidate.speaker.lower() in candidate.summary.lower()
    draft = Draft(
        text=candidate.summary,
        kind=candidate.kind,
        title=candidate.title,
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
    return writer.entry(draft, scope_of(partition), now)


def scope_of(partition: Partition) -> Scope:
    """The scope that sees one partition and nothing else."""
    layer: dict[Layer, str] = {partition.layer: partition.layer_id}
    return Scope(tenant=partition.tenant, **cast("dict[str, str]", layer))


def _merged(decision: UpdateDecision, new: Entry, writer: Writer, now: datetime) -> Entry:
    """The existing memory as the merge leaves it: the text that says both, resting on the evidence of both."""
    old = cast("Entry", decision.old)
    evidence = old.evidence if new.evidence in old.evidence else f"{old.evidence}\n{new.evidence}"
    surer = max(old.confidence, min(MAX_LEARNED_CONFIDENCE, round(old.confidence + REPEAT_CONFIDENCE_STEP, 6)))
    text = writer.scrubber(new.partition)(decision.text)
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
    """Write every step, in order."""
    return [_write(tx, step, now) for step in steps]


def _write(tx: Tx, step: PlannedWrite, now: datetime) -> ReflectedMemory:
    decision, record = step.decision, step.record
    old = None if decision.old is None else _unchanged(tx, decision.old)
    if decision.action == "merge" and old is not None:
        entry_id = _write_merged(tx, record, old, now)
    elif decision.action == "same" and old is not None:
        entry_id = keep(tx, replace(record, entry=replace(record.entry, content_hash=old.content_hash)), now)
    else:
        entry_id = keep(tx, record, now)
        if decision.action in ("supersede", "correct") and old is not None and old.id != entry_id:
            _write_replaced(tx, old, entry_id, now, wrong=decision.action == "correct")
    link_to_turns(tx, entry_id, step.said, record.entry.partition, now)
    return told(step, entry_id)


def _unchanged(tx: Tx, seen: Entry) -> Entry:
    """The entry as it is now; `ChangedMeanwhile` when it no longer says what it said."""
    now = tx.get([seen.partition], [seen.id]).get(seen.id)
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
    tx.update(superseded(first, second, None, now, wrong=wrong), change="corrected" if wrong else "superseded")
    tx.add_links([Link(source=second.id, target=first.id, type="supersedes", created_at=now)])
    action = "correct" if wrong else "supersede"
    audit(tx, Event(at=now, tenant=old.tenant, action=action, entry_id=first.id, detail={"by": second.id}))
    if not wrong:
        outdate_sources(tx, first, second, now)


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


def told(step: PlannedWrite, entry_id: str | None) -> ReflectedMemory:
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
        old_id=None if decision.old is None else decision.old.id,
        old_text="" if decision.old is None else decision.old.text,
    )

"""Prospective reflection: turns of a session → proposed memories → decisions → one atomic write.

Works with a model or without one. When it runs is decided in `service`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import NotFound, WellwornError
from wellworn.core.spans import span
from wellworn.core.values import READ_BY_MODEL, READ_BY_RULES, Entry, Link, Partition, Turn
from wellworn.core.wellformed import count_tokens
from wellworn.ingest.outdate import INSTANT, end_with_turns, outdate
from wellworn.ingest.remember import Writer, keep, surer
from wellworn.ingest.session import name_of
from wellworn.ingest.terms import content_hash
from wellworn.ingest.utterance import ASSISTANT_ROLES
from wellworn.ingest.validate import Draft
from wellworn.models.ledger import Meter
from wellworn.models.port import Model
from wellworn.reflection import Candidate, ReflectedMemory, Reflection
from wellworn.reflection.compare import group_same
from wellworn.reflection.decide import Proposal, UpdateDecision, decide
from wellworn.reflection.extract import Extracted, by_model, by_rules, evidence_of, turns_before, windows
from wellworn.search.pipeline import Searcher
from wellworn.store.events import Event, audit
from wellworn.store.port import NewEntry, Selection, Store, Tx

MEMORY_KINDS = ("fact", "preference", "pattern", "note")
"""What a new memory is compared with: neither turns nor summaries nor what an agent learned from its work."""
MOST_EARLIER = 40
"""Memories of the same session that one by rules is compared with; a model has read the session when it writes."""
MOST_TRIES = 4
SIMILAR = 8
"""Existing memories that a new one is compared with."""

ModelFor = Callable[[Partition, str], Meter | None]
"""The model for a session of a partition, metered, or None."""
Finish = Callable[[Tx, Reflection], None]
"""What is to be written in the same transaction as the memories."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """The turns of a session that are to be reflected on, with what came before."""

    turns: dict[int, Turn]
    """By their number, in order."""
    start: int
    doubtful: frozenset[int]
    """Turns that are not trusted."""
    unread: frozenset[int]
    """Turns of the stretch that are not read: system text, tool output, recalled memories, what was forgotten or pruned."""


class Reflector:
    """Turns sessions into memories."""

    def __init__(self, store: Store, writer: Writer, searcher: Searcher, *, model_for: ModelFor) -> None:
        self._store = store
        self._writer = writer
        self._searcher = searcher
        self._model_for = model_for

    def reflect(self, partition: Partition, session_id: str, start: int, stop: int, *, finish: Finish) -> Reflection:
        """Reflect on turns [start, stop); all of it is written at once, with `finish`."""
        with span("reflect") as note:
            report = self._reflect(partition, session_id, start, stop, finish)
            note(session=session_id, turns=stop - start, memories=len(report.memories), by=report.by)
        return report

    def _reflect(self, partition: Partition, session_id: str, start: int, stop: int, finish: Finish) -> Reflection:
        read = self._read(partition, session_id, start, stop)
        model = self._model_for(partition, session_id)
        found = self._propose(read, partition, model)
        now, source = self._writer.clock(), READ_BY_RULES if found.by == "rules" else READ_BY_MODEL
        drafts = [
            self._writer.entry(_draft(one, read, partition, session_id, source, now), partition.scope, now)
            for one in found.candidates
        ]
        candidates, drafts = self._without_ended(found.candidates, drafts)
        found.dropped["ended already"] += len(found.candidates) - len(candidates)
        report = Reflection(
            session_id=session_id,
            start=start,
            stop=stop,
            dropped=dict(+found.dropped),
            skipped=found.skipped,
            by=found.by,
            fallback=found.fallback,
        )
        proposals: list[Proposal] = []
        decisions: list[UpdateDecision] = []
        for attempt in range(1, MOST_TRIES + 1):
            seq, before = self._seq(partition), proposals
            proposals = [
                self._proposal(one, drafts[:number] if found.by == "rules" else (), partition)
                for number, one in enumerate(candidates)
            ]
            if proposals != before:  # a model is asked again only where there is something else to decide on
                decider = None if found.by == "rules" else model
                decisions = decide(proposals, decider, among_people=_among_people(read.turns.values()))
            steps = prepare(decisions, drafts, self._writer, read.turns)
            try:
                with self._writer.transact(tenant=partition.tenant) as tx:
                    # Someone wrote to the partition since: perhaps the same memory. Look again, but not for ever.
                    if attempt < MOST_TRIES and proposals and self._seq(partition) != seq:
                        raise ChangedMeanwhile(
                            f"the partition of {partition.layer} {partition.layer_id} was written to meanwhile"
                        )
                    now = self._writer.clock()
                    written = replace(report, memories=write(tx, steps, now))
                    tx.mark_session(partition, session_id, reflected=stop)
                    detail = {**written.counts(), "dropped": sum(written.dropped.values())}
                    audit(tx, Event(at=now, tenant=partition.tenant, action="reflect", detail={**detail}))
                    finish(tx, written)
                return written
            except ChangedMeanwhile:
                if attempt == MOST_TRIES:
                    raise
        raise AssertionError("unreachable")  # the last attempt returns or raises

    def _read(self, partition: Partition, session_id: str, start: int, stop: int) -> Read:
        turns, entries, kept = turns_before(self._store, partition, session_id, stop)
        if not turns:
            raise NotFound("session", session_id)
        said = {turn.number: turn for turn in kept}
        doubtful = [n for n, turn in said.items() if entries[turn.entry_id or ""].trust == "untrusted"]
        unread = {turn.number for turn in turns if turn.number >= start} - said.keys()
        return Read(turns=said, start=start, doubtful=frozenset(doubtful), unread=frozenset(unread))

    def _propose(self, read: Read, partition: Partition, model: Model | None) -> Extracted:
        user = name_of(partition.scope.user)
        found: list[Candidate] = []
        dropped: Counter[str] = Counter()
        skipped = dict.fromkeys(sorted(read.unread), "not said by a person, or taken back")
        readers, fallback = dict[str, None](), ""
        for window in windows([*read.turns.values()], read.start):
            part = by_rules(window, user=user) if model is None else by_model(window, model, user=user)
            found += part.candidates
            dropped.update(part.dropped)
            skipped.update(part.skipped)
            readers[part.by], fallback = None, part.fallback or fallback
        by = next((one for one in readers if one != "rules"), "rules" if model is None or readers else model.name)
        return Extracted(candidates=group_same(found), dropped=dropped, skipped=skipped, by=by, fallback=fallback)

    def _without_ended(
        self, candidates: Sequence[Candidate], drafts: Sequence[Entry]
    ) -> tuple[list[Candidate], list[Entry]]:
        """Without what an earlier reading of the session gave, in the same words of the same turns, and has ended since."""
        ended: set[tuple[str, tuple[int, ...]]] = set()
        if drafts:
            wanted = Selection(session_id=drafts[0].session_id, kinds=MEMORY_KINDS, states=["superseded", "pruned"])
            there = self._store.select([drafts[0].partition], wanted)
            ended = {(entry.text, tuple(entry.turn_refs)) for _, entry in there}
        new = [n for n, draft in enumerate(drafts) if (draft.text, tuple(draft.turn_refs)) not in ended]
        return [candidates[n] for n in new], [drafts[n] for n in new]

    def _proposal(self, candidate: Candidate, earlier: Sequence[Entry], partition: Partition) -> Proposal:
        """A new memory with the existing ones most like it."""
        found = self._searcher.similar(candidate.summary, partition=partition, k=SIMILAR, kinds=MEMORY_KINDS)
        return Proposal(candidate=candidate, similar=[entry for entry, _ in found], earlier=earlier[-MOST_EARLIER:])

    def _seq(self, partition: Partition) -> int:
        head = self._store.heads([partition])[0]
        return 0 if head is None else head.seq


def _among_people(turns: Iterable[Turn]) -> bool:
    """Whether several people speak, assistants not counted."""
    return len({turn.role.strip().lower() for turn in turns} - ASSISTANT_ROLES) > 1


# -- decisions written -------------------------------------------------------------------------------------------------
#
# All of a session's at once, with their links, or none. Everything slow happens before the transaction. Inside it, a
# memory that somebody else has changed since it was looked at raises `ChangedMeanwhile`, and the caller decides anew.

MAX_EVIDENCE_CHARS = 20_000


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


def _draft(
    candidate: Candidate, read: Read, partition: Partition, session_id: str, source: str, now: datetime
) -> Draft:
    """A proposed memory for the writer."""
    said = [read.turns[number] for number in candidate.turns]
    at = max(turn.at for turn in said)
    since = min(at, candidate.valid_from or at)
    until = candidate.valid_to if candidate.valid_to is not None and candidate.valid_to > since else None
    # A name that the text has counts once: as the speaker's too, it costs a point of recall (docs/experiments.md).
    named = candidate.speaker is not None and candidate.speaker.lower() in candidate.summary.lower()
    return Draft(
        text=candidate.summary,
        kind=candidate.kind,
        layer=partition.layer,
        session_id=session_id,
        turn_refs=sorted(candidate.turns),
        evidence=evidence_of(said)[:MAX_EVIDENCE_CHARS],
        source=source,
        speaker=None if named else candidate.speaker,
        confidence=candidate.confidence,
        at=at,
        valid_from=min(since, now),
        valid_to=until,
        trust="trusted" if read.doubtful.isdisjoint(candidate.turns) else "untrusted",
    )


def prepare(
    decisions: Sequence[UpdateDecision], drafts: Sequence[Entry], writer: Writer, turns: Mapping[int, Turn]
) -> list[PlannedWrite]:
    """The decisions with their records, embedded in one batch. A memory is changed at most once."""
    now = writer.clock()
    taken: set[str] = set()
    planned: list[UpdateDecision] = []
    for decision, draft in zip(decisions, drafts, strict=True):
        if decision.action == "supersede" and any(old.at > draft.at for old in decision.olds):
            decision = replace(decision, text="")  # said before the old one: it does not say how it is now
        if decision.action != "add":
            olds = [old for old in decision.olds if old.id not in taken]
            taken.update(old.id for old in olds if decision.action != "same")
            decision = (
                replace(decision, olds=tuple(olds)) if olds else replace(decision, action="add", olds=(), text="")
            )
        planned.append(decision)
    entries = [_decided(decision, draft, writer, now) for decision, draft in zip(planned, drafts, strict=True)]
    return [
        PlannedWrite(
            decision=decision,
            draft=draft.id,
            record=record,
            said=[turns[number] for number in decision.candidate.turns],
        )
        for decision, draft, record in zip(planned, drafts, writer.records_of(entries), strict=True)
    ]


def _decided(decision: UpdateDecision, new: Entry, writer: Writer, now: datetime) -> Entry:
    """The entry that a decision leads to: the new one, with what still holds of the old, or the old one with both."""
    if not decision.draws_on_old:
        return new
    old, entry = decision.olds[0], new
    if decision.action == "merge":
        entry = replace(
            old, confidence=surer(old.confidence), at=max(old.at, new.at), updated_at=max(now, old.updated_at)
        )
    text = writer.scrubbing.stored(new.partition)(decision.text)
    evidence = old.evidence if new.evidence in old.evidence else f"{old.evidence}\n{new.evidence}"
    entry = replace(
        entry,
        text=text,
        token_count=count_tokens(text),
        evidence=evidence[:MAX_EVIDENCE_CHARS],
        trust="untrusted" if "untrusted" in (old.trust, new.trust) else "trusted",
    )
    return replace(entry, content_hash=content_hash(entry))


def write(tx: Tx, steps: Sequence[PlannedWrite], now: datetime) -> list[ReflectedMemory]:
    """Write every step, in order. A step may replace what one before it has written."""
    written: dict[str, str] = {}
    for step in steps:
        written[step.draft] = _write(tx, step, written, now)
    for step in steps:
        for memory in tx.get([step.record.entry.partition], [written[step.draft]]).values():
            end_with_turns(tx, memory, now)
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
    if decision.draws_on_old and decision.action == "supersede":
        # It tells what the old one told: it rests on the same turns, and is forgotten with any of them.
        links = tx.links([olds[0].id], types=["derived_from"])
        sources = [*(link.target for link in links if link.source == olds[0].id), olds[0].id]
        _derive(tx, entry_id, [one for one in sources if one != entry_id], now)
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
    tx.update(counted, change="merged", index=record.index, vector=record.vector, parts=record.parts)
    audit(tx, Event(at=now, tenant=old.tenant, action="merge", entry_id=old.id))
    return old.id


def _write_replaced(tx: Tx, old: Entry, new_id: str, now: datetime, *, wrong: bool) -> None:
    """End the old memory. What was said later wins, also when an earlier session is reflected on afterwards."""
    new = tx.get([old.partition], [new_id])[new_id]
    first, second = (old, new) if new.at >= old.at else (new, old)
    at_once = second.valid_from <= first.valid_from  # said in one session: the first held for a moment
    outdate(tx, first, second, now, at=first.valid_from + INSTANT if at_once else None, wrong=wrong)


def link_to_turns(tx: Tx, entry_id: str, said: Sequence[Turn], partition: Partition, now: datetime) -> None:
    """Say which turns an entry was derived from; `ChangedMeanwhile` when one was forgotten since it was read."""
    episodes = [turn.entry_id for turn in said if turn.entry_id is not None and turn.entry_id != entry_id]
    if tx.get([partition], episodes).keys() != {*episodes}:
        raise ChangedMeanwhile("a turn was forgotten meanwhile")
    _derive(tx, entry_id, episodes, now)


def _derive(tx: Tx, entry_id: str, sources: Sequence[str], now: datetime) -> None:
    tx.add_links(
        [Link(source=entry_id, target=one, type="derived_from", automatic=True, created_at=now) for one in sources]
    )


def _reported(step: PlannedWrite, entry_id: str) -> ReflectedMemory:
    """The step for a report."""
    decision, entry = step.decision, step.record.entry
    old = decision.olds[0] if decision.olds else None
    return ReflectedMemory(
        action=decision.action,
        text=entry.text if decision.draws_on_old else decision.candidate.summary,
        kind=entry.kind,
        turns=decision.candidate.turns,
        evidence=evidence_of(step.said),
        confidence=decision.candidate.confidence,
        why=decision.why,
        id=entry_id,
        old_id=old.id if old else None,
        old_text=old.text if old else "",
    )

"""Prospective reflection: turns of a session → proposed memories → decisions → one atomic write.

Works with a model or without one. When it runs is decided in `service`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import NotFound
from wellworn.core.spans import span
from wellworn.core.values import Entry, Partition, Trust, Turn
from wellworn.ingest.remember import Writer
from wellworn.ingest.session import name_of
from wellworn.ingest.utterance import ASSISTANT_ROLES
from wellworn.models.ledger import Meter
from wellworn.models.port import Model
from wellworn.reflection.apply import ChangedMeanwhile, drafted, prepare, write
from wellworn.reflection.compare import group_same
from wellworn.reflection.decide import Proposal, UpdateDecision, decide
from wellworn.reflection.extract import Extract, Extracted, by_model, by_rules, readable, windows
from wellworn.reflection.values import Candidate, Reflection
from wellworn.search.pipeline import Searcher
from wellworn.store.events import Event, audit
from wellworn.store.port import Store, Tx

MEMORY_KINDS = ("fact", "preference", "pattern", "note")
"""What a new memory is compared with: neither turns nor summaries nor what an agent learned from its work."""
MOST_EARLIER = 40
"""Memories of the same session that a new one is compared with."""
MOST_TRIES = 4
SIMILAR = 5
"""Existing memories that a new one is compared with (the paper's K)."""

ModelFor = Callable[[Partition, str], Meter | None]
"""The model for a session of a partition, metered, or None."""
Finish = Callable[[Tx, Reflection], None]
"""What is to be written in the same transaction as the memories."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """The turns of a session that are to be reflected on, with what came before."""

    turns: list[Turn]
    start: int
    trust: Mapping[int, Trust]
    unread: frozenset[int]
    """Turns of the stretch that nobody said: system text, tool output, recalled memories."""


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
        by_number = {turn.number: turn for turn in read.turns}
        drafts = drafted(
            found.candidates,
            self._writer,
            partition=partition,
            session_id=session_id,
            turns=by_number,
            trust=read.trust,
        )
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
            proposals = [self._proposal(number, drafts, found.candidates, partition) for number in range(len(drafts))]
            if proposals != before:  # a model is asked again only where there is something else to decide on
                decisions = decide(proposals, model, among_people=_among_people(read.turns))
            steps = prepare(decisions, drafts, self._writer, by_number)
            try:
                with self._writer.transact(tenant=partition.tenant) as tx:
                    # Someone wrote to the partition since: perhaps the same memory. Look again, but not for ever.
                    if attempt < MOST_TRIES and proposals and self._seq(partition) != seq:
                        raise ChangedMeanwhile(
                            f"the partition of {partition.layer} {partition.layer_id} was written to meanwhile"
                        )
                    now = self._writer.clock()
                    written = replace(report, memories=write(tx, steps, now))
                    _note(tx, partition, written, now)
                    finish(tx, written)
                return written
            except ChangedMeanwhile:
                if attempt == MOST_TRIES:
                    raise
        raise AssertionError("unreachable")  # the last attempt returns or raises

    def _read(self, partition: Partition, session_id: str, start: int, stop: int) -> Read:
        turns = [turn for turn in self._store.turns(partition, session_id) if turn.number < stop]
        if not turns:
            raise NotFound("session", session_id)
        ids = [turn.entry_id for turn in turns if turn.entry_id is not None]
        entries = self._store.get([partition], ids)
        episodes = {turn.number: entries.get(turn.entry_id or "") for turn in turns}
        trust: dict[int, Trust] = {number: entry.trust for number, entry in episodes.items() if entry is not None}
        said = readable(turns, entries)
        unread = {turn.number for turn in turns if turn.number >= start} - {turn.number for turn in said}
        return Read(turns=said, start=start, trust=trust, unread=frozenset(unread))

    def _propose(self, read: Read, partition: Partition, model: Model | None) -> Extracted:
        extract: Extract = by_rules if model is None else by_model(model)
        user = name_of(partition.scope.user)
        found: list[Candidate] = []
        dropped: Counter[str] = Counter()
        skipped = dict.fromkeys(sorted(read.unread), "not said by a person")
        by, fallback = "rules" if model is None else model.name, ""
        for window in windows(read.turns, read.start):
            part = extract(window, user=user)
            found += part.candidates
            dropped.update(part.dropped)
            skipped.update(part.skipped)
            if part.fallback:
                by, fallback = part.by, part.fallback
        return Extracted(candidates=group_same(found), dropped=dropped, skipped=skipped, by=by, fallback=fallback)

    def _proposal(
        self, number: int, drafts: Sequence[Entry], candidates: Sequence[Candidate], partition: Partition
    ) -> Proposal:
        """A new memory with the existing ones most like it."""
        text = candidates[number].summary
        found = self._searcher.similar(text, partition=partition, k=SIMILAR, kinds=MEMORY_KINDS)
        return Proposal(
            candidate=candidates[number],
            similar=[entry for entry, _ in found],
            earlier=drafts[max(0, number - MOST_EARLIER) : number],
        )

    def _seq(self, partition: Partition) -> int:
        head = self._store.heads([partition])[0]
        return 0 if head is None else head.seq


def _note(tx: Tx, partition: Partition, report: Reflection, now: datetime) -> None:
    """The session is read up to here; the audit log says how many memories that gave."""
    tx.mark_session(partition, report.session_id, reflected=report.stop)
    detail: dict[str, int | float | str] = {**report.counts(), "dropped": sum(report.dropped.values())}
    audit(tx, Event(at=now, tenant=partition.tenant, action="reflect", detail=detail))


def _among_people(turns: Sequence[Turn]) -> bool:
    """Whether several people speak, assistants not counted."""
    return len({turn.role.strip().lower() for turn in turns} - ASSISTANT_ROLES) > 1

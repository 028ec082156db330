"""Prospective reflection: turns of a session → proposed memories → decisions → one atomic write.

Knows the store, the writer and the searcher, and a model or none. Does not know when it is called.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recollect.errors import NotFound
from recollect.ingest.remember import Writer
from recollect.ingest.session import name_of
from recollect.llm.base import Model
from recollect.llm.ledger import Meter
from recollect.reflection.apply import Overtaken, prepare, scope_of, told, write
from recollect.reflection.candidate import Candidate
from recollect.reflection.decide import Decision, Proposal, decide
from recollect.reflection.evidence import evidence_of
from recollect.reflection.extract import Extract, by_model, by_rules
from recollect.reflection.group import group_same
from recollect.reflection.readable import readable
from recollect.reflection.report import Reflection
from recollect.reflection.settings import ReflectionSettings
from recollect.reflection.tally import Tally
from recollect.reflection.window import windows
from recollect.retrieval.pipeline import Searcher
from recollect.stores.base import Event, Store, Tx
from recollect.types import Cost, Shelf, Trust, Turn

MEMORY_KINDS = ("fact", "preference", "pattern", "note")
"""What a new memory is compared with: neither turns nor summaries nor what an agent learned from its work."""
MOST_TRIES = 4

ModelFor = Callable[[Shelf, str], Meter | None]
"""The model for a session of a shelf, metered, or None."""
Finish = Callable[[Tx, Reflection], None]
"""What is to be written in the same transaction as the memories."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """The turns of a session that are to be reflected on, with what came before."""

    turns: list[Turn]
    start: int
    stop: int
    trust: Mapping[int, Trust]


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """What the windows of a session gave, together."""

    candidates: list[Candidate]
    dropped: Counter[str]
    by: str
    fallback: str


class Reflector:
    """Turns sessions into memories."""

    def __init__(self, store: Store, writer: Writer, searcher: Searcher, *, model_for: ModelFor,
                 settings: ReflectionSettings) -> None:  # fmt: skip
        self._store = store
        self._writer = writer
        self._searcher = searcher
        self._model_for = model_for
        self._settings = settings

    def reflect(self, shelf: Shelf, session_id: str, start: int, stop: int, *, finish: Finish | None = None,
                dry_run: bool = False) -> Reflection:  # fmt: skip
        """Reflect on turns [start, stop). With `dry_run` nothing is written; else all of it is, with `finish`."""
        began = time.perf_counter()
        read = self._read(shelf, session_id, start, stop)
        model = self._model_for(shelf, session_id)
        tally = None if model is None else Tally(model)
        proposed = self._propose(read, shelf, tally)
        by_number = {turn.number: turn for turn in read.turns}
        report = Reflection(
            session_id=session_id, start=start, stop=stop, dropped=dict(+proposed.dropped), by=proposed.by,
            fallback=proposed.fallback, dry_run=dry_run,
        )  # fmt: skip
        decided: dict[tuple[Candidate, frozenset[str]], Decision] = {}
        for attempt in range(1, MOST_TRIES + 1):
            seq = self._seq(shelf)
            proposals = [self._proposal(candidate, by_number, shelf) for candidate in proposed.candidates]
            decisions = self._decide(proposals, tally, decided)
            steps = prepare(
                decisions, self._writer, shelf=shelf, session_id=session_id, turns=by_number, trust=read.trust
            )
            spent = Cost() if tally is None else tally.cost()
            cost = replace(spent, seconds=time.perf_counter() - began)
            if dry_run:
                return replace(report, memories=[told(step, None) for step in steps], cost=cost)
            try:
                with self._writer.transact() as tx:
                    # Someone wrote to the shelf since: perhaps the same memory. Look again, but not for ever.
                    if attempt < MOST_TRIES and proposals and self._seq(shelf) != seq:
                        raise Overtaken(f"the shelf of {shelf.layer} {shelf.layer_id} was written to meanwhile")
                    now = self._writer.clock()
                    written = replace(report, memories=write(tx, steps, now), cost=cost)
                    _note(tx, shelf, written, now)
                    if finish is not None:
                        finish(tx, written)
                return written
            except Overtaken:
                if attempt == MOST_TRIES:
                    raise
        raise AssertionError("unreachable")  # the last attempt returns or raises

    def _read(self, shelf: Shelf, session_id: str, start: int, stop: int) -> Read:
        turns = [turn for turn in self._store.turns(shelf, session_id) if turn.number < stop]
        if not turns:
            raise NotFound("session", session_id)
        ids = [turn.entry_id for turn in turns if turn.entry_id is not None]
        entries = self._store.get([shelf], ids)
        episodes = {turn.number: entries.get(turn.entry_id or "") for turn in turns}
        trust: dict[int, Trust] = {number: entry.trust for number, entry in episodes.items() if entry is not None}
        return Read(turns=readable(turns, entries), start=start, stop=stop, trust=trust)

    def _propose(self, read: Read, shelf: Shelf, model: Model | None) -> Proposed:
        extract: Extract = by_rules if model is None else by_model(model)
        user = name_of(scope_of(shelf).user)
        found: list[Candidate] = []
        dropped: Counter[str] = Counter()
        by, fallback = "rules" if model is None else model.name, ""
        for window in windows(read.turns, read.start, self._settings):
            part = extract(window, user=user, most=self._settings.max_memories)
            found += part.candidates
            dropped.update(part.dropped)
            if part.fallback:
                by, fallback = part.by, part.fallback
        return Proposed(candidates=group_same(found), dropped=dropped, by=by, fallback=fallback)

    def _proposal(self, candidate: Candidate, turns: Mapping[int, Turn], shelf: Shelf) -> Proposal:
        return Proposal(
            candidate=candidate,
            said=evidence_of(turns[number] for number in candidate.turns),
            similar=self._searcher.similar(
                candidate.summary, shelf=shelf, k=self._settings.similar, kinds=MEMORY_KINDS
            ),
        )  # fmt: skip

    def _decide(self, proposals: Sequence[Proposal], model: Model | None,
                known: dict[tuple[Candidate, frozenset[str]], Decision]) -> list[Decision]:  # fmt: skip
        """Decide what is not decided yet for the same neighbours: a second look asks a model only for what is new."""
        keys = [
            (p.candidate, frozenset(f"{entry.id}\x1f{entry.updated_at}" for entry, _ in p.similar)) for p in proposals
        ]
        new = [n for n, key in enumerate(keys) if key not in known]
        for n, decision in zip(new, decide([proposals[n] for n in new], model), strict=True):
            known[keys[n]] = decision
        return [known[key] for key in keys]

    def _seq(self, shelf: Shelf) -> int:
        head = self._store.heads([shelf])[0]
        return 0 if head is None else head.seq


def _note(tx: Tx, shelf: Shelf, report: Reflection, now: datetime) -> None:
    """The session is read up to here; the audit log says how many memories that gave."""
    tx.mark_session(shelf, report.session_id, reflected=report.stop)
    detail: dict[str, int | float | str] = {**report.counts(), "dropped": sum(report.dropped.values())}
    tx.audit(Event(at=now, tenant=shelf.tenant, action="reflect", detail=detail))

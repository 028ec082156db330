"""Auto-summary: a long session also gets a summary, whose parts are kept and linked. Only where a summariser is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from wellworn.core.values import Partition
from wellworn.core.wellformed import one_line
from wellworn.ingest.remember import Writer, keep
from wellworn.ingest.validate import Draft
from wellworn.models.port import Model, Request
from wellworn.reflection.apply import MAX_EVIDENCE_CHARS, SOURCE, link_to_turns
from wellworn.reflection.extract import Window, dialogue, evidence_of, prompt, readable, rejection, windows
from wellworn.reflection.values import Candidate
from wellworn.store.events import Event, audit
from wellworn.store.port import Selection, Store, Tx

SUMMARY_TOKENS = 400
MAX_SUMMARY_CHARS = 2_500
CONFIDENCE = 0.7

SummaryModelFor = Callable[[Partition, str], Model]


def summarized(store: Store, partition: Partition, session_id: str) -> int:
    """Turns below this number have a summary."""
    found = store.select([partition], Selection(session_id=session_id, kinds=["summary"]), limit=10_000)
    return max((max(entry.turn_refs) + 1 for _, entry in found if entry.turn_refs), default=0)


class Summarizer:
    """Writes one summary a window of a session."""

    def __init__(self, store: Store, writer: Writer, *, model_for: SummaryModelFor) -> None:
        self._store = store
        self._writer = writer
        self._model_for = model_for

    def summarize(
        self,
        partition: Partition,
        session_id: str,
        start: int,
        stop: int,
        *,
        finish: Callable[[Tx, Counter[str]], None],
    ) -> None:
        """Summarise turns [start, stop); all summaries are written at once, with `finish`."""
        turns = [turn for turn in self._store.turns(partition, session_id) if turn.number < stop]
        ids = [turn.entry_id for turn in turns if turn.entry_id is not None]
        episodes = self._store.get([partition], ids)
        said = readable(turns, episodes)
        doubtful = {id for id, episode in episodes.items() if episode.trust == "untrusted"}
        model = self._model_for(partition, session_id)
        counts: Counter[str] = Counter()
        drafted: list[tuple[Window, Draft]] = []
        for window in windows(said, start):
            draft = self._draft(model, window, session_id, partition, doubtful)
            counts["summaries" if draft is not None else "dropped"] += 1
            if draft is not None:
                drafted.append((window, draft))
        now = self._writer.clock()
        entries = [self._writer.entry(draft, partition.scope, now) for _, draft in drafted]
        records = self._writer.records_of(entries) if entries else []
        with self._writer.transact(tenant=partition.tenant) as tx:
            for (window, _), record in zip(drafted, records, strict=True):
                link_to_turns(tx, keep(tx, record, now), window.turns, partition, now)
            audit(tx, Event(at=now, tenant=partition.tenant, action="summarize", detail=dict(counts)))
            finish(tx, counts)

    def _draft(
        self, model: Model, window: Window, session_id: str, partition: Partition, doubtful: Collection[str]
    ) -> Draft | None:
        """The summary of a window, or None when the model's says what nobody said."""
        told = dialogue(window.turns, context=window.context)
        request = Request.of(prompt("summarize"), told, purpose="summarize", max_output_tokens=SUMMARY_TOKENS)
        text = one_line(model.complete(request).text)
        numbers = tuple(turn.number for turn in window.turns)
        candidate = Candidate(summary=text, turns=numbers)
        if not text or len(text) > MAX_SUMMARY_CHARS:
            return None
        if rejection(candidate, window.turns, [*window.context, *window.turns]) is not None:
            return None
        return Draft(
            text=text,
            kind="summary",
            layer=partition.layer,
            session_id=session_id,
            turn_refs=numbers,
            source=SOURCE,
            evidence=evidence_of(window.turns)[:MAX_EVIDENCE_CHARS],
            confidence=CONFIDENCE,
            at=window.turns[-1].at,
            trust="untrusted" if any(turn.entry_id in doubtful for turn in window.turns) else "trusted",
        )

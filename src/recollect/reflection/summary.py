"""Auto-summary: a long session also gets a summary, whose parts are kept and linked. Only where a summariser is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from recollect.ingest.remember import Writer, keep
from recollect.ingest.validate import Draft, check
from recollect.llm.base import Message, Model, Request
from recollect.reflection.apply import MAX_EVIDENCE_CHARS, SOURCE, link_to_turns, scope_of
from recollect.reflection.candidate import Candidate
from recollect.reflection.evidence import evidence_of, rejection
from recollect.reflection.extract import dialogue
from recollect.reflection.parse import clean_line
from recollect.reflection.prompts import prompt
from recollect.reflection.readable import readable
from recollect.reflection.settings import ReflectionSettings
from recollect.reflection.window import Window, windows
from recollect.stores.base import Event, Record, Selection, Store, Tx
from recollect.types import Shelf

SUMMARY_TOKENS = 400
MAX_SUMMARY_CHARS = 2_500
CONFIDENCE = 0.7

SummaryModelFor = Callable[[Shelf, str], Model]


def summarized(store: Store, shelf: Shelf, session_id: str) -> int:
    """Turns below this number have a summary."""
    found = store.select([shelf], Selection(session_id=session_id, kinds=["summary"]), limit=10_000)
    return max((max(entry.turn_refs) + 1 for _, entry in found if entry.turn_refs), default=0)


class Summarizer:
    """Writes one summary a window of a session."""

    def __init__(self, store: Store, writer: Writer, *, model_for: SummaryModelFor,
                 settings: ReflectionSettings) -> None:  # fmt: skip
        self._store = store
        self._writer = writer
        self._model_for = model_for
        self._settings = settings

    def summarize(self, shelf: Shelf, session_id: str, start: int, stop: int, *,
                  finish: Callable[[Tx, Counter[str]], None]) -> None:  # fmt: skip
        """Summarise turns [start, stop); all summaries are written at once, with `finish`."""
        turns = [turn for turn in self._store.turns(shelf, session_id) if turn.number < stop]
        ids = [turn.entry_id for turn in turns if turn.entry_id is not None]
        episodes = self._store.get([shelf], ids)
        said = readable(turns, episodes)
        doubtful = {id for id, episode in episodes.items() if episode.trust == "untrusted"}
        model = self._model_for(shelf, session_id)
        counts: Counter[str] = Counter()
        drafted: list[tuple[Window, Draft]] = []
        for window in windows(said, start, self._settings):
            draft = self._draft(model, window, session_id, shelf, doubtful)
            counts["summaries" if draft is not None else "dropped"] += 1
            if draft is not None:
                drafted.append((window, draft))
        now = self._writer.clock()
        entries = [
            self._writer.entry_of(self._writer.scrub(check(draft, scope_of(shelf), now)), now) for _, draft in drafted
        ]
        records = self._writer.records_of(entries) if entries else []
        with self._writer.transact() as tx:
            for (window, _), record in zip(drafted, records, strict=True):
                self._write(tx, shelf, window, record)
            tx.audit(Event(at=now, tenant=shelf.tenant, action="summarize", detail=dict(counts)))
            finish(tx, counts)

    def _draft(self, model: Model, window: Window, session_id: str, shelf: Shelf,
               doubtful: Collection[str]) -> Draft | None:  # fmt: skip
        """The summary of a window, or None when the model's says what nobody said."""
        reply = model.complete(
            Request(
                messages=(
                    Message(role="system", text=prompt("summarize")),
                    Message(role="user", text=dialogue(window.turns, context=window.context)),
                ),
                purpose="summarize",
                max_output_tokens=SUMMARY_TOKENS,
            )
        )
        text = clean_line(reply.text)
        numbers = tuple(turn.number for turn in window.turns)
        candidate = Candidate(summary=text, turns=numbers)
        if not text or len(text) > MAX_SUMMARY_CHARS:
            return None
        if rejection(candidate, window.turns, [*window.context, *window.turns]) is not None:
            return None
        return Draft(
            text=text, kind="summary", layer=shelf.layer, session_id=session_id, turn_refs=numbers, source=SOURCE,
            evidence=evidence_of(window.turns)[:MAX_EVIDENCE_CHARS], confidence=CONFIDENCE, at=window.turns[-1].at,
            trust="untrusted" if any(turn.entry_id in doubtful for turn in window.turns) else "trusted",
        )  # fmt: skip

    def _write(self, tx: Tx, shelf: Shelf, window: Window, record: Record) -> None:
        now = record.entry.created_at
        link_to_turns(tx, keep(tx, record, now), window.turns, shelf, now)

"""Prospective reflection on a user's own parts: what was said in a session becomes records, added or merged.

Extraction, the check against what was said, and the choice between adding and merging are those of `reflection`, asked
of the user's chat model. All that can fail slowly (model, embeddings) happens before the first write; if a write fails,
those before it are taken back.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import uuid4

import numpy as np

from wellworn.core.clock import Clock
from wellworn.core.values import Turn
from wellworn.core.wellformed import well_formed
from wellworn.integrations.rmm.context import Person
from wellworn.integrations.rmm.dialogue import Said
from wellworn.integrations.rmm.index import Index, record_of
from wellworn.integrations.rmm.records import MemoryRecord, MemoryRecords
from wellworn.models.port import Model
from wellworn.reflection.candidate import Candidate
from wellworn.reflection.compare import group_same
from wellworn.reflection.decide import Decision, Proposal, decide
from wellworn.reflection.evidence import evidence_of
from wellworn.reflection.extract import by_model
from wellworn.reflection.settings import ReflectionSettings
from wellworn.reflection.window import windows

SESSIONS = "sessions"
_MAX_EVIDENCE_CHARS = 20_000


class Embeds(Protocol):
    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...


@dataclass(frozen=True, kw_only=True)
class Change:
    """One write: the record as it will be and, where there is one, as it was."""

    new: MemoryRecord | None
    old: MemoryRecord | None = None


class Reflect:
    """Reads sessions. One at a time for a person: the caller holds that person's lock."""

    def __init__(
        self,
        *,
        index: Index,
        embeddings: Embeds,
        records: MemoryRecords,
        model: Model,
        clock: Clock,
        settings: ReflectionSettings | None = None,
    ) -> None:
        self._index = index
        self._embeddings = embeddings
        self._records = records
        self._model = model
        self._clock = clock
        self._settings = settings or ReflectionSettings()

    def session(self, person: Person, label: str, session_id: str, spoken: Sequence[Said]) -> int:
        """Reflect on what was said since the last time; how many memories were written."""
        key = session_id.replace("\x00", "")
        done = str(self._records.note(label, SESSIONS, key).get("done", ""))
        turns = self._turns(session_id, _after(spoken, done))
        if not turns:
            return 0
        # In a context of its own: inside an agent that streams, calls of our model are nobody's answer.
        changes: list[Change] = contextvars.Context().run(self._changes, person, label, session_id, turns)
        self._write(label, changes)
        last = next((one.message_id for one in reversed(spoken) if one.message_id), "")
        self._records.put_note(label, SESSIONS, key, {"done": last, "at": self._clock().isoformat()})
        return len(changes)

    def _turns(self, session_id: str, spoken: Sequence[Said]) -> list[Turn]:
        now = self._clock()
        return [
            Turn(session_id=session_id, number=number, role=one.role, text=one.text, at=now)
            for number, one in enumerate(spoken)
        ]

    def _changes(self, person: Person, label: str, session_id: str, turns: Sequence[Turn]) -> list[Change]:
        extract = by_model(self._model, most=self._settings.max_memories)
        found: list[Candidate] = []
        for window in windows(turns, 0, self._settings):
            found += extract(window, user=None).candidates
        candidates = group_same(found)
        if not candidates:
            return []
        vectors = self._embedded([one.summary for one in candidates])
        similar = [self._similar(label, one.summary, vector) for one, vector in zip(candidates, vectors, strict=True)]
        proposals = [
            Proposal(candidate=one, similar=[record.entry(person) for record in near])
            for one, near in zip(candidates, similar, strict=True)
        ]
        known = {record.id: record for near in similar for record in near}
        planned = self._planned(decide(proposals, self._model), known, session_id, turns)
        return self._with_vectors(planned)

    def _planned(
        self, decisions: Sequence[Decision], known: dict[str, MemoryRecord], session_id: str, turns: Sequence[Turn]
    ) -> list[Change]:
        """The writes that decisions come to. An existing memory is changed at most once."""
        changes: list[Change] = []
        for decision in decisions:
            old = None if decision.old is None else known.pop(decision.old.id, None)
            new = _record(decision.candidate, session_id, turns, self._clock())
            if decision.action == "same":
                continue
            if decision.action == "merge" and old is not None:
                evidence = f"{old.evidence}\n{new.evidence}"[:_MAX_EVIDENCE_CHARS]
                merged = replace(old, text=decision.text, evidence=evidence, at=max(old.at, new.at), vector=None)
                changes.append(Change(new=replace(merged, index_id=str(uuid4())), old=old))
                continue
            changes.append(Change(new=new))
            if decision.action in ("supersede", "correct") and old is not None:
                changes.append(Change(new=None, old=old))
        return changes

    def _similar(self, label: str, text: str, vector: Sequence[float]) -> list[MemoryRecord]:
        documents = self._index.find(label, text, vector, self._settings.similar)
        return self._records.get(label, [record_of(one).id for one in documents])

    def _embedded(self, texts: list[str]) -> list[list[float]]:
        return self._embeddings.embed_documents(texts) if texts else []

    def _with_vectors(self, changes: Sequence[Change]) -> list[Change]:
        bare = [change.new.text for change in changes if change.new is not None]
        vectors = iter(self._embedded(bare))
        return [
            change
            if change.new is None
            else replace(change, new=replace(change.new, vector=np.asarray(next(vectors), dtype=np.float32)))
            for change in changes
        ]

    def _write(self, label: str, changes: Sequence[Change]) -> None:
        """MemoryRecords first, then the index; what is out of date leaves the index last."""
        undo: list[Callable[[], None]] = []
        added = [change.new for change in changes if change.new is not None]
        try:
            for change in changes:
                undo.append(self._undone(label, change))
                if change.new is not None:
                    self._records.put(label, change.new)
                elif change.old is not None:
                    self._records.retire(label, change.old)
            self._index.add(label, added)
        except Exception:
            for step in reversed(undo):
                step()
            self._index.remove(label, [record.index_id for record in added])
            raise
        self._index.remove(label, [one.old.index_id for one in changes if one.old is not None and one.old.index_id])

    def _undone(self, label: str, change: Change) -> Callable[[], None]:
        old, new = change.old, change.new

        def undo() -> None:
            if old is not None:
                self._records.put(label, old)
            elif new is not None:
                self._records.remove(label, new.id)

        return undo


def _after(spoken: Sequence[Said], done: str) -> Sequence[Said]:
    """The turns after the one that was reflected on last; all of them when it is not there."""
    for place in range(len(spoken) - 1, -1, -1):
        if done and spoken[place].message_id == done:
            return spoken[place + 1 :]
    return spoken


def _record(candidate: Candidate, session_id: str, turns: Sequence[Turn], now: datetime) -> MemoryRecord:
    evidence = evidence_of(turns[n] for n in candidate.turns)[:_MAX_EVIDENCE_CHARS]
    return MemoryRecord(
        id=uuid4().hex,
        index_id=str(uuid4()),
        text=well_formed(candidate.summary),
        evidence=evidence,
        turns=candidate.turns,
        session=session_id,
        kind=candidate.kind,
        at=now,
    )

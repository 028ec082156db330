"""Memories as records in a LangGraph `BaseStore`: the authority on what is remembered, one namespace a person.

    ("rmm", LABEL, "memories")  id → text, evidence, turns, session, kind, dates, embedding, state, its id in the index
    ("rmm", LABEL, "weights")   "reranker" → the state of the reranker
    ("rmm", LABEL, "sessions")  session → the id of the last message that was reflected on

Values are JSON; vectors are float32 in base64. Knows nothing about ranking or what finds memories.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, cast
from urllib.parse import quote

import numpy as np
from langgraph.store.base import BaseStore, GetOp, Item

from wellworn.core.values import KINDS, Entry, Kind, Partition
from wellworn.integrations.rmm.context import Person
from wellworn.store.port import Vector

ROOT = "rmm"
_LONGEST_LABEL = 96
_DEFAULT_TENANT = "default"
_PAGE = 100


def label_of(person: Person) -> str:
    """A person as one label of a namespace: full stops, slashes and any sign of any script, and no two alike."""
    label = _encoded(person.user)
    if person.tenant != _DEFAULT_TENANT:
        label = f"{_encoded(person.tenant)}:{label}"
    if len(label) <= _LONGEST_LABEL:
        return label
    return "~" + sha256(f"{person.tenant}\x1f{person.user}".encode()).hexdigest()


def _encoded(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E").replace("~", "%7E")


@dataclass(frozen=True, kw_only=True)
class MemoryRecord:
    """One memory."""

    id: str
    text: str
    evidence: str = ""
    turns: tuple[int, ...] = ()
    session: str = ""
    kind: Kind = "fact"
    at: datetime
    vector: Vector | None = None
    index_id: str = ""
    """Its id in the vector store: another one for each text it has had, since some stores refuse an id twice."""
    state: str = "active"

    def entry(self, person: Person) -> Entry:
        """The record as reflection and prompts know memories."""
        return Entry(
            id=self.id,
            partition=Partition(tenant=person.tenant, layer="user", layer_id=person.user),
            kind=self.kind,
            text=self.text,
            evidence=self.evidence,
            session_id=self.session or None,
            turn_refs=[*self.turns],
            source="reflection",
            at=self.at,
            created_at=self.at,
            updated_at=self.at,
            valid_from=self.at,
        )


def to_value(record: MemoryRecord) -> dict[str, Any]:
    return {
        "text": record.text,
        "evidence": record.evidence,
        "turns": [*record.turns],
        "session": record.session,
        "kind": record.kind,
        "at": record.at.isoformat(),
        "index_id": record.index_id,
        "state": record.state,
        "embedding": None if record.vector is None else packed(record.vector),
    }


def from_value(id: str, value: dict[str, Any]) -> MemoryRecord:
    kind = value.get("kind")
    return MemoryRecord(
        id=id,
        text=str(value["text"]),
        evidence=str(value.get("evidence", "")),
        turns=tuple(int(n) for n in value.get("turns", ())),
        session=str(value.get("session", "")),
        kind=cast("Kind", kind) if kind in KINDS else "fact",
        at=moment(value.get("at")),
        vector=unpacked(value.get("embedding")),
        index_id=str(value.get("index_id", "")),
        state=str(value.get("state", "active")),
    )


def moment(text: object) -> datetime:
    """A time in ISO form; the beginning of all time where there is none."""
    try:
        read = datetime.fromisoformat(str(text))
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def packed(vector: Vector) -> str:
    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode("ascii")


def unpacked(text: object) -> Vector | None:
    if not isinstance(text, str):
        return None
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float32)


class MemoryRecords:
    """The records in a store. Every call names whose."""

    def __init__(self, store: BaseStore) -> None:
        self._store = store

    def get(self, label: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """Those of these that are there and hold, in this order."""
        found = self._store.batch([GetOp(namespace=(ROOT, label, "memories"), key=id) for id in ids])
        items = [item for item in found if isinstance(item, Item)]
        records = [from_value(item.key, item.value) for item in items]
        return [record for record in records if record.state == "active"]

    def all(self, label: str) -> list[MemoryRecord]:
        """Every record of a person that holds."""
        records: list[MemoryRecord] = []
        while True:
            page = self._store.search((ROOT, label, "memories"), limit=_PAGE, offset=len(records))
            records += [from_value(item.key, item.value) for item in page]
            if len(page) < _PAGE:
                return [record for record in records if record.state == "active"]

    def put(self, label: str, record: MemoryRecord) -> None:
        self._store.put((ROOT, label, "memories"), record.id, to_value(record), index=False)

    def remove(self, label: str, id: str) -> None:
        self._store.delete((ROOT, label, "memories"), id)

    def retire(self, label: str, record: MemoryRecord) -> None:
        """It no longer holds, and stays to be read."""
        self.put(label, replace(record, state="superseded"))

    def note(self, label: str, kind: str, key: str) -> dict[str, Any]:
        """A value beside the memories; empty where there is none."""
        item = self._store.get((ROOT, label, kind), key)
        return {} if item is None else dict(item.value)

    def put_note(self, label: str, kind: str, key: str, value: dict[str, Any]) -> None:
        self._store.put((ROOT, label, kind), key, value, index=False)

"""CrewAI's `Memory` on a memory: what a crew remembers is an entry, what it recalls is ranked by wellworn.

CrewAI's own storage, embedder and analysis by a model are not used. Needs the extra `crewai`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from wellworn.core.errors import MissingExtra, NotFound
from wellworn.core.fence import MIN_CONFIDENCE
from wellworn.core.hashes import hash64
from wellworn.core.scope import MAX_NAME_CHARS
from wellworn.core.values import Entry, Hit
from wellworn.core.wellformed import clean_text
from wellworn.ingest.remember import Writer
from wellworn.ingest.validate import MAX_QUERY_CHARS, as_time, checked_scope, drafts_of
from wellworn.integrations import CountsFaults, Faults, checked_memory, storable
from wellworn.integrations.items import first_accepted
from wellworn.integrations.loop import relevances
from wellworn.memory import Memory

try:
    from crewai.memory.types import MemoryMatch, MemoryRecord, ScopeInfo
    from crewai.memory.unified_memory import Memory as _CrewMemory
    from pydantic import PrivateAttr
except ModuleNotFoundError as error:
    raise MissingExtra("WellwornCrewMemory", "crewai") from error

__all__ = ["WellwornCrewMemory"]

SOURCE = "crewai"
"""The source of a crew's entries, and the key of the metadata that holds what only CrewAI knows of one."""
_MANY = 100_000
_WIDEST = 2_000
"""Hits that a recall reads at most to find those of a scope: more take seconds."""


class WellwornCrewMemory(CountsFaults, _CrewMemory):  # type: ignore[misc]  # not installed where types are checked
    """A memory for `Crew(memory=…)`, `Agent(memory=…)` and flows. `memory` is bound: `memory.for_scope(Scope(team="core"))`.

    CrewAI's scopes are kept in the metadata. A memory fault never stops the crew: it is logged and counted in `faults`.
    """

    _memory: Memory = PrivateAttr()
    _faults: Faults = PrivateAttr(default_factory=Faults)

    def __init__(self, memory: Memory, **fields: Any) -> None:
        checked_scope(checked_memory(memory).scope)
        super().__init__(**fields | {"storage": _Records(memory), "embedder": lambda _: []})
        self._memory = memory

    def extract_memories(self, content: str) -> list[str]:
        """The content as it is: long texts are cut where they are stored."""
        return [content] if content.strip() else []

    def remember(self, content: str, *args: Any, **options: Any) -> MemoryRecord | None:
        """Store one text."""
        return next(iter(self.remember_many([content], *args, **options)), None)

    def remember_many(
        self,
        contents: Sequence[str],
        scope: str | None = None,
        categories: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        agent_role: str | None = None,
        root_scope: str | None = None,
    ) -> list[MemoryRecord]:
        """Store texts, in one durable write."""
        if self.read_only:
            return []
        with self._faults.guarded("store"):
            path = _path(self.root_scope if root_scope is None else root_scope, scope)
            own = {"scope": path, "importance": importance, "source": source, "private": private}
            told = {name: value for name, value in own.items() if value is not None}
            texts = [text for content in contents if (text := storable(content)).strip()]
            about = {
                "tags": [category for category in categories or () if category.strip()],
                "source": SOURCE,
                "speaker": None if agent_role is None else agent_role[:MAX_NAME_CHARS],
                "metadata": {**(metadata or {}), SOURCE: told},
            }
            drafts = drafts_of([{"text": text} | _apart(self._memory, text, told) for text in texts], about)
            ids = self._writer(_place(told)).remember(drafts, scope=checked_scope(self._memory.scope))
            return [_record(self._memory.get(id)) for id in dict.fromkeys(ids)]
        return []

    def _writer(self, place: tuple[Any, ...]) -> Writer:
        """A writer whose texts replace nothing of another place."""
        writer = self._memory.engine.writer
        own, found = writer.under(writer.scrubbing), writer.find_replaced
        if found is not None:
            own.find_replaced = lambda partition, records: [
                [old for old in olds if _place(_own(old[0])) == place] for olds in found(partition, records)
            ]
        return own

    def recall(
        self,
        query: str,
        scope: str | None = None,
        categories: Sequence[str] | None = None,
        limit: int = 10,
        depth: str = "deep",
        source: str | None = None,
        include_private: bool = False,
    ) -> list[MemoryMatch]:
        """The memories that answer the query best. A private one is only for its own source."""
        asked, path = clean_text(query)[:MAX_QUERY_CHARS], _path(self.root_scope, scope)

        def accepted(hit: Hit) -> Hit | None:
            of = _own(hit.entry)
            hidden = of.get("private") and not include_private and (source is None or of.get("source") != source)
            return hit if not hidden and _matches(hit.entry, path, categories) else None

        with self._faults.guarded("recall"):
            found = partial(self._memory.recall, asked, min_confidence=MIN_CONFIDENCE)
            hits = first_accepted(lambda k: found(k=min(k, _WIDEST)).hits, k=limit, want=limit, accept=accepted)
            scored, reasons = zip(hits, relevances(hits), strict=True), ["wellworn"]
            return [MemoryMatch(record=_record(hit.entry), score=s, match_reasons=reasons) for hit, s in scored]
        return []

    def drain_writes(self) -> None:
        """Nothing waits: every write is durable when it returns."""

    def close(self) -> None:
        """Closing the memory stays the caller's task."""


class _Records:
    """What a crew stored, as the storage that CrewAI's own methods list, count, change and forget."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def __deepcopy__(self, memo: object) -> _Records:
        return self  # of a crew that is copied, too: the memory is the same

    def _entries(self, scope: str | None, categories: Sequence[str] | None = None) -> list[Entry]:
        """Oldest first."""
        found = (entry for entry in self._memory.entries(limit=_MANY) if entry.source == SOURCE)
        return [entry for entry in found if _matches(entry, _path(scope), categories)]

    def get_record(self, record_id: str) -> MemoryRecord | None:
        with suppress(NotFound):
            entry = self._memory.get(record_id)
            return _record(entry) if entry.source == SOURCE else None
        return None

    def update(self, record: MemoryRecord) -> None:
        told = {**_own(self._memory.get(record.id)), "scope": _path(record.scope), "importance": record.importance}
        text = storable(record.content)
        changes = {"text": text, "tags": record.categories, "metadata": {**record.metadata, SOURCE: told}}
        scope, moved = checked_scope(self._memory.scope), _apart(self._memory, text, told)
        self._memory.engine.changer.edit(record.id, scope=scope, changes=changes, moved=moved)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        return [_record(entry) for entry in self._entries(scope_prefix)[::-1][offset : offset + limit]]

    def list_scopes(self, parent: str = "/") -> list[str]:
        above = _path(parent).rstrip("/")
        below = (_scope_of(entry).removeprefix(above).split("/") for entry in self._entries(parent))
        return sorted({f"{above}/{names[1]}" for names in below if "".join(names)})

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        return Counter(tag for entry in self._entries(scope_prefix) for tag in entry.tags)

    def get_scope_info(self, scope: str) -> ScopeInfo:
        records = self.list_records(scope, _MANY)
        return ScopeInfo(
            path=_path(scope),
            record_count=len(records),
            categories=sorted(self.list_categories(scope)),
            oldest_record=records[-1].created_at if records else None,
            newest_record=records[0].created_at if records else None,
            child_scopes=self.list_scopes(scope),
        )

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: Sequence[str] | None = None,
        record_ids: Sequence[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Forget what the crew stored, for good; returns how many entries that were."""
        before = as_time("older_than", older_than)
        ids = [
            entry.id
            for entry in self._entries(scope_prefix, categories)
            if (record_ids is None or entry.id in record_ids)
            and (before is None or entry.created_at < before)
            and all(entry.metadata.get(name) == value for name, value in (metadata_filter or {}).items())
        ]
        return self._memory.forget(ids).entries if ids else 0

    def reset(self, scope_prefix: str | None = None) -> None:
        self.delete(scope_prefix)


def _path(*scopes: str | None) -> str:
    """The scopes joined, as in `/crew/a`."""
    return "/" + "/".join(name for scope in scopes for name in (scope or "").split("/") if name)


def _own(entry: Entry) -> dict[str, Any]:
    """What only CrewAI knows of an entry."""
    return {**(entry.metadata.get(SOURCE) or {})} if entry.source == SOURCE else {}


def _scope_of(entry: Entry) -> str:
    return str(_own(entry).get("scope", "/"))


def _place(own: dict[str, Any]) -> tuple[Any, ...]:
    """What two records must share to be one."""
    return own.get("scope", "/"), own.get("private", False) and [own.get("source")]


def _apart(memory: Memory, text: str, own: dict[str, Any]) -> dict[str, Any]:
    """The fields that keep a text apart from the same one of another place, so that the two are not merged."""
    if (place := _place(own)) == ("/", False):
        return {"kind": "note", "session_id": None, "turn_refs": []}
    stored = memory.engine.scrubbing.stored(checked_scope(memory.scope).home())(text)
    return {"kind": "episode", "session_id": SOURCE, "turn_refs": [hash64(repr((place, stored))) % 2**31]}


def _matches(entry: Entry, path: str, categories: Sequence[str] | None) -> bool:
    within = f"{_scope_of(entry)}/".startswith(f"{path.rstrip('/')}/")
    return within and (not categories or not {*categories}.isdisjoint(entry.tags))


def _record(entry: Entry) -> MemoryRecord:
    own, told = _own(entry), entry.metadata if entry.source == SOURCE else {}
    return MemoryRecord(
        id=entry.id,
        content=entry.text,
        scope=_scope_of(entry),
        categories=entry.tags,
        importance=float(own.get("importance", 0.5)),
        source=own.get("source"),
        private=bool(own.get("private", False)),
        created_at=entry.created_at.replace(tzinfo=None),  # all times of CrewAI are UTC without saying so
        metadata={"date": entry.at.date().isoformat(), **{name: told[name] for name in told if name != SOURCE}},
    )

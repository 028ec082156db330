"""A `Session` of the OpenAI Agents SDK on a memory: the history of a run, and what was said in it as turns.

Every item is a turn of the session, and comes back exactly as it was added. What people and the assistant said can be
recalled and is reflected on; calls of tools and their results are only kept. Needs the extra `openai-agents`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wellworn.core.clock import TimeOrderedIds
from wellworn.core.errors import MissingExtra, NotFound
from wellworn.core.values import Entry, Turn, altered
from wellworn.core.wellformed import clean_text
from wellworn.ingest.scrub import scrubbed_json
from wellworn.ingest.validate import checked_scope
from wellworn.integrations import Faults, checked_memory
from wellworn.memory import Memory

try:
    from agents.memory import SessionSettings
except ModuleNotFoundError as error:
    raise MissingExtra("WellwornSession", "openai-agents") from error

if TYPE_CHECKING:
    from agents import TResponseInputItem

__all__ = ["WellwornSession"]

Item = dict[str, Any]  # one of the SDK's many kinds of items
_SPOKEN = ("user", "assistant")
_ROLES = (*_SPOKEN, "system", "developer")
_EXACT = "item"
"""The key of the metadata that says that the evidence of a turn is an item as JSON."""


class WellwornSession:
    """The history of one conversation, for `Runner.run(…, session=…)`. `memory` is bound: `memory.for_user("ada")`.

    A memory fault never stops the run: it is logged and counted in `faults`, and the run goes on without history.
    """

    def __init__(
        self, memory: Memory, session_id: str | None = None, *, session_settings: SessionSettings | None = None
    ) -> None:
        self.session_id = f"agents-{TimeOrderedIds()()}" if session_id is None else session_id
        self.session_settings = session_settings
        self._memory, self._home = memory, checked_scope(checked_memory(memory).scope).home()
        self._faults = Faults()
        memory.session(self.session_id)  # says now what is wrong with an id

    @property
    def faults(self) -> Counter[str]:
        """How often memory failed so far, by step: `recall`, `store`."""
        return self._faults.counts

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The latest items, oldest first; all without a limit."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await asyncio.to_thread(self._read, limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items in one durable write."""
        await asyncio.to_thread(self._add, [dict(item) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Forget the latest item, and return it."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Forget the conversation and what was derived from it."""
        await asyncio.to_thread(self._clear)

    def _read(self, limit: int | None) -> list[Any]:
        with self._faults.guarded("recall"):
            turns = self._memory.session(self.session_id).turns()
            latest = turns if limit is None else turns[max(0, len(turns) - limit) :]
            entries = self._memory.engine.store.get([self._home], [turn.entry_id for turn in latest if turn.entry_id])
            return [_item_of(turn, entries.get(turn.entry_id or "")) for turn in latest]
        return []

    def _add(self, items: Sequence[Item]) -> None:
        with self._faults.guarded("store"):
            engine, writer = self._memory.engine, self._memory.session(self.session_id).writer
            if engine.scrubbing.on:
                scrub = engine.scrubbing.stored(self._home)
                items = [scrubbed_json(item, scrub) for item in items]
            records = writer.ready([writer.draft(**_turn_of(item)) for item in items])
            writer.write(
                [
                    record if _is_said(item) else replace(record, entry=altered(record.entry, state="pruned"))
                    for item, record in zip(items, records, strict=True)
                ]
            )

    def _pop(self) -> Any:
        latest = next(iter(self._read(1)), None)
        with self._faults.guarded("store"):
            last = self._memory.session(self.session_id).turns()[-1:]
            if last and last[0].entry_id:
                self._memory.forget([last[0].entry_id], turns=True)
        return latest

    def _clear(self) -> None:
        with self._faults.guarded("store"), suppress(NotFound):
            self._memory.forget(session_id=self.session_id)


def _is_said(item: Mapping[str, Any]) -> bool:
    return item.get("role") in _SPOKEN and bool(_text(item).strip())


def _text(item: Mapping[str, Any]) -> str:
    """The words of a message."""
    content = item.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return clean_text("\n".join(text for text in texts if isinstance(text, str)))


def _turn_of(item: Item) -> dict[str, Any]:  # arguments of `TurnWriter.draft`
    role, text = item.get("role"), _text(item)
    known = role if role in _ROLES else "tool"
    if text.strip() and item == {"role": known, "content": text}:
        return {"role": known, "text": text}
    named = " ".join(str(item[key]) for key in ("type", "name", "call_id") if item.get(key))
    return {
        "role": known,
        "text": text if text.strip() else clean_text(named) or "(no text)",
        "evidence": json.dumps(item),
        "metadata": {_EXACT: True},
    }


def _item_of(turn: Turn, entry: Entry | None) -> Item:
    if entry is not None and entry.metadata.get(_EXACT):
        with suppress(ValueError):
            return dict(json.loads(entry.evidence))
    return {"role": turn.role if turn.role in _ROLES else "user", "content": turn.text}

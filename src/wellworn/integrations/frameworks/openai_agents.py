"""A `Session` of the OpenAI Agents SDK on a memory: the history of a run, and what was said in it as turns.

Every item is a turn of the session, and comes back exactly as it was added. What people and the assistant said can be
recalled and is reflected on; calls of tools and their results are only kept. Needs the extra `openai-agents`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from wellworn.core.clock import TimeOrderedIds
from wellworn.core.errors import MissingExtra, NotFound
from wellworn.core.values import Entry, Turn, altered
from wellworn.core.wellformed import clean_text
from wellworn.ingest.scrub import scrubbed_json
from wellworn.ingest.validate import MAX_TEXT_BYTES, checked_scope
from wellworn.integrations import CountsFaults, Faults, checked_memory, off_loop, storable
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
_MORE = "(more of the item before)"
"""The text of a turn whose evidence continues the JSON of a large item, after a `+`: no evidence is blank."""
_PIECE_CHARS = MAX_TEXT_BYTES // 2
"""Of JSON, which is all ASCII. Less than the limit: a scrubber may make it longer."""


class WellwornSession(CountsFaults):
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

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The latest items, oldest first; all without a limit."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await asyncio.to_thread(self._read, limit)

    def _read(self, limit: int | None) -> list[Any]:
        with self._faults.guarded("recall"):
            said = self._turns()
            return self._items(said if limit is None else said[max(0, len(said) - limit) :])
        return []

    def _items(self, said: Sequence[Sequence[Turn]]) -> list[Item]:
        ids = [turn.entry_id for turns in said for turn in turns if turn.entry_id]
        entries = self._memory.engine.store.get([self._home], ids)
        return [_item_of(turns[0], [entries.get(turn.entry_id or "") for turn in turns]) for turns in said]

    def _turns(self) -> list[list[Turn]]:
        """The turns of each item."""
        items: list[list[Turn]] = []
        for turn in self._memory.session(self.session_id).turns():
            if items and (turn.role, turn.text) == ("tool", _MORE):
                items[-1].append(turn)
            else:
                items.append([turn])
        return items

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items in one durable write."""
        await asyncio.to_thread(self._add, [dict(item) for item in items])

    def _add(self, items: Sequence[Item]) -> None:
        with self._faults.guarded("store"):
            writer, scrubbing = self._memory.session(self.session_id).writer, self._memory.engine.scrubbing
            if scrubbing.on:
                items = [scrubbed_json(item, scrubbing.stored(self._home)) for item in items]
            turns = [(turn, _is_said(item) and not n) for item in items for n, turn in enumerate(_turns_of(item))]
            records = writer.ready([writer.draft(**turn) for turn, _ in turns])
            for place, (_, said) in enumerate(turns):
                if not said:
                    records[place] = replace(records[place], entry=altered(records[place].entry, state="pruned"))
            writer.write(records)

    @off_loop
    def pop_item(self) -> TResponseInputItem | None:
        """Forget the latest item that is not forgotten yet, and return it."""
        with self._faults.guarded("store"):
            while left := [turns for turns in self._turns() if any(turn.entry_id for turn in turns)]:
                (item,) = cast("list[TResponseInputItem]", self._items(left[-1:]))
                with suppress(NotFound):  # someone else was first
                    self._memory.forget([turn.entry_id for turn in left[-1] if turn.entry_id], turns=True)
                    return item
        return None

    @off_loop
    def clear_session(self) -> None:
        """Forget the conversation and what was derived from it."""
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


def _turns_of(item: Item) -> list[dict[str, Any]]:  # arguments of `TurnWriter.draft`
    role, text = item.get("role"), storable(_text(item))
    known = role if role in _ROLES else "tool"
    if text.strip() and item == {"role": known, "content": text}:
        return [{"role": known, "text": text}]
    named = " ".join(str(item[key]) for key in ("type", "name", "call_id") if item.get(key))
    first = {"role": known, "text": text if text.strip() else storable(named) or "(no text)"}
    whole, exact = json.dumps(item), {_EXACT: True}
    more = (f"+{whole[start : start + _PIECE_CHARS]}" for start in range(_PIECE_CHARS, len(whole), _PIECE_CHARS))
    return [
        {**first, "evidence": whole[:_PIECE_CHARS], "metadata": exact},
        *({"role": "tool", "text": _MORE, "evidence": piece, "metadata": exact} for piece in more),
    ]


def _item_of(turn: Turn, entries: Sequence[Entry | None]) -> Item:
    exact = [entry for entry in entries if entry is not None and entry.metadata.get(_EXACT)]
    with suppress(ValueError):  # it is in its turn
        return dict(json.loads("".join(entry.evidence.removeprefix("+") for entry in exact)))
    return {"role": turn.role if turn.role in _ROLES else "user", "content": turn.text}

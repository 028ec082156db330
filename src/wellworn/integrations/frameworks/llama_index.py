"""A memory block of LlamaIndex: what leaves its short-term memory is stored, and what answers the last message comes back.

Needs the extra `llama-index`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wellworn.core.errors import MissingExtra
from wellworn.core.fence import MIN_CONFIDENCE
from wellworn.ingest.validate import MAX_QUERY_CHARS, checked_k, checked_scope
from wellworn.integrations import CountsFaults, Faults, checked_memory, off_loop, storable
from wellworn.integrations.loop import format_memory_context
from wellworn.memory import Memory

try:
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import BaseMemoryBlock
except ModuleNotFoundError as error:
    raise MissingExtra("WellwornMemoryBlock", "llama-index") from error

__all__ = ["WellwornMemoryBlock"]

_SPOKEN = {"user": "user", "assistant": "assistant", "model": "assistant", "chatbot": "assistant"}
"""What people and models say, by the roles of LlamaIndex."""


class WellwornMemoryBlock(CountsFaults, BaseMemoryBlock[str]):  # type: ignore[misc]  # not installed where types are checked
    """A block for `Memory.from_defaults(memory_blocks=[…])`. `memory` is bound: `memory.for_user("ada")`.

    A memory fault never stops the agent: it is logged and counted in `faults`, and the block is empty.
    """

    name: str = "wellworn"
    k: int = 5
    session_id: str = "llama-index"
    """The dialogue of messages that come without a session."""
    _memory: Memory = PrivateAttr()
    _faults: Faults = PrivateAttr(default_factory=Faults)

    def __init__(self, memory: Memory, **fields: Any) -> None:
        super().__init__(**fields)
        checked_k(self.k)
        checked_scope(checked_memory(memory).scope)
        self._memory = memory

    async def _aget(self, messages: Sequence[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        asked = [text for message in messages or () if message.role == "user" and (text := _text(message)).strip()]
        return await self._recalled(asked[-1][:MAX_QUERY_CHARS]) if asked else ""

    @off_loop
    def _recalled(self, query: str) -> str:
        with self._faults.guarded("recall"):
            hits = self._memory.recall(query, k=self.k, min_confidence=MIN_CONFIDENCE).hits
            return format_memory_context(hits, now=self._memory.engine.clock())
        return ""

    async def _aput(self, messages: Sequence[ChatMessage]) -> None:
        await self._stored(list(messages))

    @off_loop
    def _stored(self, messages: list[ChatMessage]) -> None:
        with self._faults.guarded("store"):
            for session_id in dict.fromkeys(self._session_of(message) for message in messages):
                own = [one for one in messages if self._session_of(one) == session_id and one.role.value in _SPOKEN]
                turns = [(_SPOKEN[one.role.value], text) for one in own if (text := _text(one)).strip()]
                self._memory.session(session_id).add_turns(turns)

    def _session_of(self, message: ChatMessage) -> str:
        return str(message.additional_kwargs.get("session_id") or self.session_id)


def _text(message: ChatMessage) -> str:
    return storable(message.content or "")

"""Where memories come from and go to, as the middleware sees it; and the bank that an open `Memory` is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from wellworn.core.clock import Clock, aware, system_clock
from wellworn.core.errors import NotFound
from wellworn.core.fence import fenced_block
from wellworn.core.values import Entry, fence_item
from wellworn.ingest.validate import MAX_QUERY_CHARS
from wellworn.integrations.exchange import keep_exchange
from wellworn.integrations.rmm.context import Person
from wellworn.integrations.rmm.dialogue import Said
from wellworn.memory import Memory

_TAG = "conversation"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What was recalled for a question, ready to be shown."""

    recall: str
    ids: tuple[str, ...]
    """The memories, those in the block first."""
    block: str
    shown: int
    at: datetime


class Bank(Protocol):
    """The person comes with every call: a bank keeps people apart."""

    def recall(self, person: Person, question: str, *, except_session: str | None) -> Found:
        """The memories that may help, reranked and as a block; none of a session that the model has before it."""
        ...

    def show_again(self, person: Person, ids: Sequence[str], shown: int) -> str:
        """The block of a recall that this process does not know, from the ids of its memories."""
        ...

    def learn(
        self, person: Person, question: str, recall: str, ids: Sequence[str], shown: int, cited: Sequence[int]
    ) -> None:
        """The answer cited these places of what was shown, and not the others."""
        ...

    def keep(self, person: Person, session_id: str, turns: Sequence[Said]) -> None:
        """These turns of a session were said."""
        ...

    def end(self, person: Person, session_id: str, turns: Sequence[Said]) -> None:
        """The session ends; `turns` is as much of it as is at hand. What was said becomes memories, once."""
        ...


class MemoryBank:
    """A `Memory`: turns are kept as they are said, recall ranks by what it has learned, reflection is a durable job."""

    def __init__(
        self, memory: Memory, *, top_m: int, max_tokens: int, min_score: float | None, clock: Clock = system_clock
    ) -> None:
        self._memory = memory
        self._top_m = top_m
        self._max_tokens = max_tokens
        self._min_score = min_score
        self._clock = aware(clock)

    def recall(self, person: Person, question: str, *, except_session: str | None) -> Found:
        found = self._memory.recall(
            question[:MAX_QUERY_CHARS],
            scope=person.scope,
            k=self._top_m,
            min_score=self._min_score,
            except_session=except_session,
        )
        block, shown = rendered([hit.entry for hit in found.hits], max_tokens=self._max_tokens)
        return Found(
            recall=found.id, ids=tuple(hit.entry.id for hit in found.hits), block=block, shown=shown, at=self._clock()
        )

    def show_again(self, person: Person, ids: Sequence[str], shown: int) -> str:
        entries = [self._memory.get(id, scope=person.scope) for id in ids[:shown]]
        return rendered(entries, max_tokens=self._max_tokens)[0]

    def learn(
        self, person: Person, question: str, recall: str, ids: Sequence[str], shown: int, cited: Sequence[int]
    ) -> None:
        if shown < len(ids):  # some did not fit: that they were not cited says nothing
            return
        with suppress(NotFound):  # learning is off, or the recall was forgotten meanwhile
            self._memory.outcome(recall, cited=cited, scope=person.scope)

    def keep(self, person: Person, session_id: str, turns: Sequence[Said]) -> None:
        if turns:
            session = self._memory.session(scope=person.scope, session_id=session_id)
            spoken = [(turn.role, turn.text) for turn in turns]
            keep_exchange(self._memory, session, spoken, scope=person.scope, tags=[_TAG])

    def end(self, person: Person, session_id: str, turns: Sequence[Said]) -> None:
        with suppress(NotFound):  # nothing was said yet
            self._memory.session(scope=person.scope, session_id=session_id).end()


def rendered(entries: Sequence[Entry], *, max_tokens: int) -> tuple[str, int]:
    """The block, and how many of the entries are in it: always the first ones, one on a line."""
    block = fenced_block([fence_item(entry) for entry in entries], max_tokens=max_tokens)
    return block, max(0, block.count("\n") - 1)

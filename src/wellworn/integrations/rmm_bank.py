"""The memory bank that the LangChain middleware calls, on a `Memory`, and the values that it deals in.

Knows no framework. `rmm_parts` has a bank with the same methods on a user's own LangChain parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from typing_extensions import TypedDict

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.fence import fenced_block
from wellworn.core.values import Entry, Scope, fence_item
from wellworn.ingest.validate import MAX_QUERY_CHARS
from wellworn.integrations import Faults
from wellworn.memory import Memory

_EVERYTHING = 1_000_000


@dataclass(kw_only=True)
class RMMContext:
    """Give it as `context_schema` to `create_agent`, and a mapping of these fields as `context` to each run.

    A schema of your own works too if it has a `user_id`.
    """

    user_id: str
    is_session_end: bool = False
    """Whether the session becomes memories after this run."""
    session_id: str | None = None
    """Names the dialogue (default: the id of the thread)."""
    tenant: str | None = None
    """Overrides the tenant of the middleware."""


def user_of(user_id: object, tenant: str) -> Scope:
    """Return the scope of a user, or raise an error that says how a run names its user."""
    if not isinstance(user_id, str) or not user_id.strip():
        remedy = "give context={'user_id': …} or config={'configurable': {'user_id': …}} to the run"
        raise InvalidInput("user_id", f"{user_id!r} is not a user", remedy)
    return Scope(tenant=tenant, user=user_id)


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """One turn of a dialogue."""

    role: str
    text: str


class Retrieved(TypedDict):
    """The memories recalled for a question, those shown first. The agent's state holds it."""

    id: str
    at: datetime
    ids: list[str]
    shown: int
    nothing: bool
    """Whether the model is told that nothing relevant is remembered."""


class WellwornBank:
    """A memory bank on a `Memory`: turns are stored as they are said, recall learns, reflection runs in the background.

    Every call names its user, and no call sees another user's memories.
    """

    def __init__(self, memory: Memory, *, top_m: int, max_tokens: int, min_confidence: float) -> None:
        self.faults = Faults()
        self._memory = memory
        self._top_m = top_m
        self._max_tokens = max_tokens
        self._min_confidence = min_confidence

    def recall(self, user: Scope, question: str, *, except_session: str | None) -> Retrieved:
        """Find and rank memories for a question, without those of a session that the model already sees."""
        found = self._memory.recall(
            question[:MAX_QUERY_CHARS],
            scope=user,
            k=self._top_m,
            min_confidence=self._min_confidence,
            except_session=except_session,
        )
        return Retrieved(
            id=found.id,
            at=self._memory.engine.clock(),
            ids=[hit.entry.id for hit in found.hits],
            shown=found.shown(max_tokens=self._max_tokens),
            nothing=self._min_confidence > 0 and found.searched > 0 and not found.hits,
        )

    def block(self, user: Scope, recalled: Retrieved) -> str:
        """Return the block that shows the memories of a recall, the same in a later process."""
        entries = [self._memory.get(id, scope=user) for id in recalled["ids"][: recalled["shown"]]]
        return block_of(entries, max_tokens=self._max_tokens, now=recalled["at"])

    def learn(self, user: Scope, question: str, recalled: Retrieved, cited: Sequence[int]) -> None:
        """Learn that the answer cited these places of the block, and not the others."""
        if recalled["shown"] < len(recalled["ids"]):  # some did not fit: that they were not cited says nothing
            return
        with suppress(NotFound):  # learning is off, or the recall was forgotten
            self._memory.outcome(recalled["id"], cited=cited, scope=user)

    def add_turns(self, user: Scope, session_id: str, turns: Sequence[Utterance]) -> None:
        """Store turns of a session."""
        session = self._memory.session(session_id, scope=user)
        session.add_turns([(turn.role, turn.text) for turn in turns], tags=["conversation"])

    def end(self, user: Scope, session_id: str) -> None:
        """End a session: what was said becomes memories, once."""
        with suppress(NotFound):  # nothing was said yet
            self._memory.session(session_id, scope=user).end()

    def entries(self, user: Scope) -> list[Entry]:
        """What is remembered of a user, the turns of dialogues included."""
        return self._memory.entries(scope=user, layer="user", limit=_EVERYTHING)

    def forget(self, user: Scope, ids: Sequence[str] | None) -> int:
        """Remove memories of a user for good; without ids all of them."""
        return self._memory.forget(ids, everything=ids is None, scope=user).entries

    def rebuild(self, user: Scope) -> int:
        """Do nothing: a `Memory` keeps its own index, and `wellworn doctor` mends it."""
        return len(self.entries(user))


def block_of(entries: Sequence[Entry], *, max_tokens: int, now: datetime) -> str:
    """Return the block, one entry on a line; what does not hold any more is marked."""
    items = [fence_item(one, outdated=one.valid_to is not None and one.valid_to <= now) for one in entries]
    return fenced_block(items, max_tokens=max_tokens)

"""The memory bank that the LangChain middleware calls, on a `Memory`, and the values that it deals in.

Knows no framework. `rmm_parts` has a bank with the same methods on a user's own LangChain parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.fence import fenced_block
from wellworn.core.values import Entry, Scope, fence_item
from wellworn.ingest.validate import MAX_QUERY_CHARS
from wellworn.integrations.support import Faults
from wellworn.memory import Memory


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


@dataclass(frozen=True, kw_only=True)
class RMMUser:
    """Whose memories a call reads and writes."""

    tenant: str
    user: str

    @property
    def key(self) -> str:
        """A short text that identifies this user in the agent's state."""
        return blake2b(f"{self.tenant}\x1f{self.user}".encode(), digest_size=12).hexdigest()

    @property
    def scope(self) -> Scope:
        return Scope(tenant=self.tenant, user=self.user)


def user_of(context: object, *, tenant: str) -> RMMUser:
    """Return the user that a run's context names, or raise an error that says how to name one."""
    user = field_of(context, "user_id")
    if not isinstance(user, str) or not user.strip():
        raise InvalidInput("context.user_id", f"{user!r} is not a user", "give context={'user_id': …} to the run")
    named = RMMUser(tenant=field_of(context, "tenant") or tenant, user=user)
    named.scope.home()  # raises for a name that no scope accepts
    return named


def field_of(context: object, name: str) -> Any:  # the context is the caller's own: a mapping, dataclass or model
    """Return a field of a context, or None if it has no such field."""
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """One turn of a dialogue, as the agent's messages hold it."""

    role: str
    text: str
    message_id: str


@dataclass(frozen=True, kw_only=True)
class Retrieved:
    """The memories recalled for a question, with the block that shows the first of them."""

    recall_id: str
    ids: list[str]
    """Those in the block come first."""
    block: str
    shown: int


class WellwornBank:
    """A memory bank on a `Memory`: turns are stored as they are said, recall learns, reflection runs in the background.

    Every call names its user, and no call sees another user's memories.
    """

    def __init__(self, memory: Memory, *, top_m: int, max_tokens: int, min_score: float | None) -> None:
        self.faults = Faults()
        self._memory = memory
        self._top_m = top_m
        self._max_tokens = max_tokens
        self._min_score = min_score

    def recall(self, user: RMMUser, question: str, *, except_session: str | None) -> Retrieved:
        """Find and rank memories for a question, without those of a session that the model already sees."""
        found = self._memory.recall(
            question[:MAX_QUERY_CHARS],
            scope=user.scope,
            k=self._top_m,
            min_score=self._min_score,
            except_session=except_session,
        )
        entries = [hit.entry for hit in found.hits]
        block, shown = rendered(entries, max_tokens=self._max_tokens)
        return Retrieved(recall_id=found.id, ids=[entry.id for entry in entries], block=block, shown=shown)

    def show_again(self, user: RMMUser, ids: Sequence[str]) -> str:
        """Rebuild the block of an earlier recall from the ids it showed, in a process that does not have it."""
        entries = [self._memory.get(id, scope=user.scope) for id in ids]
        return rendered(entries, max_tokens=self._max_tokens)[0]

    def learn(self, user: RMMUser, question: str, recalled: Retrieved, cited: Sequence[int]) -> None:
        """Learn that the answer cited these places of the block, and not the others."""
        if recalled.shown < len(recalled.ids):  # some did not fit: that they were not cited says nothing
            return
        with suppress(NotFound):  # learning is off, or the recall was forgotten
            self._memory.outcome(recalled.recall_id, cited=cited, scope=user.scope)

    def store(self, user: RMMUser, session_id: str, turns: Sequence[Utterance]) -> None:
        """Store turns of a session."""
        session = self._memory.session(session_id, scope=user.scope)
        session.add_turns([(turn.role, turn.text) for turn in turns], tags=["conversation"])

    def end(self, user: RMMUser, session_id: str, turns: Sequence[Utterance]) -> None:
        """End a session, given the turns that the agent's state holds: what was said becomes memories, once."""
        with suppress(NotFound):  # nothing was said yet
            self._memory.session(session_id, scope=user.scope).end()


def rendered(entries: Sequence[Entry], *, max_tokens: int) -> tuple[str, int]:
    """Return the block, one entry on a line, and how many of the entries it shows: always the first ones."""
    block = fenced_block([fence_item(entry) for entry in entries], max_tokens=max_tokens)
    return block, max(0, block.count("\n") - 1)

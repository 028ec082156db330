"""The memory bank that the LangChain middleware calls, on a `Memory`, and the values that it deals in.

Knows no framework. `rmm_parts` has a bank with the same methods on a user's own LangChain parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b

from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.fence import fenced_block
from wellworn.core.values import Entry, Scope, fence_item
from wellworn.ingest.validate import MAX_QUERY_CHARS
from wellworn.integrations.support import Faults
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


def user_of(user_id: object, tenant: str) -> RMMUser:
    """Return the user with this id, or raise an error that says how a run names its user."""
    if not isinstance(user_id, str) or not user_id.strip():
        remedy = "give context={'user_id': …} or config={'configurable': {'user_id': …}} to the run"
        raise InvalidInput("user_id", f"{user_id!r} is not a user", remedy)
    named = RMMUser(tenant=tenant, user=user_id)
    named.scope.home()  # raises for a name that no scope accepts
    return named


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
        return Retrieved(
            recall_id=found.id,
            ids=[hit.entry.id for hit in found.hits],
            block=found.context(max_tokens=self._max_tokens),
            shown=found.shown(max_tokens=self._max_tokens),
        )

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

    def end(self, user: RMMUser, session_id: str, turns: Sequence[Utterance], *, wait: bool = False) -> None:
        """End a session, given the turns that the agent's state holds: what was said becomes memories, once."""
        with suppress(NotFound):  # nothing was said yet
            self._memory.session(session_id, scope=user.scope).end()

    def entries(self, user: RMMUser) -> list[Entry]:
        """What is remembered of a user, the turns of dialogues included."""
        return self._memory.entries(scope=user.scope, layer="user", limit=_EVERYTHING)

    def forget(self, user: RMMUser, ids: Sequence[str] | None) -> int:
        """Remove memories of a user for good; without ids all of them."""
        return self._memory.forget(ids, everything=ids is None, scope=user.scope).entries

    def rebuild(self, user: RMMUser) -> int:
        """Do nothing: a `Memory` keeps its own index, and `wellworn doctor` mends it."""
        return len(self.entries(user))


def rendered(entries: Sequence[Entry], *, max_tokens: int) -> tuple[str, int]:
    """Return the block, one entry on a line, and how many of the entries it shows: always the first ones."""
    block = fenced_block([fence_item(entry) for entry in entries], max_tokens=max_tokens)
    return block, max(0, block.count("\n") - 1)

"""A dialogue as it happens: raw turns kept as ground truth, each an episode entry that can be recalled at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from recollect.errors import InvalidInput
from recollect.ingest.hashing import content_hash, thread_of
from recollect.ingest.remember import Writer, keep
from recollect.ingest.times import TimeLike
from recollect.ingest.validate import Draft, check, checked_line, checked_session_id
from recollect.stores.base import Store
from recollect.types import Entry, Scope, Turn

GENERIC_ROLES = frozenset({"user", "human", "assistant", "ai", "system", "tool", "function", "model"})
_NAME_LIKE = re.compile(r"[^\W\d_]{2,}(?:[ '’.-][^\W\d_]+){0,3}")


class Session:
    """One dialogue of a scope. Made by `Memory.session`; adding a turn is durable when `add` returns."""

    def __init__(self, writer: Writer, store: Store, *, scope: Scope, session_id: str) -> None:
        self._writer = writer
        self._store = store
        self._scope = scope
        self._shelf = scope.home()
        self.id = checked_session_id(session_id)

    def add(self, role: str, text: str, *, at: TimeLike = None, speaker: str | None = None, trust: str = "trusted",
            tags: Sequence[str] = ()) -> str:  # fmt: skip
        """Add a turn and return the id of its episode entry, whose `turn_refs` hold the turn's number.

        `role` is `user`, `assistant`, … or the speaker's own name. Turns count from 0. `at` is when it was said.
        """
        now = self._writer.clock()
        role = checked_line("role", role)
        if not role.strip():
            raise InvalidInput("role", "is empty", "use 'user', 'assistant' or a name")
        draft = Draft(
            text=text, kind="episode", session_id=self.id, speaker=speaker or self._speaker(role), source=role,
            trust=trust, at=at, tags=tags,
        )  # fmt: skip
        checked = self._writer.scrub(check(draft, self._scope, now))
        thread = thread_of("session", self.id)
        entry = self._writer.entry_of(checked, now, thread=thread)
        record = self._writer.records_of([entry])[0]  # neither index nor vector depends on the turn's number
        with self._writer.transact() as tx:
            number = tx.open_session(self._shelf, self.id, entry.at)
            numbered = replace(entry, turn_refs=[number], position=number)
            entry = replace(numbered, content_hash=content_hash(numbered))
            kept = keep(tx, replace(record, entry=entry), now)
            tx.add_turn(self._shelf, _turn_of(replace(entry, id=kept), number, role))
        return kept

    def turns(self) -> list[Turn]:
        """Every turn so far, verbatim, in order."""
        return self._store.turns(self._shelf, self.id)

    def _speaker(self, role: str) -> str | None:
        """Who speaks in this role: a name given as role, or the scope's user when its id reads like a name."""
        if role.strip().lower() not in GENERIC_ROLES:
            return role
        user = self._scope.user
        if role.strip().lower() in ("user", "human") and user and _NAME_LIKE.fullmatch(user):
            return user
        return None


def _turn_of(entry: Entry, number: int, role: str) -> Turn:
    return Turn(
        session_id=entry.session_id or "", number=number, role=role, text=entry.text, at=entry.at,
        speaker=entry.speaker, entry_id=entry.id,
    )  # fmt: skip

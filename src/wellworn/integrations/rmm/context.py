"""Whose turn it is, from the context of a run: the user, the tenant, the session, and whether the session ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from wellworn.core.errors import InvalidInput
from wellworn.core.values import Scope


@dataclass(kw_only=True)
class RMMContext:
    """Give it as `context_schema` to `create_agent`, and a mapping of these fields as `context` to each run.

    A schema of your own serves as well, if it has a `user_id`.
    """

    user_id: str
    is_session_end: bool = False
    """What was said becomes memories when this run is done."""
    session_id: str | None = None
    """The dialogue; the thread's id if None."""
    tenant: str | None = None
    """Where it differs from the middleware's own."""


@dataclass(frozen=True, kw_only=True)
class Person:
    """Whose memories are read and written: nothing else reaches a bank."""

    tenant: str
    user: str

    @property
    def mark(self) -> str:
        """A short word that is this person's alone."""
        return blake2b(f"{self.tenant}\x1f{self.user}".encode(), digest_size=12).hexdigest()

    @property
    def scope(self) -> Scope:
        return Scope(tenant=self.tenant, user=self.user)


def person_of(context: object, *, tenant: str) -> Person:
    """The person a context names; an error that says how to name one, if it does not."""
    user = field_of(context, "user_id")
    if not isinstance(user, str) or not user.strip():
        raise InvalidInput("context.user_id", f"{user!r} is no user", "give context={'user_id': …} to the run")
    named = Person(tenant=field_of(context, "tenant") or tenant, user=user)
    named.scope.home()  # a name that no scope takes is told here
    return named


def field_of(context: object, name: str) -> Any:  # Any: of whatever make the user's context is
    """A field of a context that is a mapping, a dataclass or a model; None where it has none of that name."""
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)

"""A question, its answer and what the answer cited, in one durable write: one sync of the disk instead of three."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from wellworn.core.errors import NotFound
from wellworn.core.values import Entry, Scope
from wellworn.ingest.session import Session
from wellworn.learning.learner import Learner
from wellworn.learning.outcome import outcome_input
from wellworn.memory import Memory
from wellworn.store.port import Tx, Vector


@dataclass(frozen=True, kw_only=True)
class Cited:
    """Places that an answer cites, of a recall."""

    recall_id: str
    places: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Numbers of the turns that were written, and whether the citation was settled with them."""

    turns: tuple[int, ...]
    settled: bool


def keep_exchange(
    memory: Memory,
    session: Session,
    said: Sequence[tuple[str, str]],
    *,
    scope: Scope,
    tags: Sequence[str] = (),
    cited: Cited | None = None,
) -> Kept:
    """Write what was said, as pairs of role and text, and tell the outcome with it.

    Turns go before learning: when the outcome cannot be told, the turns are written without it, and it is not settled.
    A recall that nobody knows (any more) has nothing to teach: that is settled.
    """
    records = session.writer.ready([session.writer.draft(role, text, tags=tags) for role, text in said])
    if cited is None:
        return Kept(turns=_numbers(session.writer.write(records)), settled=False)
    telling = _Telling(memory.engine.learner, cited, scope.tenant)
    try:
        telling.prepare()
        written = session.writer.write(records, along=telling)
    except Exception:
        if not telling.failed:
            raise
        return Kept(turns=_numbers(session.writer.write(records)), settled=False)
    telling.committed()
    return Kept(turns=_numbers(written), settled=True)


class _Telling:
    """An outcome on its way into someone's transaction. `failed`: it was the outcome that could not be told."""

    def __init__(self, learner: Learner, cited: Cited, tenant: str) -> None:
        self._learner = learner
        self._recall_id = cited.recall_id
        self._told = outcome_input(cited=cited.places)
        self._tenant = tenant
        self._query: Vector | None = None
        self.failed = False
        self.committed: Callable[[], None] = _nothing

    def prepare(self) -> None:
        self.failed = True
        self._query = self._learner.prepare(self._recall_id, self._told)
        self.failed = False

    def __call__(self, tx: Tx) -> None:
        self.failed = True
        with suppress(NotFound):  # learning is off, or the recall was forgotten meanwhile
            _, self.committed = self._learner.outcome_in(
                tx, self._recall_id, self._told, tenant=self._tenant, query=self._query
            )
        self.failed = False


def _numbers(turns: Sequence[Entry]) -> tuple[int, ...]:
    return tuple(turn.turn_refs[0] for turn in turns)


def _nothing() -> None:
    pass

"""What goes over the wire, for the server and the client alike: answers, and errors as problem documents (RFC 9457).

A problem carries the text of our error, unless a store wrote it, its class and its fields, so that the client raises the
error that a local memory would raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from wellworn.core import errors
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import NotFound, ServiceFailed, StoreError, WellwornError
from wellworn.core.values import Entry, Hit, Job, Link, Turn, Version
from wellworn.models.ledger import Spent
from wellworn.reflection import Reflection
from wellworn.store.events import Event
from wellworn.tasks import Task

PROBLEM = "application/problem+json"
RETRY_AFTER_S = 1
_STATUS: dict[int, tuple[type[WellwornError], ...]] = {
    403: (errors.AccessDenied,),
    404: (NotFound,),
    409: (errors.Conflict,),
    422: (errors.InvalidInput, errors.TransferError),
    429: (errors.BudgetExceeded,),
    501: (errors.MissingExtra,),
    502: (errors.EmbeddingFailed, errors.ModelFailed),
    503: (errors.StoreBusy, errors.StoreClosed, errors.StoreUnreachable, ServiceFailed),
}
_FIELDS = ("field", "problem", "remedy", "what", "name", "status", "retry_after_s", "retryable")
_REMEDIES = {
    "task under way": "begin it first: POST /v1/tasks",
    "dead job": "GET /v1/jobs?state=dead lists them",
    "key": "GET /v1/keys lists them",
}


def status_of(error: WellwornError) -> int:
    """The HTTP status of an error: its own, or that of its class."""
    own = getattr(error, "status", None)
    if isinstance(own, int):
        return own
    return next((status for status, kinds in _STATUS.items() if isinstance(error, kinds)), 500)


def problem_of(error: WellwornError) -> dict[str, Any]:
    """The error as a problem document."""
    error = error.told(_REMEDIES) if isinstance(error, NotFound) else error
    told = {name: value for name in _FIELDS if (value := getattr(error, name, None)) not in (None, "")}
    public = next(kind.__name__ for kind in type(error).__mro__ if hasattr(errors, kind.__name__))
    return {**told, **problem(status_of(error), words_of(error), public)}


def words_of(error: WellwornError) -> str:
    """What a caller is told. The words of a store are for the log: they name paths, hosts and users."""
    if not isinstance(error, StoreError):
        return str(error)
    if status_of(error) == 503:
        return "the store is busy or cannot be reached (try again)"
    return (
        "the store failed: a write may or may not have been kept (read before you write it again; see the server's log)"
    )


def problem(status: int, detail: str, kind: str) -> dict[str, Any]:
    """A problem document; `kind` is the name of the error's class."""
    return {"type": f"urn:wellworn:{kind}", "title": kind, "status": status, "detail": detail}


def error_of(status: int, document: Mapping[str, Any]) -> WellwornError:
    """The error that a problem document describes; `ServiceFailed` for one that we do not know."""
    detail = str(document.get("detail") or f"the service answered with status {status}")
    kind = getattr(errors, str(document.get("title")), None)
    if not isinstance(kind, type) or not issubclass(kind, WellwornError):
        return ServiceFailed(detail, status=status)
    error: WellwornError = kind.__new__(kind)  # its own constructor would word the message again
    WellwornError.__init__(error, detail)
    for name in _FIELDS:
        if name in document:
            setattr(error, name, document[name])
    return error


# -- answers that hold more than one value -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class EntryIds:
    ids: list[str]


@dataclass(frozen=True, kw_only=True)
class EntryPage:
    entries: list[Entry]
    next: str | None
    """Give it as `cursor` to read on; null: this is the last page."""


@dataclass(frozen=True, kw_only=True)
class VersionList:
    versions: list[Version]


@dataclass(frozen=True, kw_only=True)
class LinkList:
    links: list[Link]


@dataclass(frozen=True, kw_only=True)
class Done:
    done: bool
    """False: there was nothing to do, or it had been done before."""


@dataclass(frozen=True, kw_only=True)
class PromptContext:
    recall_id: str
    text: str
    """Put it before the message, for one call of the model; empty when nothing was ever remembered."""
    shown: int
    """How many memories may be cited, numbered from 0. Give it back with the answer."""


@dataclass(frozen=True, kw_only=True)
class ReadAnswer:
    text: str
    """The answer without its citations."""
    cited: tuple[int, ...] | None
    """Places of the memories that it rests on; null when it teaches nothing."""


@dataclass(frozen=True, kw_only=True)
class SessionPage:
    sessions: list[str]
    next: str | None
    """Give it as `cursor` to read on; null: this is the last page."""


@dataclass(frozen=True, kw_only=True)
class TurnList:
    turns: list[Turn]


@dataclass(frozen=True, kw_only=True)
class EntryList:
    entries: list[Entry]


@dataclass(frozen=True, kw_only=True)
class SessionEnd:
    job: Job | None
    """What turns the session into memories; null when there is nothing left to read."""


@dataclass(frozen=True, kw_only=True)
class ReflectionList:
    reflections: list[Reflection]


@dataclass(frozen=True, kw_only=True)
class TaskStart:
    """A task under way, and what earlier ones taught that helps with it."""

    id: str
    """Of this attempt."""
    task_id: str
    recall_id: str
    hits: list[Hit]


@dataclass(frozen=True, kw_only=True)
class TaskEnd:
    """How a task went, and what it taught."""

    id: str
    task_id: str
    outcome: str
    """`success`, `failure`, or `unsure`, from which nothing is learned."""
    items: list[Entry]


@dataclass(frozen=True, kw_only=True)
class TaskList:
    tasks: list[Task]


@dataclass(frozen=True, kw_only=True)
class ItemList:
    items: list[Entry]


@dataclass(frozen=True, kw_only=True)
class EventList:
    events: list[Event]


@dataclass(frozen=True, kw_only=True)
class JobList:
    jobs: list[Job]


@dataclass(frozen=True, kw_only=True)
class Counted:
    count: int


@dataclass(frozen=True, kw_only=True)
class SpentList:
    spent: list[Spent]


@dataclass(frozen=True, kw_only=True)
class LearnedState:
    learned: dict[str, Any]
    """Numbers only."""


@dataclass(frozen=True, kw_only=True)
class KeyInfo:
    """An API key without its secret."""

    id: str
    tenant: str
    role: str
    name: str
    layers: dict[str, list[str]]
    """Ids per layer that it is bound to; empty: the whole tenant."""
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class KeyList:
    keys: list[KeyInfo]


@dataclass(frozen=True, kw_only=True)
class NewKey:
    key: str
    """The text of the key. Nobody can read it again."""
    info: KeyInfo


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What went wrong: `title` is the class of the error, `detail` its text."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    remedy: str | None = None
    retry_after_s: float | None = None

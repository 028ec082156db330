"""What each verb of `Memory` asks of the service: one table, for `Client` and `AsyncClient` alike.

A verb is a generator. It yields the requests that it needs, is sent their answers, and returns what the verb of `Memory`
returns. It knows nothing of connections. The names of parameters, their types and their documentation are those of
`Memory`: none is written again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Concatenate, ParamSpec, Protocol, TypeVar
from urllib.parse import quote

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, ServiceFailed, TransferError
from wellworn.core.lazy import regex
from wellworn.core.values import Entry, LearningStatus, Link, Progress, Reasoning, Recall, Receipt, Stats
from wellworn.ingest.session import Session
from wellworn.ingest.validate import (
    TimeLike,
    checked_count,
    checked_groups,
    checked_id,
    checked_metadata,
    checked_path,
    checked_progress,
    checked_turns,
    drafts_of,
    of_item,
    shown,
)
from wellworn.memory import Memory
from wellworn.ops.doctor import Report
from wellworn.ops.files import beside, notes_of
from wellworn.ops.retention import Expired, RetentionPolicy, SignedReceipt, checked_policy
from wellworn.ops.transfer import Loaded, Written
from wellworn.reflection import Reflection
from wellworn.server import wire
from wellworn.tasks.bank import DEFAULT_K, MIN_CONFIDENCE
from wellworn.tasks.tasks import Task
from wellworn.tasks.trajectory import trajectory_of
from wellworn.views import AdminView, JobsView, LearningView

PAGE = 1000
P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
_PLACE = regex(r"{(\w+)}")


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request."""

    method: str
    path: str
    answer: Any  # the type of the answer
    query: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | BinaryIO | None = None
    type: str = "application/json"
    once: bool = False
    """A write that is made once, however often it is sent."""
    sink: Callable[[bytes], object] | None = None
    """Takes the bytes of a long answer as they come; the headers are the answer then."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """The arguments of a call."""

    said: dict[str, Any]
    """What the caller said."""
    all: dict[str, Any]
    """The same with the defaults of the verb."""


Flow = Generator[Ask, Any, T]
Verb = Callable[[Given], Flow[Any]]
Sends = Callable[[Given], Mapping[str, Any]]
VERBS: dict[Callable[..., Any], Verb] = {}
"""By the method of `Memory`, or of what a memory gives, that does the same here."""


def verb(
    method: Callable[Concatenate[Any, P], T],
) -> Callable[[Callable[[Given], Flow[T]]], Callable[[Given], Flow[T]]]:
    """Register a verb that needs more than one request, or work of its own."""

    def register(flow: Callable[[Given], Flow[T]]) -> Callable[[Given], Flow[T]]:
        VERBS[method] = flow
        return flow

    return register


def route(
    method: Callable[Concatenate[Any, P], T],
    line: str,
    answer: type[A],
    read: Callable[[A], T] | None = None,
    *,
    once: bool = True,
    sends: Sends = lambda given: given.said,
) -> None:
    """Register a verb that is one request. What it `sends` and the path does not name goes into the query or the body."""

    def flow(given: Given) -> Flow[Any]:
        found = yield asked(line, sends(given), answer, once=once)
        return found if read is None else read(found)

    VERBS[method] = flow


def asked(line: str, values: Mapping[str, Any], answer: type[Any], *, once: bool = True) -> Ask:
    """A request such as `GET /v1/entries/{id}` with these values."""
    method, _, path = line.partition(" ")
    names = set(_PLACE.findall(path))
    path = _PLACE.sub(lambda found: part(values[found[1]]), path)
    rest = {name: value for name, value in values.items() if name not in names}
    if method in ("GET", "DELETE"):
        query = {name: value if value not in ([], ()) else "" for name, value in rest.items() if value is not None}
        return Ask(method=method, path=path, answer=answer, query=query, once=once and method == "DELETE")
    return Ask(method=method, path=path, answer=answer, content=encoded(rest), once=once)


# -- remember and recall -----------------------------------------------------------------------------------------------

route(Memory.remember, "POST /v1/entries", wire.EntryIds, lambda found: found.ids)
route(Memory.recall, "POST /v1/recall", Recall, once=False)
route(Memory.reason, "POST /v1/reason", Reasoning, once=False)
route(Memory.outcome, "POST /v1/recalls/{recall_id}/outcome", wire.Done, lambda found: found.done)


@verb(Memory.remember_many)
def remember_many(given: Given) -> Flow[list[str]]:
    items, progress = given.said.pop("items"), checked_progress(given.said.pop("progress", None))
    drafts, lines = drafts_of(items, given.said), list[bytes]()
    for number, draft in enumerate(drafts):
        try:
            lines.append(encoded(asdict(draft)))
        except InvalidInput as error:
            raise of_item(error, number, len(drafts)) from None
    events = _Events(progress)
    kind = "application/x-ndjson"
    yield Ask(method="POST", path="/v1/import", answer=None, content=b"\n".join(lines), type=kind, sink=events)
    if events.ids is None:
        raise ServiceFailed("the connection broke; the import goes on (send it again to see its ids)")
    return events.ids


@verb(Memory.assemble)
def assemble(given: Given) -> Flow[Any]:
    from wellworn.search.assemble import assemble, checked_budget

    budget, sources = given.all["max_tokens"], given.all["sources"]
    checked_budget(budget)
    if not isinstance(sources, Sequence) or not all(isinstance(one, Recall) for one in sources):
        raise InvalidInput("sources", "is not a list of recalls", "as in sources=[memory.recall(…)]")
    said = {"k": given.all["k"], **given.said}
    wanted = {name: value for name, value in said.items() if name not in ("max_tokens", "sources")}
    found: Recall = yield asked("POST /v1/recall", wanted, Recall, once=False)
    return assemble(found.query, [found, *sources], max_tokens=budget)


class _Events:
    """Reads the server-sent events of an import as they come."""

    def __init__(self, progress: Progress) -> None:
        self.ids: list[str] | None = None
        self._progress = progress
        self._rest = b""
        self._kind = ""

    def __call__(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            name, _, value = line.decode().partition(": ")
            if name == "event":
                self._kind = value
            elif name == "data":
                self._told(json.loads(value))

    def _told(self, data: dict[str, Any]) -> None:
        if self._kind == "progress":
            self._progress(data["done"], data["total"])
        elif self._kind == "done":
            self.ids = list(data["ids"])
        elif self._kind == "error":
            raise wire.error_of(int(data["status"]), data)


# -- sessions ----------------------------------------------------------------------------------------------------------

_TURNS = "/v1/sessions/{session_id}/turns"
route(Session.turns, f"GET {_TURNS}", wire.TurnList, lambda found: found.turns)
route(Session.end, "POST /v1/sessions/{session_id}/end", wire.SessionEnd, lambda found: found.job)


@verb(Session.add)
def add(given: Given) -> Flow[str]:
    turn = {name: value for name, value in given.said.items() if name != "session_id"}
    found: wire.EntryList = yield _turns(given, [turn])
    return found.entries[0].id


@verb(Session.add_turns)
def add_turns(given: Given) -> Flow[list[Entry]]:
    turns = [
        {"role": role, "text": text, "tags": given.all["tags"]} for role, text in checked_turns(given.all["turns"])
    ]
    entries = list[Entry]()
    for start in range(0, len(turns), PAGE):
        found: wire.EntryList = yield _turns(given, turns[start : start + PAGE])
        entries += found.entries
    return entries


def _turns(given: Given, turns: list[dict[str, Any]]) -> Ask:
    return asked(f"POST {_TURNS}", {"session_id": given.all["session_id"], "turns": turns}, wire.EntryList)


@verb(Memory.sessions)
def sessions(given: Given) -> Flow[list[str]]:
    ids, cursor = list[str](), None
    while True:
        page: wire.SessionPage = yield asked("GET /v1/sessions", {**given.said, "cursor": cursor}, wire.SessionPage)
        ids += page.sessions
        cursor = page.next
        if cursor is None:
            return ids


@verb(Memory.reflect)
def reflect(given: Given) -> Flow[list[Reflection]]:
    progress = checked_progress(given.said.pop("progress", None))
    found: wire.ReflectionList = yield asked("POST /v1/reflect", given.said, wire.ReflectionList)
    progress(len(found.reflections), len(found.reflections))
    return found.reflections


# -- look and change ---------------------------------------------------------------------------------------------------

route(Memory.get, "GET /v1/entries/{id}", Entry)
route(Memory.history, "GET /v1/entries/{id}/history", wire.VersionList, lambda found: found.versions)
route(Memory.links, "GET /v1/entries/{id}/links", wire.LinkList, lambda found: found.links)
route(Memory.edit, "PATCH /v1/entries/{id}", Entry)
route(Memory.supersede, "POST /v1/entries/{old}/supersede", Entry)
route(Memory.link, "POST /v1/links", Link)
route(Memory.unlink, "DELETE /v1/links", wire.Done, lambda found: found.done)
route(Memory.forget, "POST /v1/forget", Receipt)


@verb(Memory.entries)
def entries(given: Given) -> Flow[list[Entry]]:
    offset = checked_count("offset", given.all["offset"])
    wanted = checked_count("limit", given.all["limit"], least=1) + offset
    said = {name: value for name, value in given.said.items() if name not in ("tags", "limit", "offset")}
    said["tag"] = given.all["tags"]
    found, cursor = list[Entry](), None
    while len(found) < wanted:
        sized = {**said, "limit": min(PAGE, wanted - len(found)), "cursor": cursor}
        page: wire.EntryPage = yield asked("GET /v1/entries", sized, wire.EntryPage)
        found += page.entries
        cursor = page.next
        if cursor is None:
            break
    return found[offset:]


# -- care --------------------------------------------------------------------------------------------------------------

route(LearningView.status, "GET /v1/learning", LearningStatus)
route(LearningView.relearn, "POST /v1/learning/relearn", LearningStatus)
route(LearningView.reset, "POST /v1/learning/reset", wire.Counted, lambda found: found.count)
route(LearningView.share, "POST /v1/learning/share", wire.Done, lambda _: None)
route(LearningView.export, "GET /v1/learning/export", wire.LearnedState, lambda found: found.learned)
route(LearningView.practise, "POST /v1/learning/practise", wire.Counted, lambda found: found.count)
route(JobsView.list, "GET /v1/jobs", wire.JobList, lambda found: found.jobs)
route(JobsView.retry, "POST /v1/jobs/retry", wire.Counted, lambda found: found.count)
route(AdminView.stats, "GET /v1/stats", Stats)
route(AdminView.events, "GET /v1/events", wire.EventList, lambda found: found.events)


def _nothing(given: Given) -> dict[str, Any]:
    """The service tells no progress."""
    checked_progress(given.all["progress"])
    return {}


def _groups(given: Given) -> dict[str, Any]:
    return {**given.said, "by": ",".join(checked_groups(given.all["by"]))}


def _expiry(given: Given) -> dict[str, Any]:
    policy = given.all["policy"]
    return {"dry_run": given.all["dry_run"], "policy": None if policy is None else asdict(checked_policy(policy))}


def _no_key(given: Given) -> dict[str, Any]:
    if given.all["key"] is not None:
        raise InvalidInput("key", "is not sent to a service", "leave it out: the service signs with its own")
    return {}


route(Memory.verify, "POST /v1/verify", Report, once=False, sends=_nothing)
route(JobsView.run, "POST /v1/jobs/run", wire.Counted, lambda found: found.count, once=False, sends=_nothing)
route(AdminView.costs, "GET /v1/costs", wire.SpentList, lambda found: found.spent, sends=_groups)
route(AdminView.expire, "POST /v1/expire", Expired, sends=_expiry)
route(AdminView.erase, "POST /v1/erase", SignedReceipt, sends=_no_key)


@verb(AdminView.retention)
def retention(given: Given) -> Flow[RetentionPolicy]:
    policy = given.all["policy"]
    line = "GET /v1/retention" if policy is None else "POST /v1/retention"
    found: RetentionPolicy = yield asked(
        line, {} if policy is None else asdict(checked_policy(policy)), RetentionPolicy
    )
    return found


@verb(AdminView.export)
def export(given: Given) -> Flow[Written]:
    path = _plain_file(given)
    with beside(path, notes_of()) as file:
        ask = asked("GET /v1/export", {"vectors": given.all["vectors"]}, None)  # type: ignore[arg-type]  # see `sink`
        headers: Mapping[str, str] = yield replace(ask, sink=file.write)
        if file.tell() != int(headers.get("x-wellworn-bytes", "-1")):
            raise TransferError("the connection broke before the export was complete; nothing was written")
    counts = json.loads(headers["x-wellworn-written"])
    return Written(**{**counts, "path": str(path)})


@verb(AdminView.load)
def load(given: Given) -> Flow[Loaded]:
    path = _plain_file(given)
    try:
        file = path.open("rb")
    except OSError as error:
        raise TransferError(f"{path} cannot be read: {error.strerror or error}") from None
    with file:
        ask = asked("POST /v1/load", {}, Loaded, once=False)
        found: Loaded = yield replace(ask, content=file, type="application/x-ndjson")
    return found


BESIDE_STORE: Mapping[str, str] = {
    "backup": "run `wellworn backup create` where the store of the service is",
    "import_from": "run `wellworn import` where the store of the service is",
    "reembed": "run `wellworn admin reembed` where the store of the service is",
    "repair": "run `wellworn doctor --repair` where the store of the service is",
    "model": "the model of a service stays with it; configure one of your own",
}
"""Verbs of `AdminView` that a service lacks, and what to do instead."""


def _plain_file(given: Given) -> Path:
    checked_progress(given.all["progress"])
    path = checked_path("path", given.all["path"])
    if path.is_dir():
        raise InvalidInput("path", "a service writes and reads one file", "use a name that ends in .jsonl")
    return path


# -- tasks -------------------------------------------------------------------------------------------------------------


class KeepsTasks(Protocol):
    """`ReasoningBank` behind a service. The work itself is done elsewhere, between `begin` and `finish`."""

    def begin(
        self,
        *,
        task_id: str,
        query: str,
        agent_id: str = "",
        domain: str = "",
        session_id: str | None = None,
        k: int = DEFAULT_K,
    ) -> wire.TaskStart:
        """Begin a task and get what worked or failed in similar ones."""
        ...

    def finish(self, task_id: str, trajectory: object, *, verdict: bool | None = None) -> wire.TaskEnd:
        """Finish a task: the work is judged, and what it teaches is kept for the next one."""
        ...

    def list(self, *, state: str | None = None, limit: int = 100) -> Sequence[Task]:
        """Attempts at tasks, newest first."""
        ...

    def items(
        self, *, domain: str | None = None, kind: str | Sequence[str] | None = None, limit: int = 20
    ) -> Sequence[Entry]:
        """Strategies and guardrails, the surest first."""
        ...

    def retrieve(
        self,
        query: str,
        *,
        domain: str | None = None,
        k: int = DEFAULT_K,
        kind: str | Sequence[str] | None = None,
        min_confidence: float = MIN_CONFIDENCE,
    ) -> Recall:
        """The strategies and guardrails that help most with a task."""
        ...


route(KeepsTasks.begin, "POST /v1/tasks", wire.TaskStart)
route(KeepsTasks.list, "GET /v1/tasks", wire.TaskList, lambda found: found.tasks)
route(KeepsTasks.items, "GET /v1/items", wire.ItemList, lambda found: found.items)
route(KeepsTasks.retrieve, "POST /v1/items/search", Recall, once=False)
route(
    KeepsTasks.finish,
    "POST /v1/tasks/{task_id}/finish",
    wire.TaskEnd,
    sends=lambda given: {**given.said, "trajectory": asdict(trajectory_of(given.all["trajectory"]))},
)


# -- keys --------------------------------------------------------------------------------------------------------------


class ManagesKeys(Protocol):
    """What a service has and a memory in the process has no use for."""

    def list(self) -> Sequence[wire.KeyInfo]:
        """The tenant's keys, newest first, without their secrets."""
        ...

    def create(
        self,
        name: str = "",
        *,
        role: str = "writer",
        layers: Mapping[str, Sequence[str]] | None = None,
        expires_at: TimeLike = None,
    ) -> wire.NewKey:
        """Make a key, bound to ids on layers if any are given. Its text is in the answer, and nowhere else."""
        ...

    def rotate(self, id: str, *, grace: timedelta = timedelta(days=1)) -> wire.NewKey:
        """Make a key in the place of another, which works until the grace is over."""
        ...

    def revoke(self, id: str) -> wire.KeyInfo:
        """Refuse a key from now on."""
        ...


def _seconds_of(grace: object) -> float:
    if not isinstance(grace, timedelta):
        raise InvalidInput("grace", f"{shown(grace)} is not a timedelta", "as in timedelta(hours=1)")
    return grace.total_seconds()


route(ManagesKeys.list, "GET /v1/keys", wire.KeyList, lambda found: found.keys)
route(ManagesKeys.create, "POST /v1/keys", wire.NewKey, once=False)
route(ManagesKeys.revoke, "DELETE /v1/keys/{id}", wire.KeyInfo, once=False)
route(
    ManagesKeys.rotate,
    "POST /v1/keys/{id}/rotate",
    wire.NewKey,
    once=False,
    sends=lambda given: {"id": given.all["id"], "grace_s": _seconds_of(given.all["grace"])},
)


OF_TENANT = frozenset(
    {Memory.verify, LearningView.reset, LearningView.share}
    | {one for view in (JobsView, AdminView, ManagesKeys) for one in vars(view).values() if callable(one)}
)
"""Verbs that need no layer."""


# -- on the way --------------------------------------------------------------------------------------------------------


def part(id: object) -> str:
    """An id as one part of a path."""
    quoted = quote(checked_id(id), safe="") or "%20"
    return quoted.replace(".", "%2E") if id in (".", "..") else quoted  # bare, they would be taken out of the path


def encoded(value: Mapping[str, Any]) -> bytes:
    """JSON; a value that it cannot hold is an error that names it. Metadata goes as it is, or not at all."""
    if value.get("metadata") is not None:
        value = {**value, "metadata": checked_metadata(value["metadata"])}
    try:
        return json.dumps(value, default=_plain, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            "body", f"cannot be sent as JSON: {error}", "use texts, numbers, lists and mappings"
        ) from None


def _plain(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON")

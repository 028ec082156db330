"""The verbs of `Memory` over HTTP, with the same parameters, values and errors.

    ada = Client("http://localhost:8765", key="ww_…").for_user("ada")
    ada.remember("Ada prefers tokio over async-std.", kind="preference")

The tenant is that of the key. Writes carry an idempotency key, so that one whose answer was lost is sent again safely.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack
from urllib.parse import quote

import msgspec

from wellworn.core.errors import InvalidInput, MissingExtra, ScopeError, ServiceFailed
from wellworn.core.values import (
    LAYERS,
    Entry,
    Job,
    JobState,
    Kind,
    Layer,
    LearningStatus,
    Link,
    LinkType,
    Progress,
    Reasoning,
    Recall,
    Receipt,
    RecursionMode,
    Scope,
    State,
    Stats,
    Turn,
    Version,
)
from wellworn.ingest.validate import Details, Draft, TimeLike, checked_count, checked_progress, checked_scope, drafts_of
from wellworn.ops.doctor import Report
from wellworn.reflection.values import Reflection
from wellworn.search.filters import FilterOptions
from wellworn.server import wire
from wellworn.store.events import Event

if TYPE_CHECKING:
    import httpx

    from wellworn.search.assemble import Assembled

TRIES = 3
MOST_WAIT_S = 5.0
PAGE = 1000
T = TypeVar("T")


class Client:
    """A memory behind `wellworn serve`. Safe to share between threads; close it when done."""

    def __init__(self, url: str, *, key: str | None = None, timeout_s: float = 60.0) -> None:
        """`key` is an API key (`wellworn keys create`); a service on this machine needs none."""
        try:
            import httpx
        except ImportError:
            raise MissingExtra("wellworn.Client", "client") from None
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise InvalidInput("url", f"{url!r:.80} is no address", "as in 'http://localhost:8765'")
        if key is not None and not (isinstance(key, str) and key.isascii() and key.isprintable() and key.strip()):
            raise InvalidInput("key", "is no API key", "as in 'ww_…', from `wellworn keys create`")
        headers = {} if key is None else {"authorization": f"Bearer {key.strip()}"}
        self._bind(httpx.Client(base_url=url, headers=headers, timeout=timeout_s), None)

    def _bind(self, http: httpx.Client, scope: Scope | None) -> None:
        self._http = http
        self.scope = scope
        """The scope that is filled in; None: what the key is bound to, when a call names none."""
        self.learning = ClientLearning(self)
        self.jobs = ClientJobs(self)
        self.admin = ClientAdmin(self)

    def for_user(self, user: str, *, tenant: str = "default", **layers: str) -> Client:
        """The memory of one person: the same verbs, without `scope`."""
        return self.for_scope(Scope(tenant=tenant, user=user, **layers))

    def for_scope(self, scope: Scope) -> Client:
        """The same verbs with any scope filled in. The tenant `default` stands for that of the key."""
        bound = object.__new__(type(self))
        bound._bind(self._http, checked_scope(scope))
        return bound

    # -- remember ------------------------------------------------------------------------------------------------

    def remember(
        self, text: str, *, kind: Kind = "note", scope: Scope | None = None, **details: Unpack[Details]
    ) -> list[str]:
        """Store a text and return the ids of its entries: one, or one per chunk of a long text."""
        body = {"text": text, "kind": kind, **details}
        return self.call("POST", "/v1/entries", wire.EntryIds, scope=scope, body=body).ids

    def remember_many(
        self,
        /,
        items: Iterable[str | Mapping[str, Any] | Draft],
        *,
        progress: Progress | None = None,
        scope: Scope | None = None,
        **common: Any,
    ) -> list[str]:
        """Store many texts at once and return the ids of all their entries, in order."""
        told = checked_progress(progress)
        lines = [encoded(asdict(draft)) for draft in drafts_of(items, common)]
        for kind, data in self._events("/v1/import", b"\n".join(lines), scope):
            if kind == "progress" and told is not None:
                told(data["done"], data["total"])
            elif kind == "done":
                return list(data["ids"])
            elif kind == "error":
                raise wire.error_of(int(data["status"]), data)
        raise ServiceFailed("the connection broke; the import goes on (send it again to see its ids)")

    def session(self, session_id: str, *, scope: Scope | None = None) -> ClientSession:
        """A dialogue to add turns to; a known id continues that dialogue."""
        return ClientSession(self, session_id, self.scope if scope is None else scope)

    def sessions(self, *, layer: Layer | None = None, scope: Scope | None = None) -> list[str]:
        """Ids of the sessions of the scope's home layer, oldest first."""
        ids, cursor = list[str](), None
        while True:
            page = self.call(
                "GET", "/v1/sessions", wire.SessionPage, scope=scope, query={"layer": layer, "cursor": cursor}
            )
            ids += page.sessions
            cursor = page.next
            if cursor is None:
                return ids

    def reflect(
        self,
        session_id: str | None = None,
        *,
        again: bool = False,
        progress: Progress | None = None,
        scope: Scope | None = None,
    ) -> list[Reflection]:
        """Turn what was said into memories now: one session, or all that were not read yet."""
        checked_progress(progress)
        body = {"session_id": session_id, "again": again}
        made = self.call("POST", "/v1/reflect", wire.ReflectionList, scope=scope, body=body).reflections
        if progress is not None:
            progress(len(made), len(made))
        return made

    # -- recall --------------------------------------------------------------------------------------------------

    def recall(
        self,
        query: str,
        *,
        k: int = 5,
        recursion: RecursionMode | None = None,
        deadline_s: float | None = None,
        scope: Scope | None = None,
        **filters: Unpack[FilterOptions],
    ) -> Recall:
        """The `k` entries that answer the query best, each with the reasons for its place."""
        body = {"query": query, "k": k, "recursion": recursion, "deadline_s": deadline_s, **filters}
        return self.call("POST", "/v1/recall", Recall, scope=scope, body=body, once=False)

    def assemble(
        self,
        query: str,
        *,
        max_tokens: int = 1500,
        sources: Sequence[Recall] = (),
        k: int = 40,
        recursion: RecursionMode | None = None,
        scope: Scope | None = None,
        **filters: Unpack[FilterOptions],
    ) -> Assembled:
        """A context for a question within a token budget, chosen here from the hits of a recall there."""
        from wellworn.search.assemble import assemble, checked_budget

        checked_budget(max_tokens)
        if not isinstance(sources, Sequence) or not all(isinstance(one, Recall) for one in sources):
            raise InvalidInput("sources", "is not a list of recalls", "as in sources=[memory.recall(…)]")
        found = self.recall(query, k=k, recursion=recursion, scope=scope, **filters)
        return assemble(found.query, [found, *sources], max_tokens=max_tokens)

    def reason(self, query: str, *, k: int = 5, as_of: TimeLike = None, scope: Scope | None = None) -> Reasoning:
        """The chain of entries that bears on a question, and what follows from them."""
        body = {"query": query, "k": k, "as_of": as_of}
        return self.call("POST", "/v1/reason", Reasoning, scope=scope, body=body, once=False)

    def outcome(
        self,
        recall_id: str,
        *,
        cited: Sequence[int] | None = None,
        used: float | None = None,
        ignored: bool = False,
        refined: str | None = None,
        success: bool | None = None,
        scope: Scope | None = None,
    ) -> bool:
        """Report how a recall turned out (choose one option); False when this was reported before."""
        body = {"cited": cited, "used": used, "ignored": ignored, "refined": refined, "success": success}
        return self.call("POST", f"/v1/recalls/{part(recall_id)}/outcome", wire.Done, scope=scope, body=body).done

    # -- look ----------------------------------------------------------------------------------------------------

    def get(self, id: str, *, scope: Scope | None = None) -> Entry:
        """One entry, whatever its state. `NotFound` when the scope does not see it."""
        return self.call("GET", f"/v1/entries/{part(id)}", Entry, scope=scope)

    def entries(
        self,
        *,
        kind: Kind | Sequence[Kind] | None = None,
        tags: str | Sequence[str] | None = None,
        layer: Layer | Sequence[Layer] | None = None,
        session_id: str | None = None,
        state: State | Sequence[State] | None = None,
        limit: int = 100,
        offset: int = 0,
        scope: Scope | None = None,
    ) -> list[Entry]:
        """Entries that the scope sees, oldest first, one page."""
        wanted = checked_count("limit", limit, least=1) + checked_count("offset", offset)
        found, cursor = list[Entry](), None
        query = {"kind": kind, "tag": tags, "layer": layer, "session_id": session_id, "state": state}
        while len(found) < wanted:
            sized = {**query, "limit": min(PAGE, wanted - len(found)), "cursor": cursor}
            page = self.call("GET", "/v1/entries", wire.EntryPage, scope=scope, query=sized)
            found += page.entries
            cursor = page.next
            if cursor is None:
                break
        return found[offset:]

    def history(self, id: str, *, scope: Scope | None = None) -> list[Version]:
        """Every state the entry has had, oldest first; the last is the present one."""
        return self.call("GET", f"/v1/entries/{part(id)}/history", wire.VersionList, scope=scope).versions

    def links(self, id: str, *, scope: Scope | None = None) -> list[Link]:
        """Every link that starts or ends at an entry, as far as the scope sees the other end."""
        return self.call("GET", f"/v1/entries/{part(id)}/links", wire.LinkList, scope=scope).links

    # -- change --------------------------------------------------------------------------------------------------

    def edit(self, /, id: str, *, scope: Scope | None = None, **changes: Any) -> Entry:
        """Change fields of an entry; the former state stays in its history."""
        return self.call("PATCH", f"/v1/entries/{part(id)}", Entry, scope=scope, body=changes)

    def supersede(
        self, old: str, new: str, *, at: TimeLike = None, wrong: bool = False, scope: Scope | None = None
    ) -> Entry:
        """Record that `new` replaced `old` at a time; returns `old` as it is now."""
        body = {"new": new, "at": at, "wrong": wrong}
        return self.call("POST", f"/v1/entries/{part(old)}/supersede", Entry, scope=scope, body=body)

    def link(
        self, source: str, target: str, type: LinkType, *, confidence: float = 1.0, scope: Scope | None = None
    ) -> Link:
        """Record that one entry stands in this relation to another; linking twice changes nothing."""
        body = {"source": source, "target": target, "type": type, "confidence": confidence}
        return self.call("POST", "/v1/links", Link, scope=scope, body=body)

    def unlink(self, source: str, target: str, type: LinkType, *, scope: Scope | None = None) -> bool:
        """Remove a link; False when there was none."""
        query = {"source": source, "target": target, "type": type}
        return self.call("DELETE", "/v1/links", wire.Done, scope=scope, query=query).done

    def forget(
        self,
        ids: Sequence[str] | None = None,
        *,
        session_id: str | None = None,
        everything: bool = False,
        layer: Layer | None = None,
        turns: bool | None = None,
        scope: Scope | None = None,
    ) -> Receipt:
        """Remove for good, and report what was removed. Give exactly one of `ids`, `session_id`, `everything`."""
        body = {"ids": ids, "session_id": session_id, "everything": everything, "layer": layer, "turns": turns}
        return self.call("POST", "/v1/forget", Receipt, scope=scope, body=body)

    # -- care ----------------------------------------------------------------------------------------------------

    def verify(self, *, progress: Progress | None = None) -> Report:
        """Check the whole store, if it holds nobody else's memory."""
        checked_progress(progress)
        return self.call("POST", "/v1/verify", Report, once=False)

    def close(self) -> None:
        """End the connections; views of the same client end with it."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = repr(str(self._http.base_url))
        return f"Client({where})" if self.scope is None else f"Client({where}).for_scope({self.scope})"

    # -- the wire ------------------------------------------------------------------------------------------------

    def call(
        self,
        method: str,
        path: str,
        answer: type[T],
        *,
        scope: Scope | None = None,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        once: bool = True,
    ) -> T:
        """Send one request and read its answer; any error of the service is raised as one of ours.

        With `once`, a write is made once however often it is sent.
        """
        headers = {"idempotency-key": uuid.uuid4().hex} if once and method != "GET" else {}
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = encoded(body)
        params = {**self._named(scope), **{name: value for name, value in (query or {}).items() if value is not None}}

        def send() -> httpx.Response:
            return self._http.request(method, path, params=params, content=content, headers=headers)

        response = self._patient(send)
        if response.is_error:
            raise wire.error_of(response.status_code, _document(response))
        return msgspec.json.decode(response.content, type=answer)

    def _patient(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        """Send, and send again when the connection broke or the service has too much to do."""
        import httpx

        for tries_left in reversed(range(TRIES)):
            try:
                response = send()
            except (httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError) as error:
                if not tries_left:
                    raise _unreachable(self._http, error) from None
                continue
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise _unreachable(self._http, error) from None
            wait_s = response.headers.get("retry-after", "1" if response.status_code in (429, 503) else "")
            if not wait_s or not tries_left:
                return response
            time.sleep(min(float(wait_s) if wait_s.isdecimal() else 1.0, MOST_WAIT_S))
        raise AssertionError("unreachable")

    def _events(self, path: str, content: bytes, scope: Scope | None) -> Iterator[tuple[str, Any]]:
        """Server-sent events: their kinds and data."""
        import httpx

        headers = {"content-type": "application/x-ndjson"}
        try:
            with self._http.stream(
                "POST", path, params=self._named(scope), content=content, headers=headers, timeout=None
            ) as response:
                if response.is_error:
                    response.read()
                    raise wire.error_of(response.status_code, _document(response))
                kind = ""
                for line in response.iter_lines():
                    name, _, value = line.partition(": ")
                    if name == "event":
                        kind = value
                    elif name == "data":
                        yield kind, json.loads(value)
        except httpx.HTTPError as error:
            raise _unreachable(self._http, error) from None

    def _named(self, scope: Scope | None) -> dict[str, Any]:
        """The query parameters that name a scope."""
        scope = self.scope if scope is None else checked_scope(scope)
        if scope is None:
            return {}
        if self.scope is not None and not scope.within(self.scope):
            raise ScopeError(
                "scope", f"{scope} reaches beyond {self.scope}, to which this client is bound", "leave it out"
            )
        tenant = {} if scope.tenant == "default" else {"tenant": scope.tenant}
        return {**tenant, **{layer: ids for layer in LAYERS if (ids := list(scope.ids(layer)))}}


class ClientSession:
    """One dialogue of a scope, as `Memory.session` gives it."""

    def __init__(self, client: Client, session_id: str, scope: Scope | None) -> None:
        from wellworn.ingest.validate import checked_session_id

        self.id = checked_session_id(session_id)
        self._client = client
        self._scope = scope
        self._path = f"/v1/sessions/{part(self.id)}"

    def add(
        self,
        role: str,
        text: str,
        *,
        at: TimeLike = None,
        speaker: str | None = None,
        trust: str = "trusted",
        tags: Sequence[str] = (),
    ) -> str:
        """Add a turn and return the id of its episode entry."""
        turn = {"role": role, "text": text, "at": at, "speaker": speaker, "trust": trust, "tags": tags}
        return self._add([turn])[0].id

    def add_turns(self, turns: Sequence[tuple[str, str]], *, tags: Sequence[str] = ()) -> list[Entry]:
        """Add several turns, each a role and a text, in one durable write."""
        return self._add([{"role": role, "text": text, "tags": tags} for role, text in turns]) if turns else []

    def _add(self, turns: Sequence[Mapping[str, Any]]) -> list[Entry]:
        path = f"{self._path}/turns"
        return self._client.call("POST", path, wire.EntryList, scope=self._scope, body={"turns": turns}).entries

    def end(self, *, wait: float = 0.0) -> Job | None:
        """End the session: what was said becomes memories, in the background."""
        return self._client.call(
            "POST", f"{self._path}/end", wire.SessionEnd, scope=self._scope, body={"wait": wait}
        ).job

    def turns(self) -> list[Turn]:
        """Every turn so far, verbatim, in order."""
        return self._client.call("GET", f"{self._path}/turns", wire.TurnList, scope=self._scope).turns


class ClientLearning:
    """What was learned from outcomes."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def status(self, *, scope: Scope | None = None) -> LearningStatus:
        """What serves the scope's home layer now, and on which evidence."""
        return self._client.call("GET", "/v1/learning", LearningStatus, scope=scope)


class ClientJobs:
    """Background work of the service."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self, *, state: JobState | None = None, limit: int = 100, scope: Scope | None = None) -> JobsOfService:
        """Jobs of the scope, newest first."""
        query = {"state": state, "limit": limit}
        return self._client.call("GET", "/v1/jobs", wire.JobList, scope=scope, query=query).jobs


JobsOfService = list[Job]


class ClientAdmin:
    """Counts and the audit log."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def stats(self, *, scope: Scope | None = None) -> Stats:
        """How much the scope sees."""
        return self._client.call("GET", "/v1/stats", Stats, scope=scope)

    def events(self, *, limit: int = 100, scope: Scope | None = None) -> list[Event]:
        """The tenant's audit log, newest first. Needs an admin's key."""
        return self._client.call("GET", "/v1/events", wire.EventList, scope=scope, query={"limit": limit}).events


def part(id: str) -> str:
    """An id as one part of a path."""
    if not isinstance(id, str):
        raise InvalidInput("id", f"must be text, not {type(id).__name__}")
    return quote(id, safe="") or "%20"


def encoded(value: Any) -> bytes:  # any JSON value, with times in it
    """JSON; a value that it cannot hold is an error that names it."""
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


def _document(response: httpx.Response) -> Mapping[str, Any]:
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _unreachable(http: httpx.Client, error: Exception) -> ServiceFailed:
    return ServiceFailed(f"{http.base_url} cannot be reached: {error} (start it with `wellworn serve`)")

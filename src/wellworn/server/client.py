"""The verbs of `Memory` over HTTP, with the same parameters, values and errors.

    ada = Client("http://localhost:8765", key="ww_…").for_user("ada")
    ada.remember("Ada prefers tokio over async-std.", kind="preference")

The tenant is that of the key. Writes carry an idempotency key, so that one whose answer was lost is sent again safely.
`AsyncClient` has the same verbs, awaited. What each verb asks is in `verbs`; here is how it is sent.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Concatenate, ParamSpec, TypeVar

import msgspec

from wellworn.core.errors import InvalidInput, MissingExtra, ScopeError, ServiceFailed
from wellworn.core.values import LAYERS, Scope
from wellworn.ingest.session import Session
from wellworn.ingest.validate import checked_scope, checked_session_id
from wellworn.memory import Memory
from wellworn.server import wire
from wellworn.server.verbs import VERBS, Ask, Flow, Given, ManagesKeys
from wellworn.views import AdminView, JobsView, LearningView

if TYPE_CHECKING:
    import httpx

TRIES = 3
MOST_WAIT_S = 5.0
CHUNK = 65536
P = ParamSpec("P")
T = TypeVar("T")


# -- connections -------------------------------------------------------------------------------------------------------


class Connection:
    """Sends requests, and sends them again when the connection broke or the service has too much to do."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def run(self, flow: Flow[T], scope: Mapping[str, Any]) -> T:
        """Play a verb: send what it asks, and give it the answers."""
        try:
            ask = next(flow)
            while True:
                ask = flow.send(self._answer(ask, scope))
        except StopIteration as done:
            found: T = done.value
            return found
        finally:
            flow.close()

    def _answer(self, ask: Ask, scope: Mapping[str, Any]) -> Any:  # of the type that is asked for
        import httpx

        headers = headers_of(ask)
        for tries_left in reversed(range(TRIES)):
            content = _rewound(ask.content)
            request = self.http.build_request(
                ask.method, ask.path, params={**scope, **ask.query}, headers=headers, content=content
            )
            if ask.sink is not None:
                request.extensions["timeout"]["read"] = None  # a long answer may pause
            try:
                response = self.http.send(request, stream=True)
                try:
                    wait_s = wait_after(response, tries_left)
                    if wait_s is None:
                        if ask.sink is None or response.is_error:
                            response.read()
                        else:
                            for data in response.iter_bytes():
                                ask.sink(data)
                        return answer_in(ask, response)
                finally:
                    response.close()
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                if not tries_left or not _may_repeat(ask, error):
                    raise _unreachable(self.http.base_url, error) from None
                continue
            time.sleep(wait_s)
        raise AssertionError("unreachable")


class AsyncConnection:
    """The same for async code."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def run(self, flow: Flow[T], scope: Mapping[str, Any]) -> T:
        try:
            ask = next(flow)
            while True:
                ask = flow.send(await self._answer(ask, scope))
        except StopIteration as done:
            found: T = done.value
            return found
        finally:
            flow.close()

    async def _answer(self, ask: Ask, scope: Mapping[str, Any]) -> Any:  # of the type that is asked for
        import httpx

        headers = headers_of(ask)
        for tries_left in reversed(range(TRIES)):
            content = _rewound(ask.content)
            request = self.http.build_request(
                ask.method,
                ask.path,
                params={**scope, **ask.query},
                headers=headers,
                content=content if content is None or isinstance(content, bytes) else _chunks(content),
            )
            if ask.sink is not None:
                request.extensions["timeout"]["read"] = None
            try:
                response = await self.http.send(request, stream=True)
                try:
                    wait_s = wait_after(response, tries_left)
                    if wait_s is None:
                        if ask.sink is None or response.is_error:
                            await response.aread()
                        else:
                            async for data in response.aiter_bytes():
                                ask.sink(data)
                        return answer_in(ask, response)
                finally:
                    await response.aclose()
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                if not tries_left or not _may_repeat(ask, error):
                    raise _unreachable(self.http.base_url, error) from None
                continue
            await asyncio.sleep(wait_s)
        raise AssertionError("unreachable")


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    while data := await asyncio.to_thread(file.read, CHUNK):
        yield data


def _rewound(content: bytes | BinaryIO | None) -> bytes | BinaryIO | None:
    if content is not None and not isinstance(content, bytes):
        content.seek(0)
    return content


def headers_of(ask: Ask) -> dict[str, str]:
    headers = {"idempotency-key": uuid.uuid4().hex} if ask.once else {}
    return headers if ask.content is None else {**headers, "content-type": ask.type}


def wait_after(response: httpx.Response, tries_left: int) -> float | None:
    """How long to wait before the request is sent again; None: this is its answer."""
    wait_s = response.headers.get("retry-after", "1" if response.status_code in (429, 503) else "")
    if not wait_s or not tries_left:
        return None
    return min(float(wait_s) if wait_s.isdecimal() else 1.0, MOST_WAIT_S)


def _may_repeat(ask: Ask, error: Exception) -> bool:
    """Whether the request may be sent again: its connection broke, and nothing of its answer was used."""
    import httpx

    broke = isinstance(error, httpx.ConnectError | httpx.RemoteProtocolError | httpx.ReadError)
    return broke and (ask.sink is None or isinstance(error, httpx.ConnectError))


def answer_in(ask: Ask, response: httpx.Response) -> Any:  # of the type that is asked for
    """What the service answered; an error of the service is raised as one of ours."""
    if response.is_error:
        raise wire.error_of(response.status_code, _document(response))
    return response.headers if ask.sink is not None else msgspec.json.decode(response.content, type=ask.answer)


def _document(response: httpx.Response) -> Mapping[str, Any]:
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _unreachable(url: httpx.URL, error: Exception) -> ServiceFailed:
    return ServiceFailed(f"{url} cannot be reached: {error} (start it with `wellworn serve`)")


# -- verbs -------------------------------------------------------------------------------------------------------------


class Remote:
    """A part of a service: whose memory it is about, and what is fixed in its addresses."""

    def __init__(self, connection: Any, scope: Scope | None, **place: str) -> None:
        self.connection = connection
        self.scope = scope
        """The scope that is filled in; None: what the key is bound to, when a call names none."""
        self._place = place

    def asks(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # what it returns
        """Play the verb that stands for this method of `Memory`; awaitable where the connection is."""
        bound = signature_of(method).bind(self, *args, **kwargs)
        said = {**self._place, **_flat(bound)}
        bound.apply_defaults()
        given = Given(said=said, all={**self._place, **_flat(bound)})
        scope = said.pop("scope", None)
        return self.connection.run(VERBS[method](given), named(scope, self.scope))


@functools.cache
def signature_of(method: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(method)


def _flat(bound: inspect.BoundArguments) -> dict[str, Any]:
    """The arguments by name, those of `**` among them, without `self`."""
    kinds = bound.signature.parameters
    flat: dict[str, Any] = {}
    for name, value in [*bound.arguments.items()][1:]:
        flat |= value if kinds[name].kind is inspect.Parameter.VAR_KEYWORD else {name: value}
    return flat


def named(scope: Scope | None, bound: Scope | None) -> dict[str, Any]:
    """The query parameters that name a scope."""
    scope = bound if scope is None else checked_scope(scope)
    if scope is None:
        return {}
    if bound is not None and not scope.within(bound):
        raise ScopeError("scope", f"{scope} reaches beyond {bound}, to which this client is bound", "leave it out")
    tenant = {} if scope.tenant == "default" else {"tenant": scope.tenant}
    return {**tenant, **{layer: ids for layer in LAYERS if (ids := list(scope.ids(layer)))}}


def sent(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """The verb of `Memory` over a connection: the same signature, types and documentation."""

    @functools.wraps(method)
    def call(self: Remote, /, *args: P.args, **kwargs: P.kwargs) -> T:
        found: T = self.asks(method, args, kwargs)
        return found

    return call


def awaited(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The same as a coroutine function."""

    @functools.wraps(method)
    async def call(self: Remote, /, *args: P.args, **kwargs: P.kwargs) -> T:
        found: T = await self.asks(method, args, kwargs)
        return found

    return call


# -- the client --------------------------------------------------------------------------------------------------------


class ClientSession(Remote):
    """One dialogue of a scope, as `Memory.session` gives it."""

    def __init__(self, connection: Any, scope: Scope | None, session_id: str) -> None:
        self.id = checked_session_id(session_id)
        super().__init__(connection, scope, session_id=self.id)

    add = sent(Session.add)
    add_turns = sent(Session.add_turns)
    end = sent(Session.end)
    turns = sent(Session.turns)


class ClientLearning(Remote):
    """What was learned from outcomes, and how to steer it."""

    status = sent(LearningView.status)
    relearn = sent(LearningView.relearn)
    reset = sent(LearningView.reset)
    share = sent(LearningView.share)
    export = sent(LearningView.export)
    practise = sent(LearningView.practise)


class ClientJobs(Remote):
    """Background work of the service."""

    run = sent(JobsView.run)
    retry = sent(JobsView.retry)
    list = sent(JobsView.list)


class ClientAdmin(Remote):
    """Counts, costs, the audit log, keeping and erasing, moving data in and out. Needs an admin's key."""

    stats = sent(AdminView.stats)
    events = sent(AdminView.events)
    costs = sent(AdminView.costs)
    retention = sent(AdminView.retention)
    expire = sent(AdminView.expire)
    erase = sent(AdminView.erase)
    export = sent(AdminView.export)
    load = sent(AdminView.load)


class ClientKeys(Remote):
    """API keys of the tenant. Needs an admin's key."""

    list = sent(ManagesKeys.list)
    create = sent(ManagesKeys.create)
    rotate = sent(ManagesKeys.rotate)
    revoke = sent(ManagesKeys.revoke)


class Client(Remote):
    """A memory behind `wellworn serve`. Safe to share between threads; close it when done."""

    def __init__(self, url: str, *, key: str | None = None, timeout_s: float = 60.0) -> None:
        """`key` is an API key (`wellworn keys create`) or a token of the issuer that the service trusts; a service on
        this machine needs none."""
        self._bind(Connection(_httpx().Client(**_options(url, key, timeout_s))), None)

    def _bind(self, connection: Connection, scope: Scope | None) -> None:
        super().__init__(connection, scope)
        self.learning = ClientLearning(connection, scope)
        self.jobs = ClientJobs(connection, scope)
        self.admin = ClientAdmin(connection, scope)
        self.keys = ClientKeys(connection, scope)

    def for_user(self, user: str, *, tenant: str = "default", **layers: str) -> Client:
        """The memory of one person: the same verbs, without `scope`."""
        return self.for_scope(Scope(tenant=tenant, user=user, **layers))

    def for_scope(self, scope: Scope) -> Client:
        """The same verbs with any scope filled in. The tenant `default` stands for that of the key."""
        bound = object.__new__(type(self))
        bound._bind(self.connection, checked_scope(scope))
        return bound

    def session(self, session_id: str, *, scope: Scope | None = None) -> ClientSession:
        """A dialogue to add turns to; a known id continues that dialogue."""
        return ClientSession(self.connection, self.scope if scope is None else scope, session_id)

    remember = sent(Memory.remember)
    remember_many = sent(Memory.remember_many)
    sessions = sent(Memory.sessions)
    reflect = sent(Memory.reflect)
    recall = sent(Memory.recall)
    assemble = sent(Memory.assemble)
    reason = sent(Memory.reason)
    outcome = sent(Memory.outcome)
    get = sent(Memory.get)
    entries = sent(Memory.entries)
    history = sent(Memory.history)
    links = sent(Memory.links)
    edit = sent(Memory.edit)
    supersede = sent(Memory.supersede)
    link = sent(Memory.link)
    unlink = sent(Memory.unlink)
    forget = sent(Memory.forget)
    verify = sent(Memory.verify)

    def close(self) -> None:
        """End the connections; views of the same client end with it."""
        self.connection.http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = repr(str(self.connection.http.base_url))
        return f"Client({where})" if self.scope is None else f"Client({where}).for_scope({self.scope})"


# -- the async client --------------------------------------------------------------------------------------------------


class AsyncClientSession(Remote):
    """A dialogue whose turns are awaited."""

    def __init__(self, connection: Any, scope: Scope | None, session_id: str) -> None:
        self.id = checked_session_id(session_id)
        super().__init__(connection, scope, session_id=self.id)

    add = awaited(Session.add)
    add_turns = awaited(Session.add_turns)
    end = awaited(Session.end)
    turns = awaited(Session.turns)


class AsyncClientLearning(Remote):
    status = awaited(LearningView.status)
    relearn = awaited(LearningView.relearn)
    reset = awaited(LearningView.reset)
    share = awaited(LearningView.share)
    export = awaited(LearningView.export)
    practise = awaited(LearningView.practise)


class AsyncClientJobs(Remote):
    run = awaited(JobsView.run)
    retry = awaited(JobsView.retry)
    list = awaited(JobsView.list)


class AsyncClientAdmin(Remote):
    stats = awaited(AdminView.stats)
    events = awaited(AdminView.events)
    costs = awaited(AdminView.costs)
    retention = awaited(AdminView.retention)
    expire = awaited(AdminView.expire)
    erase = awaited(AdminView.erase)
    export = awaited(AdminView.export)
    load = awaited(AdminView.load)


class AsyncClientKeys(Remote):
    list = awaited(ManagesKeys.list)
    create = awaited(ManagesKeys.create)
    rotate = awaited(ManagesKeys.rotate)
    revoke = awaited(ManagesKeys.revoke)


class AsyncClient(Remote):
    """`Client` for async code: the same verbs, awaited."""

    def __init__(self, url: str, *, key: str | None = None, timeout_s: float = 60.0) -> None:
        self._bind(AsyncConnection(_httpx().AsyncClient(**_options(url, key, timeout_s))), None)

    def _bind(self, connection: AsyncConnection, scope: Scope | None) -> None:
        super().__init__(connection, scope)
        self.learning = AsyncClientLearning(connection, scope)
        self.jobs = AsyncClientJobs(connection, scope)
        self.admin = AsyncClientAdmin(connection, scope)
        self.keys = AsyncClientKeys(connection, scope)

    def for_user(self, user: str, *, tenant: str = "default", **layers: str) -> AsyncClient:
        """The memory of one person: the same verbs, without `scope`."""
        return self.for_scope(Scope(tenant=tenant, user=user, **layers))

    def for_scope(self, scope: Scope) -> AsyncClient:
        bound = object.__new__(type(self))
        bound._bind(self.connection, checked_scope(scope))
        return bound

    def session(self, session_id: str, *, scope: Scope | None = None) -> AsyncClientSession:
        return AsyncClientSession(self.connection, self.scope if scope is None else scope, session_id)

    remember = awaited(Memory.remember)
    remember_many = awaited(Memory.remember_many)
    sessions = awaited(Memory.sessions)
    reflect = awaited(Memory.reflect)
    recall = awaited(Memory.recall)
    assemble = awaited(Memory.assemble)
    reason = awaited(Memory.reason)
    outcome = awaited(Memory.outcome)
    get = awaited(Memory.get)
    entries = awaited(Memory.entries)
    history = awaited(Memory.history)
    links = awaited(Memory.links)
    edit = awaited(Memory.edit)
    supersede = awaited(Memory.supersede)
    link = awaited(Memory.link)
    unlink = awaited(Memory.unlink)
    forget = awaited(Memory.forget)
    verify = awaited(Memory.verify)

    async def close(self) -> None:
        await self.connection.http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _httpx() -> Any:  # the module
    try:
        import httpx
    except ImportError:
        raise MissingExtra("wellworn.Client", "client") from None
    return httpx


def _options(url: str, key: str | None, timeout_s: float) -> dict[str, Any]:
    """Settings of the HTTP client."""
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise InvalidInput("url", f"{url!r:.80} is no address", "as in 'http://localhost:8765'")
    if key is not None and not (isinstance(key, str) and key.isascii() and key.isprintable() and key.strip()):
        raise InvalidInput("key", "is no API key", "as in 'ww_…', from `wellworn keys create`")
    headers = {} if key is None else {"authorization": f"Bearer {key.strip()}"}
    return {"base_url": url, "headers": headers, "timeout": timeout_s}

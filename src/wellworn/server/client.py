"""The verbs of `Memory` over HTTP, with the same parameters, values and errors.

    ada = Client("http://localhost:8765", key="ww_…").for_user("ada")
    ada.remember("Ada prefers tokio over async-std.", kind="preference")

The tenant is that of the key. Writes carry an idempotency key, so that one whose answer was lost is sent again safely.
`AsyncClient` has the same verbs, awaited. What each verb asks is in `verbs`; here is how it is sent, written once for both.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TypeVar

import msgspec

from wellworn import aio
from wellworn.core.errors import InvalidInput, MissingExtra, ScopeError, ServiceFailed, StoreClosed
from wellworn.core.values import LAYERS, Scope
from wellworn.ingest.validate import checked_scope, checked_seconds, checked_session_id, scope_of_user
from wellworn.server import wire
from wellworn.server.verbs import BESIDE_STORE, OF_TENANT, VERBS, Ask, Flow, Given, KeepsTasks, ManagesKeys

if TYPE_CHECKING:
    import httpx

TRIES = 3
MOST_WAIT_S = 5.0
CHUNK = 65536
_STREAMS = ("text/event-stream", "application/x-ndjson")
T = TypeVar("T")


# -- connections -------------------------------------------------------------------------------------------------------


class Connection:
    """Sends requests, and sends them again when the connection broke or the service has too much to do.

    With a blocking client its coroutines never pause, so that one step ends them.
    """

    def __init__(self, http: Any, *, waits: bool) -> None:
        self.http = http  # a client of httpx
        self.waits = waits
        """Whether that one is async."""

    async def run(self, flow: Flow[T], scope: Mapping[str, Any]) -> T:
        """Play a verb: send what it asks, and give it the answers."""
        import httpx

        try:
            ask = next(flow)
            while True:
                ask = flow.send(await self._answer(ask, scope))
        except StopIteration as done:
            found: T = done.value
            return found
        except UnicodeEncodeError:
            raise InvalidInput("address", "holds half a character, a lone surrogate", "leave it out") from None
        except httpx.InvalidURL as error:
            raise InvalidInput("address", f"cannot be sent: {error}", "give fewer or shorter values") from None
        finally:
            flow.close()

    async def _answer(self, ask: Ask, scope: Mapping[str, Any]) -> Any:  # of the type that is asked for
        import httpx

        if self.http.is_closed:
            raise StoreClosed("this client was closed (make a new one)")
        headers = {"idempotency-key": uuid.uuid4().hex} if ask.once else {}
        headers |= {} if ask.content is None else {"content-type": ask.type}
        query = {**scope, **ask.query}
        for tries_left in reversed(range(TRIES)):
            content: Any = ask.content
            if content is not None and not isinstance(content, bytes):
                content.seek(0)
                content = _chunks(content) if self.waits else content
            request = self.http.build_request(ask.method, ask.path, params=query, headers=headers, content=content)
            if ask.sink is not None:
                request.extensions["timeout"]["read"] = None  # a long answer may pause
            try:
                sent = self.http.send(request, stream=True)
                response: httpx.Response = await sent if self.waits else sent
                try:
                    wait_s = wait_after(response, tries_left)
                    if wait_s is None:
                        await self._read(response, ask.sink if response.is_success else None)
                        return answer_in(ask, response)
                finally:
                    await response.aclose() if self.waits else response.close()
            except httpx.HTTPError as error:
                if not tries_left or not _may_repeat(ask, error):
                    raise _unreachable(self.http.base_url, error) from None
                continue
            await asyncio.sleep(wait_s) if self.waits else time.sleep(wait_s)
        raise AssertionError("unreachable")

    async def _read(self, response: httpx.Response, sink: Callable[[bytes], object] | None) -> None:
        if sink is None:
            await response.aread() if self.waits else response.read()
        elif self.waits:
            async for data in response.aiter_bytes():
                sink(data)
        else:
            for data in response.iter_bytes():
                sink(data)


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    while data := await asyncio.to_thread(file.read, CHUNK):
        yield data


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
    if not response.is_success:
        raise wire.error_of(response.status_code, _document(response))
    try:
        if ask.sink is None:
            return msgspec.json.decode(response.content, type=ask.answer)
        if not response.headers.get("content-type", "").startswith(_STREAMS):
            raise msgspec.ValidationError("Expected a stream")
        return response.headers
    except msgspec.MsgspecError as error:
        raise ServiceFailed(f"{response.url} is no wellworn service: {error} (check the address)") from None


def _document(response: httpx.Response) -> Mapping[str, Any]:
    try:
        found = response.json()
    except ValueError:
        place, _, _ = response.headers.get("location", "").partition("?")
        return {"detail": f"{response.url} leads to {place} (give the client that address)"} if place else {}
    return found if isinstance(found, dict) else {}


def _unreachable(url: httpx.URL, error: Exception) -> ServiceFailed:
    import httpx

    if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
        return ServiceFailed(f"{url} gave no answer in time; a write may be made (look, or give a longer timeout_s)")
    return ServiceFailed(f"{url} cannot be reached: {error} (start it with `wellworn serve`)")


# -- verbs -------------------------------------------------------------------------------------------------------------


class Remote(aio.Face[aio.K]):
    """A part of a service: whose memory it is about, and what is fixed in its addresses."""

    def __init__(self, connection: Connection, scope: Scope | None, **place: str) -> None:
        self.connection, self.awaits = connection, connection.waits
        self.scope = scope
        """The scope that is filled in; None: what the key is bound to, when a call names none."""
        self._place = place

    def plays(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Ask the service for the verb that stands for this method of `Memory`."""
        asked = self._ask(method, args, kwargs)
        if self.awaits:
            return asked
        try:
            asked.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("a blocking connection never pauses")

    async def _ask(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bound = _signature_of(method).bind(self, *args, **kwargs)
        said = {**self._place, **_flat(bound)}
        bound.apply_defaults()
        given = Given(said=said, all={**self._place, **_flat(bound)})
        scope = narrowed(said.pop("scope", None), self.scope)
        if scope is not None and not scope.partitions() and method not in OF_TENANT:
            scope.home()  # refuses it: to the service no layer is what the key is bound to
        return await self.connection.run(VERBS[method](given), _parameters(scope))


_signature_of = functools.cache(inspect.signature)


def _flat(bound: inspect.BoundArguments) -> dict[str, Any]:
    """The arguments by name, those of `**` among them, without `self`."""
    kinds = bound.signature.parameters
    flat: dict[str, Any] = {}
    for name, value in [*bound.arguments.items()][1:]:
        flat |= value if kinds[name].kind is inspect.Parameter.VAR_KEYWORD else {name: value}
    return flat


def narrowed(scope: Scope | None, bound: Scope | None) -> Scope | None:
    """The scope that a call names, which lies within what the client is bound to."""
    wanted = bound if scope is None else checked_scope(scope)
    if bound is not None and wanted is not None and not wanted.within(bound):
        raise ScopeError("scope", f"{scope} reaches beyond {bound}, to which this client is bound", "leave it out")
    return wanted


def _parameters(scope: Scope | None) -> dict[str, Any]:
    """The query parameters that name a scope."""
    if scope is None:
        return {}
    tenant = {} if scope.tenant == "default" else {"tenant": scope.tenant}
    return {**tenant, **{layer: ids for layer in LAYERS if (ids := list(scope.ids(layer)))}}


class ClientLearning(aio.LearningVerbs[aio.K], Remote[aio.K]):
    """What was learned from outcomes, and how to steer it."""


class ClientJobs(aio.JobsVerbs[aio.K], Remote[aio.K]):
    """Background work of the service."""


class ClientAdmin(aio.AdminVerbs[aio.K], Remote[aio.K]):
    """Counts, costs, the audit log, keeping and erasing, moving data in and out. Needs an admin's key."""

    if not TYPE_CHECKING:  # for which a name that is not there stays an error

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"admin.{name}: {BESIDE_STORE.get(name, 'there is no such verb')}")


class ClientTasks(Remote[aio.K]):
    """Tasks, and the strategies and guardrails that they taught: `ReasoningBank` behind a service."""

    begin = aio.Verb(KeepsTasks.begin)
    finish = aio.Verb(KeepsTasks.finish)
    list = aio.Verb(KeepsTasks.list)
    items = aio.Verb(KeepsTasks.items)
    retrieve = aio.Verb(KeepsTasks.retrieve)


class ClientKeys(Remote[aio.K]):
    """API keys of the tenant. Needs an admin's key."""

    list = aio.Verb(ManagesKeys.list)
    create = aio.Verb(ManagesKeys.create)
    rotate = aio.Verb(ManagesKeys.rotate)
    revoke = aio.Verb(ManagesKeys.revoke)


class RemoteSession(aio.SessionVerbs[aio.K], Remote[aio.K]):
    """One dialogue of a scope, as `Memory.session` gives it."""

    def __init__(self, connection: Connection, scope: Scope | None, session_id: str) -> None:
        self.id = checked_session_id(session_id)
        super().__init__(connection, scope, session_id=self.id)


class ClientSession(RemoteSession[aio.Blocking]):
    """A dialogue behind a service."""


class AsyncClientSession(RemoteSession[aio.Awaiting]):
    """A dialogue whose turns are awaited."""


class RemoteMemory(aio.MemoryVerbs[aio.K], Remote[aio.K]):
    """What both clients have."""

    def _bind(self, connection: Connection, scope: Scope | None) -> None:
        super().__init__(connection, scope)
        self.learning: ClientLearning[aio.K] = ClientLearning(connection, scope)
        self.jobs: ClientJobs[aio.K] = ClientJobs(connection, scope)
        self.admin: ClientAdmin[aio.K] = ClientAdmin(connection, scope)
        self.tasks: ClientTasks[aio.K] = ClientTasks(connection, scope)
        self.keys: ClientKeys[aio.K] = ClientKeys(connection, scope)

    def for_user(self, user: str, *, tenant: str = "default", **layers: str) -> Self:
        """The memory of one person: the same verbs, without `scope`."""
        return self.for_scope(scope_of_user(user, tenant, layers))

    def for_scope(self, scope: Scope) -> Self:
        """The same verbs with any scope filled in. The tenant `default` stands for that of the key."""
        bound = object.__new__(type(self))
        bound._bind(self.connection, checked_scope(scope))
        return bound

    def __repr__(self) -> str:
        name = f"{type(self).__name__}({str(self.connection.http.base_url)!r})"
        return name if self.scope is None else f"{name}.for_scope({self.scope})"


# -- the clients -------------------------------------------------------------------------------------------------------


class Client(RemoteMemory[aio.Blocking]):
    """A memory behind `wellworn serve`. Safe to share between threads; close it when done."""

    def __init__(self, url: str, *, key: str | None = None, timeout_s: float = 60.0) -> None:
        """`key` is an API key (`wellworn keys create`) or a token of the issuer that the service trusts; a service on
        this machine needs none."""
        self._bind(Connection(_httpx().Client(**_options(url, key, timeout_s)), waits=False), None)

    def session(self, session_id: str, *, scope: Scope | None = None) -> ClientSession:
        """A dialogue to add turns to; a known id continues that dialogue."""
        return ClientSession(self.connection, narrowed(scope, self.scope), session_id)

    def close(self) -> None:
        """End the connections; views of the same client end with it."""
        self.connection.http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(RemoteMemory[aio.Awaiting]):
    """`Client` for async code: the same verbs, awaited."""

    def __init__(self, url: str, *, key: str | None = None, timeout_s: float = 60.0) -> None:
        self._bind(Connection(_httpx().AsyncClient(**_options(url, key, timeout_s)), waits=True), None)

    def session(self, session_id: str, *, scope: Scope | None = None) -> AsyncClientSession:
        return AsyncClientSession(self.connection, narrowed(scope, self.scope), session_id)

    async def close(self) -> None:
        await self.connection.http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
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
    return {"base_url": url, "headers": headers, "timeout": checked_seconds("timeout_s", timeout_s)}

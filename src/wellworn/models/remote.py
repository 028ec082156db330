"""Posting JSON to a service over HTTP: retries, time limits, and errors that never show the key.

What remote embedders and language models share. Retrying and leaving out refused parts are written once, as a
generator of steps (a body to post, or seconds to wait), which a synchronous and an awaited driver run. httpx is
imported when an endpoint is made.
"""

from __future__ import annotations

import json
import os
import random
import time
import weakref
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from wellworn.core.clock import system_clock
from wellworn.core.errors import InvalidInput, MissingExtra, ModelFailed
from wellworn.models.base import Completion, ModelBase, passing_status
from wellworn.models.port import Request

if TYPE_CHECKING:
    import httpx

MAX_WAIT_S = 60.0
"""A service that asks for a longer wait than this gets an error instead: an agent is waiting."""
MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""More than any batch of vectors or any text; beyond it something is wrong with the service."""

_FIRST_WAIT_S, _LONGEST_BACKOFF_S = 0.5, 8.0
_MAX_QUOTED_CHARS = 200
_REFUSALS = frozenset({400, 422, 501})

T = TypeVar("T")
Step: TypeAlias = "tuple[str, Mapping[str, Any]] | float"
"""A path and the body to post there, or seconds to wait."""
Without = frozenset[str]
"""Parts that are left out of a body, or sent otherwise: `schema`, `json`, `temperature`, `max_tokens`."""


class HttpFailure(Exception):  # never leaves the package: callers translate it
    """No usable answer. `status` is None when there was none at all; `message` is the service's own explanation."""

    def __init__(self, problem: str, *, status: int | None = None, message: str = "", retryable: bool = True) -> None:
        self.problem, self.status, self.message, self.retryable = problem, status, message, retryable
        super().__init__(problem)


@dataclass(frozen=True, kw_only=True)
class HttpAnswer:
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:  # whatever the service sent
        """The body as JSON; ValueError when it is none."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("nested too deeply") from None


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How long one attempt may take, how many more there are, and how the time between them passes.

    The wait doubles from half a second to eight; `jitter` (a number from 0 to 1 at each call) takes up to half of it
    away, so that clients that failed together do not return together.
    """

    timeout_s: float
    retries: int
    jitter: Callable[[], float] = random.random
    sleep: Callable[[float], None] = time.sleep
    asleep: Callable[[float], Awaitable[None]] | None = None
    """None is asyncio's."""

    def __post_init__(self) -> None:
        if not self.timeout_s > 0 or self.retries < 0:
            raise InvalidInput("timeout_s", f"{self.timeout_s} with {self.retries} retries", "above 0; retries from 0")

    def backoff_s(self, attempt: int) -> float:
        return float(min(_FIRST_WAIT_S * 2**attempt, _LONGEST_BACKOFF_S) * (1 - self.jitter() / 2))


@dataclass(frozen=True, kw_only=True)
class Service:
    """What distinguishes one kind of service: its public address, its environment variables, its headers."""

    name: str
    extra: str
    public_url: str
    url_variable: str
    key_variable: str
    headers: Callable[[str], dict[str, str]]
    """From the key, which may be empty."""
    remedies: Mapping[int, str] = field(default_factory=dict)
    """What to do about a status, where it differs from the usual."""

    def url_and_key(self, base_url: str | None, api_key: str | None) -> tuple[str, str]:
        """As given, else from the environment; the public address refuses to go without a key."""
        url = base_url or os.environ.get(self.url_variable) or self.public_url
        key = (api_key if api_key is not None else os.environ.get(self.key_variable, "")).strip()
        if not key and url.startswith(self.public_url):  # local servers often need none
            remedy = f"give api_key=… or set {self.key_variable}"
            raise InvalidInput("api_key", f"the public {self.name} API needs a key", remedy)
        if not all("!" <= character <= "~" for character in key):
            raise InvalidInput("api_key", "holds characters that an HTTP header cannot carry", "copy the key again")
        return url, key

    def remedy(self, status: int) -> str:
        usual = {
            400: "check the model name, and that no text is longer than the model takes",
            401: f"check the key: api_key=… or {self.key_variable}",
            403: "check that the key may use this model",
            413: "send less at once",
            429: "wait, lower the load, or raise the account's limit",
        }
        default = "try again later" if status >= 500 else "check base_url and the model name"
        return self.remedies.get(status) or usual.get(status) or default


class Endpoint:
    """One address of a service; safe between threads and between event loops.

    Synchronous calls share connections. An awaited call opens its own, because connections belong to the event loop
    they were made in, and a loop may end without telling us.
    """

    def __init__(self, service: Service, retry: Retry, *, base_url: str | None, api_key: str | None) -> None:
        url, self._key = service.url_and_key(base_url, api_key)
        try:
            import httpx
        except ImportError as error:
            raise MissingExtra(f"{service.name} over HTTP", service.extra) from error
        base, auth = _address(url)
        self.host = base.host
        self._service, self._retry = service, retry
        self._options: dict[str, Any] = {  # of both kinds of client
            "base_url": base,
            "auth": auth,
            "headers": service.headers(self._key),
            "timeout": retry.timeout_s,
            "verify": httpx.create_ssl_context(),
        }
        self.client = httpx.Client(**self._options)
        # Sockets close when the endpoint is closed or no longer referenced, and at exit at the latest.
        self._finalizer = weakref.finalize(self, self.client.close)

    def close(self) -> None:
        """Close the connections. Closing twice is fine."""
        self._finalizer()

    def exchange(self, path: str, body: Mapping[str, Any]) -> Generator[Step, Any, HttpAnswer]:
        """Every attempt at one call; returns the first successful answer or raises `HttpFailure`."""
        for attempt in range(self._retry.retries + 1):
            answer = yield path, body
            if isinstance(answer, HttpAnswer):
                if 200 <= answer.status < 300:
                    return answer
                failure, wait_s = self._refused(answer), _asked_wait_s(answer.headers.get("Retry-After", ""))
            else:
                failure, wait_s = answer, None
            if wait_s is None:
                wait_s = self._retry.backoff_s(attempt)
            if not failure.retryable or wait_s > MAX_WAIT_S or attempt == self._retry.retries:
                break
            yield wait_s
        if attempt:
            failure.problem += f" (tried {attempt + 1} times)"
        raise failure

    def run(self, steps: Generator[Step, Any, T]) -> T:
        """Take the steps and return what they return."""
        result: Any = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration as end:
                value: T = end.value
                return value
            if isinstance(step, float):
                self._retry.sleep(step)
            else:
                result = self._post(*step)

    async def arun(self, steps: Generator[Step, Any, T]) -> T:
        """The same, awaited."""
        import asyncio

        import httpx

        asleep, result = self._retry.asleep or asyncio.sleep, None
        async with httpx.AsyncClient(**self._options) as client:
            while True:
                try:
                    step = steps.send(result)
                except StopIteration as end:
                    value: T = end.value
                    return value
                result = await (asleep(step) if isinstance(step, float) else self._apost(client, *step))

    def _post(self, path: str, body: Mapping[str, Any]) -> HttpAnswer | HttpFailure:
        received = _Received(self._retry.timeout_s)
        try:
            with self.client.stream("POST", path, json=body) as response:
                for chunk in response.iter_bytes():
                    received.add(chunk)
                return received.answer(response)
        except Exception as error:
            return self._failed(error)

    async def _apost(self, client: httpx.AsyncClient, path: str, body: Mapping[str, Any]) -> HttpAnswer | HttpFailure:
        import asyncio

        received = _Received(self._retry.timeout_s)
        try:
            async with asyncio.timeout(self._retry.timeout_s), client.stream("POST", path, json=body) as response:
                async for chunk in response.aiter_bytes():
                    received.add(chunk)
                return received.answer(response)
        except Exception as error:
            return self._failed(error)

    def _failed(self, error: Exception) -> HttpFailure:
        import httpx

        if isinstance(error, httpx.TimeoutException | TimeoutError):
            return HttpFailure(f"{self.host} did not answer in time (raise timeout_s, or ask for less at once)")
        if isinstance(error, httpx.HTTPError | httpx.StreamError):
            # Its text may quote headers, so only its name is shown.
            kind = type(error).__name__
            return HttpFailure(f"no connection to {self.host}: {kind} (check base_url and the network)")
        if isinstance(error, _TooLargeError):
            problem = f"{self.host} answered with more than {MAX_ANSWER_BYTES:,} bytes (check base_url)"
            return HttpFailure(problem, retryable=False)
        raise error

    def _refused(self, answer: HttpAnswer) -> HttpFailure:
        status, message = answer.status, _message(answer)
        if self._key:
            message = message.replace(self._key, "[key]")
        quoted = f": {message[:_MAX_QUOTED_CHARS]}" if message else ""
        # OpenAI's 429 for an empty account: no wait fills it.
        retryable = passing_status(status) and b"insufficient_quota" not in answer.body
        problem = f"{self.host} answered HTTP {status}{quoted} ({self._service.remedy(status)})"
        return HttpFailure(problem, status=status, message=message, retryable=retryable)


class HttpModel(ModelBase):
    """A language model behind an endpoint that may refuse parts of a request; safe between threads and event loops.

    Services differ in what they accept: one knows no `response_format`, another wants the limit under another name, a
    third takes no temperature. A part that is refused is left out, the call goes out again, and the model remembers.
    """

    def __init__(self, name: str, endpoint: Endpoint, *, path: str, without: Without = frozenset()) -> None:
        super().__init__(name)
        self.endpoint = endpoint
        self._path = path
        self._without = without

    def close(self) -> None:
        """Close the connections. Closing twice is fine."""
        self.endpoint.close()

    def _ask(self, request: Request) -> Completion:
        return self.endpoint.run(self._steps(request))

    async def _aask(self, request: Request) -> Completion:
        return await self.endpoint.arun(self._steps(request))

    def _steps(self, request: Request) -> Generator[Step, Any, Completion]:
        without = self._without
        while True:
            body = self._body(request, without)
            try:
                answer = yield from self.endpoint.exchange(self._path, body)
            except HttpFailure as failure:
                part = self._refused(body, failure.message.lower()) if failure.status in _REFUSALS else None
                if part is None or part in without:
                    raise ModelFailed(f"model {self.name!r}: {failure.problem}", retryable=failure.retryable) from None
                without |= {part}
                continue
            self._without = without
            return self._read(answer)

    @abstractmethod
    def _body(self, request: Request, without: Without) -> dict[str, Any]:
        """The request as this service wants it."""

    @abstractmethod
    def _refused(self, body: Mapping[str, Any], message: str) -> str | None:
        """Which part of the body the service does not take, from its message in lower case; None if none of them."""

    @abstractmethod
    def _completion(self, answer: Any) -> Completion:
        """The text in the service's JSON; KeyError, TypeError or the like when it is not there."""

    def _read(self, answer: HttpAnswer) -> Completion:
        host = self.endpoint.host
        try:
            data = answer.json()
        except ValueError:  # cut off on the way, or the page of some gateway
            problem = f"{host} answered with something that is not JSON (check base_url)"
            raise ModelFailed(f"model {self.name!r}: {problem}", retryable=True) from None
        try:
            return self._completion(data)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError):
            problem = f"the answer of {host} holds no message (check base_url and the model name)"
            raise ModelFailed(f"model {self.name!r}: {problem}") from None


class _TooLargeError(Exception):
    """The answer goes on and on."""


class _Received:
    """The body so far. The client's own time limit is for each read; a service that drips would never reach it."""

    def __init__(self, timeout_s: float) -> None:
        self._deadline = time.monotonic() + timeout_s
        self._body = bytearray()

    def add(self, chunk: bytes) -> None:
        self._body += chunk
        if len(self._body) > MAX_ANSWER_BYTES:
            raise _TooLargeError
        if time.monotonic() > self._deadline:
            raise TimeoutError

    def answer(self, response: httpx.Response) -> HttpAnswer:
        return HttpAnswer(status=response.status_code, headers=response.headers, body=bytes(self._body))


def joined(content: Any) -> str:  # Any: as the service sent it
    """The text of a message, which is a string or a list of parts; None is an empty one."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = [part if isinstance(part, str) else part.get("text") for part in content]
    return "".join(text for text in texts if isinstance(text, str))


def _address(url: str) -> tuple[httpx.URL, tuple[str, str] | None]:
    """The address without user and password, which would be logged with it, and those two."""
    import httpx

    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput("base_url", "is not an http(s) address", "as in http://localhost:11434/v1")
    auth = (parsed.username, parsed.password) if parsed.userinfo else None
    return parsed.copy_with(userinfo=b""), auth


def _message(answer: HttpAnswer) -> str:
    """The service's own explanation, where it gives one."""
    try:
        data = answer.json()
    except ValueError:
        return ""
    if not isinstance(data, dict):
        return ""
    error = data.get("error", data.get("message", data.get("detail", "")))
    return str(error.get("message", "")) if isinstance(error, dict) else str(error or "")


def _asked_wait_s(header: str) -> float | None:
    """`Retry-After` as seconds, given as a number or as a date; None when absent or unreadable."""
    from email.utils import parsedate_to_datetime

    try:
        if header.strip().replace(".", "", 1).isdecimal():
            return float(header)
        return max(0.0, (parsedate_to_datetime(header) - system_clock()).total_seconds())
    except (TypeError, ValueError):
        return None

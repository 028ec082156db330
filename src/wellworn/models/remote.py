"""Posting JSON to a service over HTTP: patience, time limits, and failing without telling the key.

What every remote embedder and language model has in common. Knows status codes and headers, not what the bodies mean;
whoever calls turns `Unanswered` into an error of its own. httpx is imported when an endpoint is made.
"""

from __future__ import annotations

import json
import random
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from wellworn.core.clock import system_clock
from wellworn.core.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    import httpx

MAX_WAIT_S = 60.0
"""A service that asks for more patience than this gets an error instead: an agent is waiting."""
MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""More than any batch of vectors or any text; beyond it something is wrong with the service."""

_PASSING = frozenset({408, 409, 429})  # and 5xx
_FIRST_WAIT_S, _LONGEST_BACKOFF_S = 0.5, 8.0
_MAX_QUOTED_CHARS = 200


class Unanswered(Exception):  # never leaves the package: callers translate it
    """No usable answer. `status` is None when there was none at all; `said` is the service's own explanation."""

    def __init__(self, problem: str, *, status: int | None, said: str, retryable: bool) -> None:
        self.problem, self.status, self.said, self.retryable = problem, status, said, retryable
        super().__init__(problem)


@dataclass(frozen=True, kw_only=True)
class Answer:
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
class Patience:
    """How long one attempt may take, how many further ones there are, and how the time between is spent.

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


class Endpoint:
    """One address of a service; safe between threads and between event loops.

    Synchronous calls share connections. An awaited call opens its own, because connections belong to the event loop
    they were made in, and a loop may end without telling us. `remedies` say what to do about a status.
    """

    def __init__(
        self,
        url: str,
        *,
        extra: str,
        feature: str,
        patience: Patience,
        headers: Mapping[str, str],
        key: str = "",
        remedies: Mapping[int, str] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        try:
            import httpx
        except ImportError as error:
            raise MissingExtra(feature, extra) from error
        base, auth = _address(url)
        self.host = base.host
        self._patience = patience
        self._key = key
        self._remedies = dict(remedies or {})
        self._options: dict[str, Any] = {  # of both kinds of client
            "base_url": base,
            "auth": auth,
            "headers": dict(headers),
            "timeout": patience.timeout_s,
            "verify": httpx.create_ssl_context(),
        }
        self.client = httpx.Client(transport=transport, **self._options)
        # Sockets close when the endpoint is closed or no longer referenced, and at exit at the latest.
        self._finalizer = weakref.finalize(self, self.client.close)

    def close(self) -> None:
        """Close the connections. Closing twice is fine."""
        self._finalizer()

    def post(self, path: str, body: Mapping[str, Any]) -> Answer:
        """The first successful answer, or `Unanswered`."""
        for attempt in range(self._patience.retries + 1):
            answer, failure, wait_s = self._judge(self._try_once(path, body), attempt)
            if answer is not None:
                return answer
            if wait_s is None or attempt == self._patience.retries:
                break
            self._patience.sleep(wait_s)
        raise self._unanswered(failure, attempt)

    async def apost(self, path: str, body: Mapping[str, Any]) -> Answer:
        """The same, awaited."""
        import asyncio

        import httpx

        asleep = self._patience.asleep or asyncio.sleep
        async with httpx.AsyncClient(**self._options) as client:
            for attempt in range(self._patience.retries + 1):
                answer, failure, wait_s = self._judge(await self._atry_once(client, path, body), attempt)
                if answer is not None:
                    return answer
                if wait_s is None or attempt == self._patience.retries:
                    break
                await asleep(wait_s)
        raise self._unanswered(failure, attempt)

    def _try_once(self, path: str, body: Mapping[str, Any]) -> Answer | Unanswered:
        import httpx

        try:
            with self.client.stream("POST", path, json=body) as response:
                return self._whole(response, b"".join(self._in_time(response.iter_bytes())))
        except (httpx.TimeoutException, TimeoutError):
            return self._late()
        except (httpx.HTTPError, httpx.StreamError) as error:
            return self._broken(error)
        except _TooLargeError:
            return self._too_large()

    async def _atry_once(self, client: httpx.AsyncClient, path: str, body: Mapping[str, Any]) -> Answer | Unanswered:
        import asyncio

        import httpx

        try:
            async with asyncio.timeout(self._patience.timeout_s), client.stream("POST", path, json=body) as response:
                return self._whole(response, await _gathered(response.aiter_bytes()))
        except (httpx.TimeoutException, TimeoutError):
            return self._late()
        except (httpx.HTTPError, httpx.StreamError) as error:
            return self._broken(error)
        except _TooLargeError:
            return self._too_large()

    def _in_time(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The client's own limit is for each read; a service that drips would never reach it."""
        deadline, size = time.monotonic() + self._patience.timeout_s, 0
        for chunk in chunks:
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                raise _TooLargeError
            if time.monotonic() > deadline:
                raise TimeoutError
            yield chunk

    def _whole(self, response: httpx.Response, body: bytes) -> Answer:
        return Answer(status=response.status_code, headers=response.headers, body=body)

    def _judge(self, tried: Answer | Unanswered, attempt: int) -> tuple[Answer | None, Unanswered, float | None]:
        """The answer, or the failure and how long to wait; no wait means that trying again would not help."""
        if isinstance(tried, Unanswered):
            return None, tried, self._patience.backoff_s(attempt) if tried.retryable else None
        if 200 <= tried.status < 300:
            return tried, _NO_FAILURE, None
        failure = self._refused(tried)
        if not failure.retryable:
            return None, failure, None
        asked_s = _asked_wait_s(tried.headers.get("Retry-After", ""))
        if asked_s is None:
            return None, failure, self._patience.backoff_s(attempt)
        return None, failure, asked_s if asked_s <= MAX_WAIT_S else None

    def _refused(self, answer: Answer) -> Unanswered:
        status, said = answer.status, _said(answer)
        if self._key:
            said = said.replace(self._key, "[key]")
        default = "try again later" if status >= 500 else "check base_url and the model name"
        quoted = f": {said[:_MAX_QUOTED_CHARS]}" if said else ""
        # OpenAI's 429 for an empty account: no wait fills it.
        passing = (status in _PASSING or status >= 500) and b"insufficient_quota" not in answer.body
        problem = f"{self.host} answered HTTP {status}{quoted} ({self._remedies.get(status, default)})"
        return Unanswered(problem, status=status, said=said, retryable=passing)

    def _late(self) -> Unanswered:
        problem = f"{self.host} did not answer in time (raise timeout_s, or ask for less at once)"
        return Unanswered(problem, status=None, said="", retryable=True)

    def _broken(self, error: Exception) -> Unanswered:
        # Its text may quote headers, so only its name is told.
        problem = f"no connection to {self.host}: {type(error).__name__} (check base_url and the network)"
        return Unanswered(problem, status=None, said="", retryable=True)

    def _too_large(self) -> Unanswered:
        problem = f"{self.host} answered with more than {MAX_ANSWER_BYTES:,} bytes (check base_url)"
        return Unanswered(problem, status=None, said="", retryable=False)

    def _unanswered(self, failure: Unanswered, attempt: int) -> Unanswered:
        tries = f" (tried {attempt + 1} times)" if attempt else ""
        return Unanswered(
            f"{failure.problem}{tries}", status=failure.status, said=failure.said, retryable=failure.retryable
        )


class _TooLargeError(Exception):
    """The answer goes on and on."""


_NO_FAILURE = Unanswered("", status=None, said="", retryable=False)


def checked_key(key: str) -> str:
    """The key without blanks around it; one that no header can carry is refused, without being told."""
    key = key.strip()
    if not all("!" <= character <= "~" for character in key):
        raise InvalidInput("api_key", "holds characters that an HTTP header cannot carry", "copy the key again")
    return key


async def _gathered(chunks: AsyncIterator[bytes]) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise _TooLargeError
    return bytes(body)


def _address(url: str) -> tuple[httpx.URL, tuple[str, str] | None]:
    """The address without user and password, which would otherwise be logged with it, and those."""
    import httpx

    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput("base_url", "is not an http(s) address", "as in http://localhost:11434/v1")
    auth = (parsed.username, parsed.password) if parsed.userinfo else None
    return parsed.copy_with(userinfo=b""), auth


def _said(answer: Answer) -> str:
    """The service's own explanation, where it gives one."""
    try:
        told = answer.json()
    except ValueError:
        return ""
    if not isinstance(told, dict):
        return ""
    error = told.get("error", told.get("message", told.get("detail", "")))
    return str(error.get("message", "")) if isinstance(error, dict) else str(error or "")


def _asked_wait_s(header: str) -> float | None:
    """`Retry-After` as seconds, given as a number or as a date; None when absent or unreadable."""
    try:
        if header.strip().replace(".", "", 1).isdecimal():
            return float(header)
        return max(0.0, (parsedate_to_datetime(header) - system_clock()).total_seconds())
    except (TypeError, ValueError):
        return None

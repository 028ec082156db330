"""Posting JSON to a service over HTTP: retries, time limits, and errors that never show the key.

What remote embedders and language models share. httpx is imported when an endpoint is made.
"""

from __future__ import annotations

import os
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping
from random import random
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, ClassVar

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, MissingExtra, ModelFailed
from wellworn.core.locks import in_haste, patience_left
from wellworn.models.base import Completion, ModelBase, passing_status
from wellworn.models.port import Request

if TYPE_CHECKING:
    import httpx

MAX_WAIT_S = 60.0
"""A service that asks for a longer wait than this gets an error instead: an agent is waiting."""
LONGEST_BACKOFF_S = 8.0
REST_S = 10.0
"""How long a service that was silent is left alone by calls in haste."""
_MAX_QUOTED_CHARS = 200
_REFUSALS = frozenset({400, 422, 501})

Without = frozenset[str]
"""Parts that are left out of a body, or sent otherwise: `schema`, `json`, `temperature`, `max_tokens`."""


class HttpFailure(Exception):  # never leaves the package: callers translate it
    """No usable answer. `status` is None when there was none at all; `message` is the service's own explanation."""

    def __init__(self, problem: str, *, status: int | None = None, message: str = "", retryable: bool = True) -> None:
        self.problem, self.status, self.message, self.retryable = problem, status, message, retryable
        super().__init__(problem)

    @property
    def unquoted(self) -> str:
        """The problem without the provider's words, which may quote what was sent."""
        said = self.message[:_MAX_QUOTED_CHARS]
        return self.problem.replace(f": {said}", "", 1) if said else self.problem


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

    def url_and_key(self, base_url: str | None, api_key: str | None) -> tuple[str, str]:
        """As given, else from the environment; the public address refuses to go without a key."""
        url = base_url or os.environ.get(self.url_variable) or self.public_url
        key = (api_key if api_key is not None else os.environ.get(self.key_variable, "")).strip()
        if not key and url.startswith(self.public_url):  # local servers often need none
            remedy = f"set {self.key_variable}"
            raise InvalidInput("api_key", f"the public {self.name} API needs a key", remedy)
        if not all("!" <= character <= "~" for character in key):
            raise InvalidInput("api_key", "holds characters that an HTTP header cannot carry", "copy the key again")
        return url, key


class Endpoint:
    """One address of a service; safe between threads, which share connections.

    `retries` further attempts follow an answer 408, 409, 429 or 5xx, a time-out or a broken connection, after the
    seconds that the service asks for (`Retry-After`), else about 0.5, 1, 2 … s. `timeout_s` is how long the service
    may be silent.
    """

    def __init__(
        self, service: Service, *, base_url: str | None, api_key: str | None, timeout_s: float, retries: int
    ) -> None:
        if not timeout_s > 0 or retries < 0:
            raise InvalidInput("timeout_s", f"{timeout_s} with {retries} retries", "above 0; retries from 0")
        url, self._key = service.url_and_key(base_url, api_key)
        try:
            import httpx
        except ImportError as error:
            raise MissingExtra(f"{service.name} over HTTP", service.extra) from error
        base, auth = _address(url)
        self.host = base.host
        self.remedies = {
            400: "check the model name, and that no text is longer than the model takes",
            401: f"check the key: api_key=… or {service.key_variable}",
            403: "check that the key may use this model",
            413: "send less at once",
            429: "wait, lower the load, or raise the account's limit",
        }
        """What to do about a status."""
        self._retries, self._timeout_s = retries, timeout_s
        self._rests_until = float("-inf")
        self.client = httpx.Client(base_url=base, auth=auth, headers=service.headers(self._key), timeout=timeout_s)
        # Sockets close when the endpoint is no longer referenced, and at exit at the latest.
        weakref.finalize(self, self.client.close)

    def post(
        self, path: str, body: Mapping[str, Any], *, haste_s: float = float("inf")
    ) -> Any:  # whatever JSON the service sent
        """The first successful answer of several attempts, or `HttpFailure`.

        To a call in haste the service may be silent for `haste_s`. After that it is left alone for a while.
        """
        import httpx

        limit_s = min(self._timeout_s, haste_s) if in_haste() else self._timeout_s
        hurried = limit_s < self._timeout_s
        if hurried and monotonic() < self._rests_until:
            raise HttpFailure(f"{self.host} was silent and is left alone for {REST_S:g} s")
        for attempt in range(self._retries + 1):
            # Chance takes up to half of it away, so that clients that failed together do not return together.
            wait_s = min(0.5 * 2**attempt, LONGEST_BACKOFF_S) * (1 - random() / 2)  # noqa: S311 - chance, no secret
            try:
                answer = self.client.post(path, json=body, timeout=limit_s)
                if answer.is_success:
                    return answer.json()
                failure = self._refused(answer)
                asked = answer.headers.get("Retry-After", "")
                wait_s = float(asked) if asked.replace(".", "", 1).isdecimal() else wait_s
            except httpx.TimeoutException:
                problem = f"{self.host} did not answer in time (raise timeout_s, or ask for less at once)"
                failure = HttpFailure(problem, retryable=not hurried)
                self._rests_until = monotonic() + REST_S
            except httpx.HTTPError as error:  # its text may quote headers, so only its name is shown
                kind = type(error).__name__
                failure = HttpFailure(f"no connection to {self.host}: {kind} (check base_url and the network)")
            except (ValueError, RecursionError):  # cut off on the way, or the page of some gateway
                failure = HttpFailure(f"{self.host} answered with something that is not JSON (check base_url)")
            if not failure.retryable or wait_s > patience_left(MAX_WAIT_S) or attempt == self._retries:
                break
            sleep(wait_s)
        if attempt:
            failure.problem += f" (tried {attempt + 1} times)"
        raise failure

    def _refused(self, answer: httpx.Response) -> HttpFailure:
        status, message = answer.status_code, _message(answer)
        if self._key:
            message = message.replace(self._key, "[key]")
        quoted = f": {message[:_MAX_QUOTED_CHARS]}" if message else ""
        usual = "try again later" if status >= 500 else "check base_url and the model name"
        problem = f"{self.host} answered HTTP {status}{quoted} ({self.remedies.get(status, usual)})"
        # OpenAI's 429 for an empty account: no wait fills it.
        retryable = passing_status(status) and b"insufficient_quota" not in answer.content
        return HttpFailure(problem, status=status, message=message, retryable=retryable)


class HttpModel(ModelBase):
    """A language model behind an endpoint that may refuse parts of a request; safe between threads.

    The address is `base_url`, else the service's environment variable, else its public API; likewise the key. Retries
    and time limits are those of `Endpoint`. Services differ in what they accept: one knows no `response_format`,
    another wants the limit under another name, a third takes no temperature. A part that is refused is left out, the
    call goes out again, and the model remembers.
    """

    service: ClassVar[Service]
    path: ClassVar[str]
    provider: ClassVar[str]

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 120.0,
        retries: int = 3,
    ) -> None:
        super().__init__(f"{self.provider}:{model}")
        self.endpoint = Endpoint(self.service, base_url=base_url, api_key=api_key, timeout_s=timeout_s, retries=retries)
        self._model = model
        self._without: Without = frozenset()

    def _ask(self, request: Request) -> Completion:
        without = self._without
        while True:
            body = self._body(request, without)
            try:
                answer = self.endpoint.post(self.path, body)
                break
            except HttpFailure as failure:
                part = self._refused(body, failure.message.lower()) if failure.status in _REFUSALS else None
                if part is None or part in without:
                    raise ModelFailed(f"model {self.name!r}: {failure.problem}", retryable=failure.retryable) from None
                without |= {part}
        self._without = without
        try:
            return self._completion(answer)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError):
            problem = f"the answer of {self.endpoint.host} holds no message (check base_url and the model name)"
            raise ModelFailed(f"model {self.name!r}: {problem}") from None

    @abstractmethod
    def _body(self, request: Request, without: Without) -> dict[str, Any]:
        """The request as this service wants it."""

    @abstractmethod
    def _refused(self, body: Mapping[str, Any], message: str) -> str | None:
        """Which part of the body the service does not take, from its message in lower case; None if none of them."""

    @abstractmethod
    def _completion(self, answer: Any) -> Completion:
        """The text in the service's JSON; KeyError, TypeError or the like when it is not there."""


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


def _message(answer: httpx.Response) -> str:
    """The service's own explanation, where it gives one."""
    try:
        data = answer.json()
    except (ValueError, RecursionError):
        return ""
    if not isinstance(data, dict):
        return ""
    error = data.get("error", data.get("message", data.get("detail", "")))
    return str(error.get("message", "")) if isinstance(error, dict) else str(error or "")

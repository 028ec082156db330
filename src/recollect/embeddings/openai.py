"""Any OpenAI-compatible `/embeddings` endpoint over HTTP (extra `openai`).

Knows the wire format, when to try again and how to fail without telling the key. Knows nothing about what the texts
are for; batches go out one after the other, in order.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from recollect.clock import system_clock
from recollect.embeddings.provider import Provider
from recollect.errors import EmbeddingFailed, InvalidInput, MissingExtra

if TYPE_CHECKING:
    import httpx

PUBLIC_URL = "https://api.openai.com/v1"
KNOWN_WIDTHS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
MAX_WAIT_S = 60.0
"""A service that asks for more patience than this gets an error instead: an agent is waiting."""

_SHORTENABLE = "text-embedding-3-"  # these take `dimensions`; other models refuse it
_FIRST_WAIT_S, _LONGEST_BACKOFF_S = 0.5, 8.0
_MAX_QUOTED_CHARS = 200
_REMEDIES = {
    400: "check the model name, and that no text is longer than the model takes",
    401: "check the key: api_key=… or OPENAI_API_KEY",
    403: "check that the key may use this model",
    404: "check the model name and base_url",
    413: "lower batch_size",
    429: "wait, lower the load, or raise the account's limit",
}


class OpenAIEmbedder(Provider):
    """One model of one endpoint; safe between threads.

    `retries` further attempts follow an answer 408, 429 or 5xx, a time-out or a broken connection, after the time the
    service asks for (`Retry-After`), else 0.5, 1, 2 … s. `width` shortens the vectors of `text-embedding-3-*`; for
    other models it says what to expect.
    """

    def __init__(self, model: str, *, base_url: str | None = None, api_key: str | None = None,
                 width: int | None = None, timeout_s: float = 30.0, retries: int = 3, batch_size: int = 128,
                 transport: httpx.BaseTransport | None = None,
                 sleep: Callable[[float], None] = time.sleep) -> None:  # fmt: skip
        if batch_size < 1 or retries < 0:
            raise InvalidInput("batch_size", f"{batch_size} with {retries} retries", "from 1, and retries from 0")
        super().__init__(f"openai:{model}", width if width is not None else KNOWN_WIDTHS.get(model))
        self._model = model
        self._dimensions = width if model.startswith(_SHORTENABLE) else None
        self._retries = retries
        self._batch_size = batch_size
        self._sleep = sleep
        url = base_url or os.environ.get("OPENAI_BASE_URL") or PUBLIC_URL
        self._key = _checked_key(api_key or os.environ.get("OPENAI_API_KEY") or "", url)
        self._client = _client(url, self._key, timeout_s, transport)
        # Sockets close when the embedder is closed or no longer referenced, and at exit at the latest.
        self._finalizer = weakref.finalize(self, self._client.close)

    def close(self) -> None:
        """Close the connections. Closing twice is fine."""
        self._finalizer()

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:  # noqa: ARG002 - one kind of vector
        vectors: list[Any] = []
        for start in range(0, len(texts), self._batch_size):
            batch = texts[start : start + self._batch_size]
            vectors += self._vectors(self._post(batch), len(batch))
        return vectors

    def _post(self, batch: list[str]) -> httpx.Response:
        """The first successful answer, or the reason why there is none."""
        body: dict[str, Any] = {"model": self._model, "input": batch}
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        for attempt in range(self._retries + 1):
            response, problem, wait_s = self._try_once(body, attempt)
            if response is not None:
                return response
            if wait_s is None or attempt == self._retries:
                break
            self._sleep(wait_s)
        tries = f" (tried {attempt + 1} times)" if attempt else ""
        raise EmbeddingFailed(f"embedder {self.name!r}: {problem}{tries}; nothing was stored")

    def _try_once(self, body: dict[str, Any], attempt: int) -> tuple[httpx.Response | None, str, float | None]:
        """The answer, or the problem and how long to wait; no wait means that trying again would not help."""
        import httpx

        host = self._client.base_url.host
        backoff_s = min(_FIRST_WAIT_S * 2**attempt, _LONGEST_BACKOFF_S)
        try:
            response = self._client.post("embeddings", json=body)
        except httpx.TimeoutException:
            return None, f"{host} did not answer in time (raise timeout_s, or lower batch_size)", backoff_s
        except httpx.TransportError as error:  # its text may quote headers, so only its name is told
            return None, f"no connection to {host}: {type(error).__name__} (check base_url and the network)", backoff_s
        if response.is_success:
            return response, "", None
        return None, self._problem(host, response), _wait_s(response, backoff_s)

    def _problem(self, host: str, response: httpx.Response) -> str:
        status = response.status_code
        remedy = _REMEDIES.get(status, "try again later" if status >= 500 else "check base_url and the model name")
        said = _said(response)
        if self._key:
            said = said.replace(self._key, "[key]")
        said = f": {said[:_MAX_QUOTED_CHARS]}" if said else ""
        return f"{host} answered HTTP {status}{said} ({remedy})"

    def _vectors(self, response: httpx.Response, count: int) -> list[Any]:
        """The vectors in the order of the texts, whatever order they came in."""
        try:
            items = response.json()["data"]
            by_index = {item.get("index", place): item["embedding"] for place, item in enumerate(items)}
        except (ValueError, KeyError, TypeError, AttributeError):
            problem = "the answer is not an embeddings list (check base_url)"
            raise EmbeddingFailed(f"embedder {self.name!r}: {problem}; nothing was stored") from None
        if len(items) != count or set(by_index) != set(range(count)):
            problem = f"{len(items)} vectors for {count} texts, or their numbers do not match"
            raise EmbeddingFailed(f"embedder {self.name!r}: {problem}; nothing was stored")
        return [by_index[place] for place in range(count)]


def _checked_key(key: str, url: str) -> str:
    key = key.strip()
    if not key and url.startswith(PUBLIC_URL):  # local servers often need none
        raise InvalidInput("api_key", "the public OpenAI API needs a key", "give api_key=… or set OPENAI_API_KEY")
    if not all("!" <= character <= "~" for character in key):
        raise InvalidInput("api_key", "holds characters that an HTTP header cannot carry", "copy the key again")
    return key


def _client(url: str, key: str, timeout_s: float, transport: httpx.BaseTransport | None) -> httpx.Client:
    try:
        import httpx
    except ImportError as error:
        raise MissingExtra("the OpenAI embedder", "openai") from error
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput("base_url", "is not an http(s) address", "as in http://localhost:11434/v1")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.Client(base_url=parsed, headers=headers, timeout=timeout_s, transport=transport)


def _said(response: httpx.Response) -> str:
    """The service's own explanation, where it gives one."""
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return str(error.get("message", "")) if isinstance(error, dict) else str(error)


def _wait_s(response: httpx.Response, backoff_s: float) -> float | None:
    """Seconds before another attempt makes sense; None when it never does."""
    if response.status_code not in (408, 429) and response.status_code < 500:
        return None
    if "insufficient_quota" in response.text:  # OpenAI's 429 for an empty account; no wait fills it
        return None
    wait_s = _asked_wait_s(response.headers.get("Retry-After", ""))
    if wait_s is None:
        return backoff_s
    return wait_s if wait_s <= MAX_WAIT_S else None


def _asked_wait_s(header: str) -> float | None:
    """`Retry-After` as seconds, given as a number or as a date; None when absent or unreadable."""
    try:
        if header.strip().replace(".", "", 1).isdecimal():
            return float(header)
        return max(0.0, (parsedate_to_datetime(header) - system_clock()).total_seconds())
    except (TypeError, ValueError):
        return None

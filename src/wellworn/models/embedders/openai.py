"""Any OpenAI-compatible `/embeddings` endpoint over HTTP (extra `openai`).

Knows the wire format of vectors. Knows nothing about what the texts are for, nor about connections and patience (see
`remote`); batches go out one after the other, in order.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from wellworn.core.errors import EmbeddingFailed, InvalidInput
from wellworn.models.embedders.provider import Provider
from wellworn.models.remote import Answer, Endpoint, Patience, Unanswered, checked_key

if TYPE_CHECKING:
    import httpx

PUBLIC_URL = "https://api.openai.com/v1"
KNOWN_WIDTHS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}

_SHORTENABLE = "text-embedding-3-"  # these take `dimensions`; other models refuse it
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

    `retries` further attempts follow an answer 408, 409, 429 or 5xx, a time-out or a broken connection, after the time
    the service asks for (`Retry-After`), else 0.5, 1, 2 … s. `width` shortens the vectors of `text-embedding-3-*`; for
    other models it says what to expect.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        width: int | None = None,
        timeout_s: float = 30.0,
        retries: int = 3,
        batch_size: int = 128,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if batch_size < 1 or retries < 0:
            raise InvalidInput("batch_size", f"{batch_size} with {retries} retries", "from 1, and retries from 0")
        super().__init__(f"openai:{model}", width if width is not None else KNOWN_WIDTHS.get(model))
        self._model = model
        self._dimensions = width if model.startswith(_SHORTENABLE) else None
        self._batch_size = batch_size
        url = base_url or os.environ.get("OPENAI_BASE_URL") or PUBLIC_URL
        key = _checked_key(api_key or os.environ.get("OPENAI_API_KEY") or "", url)
        self._endpoint = Endpoint(
            url,
            extra="openai",
            feature="the OpenAI embedder",
            key=key,
            remedies=_REMEDIES,
            transport=transport,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            patience=Patience(timeout_s=timeout_s, retries=retries, jitter=lambda: 0.0, sleep=sleep),
        )

    def close(self) -> None:
        """Close the connections. Closing twice is fine."""
        self._endpoint.close()

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        vectors: list[Any] = []
        for start in range(0, len(texts), self._batch_size):
            batch = texts[start : start + self._batch_size]
            vectors += self._vectors(self._post(batch), len(batch))
        return vectors

    def _post(self, batch: list[str]) -> Answer:
        """The first successful answer, or the reason why there is none."""
        body: dict[str, Any] = {"model": self._model, "input": batch}
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        try:
            return self._endpoint.post("embeddings", body)
        except Unanswered as failure:
            raise EmbeddingFailed(f"embedder {self.name!r}: {failure.problem}; nothing was stored") from None

    def _vectors(self, answer: Answer, count: int) -> list[Any]:
        """The vectors in the order of the texts, whatever order they came in."""
        try:
            items = answer.json()["data"]
            by_index = {item.get("index", place): item["embedding"] for place, item in enumerate(items)}
        except (ValueError, KeyError, TypeError, AttributeError):
            problem = "the answer is not an embeddings list (check base_url)"
            raise EmbeddingFailed(f"embedder {self.name!r}: {problem}; nothing was stored") from None
        if len(items) != count or set(by_index) != set(range(count)):
            problem = f"{len(items)} vectors for {count} texts, or their numbers do not match"
            raise EmbeddingFailed(f"embedder {self.name!r}: {problem}; nothing was stored")
        return [by_index[place] for place in range(count)]


def _checked_key(key: str, url: str) -> str:
    if not key.strip() and url.startswith(PUBLIC_URL):  # local servers often need none
        raise InvalidInput("api_key", "the public OpenAI API needs a key", "give api_key=… or set OPENAI_API_KEY")
    return checked_key(key)

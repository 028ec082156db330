"""OpenAI-compatible services over HTTP (extra `openai`): OpenAI, vLLM, llama.cpp, LM Studio, Ollama, …

`/chat/completions` as a language model and `/embeddings` as an embedder. Knows the wire format and which of its parts
services are known to refuse; retries and connections are in `remote`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from wellworn.core.errors import EmbeddingFailed, InvalidInput
from wellworn.models.base import Completion, EmbedderBase
from wellworn.models.port import Request
from wellworn.models.remote import Endpoint, HttpFailure, HttpModel, Retry, Service, Without, joined, json_of

if TYPE_CHECKING:
    import httpx

OPENAI = Service(
    name="OpenAI",
    extra="openai",
    public_url="https://api.openai.com/v1",
    url_variable="OPENAI_BASE_URL",
    key_variable="OPENAI_API_KEY",
    headers=lambda key: {"Authorization": f"Bearer {key}"} if key else {},
)
OLLAMA_PORT = 11434
KNOWN_WIDTHS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}

_SHORTENABLE = "text-embedding-3-"  # these take `dimensions`; other models refuse it


class OpenAIModel(HttpModel):
    """One language model of one endpoint; safe between threads.

    The address is `base_url`, else `OPENAI_BASE_URL`, else the public API; the key `api_key`, else `OPENAI_API_KEY`.
    `retries` further attempts follow an answer 408, 409, 429 or 5xx, a time-out or a broken connection, after the time
    the service asks for (`Retry-After`), else about 0.5, 1, 2 … s. `timeout_s` is how long the service may be silent. `retry`
    replaces both, and the clock and chance behind the waits.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        name: str | None = None,
        timeout_s: float = 120.0,
        retries: int = 3,
        retry: Retry | None = None,
    ) -> None:
        retry = retry or Retry(timeout_s=timeout_s, retries=retries)
        endpoint = Endpoint(self._service(model), retry, base_url=base_url, api_key=api_key)
        # OpenAI's own newer models refuse `max_tokens`; most others know no other name for it.
        without = frozenset({"max_tokens"} if endpoint.host.endswith("openai.com") else ())
        super().__init__(name or f"openai:{model}", endpoint, path="chat/completions", without=without)
        self._model = model

    def _service(self, model: str) -> Service:
        return OPENAI

    def _body(self, request: Request, without: Without) -> dict[str, Any]:
        limit = "max_completion_tokens" if "max_tokens" in without else "max_tokens"
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": message.role, "content": message.text} for message in request.messages],
            limit: request.max_output_tokens,
        }
        if "temperature" not in without:
            body["temperature"] = request.temperature
        if request.schema is not None and "schema" not in without:
            shape = {"name": "answer", "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        elif (request.json or request.schema is not None) and "json" not in without:
            body["response_format"] = {"type": "json_object"}
        return body

    def _refused(self, body: Mapping[str, Any], message: str) -> str | None:
        if "max_tokens" in body and "max_completion_tokens" in message:
            return "max_tokens"
        if "temperature" in body and "temperature" in message:
            return "temperature"
        # Services that do not know `response_format` say so in many ways, or not at all.
        if "response_format" in body:
            return "schema" if body["response_format"]["type"] == "json_schema" else "json"
        return None

    def _completion(self, answer: Any) -> Completion:
        text = joined(answer["choices"][0]["message"].get("content"))
        usage = answer.get("usage") or {}
        read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
        return Completion(text=text, input_tokens=read, output_tokens=written)


class OllamaModel(OpenAIModel):
    """A model of the Ollama at `host`, else `OLLAMA_HOST`, else this machine's; other options as for `OpenAIModel`.

    Never sends `OPENAI_API_KEY` there.
    """

    def __init__(self, model: str, *, host: str | None = None, api_key: str = "", **options: Any) -> None:
        url = _ollama_url(host or os.environ.get("OLLAMA_HOST") or f"localhost:{OLLAMA_PORT}")
        super().__init__(model, base_url=url, api_key=api_key, **{"name": f"ollama:{model}", **options})

    def _service(self, model: str) -> Service:
        return replace(OPENAI, remedies={404: f"get the model with `ollama pull {model}`, or check OLLAMA_HOST"})


class OpenAIEmbedder(EmbedderBase):
    """One embedding model of one endpoint; safe between threads.

    Address, key and retries are those of `OpenAIModel`; batches go out one after the other, in order. `width` shortens
    the vectors of `text-embedding-3-*`; for other models it says what to expect.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        width: int | None = None,
        batch_size: int = 128,
        timeout_s: float = 30.0,
        retries: int = 3,
        retry: Retry | None = None,
    ) -> None:
        if batch_size < 1:
            raise InvalidInput("batch_size", f"{batch_size} is less than 1", "128 is usual")
        super().__init__(f"openai:{model}", width if width is not None else KNOWN_WIDTHS.get(model))
        self._model = model
        self._dimensions = width if model.startswith(_SHORTENABLE) else None
        self._batch_size = batch_size
        retry = retry or Retry(timeout_s=timeout_s, retries=retries)
        self.endpoint = Endpoint(OPENAI, retry, base_url=base_url, api_key=api_key)

    def close(self) -> None:
        """Close the connections. Closing twice is fine."""
        self.endpoint.close()

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        vectors: list[Any] = []
        for start in range(0, len(texts), self._batch_size):
            batch = texts[start : start + self._batch_size]
            body: dict[str, Any] = {"model": self._model, "input": batch}
            if self._dimensions is not None:
                body["dimensions"] = self._dimensions
            try:
                answer = self.endpoint.post("embeddings", body)
            except HttpFailure as failure:
                raise self._failed(failure.problem) from None
            vectors += self._vectors(answer, len(batch))
        return vectors

    def _vectors(self, answer: httpx.Response, count: int) -> list[Any]:
        """The vectors in the order of the texts, whatever order they came in."""
        try:
            items = json_of(answer)["data"]
            by_index = {item.get("index", place): item["embedding"] for place, item in enumerate(items)}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._failed("the answer is not an embeddings list (check base_url)") from None
        if len(items) != count or set(by_index) != set(range(count)):
            raise self._failed(f"{len(items)} vectors for {count} texts, or their numbers do not match")
        return [by_index[place] for place in range(count)]

    def _failed(self, problem: str) -> EmbeddingFailed:
        return EmbeddingFailed(f"embedder {self.name!r}: {problem}; nothing was stored")


def _ollama_url(host: str) -> str:
    """As Ollama reads its own variable: scheme, port and path may be left out."""
    host = host.strip().rstrip("/")
    if "://" not in host:
        name = host.rpartition("]")[2] if host.startswith("[") else host  # an IPv6 address has colons of its own
        host = f"http://{host}" if ":" in name else f"http://{host}:{OLLAMA_PORT}"
    return host if host.endswith("/v1") else f"{host}/v1"

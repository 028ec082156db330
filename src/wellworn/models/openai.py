"""OpenAI-compatible services over HTTP (extra `openai`): OpenAI, vLLM, llama.cpp, LM Studio, Ollama, …

`/chat/completions` as a language model and `/embeddings` as an embedder. Knows the wire format and which of its parts
services are known to refuse; retries and connections are in `remote`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from wellworn.core.errors import EmbeddingFailed
from wellworn.models.base import Completion, EmbedderBase
from wellworn.models.port import Request
from wellworn.models.remote import Endpoint, HttpFailure, HttpModel, Service, Without, joined

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
BATCH = 128
HASTE_S, HASTE_S_A_TEXT = 2.5, 0.02
"""How long an agent waits for vectors."""
_SHORTENABLE = "text-embedding-3-"  # these take `dimensions`; other models refuse it


class OpenAIModel(HttpModel):
    """One language model of one endpoint."""

    service, path, provider = OPENAI, "chat/completions", "openai"

    def _body(self, request: Request, without: Without) -> dict[str, Any]:
        # OpenAI's own newer models refuse `max_tokens`; most others know no other name for it.
        new_name = "max_tokens" in without or self.endpoint.host.endswith("openai.com")
        limit = "max_completion_tokens" if new_name else "max_tokens"
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
    """A model of the Ollama at `host`, else `OLLAMA_HOST`, else this machine's; never gets `OPENAI_API_KEY`."""

    provider = "ollama"

    def __init__(self, model: str, *, host: str | None = None, api_key: str = "", **options: Any) -> None:
        url = _ollama_url(host or os.environ.get("OLLAMA_HOST") or f"localhost:{OLLAMA_PORT}")
        super().__init__(model, base_url=url, api_key=api_key, **options)
        self.endpoint.remedies[404] = f"get the model with `ollama pull {model}`, or check OLLAMA_HOST"


class OpenAIEmbedder(EmbedderBase):
    """One embedding model of one endpoint; safe between threads.

    Address, key, retries and time limit are found as for `OpenAIModel`; batches go out one after the other, in order.
    `width` shortens the vectors of `text-embedding-3-*`; for other models it says what to expect.
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
    ) -> None:
        super().__init__(f"openai:{model}", width if width is not None else KNOWN_WIDTHS.get(model))
        self._model = model
        self._dimensions = {"dimensions": width} if width and model.startswith(_SHORTENABLE) else {}
        self.endpoint = Endpoint(OPENAI, base_url=base_url, api_key=api_key, timeout_s=timeout_s, retries=retries)

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        vectors: list[Any] = []
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            try:
                body = {"model": self._model, "input": batch, **self._dimensions}
                answer = self.endpoint.post("embeddings", body, haste_s=HASTE_S + HASTE_S_A_TEXT * len(batch))
                by_index = {item.get("index", n): item["embedding"] for n, item in enumerate(answer["data"])}
                vectors += [by_index.pop(place) for place in range(len(batch))]  # in whatever order they came
                if by_index:
                    raise KeyError(*by_index)
            except HttpFailure as failure:
                raise self._failed(failure.unquoted) from None
            except (KeyError, TypeError, AttributeError):
                raise self._failed(f"the answer is not a list of {len(batch)} embeddings (check base_url)") from None
        return vectors

    def _failed(self, problem: str) -> EmbeddingFailed:
        return EmbeddingFailed(f"embedder {self.name!r}: {problem}; nothing was stored")


def _ollama_url(host: str) -> str:
    """As Ollama reads its own variable: scheme, port and path may be left out."""
    host = host.strip().rstrip("/")
    if "://" not in host:
        name = host.rpartition("]")[2] if host.startswith("[") else host  # an IPv6 address has colons of its own
        host = f"http://{host}" if ":" in name else f"http://{host}:{OLLAMA_PORT}"
    return host if host.endswith("/v1") else f"{host}/v1"

"""Any OpenAI-compatible `/chat/completions` endpoint over HTTP (extra `openai`): OpenAI, vLLM, llama.cpp, LM Studio, …

Knows the wire format and which of its parts services are known to refuse. Connections and patience are `remote`'s.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from wellworn.core.errors import InvalidInput
from wellworn.models.llms.base import Request
from wellworn.models.llms.http import HttpModel, Without, joined
from wellworn.models.llms.provider import Said
from wellworn.models.remote import Endpoint, Patience, checked_key

PUBLIC_URL = "https://api.openai.com/v1"
REMEDIES = {
    400: "check the model name, and that the prompt is not longer than the model takes",
    401: "check the key: api_key=… or OPENAI_API_KEY",
    403: "check that the key may use this model",
    404: "check the model name and base_url",
    429: "wait, lower the load, or raise the account's limit",
}


class OpenAIModel(HttpModel):
    """One model of one endpoint; safe between threads and event loops.

    The address is `base_url`, else `OPENAI_BASE_URL`, else the public API; the key `api_key`, else `OPENAI_API_KEY`.
    `retries` further attempts follow an answer 408, 409, 429 or 5xx, a time-out or a broken connection, after the time
    the service asks for (`Retry-After`), else about 0.5, 1, 2 … s. `timeout_s` is for each attempt as a whole.
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
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], None] = time.sleep,
        asleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        url = base_url or os.environ.get("OPENAI_BASE_URL") or PUBLIC_URL
        key = checked_key(api_key if api_key is not None else os.environ.get("OPENAI_API_KEY", ""))
        if not key and url.startswith(PUBLIC_URL):  # local servers often need none
            raise InvalidInput("api_key", "the public OpenAI API needs a key", "give api_key=… or set OPENAI_API_KEY")
        patience = Patience(timeout_s=timeout_s, retries=retries, jitter=jitter, sleep=sleep, asleep=asleep)
        endpoint = Endpoint(
            url,
            extra="openai",
            feature="an OpenAI-compatible model",
            key=key,
            remedies=self._remedies(model),
            headers={"Authorization": f"Bearer {key}"} if key else {},
            patience=patience,
        )
        # OpenAI's own newer models refuse `max_tokens`; most others know no other name for it.
        without = frozenset({"max_tokens"} if endpoint.host.endswith("openai.com") else ())
        super().__init__(name or f"openai:{model}", endpoint, path="chat/completions", without=without)
        self._model = model

    def _remedies(self, model: str) -> Mapping[int, str]:
        return REMEDIES

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

    def _refused(self, body: Mapping[str, Any], said: str) -> str | None:
        if "max_tokens" in body and "max_completion_tokens" in said:
            return "max_tokens"
        if "temperature" in body and "temperature" in said:
            return "temperature"
        # Services that do not know `response_format` say so in many ways, or not at all.
        if "response_format" in body:
            return "schema" if body["response_format"]["type"] == "json_schema" else "json"
        return None

    def _text(self, told: Any) -> Said:
        text = joined(told["choices"][0]["message"].get("content"))
        usage = told.get("usage") or {}
        return Said(text=text, input_tokens=usage.get("prompt_tokens"), output_tokens=usage.get("completion_tokens"))

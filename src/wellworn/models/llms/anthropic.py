"""Anthropic's Messages API over HTTP (extra `anthropic`).

Knows the wire format: the system text stands apart, the limit is required, an answer is a list of blocks. Connections
and patience are `remote`'s.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from wellworn.core.errors import InvalidInput
from wellworn.models.llms.base import Request
from wellworn.models.llms.http import HttpModel, Without
from wellworn.models.llms.provider import Said
from wellworn.models.remote import Endpoint, Patience, checked_key

PUBLIC_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"
_REMEDIES = {
    400: "check the model name, and that the prompt is not longer than the model takes",
    401: "check the key: api_key=… or ANTHROPIC_API_KEY",
    403: "check that the key may use this model",
    404: "check the model name and base_url",
    429: "wait, lower the load, or raise the account's limit",
}
_INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicModel(HttpModel):
    """One Claude model; safe between threads and event loops.

    The address is `base_url`, else `ANTHROPIC_BASE_URL`, else the public API; the key `api_key`, else
    `ANTHROPIC_API_KEY`. Attempts and waits are those of `OpenAIModel`. A schema is sent as `output_config`; without
    one, JSON is a matter of the prompt.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 120.0,
        retries: int = 3,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], None] = time.sleep,
        asleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        url = base_url or os.environ.get("ANTHROPIC_BASE_URL") or PUBLIC_URL
        key = checked_key(api_key if api_key is not None else os.environ.get("ANTHROPIC_API_KEY", ""))
        if not key and url.startswith(PUBLIC_URL):
            raise InvalidInput("api_key", "the Anthropic API needs a key", "give api_key=… or set ANTHROPIC_API_KEY")
        headers = {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})
        patience = Patience(timeout_s=timeout_s, retries=retries, jitter=jitter, sleep=sleep, asleep=asleep)
        endpoint = Endpoint(
            url,
            extra="anthropic",
            feature="an Anthropic model",
            key=key,
            remedies=_REMEDIES,
            headers=headers,
            patience=patience,
        )
        super().__init__(f"anthropic:{model}", endpoint, path="v1/messages")
        self._model = model

    def _body(self, request: Request, without: Without) -> dict[str, Any]:
        system = "\n\n".join(message.text for message in request.messages if message.role == "system")
        messages = [
            {"role": message.role, "content": message.text} for message in request.messages if message.role != "system"
        ]
        if not messages:  # the service wants at least one
            system, messages = "", [{"role": "user", "content": system}]
        body: dict[str, Any] = {"model": self._model, "max_tokens": request.max_output_tokens, "messages": messages}
        if system:
            body["system"] = system
        if "temperature" not in without:
            body["temperature"] = min(request.temperature, 1.0)
        if request.schema is not None and "schema" not in without:
            body["output_config"] = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
        return body

    def _refused(self, body: Mapping[str, Any], said: str) -> str | None:
        if "temperature" in body and "temperature" in said:  # newer models take none
            return "temperature"
        return "schema" if "output_config" in body else None

    def _text(self, told: Any) -> Said:
        text = "".join(block["text"] for block in told["content"] if block.get("type") == "text")
        usage = told.get("usage") or {}
        counts = [usage.get(part) or 0 for part in _INPUT_COUNTS]  # what came from a cache was read all the same
        read = sum(counts) if "input_tokens" in usage else None
        return Said(text=text, input_tokens=read, output_tokens=usage.get("output_tokens"))

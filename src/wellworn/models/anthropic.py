"""Anthropic's Messages API over HTTP (extra `anthropic`).

Knows the wire format: the system text is a field of its own, the limit is required, an answer is a list of blocks.
Retries and connections are in `remote`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wellworn.models.base import Completion
from wellworn.models.port import Request
from wellworn.models.remote import HttpModel, Service, Without

VERSION = "2023-06-01"
_INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicModel(HttpModel):
    """One Claude model. A schema is sent as `output_config`; without one, JSON is up to the prompt."""

    service = Service(
        name="Anthropic",
        extra="anthropic",
        public_url="https://api.anthropic.com",
        url_variable="ANTHROPIC_BASE_URL",
        key_variable="ANTHROPIC_API_KEY",
        headers=lambda key: {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {}),
    )
    path, provider = "v1/messages", "anthropic"

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

    def _refused(self, body: Mapping[str, Any], message: str) -> str | None:
        if "temperature" in body and "temperature" in message:  # newer models take none
            return "temperature"
        return "schema" if "output_config" in body else None

    def _completion(self, answer: Any) -> Completion:
        text = "".join(block["text"] for block in answer["content"] if block.get("type") == "text")
        usage = answer.get("usage") or {}
        counts = [usage.get(part) or 0 for part in _INPUT_COUNTS]  # tokens from a cache were read all the same
        read = sum(counts) if "input_tokens" in usage else None
        return Completion(text=text, input_tokens=read, output_tokens=usage.get("output_tokens"))

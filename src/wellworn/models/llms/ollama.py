"""A model served by Ollama, through its OpenAI-compatible endpoint (extra `openai`).

Knows where Ollama listens. Never sends `OPENAI_API_KEY` there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from wellworn.models.llms.openai import REMEDIES, OpenAIModel

PORT = 11434


class OllamaModel(OpenAIModel):
    """A model of the Ollama at `host`, else `OLLAMA_HOST`, else this machine's; other options as for `OpenAIModel`."""

    def __init__(self, model: str, *, host: str | None = None, api_key: str = "",
                 **options: Any) -> None:  # fmt: skip  # Any: as OpenAIModel
        url = _address(host or os.environ.get("OLLAMA_HOST") or f"localhost:{PORT}")
        super().__init__(model, base_url=url, api_key=api_key, **{"name": f"ollama:{model}", **options})

    def _remedies(self, model: str) -> Mapping[int, str]:
        return {**REMEDIES, 404: f"get the model with `ollama pull {model}`, or check OLLAMA_HOST"}


def _address(host: str) -> str:
    """As Ollama reads its own variable: scheme, port and path may be left out."""
    host = host.strip().rstrip("/")
    if "://" not in host:
        name = host.rpartition("]")[2] if host.startswith("[") else host  # an IPv6 address has colons of its own
        host = f"http://{host}" if ":" in name else f"http://{host}:{PORT}"
    return host if host.endswith("/v1") else f"{host}/v1"

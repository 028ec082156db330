"""The language-model port: messages in, text out, with what it took.

Knows nothing about prompts, storage or money. `purpose` says what a call is for (`extract`, `merge`, `summarise`, …),
so that the ledger can add up by it; a model never reads it, except the scripted one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message of a prompt."""

    role: Role
    text: str


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a model is asked, and how."""

    messages: tuple[Message, ...]
    purpose: str
    max_output_tokens: int = 1024
    temperature: float = 0.0
    json: bool = False
    """Ask the provider for a JSON object where it can; the text still has to be read with `structured`."""
    schema: Mapping[str, Any] | None = None
    """A JSON schema of that object, for providers that can hold a model to one. Implies `json`."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a model answered, and what it took."""

    text: str
    model: str
    """The name of the model that was asked, as in the ledger."""
    input_tokens: int
    output_tokens: int
    seconds: float
    estimated: bool
    """The tokens were counted by us, because the provider did not say."""


@runtime_checkable
class Model(Protocol):
    """Anything that answers requests."""

    @property
    def name(self) -> str:
        """Provider and model: `openai:gpt-4o-mini`. Prices and the ledger go by it."""
        ...

    def complete(self, request: Request) -> Reply:
        """The answer. A model that cannot give one raises `ModelFailed`, and nothing else."""
        ...

    async def acomplete(self, request: Request) -> Reply:
        """The same, awaited; the event loop runs on meanwhile."""
        ...

"""What every model has in common: requests are checked, time is taken, tokens are counted where nobody did.

A provider only says how to ask (`_ask`, and `_aask` where it can without a thread); this base turns whatever goes wrong
into `ModelFailed`. Knows no service and no framework.
"""

from __future__ import annotations

import dataclasses
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NoReturn

from wellworn.core.errors import InvalidInput, ModelFailed, WellwornError
from wellworn.core.tokens import count_tokens
from wellworn.core.wellformed import well_formed
from wellworn.models.llms.base import Message, Reply, Request
from wellworn.models.llms.count import input_tokens

_PASSING = frozenset({408, 409, 429})  # statuses that may pass, and 5xx


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a provider got back. Counts are None where it was not told them."""

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None


class Provider(ABC):
    """A model behind someone else's code."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput("llm", f"its name is {name!r}", "give it a name for the ledger")
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def complete(self, request: Request) -> Reply:
        """The answer, or `ModelFailed`."""
        request, began = _checked(request), time.perf_counter()
        try:
            said = self._ask(request)
        except Exception as error:  # someone else's code may raise anything
            self._fail(error)
        return self._reply(request, said, time.perf_counter() - began)

    async def acomplete(self, request: Request) -> Reply:
        """The same, awaited."""
        request, began = _checked(request), time.perf_counter()
        try:
            said = await self._aask(request)
        except Exception as error:  # as above; a cancellation is none of these
            self._fail(error)
        return self._reply(request, said, time.perf_counter() - began)

    @abstractmethod
    def _ask(self, request: Request) -> Said | Reply:
        """The model's words; a whole `Reply` where someone else has already counted."""

    async def _aask(self, request: Request) -> Said | Reply:
        """By default in a thread, for models that can only be waited for."""
        import asyncio

        return await asyncio.to_thread(self._ask, request)

    def _fail(self, error: Exception) -> NoReturn:
        if isinstance(error, WellwornError):
            raise error
        # Its words stay in the cause: they may quote a key.
        message = f"model {self._name!r} failed with {type(error).__name__}; its own message is the cause of this error"
        raise ModelFailed(message, retryable=may_pass(error)) from error

    def _reply(self, request: Request, said: Any, seconds: float) -> Reply:  # Any: checked here
        """The answer as the caller gets it; a whole `Reply` keeps its own counts and time."""
        if not isinstance(said, Said | Reply) or not isinstance(said.text, str):
            told = type(getattr(said, "text", said)).__name__
            raise ModelFailed(f"model {self._name!r} answered with {told}, expected text (a str or a Reply)")
        text = well_formed(said.text)
        if isinstance(said, Reply):
            return dataclasses.replace(said, text=text, model=self._name)
        counted = _is_count(said.input_tokens) and _is_count(said.output_tokens)
        read, written = (said.input_tokens, said.output_tokens) if counted else (None, None)
        return Reply(
            text=text,
            model=self._name,
            input_tokens=input_tokens(request) if read is None else read,
            output_tokens=count_tokens(text) if written is None else written,
            seconds=seconds,
            estimated=not counted,
        )


def may_pass(error: BaseException) -> bool:
    """Whether an error of unknown make is likely to pass: by its status, else by its kind."""
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    if isinstance(status, int):
        return status in _PASSING or status >= 500
    kinds = [kind.__name__ for kind in type(error).__mro__]
    return any("Timeout" in kind or "Connect" in kind for kind in kinds)


def _checked(request: Request) -> Request:
    """The request with texts that every encoder accepts."""
    if not request.messages:
        raise InvalidInput("messages", "there are none", "give at least one Message")
    if request.max_output_tokens < 1:
        raise InvalidInput("max_output_tokens", f"{request.max_output_tokens} is no length", "use 1 or more")
    if not 0 <= request.temperature <= 2:
        raise InvalidInput("temperature", f"{request.temperature} is not between 0 and 2", "0 is the steadiest")
    mended = tuple(Message(role=message.role, text=well_formed(message.text)) for message in request.messages)
    return request if mended == request.messages else dataclasses.replace(request, messages=mended)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0

"""Any callable as a model. Knows nothing about what is behind it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from wellworn.core.errors import InvalidInput
from wellworn.models.llms.base import Reply, Request
from wellworn.models.llms.provider import Provider, Said

# Any: str or Request in, str or Reply out, awaited or not; `Provider` checks the answer.
ModelFunction = Callable[[Any], Any]


class FunctionModel(Provider):
    """Wraps `function(prompt: str) -> str`, or `function(request: Request) -> Reply | str`; either may be `async`.

    Which of the two it wants is read from the annotation of its parameter; without one it gets the prompt. `takes`
    overrides that. The name is recorded in the ledger; by default it is the function's own.
    """

    def __init__(
        self, function: ModelFunction, *, name: str | None = None, takes: Literal["text", "request"] | None = None
    ) -> None:
        if takes not in (None, "text", "request"):
            raise InvalidInput("takes", f"{takes!r} is neither text nor request", "leave it out to have it found out")
        own = getattr(function, "__qualname__", type(function).__qualname__)
        super().__init__(name or f"function:{own}")
        self._function = function
        self._whole = _wants_request(function) if takes is None else takes == "request"
        self._awaited = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - to look into it, not whether it is there
        )

    def _ask(self, request: Request) -> Said | Reply:
        answer = self._call(request)
        return _said(_run(answer) if inspect.isawaitable(answer) else answer)

    async def _aask(self, request: Request) -> Said | Reply:
        import asyncio

        answer = self._call(request) if self._awaited else await asyncio.to_thread(self._call, request)
        return _said(await answer if inspect.isawaitable(answer) else answer)

    def _call(self, request: Request) -> Any:
        return self._function(request if self._whole else as_text(request))


def as_text(request: Request) -> str:
    """The whole prompt as one text; the parts are named where an assistant speaks, too."""
    named = any(message.role == "assistant" for message in request.messages)
    return "\n\n".join(f"{message.role}: {message.text}" if named else message.text for message in request.messages)


def _said(answer: Any) -> Said | Reply:
    return answer if isinstance(answer, Reply) else Said(text=answer)  # `Provider` looks whether it is text


def _wants_request(function: ModelFunction) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some builtins have none
        return False
    annotation = parameters[0].annotation if parameters else None
    if isinstance(annotation, str):  # under `from __future__ import annotations`
        return annotation.strip("'\"").rpartition(".")[2] == "Request"
    return annotation is Request


def _run(answer: Awaitable[Any]) -> Any:
    """Wait for it here; where a loop runs in this thread already, in a thread of its own."""
    import asyncio

    async def wait() -> Any:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, wait()).result()

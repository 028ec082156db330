"""What providers have in common: an answer from outside is checked before anyone uses it.

A provider only says how to ask (`_ask`). `EmbedderBase` finds out the width and skips blank texts; `ModelBase` checks
requests, measures time and counts tokens where the provider did not. Every fault becomes `EmbeddingFailed` or
`ModelFailed`. The wrappers for foreign objects and plain functions are here too. Knows no service and no framework.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import EmbeddingFailed, InvalidInput, ModelFailed, WellwornError
from wellworn.core.wellformed import count_tokens, well_formed
from wellworn.models.port import Embedder, Matrix, Model, Reply, Request, unit_rows

# Any: lists of lists, numpy arrays and tensors with __array__ are all fine; `EmbedderBase` checks the numbers.
EmbedFunction = Callable[[list[str]], Any]
# Any: a str or a Reply, awaited or not; `ModelBase` checks the answer.
ModelFunction = Callable[[str], Any]

TOKENS_PER_MESSAGE = 4
"""Tokens that frame a message in the common chat formats."""
MARGIN = 1.5
"""For budgets. Our estimate is within about 15 % of the common tokenizers for English; some newer ones make 30 % more
tokens of a text, and code or other scripts more still."""
_STATUS = ("status_code", "status", "code")
_MISTAKES = (TypeError, AttributeError, NameError, ImportError, NotImplementedError)


class EmbedderBase(ABC):
    """An embedder over someone else's model. Without `width`, the first answer tells it."""

    def __init__(self, name: str, width: int | None = None) -> None:
        if width is not None and width < 1:
            raise InvalidInput("width", f"{width} is not a vector width", "leave it out to have it discovered")
        self._name = name
        self._width = width

    @property
    def name(self) -> str:
        return self._name

    @property
    def width(self) -> int:
        """Numbers per vector; asks the model once when it is not known yet."""
        if self._width is None:
            self._width = self._answer(["width"]).shape[1]
        return self._width

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One unit vector per text, shape (len(texts), width); blank texts give zero rows and are not sent."""
        asked = [place for place, text in enumerate(texts) if text.strip()]
        answer = self._answer([well_formed(texts[place]) for place in asked]) if asked else None
        rows = np.zeros((len(texts), self.width), dtype=np.float32)
        if answer is not None:
            rows[asked] = answer
        return rows

    def embed_query(self, text: str) -> Matrix:
        """One unit vector for a question, shape (width,); zero when it is blank."""
        if not text.strip():
            return np.zeros(self.width, dtype=np.float32)
        row: Matrix = self._answer([well_formed(text)], query=True)[0]
        return row

    @abstractmethod
    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        """One vector per text, in order, of any length and number type. `query`: a question, not a stored text."""

    def _answer(self, texts: list[str], *, query: bool = False) -> Matrix:
        try:
            answer = self._ask(texts, query=query)
        except WellwornError:
            raise
        # Someone else's code may raise anything. Its message stays in the cause: it may quote a key.
        except Exception as error:
            raise EmbeddingFailed(
                f"embedder {self._name!r} failed with {type(error).__name__}; nothing was stored. "
                "Its own message is the cause of this error"
            ) from error
        rows = unit_rows(answer, width=self._width, name=self._name, count=len(texts))
        self._width = rows.shape[1]
        return rows


class CheckedEmbedder(EmbedderBase):
    """Someone's own `Embedder`, with its answers checked."""

    def __init__(self, inner: Embedder) -> None:
        name, width = inner.name, inner.width
        if not isinstance(name, str) or not name:
            raise InvalidInput("embedder", f"its name is {name!r}", "give it a name to be recorded with its vectors")
        if isinstance(width, bool) or not isinstance(width, int):
            raise InvalidInput("embedder", f"its width is {width!r}", "give it the number of numbers in a vector")
        super().__init__(name, width)
        self.inner = inner

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        if query:
            return [self.inner.embed_query(text) for text in texts]
        return self.inner.embed(texts)


class FunctionEmbedder(EmbedderBase):
    """Wraps `function(texts) -> one vector per text`; questions go through the same function.

    The name is recorded beside every vector. By default it is the function's own; a lambda or a `partial` has none.
    Give a new one whenever the function starts to answer differently.
    """

    def __init__(self, function: EmbedFunction, *, name: str | None = None, width: int | None = None) -> None:
        if not name and (isinstance(function, partial) or function_name(function).endswith("<lambda>")):
            remedy = "give a function with a name, or FunctionEmbedder(function, name='mine-1')"
            raise InvalidInput("embedder", "a lambda or a partial has no name to record with its vectors", remedy)
        super().__init__(name or function_name(function), width)
        self._function = function

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        answer: npt.ArrayLike = self._function(texts)
        return answer


@dataclass(frozen=True, kw_only=True)
class Completion:
    """The text that a provider sent. Counts are None where the provider did not report them."""

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None


class ModelBase(ABC):
    """A language model behind someone else's code."""

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
            answer = self._ask(request)
        except WellwornError:
            raise
        # Someone else's code may raise anything. Its message stays in the cause: it may quote a key.
        except Exception as error:
            problem = f"failed with {type(error).__name__}; its own message is the cause of this error"
            raise ModelFailed(f"model {self._name!r} {problem}", retryable=_may_pass(error)) from error
        return self._reply(request, answer, time.perf_counter() - began)

    @abstractmethod
    def _ask(self, request: Request) -> Completion | Reply:
        """The model's text; a whole `Reply` where someone else has counted already."""

    def _reply(self, request: Request, answer: Any, seconds: float) -> Reply:  # Any: checked here
        """The answer as the caller gets it; a whole `Reply` keeps its own counts."""
        if not isinstance(answer, Completion | Reply) or not isinstance(answer.text, str):
            kind = type(getattr(answer, "text", answer)).__name__
            raise ModelFailed(f"model {self._name!r} answered with {kind}, expected text (a str or a Reply)")
        text = well_formed(answer.text)
        read, written = answer.input_tokens, answer.output_tokens
        estimated = isinstance(answer, Reply) and answer.estimated
        if not (_is_count(read) and _is_count(written)):
            read, written, estimated = input_tokens(request), count_tokens(text), True
        return Reply(
            text=text, model=self._name, input_tokens=read, output_tokens=written, seconds=seconds, estimated=estimated
        )


class CheckedModel(ModelBase):
    """Someone's own `Model`: whatever it raises or returns that the port does not allow is a `ModelFailed`."""

    def __init__(self, inner: Model) -> None:
        super().__init__(inner.name)
        self.inner = inner

    def _ask(self, request: Request) -> Reply:
        return self.inner.complete(request)


class FunctionModel(ModelBase):
    """Wraps `function(prompt) -> str` (or a whole `Reply`), plain or `async`.

    The name is recorded in the ledger; by default it is the function's own.
    """

    def __init__(self, function: ModelFunction, *, name: str | None = None) -> None:
        super().__init__(name or function_name(function))
        self._function = function

    def _ask(self, request: Request) -> Completion | Reply:
        answer = self._function(prompt_text(request))
        if inspect.isawaitable(answer):
            answer = _awaited(answer)
        return answer if isinstance(answer, Reply) else Completion(text=answer)  # `ModelBase` checks that it is text


def function_name(function: Callable[..., Any]) -> str:
    return f"function:{getattr(function, '__qualname__', type(function).__qualname__)}"


def prompt_text(request: Request) -> str:
    """The whole prompt as one text; roles are named only where an assistant speaks, too."""
    named = any(message.role == "assistant" for message in request.messages)
    return "\n\n".join(f"{message.role}: {message.text}" if named else message.text for message in request.messages)


def input_tokens(request: Request) -> int:
    """About how many tokens the model will read, a schema included."""
    texts = sum(count_tokens(message.text) + TOKENS_PER_MESSAGE for message in request.messages)
    return texts + (count_tokens(json.dumps(request.schema, default=str)) if request.schema else 0)


def most_input_tokens(request: Request) -> int:
    """The same with a margin that a bill will hardly exceed."""
    return math.ceil(input_tokens(request) * MARGIN)


def passing_status(status: int) -> bool:
    """Whether the same call may succeed later."""
    return status in (408, 409, 425, 429) or status >= 500


def _may_pass(error: BaseException) -> bool:
    """The same for an error of unknown make: by its status, under the names that libraries have for it. Without one only a
    mistake in the code is lasting."""
    response = getattr(error, "response", None)
    said = [getattr(one, name, None) for one in (error, response) for name in _STATUS]
    if isinstance(response, dict):  # of boto
        said.append((response.get("ResponseMetadata") or {}).get("HTTPStatusCode"))
    status = next((one for one in said if isinstance(one, int) and 400 <= one < 600), None)
    return passing_status(status) if status is not None else not isinstance(error, _MISTAKES)


def _checked(request: Request) -> Request:
    """The request with texts that every encoder accepts."""
    if not request.messages:
        raise InvalidInput("messages", "there are none", "give at least one Message")
    if request.max_output_tokens < 1:
        raise InvalidInput("max_output_tokens", f"{request.max_output_tokens} is no length", "use 1 or more")
    if not 0 <= request.temperature <= 2:
        raise InvalidInput("temperature", f"{request.temperature} is not between 0 and 2", "0 is the steadiest")
    mended = tuple(dataclasses.replace(message, text=well_formed(message.text)) for message in request.messages)
    return dataclasses.replace(request, messages=mended)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _awaited(answer: Awaitable[Any]) -> Any:
    """What it gives, waited for in a thread of its own: a loop may run in this one already."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def wait() -> Any:
        return await answer

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, wait()).result()

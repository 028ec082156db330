"""Read an agent's messages, and take the citations out of a model's answer, whole or while it streams.

Stripping the finished answer would be too late for whoever reads the stream. So the model is replaced by a copy of a
subclass made for this purpose: it is still what it was to `isinstance`, `profile` and `bind_tools`, and only what it
generates passes through here. What a citation is, is decided in `core.citations`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar, cast

from langchain.agents.middleware.types import ModelRequest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from wellworn.core.citations import CitationReader

M = TypeVar("M", bound=BaseMessage)
Content = str | list[str | dict[str, Any]]
ContentBlock = str | dict[str, Any]

_GATE = "_wellworn_gate"
_ANSWER = "wellworn_answer"

CITE = (
    "When memories are shown, end your final answer with the numbers of those you used, as in [0, 2], or with "
    "[NO_CITE] when you used none. Write no such marker elsewhere, nor when you call a tool."
)

# -- messages ----------------------------------------------------------------------------------------------------


def text_of(message: BaseMessage) -> str:
    """Return what a message says, all text blocks together."""
    content = message.content
    return content if isinstance(content, str) else "".join(_text_in(block) for block in content)


def is_answer(message: BaseMessage) -> bool:
    """Whether a message answers the user: the model's own words, and no tool call."""
    return isinstance(message, AIMessage) and not message.tool_calls and not message.invalid_tool_calls


def structured(message: AIMessage) -> AIMessage:
    """Mark a tool call that is the structured answer."""
    return message.model_copy(update={"response_metadata": {**message.response_metadata, _ANSWER: True}})


def answer_of(message: BaseMessage) -> str:
    """Return the answer that a message gives, a structured one as JSON; empty if it gives none."""
    if isinstance(message, AIMessage) and message.response_metadata.get(_ANSWER) and message.tool_calls:
        return json.dumps(message.tool_calls[0]["args"], ensure_ascii=False, default=str)
    return text_of(message) if is_answer(message) else ""


def stripped(message: M, shown: int) -> tuple[M, tuple[int, ...] | None]:
    """Return a whole answer without its citations, and the places they name. Without any it is returned as it is."""
    reader = CitationReader(shown)
    content = message.content
    blocks: list[ContentBlock] = [content] if isinstance(content, str) else [*content]
    texts = {place: reader.take(_text_in(block)) for place, block in enumerate(blocks) if _is_text(block)}
    rest, places = reader.finish()
    if texts:
        texts[max(texts)] += rest
    if "".join(texts.values()) == text_of(message):
        return message, places
    kept: list[ContentBlock] = []
    for place, block in enumerate(blocks):
        text = texts.get(place)
        if text is None:
            kept.append(block)
        elif text:
            kept.append(text if isinstance(block, str) else {**block, "text": text})
    return message.model_copy(
        update={"content": "".join(texts.values()) if isinstance(content, str) else kept or ""}
    ), places


def _text_in(block: ContentBlock) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text") if _is_text(block) else ""
    return text if isinstance(text, str) else ""


def _is_text(block: ContentBlock) -> bool:
    return isinstance(block, str) or block.get("type") == "text"


# -- streams -----------------------------------------------------------------------------------------------------


class CitationGate:
    """Takes the citations out of one call's answer and keeps them. If the model is asked again, the last one counts."""

    def __init__(self, shown: int) -> None:
        self.shown = shown
        self.places: tuple[int, ...] | None = None

    def whole(self, result: ChatResult) -> ChatResult:
        generations = []
        for generation in result.generations:
            message, self.places = stripped(generation.message, self.shown)
            generations.append(ChatGeneration(message=message, generation_info=generation.generation_info))
        return result.model_copy(update={"generations": generations})


class GatedStream:
    """The chunks of one answer, one behind the model: the last chunk must be able to carry the rest of the text."""

    def __init__(self, gate: CitationGate) -> None:
        gate.places = None
        self._gate = gate
        self._reader = CitationReader(gate.shown)
        self._waiting: tuple[ChatGenerationChunk, str] | None = None
        self._block: dict[str, Any] | None = None
        """The last text block, where content comes in blocks: text that waited belongs to it."""

    def take(self, chunk: ChatGenerationChunk | None) -> Iterator[ChatGenerationChunk]:
        """Take the next chunk, or None after the last, and return those that are ready."""
        waiting, rest = self._waiting, ""
        if chunk is None:
            rest, places = self._reader.finish()
            # Some models generate the whole answer and then stream it: then the citation was taken before.
            self._gate.places = self._gate.places if places is None else places
        else:
            self._waiting = (chunk, self._reader.take(text_of(chunk.message)))
        if waiting is not None:
            last, text = waiting
            content = self._replaced(last.message.content, text + rest)
            message: Any = last.message.model_copy(update={"content": content})
            yield ChatGenerationChunk(message=message, generation_info=last.generation_info)
        if chunk is not None and not isinstance(chunk.message.content, str):
            blocks = [one for one in chunk.message.content if isinstance(one, dict) and _is_text(one)]
            self._block = blocks[-1] if blocks else self._block

    def _replaced(self, content: Content, text: str) -> Content:
        if isinstance(content, str) and (self._block is None or content):
            return text
        others = [] if isinstance(content, str) else [one for one in content if not _is_text(one)]
        return [*others, {**(self._block or {"type": "text"}), "text": text}] if text else [*others]


# -- the request -------------------------------------------------------------------------------------------------


class GatedRequest(ModelRequest[Any]):
    """A request whose model passes the gate, also when a middleware further in puts another model into it."""

    _gate: CitationGate

    @classmethod
    def of(cls, request: ModelRequest[Any], gate: CitationGate) -> GatedRequest:
        made = cls(**{one.name: getattr(request, one.name) for one in fields(request)})
        object.__setattr__(made, "_gate", gate)
        made._close()
        return made

    def override(self, **changes: Any) -> ModelRequest[Any]:
        return GatedRequest.of(super().override(**changes), self._gate)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)  # deprecated by LangChain, and still in use
        if hasattr(self, "_gate"):
            self._close()

    def _close(self) -> None:
        if can_cite(self):
            object.__setattr__(self, "model", gated_model(self.model, self._gate))


def can_cite(request: ModelRequest[Any]) -> bool:
    """Whether citations can be asked for. They would break structured output, which is parsed before it comes here."""
    return request.response_format is None and isinstance(request.model, BaseChatModel)


# -- the model ---------------------------------------------------------------------------------------------------


def gated_model(model: BaseChatModel, gate: CitationGate) -> BaseChatModel:
    """Return a copy of the model whose answers pass the gate."""
    if (getattr(model, "__pydantic_private__", None) or {}).get(_GATE) is gate:
        return model
    copy = model.model_copy()
    object.__setattr__(copy, "__class__", _gated_class(type(model)))
    private = dict(getattr(copy, "__pydantic_private__", None) or {})
    object.__setattr__(copy, "__pydantic_private__", {**private, _GATE: gate})
    return copy


@lru_cache(maxsize=64)
def _gated_class(base: Any) -> type[BaseChatModel]:
    """Return a subclass of a chat model in which each way to generate passes the gate.

    A stream's own run manager is not passed on: it would report tokens before they pass the gate.
    """

    class Gated(base):  # type: ignore[misc]  # a class that is only known at run time
        def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
            return _gate_of(self).whole(super()._generate(*args, **kwargs))

        async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
            return _gate_of(self).whole(await super()._agenerate(*args, **kwargs))

        def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            return _passed(super()._stream(messages, stop=stop, **kwargs), GatedStream(_gate_of(self)), run_manager)

        def _astream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            return _apassed(super()._astream(messages, stop=stop, **kwargs), GatedStream(_gate_of(self)), run_manager)

    for name in ("_generate", "_agenerate", "_stream", "_astream"):
        if getattr(base, name) is getattr(BaseChatModel, name):  # the framework asks what a class can do by itself
            delattr(Gated, name)
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(Gated, name, getattr(base, name))
    for name in ("_stream_chat_model_events", "_astream_chat_model_events"):
        setattr(Gated, name, None)  # a provider's own events would bypass the gate
    return cast("type[BaseChatModel]", Gated)


def _gate_of(model: Any) -> CitationGate:
    return cast("CitationGate", model.__pydantic_private__[_GATE])


def _passed(
    chunks: Iterator[ChatGenerationChunk], gated: GatedStream, run_manager: Any
) -> Iterator[ChatGenerationChunk]:
    for chunk in chain(chunks, [None]):
        for ready in gated.take(chunk):
            if run_manager is not None:
                run_manager.on_llm_new_token(ready.text, chunk=ready)
            yield ready


async def _apassed(
    chunks: AsyncIterator[ChatGenerationChunk], gated: GatedStream, run_manager: Any
) -> AsyncIterator[ChatGenerationChunk]:
    async def and_none() -> AsyncIterator[ChatGenerationChunk | None]:
        async for chunk in chunks:
            yield chunk
        yield None

    async for chunk in and_none():
        for ready in gated.take(chunk):
            if run_manager is not None:
                await run_manager.on_llm_new_token(ready.text, chunk=ready)
            yield ready

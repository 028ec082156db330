"""A copy of a chat model that streams its answer without the citation at its end.

Stripping what the model node returns would be too late: tokens have been streamed by then. The copy is of a subclass
made for the purpose, so that it is still what it was to whoever asks (`isinstance`, `profile`, `bind_tools`), and only
what it generates passes through here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import lru_cache
from types import new_class
from typing import Any, TypeVar, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from wellworn.core.citations import Citation, read_citation
from wellworn.integrations.rmm.holdback import HeldBack

_GATE = "_wellworn_gate"
M = TypeVar("M", bound=BaseMessage)


class Gate:
    """Takes the citations out of one call's answer and keeps what they say. Of several tries the last one counts."""

    def __init__(self, shown: int) -> None:
        self.shown = shown
        self.citation: Citation | None = None

    def streamed(self) -> StreamGate:
        self.citation = None
        return StreamGate(self)

    def whole(self, result: ChatResult) -> ChatResult:
        generations = []
        for generation in result.generations:
            message, citation = stripped(generation.message, self.shown)
            if citation.text != text_of(generation.message):
                self.citation = citation
                generation = ChatGeneration(message=message, generation_info=generation.generation_info)
            generations.append(generation)
        return result.model_copy(update={"generations": generations})


class StreamGate:
    """The chunks of one answer. What holds text back also keeps the last chunk, so that the rest has one to come in."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._held = HeldBack(gate.shown)
        self._last: ChatGenerationChunk | None = None
        self._block: dict[str, Any] | None = None
        """The text block that was streamed last, where content comes in blocks: its rest belongs to it."""

    def take(self, chunk: ChatGenerationChunk) -> Iterator[ChatGenerationChunk]:
        text = text_of(chunk.message)
        if _opens_another(chunk.message):  # a tool call or such: the text before it is whole
            yield from self._rest(None)
        self._block = _last_text_block(chunk.message) or self._block
        if not text and not self._held.waits:
            yield chunk
            return
        ready = self._held.take(text)
        if self._last is not None and (self._last.generation_info or _carries(self._last.message)):
            yield self._last
        self._last = None
        if not self._held.waits:
            yield self._with_text(chunk, ready)
            return
        if ready:
            plain = AIMessageChunk(content=_replaced(chunk.message.content, ready, self._block), id=chunk.message.id)
            yield ChatGenerationChunk(message=plain)
        self._last = self._with_text(chunk, "")

    def finish(self) -> Iterator[ChatGenerationChunk]:
        yield from self._rest(self._last)
        self._last = None

    def _rest(self, last: ChatGenerationChunk | None) -> Iterator[ChatGenerationChunk]:
        """What is left of the text, in the chunk that waits for it or in one of its own."""
        waited = self._held.waits
        rest, citation = self._held.finish()
        if citation.places is not None or self._gate.citation is None:  # some models generate, then stream that
            self._gate.citation = citation
        if last is None and self._last is not None:
            last, self._last = self._last, None
        if last is not None:
            yield self._with_text(last, rest)
        elif waited and rest:  # pragma: no cover  text that waits always has a chunk that waits with it
            yield ChatGenerationChunk(message=AIMessageChunk(content=_replaced("", rest, self._block)))
        self._held = HeldBack(self._gate.shown)

    def _with_text(self, chunk: ChatGenerationChunk, text: str) -> ChatGenerationChunk:
        content = _replaced(chunk.message.content, text, self._block)
        message = cast("AIMessageChunk", chunk.message.model_copy(update={"content": content}))
        return ChatGenerationChunk(message=message, generation_info=chunk.generation_info)


def held_back(model: BaseChatModel, gate: Gate) -> BaseChatModel:
    """The model, with citations taken out by the gate."""
    with suppress(Exception):
        _ = model._serialized  # kept by the object, and so by its copies: else each call would compute it anew
    copy = model.model_copy()
    object.__setattr__(copy, "__class__", _subclass(type(model)))
    private = dict(getattr(copy, "__pydantic_private__", None) or {})
    object.__setattr__(copy, "__pydantic_private__", {**private, _GATE: gate})
    return copy


def stripped(message: M, shown: int) -> tuple[M, Citation]:
    """A whole answer without its citation, and what it cites. The message itself where nothing is to be taken off."""
    text = text_of(message)
    citation = read_citation(text, shown)
    if citation.text == text:
        return message, citation
    content = _shortened(message.content, citation.text)
    return message.model_copy(update={"content": content}), citation


def text_of(message: BaseMessage) -> str:
    """What a message says, all text blocks together."""
    content = message.content
    return content if isinstance(content, str) else "".join(_text_in(block) for block in content)


@lru_cache(maxsize=64)
def _subclass(base: type[BaseChatModel]) -> type[BaseChatModel]:
    """The class of the copies: each way to generate passes the gate, and there are no other ways than the base's."""
    names: dict[str, Any] = {"__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__}
    ways = {"_generate": _generate, "_agenerate": _agenerate, "_stream": _stream, "_astream": _astream}
    names |= {name: way(base) for name, way in ways.items() if getattr(base, name) is not getattr(BaseChatModel, name)}
    made: type[BaseChatModel] = new_class(base.__name__, (base,), exec_body=lambda body: body.update(names))
    for events in ("_stream_chat_model_events", "_astream_chat_model_events"):
        # A provider's own events would pass the gate by: without them the framework makes events from chunks.
        setattr(made, events, None)  # not among `names`, where pydantic takes it for a private field
    return made


def _gate_of(model: BaseChatModel) -> Gate:
    return cast("Gate", (model.__pydantic_private__ or {})[_GATE])


# Any in the following: arguments of the base's own methods, passed on as they come.


def _generate(base: type[BaseChatModel]) -> Any:
    def generate(self: BaseChatModel, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return _gate_of(self).whole(base._generate(self, messages, *args, **kwargs))

    return generate


def _agenerate(base: type[BaseChatModel]) -> Any:
    async def agenerate(self: BaseChatModel, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return _gate_of(self).whole(await base._agenerate(self, messages, *args, **kwargs))

    return agenerate


def _stream(base: type[BaseChatModel]) -> Any:
    def stream(
        self: BaseChatModel,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        gate = _gate_of(self).streamed()

        def passed(chunks: Iterator[ChatGenerationChunk]) -> Iterator[ChatGenerationChunk]:
            for chunk in chunks:
                if run_manager is not None:  # the base is given none: it would tell of tokens before the gate
                    run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

        for chunk in base._stream(self, messages, stop=stop, **kwargs):
            yield from passed(gate.take(chunk))
        yield from passed(gate.finish())

    return stream


def _astream(base: type[BaseChatModel]) -> Any:
    async def astream(
        self: BaseChatModel,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        gate = _gate_of(self).streamed()

        async def passed(chunks: Iterator[ChatGenerationChunk]) -> AsyncIterator[ChatGenerationChunk]:
            for chunk in chunks:
                if run_manager is not None:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

        async for chunk in base._astream(self, messages, stop=stop, **kwargs):
            async for ready in passed(gate.take(chunk)):
                yield ready
        async for ready in passed(gate.finish()):
            yield ready

    return astream


Content = str | list[str | dict[str, Any]]


def _text_in(block: str | dict[str, Any]) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text") if block.get("type") == "text" else ""
    return text if isinstance(text, str) else ""


def _is_text(block: str | dict[str, Any]) -> bool:
    return isinstance(block, str) or block.get("type") == "text"


def _last_text_block(message: BaseMessage) -> dict[str, Any] | None:
    if isinstance(message.content, str):
        return None
    blocks = [block for block in message.content if isinstance(block, dict) and block.get("type") == "text"]
    return blocks[-1] if blocks else None


def _opens_another(message: BaseMessage) -> bool:
    """Whether a chunk begins something that is neither text nor thought."""
    if getattr(message, "tool_call_chunks", None) or getattr(message, "tool_calls", None):
        return True
    blocks = [] if isinstance(message.content, str) else message.content
    return any(isinstance(block, dict) and "tool" in str(block.get("type", "")) for block in blocks)


def _carries(message: BaseMessage) -> bool:
    """Whether a chunk without text says anything else."""
    told = (
        message.content,
        message.additional_kwargs,
        message.response_metadata,
        getattr(message, "usage_metadata", None),
        getattr(message, "chunk_position", None),
    )
    return any(told)


def _replaced(content: Content, text: str, block: dict[str, Any] | None) -> Content:
    """A chunk's content with this text in place of its own; in blocks where the answer comes in blocks."""
    if isinstance(content, str) and (block is None or content):
        return text
    others = [] if isinstance(content, str) else [one for one in content if not _is_text(one)]
    like = block or {"type": "text"}
    return [*others, {**like, "text": text}] if text else [*others]


def _shortened(content: Content, text: str) -> Content:
    """A whole answer's content with this text, which is its own but for the end; blocks left empty go."""
    if isinstance(content, str):
        return text
    last = max(place for place, block in enumerate(content) if _is_text(block))
    kept: list[str | dict[str, Any]] = []
    for place, block in enumerate(content):
        if not _is_text(block):
            kept.append(block)
            continue
        part = text if place == last else text[: len(_text_in(block))]
        text = text[len(part) :]
        if part:
            kept.append(part if isinstance(block, str) else {**block, "text": part})
    return kept if kept else ""


def answered(message: BaseMessage) -> bool:
    """Whether a message is an answer to the user: the model's own words, and no call of a tool."""
    return isinstance(message, AIMessage) and not message.tool_calls and not message.invalid_tool_calls

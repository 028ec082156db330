"""Read an agent's messages, and take the citation off a model's answer, whole or while it streams.

Stripping the finished answer would be too late for whoever reads the stream. So the model is replaced by a copy of a
subclass made for this purpose: it is still what it was to `isinstance`, `profile` and `bind_tools`, and only what it
generates passes through here. What a citation is, is decided in `core.citations`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from wellworn.core.citations import Citation, read_citation

M = TypeVar("M", bound=BaseMessage)
Content = str | list[str | dict[str, Any]]
ContentBlock = str | dict[str, Any]

_GATE = "_wellworn_gate"
_MAX_MARKER_CHARS = 400
_NUMBERS = r"[0-9]{1,3}(?:\s*,\s*[0-9]{1,3})*\s*,?\s*"
_NO_CITE = r"N(?:O(?:_(?:C(?:I(?:T(?:E\s*)?)?)?)?)?)?"
_MAYBE_MARKER = re.compile(rf"\[\s*(?:{_NUMBERS}|{_NO_CITE})?(?:\]\.?\s*(?:`{{1,12}}|~{{1,12}})?)?\Z", re.IGNORECASE)
"""From a bracket to the end of the text: a citation, or the beginning of one, with what may follow it."""

# -- messages ----------------------------------------------------------------------------------------------------


def text_of(message: BaseMessage) -> str:
    """Return what a message says, all text blocks together."""
    content = message.content
    return content if isinstance(content, str) else "".join(_text_in(block) for block in content)


def is_answer(message: BaseMessage) -> bool:
    """Whether a message answers the user: the model's own words, and no tool call."""
    return isinstance(message, AIMessage) and not message.tool_calls and not message.invalid_tool_calls


def stripped(message: M, shown: int) -> tuple[M, Citation]:
    """Return a whole answer without its citation, and the citation. Without one the message is returned as it is."""
    text = text_of(message)
    citation = read_citation(text, shown)
    if citation.text == text:
        return message, citation
    return message.model_copy(update={"content": _shortened(message.content, citation.text)}), citation


def _text_in(block: ContentBlock) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text") if _is_text(block) else ""
    return text if isinstance(text, str) else ""


def _is_text(block: ContentBlock) -> bool:
    return isinstance(block, str) or block.get("type") == "text"


def _shortened(content: Content, text: str) -> Content:
    """Replace a content's text by its own beginning; blocks that end up empty are dropped."""
    if isinstance(content, str):
        return text
    last = max(place for place, block in enumerate(content) if _is_text(block))
    kept: list[ContentBlock] = []
    for place, block in enumerate(content):
        if not _is_text(block):
            kept.append(block)
            continue
        part = text if place == last else text[: len(_text_in(block))]
        text = text[len(part) :]
        if part:
            kept.append(part if isinstance(block, str) else {**block, "text": part})
    return kept or ""


# -- streams -----------------------------------------------------------------------------------------------------


class HeldBack:
    """One answer while it streams: only text that may be the beginning of a citation waits."""

    def __init__(self, shown: int) -> None:
        self._shown = shown
        self._sent = ""
        self._held = ""

    def take(self, text: str) -> str:
        """Take the next piece and return what can be shown now."""
        grown = self._held + text
        cut = _safe_length(grown)
        self._sent += grown[:cut]
        self._held = grown[cut:]
        return grown[:cut]

    def finish(self) -> tuple[str, Citation]:
        """Return the rest to show, now that the answer is whole, and its citation."""
        citation = read_citation(self._sent + self._held, self._shown)
        if not citation.text.startswith(self._sent):  # the citation was shown already: leave the text as it is
            citation = Citation(text=self._sent + self._held, places=None)
        return citation.text[len(self._sent) :], citation


def _safe_length(text: str) -> int:
    """Return the length of the beginning that a citation at the end cannot reach."""
    body = len(text.rstrip())
    start = text.rfind("[", max(0, body - _MAX_MARKER_CHARS), body)
    if start >= 0 and _MAYBE_MARKER.match(text, start, body):
        return len(text[:start].rstrip())
    return body


class CitationGate:
    """Takes the citation out of one call's answer and keeps it. If the model is asked again, the last answer counts."""

    def __init__(self, shown: int) -> None:
        self.shown = shown
        self.citation: Citation | None = None

    def whole(self, result: ChatResult) -> ChatResult:
        generations = []
        for generation in result.generations:
            message, citation = stripped(generation.message, self.shown)
            if message is not generation.message:
                self.citation = citation
                generation = ChatGeneration(message=message, generation_info=generation.generation_info)
            generations.append(generation)
        return result.model_copy(update={"generations": generations})


class GatedStream:
    """The chunks of one answer, one behind the model: the last chunk must be able to carry the rest of the text."""

    def __init__(self, gate: CitationGate) -> None:
        gate.citation = None
        self._gate = gate
        self._held = HeldBack(gate.shown)
        self._waiting: tuple[ChatGenerationChunk, str] | None = None
        self._block: dict[str, Any] | None = None
        """The last text block, where content comes in blocks: held text belongs to it."""

    def take(self, chunk: ChatGenerationChunk | None) -> Iterator[ChatGenerationChunk]:
        """Take the next chunk, or None after the last, and return those that are ready."""
        waiting, rest = self._waiting, ""
        if chunk is None:
            rest, citation = self._held.finish()
            # Some models generate the whole answer and then stream it: then the citation was taken before.
            if citation.places is not None or self._gate.citation is None:
                self._gate.citation = citation
        else:
            self._waiting = (chunk, self._held.take(text_of(chunk.message)))
        if waiting is not None:
            yield self._with_text(waiting[0], waiting[1] + rest)
        if chunk is not None and not isinstance(chunk.message.content, str):
            blocks = [one for one in chunk.message.content if isinstance(one, dict) and _is_text(one)]
            self._block = blocks[-1] if blocks else self._block

    def _with_text(self, chunk: ChatGenerationChunk, text: str) -> ChatGenerationChunk:
        message = chunk.message.model_copy(update={"content": self._replaced(chunk.message.content, text)})
        return ChatGenerationChunk(message=cast("Any", message), generation_info=chunk.generation_info)

    def _replaced(self, content: Content, text: str) -> Content:
        if isinstance(content, str) and (self._block is None or content):
            return text
        others = [] if isinstance(content, str) else [one for one in content if not _is_text(one)]
        return [*others, {**(self._block or {"type": "text"}), "text": text}] if text else [*others]


# -- the model ---------------------------------------------------------------------------------------------------


def gated_model(model: BaseChatModel, gate: CitationGate) -> BaseChatModel:
    """Return a copy of the model whose answers pass the gate."""
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

"""A clock to set by hand, a scripted chat model that streams in pieces, agents around it, and a user's own parts."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from threading import RLock
from typing import Any
from uuid import uuid4

import numpy as np
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore
from pydantic import PrivateAttr

from wellworn import Memory, Scope
from wellworn.core.plain import from_plain, to_plain
from wellworn.core.values import Entry
from wellworn.integrations.langchain import RerankerConfig, RMMContext, RMMMiddleware, create_rmm_middleware
from wellworn.integrations.rmm_parts import MemoryRecord, RerankerWeights, label_of
from wellworn.learning.residual import Residual

ADA = Scope(tenant="default", user="ada")
BEN = Scope(tenant="default", user="ben")
SYSTEM = "You are a patient assistant."

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)

Reply = Callable[[list[BaseMessage]], "AIMessage | str"]


class HandClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def forward(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)


@tool
def clock() -> str:
    """The time."""
    return "noon"


def calling() -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "clock", "args": {}, "id": "c1"}])


class Scripted(BaseChatModel):
    """Answers by a function of what it is sent, in pieces of `piece` characters; what it was sent stays in `seen`."""

    reply: Reply
    piece: int = 3
    blocks: bool = False
    """Whether content comes in blocks, as from some providers."""
    _seen: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _answered: list[str] = PrivateAttr(default_factory=list)

    @property
    def seen(self) -> list[list[BaseMessage]]:
        return self._seen

    @property
    def answered(self) -> list[str]:
        return self._answered

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        self.seen.append(messages)
        made = self.reply(messages)
        message = AIMessage(made) if isinstance(made, str) else made
        self.answered.append(str(message.content))
        return message

    def _content(self, text: str) -> Any:
        return [{"type": "text", "text": text, "index": 0}] if self.blocks else text

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        message = self._answer(messages)
        message = message.model_copy(update={"content": self._content(str(message.content))})
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        yield from self._chunks(self._answer(messages))

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._chunks(self._answer(messages)):
            yield chunk

    def _chunks(self, message: AIMessage) -> Iterator[ChatGenerationChunk]:
        text = str(message.content)
        for start in range(0, len(text), self.piece):
            part = self._content(text[start : start + self.piece])
            yield ChatGenerationChunk(message=AIMessageChunk(content=part))
        calls = [
            {"name": call["name"], "args": "{}", "id": call["id"], "index": n, "type": "tool_call_chunk"}
            for n, call in enumerate(message.tool_calls)
        ]
        usage: Any = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
        last = AIMessageChunk(content="", tool_call_chunks=calls, usage_metadata=usage, chunk_position="last")  # type: ignore[arg-type]
        yield ChatGenerationChunk(message=last)

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=tools)


def scripted(*replies: AIMessage | str | Reply, **settings: Any) -> Scripted:
    """A model that says these in turn, the last one for ever."""
    waiting = [*replies]

    def reply(messages: list[BaseMessage]) -> AIMessage | str:
        one = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return one(messages) if callable(one) else one

    return Scripted(reply=reply, **settings)


def shown(messages: Sequence[BaseMessage]) -> list[str]:
    """The memories in a prompt, by their places."""
    asked = [message for message in messages if isinstance(message, HumanMessage)][-1]
    block = re.search(r"<memories[^>]*>\n(.*?)\n</memories>", str(asked.text), re.DOTALL)
    return block[1].split("\n") if block else []


def citing(word: str, says: str = "Noted.") -> Reply:
    """A reply that cites every memory shown with this word in it."""

    def reply(messages: list[BaseMessage]) -> str:
        used = [str(place) for place, line in enumerate(shown(messages)) if word in line]
        return f"{says} [{', '.join(used)}]" if used else f"{says} [NO_CITE]"

    return reply


def agent_of(model: Any, middleware: RMMMiddleware, /, **settings: Any) -> Any:
    given = {"checkpointer": InMemorySaver(), "system_prompt": SYSTEM, "context_schema": RMMContext, "tools": []}
    return create_agent(model, **{**given, **settings, "middleware": [middleware, *settings.get("middleware", [])]})


def thread(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def ask(agent: Any, text: str, *, user: str = "ada", on: str = "t1", **context: Any) -> str:
    """The text of the agent's answer."""
    given = {"messages": [HumanMessage(text)]}
    done = agent.invoke(given, thread(on), context={"user_id": user, **context})
    return str(done["messages"][-1].text)


def turns(memory: Memory, session_id: str = "t1", scope: Scope = ADA) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in memory.session(scope=scope, session_id=session_id).turns()]


class Words(Embeddings):
    """Texts as bags of hashed words; `broken` makes every call fail."""

    def __init__(self, width: int = 64) -> None:
        self.width = width
        self.broken = False

    def embed_query(self, text: str) -> list[float]:
        if self.broken:
            raise ConnectionError(f"no embeddings of {text}")
        vector = [0.0] * self.width
        for word in re.findall(r"\w+", text.lower()):
            vector[int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "little") % self.width] += 1.0
        return vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


def extracting(*summaries: str) -> Scripted:
    """A model that finds these memories in any session, one call after another, each resting on the first turn; and
    that adds each one."""

    def reply(messages: list[BaseMessage]) -> str:
        if "existing_memories" in str(messages[-1].content):
            return "0: Add()"
        found = waiting.pop(0) if waiting else "NO_TRAIT"
        if found == "NO_TRAIT":
            return found
        return json.dumps({"extracted_memories": [{"summary": found, "reference": [0]}]})

    waiting = [*summaries]
    return Scripted(reply=reply)


class SafeStore(InMemoryStore):
    """Safe between threads, as real stores are: the one of langgraph walks through a dictionary that others may change."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = RLock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        with self._lock:
            return super().batch(ops)


class SafeVectors(InMemoryVectorStore):
    """The same for vectors."""

    def __init__(self, embedding: Embeddings) -> None:
        super().__init__(embedding)
        self._lock = RLock()

    def add_documents(self, documents: list[Document], ids: list[str] | None = None, **rest: Any) -> list[str]:
        with self._lock:
            return super().add_documents(documents, ids, **rest)

    def delete(self, ids: Sequence[str] | None = None, **rest: Any) -> None:
        with self._lock:
            super().delete(ids, **rest)

    def _similarity_search_with_score_by_vector(self, *given: Any, **named: Any) -> Any:
        with self._lock:
            return super()._similarity_search_with_score_by_vector(*given, **named)


@dataclass(kw_only=True)
class Parts:
    """A user's own parts, and the middleware on them."""

    embeddings: Words = field(default_factory=Words)
    store: BaseStore = field(default_factory=SafeStore)
    model: Scripted = field(default_factory=extracting)
    vectors: InMemoryVectorStore = field(init=False)
    config: dict[str, Any] = field(default_factory=lambda: {"temperature": 0.001})
    """By default chance decides nothing."""

    def __post_init__(self) -> None:
        self.vectors = SafeVectors(self.embeddings)

    def middleware(self, **settings: Any) -> RMMMiddleware:
        given: dict[str, Any] = {
            "vector_store": self.vectors,
            "embeddings": self.embeddings,
            "store": self.store,
            "summarization_model": self.model,
            "reranker_config": RerankerConfig(**self.config),
        }
        return create_rmm_middleware(**{**given, **settings})

    def remember(self, *texts: str, user: str = "ada") -> None:
        """Put memories there as the end of a session would."""
        who = Scope(user=user)
        for text in texts:
            times: dict[str, Any] = dict.fromkeys(("at", "created_at", "updated_at", "valid_from"), NOW)
            entry = Entry(id=str(uuid4()), partition=who.home(), kind="fact", text=text, **times)
            vector = np.asarray(self.embeddings.embed_query(text), dtype="<f4").tobytes()
            record = MemoryRecord(entry=entry, embedding=vector)
            self.vectors.add_documents([record.document(label_of(who))])
            self.store.put(("rmm", label_of(who), "memories"), entry.id, to_plain(record), index=False)

    def records(self, user: str = "ada") -> list[Entry]:
        """The memories of a user, from the vector store."""
        label = label_of(Scope(user=user))
        found = [one["metadata"] for one in self.vectors.store.values() if one["metadata"]["rmm_user"] == label]
        return [from_plain(MemoryRecord, json.loads(one["rmm_record"])).entry for one in found]

    def texts(self, user: str = "ada") -> list[str]:
        return sorted(entry.text for entry in self.records(user))

    def weights(self, user: str = "ada") -> RerankerWeights | None:
        item = self.store.get(("rmm", label_of(Scope(user=user)), "weights"), "reranker")
        return None if item is None else from_plain(RerankerWeights, item.value)

    def residual(self, user: str = "ada") -> Residual:
        weights = self.weights(user)
        assert weights is not None
        return Residual.from_bytes(weights.state)

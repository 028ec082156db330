from __future__ import annotations

from email.message import Message as Headers
from typing import Any
from urllib.error import HTTPError

import numpy as np
import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel, FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from contract.models import make_request
from wellworn.core.errors import ModelFailed
from wellworn.models import LangChainEmbedder, LangChainModel, Message


class Recorder(BaseChatModel):
    """Says one thing, and keeps what it was asked."""

    model_name: str = "recorder-1"
    answer: AIMessage
    asked: list[list[BaseMessage]] = Field(default_factory=list)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.asked.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self.answer)])

    @property
    def _llm_type(self) -> str:
        return "recorder"


class Runs(BaseCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[tuple[Any, Any]] = []

    def on_chat_model_start(self, *args: Any, tags: Any = None, name: Any = None, **rest: Any) -> None:
        self.seen.append((tags, name))


def test_messages_arrive_as_langchains_own_without_templates_and_blocks_are_joined() -> None:
    blocks: list[Any] = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "o"}, "k"]
    chat = Recorder(answer=AIMessage(blocks))
    messages = (Message(role="system", text="use {braces}"), Message(role="user", text="hi {name}"))
    assert LangChainModel(chat).complete(make_request(messages=messages)).text == "ok"
    assert chat.asked == [[SystemMessage("use {braces}"), HumanMessage("hi {name}")]]


def test_usage_comes_from_the_message() -> None:
    usage = {"input_tokens": 12, "output_tokens": 4, "total_tokens": 16}
    chat = Recorder(answer=AIMessage("ok", usage_metadata=usage))
    reply = LangChainModel(chat).complete(make_request())
    assert (reply.input_tokens, reply.output_tokens, reply.estimated) == (12, 4, False)


def test_our_calls_stay_out_of_an_agents_stream() -> None:
    runs = Runs()
    chat = Recorder(answer=AIMessage("ok"), callbacks=[runs])
    LangChainModel(chat).complete(make_request(purpose="extract"))
    LangChainModel(chat).complete(make_request(purpose="merge"))
    assert runs.seen == [(["nostream"], "wellworn:extract"), (["nostream"], "wellworn:merge")]


def test_the_name_tells_class_and_model() -> None:
    assert LangChainModel(Recorder(answer=AIMessage("ok"))).name == "langchain:Recorder:recorder-1"
    assert LangChainModel(FakeListLLM(responses=["b"])).complete(make_request()).text == "b"  # a plain LLM
    assert LangChainModel(FakeListChatModel(responses=["a"]), name="mine").name == "mine"


class StatusError(Exception):
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (StatusError(429), True),
        (StatusError(401), False),
        (HTTPError("http://x", 503, "x", Headers(), None), True),
        (TimeoutError(), True),
        (RuntimeError("busy"), True),
        (TypeError("x"), False),
    ],
)
def test_an_error_of_the_framework_says_whether_it_may_pass(error: Exception, retryable: bool) -> None:
    class Broken:
        def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            raise error

    with pytest.raises(ModelFailed, match=type(error).__name__) as caught:
        LangChainModel(Broken()).complete(make_request())
    assert caught.value.retryable is retryable
    assert caught.value.__cause__ is error


# -- embeddings -------------------------------------------------------------------------------------------------


class Asymmetric(Embeddings):
    model = "two-towers"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [0.0, 1.0]


def test_questions_go_through_embed_query() -> None:
    embedder = LangChainEmbedder(Asymmetric())
    np.testing.assert_array_equal(embedder.embed(["a"]), [[1, 0]])
    np.testing.assert_array_equal(embedder.embed_query("a"), [0, 1])
    assert embedder.name == "langchain:Asymmetric:two-towers"
    assert LangChainEmbedder(Asymmetric(), name="mine").name == "mine"

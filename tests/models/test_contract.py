"""Every model does what the port says."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from contract.models import ModelContract
from models.service import KEY, Service, chat, claude, refusal
from wellworn.models import (
    AnthropicModel,
    FunctionModel,
    LangChainModel,
    Meter,
    Model,
    OllamaModel,
    OpenAIModel,
    Reply,
    Request,
    ScriptedModel,
    choose_model,
)
from wellworn.store.sqlite import SqliteStore


class Remote(ModelContract):
    """What the models behind a service share."""

    secrets = (KEY,)

    @pytest.fixture(autouse=True)
    def _served(self, service: Service) -> None:
        self.service = service

    def connect(self) -> Model:
        raise NotImplementedError

    def answer(self, text: str) -> Any:
        return chat(text)

    def make_model(self, *replies: str) -> Model:
        self.service.script = [self.answer(text) for text in replies]
        return self.connect()

    def make_failing(self) -> Model:
        self.service.script = []
        self.service.otherwise = refusal(401, f"bad key {KEY}")
        return self.connect()


class TestOpenAI(Remote):
    def connect(self) -> Model:
        return OpenAIModel("gpt-test", base_url=self.service.url, api_key=KEY)


class TestOllama(Remote):
    def connect(self) -> Model:
        return OllamaModel("llama3.2", host=self.service.address, api_key=KEY)


class TestAnthropic(Remote):
    def connect(self) -> Model:
        return AnthropicModel("claude-test", base_url=self.service.address, api_key=KEY)

    def answer(self, text: str) -> Any:
        return claude(text)


class PlayedChat(BaseChatModel):
    """A LangChain chat model that plays back."""

    replies: list[Any]

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = self.replies.pop(0)  # atomic
        if isinstance(reply, Exception):
            raise reply
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=reply))])

    @property
    def _llm_type(self) -> str:
        return "played"


class TestLangChain(ModelContract):
    def make_model(self, *replies: str) -> Model:
        return LangChainModel(PlayedChat(replies=list(replies)))

    def make_failing(self) -> Model:
        return LangChainModel(PlayedChat(replies=[RuntimeError("no")] * 9))


class TestFunction(ModelContract):
    def make_model(self, *replies: str) -> Model:
        waiting = list(replies)
        return FunctionModel(lambda prompt: waiting.pop(0), name="function:played")

    def make_failing(self) -> Model:
        return FunctionModel(lambda prompt: 1 / 0, name="function:broken")


class TestAsyncFunction(ModelContract):
    def make_model(self, *replies: str) -> Model:
        waiting = list(replies)

        async def played(prompt: str) -> str:
            return waiting.pop(0)

        return FunctionModel(played)

    def make_failing(self) -> Model:
        async def broken(prompt: str) -> str:
            raise OSError("no")

        return FunctionModel(broken)


class TestScripted(ModelContract):
    def make_model(self, *replies: str) -> Model:
        return ScriptedModel(replies)

    def make_failing(self) -> Model:
        return ScriptedModel(KeyError("no"))


class Bare:
    """Someone's own model, without anything of ours."""

    name = "bare:1"

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)

    def complete(self, request: Request) -> Reply:
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Reply(text=reply, model="whatever", input_tokens=3, output_tokens=1, seconds=0, estimated=False)


class TestSomeonesOwn(ModelContract):
    def make_model(self, *replies: str) -> Model:
        return chosen(Bare(*replies))

    def make_failing(self) -> Model:
        return chosen(Bare(*[ValueError("no")] * 9))


def chosen(own: Bare) -> Model:
    model = choose_model(own)
    assert model is not None
    return model


class TestMeter(ModelContract):
    def metered(self, model: Model) -> Model:
        return Meter(model, SqliteStore(":memory:"), tenant="acme")

    def make_model(self, *replies: str) -> Model:
        return self.metered(ScriptedModel(replies))

    def make_failing(self) -> Model:
        return self.metered(ScriptedModel(KeyError("no")))

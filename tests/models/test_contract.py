"""Every model does what the port says."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

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
)
from wellworn.models.base import CheckedModel
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


class TestLangChain(ModelContract):
    def make_model(self, *replies: str) -> Model:
        return LangChainModel(GenericFakeChatModel(messages=iter([AIMessage(reply) for reply in replies])))

    def make_failing(self) -> Model:
        return self.make_model()


class TestFunction(ModelContract):
    def make_model(self, *replies: str) -> Model:
        waiting = list(replies)
        return FunctionModel(lambda prompt: waiting.pop(0), name="function:played")

    def make_failing(self) -> Model:
        return FunctionModel(lambda prompt: 1 / 0, name="function:broken")


class TestScripted(ModelContract):
    def make_model(self, *replies: str) -> Model:
        return ScriptedModel(replies)

    def make_failing(self) -> Model:
        return ScriptedModel(KeyError("no"))


class Bare:
    """Someone's own model, without anything of ours."""

    name = "bare:1"

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)

    def complete(self, request: Request) -> Reply:
        text = self.replies.pop(0)
        return Reply(text=text, model="whatever", input_tokens=3, output_tokens=1, seconds=0, estimated=False)


class TestSomeonesOwn(ModelContract):
    def make_model(self, *replies: str) -> Model:
        return CheckedModel(Bare(*replies))

    def make_failing(self) -> Model:
        return self.make_model()


class TestMeter(ModelContract):
    def make_model(self, *replies: str) -> Model:
        return Meter(ScriptedModel(replies), SqliteStore(":memory:"), tenant="acme")

    def make_failing(self) -> Model:
        return self.make_model()

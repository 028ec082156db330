from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import wellworn.models.llms
from wellworn.core.errors import BudgetExceeded, InvalidInput, ModelFailed
from wellworn.models.llms import FunctionModel, Message, Reply, Request
from wellworn.testing.models import make_request

TALK = (Message(role="system", text="be brief"), Message(role="user", text="hi"))


def test_a_function_of_text_gets_the_prompt() -> None:
    def shout(prompt: str) -> str:
        return prompt.upper()

    assert FunctionModel(shout).complete(make_request(messages=TALK)).text == "BE BRIEF\n\nHI"
    longer = (*TALK, Message(role="assistant", text="hello"))
    said = FunctionModel(shout).complete(make_request(messages=longer)).text
    assert said == "SYSTEM: BE BRIEF\n\nUSER: HI\n\nASSISTANT: HELLO"


def test_a_function_of_a_request_gets_all_of_it() -> None:
    def tell(request: Request) -> str:
        return f"{request.purpose} {request.max_output_tokens}"

    def tell_too(request: wellworn.models.llms.Request) -> str:
        return request.purpose

    assert FunctionModel(tell).complete(make_request(purpose="merge", max_output_tokens=5)).text == "merge 5"
    assert FunctionModel(tell_too).complete(make_request(purpose="merge")).text == "merge"
    assert FunctionModel(lambda request: request.purpose, takes="request").complete(make_request()).text == "test"


def test_a_whole_reply_keeps_its_counts_under_our_name() -> None:
    own = Reply(text="a", model="theirs", input_tokens=7, output_tokens=2, seconds=1.5, estimated=False)
    reply = FunctionModel(lambda prompt: own, name="mine").complete(make_request())
    assert (reply.model, reply.input_tokens, reply.output_tokens, reply.seconds) == ("mine", 7, 2, 1.5)
    assert not reply.estimated


def test_async_functions_are_awaited_either_way() -> None:
    async def answer(prompt: str) -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    model = FunctionModel(answer)
    here = threading.current_thread().name
    assert model.complete(make_request()).text == here
    assert asyncio.run(model.acomplete(make_request())).text == here

    async def inside() -> str:
        return model.complete(make_request()).text  # a loop runs here already

    assert asyncio.run(inside()) != here


def test_an_object_with_an_async_call_is_awaited_too() -> None:
    class Client:
        async def __call__(self, prompt: str) -> str:
            return prompt

    assert FunctionModel(Client()).complete(make_request("hi")).text == "hi"
    assert asyncio.run(FunctionModel(Client()).acomplete(make_request("hi"))).text == "hi"
    assert asyncio.run(FunctionModel(lambda prompt: Client()(prompt)).acomplete(make_request("hi"))).text == "hi"


def test_a_plain_function_runs_in_a_thread_when_awaited() -> None:
    model = FunctionModel(lambda prompt: threading.current_thread().name, name="where")
    assert asyncio.run(model.acomplete(make_request())).text != threading.current_thread().name


@pytest.mark.parametrize("answer", [None, 5, b"bytes", ["text"]])
def test_anything_but_text_is_an_error(answer: Any) -> None:
    with pytest.raises(ModelFailed, match=f"answered with {type(answer).__name__}"):
        FunctionModel(lambda prompt: answer, name="odd").complete(make_request())


def test_our_own_errors_pass_through() -> None:
    over = BudgetExceeded("per_call_usd", limit=1, spent=0, wanted=2, remedy="less")

    def refuse(prompt: str) -> str:
        raise over

    with pytest.raises(BudgetExceeded) as caught:
        FunctionModel(refuse).complete(make_request())
    assert caught.value is over


def test_the_words_of_a_strange_error_stay_in_its_cause() -> None:
    def leak(prompt: str) -> str:
        raise RuntimeError("key is sk-secret")

    with pytest.raises(ModelFailed) as caught:
        FunctionModel(leak).complete(make_request())
    assert "sk-secret" not in str(caught.value)
    assert "RuntimeError" in str(caught.value)


def test_names() -> None:
    def mine(prompt: str) -> str:
        return ""

    assert FunctionModel(mine).name == "function:test_names.<locals>.mine"
    assert FunctionModel(str.upper).complete(make_request("a")).text == "A"
    assert FunctionModel(max, name="m").name == "m"
    with pytest.raises(InvalidInput, match="takes"):
        FunctionModel(mine, takes="words")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="its name is ' '"):
        FunctionModel(mine, name=" ")

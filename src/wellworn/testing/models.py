"""What every language model must do, as a suite to inherit from.

A model's test file holds a class and three methods:

    class TestMyModel(ModelContract):
        def make_model(self, *replies: str) -> Model: ...
        def make_slow(self, seconds: float) -> Model: ...
        def make_failing(self) -> Model: ...

`make_model` gives a model that answers with these texts in turn, `make_slow` one that takes that long to answer
anything, `make_failing` one that cannot answer. pytest is needed; the rest of the package never imports it.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from wellworn.core.errors import InvalidInput, ModelFailed
from wellworn.models.port import Message, Model, Reply, Request

SLOW_S = 0.5
CALLS = 8


def make_request(*texts: str, **given: Any) -> Request:  # any field of Request
    """A request with these texts from the user; one that is asked `hello?` without any."""
    messages = tuple(Message(role="user", text=text) for text in texts or ("hello?",))
    return Request(**{"messages": messages, "purpose": "test", **given})


class ModelContract:
    """The whole port of `llm.base`."""

    secrets: tuple[str, ...] = ()
    """Keys that the model was given, which must never show."""

    def make_model(self, *replies: str) -> Model:
        raise NotImplementedError

    def make_slow(self, seconds: float) -> Model:
        raise NotImplementedError

    def make_failing(self) -> Model:
        raise NotImplementedError

    # -- answers ---------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("text", ["yes", "", "two\nlines", "Grüße, 世界 🎉", '{"a": [1]}', " blanks around "])
    def test_the_text_arrives_as_it_was_said(self, text: str) -> None:
        assert self.make_model(text).complete(make_request()).text == text
        assert asyncio.run(self.make_model(text).acomplete(make_request())).text == text

    def test_a_reply_tells_what_it_took(self) -> None:
        model = self.make_model("one two three", "one two three")
        for reply in (model.complete(make_request()), asyncio.run(model.acomplete(make_request()))):
            assert isinstance(reply, Reply)
            assert reply.model == model.name
            assert isinstance(reply.input_tokens, int)
            assert isinstance(reply.output_tokens, int)
            assert min(reply.input_tokens, reply.output_tokens) >= 0
            assert 0 <= reply.seconds < 60
            assert isinstance(reply.estimated, bool)

    def test_answers_come_in_turn(self) -> None:
        model = self.make_model("first", "second", "third")
        assert [model.complete(make_request()).text for _ in range(3)] == ["first", "second", "third"]

    def test_every_kind_of_message_is_taken(self) -> None:
        said = [("system", "be brief"), ("user", "hi"), ("assistant", "hello"), ("user", "who?")]
        messages = tuple(Message(role=role, text=text) for role, text in said)  # type: ignore[arg-type]  # the roles
        assert self.make_model("me").complete(make_request(messages=messages)).text == "me"
        assert self.make_model("me").complete(make_request(messages=messages[:1])).text == "me"

    def test_json_can_be_asked_for(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        model = self.make_model('{"a": 1}', '{"a": 2}')
        assert model.complete(make_request(json=True)).text == '{"a": 1}'
        assert model.complete(make_request(json=True, schema=schema)).text == '{"a": 2}'

    def test_half_characters_do_no_harm(self) -> None:
        reply = self.make_model("fine").complete(make_request("cut \ud83d off"))
        assert reply.text == "fine"
        reply.text.encode()

    def test_a_model_has_a_name_that_stays(self) -> None:
        model = self.make_model("a")
        name = model.name
        model.complete(make_request())
        assert model.name == name
        assert name == name.strip() != ""

    def test_a_request_that_is_none_is_refused(self) -> None:
        for wrong in ({"messages": ()}, {"max_output_tokens": 0}, {"temperature": -1.0}):
            with pytest.raises(InvalidInput):
                self.make_model("a").complete(make_request(**wrong))
            with pytest.raises(InvalidInput):
                asyncio.run(self.make_model("a").acomplete(make_request(**wrong)))

    # -- several at once -------------------------------------------------------------------------------------------

    def test_many_threads_share_a_model(self) -> None:
        texts = [f"answer {number}" for number in range(CALLS)]
        model = self.make_model(*texts)
        with ThreadPoolExecutor(CALLS) as pool:
            replies = list(pool.map(model.complete, [make_request(f"{number}?") for number in range(CALLS)]))
        assert sorted(reply.text for reply in replies) == texts

    def test_many_awaited_calls_share_a_model(self) -> None:
        texts = [f"answer {number}" for number in range(CALLS)]
        model = self.make_model(*texts)

        async def ask() -> list[Reply]:
            return await asyncio.gather(*(model.acomplete(make_request(f"{number}?")) for number in range(CALLS)))

        assert sorted(reply.text for reply in asyncio.run(ask())) == texts

    def test_a_model_serves_one_event_loop_after_another(self) -> None:
        model = self.make_model("first", "second", "third")
        assert asyncio.run(model.acomplete(make_request())).text == "first"
        assert asyncio.run(model.acomplete(make_request())).text == "second"
        assert model.complete(make_request()).text == "third"

    def test_the_event_loop_runs_on_meanwhile(self) -> None:
        model = self.make_slow(SLOW_S)

        async def ask() -> tuple[float, Reply]:
            waiting = asyncio.ensure_future(model.acomplete(make_request()))
            longest, before = 0.0, time.perf_counter()
            while not waiting.done():
                await asyncio.sleep(0.005)
                now = time.perf_counter()
                longest, before = max(longest, now - before), now
            return longest, await waiting

        longest, reply = asyncio.run(ask())
        assert reply.seconds >= SLOW_S * 0.9
        assert longest < SLOW_S * 0.8, f"the loop stood still for {longest:.2f} s"

    def test_an_awaited_call_can_be_cancelled(self) -> None:
        model = self.make_slow(SLOW_S)

        async def ask() -> None:
            async with asyncio.timeout(SLOW_S / 10):
                await model.acomplete(make_request())

        with pytest.raises(TimeoutError):
            asyncio.run(ask())

    # -- failing ---------------------------------------------------------------------------------------------------

    def test_a_model_that_cannot_answer_says_so(self) -> None:
        model = self.make_failing()
        for attempt in (model.complete, lambda request: asyncio.run(model.acomplete(request))):
            with pytest.raises(ModelFailed) as caught:
                attempt(make_request())
            assert model.name in str(caught.value)
            assert isinstance(caught.value.retryable, bool)

    def test_no_secret_shows(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(0)
        model = self.make_model("a")
        model.complete(make_request())
        failing = self.make_failing()
        with pytest.raises(ModelFailed) as caught:
            failing.complete(make_request())
        told = "".join(traceback.format_exception(caught.value)) + repr((model, failing, vars(caught.value)))
        told += caplog.text
        assert [secret for secret in self.secrets if secret in told] == []

"""What every language model must do, as a suite to inherit from.

A model's test file holds a class and two methods:

    class TestMyModel(ModelContract):
        def make_model(self, *replies: str) -> Model: ...
        def make_failing(self) -> Model: ...

`make_model` gives a model that answers with these texts in turn, `make_failing` one that cannot answer. pytest is needed;
the rest of the package never imports it.
"""

from __future__ import annotations

import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from wellworn.core.errors import InvalidInput, ModelFailed
from wellworn.models.port import Message, Model, Reply, Request

CALLS = 8


def make_request(*texts: str, **given: Any) -> Request:  # any field of Request
    """A request with these texts from the user; one that is asked `hello?` without any."""
    messages = tuple(Message(role="user", text=text) for text in texts or ("hello?",))
    return Request(**{"messages": messages, "purpose": "test", **given})


class ModelContract:
    """The port of `models.port`, behaviour by behaviour."""

    secrets: tuple[str, ...] = ()
    """Keys that the model was given, which must never show."""

    def make_model(self, *replies: str) -> Model:
        raise NotImplementedError

    def make_failing(self) -> Model:
        raise NotImplementedError

    @pytest.mark.parametrize("text", ["yes", "", "two\nlines", "Grüße, 世界 🎉", '{"a": [1]}', " blanks around "])
    def test_the_text_arrives_as_it_was_said(self, text: str) -> None:
        assert self.make_model(text).complete(make_request()).text == text

    def test_a_reply_tells_what_it_took(self) -> None:
        model = self.make_model("one two three")
        name = model.name
        reply = model.complete(make_request())
        assert isinstance(reply, Reply)
        assert (reply.model, model.name) == (name, name)
        assert name == name.strip() != ""
        assert isinstance(reply.input_tokens, int)
        assert isinstance(reply.output_tokens, int)
        assert min(reply.input_tokens, reply.output_tokens) >= 0
        assert reply.seconds >= 0
        assert isinstance(reply.estimated, bool)

    def test_answers_come_in_turn(self) -> None:
        model = self.make_model("first", "second", "third")
        assert [model.complete(make_request()).text for _ in range(3)] == ["first", "second", "third"]

    def test_every_kind_of_message_is_taken(self) -> None:
        said = [("system", "be brief"), ("user", "hi"), ("assistant", "hello"), ("user", "who? \ud83d")]
        messages = tuple(Message(role=role, text=text) for role, text in said)  # type: ignore[arg-type]  # the roles
        assert self.make_model("me").complete(make_request(messages=messages)).text == "me"
        assert self.make_model("me").complete(make_request(messages=messages[:1])).text == "me"

    def test_json_can_be_asked_for(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        model = self.make_model('{"a": 1}', '{"a": 2}')
        assert model.complete(make_request(json=True)).text == '{"a": 1}'
        assert model.complete(make_request(json=True, schema=schema)).text == '{"a": 2}'

    @pytest.mark.parametrize("wrong", [{"messages": ()}, {"max_output_tokens": 0}, {"temperature": -1.0}])
    def test_a_request_that_is_none_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput):
            self.make_model("a").complete(make_request(**wrong))

    def test_many_threads_share_a_model(self) -> None:
        texts = [f"answer {number}" for number in range(CALLS)]
        model = self.make_model(*texts)
        with ThreadPoolExecutor(CALLS) as pool:
            replies = list(pool.map(model.complete, [make_request(f"{number}?") for number in range(CALLS)]))
        assert sorted(reply.text for reply in replies) == texts

    def test_a_model_that_cannot_answer_says_so_and_no_secret_shows(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(0)
        model, failing = self.make_model("a"), self.make_failing()
        with pytest.raises(ModelFailed) as caught:
            failing.complete(make_request())
        assert failing.name in str(caught.value)
        assert isinstance(caught.value.retryable, bool)
        told = "".join(traceback.format_exception(caught.value)) + repr((model, failing, vars(caught.value)))
        told += caplog.text
        assert [secret for secret in self.secrets if secret in told] == []

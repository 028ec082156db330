from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.models import make_request
from wellworn import Memory
from wellworn.core.errors import EmbeddingFailed, InvalidInput, ModelFailed
from wellworn.models import FunctionEmbedder, FunctionModel, Message, Reply, ScriptedModel
from wellworn.store.port import EmbeddingModel

TALK = (Message(role="system", text="be brief"), Message(role="user", text="hi"))


def test_a_function_of_text_gets_the_prompt() -> None:
    def shout(prompt: str) -> str:
        return prompt.upper()

    assert FunctionModel(shout).complete(make_request(messages=TALK)).text == "BE BRIEF\n\nHI"
    longer = (*TALK, Message(role="assistant", text="hello"))
    said = FunctionModel(shout).complete(make_request(messages=longer)).text
    assert said == "SYSTEM: BE BRIEF\n\nUSER: HI\n\nASSISTANT: HELLO"


def test_async_functions_are_awaited_whether_or_not_a_loop_runs_here() -> None:
    class Client:
        async def __call__(self, prompt: str) -> str:
            await asyncio.sleep(0)
            return prompt

    async def inside() -> str:
        return FunctionModel(Client()).complete(make_request("hi")).text

    assert FunctionModel(Client()).complete(make_request("hi")).text == "hi"
    assert FunctionModel(lambda prompt: Client()(prompt), name="m").complete(make_request("hi")).text == "hi"
    assert asyncio.run(inside()) == "hi"


def test_anything_but_text_is_an_error_and_a_blank_name_too() -> None:
    for answer in (None, 5, b"bytes"):
        with pytest.raises(ModelFailed, match=f"answered with {type(answer).__name__}"):
            FunctionModel(lambda prompt, answer=answer: answer, name="odd").complete(make_request())  # type: ignore[misc]
    with pytest.raises(InvalidInput, match="its name is ' '"):
        FunctionModel(str.upper, name=" ")


# -- embedders --------------------------------------------------------------------------------------------------


def lengths(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0, 0.0] for text in texts]


def test_vectors_are_scaled_to_unit_length_and_the_width_is_discovered_once() -> None:
    asked: list[list[str]] = []

    def counting(texts: list[str]) -> list[list[float]]:
        asked.append(texts)
        return lengths(texts)

    embedder = FunctionEmbedder(counting)
    assert embedder.width == embedder.width == 3
    assert len(asked) == 1
    rows = embedder.embed(["abc", "d"])
    np.testing.assert_allclose(rows, [[3 / 10**0.5, 1 / 10**0.5, 0], [2**-0.5, 2**-0.5, 0]], atol=1e-6)
    np.testing.assert_array_equal(embedder.embed_query("abc"), rows[0])
    assert embedder.embed([]).shape == (0, 3)
    assert FunctionEmbedder(counting, width=3).width == 3
    assert len(asked) == 3
    with pytest.raises(InvalidInput, match="width"):
        FunctionEmbedder(lengths, width=0)


@pytest.mark.parametrize("nameless", [lambda texts: lengths(texts), partial(lengths)], ids=["lambda", "partial"])
def test_a_function_without_a_name_embeds_only_under_a_given_one(nameless: Any) -> None:
    with pytest.raises(InvalidInput, match=r"has no name.*FunctionEmbedder\(function, name="):
        Memory(":memory:", embedder=nameless)
    with Memory(":memory:", embedder=FunctionEmbedder(nameless, name="lengths-1"), background=False) as memory:
        assert memory.engine.store.model() == EmbeddingModel(name="lengths-1", width=3)


def test_blank_texts_are_zero_and_not_asked_for() -> None:
    asked: list[str] = []

    def noting(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return lengths(texts)

    embedder = FunctionEmbedder(noting, width=3)
    rows = embedder.embed(["", "cut \ud83d", " \n"])
    assert asked == ["cut �"]
    assert [bool(row.any()) for row in rows] == [False, True, False]
    assert not embedder.embed_query(" ").any()


def test_the_words_of_a_foreign_error_are_its_cause_only() -> None:
    def leaking(asked: Any) -> Any:
        raise RuntimeError("key sk-secret refused")

    for call in (
        lambda: FunctionEmbedder(leaking).embed(["a"]),
        lambda: FunctionModel(leaking).complete(make_request()),
    ):
        with pytest.raises((EmbeddingFailed, ModelFailed), match="RuntimeError") as caught:
            call()
        assert "sk-secret" not in str(caught.value)
        assert isinstance(caught.value.__cause__, RuntimeError)


# -- the scripted double -----------------------------------------------------------------------------------------------


def test_replies_are_played_in_order_and_requests_kept() -> None:
    model = ScriptedModel(["one", "two"])
    assert model.remaining == 2
    first, second = make_request("a"), make_request("b")
    assert [model.complete(first).text, model.complete(second).text] == ["one", "two"]
    assert model.requests == [first, second]
    with pytest.raises(ModelFailed, match=r"no reply left for call 3 \(purpose 'test'\)"):
        model.complete(make_request())
    always = ScriptedModel("always")
    assert ([always.complete(make_request()).text for _ in range(3)], always.remaining) == (["always"] * 3, 0)


def test_replies_can_go_by_purpose() -> None:
    model = ScriptedModel({"extract": ["a", "b"], "merge": "Add()", "*": "?"})
    asked = ["extract", "merge", "merge", "extract", "other"]
    assert [model.complete(make_request(purpose=each)).text for each in asked] == ["a", "Add()", "Add()", "b", "?"]
    with pytest.raises(ModelFailed, match="only for 'a'"):
        ScriptedModel({"a": "1"}).complete(make_request(purpose="b"))


def test_a_function_or_an_error_can_take_its_turn() -> None:
    passing = ModelFailed("busy", retryable=True)
    model = ScriptedModel([lambda request: str(len(request.messages)), passing, OSError("broken"), "fine"])
    assert model.complete(make_request("a", "b")).text == "2"
    for error in ("busy", "OSError"):
        with pytest.raises(ModelFailed, match=error):
            model.complete(make_request())
    assert model.complete(make_request()).text == "fine"


def test_token_counts_can_be_told() -> None:
    told = ScriptedModel("a", input_tokens=1000, output_tokens=50).complete(make_request())
    assert (told.input_tokens, told.output_tokens, told.estimated) == (1000, 50, False)
    whole = Reply(text="a", model="", input_tokens=3, output_tokens=4, seconds=5.0, estimated=False)
    reply = ScriptedModel([whole]).complete(make_request())
    assert (reply.model, reply.input_tokens) == ("scripted", 3)
    assert ScriptedModel("a").complete(make_request()).estimated


def test_replies_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "replies.json"
    path.write_text(json.dumps(["plain", {"a": "ü"}]), encoding="utf-8")
    model = ScriptedModel.from_file(path)
    assert [model.complete(make_request()).text for _ in range(2)] == ["plain", '{"a": "ü"}']
    path.write_text(json.dumps({"extract": ["x"], "merge": "y"}), encoding="utf-8")
    assert ScriptedModel.from_file(path).complete(make_request(purpose="merge")).text == "y"
    for bad in (path.with_name("absent.json"), Path(__file__)):
        with pytest.raises(InvalidInput, match="cannot read replies"):
            ScriptedModel.from_file(bad)

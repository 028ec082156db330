from __future__ import annotations

import json
from pathlib import Path

import pytest

from contract.models import make_request
from wellworn.core.errors import InvalidInput, ModelFailed
from wellworn.models import Reply, ScriptedModel


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

"""Whatever a model writes, JSON comes out or one error does, and soon."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.few import few
from wellworn.core.errors import ModelFailed, ReplyUnreadable
from wellworn.models import structured
from wellworn.models.structured import find_json, read_json

# -- one by one --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure! Here you are:\n{"a": 1}\nAnything else?', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Here:\n```\n{"a": 1}\n```\nand {"b": 2} is not it', {"a": 1}),
        ('```json\n{"a": 1}', {"a": 1}),
        ('<think>{"a": 0}? no.</think>\n{"a": 1}', {"a": 1}),
        ('{"a": 1}</think>', {"a": 1}),
        ('hm</think>{"a": 1}', {"a": 1}),
        ('Sure: {"</think>": []}', {"</think>": []}),
        ('<think>5" wide</think>{"</think>": []}', {"</think>": []}),
        ('{"a": "</think>"}? no.</think>\n{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": [1, 2,], "b": {"c": 3,},}', {"a": [1, 2], "b": {"c": 3}}),
        ("{'a': 'it\\'s', 'b': None, 'c': True, 'd': ('x', 2)}", {"a": "it's", "b": None, "c": True, "d": ["x", 2]}),
        ("{'a': 'Ada's dogs' bowl', 'b': 1}", {"a": "Ada's dogs' bowl", "b": 1}),
        ('{"a": "line one\nline two\ttab"}', {"a": "line one\nline two\ttab"}),
        ('{"a": "he said "no", then left", "b": 2}', {"a": 'he said "no", then left', "b": 2}),
        ('{"a": "x"\n "b": "y"}', {"a": "x", "b": "y"}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ('["a"\n "b"]', ["a", "b"]),
        ('{"a": ["s": "x", "r": [0 1]}, {"s": "y"}]}', {"a": [{"s": "x", "r": [0, 1]}, {"s": "y"}]}),
        ('{"a": [{"s": "x", "r": [0], {"s": "y"}], "b": 1}', {"a": [{"s": "x", "r": [0]}, {"s": "y"}], "b": 1}),
        ('{"a": {"s" "x" "r": 1}}', {"a": {"s": "x", "r": 1}}),
        ('{"a": 1, b": [0\n1], "c": ok"}', {"a": 1, "b": [0, 1], "c": "ok"}),
        ("{a: 1, b_c: two words, d: [x, y]}", {"a": 1, "b_c": "two words", "d": ["x", "y"]}),
        ("{“a”: “b”, ‘c’: ‘don’t’}", {"a": "b", "c": "don’t"}),
        ('{"a": 1, // why\n /* what */ "b": 2, # how\n "c": 3}', {"a": 1, "b": 2, "c": 3}),
        ('{"a": [1, 2, ...], ...}', {"a": [1, 2]}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('{"a": {"b": 1]}', {"a": {"b": 1}}),
        ('{"a": NaN, "b": Infinity, "c": -Infinity, "d": 1e999}', {"a": None, "b": None, "c": None, "d": None}),
        ("{'a': NaN, 'b': 1_000, 'c': +1, 'd': .5, 'e': 1e999}", {"a": None, "b": 1000, "c": 1, "d": 0.5, "e": None}),
        ('{"a": "\\ud83d\\ude00 \\ud83d"}', {"a": "😀 �"}),
        ("{'a': '\\ud83d\\ude00 \\d'}", {"a": "😀 \\d"}),
        ('{"a": , "b": 1}', {"a": None, "b": 1}),
        ('{"a": {"x": 1, [2], "b": 3}}', {"a": {"x": 1, "b": 3}}),
        ('{{"a": 1}}', {"a": 1}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ("[]", []),
        ("nothing new: {}", {}),
        ('In the [\'90s, "sic" and {braces} she said [1]: {"a": 1}', {"a": 1}),
        (f'{{"a": {"9" * 5000}, "b": 1}}', {"a": None, "b": 1}),
    ],
)
def test_what_models_write_is_read(text: str, value: Any) -> None:
    assert read_json(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "b": "half a sent', {"a": 1}),
        ('{"a": 1, "b": 12', {"a": 1}),
        ('{"a": 1, "b": fal', {"a": 1}),
        ('{"a": 1, "b": false', {"a": 1, "b": False}),
        ('{"a": 1, "b"', {"a": 1}),
        ('{"a": 1, "b":', {"a": 1}),
        ('{"a": 1, "b', {"a": 1}),
        ('{"a": [{"s": "one", "r": [0]}, {"s": "tw', {"a": [{"s": "one", "r": [0]}, {}]}),
        ('{"a": [{"s": "one", "r": [0, 1', {"a": [{"s": "one", "r": [0]}]}),
        ('{"a": "whole"', {"a": "whole"}),
        ('```json\n{"a": 1, "b": "half\n```\nHope this helps!', {"a": 1}),
        ('```json\n{"a": [1, 2\n```\nHope this helps!', {"a": [1, 2]}),
    ],
)
def test_what_was_cut_off_in_the_middle_is_left_out(text: str, value: Any) -> None:
    (found,) = find_json(text)
    assert found == value


@pytest.mark.parametrize(
    "text", ["", "   ", "no json here", "a {brace} [to be] and [sic] and {", "5", '"text"', "null", '{"only']
)
def test_where_there_is_none_one_error_says_so(text: str) -> None:
    assert find_json(text) == []
    with pytest.raises(ReplyUnreadable, match="no JSON") as caught:
        read_json(text)
    assert isinstance(caught.value, ModelFailed)
    assert not caught.value.retryable
    with pytest.raises(ReplyUnreadable, match=r"^.{1,200}$"):  # it quotes the beginning only
        read_json("I am sorry, " * 1000)


def test_several_values_come_in_order_those_in_fences_first() -> None:
    text = 'first {"a": 1} then [2]\n```json\n{"b": 3}\n```\n{"c": 4} {"d": 5'
    assert find_json(text) == [{"b": 3}, {"a": 1}, [2], {"c": 4}]


def test_the_object_that_was_wanted_is_preferred() -> None:
    text = 'e.g. {"x": 0} or {} or {"memories": []} so {"memories": [1], "why": "…"}'
    assert read_json(text) == {"x": 0}
    assert read_json(text, wants=["memories"]) == {"memories": []}
    assert read_json(text, wants=["memories", "why"]) == {"memories": [1], "why": "…"}
    assert read_json(text, wants=["why", "absent"]) == {"memories": [1], "why": "…"}
    assert read_json(text, wants=["absent"]) == {"x": 0}
    assert read_json("[1] then {}", wants=["a"]) == [1]


# -- properties --------------------------------------------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
JSON = st.lists(VALUES, min_size=1, max_size=4) | st.dictionaries(st.text(max_size=8), VALUES, min_size=1, max_size=4)


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_valid_json_is_read_exactly_wherever_it_stands(value: Any, indent: int | None, ascii_only: bool) -> None:
    text, exact = json.dumps(value, indent=indent, ensure_ascii=ascii_only), json.loads(json.dumps(value))
    assert find_json(text) == [exact]
    for around in ("Sure: {} Done.", "```json\n{}\n```", "<think>hm</think>{}", "\n\n{}\n\n"):
        assert find_json(around.replace("{}", text))[0] == exact


HARMLESS: dict[str, Callable[[str], str]] = {
    "comments": lambda text: text.replace(",", ", // so\n", 1).replace("[", "[ /* list */ ", 1),
    "commas": lambda text: text.replace("]", ",]").replace("}", ", }"),
    "literals": lambda text: text.replace("true", "True").replace("null", "None"),
    "newlines": lambda text: text.replace(". ", ".\n").replace("; ", ";\n"),
    "bare keys": lambda text: text.replace('"summary"', "summary").replace('"reference"', "reference"),
    "prose": lambda text: f"Here [it] is, I thought {{about}} it.\n{text}\nHope this helps! }}",
    "fence": lambda text: f"Sure!\n```json\n{text}\n``` ok",
}


@given(st.sets(st.sampled_from([*HARMLESS])), st.sampled_from([None, 2]))
def test_what_can_be_mended_loses_nothing(harm: set[str], indent: int | None) -> None:
    said = {"summary": "Ada moved to Bonn. She works there; remotely.", "reference": [0, 2]}
    plain: dict[str, Any] = {"memories": [said, {"b": None, "c": True}]}
    text = json.dumps(plain, indent=indent)
    for name, broken in HARMLESS.items():
        text = broken(text) if name in harm else text
    found = json.dumps(read_json(text, wants=["memories"])).replace("\\n", " ")
    assert json.loads(found) == plain


@given(st.text(max_size=200) | st.text(alphabet="{}[]()\"'\\,:.`/#*\n -+e0atrufnls“”‘’", max_size=80))
def test_any_text_gives_values_or_the_error(text: str) -> None:
    found = find_json(text)
    for each in found:
        json.dumps(each, allow_nan=False).encode()
        json.dumps(each, ensure_ascii=False).encode()  # no half characters
    try:
        assert isinstance(read_json(text), dict | list)
        assert found
    except ReplyUnreadable:
        assert not found


GARBAGE = [
    "{",
    "[",
    '{"a":[',
    "{'a': 'it's', ",
    "['a ",
    '{"a":1,/*',
    '["a",',
    '{"a":1} ',
    "```json\n",
    "</think>{",
    '{"a"' + " " * 50,
    '{"a\\',
    "[1.2.",
    '["a": ',
    "{a:b ",
]


@pytest.mark.parametrize("unit", few(GARBAGE, 5))
def test_long_garbage_is_read_to_its_end(unit: str) -> None:
    """A reader that looks at a sign again and again would not come back from this."""
    assert all(math.isfinite(len(json.dumps(found))) for found in find_json(unit * (30_000 // len(unit))))


def test_deep_nesting_and_long_texts_end_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for depth in (10, 60, 500, 5000):
        for each in find_json("[" * depth + "1" + "]" * depth):
            assert math.isfinite(len(json.dumps(each)))
    monkeypatch.setattr(structured, "MAX_CHARS", 1000)
    assert find_json('{"a": 1} ' + "x" * 1000 + '{"b": 2}') == [{"a": 1}]

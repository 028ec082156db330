"""Whatever a model writes, JSON comes out or one error does, and soon."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.few import few
from wellworn.core.errors import ModelFailed, ReplyUnreadable
from wellworn.models import structured
from wellworn.models.structured import find_json, read_json

MEMORIES = {
    "extracted_memories": [
        {"summary": 'Ada said "no" to async-std; she likes it\'s rival', "reference": [0, 2]},
        {"summary": "Grüße aus 東京 🎉 {not json}", "reference": []},
    ],
    "done": True,
    "score": -1.5e3,
    "none": None,
}


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
        ('{{"a": 1}}', {"a": 1}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ("[]", []),
        ("nothing new: {}", {}),
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
    "text",
    [
        "",
        "   ",
        "no json here",
        "NO_TRAIT",
        "a {brace} and [sic] and {",
        "5",
        '"text"',
        "null",
        '{"only',
        "{'",
        "[",
        "(",
        "}{",
        "```json\n```",
        "Merge(0, text)",
    ],
)
def test_where_there_is_none_one_error_says_so(text: str) -> None:
    assert find_json(text) == []
    with pytest.raises(ReplyUnreadable, match="no JSON") as caught:
        read_json(text)
    assert isinstance(caught.value, ModelFailed)
    assert not caught.value.retryable


def test_an_error_quotes_the_beginning_only() -> None:
    with pytest.raises(ReplyUnreadable) as caught:
        read_json("I am sorry, " * 1000)
    assert len(str(caught.value)) < 200


def test_several_values_come_in_order_those_in_fences_first() -> None:
    text = 'first {"a": 1} then [2]\n```json\n{"b": 3}\n```\n{"c": 4} {"d": 5'
    assert find_json(text) == [{"b": 3}, {"a": 1}, [2], {"c": 4}]


def test_brackets_in_prose_do_not_hide_what_follows() -> None:
    text = 'In the [\'90s, "sic" and {braces} she said [1]: {"a": 1}'
    assert {"a": 1} in find_json(text)
    assert read_json(text) == {"a": 1}


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


def mended(value: Any) -> Any:
    """As JSON would bring it back, half characters replaced."""
    return json.loads(json.dumps(value)) if value is not None else None


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_valid_json_is_read_exactly_wherever_it_stands(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert find_json(text) == [mended(value)]
    for around in ("Sure: {} Done.", "```json\n{}\n```", "<think>hm</think>{}", "\n\n{}\n\n"):
        assert find_json(around.replace("{}", text))[0] == mended(value)


@given(st.text(max_size=200) | st.text(alphabet="{}[]()\"'\\,:.`/#*\n -+e0atrufnls“”‘’", max_size=80))
def test_any_text_gives_values_or_the_error(text: str) -> None:
    check_sound(text)


def check_sound(text: str) -> None:
    found = find_json(text)
    for each in found:
        json.dumps(each, allow_nan=False).encode()
        json.dumps(each, ensure_ascii=False).encode()  # no half characters
    try:
        assert isinstance(read_json(text), dict | list)
        assert found
    except ReplyUnreadable:
        assert not found


Break = Callable[[str, random.Random], str]


def fence(text: str, rng: random.Random) -> str:
    return f"{rng.choice(['', 'Sure!'])}\n```{rng.choice(['', 'json', 'JSON'])}\n{text}\n```{rng.choice(['', ' ok'])}"


def wrap(text: str, rng: random.Random) -> str:
    before = rng.choice(["", "Here [it] is: ", "I thought {about} it.\n", '<think>hm {"x": 1}</think>', "It's:\n"])
    return before + text + rng.choice(["", "\nHope this helps!", " }", " ]", '"', "\n\n{}"])


def trailing_commas(text: str, rng: random.Random) -> str:
    return text.replace("]", ",]").replace("}", ", }")


def python_literals(text: str, rng: random.Random) -> str:
    return text.replace("true", "True").replace("false", "False").replace("null", "None")


def single_quotes(text: str, rng: random.Random) -> str:
    return text.replace('\\"', "\0").replace("'", "\\'").replace('"', "'").replace("\0", '"')


def unescaped_quotes(text: str, rng: random.Random) -> str:
    return text.replace('\\"', '"')


def raw_newlines(text: str, rng: random.Random) -> str:
    return text.replace(". ", ".\n").replace("; ", ";\n")


def cut_off(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text) + 1)]


def lose_a_sign(text: str, rng: random.Random) -> str:
    places = [place for place, sign in enumerate(text) if sign in '{}[]",:']
    place = rng.choice(places) if places else 0
    return text[:place] + text[place + 1 :]


def add_a_sign(text: str, rng: random.Random) -> str:
    place = rng.randrange(len(text) + 1)
    return text[:place] + rng.choice("{}[]\",:'\\\n`") + text[place:]


def bare_keys(text: str, rng: random.Random) -> str:
    return text.replace('"summary"', "summary").replace('"reference"', "reference")


def repeat(text: str, rng: random.Random) -> str:
    return text + rng.choice(["", "\n", ", "]) + text


def comments(text: str, rng: random.Random) -> str:
    return text.replace(",", ", // so\n", 1).replace("[", "[ /* list */ ", 1)


def typographic(text: str, rng: random.Random) -> str:
    return text.replace('"', rng.choice("“”"))


BREAKS: list[Break] = [
    fence,
    wrap,
    trailing_commas,
    python_literals,
    single_quotes,
    unescaped_quotes,
    raw_newlines,
    cut_off,
    lose_a_sign,
    add_a_sign,
    bare_keys,
    repeat,
    comments,
    typographic,
]
HARMLESS: list[Break] = [wrap, trailing_commas, python_literals, raw_newlines, bare_keys, comments, fence]


def test_hundreds_of_broken_shapes_do_no_harm() -> None:
    rng = random.Random(7)
    shapes = set()
    for _ in range(1000):
        text = json.dumps(MEMORIES, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 2]))
        for step in rng.choices(BREAKS, k=rng.randint(1, 4)):
            text = step(text, rng)
        shapes.add(text)
        check_sound(text)
    assert len(shapes) >= 700


def test_what_can_be_mended_loses_nothing() -> None:
    rng = random.Random(11)
    plain = {
        "memories": [{"summary": "Ada moved to Bonn. She works there; remotely.", "reference": [0, 2]}, {"b": None}]
    }
    wanted = json.dumps(plain).replace(". ", " ").replace("; ", " ")
    for _ in range(300):
        text = json.dumps(plain, indent=rng.choice([None, 2]))
        steps = [step for step in HARMLESS if rng.random() < 0.5]
        for step in steps:
            text = step(text, rng)
        value = read_json(text, wants=["memories"])
        told = json.dumps(value).replace(".\\n", " ").replace(";\\n", " ").replace(". ", " ").replace("; ", " ")
        assert told == wanted, (text, [step.__name__ for step in steps])


# -- size --------------------------------------------------------------------------------------------------------

GARBAGE = {
    "braces": "{",
    "brackets": "[",
    "keys": '{"a":[',
    "quotes": '{"',
    "single quotes": "{'a': 'it's', ",
    "lists": "['a ",
    "comments": '{"a":1,/*',
    "triples": "{'a':'''x",
    "commas": '["a",',
    "values": '{"a":1} ',
    "fences": "```json\n",
    "thoughts": "</think>{",
    "colons": '{"a"::',
    "blanks": '{"a"' + " " * 50,
    "escapes": '{"a\\',
    "numbers": "[1.2.",
    "rows": '["a" ',
    "pairs": '["a": ',
    "lost": '{"a, "b": "c, ',
    "bare": "{a:b ",
}


@pytest.mark.parametrize("unit", few(GARBAGE.values(), 5), ids=GARBAGE)
def test_long_garbage_is_read_to_its_end(unit: str) -> None:
    """A reader that looks at a sign again and again would not come back from this."""
    assert all(math.isfinite(len(json.dumps(found))) for found in find_json(unit * (30_000 // len(unit))))


def test_no_more_is_read_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured, "MAX_CHARS", 1000)
    long = '{"a": 1} ' + "x" * 1000 + '{"b": 2}'
    (found,) = find_json(long)
    assert found == {"a": 1}


def test_deep_nesting_ends_somewhere() -> None:
    for depth in (10, 60, 500, 5000):
        text = "[" * depth + "1" + "]" * depth
        for each in find_json(text):
            assert math.isfinite(len(json.dumps(each)))
    assert find_json("[" * 60 + "]" * 60 + ",")[0] != []

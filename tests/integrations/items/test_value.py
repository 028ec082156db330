"""JSON values survive exactly, or are refused."""

from __future__ import annotations

import json
from collections import UserDict
from datetime import UTC, datetime
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from wellworn import InvalidInput
from wellworn.integrations.items.value import MAX_VALUE_BYTES, decode, encode, scrubbed

texts = st.text() | st.sampled_from(["\x00", "\ud800", "a\udfff🌧", '\u2028"\\'])
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.dictionaries(
    texts, st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=8)
)


@given(value=values)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_what_is_decoded_is_what_was_encoded_type_for_type(value: dict[str, Any]) -> None:
    text = encode(value)
    text.encode()
    assert "\x00" not in text
    again = decode(text)
    assert again == value
    assert json.dumps(again) == json.dumps(value), "1, 1.0 and True are not the same, and the order of keys stays"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"x": float("nan")}, "not plain JSON"),
        ({"x": [float("-inf")]}, "not plain JSON"),
        ({"x": b"bytes"}, "bytes"),
        ({"x": {1, 2}}, "set"),
        ({"x": datetime(2024, 5, 1, tzinfo=UTC)}, "datetime"),
        ({1: "x"}, "the key 1"),
        ({"x": [{None: 1}]}, "the key None"),
        ({"x": "a" * MAX_VALUE_BYTES}, "1,000,000"),
        ([("x", 1)], "mapping, not list"),
        ("text", "mapping, not str"),
        ({"x": 10**5000}, "not plain JSON"),
    ],
)
def test_what_json_has_no_word_for_is_refused(value: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        encode(value)


def test_what_holds_itself_is_refused() -> None:
    ring: dict[str, Any] = {}
    ring["ring"] = ring
    with pytest.raises(InvalidInput, match="value"):
        encode(ring)


def test_tuples_and_other_mappings_become_lists_and_dicts() -> None:
    assert decode(encode(UserDict({"x": (1, UserDict({"y": 2}))}))) == {"x": [1, {"y": 2}]}


def test_scrubbing_reaches_every_text_and_no_key() -> None:
    value = {"secret": ["secret", {"a": ("secret", 1, None)}]}
    assert scrubbed(value, lambda text: text.replace("secret", "-")) == {"secret": ["-", {"a": ["-", 1, None]}]}

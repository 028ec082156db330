"""JSON values of items: stored exactly, or refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from wellworn import InvalidInput
from wellworn.core.values import Partition
from wellworn.integrations.items import encoded, item_id

texts = st.text() | st.sampled_from(["\x00", "\ud800", "a\udfff🌧", '\u2028"\\'])
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.dictionaries(
    texts, st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=8)
)


@given(value=values)
def test_a_value_reads_back_type_for_type(value: dict[str, Any]) -> None:
    text = encoded(value)
    text.encode()
    assert "\x00" not in text
    assert json.dumps(json.loads(text)) == json.dumps(value)  # 1, 1.0 and True differ, and the order of keys stays


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"x": [float("-inf")]}, "not plain JSON"),
        ({"x": datetime(2024, 5, 1, tzinfo=UTC)}, "datetime"),
        ({1: "x"}, "the key 1"),
        ({"x": "a" * 1_000_000}, "1,000,000"),
        ([("x", 1)], "dict, not list"),
        ({"x": 10**5000}, "not plain JSON"),
    ],
)
def test_a_value_that_json_would_change_is_refused(value: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        encoded(value)
    ring: dict[str, Any] = {"value": value}
    ring["ring"] = ring
    with pytest.raises(InvalidInput, match="value"):
        encoded(ring)


def test_ids_never_change() -> None:
    """They are stored: an item written by an older release must be found."""
    place = Partition(tenant="acme", layer="agent", layer_id="langgraph:users.ada")
    assert item_id(place, "k") == "56c7e9dc-19b1-52a0-8c77-bf9123bc4dfd"

"""Front matter and body, apart and together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.core.errors import TransferError
from wellworn.ops.markdown import join, split

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
# The words that YAML or this module gives a meaning of their own.
TRICKY = st.sampled_from(
    ["---", "...", "<<", "=", "yes", "null", "~", "0o7", "1:30", "2024-01-01", "1e3", "- a", "? b"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT | TRICKY,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | TRICKY, inner, max_size=4),
    max_leaves=15,
)


BODIES = st.sampled_from(["", "\n", "\n\n", "---\n", "\r\n---\r\nx\r", "a\n---\nb", "\ufeffx", "x\n...", " "])


@given(front=st.dictionaries(TEXT | TRICKY, JSON, max_size=5), body=TEXT | BODIES)
def test_any_text_and_any_json_come_back(front: dict[str, Any], body: str) -> None:
    assert split(join(front, body), "x.md") == (front, body)


@pytest.mark.parametrize(
    ("content", "front", "body"),
    [
        ("just text\n", None, "just text"),
        ("\ufeffjust text", None, "just text"),
        ("---\nno end", None, "---\nno end"),
        ("---\nprose between rules\n---\nmore", None, "---\nprose between rules\n---\nmore"),
        ("---\n---\nx", {}, "x"),
        ("---\n \t\n---\nx", {}, "x"),
        ("---\n# The key is 1234\n---\n", None, "---\n# The key is 1234\n---"),  # to YAML a comment
        ("---\r\ntitle: T\r\n---\r\nx\r\ny\r\n", {"title": "T"}, "x\r\ny\r"),
        ("\ufeff--- \ntitle: T\n---", {"title": "T"}, ""),
        ("---\nat: 2024-01-01\n---\nx", {"at": "2024-01-01"}, "x"),
        (" ---\ntitle: T\n---\nx", None, " ---\ntitle: T\n---\nx"),
    ],
)
def test_front_matter_is_a_mapping_between_two_lines(content: str, front: dict[str, Any] | None, body: str) -> None:
    assert split(content, "x.md") == (front, body)


LAUGHS = "\n".join(["a: &a [x, x]", *(f"{b}: &{b} [*{a}, *{a}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True))])


@pytest.mark.parametrize(
    "yaml",
    [
        LAUGHS,
        "a: &a [*a]",
        "a: !!python/object/apply:os.system ['true']",
        "a: !!python/name:os.system",
        "a: !own 1",
        "a: 1\na: 2",
        "{1: a, '1': b}",
        "? [a]\n: b",
        "a: [1",
        "a: 'open",
        "a: \x01",
        "a\n b: c: d",
        "<<: {a: 1}",
        "a: " + "[" * 5000,
        "a: " + "9" * 5000,
        "%YAML 9.9\n--- a",
    ],
)
def test_yaml_that_is_broken_or_more_than_data_is_refused(yaml: str) -> None:
    with pytest.raises(TransferError, match=r"x\.md: the front matter is damaged"):
        split(f"---\n{yaml}\n---\nbody", "x.md")

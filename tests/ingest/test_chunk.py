"""Pieces of a long text: nothing lost, nothing too long, cut where a reader would cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.core.wellformed import count_tokens
from wellworn.ingest.chunk import MAX_TOKENS, MOST_OVERLAP_TOKENS, STEP, chunk

parts = st.one_of(
    st.text(max_size=80),
    st.sampled_from(
        ["word ", "Sentence one. ", "\n\n", "\n", " ", "x" * 700, "語" * 300, "。", "...", "? ", "\t", "\u3000"]
    ),
    st.sampled_from(["a-b/c", "é" * 40, "🙂" * 260, "1234567 ", "\r\n\r\n", "…” ", "`code()` ", "\x1c", "\n# Top\n"]),
    st.sampled_from(["\n\nOver\n----\n\n", "\n```py\nrun(1)\n\nrun(2)\n```\n", "\n~~~\n# no heading\n"]),
)
documents = st.lists(st.tuples(parts, st.integers(1, 60)), min_size=1, max_size=12).map(
    lambda found: "".join(part * times for part, times in found)
)


@given(text=documents)
def test_no_piece_is_too_long_or_blank_and_together_they_are_the_text(text: str) -> None:
    pieces = chunk(text)
    assert "".join(piece.own for piece in pieces) == text
    assert all(count_tokens(piece.text) <= MAX_TOKENS == 500 for piece in pieces)
    assert len(pieces) == 1 or all(piece.own.strip() for piece in pieces)


@given(text=documents)
def test_a_piece_is_its_share_with_the_end_of_the_one_before(text: str) -> None:
    pieces = chunk(text)
    assert pieces[0].text == pieces[0].own
    for before, piece in pairwise(pieces):
        if "```" in text or "~~~" in text:
            assert piece.own in piece.text
            continue
        assert piece.text.endswith(piece.own)
        lead = piece.text.removesuffix(piece.own).removeprefix(f"{piece.heading.rpartition(STEP)[2]}\n\n")
        assert count_tokens(lead) <= MOST_OVERLAP_TOKENS
        assert " ".join(lead.split()) == "" or " ".join(before.own.split()).endswith(" ".join(lead.split()))


@given(a=documents, b=documents)
def test_the_tokens_of_a_whole_are_never_more_than_those_of_its_parts(a: str, b: str) -> None:
    assert count_tokens(a + b) <= count_tokens(a) + count_tokens(b)


@given(text=st.text(st.characters(codec="ascii")))
def test_ascii_is_counted_as_any_text_is(text: str) -> None:
    assert count_tokens(f"{text} é") == count_tokens(text) + 1


def test_a_text_up_to_300_tokens_stays_whole() -> None:
    assert len(chunk("word " * 300)) == 1
    assert len(chunk("word " * 301)) == 2


@pytest.mark.parametrize(
    ("text", "end", "pieces"),
    [
        (("word " * 219 + "end.\n\n") * 4, "end.\n\n", 4),  # at a paragraph
        ("one two three four five six seven. " * 100, "seven. ", None),  # else at a sentence
        ("今天天气很好我们去公园散步。" * 60, "。", None),
        ("river " * 1000, "river ", None),  # else at a word
        ("À " + "mot " * 400, "mot ", None),
        ("x" * 20_000, "x", None),  # else within one
    ],
)
def test_a_piece_ends_where_a_reader_would_cut(text: str, end: str, pieces: int | None) -> None:
    found = chunk(text)
    assert all(piece.own.endswith(end) for piece in found)
    assert all(200 <= count_tokens(piece.text) <= 500 for piece in found[:-1])
    assert len(found) == pieces or (pieces is None and len(found) > 1)


def test_the_overlap_is_the_last_sentence_when_that_is_short() -> None:
    pieces = chunk(("word " * 199).strip() + ". The very last words.\n\n" + "more " * 200)
    assert pieces[1].text.startswith("The very last words. more")


def test_a_piece_ends_before_a_heading_and_has_its_path() -> None:
    words = "Some words here. " * 60
    text = f"# Guide\n\n{words}\n\n## Install\n\n{words}\n\n### On Linux\n\n{words}\n\n## Use [it](x.md)\n\n{words}"
    pieces = chunk(text)
    assert [piece.heading for piece in pieces] == [
        "Guide",
        "Guide › Install",
        "Guide › Install › On Linux",
        "Guide › Use it",
    ]
    assert [piece.own.splitlines()[0] for piece in pieces[1:]] == ["## Install", "### On Linux", "## Use [it](x.md)"]


def test_a_piece_within_a_section_begins_with_its_heading_and_the_end_of_the_one_before() -> None:
    pieces = chunk("# Rivers\n\n" + " ".join(f"River number {number} is long." for number in range(200)))
    assert len(pieces) > 3
    for before, piece in pairwise(pieces):
        assert piece.text.startswith("Rivers\n\nRiver number")
        assert before.own.split()[-1] in piece.text.removesuffix(piece.own)


def test_a_code_fence_is_never_cut() -> None:
    lines = "\n".join(f"call_{number}(alpha, beta)  # not. a. sentence." for number in range(18))
    words = "Some words here. " * 50
    text = f"{words}\n\n```python\n# no heading\n\n{lines}\n```\n\n{words}\n\n~~~\n{lines}\n~~~\n{words}"
    pieces = chunk(text)
    assert "".join(piece.own for piece in pieces) == text
    assert sum(lines in piece.text for piece in pieces) == 2
    assert all(piece.text.count("```") in (0, 2) and piece.text.count("~~~") in (0, 2) for piece in pieces)


def test_a_fence_that_is_too_long_is_closed_and_opened_again() -> None:
    lines = [f"call_{number}(alpha, beta)" for number in range(300)]
    text = "Look:\n\n```python\n" + "\n".join(lines) + "\n```\n\nThat was it."
    pieces = chunk(text)
    assert "".join(piece.own for piece in pieces) == text
    fences = [piece.text for piece in pieces if "call_" in piece.text]
    assert len(fences) > 2
    assert all(fence.count("```") == 2 and "```python\ncall_" in fence for fence in fences)
    assert all(count_tokens(piece.text) <= MAX_TOKENS for piece in pieces)

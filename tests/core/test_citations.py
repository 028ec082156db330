"""The citation at the end of an answer: what is one, what only looks like one, and what is left of the text."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from wellworn.core.citations import Citation, read_citation

SHOWN = 5


def read(text: str) -> tuple[str, tuple[int, ...] | None]:
    citation = read_citation(text, SHOWN)
    return citation.text, citation.places


@pytest.mark.parametrize(
    ("answer", "text", "places"),
    [
        ("In Oslo. [0]", "In Oslo.", (0,)),
        ("In Oslo. [0, 2]", "In Oslo.", (0, 2)),
        ("In Oslo. [2,0,2]", "In Oslo.", (2, 0)),
        ("In Oslo. [ 1 ,\n 2 ]", "In Oslo.", (1, 2)),
        ("In Oslo.\n\n[4]  \n", "In Oslo.", (4,)),
        ("In Oslo.[0]", "In Oslo.", (0,)),
        ("奥斯陆。[0]", "奥斯陆。", (0,)),
        ("In Oslo [0].", "In Oslo.", (0,)),
        ("In Oslo. [0].", "In Oslo.", (0,)),
        ("Memories used: [0, 2]", "Memories used:", (0, 2)),
        ("No idea. [NO_CITE]", "No idea.", ()),
        ("No idea. [no_cite].\n", "No idea.", ()),
        ("[NO_CITE]", "", ()),
        ("[3]", "", (3,)),
        ("```\nIn Oslo.\n[0]\n```", "```\nIn Oslo.\n```", (0,)),
        ("```markdown\nIn Oslo.\n[NO_CITE]\n```\n", "```markdown\nIn Oslo.\n```", ()),
        ("In Oslo.\n[0]\n```", "In Oslo.\n```", (0,)),
        ("Try this:\n```python\nx = [0]\n```\n[1]", "Try this:\n```python\nx = [0]\n```", (1,)),
        ("First [1] then more. [0]", "First [1] then more.", (0,)),
    ],
)
def test_a_citation_at_the_end_is_read_and_taken_off(answer: str, text: str, places: tuple[int, ...]) -> None:
    assert read(answer) == (text, places)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "In Oslo.",
        "Use arr[0]",
        "Use arr[0].",
        "f(x)[0]",
        "x = [0]",
        "print([0])",
        "print( [0, 1]",
        "It was in [2024]",
        "It was in [2024].",
        "See [1](https://example.org)",
        "See [the page][1]",
        "A note.[^1]",
        "[1]: https://example.org",
        "In Oslo [0] since May.",
        "In Oslo. [0, 2",
        "In Oslo. [0 2]",
        "In Oslo. [0,]",
        "In Oslo. [a]",
        "In Oslo. []",
        "In Oslo. [-1]",
        "In Oslo. [٣]",
        "In Oslo. [0] [2]",
        "In Oslo. [0][2]",
        "In Oslo. [7]",
        "- [ ]",
        "So:\n```python\nx = [0]\n```",
        "The result is:\n```\n[0, 2]\n```",
        "```\n[0, 2]\n```",
        "```python\nf()\n[0]\n```",
        "So:\n```python\nreturn\n[0]",
        "```\nIn Oslo.\n[0]\n```\n[2]",
        "A `[0]`",
    ],
)
def test_what_only_looks_like_one_teaches_nothing_and_stays(answer: str) -> None:
    assert read(answer) == (answer, None)


def test_a_marker_that_names_what_was_not_shown_is_taken_off_and_teaches_nothing() -> None:
    assert read("In Oslo. [0, 9]") == ("In Oslo.", None)


def test_where_nothing_was_shown_there_is_nothing_to_learn() -> None:
    assert read_citation("In Oslo. [NO_CITE]", 0) == Citation(text="In Oslo.", places=None)
    assert read_citation("In Oslo. [0]", 0) == Citation(text="In Oslo. [0]", places=None)


MARKERS = st.one_of(
    st.just(()), st.lists(st.integers(0, SHOWN - 1), min_size=1, max_size=SHOWN, unique=True).map(tuple)
)
TEXTS = st.one_of(st.text(), st.text(alphabet="a0[], .\n`=(~)NO_CITE"))


def marker_of(places: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, places))}]" if places else "[NO_CITE]"


@given(
    text=TEXTS, places=MARKERS, gap=st.sampled_from([" ", "\n", "\n\n", "  "]), after=st.sampled_from(["", " ", "\n"])
)
def test_any_text_with_a_marker_comes_back_without_it(text: str, places: tuple[int, ...], gap: str, after: str) -> None:
    assume("```" not in text and "~~~" not in text)
    assume(not text.rstrip().rstrip(".").endswith(("]", *"=([{,+*/\\<|&%^~")))
    assert read(f"{text}{gap}{marker_of(places)}{after}") == (text.rstrip(), places)


@given(text=TEXTS, places=MARKERS)
@example(text="```\nIn Oslo.\n[0]\n```", places=(2,))
@example(text="a [0].", places=())
def test_taking_off_twice_is_taking_off_once(text: str, places: tuple[int, ...]) -> None:
    for answer in (text, f"{text} {marker_of(places)}", f"{text}\n{marker_of(places)}.\n```"):
        once = read_citation(answer, SHOWN)
        assert read_citation(once.text, SHOWN).text == once.text


@given(text=TEXTS, shown=st.integers(0, 3))
def test_places_are_ones_that_were_shown_and_nothing_else_is_lost(text: str, shown: int) -> None:
    citation = read_citation(text, shown)
    assert all(0 <= place < shown for place in citation.places or ())
    if citation.places is None and "," not in text and "NO_CITE" not in text.upper():
        assert citation.text == text


@given(text=TEXTS, places=MARKERS, more=st.from_regex(r"[A-Za-z][a-z ]*[a-z]", fullmatch=True))
def test_a_marker_in_the_middle_is_text(text: str, places: tuple[int, ...], more: str) -> None:
    answer = f"{text} {marker_of(places)} {more}"
    assert read(answer) == (answer, None)


@pytest.mark.parametrize("piece", [" ", "[", "[0] ", "[0, ", "```\n", "\n[0]\n```", "0,"])
def test_long_answers_are_read_to_their_end(piece: str) -> None:
    """A quadratic reader would not come back from this."""
    answer = piece * (400_000 // len(piece)) + "[0]"
    plain, _ = read(answer)
    assert len(plain) <= len(answer)

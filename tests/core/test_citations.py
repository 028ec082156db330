"""The citations of an answer: what is one, what only looks like one, and what is left of the text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wellworn.core.citations import Citation, CitationReader, read_citation

SHOWN = 5


def read(text: str) -> tuple[str, tuple[int, ...] | None]:
    """The same whether the answer comes at once, sign by sign, or in pieces."""
    citation = read_citation(text, SHOWN)
    for size in (1, 3) if len(text) < 1_000 else ():
        reader = CitationReader(SHOWN)
        seen = "".join(reader.take(text[n : n + size]) for n in range(0, len(text), size))
        rest, places = reader.finish()
        assert (seen + rest, places) == (citation.text, citation.places)
    return citation.text, citation.places


@pytest.mark.parametrize(
    ("answer", "text", "places"),
    [
        ("In Oslo. [0]", "In Oslo.", (0,)),
        ("In Oslo. [2,0,2]", "In Oslo.", (2, 0)),
        ("In Oslo. [ 1 ,\n 2 ]", "In Oslo.", (1, 2)),
        ("In Oslo.[0]", "In Oslo.", (0,)),
        ("In Oslo [0].", "In Oslo.", (0,)),
        ("Memories used: [0, 2]", "", (0, 2)),
        ("No idea. [no_cite].\n", "No idea.", ()),
        ("[NO_CITE]", "", ()),
        ("```\nIn Oslo.\n[0]\n```\n[2]", "```\nIn Oslo.\n[0]\n```", (2,)),
        ("It is ~5 km [0], not ~9.", "It is ~5 km, not ~9.", (0,)),
        ("In Oslo.\n[0]\n```", "In Oslo.\n```", (0,)),
        ("Try this:\n```python\nx = [0]\n```\n[1]", "Try this:\n```python\nx = [0]\n```", (1,)),
        ("First [1] then more. [0]", "First then more.", (1, 0)),
        ("In Oslo [0] since May, Bergen [1].", "In Oslo since May, Bergen.", (0, 1)),
        ("In Oslo. [0][2]", "In Oslo.", (0, 2)),
        ("In Oslo. [0], [1] and [2].", "In Oslo.", (0, 1, 2)),
        ("[0] In Oslo.", "In Oslo.", (0,)),
        ("In Oslo. **[0]** *[1]*.", "In Oslo.", (0, 1)),
        ("In Oslo ([0], [1]).", "In Oslo.", (0, 1)),
        ("In Oslo (see [0]) since May.", "In Oslo since May.", (0,)),
        ("In Oslo.\n\n**Citations:** [0, 1]\n", "In Oslo.", (0, 1)),
        ("In Oslo.\n**Sources: [0]**\n\nBye.", "In Oslo.\n\nBye.", (0,)),
        ("In Oslo. (Memories used: [0])", "In Oslo.", (0,)),
        ("In Oslo.\nSources:\n[0] Your note\n[1] A letter", "In Oslo.\nSources:\nYour note\nA letter", (0, 1)),
        ("[NO_CITE]. I do not know that.", "I do not know that.", ()),
        ("I do not know [NO_CITE]. Tell me.", "I do not know. Tell me.", ()),
        ("No idea. [NO\\_CITE]", "No idea.", ()),
        ("In Oslo 【0】.", "In Oslo.", (0,)),
        ("In Oslo 【1†source】.", "In Oslo.", (1,)),
        ("In Oslo. ［0］", "In Oslo.", (0,)),
        ("你住在奥斯陆[0]。", "你住在奥斯陆。", (0,)),
        ("In all of them [0-2].", "In all of them.", (0, 1, 2)),
        ("In Oslo. [Memory 0]", "In Oslo.", (0,)),
        ("- Oslo [0]\n- Bergen [1]\n- Bonn", "- Oslo\n- Bergen\n- Bonn", (0, 1)),
        ("| home | Oslo [0] |\n| work | [1] |", "| home | Oslo |\n| work | |", (0, 1)),
        ("You have two: [0] a Brompton, [1] a Trek.", "You have two: a Brompton, a Trek.", (0, 1)),
        ("See [1](https://example.org). [0]", "See [1](https://example.org).", (0,)),
    ],
)
def test_a_citation_is_read_and_taken_out(answer: str, text: str, places: tuple[int, ...]) -> None:
    assert read(answer) == (text, places)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "In Oslo.",
        "Use arr[0].",
        "x = [0]",
        "print( [0, 1]",
        "It was in [2024].",
        "See [1](https://example.org)",
        "See [the page][1]",
        "A note.[^1]",
        "[1]: https://example.org",
        "In Oslo. [0, 2",
        "In Oslo. [0 2]",
        "In Oslo. []",
        "In Oslo. [-1]",
        "In Oslo. [٣]",
        "In Oslo. [7]",
        "- [ ]",
        "A `[0]`",
        "So:\n```python\nx = [0]\n```",
        "The result is:\n```\n[0, 2]\n```",
        "```python\nf()\n[0]\n```",
        "```\nIn Oslo.\n[0]\n```",
        "So:\n```python\nreturn\n[0]",
        "It matches [0-9]+",
        "The list is [0, 1].",
        "The answer is: [0, 1]",
        '{"home": "Oslo", "ids": [0, 1]}',
        "The indexes are:\n[0, 1]",
        "rows[0][1] and cols[2]",
        "foo(a, [0])",
        '```json\n{\n  "ids": [0, 1]\n}\n```\nThat is all.',
    ],
)
def test_what_only_looks_like_one_teaches_nothing_and_stays(answer: str) -> None:
    assert read(answer) == (answer, None)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("In Oslo. [0, 9]", "In Oslo."),
        ("In Oslo [0], not in [9].", "In Oslo, not in [9]."),
        ("In Oslo [0]. [NO_CITE]", "In Oslo."),
        ("In Oslo[0] and Bergen [1].", "In Oslo[0] and Bergen."),
        ("In Oslo [0].\n\n[1]: https://example.org", "In Oslo.\n\n[1]: https://example.org"),
        ("It lies in [0, 1] always. [NO_CITE]", "It lies in [0, 1] always."),
        ("f maps [0,1] to [0,1] itself. [2]", "f maps [0,1] to [0,1] itself."),
    ],
)
def test_an_answer_in_doubt_teaches_nothing(answer: str, text: str) -> None:
    assert read(answer) == (text, None)


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
    text=st.text(alphabet="ab 1.\nñ漢", max_size=40),
    places=MARKERS,
    gap=st.sampled_from([" ", "\n", "\n\n", "  "]),
    after=st.sampled_from(["", " ", "\n"]),
)
def test_any_text_with_a_marker_comes_back_without_it(text: str, places: tuple[int, ...], gap: str, after: str) -> None:
    assert read(f"{text}{gap}{marker_of(places)}{after}") == (text.rstrip(), places)


@given(text=TEXTS, places=MARKERS)
@example(text="```\nIn Oslo.\n[0]\n```", places=(2,))
@example(text="a [0].", places=())
def test_taking_off_twice_is_taking_off_once(text: str, places: tuple[int, ...]) -> None:
    for answer in (text, f"{text} {marker_of(places)}", f"{text}\n{marker_of(places)}.\n```"):
        once = read_citation(answer, SHOWN)
        assert read_citation(once.text, SHOWN).text == once.text


@given(text=TEXTS, shown=st.integers(0, 3))
def test_places_are_ones_that_were_shown(text: str, shown: int) -> None:
    citation = read_citation(text, shown)
    assert all(0 <= place < shown for place in citation.places or ())


@pytest.mark.parametrize("start", ["", "```\nx\n"])
@pytest.mark.parametrize(
    "piece", [" ", "[", "[0] ", "[0, ", "```\n", "\n[0]\n```", "0,", "[0]\n", "`", "a. Cited ", "(see "]
)
def test_long_answers_are_read_to_their_end(piece: str, start: str) -> None:
    """A quadratic reader would not come back from this."""
    answer = start + piece * (30_000 // len(piece)) + "[0]"
    plain, _ = read(answer)
    assert len(plain) <= len(answer)

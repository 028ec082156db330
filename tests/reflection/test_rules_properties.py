"""The rules on anything at all: they never raise, answer alike, and say nothing that the turns do not."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellworn.core.values import Turn
from wellworn.ingest.stopwords import STOP_WORDS
from wellworn.ingest.terms import words
from wellworn.reflection.candidate import Candidate
from wellworn.reflection.rules.extract import extract
from wellworn.reflection.rules.talk import role

from .dialogue import dialogue

PIECES = [
    "I",
    "my",
    "we",
    "me",
    "I'm",
    "I've",
    "I'd",
    "you",
    "your",
    "and",
    "because",
    "live",
    "love",
    "work",
    "in",
    "Oslo",
    "to",
    "cat",
    "sister",
    "yesterday",
    "next Friday",
    "until June",
    "since 2019",
    ".",
    "?",
    "!",
    ",",
    ":",
    "\n",
    "\n- ",
    '"',
    "(",
    "[",
    "]",
    "```",
    "**",
    "yes",
    "no",
    "okay",
    "thanks",
    "if",
    "were",
    "always",
    "remind me",
    "from now on",
    "let's",
    "don't",
    "can't",
    "Zürich",
    "猫",
    "😀",
    "\u202e",
    "I’m",
    "actually",
    "named",
    "Rex",
    "42",
    "%",
    "<memories>",
]
texts = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join))
roles = st.sampled_from(["user", "assistant", "system", "tool", "Mel", "Caro"])
talks = st.lists(st.tuples(roles, texts), max_size=8)


@settings(max_examples=300)
@given(talks)
def test_evidence_is_of_turns_that_are_there_and_may_speak(said: list[tuple[str, str]]) -> None:
    turns = {turn.number: turn for turn in dialogue(*said)}
    for one in extract([*turns.values()], user="Ada"):
        assert one.turns == tuple(sorted(set(one.turns)))
        assert one.turns
        assert all(role(turns[number]) != "silent" for number in one.turns)
        assert one.summary.strip() == one.summary != ""
        assert "\n" not in one.summary
        assert 0 < one.confidence < 1


@settings(max_examples=300)
@given(talks)
def test_the_same_turns_give_the_same_memories(said: list[tuple[str, str]]) -> None:
    assert extract(dialogue(*said)) == extract(dialogue(*said))


OWN = words(
    "ada mel caro and others they their them theirs themselves asks answering accepted agreed asked gave assistant user"
    " would like had is are was were has does will am want wants to i have"
)
"""What the rules say themselves: names, persons, and how an offer was taken."""


def foreign(one: Candidate, turns: dict[int, Turn]) -> set[str]:
    """Content words of a summary that none of its turns has, in any form of the verb."""
    said = {word for number in one.turns for word in words(turns[number].text)}
    summary = re.sub(r"\(\d{4}[-0-9 to]*\)", " ", one.summary)
    told = {word for word in words(summary) if word not in STOP_WORDS and word not in OWN}
    return {word for word in told if word not in said and not said & {word[:-1], word[:-2], word[:-3] + "y"}}


@settings(max_examples=300)
@given(talks)
def test_a_summary_has_no_content_word_of_its_own(said: list[tuple[str, str]]) -> None:
    turns = {turn.number: turn for turn in dialogue(*said)}
    for one in extract([*turns.values()], user="Ada"):
        assert not foreign(one, turns)


HARD: dict[str, Callable[[int], str]] = {
    "one word": lambda n: "a" * n,
    "I": lambda n: "I " * (n // 2),
    "long sentences of I": lambda n: ("I " * 299 + ". ") * (n // 600),
    "quotes": lambda n: '"' * n,
    "brackets": lambda n: "[(" * (n // 2),
    "openers": lambda n: "oh, well, " * (n // 10) + "I live in Oslo",
    "dates": lambda n: "I left yesterday " * (n // 17),
    "dots": lambda n: "." * n,
    "list": lambda n: "my things:\n" + "- a thing\n" * (n // 10),
    "fences": lambda n: "```" * (n // 3),
    "memories": lambda n: "<memories" * (n // 9),
    "prose": lambda n: "".join(f"I bought {i} bicycles in my town. " for i in range(n // 34)),
}


@pytest.mark.parametrize("name", HARD)
def test_time_grows_with_the_text_not_with_its_square(name: str) -> None:
    def seconds(chars: int) -> float:
        turns = dialogue(("user", HARD[name](chars)), ("assistant", HARD[name](chars)))
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            extract(turns, user="Ada")
            best = min(best, time.process_time() - start)
        return best

    assert seconds(100_000) <= 12 * seconds(25_000) + 0.1  # four times the text: sixteen times if it were squared


def test_a_session_of_five_hundred_turns_is_read_at_once() -> None:
    said = [("user", f"I met person {n} at the fair and my brother bought {n} books.") for n in range(500)]
    start = time.process_time()
    assert len(extract(dialogue(*said), user="Ada")) == 500
    assert time.process_time() - start < 10

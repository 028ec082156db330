"""The bundled reader: the shipped file gives the recorded vectors, and sentences are where they are."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from wellworn.language import answers, reader
from wellworn.language.sentences import in_other_script, sentences

RECORDED = json.loads((Path(__file__).parents[2] / "training" / "recorded.json").read_text(encoding="utf-8"))


def test_the_shipped_file_gives_the_recorded_vectors() -> None:
    digest = hashlib.sha256(reader.WEIGHTS.read_bytes()).hexdigest()
    assert digest == RECORDED["sha256"]
    assert reader.NAME.endswith(digest[:8])
    found = reader.Reader().embed(RECORDED["texts"])
    assert np.abs(found - np.array(RECORDED["vectors"])).max() < 0.02


def test_the_shipped_additions_give_the_recorded_logits() -> None:
    contenders = [answers.Contender(text, voice, days, 0) for text, voice, days in RECORDED["read"]]
    for one in RECORDED["answers"]:
        assert np.abs(answers.scores(one["question"], contenders) - np.array(one["logits"])).max() < 0.2


def test_a_text_that_answers_is_likelier_than_one_that_does_not_and_alone_as_among_others() -> None:
    right = answers.Contender("we moved to Hull in May, the flat is tiny but cheap", "user", 30, 0)
    wrong = answers.Contender("can you shorten the second paragraph please", "user", 30, 0)
    alone = answers.scores("which town do I live in?", [right])[0]
    both = answers.scores("which town do I live in?", [wrong, right])
    assert both[1] > both[0]
    assert abs(both[1] - alone) < 0.1
    assert answers.scores("which town do I live in?", [answers.Contender("", "user", 0, 0)]).shape == (1,)


@pytest.mark.parametrize(
    ("lengths", "best", "read"),
    [([5, 5, 5], 1, (0, 15)), ([30, 30, 30], 1, (30, 90)), ([90, 10], 0, (0, 64)), ([10, 60], 1, (10, 70))],
)
def test_a_text_is_read_around_its_best_sentence(lengths: list[int], best: int, read: tuple[int, int]) -> None:
    assert answers.around(lengths, best, 64) == read


def test_a_text_has_a_vector_for_each_of_its_sentences() -> None:
    text = "had the braces off in March, cant stop smiling. can you write Dr Okonkwo a card"
    (read,) = reader.Reader().read([text])
    assert [text[begin:end] for begin, end in read.spans] == [
        "had the braces off in March, cant stop smiling.",
        "can you write Dr Okonkwo a card",
    ]
    assert np.allclose(np.linalg.norm(read.parts, axis=1), 1.0, atol=1e-3)


@pytest.mark.parametrize("text", ["", "   ", "日本語の文です。", "Где я живу?"])
def test_what_it_cannot_read_has_no_vector(text: str) -> None:
    assert not reader.Reader().embed([text]).any()


def test_a_long_text_is_read_in_windows_and_alone_as_among_others() -> None:
    text = "The archive holds letters from Bergen. " * 60
    alone, among = reader.Reader().embed([text])[0], reader.Reader().embed(["short", text, "x"])[1]
    assert np.allclose(alone, among, atol=1e-3)
    assert np.isclose(np.linalg.norm(alone), 1.0, atol=1e-3)


def test_every_sign_is_in_one_sentence() -> None:
    text = "one two three four; five six seven eight - nine ten\n\n" + "eleven twelve, " * 40
    spans = sentences(text)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    assert sentences("  ") == []
    assert in_other_script("Где я живу?")
    assert not in_other_script("Où est-ce que j'habite ?")

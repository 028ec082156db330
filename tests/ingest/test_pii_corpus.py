"""How much of what is there the rules find, and how much else; prints the numbers (`pytest -s`).

The rules were written from the `tune` files. The `check` files have other values, services and wordings; every third
negative is held out with them.
"""

from __future__ import annotations

from unicodedata import normalize

import pytest

from ingest.pii_corpus.marked import Marked, marked
from wellworn.ingest.pii import scrub_text
from wellworn.ingest.pii.find import find

SEEDS = (1, 2, 3)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        *(("commands", 1), ("languages", 1), ("languages_strict", 1)),
        *(("secrets_tune", 0.98), ("people_tune", 0.98), ("strict_tune", 0.98)),
        *(("secrets_check", 0.95), ("people_check", 0.97), ("strict_check", 0.9)),
    ],
)
def test_what_is_there_is_found(name: str, least: float) -> None:
    texts = [text for seed in SEEDS for text in marked(name, seed=seed)]
    wanted = sum(len(text.values) for text in texts)
    missed = [(text.text, left) for text in texts if (left := _left(text, strict="strict" in name))]
    recall = 1 - sum(len(left) for _, left in missed) / wanted
    wrong = sum(_wrong(text, strict="strict" in name) for text in texts)
    print(f"{name}: {wanted} values, recall {recall:.3f}, precision {wanted * recall / (wanted * recall + wrong):.3f}")
    assert recall >= least, missed
    assert wrong <= 0.02 * wanted


def test_decomposed_letters_hide_nothing() -> None:
    for text in marked("languages"):
        decomposed = text._replace(text=normalize("NFD", text.text))
        assert _left(decomposed, strict=False) == []
        assert scrub_text(decomposed.text).counts == scrub_text(text.text).counts


@pytest.mark.parametrize("held", [False, True])
def test_what_is_no_secret_stays(held: bool) -> None:
    texts = [text for number, text in enumerate(marked("negatives")) if (number % 3 == 2) == held]
    wrong = [(text.text, found) for text in texts if (found := find(text.text))]
    assert len(wrong) <= 0.01 * len(texts), wrong


@pytest.mark.parametrize("strict", [False, True])
def test_ordinary_sentences_and_commands_stay(strict: bool) -> None:
    assert [text.text for text in marked("ordinary") if find(text.text, strict=strict)] == []


def _left(case: Marked, *, strict: bool) -> list[str]:
    """The values that can still be read when what was found is gone."""
    text = case.text
    for one in reversed(find(text, strict=strict)):
        text = f"{text[: one.start]}[]{text[one.end :]}"
    return [value for value in case.values if value in text]


def _wrong(case: Marked, *, strict: bool) -> int:
    """How many findings are no part of a value and hold none."""
    found = [case.text[one.start : one.end] for one in find(case.text, strict=strict)]
    return sum(not any(value in one or one in value for value in case.values) for one in found)

"""The model of topics that ships: what sentences are about, and what follows for recall."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

import numpy as np
import pytest
from evals import topics as trainer
from evals.life import LIVES

from wellworn.ingest.replaces import SURE, probability
from wellworn.ingest.statement import agreement, read
from wellworn.ingest.topics import NONE, topics, without_values
from wellworn.language.reader import bundled

SAME, OTHER = 0.2, 0.05


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("I moved to Bergen last week.", "home_city"),
        ("Where do I live?", "home_city"),
        ("My boss is called Priya.", "manager"),
        ("Autofill comes from Keeper these days.", "password_manager"),
        ("I don't eat meat any more.", "diet"),
        ("tickets live in GitHub", "issue_tracker"),
    ],
)
def test_the_topic_of_a_sentence(text: str, topic: str) -> None:
    model = topics()
    assert model.names[int(model.of_text(text).argmax())] == topic


@pytest.mark.parametrize("text", ["We had a great time at the lake.", "Write me a haiku about rain.", "Good morning!"])
def test_small_talk_has_no_topic(text: str) -> None:
    assert topics().of_text(text).sum() < 0.5


def test_statements_on_one_topic_agree_without_a_common_word() -> None:
    one, other = read("All my logins are in Dashlane."), read("Autofill comes from Keeper these days.")
    assert agreement(one, other) > SAME
    assert agreement(one, read("I drive a blue Volvo.")) < OTHER


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("All my logins are in Dashlane.", "Autofill comes from Keeper these days."),
        ("My editor is Emacs.", "I've got Kakoune set as the default editor."),
        ("We sit on the fifth floor, beside the printers.", "I sit on the eleventh floor."),
        ("I live in Oslo with Anna.", "I moved to Bergen, still with Anna."),
        ("Jean-Luc is our landlord.", "Marie-Claude is our new landlord."),
        ("My meetings should start at 9.", "My meetings should start at 10 now."),
    ],
)
def test_a_statement_replaces_another_on_its_topic(old: str, new: str) -> None:
    assert probability(old, new, spoken=True) >= SURE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I'm allergic to nuts.", "I'm allergic to cats."),
        ("The deploy key is in 1Password.", "The API key is in Vault."),
        ("I have a cat.", "I have a dog."),
        ("My daughter's name is Ida.", "My son's name is Per."),
        ("We have a goldfish called Bubbles.", "Our hamster Hugo passed away."),
        ("I drive a Volvo.", "I bought a Tesla, still have the Volvo."),
        ("I am a geologist.", "I started at Aker last week, still a geologist."),
    ],
)
def test_of_some_things_there_are_several(old: str, new: str) -> None:
    assert probability(old, new, spoken=True) < SURE


def test_values_say_nothing_of_a_topic() -> None:
    assert without_values("Moved from Lyon to Bergen on 3 May, Tuesdays off") == without_values(
        "Moved from Turin to Kraków on 9 June, Mondays off"
    )


def test_the_model_fits_the_sentences_that_it_was_trained_on() -> None:
    data = trainer.read()
    assert data.names == topics().names
    assert data.single.tolist() == topics().single.astype(bool).tolist()
    assert NONE in data.names
    assert len(data.texts) == len(set(data.texts))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(part)


def _is_in(trained: list[str], text: str) -> bool:
    """Whether a wording of the lives, with whatever value, was trained on: "I live in {new}"."""
    parts = [_plain(part) for part in re.split(r"\{\w+\}", text)]
    pattern, longest = re.compile(r" ?.+ ?".join(map(re.escape, parts))), max(parts, key=len)
    return any(pattern.fullmatch(one) for one in trained if longest in one)


@pytest.mark.slow
def test_few_of_the_wordings_that_measure_it_were_trained_on() -> None:
    """Anybody writes "I live in …". docs/truth.md says how many are shared, and what a model does without them."""
    lives = tomllib.loads((LIVES / "check.toml").read_text(encoding="utf-8"))
    wordings = {text for slot in lives["slot"] for key in ("tell", "change", "ask") for text in _texts(slot[key])}
    trained = [_plain(text) for text in trainer.read().texts]
    shared = [text for text in sorted(wordings) if _is_in(trained, text)]
    assert len(shared) <= 0.1 * len(wordings), shared


def test_a_text_without_a_topic_is_looked_for_by_its_meaning_alone() -> None:
    assert read("All my logins are in Dashlane.").has_topic
    for text in ("Ich wohne jetzt in Trier.", "Good morning!"):
        assert not read(text).has_topic


def test_training_learns_and_repeats_itself() -> None:
    vectors = bundled().gist(["I live in Oslo", "I moved to Rome", "I drive a Volvo", "My car is a Fiat"])
    kinds = np.array([0, 0, 1, 1])
    words = [np.array([place]) for place in (0, 0, 1, 1)]
    seen, which = trainer.Seen(vectors=vectors, words=words, known=2), np.arange(4)
    weights, of_words, bias = trainer.trained(seen, kinds, 2, which)
    assert (vectors @ weights + bias).argmax(axis=1).tolist() == kinds.tolist()
    assert of_words.argmax(axis=1).tolist() == [0, 1]
    assert np.array_equal(weights, trainer.trained(seen, kinds, 2, which)[0])

"""Questions that come again: what helped with one is found first the next time, by whoever it helped."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from memory.world import OpenMemory
from wellworn import Memory, Recall, Scope
from wellworn.search.score import FEATURES

ADA = Scope(tenant="acme", user="ada", org="all")
BEN = Scope(tenant="acme", user="ben", org="all")
RIVAL = Scope(tenant="rival", user="ada", org="all")
TOPICS = ("apples", "bridges", "candles", "drums", "engines", "feathers", "gardens", "hammers")
WAYS = ("Which note on {} do I need?", "the note on {} that I need", "I need that note on {}, please")
COPIES = 4
K = 6


def filled(mem: Memory, scope: Scope = ADA) -> Memory:
    texts = [f"A note on {topic}, number {n}." for topic in TOPICS for n in range(COPIES)]
    mem.remember_many(texts, scope=scope, layer="org")
    return mem


def right(recall: Recall, topic: str) -> list[int]:
    """Which of the copies is meant, no text can tell: by person it is one."""
    wanted = f"A note on {topic}, number {(len(topic) * 7) % COPIES}."
    return [place for place, hit in enumerate(recall.hits) if hit.entry.text == wanted]


def live(mem: Memory, scope: Scope, rounds: int, *, tell: bool = True) -> float:
    """Ask about every topic so many times; the share of recalls whose first hit was the one meant, in the last two."""
    dice = random.Random(7)
    first: list[bool] = []
    for _ in range(rounds):
        for topic in dice.sample(TOPICS, len(TOPICS)):
            found = mem.recall(dice.choice(WAYS).format(topic), scope=scope, k=K)
            places = right(found, topic)
            first.append(places == [0])
            if tell:
                mem.outcome(found.id, cited=places)
    last = first[-2 * len(TOPICS) :]
    return sum(last) / len(last)


def echo(mem: Memory, query: str, scope: Scope = ADA) -> dict[str, float]:
    """Text → echo, of what learning would see of a recall now."""
    seen = mem.engine.searcher.examine(query, scope=scope)
    assert seen is not None
    entries = mem.engine.store.read(seen.nos)
    column = seen.features[:, FEATURES.index("repeated")]
    return {entries[no].text: value for no, value in zip(seen.nos, column.tolist(), strict=True) if value}


def told(mem: Memory, query: str, scope: Scope = ADA) -> str:
    """Ask, cite the second hit, and return its text."""
    found = mem.recall(query, scope=scope)
    mem.outcome(found.id, cited=[1])
    return found.hits[1].entry.text


def test_what_helped_is_found_first_when_the_question_comes_again(opened: OpenMemory) -> None:
    untrained, trained = filled(opened(learning="off")), filled(opened())
    before, after = live(untrained, ADA, 12, tell=False), live(trained, ADA, 12)
    assert trained.learning.status(scope=ADA).level == "person"
    assert trained.learning.status(scope=ADA).weights["repeated"] > 0
    assert before <= 0.5
    assert after >= 0.9


@pytest.mark.parametrize("learning", ["on", "observe"])
def test_an_echo_is_of_the_person_who_was_helped(learning: str, opened: OpenMemory) -> None:
    mem = filled(filled(opened(learning=learning)), RIVAL)
    helped = told(mem, "the note on apples")
    heard = echo(mem, "that note on apples")
    assert heard[helped] > 0
    assert all(value < 0 for text, value in heard.items() if text != helped)
    assert echo(mem, "the note on apples", BEN) == echo(mem, "the note on apples", RIVAL) == {}
    assert echo(mem, "the bridges") == {}


def test_citing_an_entry_does_not_lift_it_for_a_question_on_something_else(mem: Memory) -> None:
    filled(mem)
    query, seen = "the bridges", mem.engine.searcher.examine
    before = seen(query, scope=ADA)
    told(mem, "the note on apples")
    after = seen(query, scope=ADA)
    assert before is not None
    assert after is not None
    assert before.nos == after.nos
    moved = after.features - before.features
    assert (moved == moved[0]).all()


def test_a_process_that_begins_hears_what_one_that_lived_on_hears(path: Path, opened: OpenMemory) -> None:
    mem, other = filled(opened(path)), opened(path)
    for topic in TOPICS[:3]:
        told(mem, f"the note on {topic}")
        assert echo(mem, f"note on {topic}") == echo(other, f"note on {topic}") != {}
    told(other, "the note on drums")
    assert echo(mem, "note on drums") == echo(opened(path), "note on drums") != {}


@pytest.mark.parametrize("how", ["forgotten", "reset"])
def test_what_is_forgotten_or_reset_echoes_no_more(mem: Memory, how: str) -> None:
    filled(mem)
    helped = told(mem, "the note on apples")
    assert echo(mem, "the note on apples")
    if how == "reset":
        mem.learning.reset(scope=ADA)
    else:
        mem.forget(ids=[one.id for one in mem.entries(scope=ADA, limit=1000) if one.text == helped], scope=ADA)
    assert echo(mem, "the note on apples") == {}
    told(mem, "loud drums")  # after a reset the second first outcome of this person
    assert echo(mem, "the note on apples") == {}

"""Banks of notes about one thing, where no entry leads to another: the recursive route must not make them worse."""

from __future__ import annotations

import pytest

from wellworn import Memory, Scope

ADA = Scope(tenant="acme", user="ada")
THINGS, PLACES = ("bridges", "candles", "drums", "engines"), ("garden", "market", "river", "window")


@pytest.fixture
def notes() -> Memory:
    memory = Memory.open(":memory:", embedder=None)
    for number in range(48):
        thing, place = THINGS[number % 4], PLACES[number // 4 % 4]
        memory.remember(f"{thing} by the {place}, page {thing[0]}{number}", scope=ADA)
    return memory


@pytest.mark.parametrize("recursion", ["on", "always"])
def test_what_fits_stays_before_what_does_not(notes: Memory, recursion: str) -> None:
    for question in ("What of bridges at the garden in October?", "What is the name of the drums of the market?"):
        thing = question.split(" of ")[1].split()[-1] if "name" in question else "bridges"
        found = notes.recall(question, scope=ADA, k=5, recursion=recursion)  # type: ignore[arg-type]
        plain = notes.recall(question, scope=ADA, k=5, recursion="off")
        assert {hit.entry.id for hit in found.hits} == {hit.entry.id for hit in plain.hits}
        assert all(thing in hit.entry.text for hit in found.hits[:3])


def test_a_small_letter_is_no_name(notes: Memory) -> None:
    assert notes.recall("What of bridges at the garden in October?", scope=ADA).route == "hybrid"

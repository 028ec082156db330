"""A small world of fifty people with look-alike facts: several steps must not lose what plain search finds."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from contract.few import few
from wellworn import Memory, Scope
from wellworn.core.values import RecursionMode

SCOPE = Scope(tenant="acme", user="ada")
PEOPLE = [
    a + b
    for a in ("Ha", "Mi", "To", "Le", "Ka", "Ru", "Pi", "Ne", "So", "Vi")
    for b in ("na", "ro", "mas", "lia", "ven")
]
ASKED = PEOPLE[::6]
THINGS = {
    "books": ("read", "have read the book {}, it was great.", "Dune Emma Ulysses Persuasion Solaris Beloved Walden"),
    "instruments": ("learned", "have learned to play the {} this year.", "cello oboe harp banjo flute viola tuba"),
    "countries": ("visited", "visited {} on holiday with friends.", "Peru Chad Oman Laos Cuba Fiji Togo"),
    "dishes": ("cooked", "cooked {} for dinner with guests.", "paella ramen goulash pierogi moussaka risotto laksa"),
}
QUESTIONS = [
    "What {things} has {name} {done}?",
    "What are the {things} that {name} has {done}?",
    "List all the {things} {name} has {done}.",
    "How many {things} has {name} {done}?",
    "Would {name} likely enjoy other {things}?",
    "What {things} of the ones that were {done} does {name} talk about?",
]


def world(kind: str) -> Memory:
    """Every person has two of each thing; told in dialogues, as notes, or as notes titled by the person."""
    draw, memory = random.Random(1), Memory.open(":memory:")
    facts = [
        (name, text.format(item))
        for name in PEOPLE
        for _, text, items in THINGS.values()
        for item in draw.sample(items.split(), 2)
    ]
    draw.shuffle(facts)
    if kind == "dialogue":
        for start in range(0, len(facts), 8):
            talk = memory.session(scope=SCOPE, session_id=f"talk {start}")
            for name, text in facts[start : start + 8]:
                talk.add(name, f"I {text}")
    else:
        titled = kind == "titled"
        items = [{"text": f"{name} {text}", "title": name if titled else "", "kind": "fact"} for name, text in facts]
        memory.remember_many(items, scope=SCOPE)
    return memory


@pytest.fixture(scope="module", params=["dialogue", "notes", "titled"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    with world(request.param) as memory:
        yield memory


def found(memory: Memory, question: str, recursion: RecursionMode) -> int:
    """How often both facts of the person asked about are in the first five."""
    right = 0
    for name in ASKED:
        for things, (done, _, items) in THINGS.items():
            query = question.format(things=things, name=name, done=done)
            hits = memory.recall(query, scope=SCOPE, k=5, recursion=recursion).hits
            own = [hit for hit in hits if hit.entry.speaker == name or hit.entry.text.startswith(name)]
            right += sum(any(item in hit.entry.text for item in items.split()) for hit in own) >= 2
    return right


@pytest.mark.parametrize("question", few(QUESTIONS, 2))
def test_several_steps_find_what_plain_search_finds(memory: Memory, question: str) -> None:
    assert found(memory, question, "on") >= found(memory, question, "off") >= 0.75 * len(ASKED) * len(THINGS)

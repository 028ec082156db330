"""Questions that need two or three notes among hundreds, with and without titles."""

from __future__ import annotations

import pytest
from evals.hops import DOMAINS, all_found, chains
from evals.recall import scope_for

from wellworn import Memory, Scope

ADA = Scope(tenant="acme", user="ada")
PEOPLE = {
    "sister": ("Mia", "Okafor", "Harbour Street"),
    "brother": ("Tom", "Berglund", "Mill Lane"),
    "aunt": ("Rosa", "Petrov", "Castle Square"),
    "cousin": ("Ines", "Halloran", "Station Road"),
}


def told(titled: bool) -> list[dict[str, str]]:
    notes = []
    for kin, (name, doctor, place) in PEOPLE.items():
        facts = [
            f"My {kin} is called {name}.",
            f"{name}'s doctor is Dr. {doctor}.",
            f"Dr. {doctor}'s practice is in {place}.",
        ]
        notes += [
            {"text": text, "title": title if titled else ""}
            for text, title in zip(facts, (f"My {kin}", name, f"Dr. {doctor}"), strict=True)
        ]
    notes += [{"text": f"Meeting {n} was about the budget of room {n % 40}.", "title": ""} for n in range(200)]
    return notes + [{"text": f"The doctor at the clinic on floor {n} was late.", "title": ""} for n in range(40)]


@pytest.mark.parametrize("titled", [False, True])
@pytest.mark.parametrize("embedder", ["reader", None])
def test_the_practice_of_my_sisters_doctor(titled: bool, embedder: str | None) -> None:
    with Memory.open(":memory:", embedder=embedder) as memory:
        memory.remember_many(told(titled), scope=ADA)
        for kin, (name, doctor, place) in PEOPLE.items():
            found = memory.recall(f"Where is the practice of my {kin}'s doctor?", scope=ADA, k=8)
            texts = [hit.entry.text for hit in found]
            assert found.route == "recursive"
            assert f"Dr. {doctor}'s practice is in {place}." in texts
            assert f"{name}'s doctor is Dr. {doctor}." in texts


@pytest.mark.parametrize("domain", DOMAINS["tune"][:1])
@pytest.mark.parametrize(("titled", "least"), [(False, 0.4), (True, 0.6)])
def test_notes_that_name_each_other_are_found_together(domain: object, titled: bool, least: float) -> None:
    notes, asked = chains("tune", domain, 2, titled)  # type: ignore[arg-type]  # one of ours
    with Memory.open(":memory:") as memory:
        memory.remember_many(notes, scope=scope_for("hops"))
        right = [all_found(memory, one, "on") for one in asked[::3]]
        assert sum(right) / len(right) >= least
        assert sum(all_found(memory, one, "off") for one in asked[::3]) / len(right) < 0.4

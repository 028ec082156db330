"""The world in which the untrained ranking is wrong: learning finds out what a person means, and bad feedback changes nothing."""

from __future__ import annotations

import pytest
from evals.learn import Citing
from evals.preferences import CHECK, TUNE, Prefers, Told, World

from wellworn import Memory, Scope

SCOPE = Scope(tenant="acme", user="ada")
SUBJECTS, LAST = 150, 50


def lived(prefers: Prefers, citing: Citing, learning: str = "on") -> Told:
    world = World(prefers, 7, subjects=SUBJECTS)
    with Memory.open(":memory:", embedder="hash", learning=learning) as memory:  # type: ignore[arg-type]
        memory.remember_many(world.items, scope=SCOPE)
        return world.live(memory, SCOPE, citing)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["newest", "kind", "source", "another tag"])
def test_what_a_person_means_is_learned(name: str) -> None:
    prefers = {**TUNE, **CHECK}[name]
    untrained, learned = (sum(lived(prefers, Citing(), mode).shown[-LAST:]) / LAST for mode in ("observe", "on"))
    assert untrained < 0.65
    assert learned >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("feedback", ["random", "inverted", "first", "last"])
def test_bad_feedback_changes_nothing(feedback: str) -> None:
    citing = Citing(feedback=feedback)
    untrained, learned = (lived(TUNE["speaker"], citing, mode) for mode in ("observe", "on"))
    assert learned.shown == untrained.shown
    assert learned.status.level == "base"

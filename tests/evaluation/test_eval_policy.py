"""How to search is learned on the real system: through recalls and outcomes alone, in a world with known answers."""

from __future__ import annotations

import json

import pytest
from evals import policy
from evals.policy import lived
from evals.policy_world import FAMILIES, SCOPE, World
from typer.testing import CliRunner

from wellworn.cli.app import app
from wellworn.core.errors import InvalidInput
from wellworn.memory import Memory
from wellworn.search.steps.router import route


def test_nine_tenths_of_the_best_within_300_outcomes_and_not_below_plain_search() -> None:
    life = lived(0, outcomes=300, feedback="honest")
    assert life.untrained.rules < 0.8 * life.untrained.best  # so that dead learning fails
    assert life.looks[-1].served >= 0.9 * life.untrained.best
    assert life.share >= 90.0  # of the best with the ranking as it is learned by then
    assert life.looks[-1].served > life.looks[-1].rules  # ranking alone does not do it
    assert life.looks[-1].served > life.looks[-1].plain
    assert life.margin >= -1.0  # points; the rules serve until something is proven
    assert life.earned > life.untrained.plain  # tries included


@pytest.mark.parametrize("feedback", ["random", "inverted"])
def test_bad_feedback_leaves_everything_as_it_was(feedback: str) -> None:
    life = lived(1, outcomes=100, feedback=feedback)
    assert life.looks[-1].served == life.untrained.served
    assert life.margin >= -1.0
    assert life.serves == {}


def test_the_same_seed_gives_the_same_life() -> None:
    one, two = (lived(2, outcomes=40, feedback="honest", questions=3) for _ in range(2))
    assert one == two


def test_every_question_of_the_world_has_the_shape_of_its_family_and_is_recursive() -> None:
    with Memory.open(":memory:", embedder=None, background=False) as memory:
        questions = World(memory, seed=5, questions=3).questions
        assert {one.family for one in questions} == set(FAMILIES)
        for one in questions:
            found = route(one.text)
            assert (found.shape, found.recursive) == (one.family, True)
            assert all(memory.get(id, scope=SCOPE) for id in one.right)


def test_the_command_prints_what_was_found() -> None:
    done = CliRunner().invoke(app, ["eval", "policy", "--seeds", "1", "--outcomes", "5", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["outcomes"] == 5
    assert len(found["lives"]) == 1
    with pytest.raises(InvalidInput, match="--feedback"):
        policy.run(seeds=1, outcomes=1, feedback="sincere")

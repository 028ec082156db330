"""The log learned anew leads to the same state, bit for bit: told, inferred, practised, trusted late, carried along."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from wellworn import Memory, Recursion, Scope
from wellworn.core.errors import InvalidInput
from wellworn.search.steps.lessons import MOST_WAITING, Learned, Lesson, lesson_of, plain_lesson
from wellworn.search.steps.teaching import WAITING
from wellworn.search.steps.trainer import PROFILE, Policy

from .test_routing import NEAR
from .world import PASSAGES, QUESTION, SCOPE, Time, filled

BOB = Scope(tenant="acme", user="bob", team="core")


def states(memory: Memory) -> dict[str, str | None]:
    memory.engine.learner.log.flush()
    kept = {}
    for profile in (PROFILE, WAITING):
        kept[profile] = memory.engine.store.policy("acme", None, profile=profile)
        for scope in (SCOPE, BOB):
            kept[f"{profile} {scope.user}"] = memory.engine.store.policy("acme", scope.home(), profile=profile)
    return kept


def live(memory: Memory, clock: Time, outcomes: int, *, practise_at: int = -1) -> None:
    """Two people; one cites well and is soon trusted, one tells little; sessions and contexts say something too."""
    for number in range(outcomes):
        if number == practise_at:
            assert memory.learning.practise(scope=SCOPE) > 0
        query = (QUESTION, NEAR, "What is the difference between Leland mill and Leland river?")[number % 3]
        found = memory.recall(f"{query} {number % 7}", scope=SCOPE)
        if number % 5 == 4:
            memory.recall("Leland 1986 film director", scope=SCOPE)  # asked anew
        elif number % 7 == 6:
            memory.assemble(f"{QUESTION} {number}", scope=SCOPE, max_tokens=80)
        else:
            memory.outcome(found.id, cited=[0, 1] if number % 2 else [0])
        if number % 6 == 0:
            memory.outcome(memory.recall(f"{QUESTION} {number}", scope=BOB).id, used=0.5)
        clock.now += timedelta(minutes=1)


@pytest.mark.parametrize("practise_at", [-1, 0, 40])
@pytest.mark.parametrize("shares", [True, False])
def test_relearning_rebuilds_the_same_state(shares: bool, practise_at: int, tmp_path: Path) -> None:
    clock = Time()
    with filled(clock=clock, recursion=Recursion(explore=0.1), explore=0.0) as memory:
        memory.remember_many(
            [{"title": title, "text": text, "kind": "fact"} for title, text in PASSAGES[:2]], scope=BOB
        )
        if not shares:
            memory.learning.share(False, scope=SCOPE)
        live(memory, clock, 90, practise_at=practise_at)
        before = states(memory)
        own = before[PROFILE if shares else f"{PROFILE} ada"]
        assert own is not None
        assert json.loads(own)["routing"]["plain"]
        assert before[f"{WAITING} bob"] is not None  # nothing to trust him by
        memory.learning.relearn(scope=SCOPE)
        after = states(memory)
        if after[f"{WAITING} ada"] is None:  # none is as good as an empty one
            assert before[f"{WAITING} ada"] in (None, "[]")
            after[f"{WAITING} ada"] = before[f"{WAITING} ada"]
        assert after == before
        live(memory, clock, 10)
        changed = states(memory)
        assert changed != before  # it is not frozen
        if practise_at < 0:  # an export has the log, not the practice
            path = tmp_path / "all.jsonl"
            memory.admin.export(path)
            with Memory.open(tmp_path / "copy.db", embedder="hash", clock=clock) as copy:
                copy.admin.load(path)
                copy.learning.relearn(scope=SCOPE)
                assert states(copy)[PROFILE] == changed[PROFILE]


def test_what_was_told_before_a_reset_is_learned_again_only_when_asked_for() -> None:
    clock = Time()
    with filled(clock=clock, recursion=Recursion(explore=0.1), explore=0.0) as memory:
        live(memory, clock, 60)
        before = states(memory)
        memory.learning.reset(scope=SCOPE)
        memory.learning.relearn(scope=SCOPE)
        assert memory.learning.status(scope=SCOPE).searches == ()
        memory.learning.relearn(scope=SCOPE, whole=True)
        assert states(memory)[PROFILE] == before[PROFILE]


def test_who_stops_sharing_keeps_what_they_taught_themselves() -> None:
    clock = Time()
    with filled(clock=clock, recursion=Recursion(explore=0.0), explore=0.0) as memory:
        live(memory, clock, 60)
        own = memory.engine.store.policy("acme", None, profile=PROFILE)
        memory.learning.share(False, scope=SCOPE)
        assert memory.engine.store.policy("acme", None, profile=PROFILE) is None
        assert memory.engine.store.policy("acme", SCOPE.home(), profile=PROFILE) == own  # bob taught nothing
        assert memory.engine.store.policy("acme", BOB.home(), profile=PROFILE) is None


def test_lessons_wait_for_trust_and_not_too_many() -> None:
    lesson = Lesson(shape="bridge", choice="planner", reward=0.5)
    known = Learned(policy=Policy(seed=1))
    for _ in range(MOST_WAITING + 5):
        known = known.after(lesson, kind="searched")
    assert known.policy == Policy(seed=1)
    assert len(known.waiting) == MOST_WAITING
    known = known.after(Lesson(**{**plain_lesson(lesson), "trusted": True}), kind="searched")
    assert known.waiting == ()
    assert known.policy.family("bridge").outcomes == MOST_WAITING + 1


@pytest.mark.parametrize(
    "change",
    [{"shape": "round"}, {"choice": "magic"}, {"reward": "much"}, {"reward": float("nan")}, {"near": 1}, {"more": 2}],
)
def test_what_is_no_lesson_is_told_so(change: dict[str, object]) -> None:
    good = plain_lesson(Lesson(shape="bridge", choice="planner", reward=0.5))
    assert lesson_of(good).reward == 0.5
    with pytest.raises(InvalidInput, match="no lesson"):
        lesson_of(good | change)

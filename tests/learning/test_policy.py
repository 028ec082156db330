"""Prior and person: who is believed, what is served, what is rolled back, and that a replay gives the same."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from learning.world import (
    NAMES,
    WIDTH,
    Ask,
    Feedback,
    User,
    always_last,
    at_random,
    honest,
    inverted,
    question,
    recall_of,
)
from wellworn.learning.guard import LEAST, Evidence, Guard
from wellworn.learning.policy import (
    Person,
    Prior,
    Tenant,
    dumps_state,
    dumps_tenant,
    loads_state,
    loads_tenant,
    serving,
)
from wellworn.learning.ranker import Flags, Ranker

SEEDS = range(3)


def grown(users: int = 3, times: int = 80) -> Prior:
    prior = Prior()
    for seed in range(100, 100 + users):
        prior = User(seed).ask(prior, honest(), times)
    return prior


@pytest.mark.parametrize("feedback", [at_random, inverted, always_last])
@pytest.mark.parametrize("seed", SEEDS)
def test_bad_feedback_is_never_believed(feedback: Feedback, seed: int) -> None:
    user = User(seed)
    prior = user.ask(Prior(), feedback, 300)
    assert not any(user.trusted)
    assert set(user.levels) == {"base"}
    assert (prior.ranker, prior.users, prior.gain) == (None, 0, Evidence())
    assert user.person is not None
    assert user.person.distrust()


@pytest.mark.parametrize("places", [[0], [0, 1], [0, 1, 2, 3, 4]])
def test_citing_the_same_places_whatever_stands_there_teaches_nothing(places: list[int]) -> None:
    def positional(dice: np.random.Generator, useful: Flags) -> Flags:
        return np.isin(np.arange(len(useful)), places)

    user = User(1)
    prior = user.ask(Prior(), positional, 200)
    assert not any(user.trusted)
    assert set(user.levels) == {"base"}
    assert prior.users == 0
    assert user.person is not None
    assert bool(user.person.distrust()) == (places != [0])  # the first is always right where the ranking is
    honest_then = User(1)
    prior = honest_then.ask(Prior(), honest(), 100)
    honest_then.ask(prior, positional, LEAST)
    assert honest_then.person is not None
    own = honest_then.person.own
    after = honest_then.ask(prior, positional, 50)
    assert honest_then.person.own is own
    assert after.ranker is prior.ranker


@pytest.mark.parametrize("seed", SEEDS)
def test_bad_feedback_leaves_a_good_prior_in_service(seed: int) -> None:
    prior = grown()
    user = User(seed)
    after = user.ask(prior, at_random, 60)
    assert set(user.levels) == {"prior"}
    assert after.users == prior.users
    assert after.ranker is prior.ranker


@pytest.mark.parametrize("noise", [(0.0, 0.0), (0.09, 0.05), (0.30, 0.15)])
def test_honest_feedback_is_believed_and_serves_better(noise: tuple[float, float]) -> None:
    user = User(0)
    prior = user.ask(Prior(), honest(*noise), 400)
    level, ranker = serving(prior, user.person)
    assert level == "person"
    assert recall_of(ranker) > recall_of(None) + 0.05
    assert prior.users == 1
    assert user.switches[0] == ("base", "person")
    assert "gain over the base" in user.reasons[0]


def test_who_began_before_the_prior_does_not_stay_behind() -> None:
    early = User(7)
    early.ask(Prior(), honest(), LEAST - 5)
    prior = grown()
    assert serving(prior, early.person)[0] == "prior"
    early.ask(prior, honest(), 30)
    assert early.person is not None
    assert early.person.absorbed
    late = prior.person(WIDTH)
    for lesson in early.log:
        late = late.updated(lesson)
    assert early.person.own.theta.tobytes() == late.theta.tobytes()


def test_a_person_who_turns_inverted_is_dropped() -> None:
    alone = User(0)
    prior = alone.ask(Prior(), honest(), 200)
    assert alone.levels[-1] == "person"
    alone.ask(prior, inverted, 300)
    assert alone.levels[-1] == "prior"  # what they taught before they turned
    assert alone.switches[-1][1] == "prior"
    one_of_many = User(0)
    prior = one_of_many.ask(grown(), honest(), 200)
    one_of_many.ask(prior, inverted, 300)
    assert one_of_many.levels[-1] == "prior"


@pytest.mark.parametrize("start", [Prior(), grown()])
def test_who_turns_begins_anew_and_stops_teaching_others(start: Prior) -> None:
    user = User(0)
    prior = user.ask(start, honest(), 200)
    assert user.person is not None
    assert user.person.absorbed
    after = user.ask(prior, always_last, 25)
    lost = user.trusted.index(False, 200) - 200
    assert lost <= 20
    assert after.ranker is not None
    assert prior.ranker is not None
    assert after.ranker.steps - prior.ranker.steps == lost
    assert any("feedback turned: agreement was" in reason for reason in user.reasons)
    later = user.ask(after, always_last, 100)
    assert later.ranker is after.ranker
    assert not any(user.trusted[-100:])
    assert "person" not in user.levels[-100:]
    user.ask(later, honest(), 400)
    assert user.trusted[-1]
    assert user.levels[-1] == "person"


def test_who_cites_most_of_what_is_shown_changes_nothing_any_more() -> None:
    user = User(0)
    prior = user.ask(grown(), honest(), 200)
    assert user.person is not None
    before = recall_of(user.person.own)
    user.ask(prior, inverted, 200)
    assert recall_of(user.person.own) > before - 0.02


def wrong_base(dice: np.random.Generator) -> Ask:
    """The untrained ranking knows nothing of what is meant."""
    return question(dice, base_knows=0.0)


def test_honest_feedback_is_trusted_where_the_untrained_ranking_is_wrong() -> None:
    user = User(4, asks=wrong_base)
    prior = user.ask(Prior(), honest(), 400)
    level, ranker = serving(prior, user.person)
    assert level == "person"
    assert recall_of(ranker, base_knows=0.0) > 0.7 > 0.3 > recall_of(None, base_knows=0.0)


def test_a_prior_that_is_wrong_for_a_person_does_not_serve_them() -> None:
    """The others mean entries with a feature, this person those without it."""
    prior, user = grown(), User(5, asks=lambda dice: opposite(question(dice)))
    assert serving(prior, user.person)[0] == "prior"
    user.ask(prior, honest(), 200)
    assert user.levels[-1] != "prior"


def opposite(ask: Ask) -> Ask:
    return replace(ask, features=ask.features * [-1.0, -1.0, 1.0, 1.0])


def test_weights_that_are_no_numbers_are_rolled_back() -> None:
    user = User(0)
    prior = user.ask(Prior(), honest(), 100)
    person = user.person
    assert person is not None
    assert person.level == "person"
    broken = replace(person, own=replace(person.own, theta=person.own.theta * np.nan))
    assert serving(prior, broken)[0] == "prior"
    user.person = broken
    after = user.tell(prior, user.log[0])
    assert after.switched == ("person", "prior")
    assert "not finite" in after.why
    assert after.person.own.theta.tobytes() == prior.person(WIDTH).theta.tobytes()
    assert after.person.changed_at is not None
    user.ask(after.prior, honest(), LEAST - 1)
    assert set(user.levels[-LEAST + 1 :]) == {"prior"}
    user.ask(after.prior, honest(), 50)
    assert user.levels[-1] == "person"


@pytest.mark.parametrize(("weight", "why"), [(-0.5, "worse than the base"), (-5.0, "without a citation")])
def test_weights_that_became_worse_than_the_base_are_rolled_back(weight: float, why: str) -> None:
    """Mildly bad ones lose against the base; bad ones show nothing useful, so that there is nothing to compare."""
    user = User(0)
    prior = user.ask(grown(), honest(), 100)
    assert user.person is not None
    assert user.person.level == "person"
    bad = replace(user.person.own, theta=np.r_[1.0, weight, np.zeros(WIDTH - 1)], precision=1e9 * np.eye(WIDTH + 1))
    user.person = replace(user.person, own=bad)
    user.ask(prior, honest(), 300)
    assert any(why in reason or "turned" in reason for reason in user.reasons), user.reasons
    assert np.argmax(np.abs(user.person.own.weights)) == 0
    assert user.person.own.weights[0] > 0


def test_a_state_survives_its_text() -> None:
    user = User(3)
    prior = user.ask(Prior(), honest(), 60)
    assert user.person is not None
    person = loads_state(Person, dumps_state(user.person, NAMES), NAMES)
    assert person is not None
    assert person.own.precision.tobytes() == user.person.own.precision.tobytes()
    assert (person.guard, person.level) == (user.person.guard, user.person.level)
    assert person.changed_at == user.person.changed_at
    read = loads_state(Prior, dumps_state(prior, NAMES), NAMES)
    assert read is not None
    assert read.gain == prior.gain


def test_a_state_of_an_earlier_release_is_read() -> None:
    """It had the guard's fields among the person's, some more of them, fewer features, and called one otherwise."""
    user = User(3)
    user.ask(Prior(), honest(), 60)
    assert user.person is not None
    value = json.loads(dumps_state(user.person, [*NAMES[:-1], "echo"]))
    old = value | value.pop("guard") | {"placed": 0.0, "positional": False, "residual": 0, "lost": False}
    person = loads_state(Person, json.dumps(old), ["new", *NAMES[:-1], "repeated", "newer"])
    assert person is not None
    assert person.guard == user.person.guard
    assert person.own.weights.tolist() == [0.0, *user.person.own.weights.tolist(), 0.0]
    asked = user.log[-1]
    wider = np.hstack([np.zeros((len(asked.base), 1)), asked.features, np.zeros((len(asked.base), 1))])
    after = person.own.updated(replace(asked, features=wider))
    assert after.weights[1:-1] == pytest.approx(user.person.own.updated(asked).weights)


def test_a_state_of_other_features_counts_as_none() -> None:
    prior = grown(1)
    person = Person(own=Ranker.fresh(WIDTH), guard=Guard())
    for names in (["x", *NAMES[1:]], NAMES[:-1]):
        assert loads_state(Prior, dumps_state(prior, NAMES), names) is None
        assert loads_state(Person, dumps_state(person, NAMES), names) is None
    for text in (None, "", "[]", "{", "{}", dumps_state(prior, NAMES), dumps_state(person, NAMES)[:-9]):
        assert loads_state(Person, text, NAMES) is None
    assert loads_state(Person, dumps_state(person, NAMES).replace('"format":1', '"format":2'), NAMES) is None
    damaged = json.loads(dumps_state(person, NAMES))
    damaged["own"]["precision"] = "not base64!"
    assert loads_state(Person, json.dumps(damaged), NAMES) is None
    damaged["own"]["precision"] = ""
    assert loads_state(Person, json.dumps(damaged), NAMES) is None


def test_settings_that_cannot_be_read_share_nothing() -> None:
    assert loads_tenant(None) == Tenant()
    settings = Tenant(shares=False, since=7).with_start("default", grown(1), NAMES)
    assert loads_tenant(dumps_tenant(settings)) == settings
    start = settings.start("default", NAMES)
    assert start is not None
    assert start.ranker is not None
    assert settings.start("paper", NAMES) is None
    for text in ("", "{", "[]", '{"shares": 7}', '{"since": "x"}'):
        assert not loads_tenant(text).shares

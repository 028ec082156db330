"""Prior and person: who is believed, what is served, what is rolled back, and what a state is kept as."""

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
from wellworn.learning.guard import LEAST, Evidence
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


def grown(users: int = 3, times: int = 80) -> Prior:
    prior = Prior()
    for seed in range(100, 100 + users):
        prior = User(seed).ask(prior, honest(), times)
    return prior


@pytest.mark.parametrize("feedback", [at_random, inverted, always_last])
@pytest.mark.parametrize("seed", range(3))
def test_bad_feedback_is_never_believed_and_leaves_a_good_prior_in_service(feedback: Feedback, seed: int) -> None:
    user = User(seed)
    prior = user.ask(Prior(), feedback, 300)
    assert not any(user.trusted)
    assert set(user.levels) == {"base"}
    assert (prior.ranker, prior.users, prior.gain) == (None, 0, Evidence())
    assert user.person is not None
    assert user.person.distrust()
    if feedback is at_random:
        prior, user = grown(), User(seed)
        assert user.ask(prior, feedback, 60).ranker is prior.ranker
        assert user.levels.count("prior") > 40


@pytest.mark.parametrize("places", [[0], [0, 1], [0, 1, 2, 3, 4]])
def test_citing_the_same_places_whatever_stands_there_teaches_nothing(places: list[int]) -> None:
    def positional(dice: np.random.Generator, useful: Flags) -> Flags:
        return np.isin(np.arange(len(useful)), places)

    user, honest_then = User(1), User(1)
    assert user.ask(Prior(), positional, 200).users == 0
    assert not any(user.trusted)
    assert user.person is not None
    assert bool(user.person.distrust()) == (places != [0])  # the first is always right where the ranking is
    prior = honest_then.ask(Prior(), honest(), 100)
    honest_then.ask(prior, positional, LEAST)
    assert honest_then.person is not None
    own = honest_then.person.own
    assert honest_then.ask(prior, positional, 50).ranker is prior.ranker
    assert honest_then.person.own is own


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


def test_honest_feedback_is_trusted_where_the_untrained_ranking_is_wrong() -> None:
    user = User(4, asks=lambda dice: question(dice, base_knows=0.0))
    prior = user.ask(Prior(), honest(), 400)
    level, ranker = serving(prior, user.person)
    assert level == "person"
    assert recall_of(ranker, base_knows=0.0) > 0.7 > 0.3 > recall_of(None, base_knows=0.0)


def test_a_prior_that_is_wrong_for_a_person_does_not_serve_them() -> None:
    """The others mean entries with a feature, this person those without it."""

    def opposite(dice: np.random.Generator) -> Ask:
        ask = question(dice)
        return replace(ask, features=ask.features * [-1.0, -1.0, 1.0, 1.0])

    prior, user = grown(), User(5, asks=opposite)
    assert serving(prior, user.person)[0] == "prior"
    user.ask(prior, honest(), 200)
    assert user.levels[-1] != "prior"


def test_weights_that_are_no_numbers_are_rolled_back() -> None:
    user = User(0)
    prior = user.ask(Prior(), honest(), 100)
    person = user.person
    assert person is not None
    assert person.level == "person"
    user.person = replace(person, own=replace(person.own, theta=person.own.theta * np.nan))
    assert serving(prior, user.person)[0] == "prior"
    after = user.tell(prior, user.log[0])
    assert after.switched == ("person", "prior")
    assert "not finite" in after.why
    assert after.person.own.theta.tobytes() == prior.person(WIDTH).theta.tobytes()
    assert after.person.changed_at is not None
    user.ask(after.prior, honest(), LEAST + 50)
    assert set(user.levels[101 : 100 + LEAST]) == {"prior"}
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


def test_a_state_survives_its_text_and_counts_as_none_where_it_does_not_fit() -> None:
    user = User(3)
    prior = user.ask(Prior(), honest(), 60)
    assert user.person is not None
    text = dumps_state(user.person, NAMES)
    person, read = loads_state(Person, text, NAMES), loads_state(Prior, dumps_state(prior, NAMES), NAMES)
    assert person is not None
    assert person.own.precision.tobytes() == user.person.own.precision.tobytes()
    assert (person.guard, person.level) == (user.person.guard, user.person.level)
    assert person.changed_at == user.person.changed_at
    assert read is not None
    assert read.gain == prior.gain
    for names in (["x", *NAMES[1:]], NAMES[:-1]):
        assert loads_state(Person, text, names) is None
    other_format = text.replace('"format":1', '"format":2')
    damaged = json.loads(text)
    for bad in (None, "", "[]", "{", "{}", dumps_state(prior, NAMES), text[:-9], other_format):
        assert loads_state(Person, bad, NAMES) is None
    for precision in ("not base64!", ""):
        damaged["own"]["precision"] = precision
        assert loads_state(Person, json.dumps(damaged), NAMES) is None


def test_settings_that_cannot_be_read_share_nothing() -> None:
    assert loads_tenant(None) == Tenant()
    taught = Prior(ranker=Ranker.fresh(WIDTH))
    settings = Tenant(shares=False, since=7).with_start("default", taught, NAMES)
    assert loads_tenant(dumps_tenant(settings)) == settings
    start = settings.start("default", NAMES)
    assert start is not None
    assert start.ranker is not None
    assert settings.start("paper", NAMES) is None
    for text in ("", "{", "[]", '{"shares": 7}', '{"since": "x"}'):
        assert not loads_tenant(text).shares

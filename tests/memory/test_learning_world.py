"""Learning through the facade, in a planted world: the month that a query names decides, and the base is blind."""

from __future__ import annotations

import calendar
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from contract.few import few
from memory.world import Clock, OpenMemory
from wellworn import InvalidInput, Memory, Recall, Scope
from wellworn.learning.records import outcomes
from wellworn.search.pipeline import TIE_DECIMALS
from wellworn.search.profiles import PROFILES
from wellworn.store.events import Event

ADA = Scope(tenant="acme", user="ada", org="all")
BEN = Scope(tenant="acme", user="ben", org="all")
EVE = Scope(tenant="acme", user="eve", org="all")
RIVAL = Scope(tenant="rival", user="ada", org="all")

MONTHS = calendar.month_name[1:]
HINTS = ("garden", "river", "market", "window")
TOPICS = ("apples", "bridges", "candles", "drums", "engines", "feathers")
BLIND = replace(
    PROFILES["default"], name="blind", weights={k: w for k, w in PROFILES["default"].weights.items() if k != "date"}
)
ENOUGH = 60
"""Outcomes after which an honest person is served by what they taught."""
K = 5

Places = list[int]
Cite = Callable[[random.Random, Places], Places]
"""The cited places, given the right ones."""


def honest(dice: random.Random, right: Places) -> Places:
    return right


def at_random(dice: random.Random, right: Places) -> Places:
    return [place for place in range(K) if dice.random() < 0.3]


def inverted(dice: random.Random, right: Places) -> Places:
    return [place for place in range(K) if place not in right]


def always_last(dice: random.Random, right: Places) -> Places:
    return [K - 1]


def always_first(dice: random.Random, right: Places) -> Places:
    return [0]


@dataclass(frozen=True)
class Ask:
    """A question with the one entry that answers it."""

    query: str
    topic: str
    month: int

    def right(self, recall: Recall) -> Places:
        return [
            place
            for place, hit in enumerate(recall.hits)
            if hit.entry.at.month == self.month and hit.entry.text.startswith(self.topic)
        ]


def asks(seed: int) -> Iterator[Ask]:
    """Seven in ten name the hint of their answer, so that the base is better than chance."""
    dice = random.Random(seed)
    while True:
        topic, month = dice.choice(TOPICS), dice.randrange(12)
        hint = HINTS[(month + len(topic)) % 4] if dice.random() < 0.7 else dice.choice(HINTS)
        yield Ask(f"What of {topic} at the {hint} in {MONTHS[month]}?", topic, month + 1)


def fill(mem: Memory, scope: Scope) -> None:
    """Each topic once in each month, for everyone in the organisation."""
    mem.remember_many(
        [
            {
                "text": f"{topic} by the {HINTS[(month + len(topic)) % 4]}, page {topic[0]}{month}",
                "at": datetime(2025, month + 1, 1 + len(topic), tzinfo=UTC),
            }
            for topic in TOPICS
            for month in range(12)
        ],
        scope=scope,
        layer="org",
    )


@dataclass
class User:
    """Someone who asks and tells what became of it; the n-th question is the same in every run."""

    mem: Memory
    scope: Scope
    seed: int
    told: int = 0
    _dice: random.Random = field(init=False)
    _asks: Iterator[Ask] = field(init=False)

    def __post_init__(self) -> None:
        self._dice, self._asks = random.Random(self.seed), asks(self.seed)

    def tell(self, times: int, cite: Cite = honest) -> None:
        for _ in range(times):
            ask = next(self._asks)
            recall = self.mem.recall(ask.query, scope=self.scope, k=K)
            assert self.mem.outcome(recall.id, cited=cite(self._dice, ask.right(recall)), scope=self.scope)
            self.told += 1

    def recall_rate(self, questions: int = 20) -> float:
        """Share of fresh questions whose answer is shown. Asking teaches nothing."""
        found = asks(999)
        return (
            sum(
                bool(ask.right(self.mem.recall(ask.query, scope=self.scope, k=K)))
                for ask, _ in zip(found, range(questions), strict=False)
            )
            / questions
        )

    def order(self) -> list[list[str]]:
        found = asks(998)
        return [
            [hit.entry.text for hit in self.mem.recall(ask.query, scope=self.scope, k=K)]
            for ask, _ in zip(found, range(8), strict=False)
        ]


def ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"id-{next(numbers)}"


@pytest.fixture
def planted(opened: OpenMemory) -> OpenMemory:
    """Opens a memory that holds the world for both tenants."""

    def open_(location: str | Path = ":memory:", **options: Any) -> Memory:  # the keywords of Memory.open
        given = {"embedder": None, "durability": "normal", "new_id": ids(), "profile": BLIND, **options}
        mem = opened(location, **given)
        for scope in (ADA, RIVAL):
            fill(mem, scope)
        return mem

    return open_


def switches(mem: Memory, scope: Scope) -> list[Event]:
    """Oldest first."""
    return [event for event in mem.admin.events(scope=scope, limit=10_000) if event.action == "learn"][::-1]


# -- learning is alive -------------------------------------------------------------------------------------------


def test_recall_rises_from_the_untrained_level(planted: OpenMemory, location: str) -> None:
    mem = planted(location)
    ada = User(mem, ADA, 1)
    untrained = ada.recall_rate()
    ada.tell(ENOUGH)
    status = mem.learning.status(scope=ADA)
    assert (status.serving, status.level, status.trusted, status.distrust) == ("learned", "person", True, "")
    assert status.outcomes == ENOUGH
    assert status.bound > 0
    assert status.weights["month"] == max(status.weights.values())
    assert untrained < 0.9
    assert ada.recall_rate() == 1.0


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_without_learning_on_nothing_moves(planted: OpenMemory, mode: str) -> None:
    mem = planted(learning=mode)
    ada = User(mem, ADA, 1)
    before, rate = ada.order(), ada.recall_rate()
    if mode == "observe":
        ada.tell(ENOUGH)
    status = mem.learning.status(scope=ADA)
    assert (status.mode, status.serving, status.level) == (mode, "base", "base")
    assert (status.outcomes, status.trusted) == ((ENOUGH, True) if mode == "observe" else (0, False))
    assert ada.order() == before
    assert ada.recall_rate() == rate


def test_what_was_observed_serves_once_learning_is_on_and_not_when_off(
    planted: OpenMemory, path: Path, opened: OpenMemory
) -> None:
    mem = planted(path, learning="observe")
    User(mem, ADA, 1).tell(ENOUGH)
    mem.close()
    for mode, rate in (("on", 1.0), ("observe", None), ("off", None)):
        again = opened(path, embedder=None, learning=mode, profile=BLIND)
        found = User(again, ADA, 1).recall_rate()
        assert found == 1.0 if rate else found < 0.9
        assert again.learning.status(scope=ADA).serving == ("learned" if rate else "base")


def test_the_learned_factor_is_explained_and_factors_add_up(planted: OpenMemory) -> None:
    mem = planted()
    ada = User(mem, ADA, 1)
    query = "What of apples at the river in March?"
    assert "learned" not in mem.recall(query, scope=ADA).hits[0].factors
    ada.tell(ENOUGH)
    hits = mem.recall(query, scope=ADA, k=12).hits
    for hit in hits:
        assert hit.score == pytest.approx(sum(hit.factors.values()))
        assert -3.0 <= hit.factors["learned"] <= 3.0
    assert max(hits, key=lambda hit: hit.factors["learned"]).entry.at.month == 3
    scores = [round(hit.score, TIE_DECIMALS) for hit in hits]
    assert scores == sorted(scores, reverse=True)


def test_every_switch_is_an_event(planted: OpenMemory, clock: Clock) -> None:
    mem = planted()
    ada = User(mem, ADA, 1)
    levels = ["base"]
    for _ in range(ENOUGH):
        clock.forward(minutes=1)
        ada.tell(1)
        if (level := mem.learning.status(scope=ADA).level) != levels[-1]:
            levels.append(level)
            assert mem.learning.status(scope=ADA).last_change == clock.now
    told = switches(mem, ADA)
    assert [event.detail["from"] for event in told] == levels[:-1]
    assert [event.detail["to"] for event in told] == levels[1:]
    assert levels[1:] == ["person"]
    (event,) = told
    assert isinstance(event.detail["gain"], float)
    assert isinstance(event.detail["bound"], float)
    assert 0 < event.detail["bound"] < event.detail["gain"]
    assert event.detail["why"]
    assert mem.learning.status(scope=ADA).last_change == event.at


# -- never worse -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cite", few([inverted, always_first, at_random, always_last], 2))
def test_bad_feedback_never_serves_and_is_reported(planted: OpenMemory, cite: Cite) -> None:
    mem = planted()
    ada = User(mem, ADA, 3)
    before, rate = ada.order(), ada.recall_rate()
    ada.tell(100, cite)
    status = mem.learning.status(scope=ADA)
    assert (status.serving, status.level, status.trusted) == ("base", "base", False)
    assert bool(status.distrust) == (cite is not always_first)  # the first is always right where the ranking is
    assert ada.order() == before
    assert ada.recall_rate() == rate
    assert mem.learning.status(scope=BEN).prior_users == 0


def test_feedback_that_turns_bad_is_rolled_back(planted: OpenMemory) -> None:
    mem = planted()
    ada = User(mem, ADA, 1)
    untrained = ada.recall_rate()
    ada.tell(ENOUGH)
    assert mem.learning.status(scope=ADA).serving == "learned"
    ada.tell(100, inverted)
    assert ada.recall_rate() >= untrained - 0.01
    status = mem.learning.status(scope=ADA)
    assert status.level != "person" or status.weights["month"] > 0
    assert switches(mem, ADA)[-1].detail["to"] == status.level


def test_a_trusted_person_stays_trusted_while_they_go_on_telling_the_truth(planted: OpenMemory) -> None:
    """What the learned ranking shows must not be held against the person it learned from."""
    mem = planted()
    ada = User(mem, ADA, 1)
    ada.tell(ENOUGH)
    ada.tell(140)
    status = mem.learning.status(scope=ADA)
    assert (status.serving, status.distrust) == ("learned", "")
    assert [event.detail["to"] for event in switches(mem, ADA)] == ["person"]


# -- prior and person --------------------------------------------------------------------------------------------


def test_a_new_user_of_the_tenant_profits_at_once_and_another_tenant_does_not(planted: OpenMemory) -> None:
    mem = planted()
    untrained = User(mem, EVE, 9).recall_rate()
    User(mem, ADA, 1).tell(ENOUGH)
    status = mem.learning.status(scope=EVE)
    assert (status.serving, status.level, status.outcomes, status.prior_users) == ("learned", "prior", 0, 1)
    assert User(mem, EVE, 9).recall_rate() == 1.0
    foreign = mem.learning.status(scope=RIVAL)
    assert (foreign.serving, foreign.prior_users, foreign.prior_steps) == ("base", 0, 0)
    assert User(mem, RIVAL, 9).recall_rate() == untrained
    assert mem.learning.export(scope=RIVAL) == {"prior": None, "person": None}


def test_a_tenant_that_does_not_share_helps_nobody_new(planted: OpenMemory) -> None:
    mem = planted()
    untrained = User(mem, EVE, 9).recall_rate()
    mem.learning.share(False, scope=ADA)
    User(mem, ADA, 1).tell(ENOUGH)
    assert mem.learning.status(scope=ADA).level == "person"
    status = mem.learning.status(scope=EVE)
    assert (status.serving, status.prior_users, status.prior_steps, status.shares) == ("base", 0, 0, False)
    assert User(mem, EVE, 9).recall_rate() == untrained
    assert mem.learning.reset(scope=ADA) >= 1
    assert not mem.learning.status(scope=ADA).shares  # an opt-out outlives a reset
    assert not mem.learning.relearn(scope=ADA).shares


def test_an_erasure_reaches_what_was_learned_under_other_profiles(
    planted: OpenMemory, path: Path, opened: OpenMemory
) -> None:
    mem = planted(path)
    User(mem, ADA, 1).tell(ENOUGH)
    assert mem.learning.status(scope=BEN).prior_users == 1
    mem.close()
    other = opened(path, embedder=None)
    other.admin.erase(scope=ADA)
    other.close()
    status = opened(path, embedder=None, profile=BLIND).learning.status(scope=BEN)
    assert (status.level, status.prior_users, status.prior_steps) == ("base", 0, 0)


def test_the_states_hold_no_text(planted: OpenMemory) -> None:
    mem = planted()
    User(mem, ADA, 1).tell(ENOUGH)
    text = re.sub(r"'precision': '[^']*'", "", repr(mem.learning.export(scope=ADA))).lower()
    for word in (*TOPICS, *HINTS, "ada", "what of"):
        assert word not in text


# -- replay ------------------------------------------------------------------------------------------------------


def everyone(mem: Memory) -> list[dict[str, Any]]:
    return [mem.learning.export(scope=scope) for scope in (ADA, BEN, EVE, RIVAL)]


def interleaved(mem: Memory, clock: Clock) -> None:
    """Four people, one of them a liar and one of another tenant, in turns."""
    users = [
        (User(mem, ADA, 1), honest),
        (User(mem, BEN, 2), honest),
        (User(mem, EVE, 3), inverted),
        (User(mem, RIVAL, 4), honest),
    ]
    for _ in range(ENOUGH // 5):
        for user, cite in users:
            clock.forward(seconds=1.234567)
            user.tell(5, cite)


def test_relearning_rebuilds_the_same_state_bit_for_bit(planted: OpenMemory, location: str, clock: Clock) -> None:
    mem = planted(location)
    interleaved(mem, clock)
    before = everyone(mem)
    assert mem.learning.status(scope=ADA).level == mem.learning.status(scope=BEN).level == "person"
    assert mem.learning.status(scope=ADA).prior_users == 2
    for scope in (ADA, RIVAL):
        mem.learning.relearn(scope=scope)
        assert everyone(mem) == before


@pytest.mark.slow
def test_relearning_after_reopening_rebuilds_the_same_state(
    planted: OpenMemory, path: Path, clock: Clock, opened: OpenMemory
) -> None:
    mem = planted(path)
    interleaved(mem, clock)
    before, order = everyone(mem), User(mem, ADA, 1).order()
    mem.close()
    again = opened(path, embedder=None, profile=BLIND)
    assert everyone(again) == before
    assert User(again, ADA, 1).order() == order
    assert again.learning.reset(scope=ADA) == 4  # three people and what they share
    assert everyone(again)[:3] == [{"prior": None, "person": None}] * 3
    assert everyone(again)[3] == before[3]


def test_a_reset_serves_the_base_again_and_keeps_the_log(planted: OpenMemory) -> None:
    mem = planted()
    ada = User(mem, ADA, 1)
    before = ada.order()
    ada.tell(ENOUGH)
    assert mem.learning.reset(scope=ADA) == 2
    assert mem.learning.reset(scope=ADA) == 0
    status = mem.learning.status(scope=ADA)
    assert (status.serving, status.outcomes, status.prior_users) == ("base", 0, 0)
    assert ada.order() == before
    assert len(outcomes(mem.engine.store, "acme", limit=1000)) == ENOUGH


def test_what_was_told_before_a_reset_teaches_no_more(planted: OpenMemory, location: str) -> None:
    """A tenant that resets, and one that never knew: from then on the same outcomes lead to the same states."""
    mem, fresh = planted(location), planted()
    User(mem, ADA, 1).tell(ENOUGH)
    User(mem, EVE, 3).tell(25, inverted)
    mem.learning.reset(scope=BEN)
    assert mem.learning.relearn(scope=ADA).outcomes == 0
    for one in (mem, fresh):
        User(one, ADA, 2).tell(20)
        User(one, EVE, 4).tell(ENOUGH)  # trusted after the reset: their lies of before are not learned with it
    assert mem.learning.status(scope=EVE).trusted
    assert everyone(mem) == everyone(fresh)
    before = everyone(mem)
    mem.learning.relearn(scope=ADA)
    assert everyone(mem) == before
    mem.learning.share(False, scope=ADA)
    mem.learning.share(True, scope=ADA)
    assert everyone(mem) == before


def test_a_reset_during_a_relearn_is_not_undone(planted: OpenMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    mem = planted()
    User(mem, ADA, 1).tell(ENOUGH)
    resets: list[int] = []

    def and_then(*args: Any, **options: Any) -> Any:  # a page of the log
        page = outcomes(*args, **options)
        if not page and not resets:  # the whole log has been read
            resets.append(0)
            resets[0] = mem.learning.reset(scope=ADA)
        return page

    monkeypatch.setattr("wellworn.learning.records.outcomes", and_then)
    mem.learning.relearn(scope=ADA)
    assert resets == [2]
    status = mem.learning.status(scope=ADA)
    assert (status.serving, status.outcomes) == ("base", 0)


def test_pairs_that_name_nothing_here_leave_the_earlier_ones(planted: OpenMemory) -> None:
    mem = planted()
    mem.learning.relearn(pairs=month_pairs(mem, 1, 20), scope=ADA)
    before = mem.learning.export(scope=ADA)
    with pytest.raises(InvalidInput, match="name no entry"):
        mem.learning.relearn(pairs=[("What was in May?", ["no-such-id"])], scope=ADA)
    assert mem.learning.export(scope=ADA) == before


def month_pairs(mem: Memory, seed: int, count: int) -> list[tuple[str, list[str]]]:
    found = mem.entries(scope=ADA, limit=1000)
    return [
        (ask.query, [e.id for e in found if e.at.month == ask.month and e.text.startswith(ask.topic)])
        for ask, _ in zip(asks(seed), range(count), strict=False)
    ]


def test_labelled_pairs_outlive_a_relearn_until_others_are_given(planted: OpenMemory, location: str) -> None:
    mem = planted(location)
    mem.learning.relearn(scope=ADA, pairs=month_pairs(mem, 5, 30))
    pretrained = mem.learning.export(scope=ADA)["prior"]
    assert mem.learning.relearn(scope=ADA).prior_steps == 30
    assert mem.learning.export(scope=ADA)["prior"] == pretrained
    interleaved = User(mem, ADA, 1)
    interleaved.tell(20)
    before = everyone(mem)
    mem.learning.relearn(scope=ADA)
    assert everyone(mem) == before
    mem.learning.share(False, scope=ADA)
    assert mem.learning.status(scope=ADA).prior_steps == 30  # labelled by hand, nobody's outcomes
    mem.learning.share(True, scope=ADA)
    assert everyone(mem) == before
    assert mem.learning.relearn(scope=ADA, pairs=month_pairs(mem, 6, 7)).prior_steps == 7
    assert mem.learning.relearn(scope=ADA, pairs=[]).prior_steps == 0
    assert mem.learning.relearn(scope=ADA).prior_steps == 0
    mem.learning.relearn(scope=ADA, pairs=month_pairs(mem, 5, 30))
    mem.learning.reset(scope=ADA)
    assert mem.learning.relearn(scope=ADA).prior_steps == 0


def test_labelled_pairs_alone_change_the_ranking(planted: OpenMemory, path: Path, opened: OpenMemory) -> None:
    mem = planted(path)
    ada = User(mem, ADA, 1)
    untrained = ada.recall_rate()
    status = mem.learning.relearn(scope=ADA, pairs=month_pairs(mem, 5, 60))
    assert (status.level, status.outcomes) == ("prior", 0)
    assert ada.recall_rate() == 1.0 > untrained
    exported = path.with_name("prior.json")
    exported.write_text(json.dumps(mem.learning.export(scope=ADA)))
    fresh = planted(prior=exported)
    assert fresh.learning.status(scope=RIVAL).level == "prior"
    assert User(fresh, RIVAL, 1).recall_rate() == 1.0


def test_pairs_that_teach_the_wrong_thing_do_not_serve(planted: OpenMemory) -> None:
    mem = planted()
    dice, found = random.Random(3), mem.entries(scope=ADA, limit=1000)
    pairs = [(ask.query, [dice.choice(found).id]) for ask, _ in zip(asks(5), range(80), strict=False)]
    before = User(mem, ADA, 1).recall_rate()
    mem.learning.relearn(scope=ADA, pairs=pairs)
    assert User(mem, ADA, 1).recall_rate() >= before - 0.05


# -- nothing helped ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", [{"cited": []}, {"ignored": True}, {"refined": "Which bridges are there?"}])
def test_where_nothing_helped_a_similar_question_shows_others(planted: OpenMemory, told: dict[str, Any]) -> None:
    mem = planted()
    query, again = "What of bridges at the river in March?", "What of the bridges at the river in March?"
    first = mem.recall(query, scope=ADA, k=K)
    mem.outcome(first.id, scope=ADA, **told)
    shown = {hit.entry.id for hit in mem.recall(again, scope=ADA, k=K)}
    assert len(shown - {hit.entry.id for hit in first}) >= 3
    other = "What of drums at the market in May?"
    assert "in_vain" not in mem.recall(other, scope=ADA).hits[0].factors
    assert "in_vain" not in mem.recall(again, scope=BEN).hits[0].factors  # it is this person's alone


# -- profiles ----------------------------------------------------------------------------------------------------


def test_each_profile_learns_by_itself(planted: OpenMemory, path: Path, opened: OpenMemory) -> None:
    mem = planted(path)
    User(mem, ADA, 1).tell(ENOUGH)
    before = everyone(mem)
    mem.close()
    bank = opened(path, embedder=None, profile="reasoningbank")
    assert (bank.learning.status(scope=ADA).outcomes, bank.learning.status(scope=ADA).serving) == (0, "base")
    User(bank, ADA, 2).tell(5)
    theirs = everyone(bank)
    bank.learning.relearn(scope=ADA)
    assert everyone(bank) == theirs  # the default's recalls are not among what it replays
    assert bank.learning.status(scope=ADA).outcomes == 5
    bank.close()
    again = planted(path)
    assert everyone(again) == before
    again.learning.relearn(scope=ADA)
    assert everyone(again) == before
    again.learning.share(False, scope=ADA)
    again.close()
    bank = opened(path, embedder=None, profile="reasoningbank")
    assert not bank.learning.status(scope=ADA).shares  # an opt-out is the tenant's, not a profile's
    bank.learning.relearn(scope=ADA)
    User(bank, ADA, 3).tell(ENOUGH)
    assert bank.learning.status(scope=ADA).prior_users == 0
    assert bank.learning.reset(scope=ADA) == 4  # of both profiles, a person and the tenant

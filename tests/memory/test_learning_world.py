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


def inverted(dice: random.Random, right: Places) -> Places:
    return [place for place in range(K) if place not in right]


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


def test_recall_rises_from_the_untrained_level_and_says_why(planted: OpenMemory) -> None:
    mem = planted()
    ada = User(mem, ADA, 1)
    untrained, query = ada.recall_rate(), "What of apples at the river in March?"
    assert "learned" not in mem.recall(query, scope=ADA).hits[0].factors
    ada.tell(ENOUGH)
    status = mem.learning.status(scope=ADA)
    assert (status.serving, status.level, status.trusted, status.distrust) == ("learned", "person", True, "")
    assert status.outcomes == ENOUGH
    assert status.bound > 0
    assert status.weights["month"] == max(status.weights.values())
    assert untrained < 0.9
    assert ada.recall_rate() == 1.0
    hits = mem.recall(query, scope=ADA, k=12).hits
    for hit in hits:
        assert hit.score == pytest.approx(sum(hit.factors.values()))
        assert -3.0 <= hit.factors["learned"] <= 3.0
    assert max(hits, key=lambda hit: hit.factors["learned"]).entry.at.month == 3
    scores = [round(hit.score, TIE_DECIMALS) for hit in hits]
    assert scores == sorted(scores, reverse=True)


def test_what_was_observed_serves_only_once_learning_is_on(planted: OpenMemory, path: Path, opened: OpenMemory) -> None:
    mem = planted(path, learning="observe")
    ada = User(mem, ADA, 1)
    before = ada.order()
    ada.tell(ENOUGH)
    status = mem.learning.status(scope=ADA)
    assert (status.mode, status.serving, status.level) == ("observe", "base", "base")
    assert (status.outcomes, status.trusted) == (ENOUGH, True)
    assert ada.order() == before
    mem.close()
    for mode in ("on", "off"):
        again = opened(path, embedder=None, learning=mode, profile=BLIND)
        assert (User(again, ADA, 1).order() == before) is (mode == "off")
        assert again.learning.status(scope=ADA).serving == ("learned" if mode == "on" else "base")


def test_every_switch_is_an_event_and_who_tells_the_truth_stays_trusted(planted: OpenMemory, clock: Clock) -> None:
    """What the learned ranking shows must not be held against the person it learned from."""
    mem = planted()
    ada = User(mem, ADA, 1)
    for _ in range(2 * ENOUGH):
        clock.forward(minutes=1)
        ada.tell(1)
    (event,) = switches(mem, ADA)
    assert (event.detail["from"], event.detail["to"]) == ("base", "person")
    assert isinstance(event.detail["gain"], float)
    assert isinstance(event.detail["bound"], float)
    assert 0 < event.detail["bound"] < event.detail["gain"]
    assert event.detail["why"]
    status = mem.learning.status(scope=ADA)
    assert (status.serving, status.distrust, status.last_change) == ("learned", "", event.at)
    assert event.at < clock.now


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
    text = re.sub(r"'precision': '[^']*'", "", repr(mem.learning.export(scope=ADA))).lower()
    assert not [word for word in (*TOPICS, *HINTS, "ada", "what of") if word in text]  # states hold no text


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


def test_relearning_and_reopening_give_the_same_state_bit_for_bit(
    planted: OpenMemory, path: Path, clock: Clock, opened: OpenMemory
) -> None:
    mem = planted(path)
    untrained = User(mem, ADA, 1).order()
    interleaved(mem, clock)
    before, order = everyone(mem), User(mem, ADA, 1).order()
    assert mem.learning.status(scope=ADA).level == mem.learning.status(scope=BEN).level == "person"
    assert mem.learning.status(scope=ADA).prior_users == 2
    for scope in (ADA, RIVAL):
        mem.learning.relearn(scope=scope)
        assert everyone(mem) == before
    mem.close()
    again = opened(path, embedder=None, profile=BLIND)
    assert everyone(again) == before
    assert User(again, ADA, 1).order() == order != untrained
    assert again.learning.reset(scope=ADA) == 4  # three people and what they share
    assert again.learning.reset(scope=ADA) == 0
    assert everyone(again) == [{"prior": None, "person": None}] * 3 + before[3:]
    assert User(again, ADA, 1).order() == untrained
    assert len([*outcomes(again.engine.store, "acme")]) == 3 * ENOUGH  # the log stays


def test_what_was_told_before_a_reset_teaches_no_more(planted: OpenMemory) -> None:
    """A tenant that resets, and one that never knew: from then on the same outcomes lead to the same states."""
    mem, fresh = planted(), planted()
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

    def and_then(*args: Any, **options: Any) -> Any:
        yield from outcomes(*args, **options)
        if not resets:  # the whole log has been read
            resets.append(0)
            resets[0] = mem.learning.reset(scope=ADA)

    monkeypatch.setattr("wellworn.learning.records.outcomes", and_then)
    mem.learning.relearn(scope=ADA)
    assert resets == [2]
    status = mem.learning.status(scope=ADA)
    assert (status.serving, status.outcomes) == ("base", 0)


def month_pairs(mem: Memory, seed: int, count: int) -> list[tuple[str, list[str]]]:
    found = mem.entries(scope=ADA, limit=1000)
    return [
        (ask.query, [e.id for e in found if e.at.month == ask.month and e.text.startswith(ask.topic)])
        for ask, _ in zip(asks(seed), range(count), strict=False)
    ]


def test_labelled_pairs_outlive_a_relearn_until_others_are_given(planted: OpenMemory) -> None:
    mem = planted()
    mem.learning.relearn(scope=ADA, pairs=month_pairs(mem, 5, 30))
    pretrained = mem.learning.export(scope=ADA)["prior"]
    assert mem.learning.relearn(scope=ADA).prior_steps == 30
    assert mem.learning.export(scope=ADA)["prior"] == pretrained
    User(mem, ADA, 1).tell(20)
    before = everyone(mem)
    mem.learning.relearn(scope=ADA)
    with pytest.raises(InvalidInput, match="name no entry"):
        mem.learning.relearn(pairs=[("What was in May?", ["no-such-id"])], scope=ADA)
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


def test_labelled_pairs_alone_change_the_ranking_unless_they_teach_the_wrong_thing(
    planted: OpenMemory, path: Path
) -> None:
    mem = planted()
    dice, found = random.Random(3), mem.entries(scope=ADA, limit=1000)
    wrong = [(ask.query, [dice.choice(found).id]) for ask, _ in zip(asks(5), range(80), strict=False)]
    before = User(mem, ADA, 1).recall_rate()
    mem.learning.relearn(scope=ADA, pairs=wrong)
    assert User(mem, ADA, 1).recall_rate() >= before - 0.05
    ada = User(mem, ADA, 1)
    status = mem.learning.relearn(scope=ADA, pairs=month_pairs(mem, 5, 60))
    assert (status.level, status.outcomes) == ("prior", 0)
    assert ada.recall_rate() == 1.0 > before
    exported = path.with_name("prior.json")
    exported.write_text(json.dumps(mem.learning.export(scope=ADA)))
    fresh = planted(prior=exported)
    assert fresh.learning.status(scope=RIVAL).level == "prior"
    assert User(fresh, RIVAL, 1).recall_rate() == 1.0


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

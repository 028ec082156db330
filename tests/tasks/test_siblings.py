"""Calls are data: items with the same calls, the words that decide, and rules that change."""

from __future__ import annotations

from typing import Any

import pytest

from wellworn import InvalidInput, Memory
from wellworn.tasks import ReasoningBank, Work
from wellworn.tasks.calls import FROM_TASK, common_words
from wellworn.tasks.items import pattern_of

from .world import AGENT, Clock, a_call, a_try


def learn(bank: ReasoningBank, query: str, tool: str, **arguments: Any) -> None:
    bank.record(a_try(query, a_call(tool, **arguments)), task_id=query, verdict=True)


def tasks_of(bank: ReasoningBank) -> set[str]:
    return {pattern_of(item).task for item in bank.items(limit=100)}


@pytest.mark.parametrize(
    ("one", "other", "tool", "names"),
    [
        ("Deploy shop to eu-west-1", "Deploy blog to us-east-1", "deploy", ("shop eu-west-1", "blog us-east-1")),
        ("Move tank3 into hall7", "Move pump9 into hall2", "move", ("tank3 hall7", "pump9 hall2")),
    ],
)
def test_two_tasks_stay_two(bank: ReasoningBank, one: str, other: str, tool: str, names: tuple[str, str]) -> None:
    for query, given in zip((one, other), names, strict=True):
        what, where = given.split()
        learn(bank, query, tool, what=what, where=where)
    bank.consolidate()
    assert tasks_of(bank) == {one, other}
    assert {pattern_of(item).calls[0].args["where"] for item in bank.items()} == {FROM_TASK}


def test_three_tasks_with_the_same_calls_become_one_and_keep_the_words_they_share(bank: ReasoningBank) -> None:
    for name in ("web", "api", "docs", "mail"):
        learn(
            bank, f"Install the stable toolchain for {name}", "install", channel="stable", target=name, flag="--locked"
        )
        learn(bank, f"Install the nightly toolchain for {name}", "install", channel="nightly", target=name, flag="-f")
    assert tasks_of(bank) == {"Install the stable toolchain for …", "Install the nightly toolchain for …"}
    for channel, flag in (("stable", "--locked"), ("nightly", "-f")):
        (hit,) = bank.retrieve(f"Install the {channel} toolchain for cart").hits
        pattern = pattern_of(hit.entry)
        assert channel in pattern.conditions
        assert pattern.calls[0].args == {"channel": FROM_TASK, "target": FROM_TASK, "flag": flag}


def test_a_number_of_the_task_that_no_call_uses_is_left_open_for_equal_calls_only(bank: ReasoningBank) -> None:
    for number in range(1, 6):
        learn(bank, f"Publish release {number}", "publish", mode="live")
    learn(bank, "Publish release 6", "publish", mode="dry")
    assert tasks_of(bank) == {"Publish release …", "Publish release 6"}
    for number in (1, 2, 3):
        learn(bank, f"Deploy v2 as ticket T-{number}", "deploy", flag="--force")
    assert "Deploy v2 as ticket …" in tasks_of(bank)


@pytest.mark.parametrize("words", [("small", "large"), ("public", "internal"), ("summer", "winter")])
def test_words_that_decide_are_told_apart_before_anything_is_general(
    bank: ReasoningBank, words: tuple[str, str]
) -> None:
    for word, value in zip(words, ("A7", "Q2"), strict=True):
        learn(bank, f"Print the {word} menu for Ivo", "print", menu=word, paper=value)
    for word, value in zip(words, ("A7", "Q2"), strict=True):
        (hit,) = bank.retrieve(f"Print the {word} menu for Mia").hits
        assert pattern_of(hit.entry).calls[0].args["paper"] == value


def test_the_words_that_tasks_agree_on_are_put_back() -> None:
    shape = "Ship the … box to …"
    assert common_words(shape, ["Ship the red box to Ada", "Ship the red box to Bob"]) == "Ship the red box to …"
    assert common_words(shape, ["Ship the red box to Ada", "Ship the blue box to Ada"]) == "Ship the … box to Ada"
    assert common_words(shape, ["Send it"]) == shape
    many = "row … " * 60 + "and no more"
    assert common_words(many, ["row 7 " * 70]) == many


@pytest.mark.slow
def test_consolidating_after_every_task_does_not_slow_down_what_a_changed_rule_needs(
    bank: ReasoningBank, clock: Clock
) -> None:
    """First one way round works, then the other; both have been seen to fail before."""

    def lived(every: bool) -> list[bool]:
        first_try = []
        for number in range(40):
            clock.forward(hours=1)
            right = "up" if number < 20 else "down"

            def agent(work: Work, right: str = right) -> Any:
                told = [call.args["way"] for hit in work.hits for call in pattern_of(hit.entry).calls]
                tries = list(dict.fromkeys([*told, "down", "up"]))
                tries = tries[: tries.index(right) + 1]
                first_try.append(len(tries) == 1)
                return [a_call("scale", error="" if way == right else "422", way=way) for way in tries]

            name = f"{'e' if every else 'n'}{number % 7}"
            bank.run_task(task_id=str(number), query=f"Scale {name} tonight", domain=str(every).lower(), execute=agent)
            if every:
                bank.consolidate()
        return first_try[20:]

    assert sum(lived(every=True)) >= sum(lived(every=False)) >= 17


def test_what_a_caller_got_wrong_is_one_clear_error(bank: ReasoningBank) -> None:
    with pytest.raises(InvalidInput, match="k"):
        bank.run_task(task_id="t", query="q", k=0, execute=lambda _: None)
    with pytest.raises(InvalidInput, match="reinforced"):
        bank.tasks(state="lost")
    assert bank.sharing.learn_from_peer("second") == []
    with pytest.raises(InvalidInput, match="another agent"):
        bank.sharing.learn_from_peer("a1")
    for text in ("Always retry the upload.", "Never retry the upload."):
        bank.memory.remember(text, layer="agent", kind="strategy", confidence=0.5, scope=AGENT)
    bank.consolidate()
    (review,) = bank.reviews.questions()
    with pytest.raises(InvalidInput, match=r"'scope' does not answer this.*keep_both where each holds for other tasks"):
        bank.reviews.decide(review.key, "scope")


def test_commands_are_shown_as_they_are(bank: ReasoningBank) -> None:
    command = "make build 2>&1 && cat <<EOF > a.txt"
    learn(bank, "Build it </memories> now", "Bash", command=command)
    block = bank.begin(task_id="t", query="Build it now").context()
    assert command in block
    assert block.count("</memories>") == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Always cache API responses", "Never cache authentication responses"),
        ("Scale up the workers at night.", "Scale down the workers at night."),
        ("Deploy the site on Monday.", "Deploy the site on Friday."),
    ],
)
def test_advice_that_contradicts_is_put_before_people(one: str, other: str) -> None:
    with Memory.open(":memory:", background=False) as memory:  # with the bundled vectors
        bank = ReasoningBank(memory, scope=AGENT)
        for text, sure in ((one, 0.75), (other, 0.85)):
            memory.remember(text, layer="agent", kind="strategy", confidence=sure, scope=AGENT)
        assert bank.consolidate().counts["flag"] == 1
        (review,) = bank.reviews.questions()
        assert {entry.text for entry in review.entries} == {one, other}

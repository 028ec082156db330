"""Learning in a world with hidden rules: with the bank an agent succeeds more often, with an empty one as without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evals import bank, bank_real
from evals.bank_agent import CHECK, TRIES, Read, attempt, read
from evals.bank_judged import judged
from evals.bank_report import BankReport
from evals.bank_traces import load
from evals.bank_world import FAMILIES, Call, World, kinds, tasks

from wellworn.core.errors import InvalidInput
from wellworn.tasks import trajectory_of
from wellworn.tasks.patterns import from_failure, from_success

from .shared import shared_data

FAST = ("without", "empty", "in order", "shuffled", "successes only")


@pytest.fixture(scope="module")
def lived() -> BankReport:
    return bank.run(bank.Settings(tasks=108, seeds=2, embedder="hash", ways=FAST))


def test_the_bank_beats_none_in_order_and_shuffled(lived: BankReport) -> None:
    for way in ("in order", "shuffled"):
        gain = lived.gain(way)
        assert gain.low > 10, f"{way}: learning is dead: {gain}"
        assert lived.calls(way) < lived.calls("without")


def test_every_family_gains(lived: BankReport) -> None:
    alone, helped = (lived.as_json()["ways"][way]["by_family"] for way in ("without", "shuffled"))
    for family in FAMILIES:
        assert helped[family]["mean"] > alone[family]["mean"] + 5, family


def test_it_comes_with_time_and_not_without_the_bank(lived: BankReport) -> None:
    first, *_, last = lived.quarters("shuffled")
    assert last.mean > first.mean + 10
    first, *_, last = lived.quarters("without")
    assert abs(last.mean - first.mean) < 15


def test_an_empty_bank_is_exactly_none(lived: BankReport) -> None:
    def by_task(way: str) -> list[Any]:
        return [(one.seed, one.number, one.given, one.steps) for one in lived.done[way]]

    assert by_task("empty") == by_task("without")
    assert all(one.given == 0 for one in lived.done["without"])


def test_the_first_of_a_kind_goes_as_it_would_without(lived: BankReport) -> None:
    """Nothing about a rule reaches the agent but through an item about it."""
    alone = {(one.seed, one.number): one.steps for one in lived.done["without"]}
    for way in ("in order", "shuffled", "successes only"):
        unaided = [one for one in lived.done[way] if not one.used]
        assert {(one.seed, one.kind) for one in unaided} == {(one.seed, one.kind) for one in lived.done[way]}
        assert all(one.steps == alone[one.seed, one.number] for one in unaided)


def test_a_run_repeats_and_tells_its_progress(lived: BankReport) -> None:
    seen: list[tuple[int, int]] = []
    settings = bank.Settings(tasks=20, seeds=1, embedder="hash", ways=("without", "shuffled"))
    once = bank.run(settings, progress=lambda done, of: seen.append((done, of)))
    assert once.as_json() == bank.run(settings).as_json()
    assert seen[-1] == (40, 40)


def test_every_way_can_be_lived_and_told() -> None:
    report = bank.run(bank.Settings(tasks=12, seeds=1, embedder="hash"))
    told = json.loads(json.dumps(report.as_json()))
    assert list(told["ways"]) == list(bank.WAYS)
    assert told["ways"]["empty"]["gain"] == {"mean": 0.0, "low": 0.0, "high": 0.0, "n": 12}
    assert [table.row_count for table in report.tables()] == [len(bank.WAYS)] * 2


@pytest.mark.parametrize("wrong", [{"tasks": 0}, {"seeds": 0}, {"ways": ("luck",)}])
def test_what_cannot_be_lived_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        bank.run(bank.Settings(**wrong))


# -- the world ---------------------------------------------------------------------------------------------------


def test_every_kind_has_exactly_one_right_way_and_its_own_rule() -> None:
    world = World(7)
    for kind in kinds():
        right = []
        for way in kind.ways:
            call = Call(kind.tool, {"name": "Ada", **dict(way.given)})
            right.append(world.answer(kind, list(way.before), call)["ok"])
        assert right.count(True) == 1, kind
    assert len({(kind.family, kind.tool) for kind in kinds()}) == 18


def test_refusals_say_nothing_about_the_rule() -> None:
    for kind in kinds():
        answers = {
            json.dumps(World(seed).answer(kind, [], Call(kind.tool, {"name": "Ada"}))["error"]) for seed in range(9)
        }
        assert len(answers) == 1


def test_shuffling_changes_the_order_alone() -> None:
    kept, shuffled = (tasks(3, 50, shuffled=mixed) for mixed in (False, True))
    assert kept != shuffled
    assert sorted(kept, key=lambda task: task.number) == sorted(shuffled, key=lambda task: task.number) == kept


# -- the agent ---------------------------------------------------------------------------------------------------


def test_the_agent_understands_what_the_rules_distil() -> None:
    """The words of every pattern that this world brings about, read back."""
    world = World(1)
    understood = 0
    for task in tasks(1, 108, shuffled=False):
        work = attempt(world, task, [], seed=1)
        trajectory = trajectory_of({"query": work["query"], "steps": work["steps"]})
        won = work["checks"][CHECK]
        for item in from_success(trajectory) if won else from_failure(trajectory):
            said = read(item.text)
            assert said.about(task.kind.tool), item.text
            assert bool(said.calls) == won, item.text
            if won:
                again = attempt(world, task, [item.text], seed=2)
                understood += again["checks"][CHECK]
                assert sum(step["tool"] == task.kind.tool for step in again["steps"]) <= TRIES
    assert understood > 10


def test_calling_something_else_without_an_error_is_no_success() -> None:
    task = tasks(1, 18, shuffled=False)[0]
    done = attempt(World(1), task, ["This worked: fetch_audit_log()."] * 3, seed=1, gullible=True, tries=1)
    assert done["steps"][-1]["ok"]
    assert done["checks"] == {CHECK: False}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (
            'For tasks like “Make … (x=1)”: Call f(a=[from the task], b="x, (y)"). f failed with b="z": “no”.',
            Read(calls=(Call("f", {"a": "[from the task]", "b": "x, (y)"}),), failed=(Call("f", {"b": "z"}),)),
        ),
        (
            "First wait(seconds=5), then g(); then call f(): before that it failed with “busy”.",
            Read(calls=(Call("wait", {"seconds": 5}), Call("g"), Call("f"))),
        ),
        ("This worked: g() → f(n=2.5).", Read(calls=(Call("g"), Call("f", {"n": 2.5})))),
        ("Try f() again when it fails with “busy”: it worked at try 2.", Read(calls=(Call("f"),))),
        ('Do not rely on f(b="z"): it failed with “no”.', Read(failed=(Call("f", {"b": "z"}),))),
        ("Be careful.", Read()),
    ],
)
def test_what_items_say(text: str, meant: Read) -> None:
    assert read(text) == meant


# -- real trajectories -------------------------------------------------------------------------------------------


def test_small_files_of_both_sets(tmp_path: Path) -> None:
    call = {"id": "c", "function": {"name": "book", "arguments": '{"to": "SEA"}'}}
    runs = [
        {
            "task_id": 1,
            "trial": trial,
            "reward": float(trial),
            "traj": [
                {"role": "user", "content": f"A flight to Seattle, please ({trial})"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": "booked" if trial else "Error: full"},
                {"role": "assistant", "content": "Done."},
            ],
        }
        for trial in (0, 1)
    ]
    (tmp_path / "air.json").write_text(json.dumps(runs), encoding="utf-8")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "react.txt").write_text(
        "BEGIN TRIAL 1\n------------- BEGIN CORRECT AGENTS -------------\n\nQuestion: Who?\nThought 1: Look.\n"
        "Action 1: Search[X]\nObservation 1: Could not find [X].\nThought 2: So.\nAction 2: Finish[Y]\n"
        "Observation 2: Answer is CORRECT\nCorrect answer: Y\n\n------------- BEGIN HALTED AGENTS --------------\n\n"
        "Question: When?You have attempted to answer following question before\nThought 1: Hm.\nAction 1: Wait\n"
        "####\nBEGIN TRIAL 2\n",
        encoding="utf-8",
    )
    found = load(tmp_path)
    assert [(one.task, one.success) for one in found["hotpotqa"]] == [("Who?", True), ("When?", False)]
    assert "CORRECT" not in found["hotpotqa"][0].trajectory.text
    assert [one.trajectory.steps[0].failed for one in found["taubench"]] == [True, False]
    tau, hotpot = bank_real.run(tmp_path, embedder="hash")
    given, assumed = tau.judged
    assert (given.majority, given.accuracy.mean, given.successes.count) == (50.0, 50.0, 0)
    assert assumed.ranking == 100.0
    assert tau.found["the bank"].at[1].mean == tau.found["plain similarity"].mrr.mean == 100.0
    assert hotpot.found == {}
    assert sum(row.traces for row in hotpot.judged) == 4
    assert [table.row_count for table in bank_real.tables([tau, hotpot])] == [len(tau.judged) + len(hotpot.judged), 3]
    assert len(json.loads(json.dumps(bank_real.document([tau, hotpot])))["sets"]) == 2


def test_results_belong_to_the_call_before_them_and_attempts_count_once(tmp_path: Path) -> None:
    """Real files give several calls the same id, and list what was solved again in every later trial."""
    calls = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "same", "function": {"name": name, "arguments": "{}"}}],
        }
        for name in ("pay", "book")
    ]
    answers = [{"role": "tool", "tool_call_id": "same", "content": text} for text in ("Error: no card", "booked")]
    talk = [
        {"role": "user", "content": "Book"},
        calls[0],
        answers[0],
        {"role": "user", "content": "Use the other"},
        calls[1],
        answers[1],
        {"role": "user", "content": "###STOP###"},
    ]
    run = {"task_id": 1, "trial": 0, "reward": 1.0, "traj": talk}
    (tmp_path / "a.json").write_text(json.dumps([run, {**run, "trial": 1}]), encoding="utf-8")
    ((only,),) = load(tmp_path).values()
    assert [(step.action, step.failed, step.text) for step in only.trajectory.steps] == [
        ("pay", True, ""),
        ("", False, "User: Use the other"),
        ("book", False, ""),
    ]


def test_a_folder_without_trajectories_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no labelled trajectories"):
        load(tmp_path)
    with pytest.raises(InvalidInput, match="no folder"):
        load(tmp_path / "none")


def test_real_trajectories_are_read_whole() -> None:
    found = {**load(shared_data("taubench")), **load(shared_data("reflexion"))}
    assert {name: len(traces) for name, traces in found.items()} == {"taubench": 100, "hotpotqa": 301}
    assert sum(one.success for one in found["taubench"]) == 49
    assert sum(one.success for one in found["hotpotqa"]) == 51
    assert all(one.trajectory.steps for one in found["hotpotqa"])
    assert not any("Answer is" in step.result for one in found["hotpotqa"] for step in one.trajectory.steps)


def test_a_sibling_is_found_far_more_often_than_by_chance() -> None:
    (tau,) = bank_real.run(shared_data("taubench"))
    assert tau.found["the bank"].at[1].low > 5 * tau.chance
    assert tau.taught > 80


def test_sure_verdicts_on_tasks_that_were_set_aside_are_mostly_right() -> None:
    """What is unsure teaches nothing; what does teach must be right, also where no weight was set."""
    for name, folder in (("hotpotqa", "reflexion"), ("taubench", "taubench")):
        rows = judged(name, load(shared_data(folder))[name])
        (aside,) = [row for row in rows if (row.half, row.reading) == ("aside", "as given")]
        assert aside.teaches.right.mean >= 70, aside
        assert aside.ranking is not None
        assert aside.ranking > 50
        if name == "hotpotqa":
            assert aside.teaches.count >= 0.4 * aside.traces
            assert aside.teaches.right.mean > aside.majority + 5

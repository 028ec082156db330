"""reflect, jobs, costs, session end."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import LIVES, Cli


@pytest.fixture
def told(cli: Cli) -> Cli:
    cli.ok("session", "add", "user", "I live in Oslo.", "--session-id", "s1", "--at", "2026-05-01")
    return cli


def test_reflecting_writes_once(told: Cli) -> None:
    answer = told.ok("reflect")
    assert "wrote 1 add (by rules)" in answer.err
    assert [entry["turn_refs"] for entry in told.json("list", "--kind", "fact")["entries"]] == [[0]]
    assert "Nothing new to reflect on" in told.ok("reflect").err
    assert "1 same" in told.ok("reflect", "--again").err


def test_a_model_is_asked_and_its_calls_are_in_the_ledger(told: Cli, scripted: Any) -> None:
    answer = told.ok("reflect", "--llm", scripted(extract=[LIVES, "NO_TRAIT"]))
    assert "by scripted" in answer.err
    (spent,) = told.json("admin", "costs")["spent"]
    assert (spent["key"], spent["calls"]) == (["extract", "scripted"], 1)
    assert "scripted" in told.ok("admin", "costs", "--by", "model").out
    assert told.json("admin", "costs", "--tenant", "other")["spent"] == []


def test_what_a_model_made_up_is_told_as_dropped(told: Cli, scripted: Any) -> None:
    made_up = {"extracted_memories": [{"summary": "The user owns a yacht in Monaco.", "reference": [0]}]}
    answer = told.ok("reflect", "--llm", scripted(extract=[made_up]))
    assert "rejected 1 not in the evidence" in answer.err
    assert told.json("list", "--kind", "fact")["entries"] == []


def test_ending_a_session_prints_its_memories_or_leaves_them_for_later(told: Cli) -> None:
    assert told.ok("session", "end", "s1", "--later").out == ""
    assert [job["state"] for job in told.json("jobs", "list")["jobs"]] == ["queued"]
    assert told.json("jobs", "run") == {"done": 1}
    assert [job["state"] for job in told.json("jobs", "list", "--state", "done")["jobs"]] == ["done"]
    told.ok("session", "add", "user", "I have a dog called Rex.", "--session-id", "s1")
    assert "Rex" in told.ok("session", "end", "s1").out


def test_ending_what_is_not_there_is_not_found(cli: Cli) -> None:
    cli.remember("x")
    answer = cli("session", "end", "nobody")
    assert answer.code == 1
    assert "nobody" in answer.err


def test_a_dead_job_is_listed_with_its_reason_and_tried_again(told: Cli, scripted: Any) -> None:
    told.ok("session", "end", "s1", "--later")
    told.ok("jobs", "run", "--llm", scripted(extract=[]))  # a script that is over: it fails, and not only for now
    (job,) = told.json("jobs", "list", "--state", "dead")["jobs"]
    assert "ModelFailed" in job["error"]
    assert told.json("jobs", "retry", job["id"]) == {"retried": 1}
    told.ok("jobs", "run")
    assert len(told.json("list", "--kind", "fact")["entries"]) == 1
    assert told.json("jobs", "retry", "--all") == {"retried": 0}


@pytest.mark.parametrize(
    "args", [("jobs", "retry"), ("jobs", "retry", "x", "--all"), ("admin", "costs", "--by", "moon")]
)
def test_what_cannot_be_meant_is_one_clear_error(told: Cli, args: tuple[str, ...]) -> None:
    answer = told(*args)
    assert answer.code == 2
    assert answer.err.count("\n") <= 2

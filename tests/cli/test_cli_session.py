"""session add, list, show and end; reflect; jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import LIVES, Cli


def test_a_turn_can_be_recalled_at_once(cli: Cli) -> None:
    said = cli.json("session", "add", "user", "I ran the charity race", "--session-id", "s1", "--at", "2026-05-01")
    hit = cli.json("recall", "charity race")["hits"][0]["entry"]
    assert said == {"session_id": "s1", "ids": [hit["id"]]}
    assert (hit["session_id"], hit["turn_refs"], hit["kind"]) == ("s1", [0], "episode")
    assert hit["at"] == "2026-05-01T00:00:00Z"
    cli.ok("session", "add", "user", "--session-id", "s1", stdin="I baked bread")
    assert "I baked bread" in cli.ok("session", "show", "s1").out


def test_a_dialogue_comes_in_as_json_lines(cli: Cli) -> None:
    lines = [
        {"role": "user", "text": "I ran a race", "at": "2026-05-01T09:00"},
        {"role": "assistant", "text": "How far?"},
        {"role": "user", "text": "Five miles", "speaker": "Ada"},
    ]
    text = "\n\n".join(json.dumps(line) for line in lines)
    assert len(cli.json("session", "add", "--session-id", "s1", stdin=text)["ids"]) == 3
    turns = cli.json("session", "show", "s1")["turns"]
    assert [(turn["number"], turn["text"]) for turn in turns] == [(n, line["text"]) for n, line in enumerate(lines)]
    assert (turns[0]["at"], turns[2]["speaker"]) == ("2026-05-01T09:00:00Z", "Ada")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("not json", "line 2: is not JSON"),
        ("[1]", "line 2: is a list"),
        ('{"role": "user"}', "line 2: Object missing required field `text`"),
        ('{"role": "user", "text": "x", "mood": "fine"}', "line 2: has unknown fields ['mood']"),
        ('{"role": "user", "text": "later", "at": "soon"}', "1 turns before it were added"),
    ],
)
def test_a_bad_line_is_named(cli: Cli, line: str, message: str) -> None:
    cli.remember("there already")
    answer = cli("session", "add", "--session-id", "s1", stdin='{"role": "user", "text": "fine"}\n' + line)
    assert (answer.code, message in answer.err) == (2, True)
    assert cli.json("session", "list") == {"sessions": ["s1"] * ("before" in message)}


def test_sessions_are_listed_one_a_line(cli: Cli) -> None:
    for session_id in ("monday", "tuesday"):
        said = ("--at", "2019-01-02T03:04", "--session-id", session_id)
        cli.ok("session", "add", "user", f"hello on {session_id}", *said)
    rows = [line.split() for line in cli.ok("session", "list").out.splitlines() if "day" in line]
    assert rows == [[name, "1", "2019-01-02", "03:04", "UTC"] for name in ("monday", "tuesday")]


# -- reflection --------------------------------------------------------------------------------------------------


@pytest.fixture
def told(cli: Cli) -> Cli:
    cli.ok("session", "add", "user", "I live in Oslo.", "--session-id", "s1", "--at", "2026-05-01")
    return cli


def test_reflecting_writes_once(told: Cli) -> None:
    assert "wrote 1 add (by rules)" in told.ok("reflect").err
    assert [entry["turn_refs"] for entry in told.json("list", "--kind", "fact")["entries"]] == [[0]]
    assert "Nothing new to reflect on" in told.ok("reflect").err
    assert "1 same" in told.ok("reflect", "--again").err


def test_a_model_is_asked_its_calls_are_in_the_ledger_and_what_it_made_up_is_dropped(told: Cli, scripted: Any) -> None:
    made_up = {"extracted_memories": [{"summary": "The user owns a yacht in Monaco.", "reference": [0]}]}
    assert "rejected 1 not in the evidence" in told.ok("reflect", "--llm", scripted(extract=[made_up])).err
    assert told.json("list", "--kind", "fact")["entries"] == []
    assert "by scripted" in told.ok("reflect", "--again", "--llm", scripted(extract=[LIVES, "NO_TRAIT"])).err
    (spent,) = told.json("admin", "costs")["spent"]
    assert (spent["key"], spent["calls"]) == (["extract", "scripted"], 2)
    assert "scripted" in told.ok("admin", "costs", "--by", "model").out
    assert told.json("admin", "costs", "--tenant", "other")["spent"] == []


def test_ending_a_session_prints_its_memories_or_leaves_them_for_later(told: Cli) -> None:
    assert told.ok("session", "end", "s1", "--later").out == ""
    assert [job["state"] for job in told.json("jobs", "list")["jobs"]] == ["queued"]
    assert told.json("jobs", "run") == {"done": 1}
    assert [job["state"] for job in told.json("jobs", "list", "--state", "done")["jobs"]] == ["done"]
    told.ok("session", "add", "user", "I have a dog called Rex.", "--session-id", "s1")
    assert "Rex" in told.ok("session", "end", "s1").out


def test_a_dead_job_is_listed_with_its_reason_and_tried_again(told: Cli, scripted: Any) -> None:
    told.ok("session", "end", "s1", "--later")
    told.ok("jobs", "run", "--llm", scripted(extract=[]))  # a script that is over: it fails, and not only for now
    (job,) = told.json("jobs", "list", "--state", "dead")["jobs"]
    assert "ModelFailed" in job["error"]
    assert told.json("jobs", "retry", job["id"]) == {"retried": 1}
    told.ok("jobs", "run")
    assert len(told.json("list", "--kind", "fact")["entries"]) == 1
    assert told.json("jobs", "retry", "--all") == {"retried": 0}
    for line in ("jobs retry", "jobs retry x --all", "admin costs --by moon"):
        answer = told(*line.split())
        assert (answer.code, answer.err.count("\n") <= 2) == (2, True)

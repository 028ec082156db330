"""bank status, list, show, retrieve, judge, demo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Cli

WORK = {
    "query": "Create user bob",
    "steps": [
        {"tool": "create_user", "args": {"name": "bob", "role": "Admin"}, "error": "400 invalid role"},
        {"tool": "create_user", "args": {"name": "bob", "role": "admin"}, "ok": True},
    ],
}
CLERK = ("--agent", "clerk")


def record(cli: Cli, **change: Any) -> Any:  # what the hook prints
    given = json.dumps({**WORK, **change})
    return cli.json("hook", "post-task", "--task-id", "t1", "--domain", "web.admin", *CLERK, stdin=given)


@pytest.fixture
def taught(cli: Cli) -> Cli:
    assert record(cli)["state"] == "reinforced"
    return cli


def test_status_counts_items_and_tasks(taught: Cli) -> None:
    status = taught.json("bank", "status", *CLERK)
    assert (status["items"], status["tasks"], status["successes"], status["success_rate"]) == (2, 1, 1, 1.0)
    shown = taught.ok("bank", "status", *CLERK).out
    assert "2 strategy" in shown
    assert "1 of 1 100%" in shown


def test_list_filters_and_sorts(taught: Cli) -> None:
    record(taught, verdict="failure", steps=[{"tool": "f", "args": {}, "error": "x"}])
    found = taught.json("bank", "list", *CLERK)["items"]
    assert {item["kind"] for item in found} == {"strategy", "guardrail"}
    assert len(taught.json("bank", "list", "--kind", "guardrail", "--domain", "web.*", *CLERK)["items"]) == 1
    assert taught.json("bank", "list", "--domain", "db", *CLERK)["items"] == []
    assert len(taught.json("bank", "list", "--limit", "1", "--sort", "created", *CLERK)["items"]) == 1
    assert "create_user" in taught.ok("bank", "list", *CLERK).out
    assert taught("bank", "list", "--sort", "luck", *CLERK).code == 2
    assert "nothing was learned yet" in taught.ok("bank", "list", "--agent", "other").err


def test_show_says_what_it_rests_on(taught: Cli) -> None:
    item = taught.json("bank", "list", *CLERK)["items"][0]
    shown = taught.json("bank", "show", item["id"], *CLERK)
    assert (shown["origin"]["task"], shown["stage"]) == ("t1", "stored")
    assert "400 invalid role" in taught.ok("bank", "show", item["id"], *CLERK).out or "create_user" in item["evidence"]
    assert taught("bank", "show", "nope", *CLERK).code == 1
    assert taught("bank", "show", item["id"], "--agent", "other").code == 1


def test_retrieve_explains(taught: Cli) -> None:
    recall = taught.json("bank", "retrieve", "Create user eve", "--domain", "web.*", *CLERK)
    assert len(recall["hits"]) == 1
    assert len(taught.json("bank", "retrieve", "Create user eve", "--k", "5", *CLERK)["hits"]) == 2
    explained = taught.ok("bank", "retrieve", "Create user eve", "--explain", *CLERK).out
    assert all(name in explained for name in ("similarity", "recency", "reliability", "diversity"))
    assert taught.json("bank", "retrieve", "x", "--min-confidence", "0.9", *CLERK)["hits"] == []
    assert "nothing helps" in taught.ok("bank", "retrieve", "x", "--kind", "guardrail", *CLERK).err


def test_judge_reads_a_file_or_standard_input_and_keeps_nothing(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "work.json"
    path.write_text(json.dumps(WORK), encoding="utf-8")
    assert cli.json("bank", "judge", str(path))["verdict"]["success"] is True
    judged = cli.json("bank", "judge", "--items", stdin=json.dumps({**WORK, "exit_code": 1}))
    assert judged["verdict"]["reasons"] == ["exit code 1"]
    assert judged["items"] == [] or judged["items"][0]["kind"] == "guardrail"
    assert "success" in cli.ok("bank", "judge", str(path), "--items").out
    assert cli.json("bank", "status")["tasks"] == 0
    assert cli("bank", "judge", stdin="not json").code == 2
    assert cli("bank", "judge", str(tmp_path / "none.json")).code == 2


def test_judge_asks_a_model_and_says_when_it_could_not(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "replies.json"
    script.write_text(json.dumps({"judge": ['{"success": false, "reasons": ["the role is wrong"]}', "no"]}))
    said = cli.ok("bank", "judge", "--llm", f"scripted:{script}", stdin=json.dumps(WORK))
    assert "the role is wrong" in said.out
    script.write_text(json.dumps({"judge": ["no idea"]}))
    assert "rules answered" in cli.ok("bank", "judge", "--llm", f"scripted:{script}", stdin=json.dumps(WORK)).err


def test_the_demo_learns(cli: Cli, tmp_path: Path) -> None:
    shown = cli.json("bank", "demo")
    assert shown["with"] > shown["without"]
    assert "with it 9" in cli.ok("bank", "demo").err
    assert not [*tmp_path.iterdir()]


def test_empty_states_say_how_to_go_on(taught: Cli) -> None:
    other = ("--agent", "other")
    for command in (["status"], ["list"]):
        assert "wellworn hook post-task" in taught.ok("bank", *command, *other).err
    assert "bank status names the domains" in taught.ok("bank", "list", "--domain", "db", *CLERK).err
    assert taught.ok("bank", "list", *other).out == ""
    assert "bank list" in taught.ok("bank", "retrieve", "x", *other).err
    assert "bank consolidate makes one" in taught.ok("bank", "runs", *CLERK).err
    assert "--min-usage" in taught.ok("bank", "learn-from", "clerk", *other).err


def test_what_is_misspelt_is_named(taught: Cli) -> None:
    for command in (["list"], ["retrieve", "x"]):
        wrong = taught("bank", *command, "--kind", "stratgy", *CLERK)
        assert wrong.code == 2
        assert "'stratgy' is no kind of item (use strategy or guardrail)" in wrong.err
    assert "standard input: is empty" in taught("bank", "judge", stdin="").err
    assert "'clerk' is not another agent" in taught("bank", "learn-from", "clerk", *CLERK).err

"""tasks status, list, retrieve, judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.consolidation_world import AGENT, learn, opened
from wellworn import Memory
from wellworn.tasks.consolidate import Consolidator
from wellworn.tasks.engine import Parts

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
    status = taught.json("tasks", "status", *CLERK)
    assert (status["items"], status["tasks"], status["successes"], status["success_rate"]) == (1, 1, 1, 1.0)
    shown = taught.ok("tasks", "status", *CLERK).out
    assert "strategy 1" in shown
    assert "100%" in shown


def test_list_filters_and_sorts(taught: Cli) -> None:
    record(taught, verdict="failure", steps=[{"tool": "f", "args": {}, "error": "x"}])
    found = taught.json("tasks", "list", *CLERK)["items"]
    assert {item["kind"] for item in found} == {"strategy", "guardrail"}
    assert len(taught.json("tasks", "list", "--kind", "guardrail", "--domain", "web.*", *CLERK)["items"]) == 1
    assert taught.json("tasks", "list", "--domain", "db", *CLERK)["items"] == []
    assert len(taught.json("tasks", "list", "--limit", "1", *CLERK)["items"]) == 1
    assert "create_user" in taught.ok("tasks", "list", *CLERK).out
    assert "Nothing was learned yet" in taught.ok("tasks", "list", "--agent", "other").err


def test_retrieve_explains(taught: Cli) -> None:
    recall = taught.json("tasks", "retrieve", "Create user eve", "--domain", "web.*", *CLERK)
    assert len(recall["hits"]) == 1
    assert len(taught.json("tasks", "retrieve", "Create user eve", "--k", "5", *CLERK)["hits"]) == 1
    explained = taught.ok("tasks", "retrieve", "Create user eve", "--explain", *CLERK).out
    assert "similarity" in explained
    assert "Nothing helps" in taught.ok("tasks", "retrieve", "x", "--kind", "guardrail", *CLERK).err


def test_judge_reads_a_file_or_standard_input_and_keeps_nothing(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "work.json"
    path.write_text(json.dumps(WORK), encoding="utf-8")
    assert cli.json("tasks", "judge", str(path))["verdict"]["success"] is True
    judged = cli.json("tasks", "judge", "--items", stdin=json.dumps({**WORK, "exit_code": 1}))
    assert judged["verdict"]["reasons"] == ["exit code 1"]
    assert judged["items"] == [] or judged["items"][0]["kind"] == "guardrail"
    assert "success" in cli.ok("tasks", "judge", str(path), "--items").out
    assert cli.json("tasks", "status")["tasks"] == 0
    assert cli("tasks", "judge", stdin="not json").code == 2
    assert cli("tasks", "judge", str(tmp_path / "none.json")).code == 2


def test_judge_asks_a_model_and_says_when_it_could_not(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "replies.json"
    script.write_text(json.dumps({"judge": ['{"success": false, "reasons": ["the role is wrong"]}', "no"]}))
    said = cli.ok("tasks", "judge", "--llm", f"scripted:{script}", stdin=json.dumps(WORK))
    assert "the role is wrong" in said.out
    script.write_text(json.dumps({"judge": ["no idea"]}))
    assert "Rules answered" in cli.ok("tasks", "judge", "--llm", f"scripted:{script}", stdin=json.dumps(WORK)).err


def test_empty_states_say_how_to_go_on_and_what_is_misspelt_is_named(taught: Cli) -> None:
    other = ("--agent", "other")
    for command in (["status"], ["list"]):
        assert "wellworn hook post-task" in taught.ok("tasks", *command, *other).err
    assert "names the domains" in taught.ok("tasks", "list", "--domain", "db", *CLERK).err
    assert "wellworn tasks list" in taught.ok("tasks", "retrieve", "x", *other).err
    for command in (["list"], ["retrieve", "x"]):
        wrong = taught("tasks", *command, "--kind", "stratgy", *CLERK)
        assert wrong.code == 2
        assert "'stratgy' is no kind of item (use strategy or guardrail)" in wrong.err
    assert "standard input: is empty" in taught("tasks", "judge", stdin="").err


def test_attempts_can_be_looked_at(taught: Cli) -> None:
    (task,) = taught.json("tasks", "tasks", *CLERK)["tasks"]
    assert (task["task_id"], task["state"], len(task["entry_ids"])) == ("t1", "reinforced", 1)
    assert "Create user bob" in taught.ok("tasks", "tasks", "--state", "reinforced", *CLERK).out
    assert taught("tasks", "tasks", "--state", "lost", *CLERK).code == 2


def test_resume_gives_up_work_that_is_lost(cli: Cli) -> None:
    cli.ok("hook", "pre-task", "--task-id", "t9", "--query", "Create user bob", *CLERK)
    assert "Nothing was interrupted" in cli.ok("tasks", "resume", *CLERK).err
    (lost,) = cli.json("tasks", "resume", "--idle-minutes", "0", *CLERK)["resumed"]
    assert (lost["task_id"], lost["state"]) == ("t9", "abandoned")


def test_a_hook_runs_the_consolidation_that_is_due(cli: Cli) -> None:
    for number in range(21):
        record(cli, query=f"Pack box {number}x", steps=[{"tool": f"pack{number}", "args": {}, "ok": True}])
    (job,) = cli.json("jobs", "list", *CLERK)["jobs"]
    assert (job["kind"], job["state"]) == ("consolidate", "done")


def test_what_a_hook_learned_is_shared_after_a_person_has_read_it(taught: Cli) -> None:
    (item,) = taught.json("tasks", "list", *CLERK)["items"]
    record(
        taught, trusted=False, query="Rename user bob", steps=[{"tool": "rename", "args": {"name": "bob"}, "ok": True}]
    )
    (id,) = [one["id"] for one in taught.json("tasks", "list", *CLERK)["items"] if one["id"] != item["id"]]
    share = ("tasks", "share", id, "--team", "ops", "--to", "team", *CLERK)
    (refused,) = taught.json(*share)["shares"]
    assert "untrusted" in refused["refused"]
    taught.ok("tasks", "review", id, "--decide", "correct", *CLERK)
    (shared,) = taught.json(*share)["shares"]
    assert (shared["refused"], bool(shared["copy_id"])) == ("", True)


# -- consolidate, undo, review, share and revoke -----------------------------------------------------------------------

RETRY, NEVER = "Always retry the request after a 429 response.", "Never retry the request after a 429 response."
TOKEN = "When the login form has a CSRF token, read it first and send it with the POST"
PROVEN = "Open the cart, then apply the code."
SCOPE = ("--tenant", "acme", "--agent", "solver", "--team", "ops")


@pytest.fixture
def bank(cli: Cli) -> Cli:
    """An agent's bank: a duplicate, a contradiction, and something proven."""
    with Memory.open(cli.db, embedder="hash", background=False) as mem:
        for text in (TOKEN, TOKEN + ".", RETRY, NEVER):
            learn(mem, text)
        learn(mem, PROVEN, confidence=0.9, usage_count=60, success_count=50, failure_count=5)
    return cli


def ids(cli: Cli, *states: str) -> dict[str, str]:
    """Text → id of the agent's entries."""
    own = ("--tenant", "acme", "--agent", "solver")
    found = cli.json("list", *own, *(part for state in states for part in ("--state", state)))
    return {entry["text"]: entry["id"] for entry in found["entries"]}


def test_consolidate_says_what_it_did(bank: Cli) -> None:
    answer = bank.ok("tasks", "consolidate", *SCOPE)
    assert "merge" in answer.out
    assert "1 merge" in answer.err
    assert "no change" in bank.ok("tasks", "consolidate", *SCOPE).err


def test_review_lists_questions_and_takes_a_decision(bank: Cli) -> None:
    bank.ok("tasks", "consolidate", *SCOPE, "--embedder", "hash")
    reviews = bank.json("tasks", "review", *SCOPE)["reviews"]
    [case] = reviews
    assert NEVER in bank.ok("tasks", "review", *SCOPE).out
    keep = ids(bank)[NEVER]
    answer = bank.ok("tasks", "review", case["key"], "--decide", "keep_one", "--keep", keep, *SCOPE)
    assert "Decided: keep_one" in answer.err
    assert bank.json("tasks", "review", *SCOPE)["reviews"] == []
    assert RETRY not in ids(bank, "active")


@pytest.mark.parametrize(("options", "says"), [(("KEY",), "together"), (("nobody", "--decide", "keep_both"), "nobody")])
def test_a_decision_that_is_not_one_is_refused(bank: Cli, options: tuple[str, ...], says: str) -> None:
    answer = bank("tasks", "review", *options, *SCOPE)
    assert answer.code in (1, 2)
    assert says in answer.err


def test_share_and_revoke(bank: Cli) -> None:
    bank.ok("tasks", "consolidate", *SCOPE)
    proven, other = ids(bank)[PROVEN], ids(bank)[TOKEN]
    shares = bank.json("tasks", "share", proven, other, "--to", "team", *SCOPE)["shares"]
    assert [bool(share["copy_id"]) for share in shares] == [True, False]
    assert "is not promoted" in bank.ok("tasks", "share", other, "--to", "team", *SCOPE).out
    team = ("--tenant", "acme", "--team", "ops")
    assert [entry["text"] for entry in bank.json("list", *team)["entries"]] == [PROVEN]
    assert bank.json("tasks", "revoke", proven, *SCOPE)["revoked"] == [shares[0]["copy_id"]]
    assert bank.json("list", *team, "--state", "active")["entries"] == []


def test_jobs_run_consolidates_what_is_due(bank: Cli) -> None:
    with opened(bank.db, embedder="hash") as mem, mem.engine.store.transact() as tx:
        Consolidator(Parts(mem, AGENT, "mask")).added(tx, AGENT.home("agent"), 20)
    assert bank.json("jobs", "run", "--tenant", "acme")["done"] == 1
    assert "no change" in bank.ok("tasks", "consolidate", *SCOPE).err

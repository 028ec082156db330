"""`wellworn tasks`: consolidate, undo, review, share and revoke from a shell."""

from __future__ import annotations

import pytest

from tasks.consolidation_world import AGENT, learn, opened
from wellworn import Memory
from wellworn.tasks.consolidate import Consolidator
from wellworn.tasks.engine import Parts

from .conftest import Cli

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

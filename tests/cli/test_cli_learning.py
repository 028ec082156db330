"""outcome, and learning status, replay, share, reset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Cli

FACTS = ("Ada prefers tokio over async-std.", "Bob keeps bees in Porto.", "Ada trains for the marathon.")


@pytest.fixture
def filled(cli: Cli) -> Cli:
    for fact in FACTS:
        cli.remember(fact)
    return cli


def recall_id(cli: Cli, query: str = "which runtime does Ada like?") -> str:
    found: str = cli.json("recall", query)["id"]
    return found


def test_recall_prints_the_id_that_outcome_takes_and_places_count_from_0_as_in_the_prompt(filled: Cli) -> None:
    answer = filled.ok("recall", "tokio", "-k", "2")
    id = answer.err.split("wellworn outcome ")[1].split()[0]
    assert filled.json("outcome", id, "--cited", "0") == {"recall_id": id, "counted": True}
    rows = [row.split()[0] for row in answer.out.splitlines() if row.strip()[:2] in ("0 ", "1 ", "2 ")]
    assert rows == ["0", "1"]


def test_every_kind_counts_once(filled: Cli) -> None:
    for said in ("--cited 0,2", "--none", "--used 0.8", "--ignored", "--refined runtimes", "--success", "--failure"):
        asked = recall_id(filled)
        assert filled.json("outcome", asked, *said.split()) == {"recall_id": asked, "counted": True}
        assert "counted already" in filled.ok("outcome", asked, *said.split()).err


def test_unusable_outcomes_are_one_line(filled: Cli) -> None:
    asked = recall_id(filled)
    for said in ("", "--cited first", "--cited 9", "--cited -1", "--cited 0 --none", "--used 7", "--cited 0 --ignored"):
        answer = filled("outcome", asked, *said.split())
        assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1), said
    assert filled("outcome", asked, "--none", "--tenant", "other").code == 1


def test_status_and_replay_show_what_an_outcome_taught_and_reset_drops_it(filled: Cli) -> None:
    fresh = filled.json("learning", "status")
    assert (fresh["mode"], fresh["serving"], fresh["level"], fresh["outcomes"]) == ("on", "base", "base", 0)
    filled.ok("outcome", recall_id(filled), "--cited", "0")
    before = filled.json("learning", "status")
    assert before["outcomes"] == 1
    shown = filled.ok("learning", "status").out
    assert all(word in shown for word in ("serving", "base", "agreement", "user me"))
    assert filled.json("learning", "replay")["weights"] == before["weights"]
    assert any(before["weights"].values())
    assert filled.json("learning", "reset", "--yes")["dropped"] >= 1
    assert filled.json("learning", "status")["steps"] == filled.json("learning", "replay")["steps"] == 0


def test_replay_learns_labelled_pairs_and_names_the_line_of_a_broken_one(filled: Cli) -> None:
    right = filled.json("list")["entries"][0]["id"]
    line = json.dumps({"query": "which runtime does Ada like?", "ids": [right]})
    Path("pairs.jsonl").write_text(line + "\n", encoding="utf-8")
    for source in ("pairs.jsonl", "-"):
        assert filled.json("learning", "replay", "--pairs", source, stdin=line)["prior_steps"] == 1
    for line in ("nonsense", "[]", '{"query": "x"}', '{"query": "x", "ids": [7]}'):
        answer = filled("learning", "replay", "--pairs", "-", stdin=f"\n{line}\n")
        assert (answer.code, "line 2" in answer.err) == (2, True)


def test_a_tenant_can_leave_the_sharing(filled: Cli) -> None:
    assert filled.json("learning", "status")["shares"] is True
    assert filled.json("learning", "share", "--off") == {"tenant": "default", "shares": False}
    assert filled.json("learning", "status")["shares"] is False
    assert "learn from each other" in filled.ok("learning", "share", "--on").err

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


# -- outcome -----------------------------------------------------------------------------------------------------


def test_recall_prints_the_id_that_outcome_takes(filled: Cli) -> None:
    answer = filled.ok("recall", "which runtime does Ada like?")
    id = answer.err.split("wellworn outcome ")[1].split()[0]
    assert filled.json("outcome", id, "--cited", "0") == {"recall_id": id, "counted": True}


def test_places_count_from_0_as_in_the_prompt(filled: Cli) -> None:
    rows = filled.ok("recall", "tokio", "-k", "2").out.splitlines()
    assert [row.split()[0] for row in rows if row.strip()[:2] in ("0 ", "1 ", "2 ")] == ["0", "1"]


def test_every_kind_counts_once(filled: Cli) -> None:
    for said in ("--cited 0,2", "--none", "--used 0.8", "--ignored", "--refined runtimes", "--success", "--failure"):
        asked = recall_id(filled)
        assert filled.json("outcome", asked, *said.split()) == {"recall_id": asked, "counted": True}
        assert filled.json("outcome", asked, *said.split())["counted"] is False
        assert "counted already" in filled.ok("outcome", asked, *said.split()).err


@pytest.mark.parametrize(
    "said",
    [
        [],
        ["--cited", "first"],
        ["--cited", "9"],
        ["--cited", "-1"],
        ["--cited", "0", "--none"],
        ["--used", "7"],
        ["--cited", "0", "--ignored"],
    ],
)
def test_unusable_outcomes_are_one_line(filled: Cli, said: list[str]) -> None:
    answer = filled("outcome", recall_id(filled), *said)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("wellworn: ")
    assert answer.err.count("\n") == 1


def test_an_unknown_recall_and_one_of_another_tenant_are_refused(filled: Cli) -> None:
    assert filled("outcome", "no-such-recall", "--none").code == 1
    assert filled("outcome", recall_id(filled), "--none", "--tenant", "other").code == 1


# -- learn -------------------------------------------------------------------------------------------------------


def test_status_before_and_after_an_outcome(filled: Cli) -> None:
    fresh = filled.json("learning", "status")
    assert (fresh["mode"], fresh["serving"], fresh["level"], fresh["outcomes"]) == ("on", "base", "base", 0)
    filled.ok("outcome", recall_id(filled), "--cited", "0")
    assert filled.json("learning", "status")["outcomes"] == 1
    shown = filled.ok("learning", "status").out
    for word in ("serving", "base", "agreement", "user me"):
        assert word in shown


def test_replay_leads_to_the_same_weights(filled: Cli) -> None:
    filled.ok("outcome", recall_id(filled), "--cited", "0")
    before = filled.json("learning", "status")
    assert filled.json("learning", "replay")["weights"] == before["weights"]
    assert any(before["weights"].values())


def test_replay_learns_labelled_pairs(filled: Cli, tmp_path: Path) -> None:
    right = filled.json("list")["entries"][0]["id"]
    line = json.dumps({"query": "which runtime does Ada like?", "ids": [right]})
    (tmp_path / "pairs.jsonl").write_text(line + "\n", encoding="utf-8")
    assert filled.json("learning", "replay", "--pairs", "pairs.jsonl")["prior_steps"] == 1
    assert filled.json("learning", "replay", "--pairs", "-", stdin=line)["prior_steps"] == 1


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"query": "x"}', '{"query": "x", "ids": [7]}'])
def test_a_broken_pair_names_its_line(filled: Cli, line: str) -> None:
    answer = filled("learning", "replay", "--pairs", "-", stdin=f"\n{line}\n")
    assert answer.code == 2
    assert "line 2" in answer.err


def test_a_tenant_can_leave_the_sharing(filled: Cli) -> None:
    assert filled.json("learning", "status")["shares"] is True
    assert filled.json("learning", "share", "--off") == {"tenant": "default", "shares": False}
    assert filled.json("learning", "status")["shares"] is False
    assert "learn from each other" in filled.ok("learning", "share", "--on").err


def test_reset_drops_what_was_learned_and_a_replay_does_not_bring_it_back(filled: Cli) -> None:
    filled.ok("outcome", recall_id(filled), "--cited", "0")
    assert filled.json("learning", "reset", "--yes")["dropped"] >= 1
    assert filled.json("learning", "status")["steps"] == 0
    assert filled.json("learning", "replay")["steps"] == 0

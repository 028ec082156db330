"""outcome, and learn status, plot, replay, export, share, reset."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from wellworn.cli import chart, learn_plot
from wellworn.core.values import CurvePoint

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
    line = next(line for line in answer.err.splitlines() if line.startswith("recall "))
    assert "wellworn outcome" in line
    assert filled.json("outcome", line.split()[1], "--cited", "0")["counted"] is True


def test_places_count_from_0_as_in_the_prompt(filled: Cli) -> None:
    rows = filled.ok("recall", "tokio", "-k", "2").out.splitlines()
    assert [row.split()[0] for row in rows if row.strip()[:2] in ("0 ", "1 ", "2 ")] == ["0", "1"]


@pytest.mark.parametrize(
    "said",
    [
        ["--cited", "0,2"],
        ["--none"],
        ["--used", "0.8"],
        ["--ignored"],
        ["--refined", "runtimes"],
        ["--success"],
        ["--failure"],
    ],
)
def test_every_kind_counts_once(filled: Cli, said: list[str]) -> None:
    asked = recall_id(filled)
    assert filled.json("outcome", asked, *said) == {"recall_id": asked, "counted": True}
    assert filled.json("outcome", asked, *said)["counted"] is False
    assert "counted already" in filled.ok("outcome", asked, *said).err


def test_citing_is_a_use_and_success_makes_surer(filled: Cli) -> None:
    asked = filled.json("recall", "which runtime does Ada like?")
    best = asked["hits"][0]["entry"]
    filled.ok("outcome", asked["id"], "--cited", "0")
    filled.ok("outcome", asked["id"], "--success")
    entry = filled.json("show", best["id"])["entry"]
    assert entry["usage_count"] == best["usage_count"] + 1
    assert entry["confidence"] > best["confidence"]


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
    fresh = filled.json("learn", "status")
    assert (fresh["mode"], fresh["serving"], fresh["level"], fresh["outcomes"]) == ("on", "base", "base", 0)
    filled.ok("outcome", recall_id(filled), "--cited", "0")
    assert filled.json("learn", "status")["outcomes"] == 1
    shown = filled.ok("learn", "status").out
    for word in ("serving", "base", "agreement", "tenant default, user me"):
        assert word in shown


def test_replay_leads_to_the_same_weights(filled: Cli) -> None:
    filled.ok("outcome", recall_id(filled), "--cited", "0")
    before = filled.json("learn", "status")
    assert filled.json("learn", "replay")["weights"] == before["weights"]
    assert any(before["weights"].values())


def test_replay_learns_labelled_pairs(filled: Cli, tmp_path: Path) -> None:
    right = filled.json("list")["entries"][0]["id"]
    line = json.dumps({"query": "which runtime does Ada like?", "ids": [right]})
    (tmp_path / "pairs.jsonl").write_text(line + "\n", encoding="utf-8")
    assert filled.json("learn", "replay", "--pairs", "pairs.jsonl")["prior_steps"] == 1
    assert filled.json("learn", "replay", "--pairs", "-", stdin=line)["prior_steps"] == 1


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"query": "x"}', '{"query": "x", "ids": [7]}'])
def test_a_broken_pair_names_its_line(filled: Cli, line: str) -> None:
    answer = filled("learn", "replay", "--pairs", "-", stdin=f"\n{line}\n")
    assert answer.code == 2
    assert "line 2" in answer.err


def test_export_holds_numbers_and_no_text(filled: Cli, tmp_path: Path) -> None:
    filled.ok("outcome", recall_id(filled, "which runtime does Ada like?"), "--cited", "0")
    answer = filled.ok("learn", "export")
    assert answer.json
    assert "tokio" not in answer.out
    assert "runtime" not in answer.out
    said = filled.ok("learn", "export", "weights.json")
    assert said.out == ""
    assert json.loads((tmp_path / "weights.json").read_text(encoding="utf-8")) == answer.json


def test_a_tenant_can_leave_the_sharing(filled: Cli) -> None:
    assert filled.json("learn", "status")["shares"] is True
    assert filled.json("learn", "share", "--off") == {"tenant": "default", "shares": False}
    assert filled.json("learn", "status")["shares"] is False
    assert "learn from each other" in filled.ok("learn", "share", "--on").err


def test_reset_drops_what_was_learned_and_only_the_whole_log_brings_it_back(filled: Cli) -> None:
    filled.ok("outcome", recall_id(filled), "--cited", "0")
    learned = filled.json("learn", "status")
    assert filled.json("learn", "reset", "--yes")["dropped"] >= 1
    assert filled.json("learn", "status")["steps"] == 0
    assert filled.json("learn", "replay")["steps"] == 0
    assert filled.json("learn", "replay", "--whole")["weights"] == learned["weights"]


def test_reset_without_a_terminal_wants_yes(filled: Cli) -> None:
    filled.ok("outcome", recall_id(filled), "--cited", "0")
    answer = filled("learn", "reset")
    assert answer.code == 2
    assert "--yes" in answer.err
    assert filled.json("learn", "status")["steps"] == 1


@pytest.mark.parametrize(("reply", "left", "code"), [("n\n", 1, 1), ("y\n", 0, 0)])
def test_reset_asks_on_a_terminal(
    filled: Cli, monkeypatch: pytest.MonkeyPatch, reply: str, left: int, code: int
) -> None:
    filled.ok("outcome", recall_id(filled), "--cited", "0")
    with monkeypatch.context() as patched:
        patched.setattr("wellworn.cli.ask.can_ask", lambda: True)
        answer = filled("learn", "reset", stdin=reply)
    assert answer.code == code
    assert "Drop all that was learned for tenant default" in answer.err
    assert filled.json("learn", "status")["steps"] == left


def test_a_recall_without_learning_is_not_logged(filled: Cli) -> None:
    asked = filled.ok("recall", "tokio", "--learning", "off", "--json").json["id"]
    assert filled("outcome", asked, "--none").code == 1
    assert "wellworn outcome" not in filled.ok("recall", "tokio", "--learning", "off").err
    assert filled("recall", "tokio", "--learning", "sometimes").code == 2


def test_the_papers_reranker_learns_too(filled: Cli) -> None:
    asked = filled.json("recall", "which runtime does Ada like?", "--profile", "paper")["id"]
    assert filled.json("outcome", asked, "--cited", "0", "--profile", "paper")["counted"] is True
    assert filled.json("learn", "status", "--profile", "paper")["steps"] == 1


# -- plots -------------------------------------------------------------------------------------------------------


def test_plot_draws_rate_gain_and_weights(filled: Cli) -> None:
    assert "no outcome yet" in filled.ok("learn", "plot").err
    for query in ("which runtime does Ada like?", "who keeps bees?", "what is the marathon?"):
        filled.ok("outcome", recall_id(filled, query), "--cited", "0")
    curve = filled.json("learn", "plot")["curve"]
    assert [point["number"] for point in curve] == [1, 2, 3]
    shown = filled.ok("learn", "plot").out
    for word in ("Citation rate", "Gain over the untrained ranking", "Served by", "Weights", *curve[0]["weights"]):
        assert word in shown


def points(n: int) -> list[CurvePoint]:
    return [
        CurvePoint(
            number=number,
            at=datetime(2026, 1, 1, tzinfo=UTC),
            cited_rate=number / n,
            gain=0.1,
            bound=number / n - 0.5,
            level="base" if number < n / 2 else "person",
            weights={"month": 0.01 * number},
        )
        for number in range(1, n + 1)
    ]


def test_the_drawing_of_a_long_life_stays_narrow() -> None:
    lines = learn_plot.drawing(points(1000))
    assert max(len(line) for line in lines) <= 100
    served = next(line for line in lines if line.startswith("Served by"))
    assert served.split()[-1] == "." * 32 + "=" * 32
    assert lines[-1].startswith("month  +0.01 ▁")
    assert lines[-1].endswith("█ +10.00")


def test_a_png_without_matplotlib_names_the_extra(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    answer = filled("learn", "plot", "--png", "learning.png")
    assert answer.code == 2
    assert "wellworn[plot]" in answer.err


def test_a_png_has_a_panel_for_each_subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    class Panel:
        lines = (1, 2)

        def __getattr__(self, name: str) -> Any:  # stands for any method of matplotlib's
            return lambda *args, **kwargs: drawn.append(f"{name} {kwargs.get('label', args[0] if args else '')}")

    class Figure(Panel):
        def __init__(self, **_: object) -> None: ...

        def subplots(self, *_: object, **__: object) -> list[Panel]:
            return [Panel(), Panel(), Panel()]

    module = ModuleType("matplotlib.figure")
    module.Figure = Figure  # type: ignore[attr-defined]  # a stand-in for a package that need not be there
    monkeypatch.setitem(sys.modules, "matplotlib", ModuleType("matplotlib"))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", module)
    learn_plot.save_png(points(10), tmp_path / "x.png")
    for expected in ("set_ylabel citation rate, %", "plot gain", "plot its lower bound", "plot month"):
        assert expected in drawn
    assert f"savefig {tmp_path / 'x.png'}" in drawn


def test_charts_of_little_or_nothing() -> None:
    assert chart.text({"a": []}, x="n") == []
    assert any("●" in line for line in chart.text({"a": [(1.0, 5.0)]}, x="n"))
    assert chart.spark([]) == ""
    assert chart.spark([2.0, 2.0]) == "▁▁"
    assert chart.spark([0.0, 1.0, 2.0]) == "▁▅█"
    assert chart.svg({}, title="<t>", x="x", y="y").startswith("<svg")
    assert "&lt;t&gt;" in chart.svg({"a": [(0.0, 1.0), (1.0, 2.0)]}, title="<t>", x="x", y="y")


def test_practise_is_done_once(cli: Cli) -> None:
    cli.remember("The bakery opens at six.")
    assert "nothing to practise" in cli("practise").err
    cli.remember("Overdrive Maximus was shot in Leland in 1986.", "--title", "Leland", "--tag", "film")
    cli.remember("Stefan Kingsley directed Overdrive Maximus.", "--title", "Overdrive Maximus", "--tag", "film")
    assert cli.json("practise", "--tasks", "4") == {"tasks": 1}
    assert "nothing to practise" in cli("practise").err

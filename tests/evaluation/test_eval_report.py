"""Means over questions, in percent."""

from __future__ import annotations

import io

import pytest
from evals.report import Graded, Report, summary
from rich.console import Console


def graded(conversation: str, category: str, value: float) -> Graded:
    return Graded(conversation=conversation, category=category, scores={"turn": {"recall@5": value}}, seconds=0.002)


@pytest.fixture
def report() -> Report:
    return Report(
        dataset="locomo",
        embedder="hash",
        profile="default",
        ks=(5,),
        entries=7,
        skipped=1,
        graded=[graded("a", "late", 1), graded("a", "early", 0.5), graded("b", "early", 0), graded("b", "odd", 0)],
        categories=("early", "late", "unused"),
    )


def test_means_count_questions_not_groups(report: Report) -> None:
    assert report.overall("turn").means == {"recall@5": 37.5}
    assert [(row.label, row.questions, row.means["recall@5"]) for row in report.by_conversation("turn")] == [
        ("a", 2, 75.0),
        ("b", 2, 0.0),
    ]


def test_categories_keep_their_order_and_empty_ones_are_left_out(report: Report) -> None:
    assert [row.label for row in report.by_category("turn")] == ["early", "late", "odd"]


def test_json_has_stable_keys(report: Report) -> None:
    document = report.as_json()
    assert {key: document[key] for key in ("dataset", "k", "questions", "skipped", "entries", "latency_ms")} == {
        "dataset": "locomo",
        "k": [5],
        "questions": 4,
        "skipped": 1,
        "entries": 7,
        "latency_ms": 2.0,
    }
    assert document["levels"]["turn"]["overall"] == {"questions": 4, "recall@5": 37.5}
    assert document["levels"]["turn"]["by_category"]["late"] == {"questions": 1, "recall@5": 100.0}


def test_tables_show_every_row(report: Report) -> None:
    out = io.StringIO()
    for table in report.tables():
        Console(file=out, width=100).print(table)
    for word in ("locomo, turn level", "overall", "37.5", "early", "odd", "R@5"):
        assert word in out.getvalue()
    assert summary(report).startswith("4 questions (1 skipped), 7 entries, 2.0 ms a recall")


def test_a_report_without_questions_has_no_levels() -> None:
    empty = Report(dataset="x", embedder="hash", profile="default", ks=(5,), entries=0, skipped=3, graded=[])
    assert empty.as_json()["levels"] == {}
    assert empty.tables() == []

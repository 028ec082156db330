"""The sessions of `evals/sessions`: what is kept, left out and outdated, by rules."""

from __future__ import annotations

import pytest
from evals import extraction


@pytest.mark.parametrize(("part", "fewest"), [pytest.param("tune", 97.0, marks=pytest.mark.slow), ("check", 90.0)])
def test_sessions_are_read_as_expected(part: str, fewest: float) -> None:
    report = extraction.own(extraction.OWN / f"{part}.txt")
    (table,) = report.tables
    assert len(extraction.people(extraction.OWN / f"{part}.txt")) >= 45
    rows = {str(row[0]): row for row in table.rows}
    assert {*rows} == {*extraction.EXPECTED.values()}
    missed = [line for line in report.lines if not line.startswith("outdated")]
    expected = sum(int(str(row[1])) for name, row in rows.items() if name != "outdated")
    assert 100.0 * (1 - len(missed) / expected) >= fewest, missed

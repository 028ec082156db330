"""A folder of documentation is searched better than with plain full-text search."""

from __future__ import annotations

from pathlib import Path

import pytest
from evals import documents

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
def test_more_pages_come_first_than_with_plain_full_text_search() -> None:
    [table] = documents.run(DOCS).tables
    first = {(part, search): first for part, search, _, first, _ in table.rows}
    assert sum(first[part, "wellworn"] for part in ("tune", "check")) > sum(
        first[part, "FTS5"] for part in ("tune", "check")
    )
    assert first["check", "wellworn"] >= first["check", "FTS5"]

"""The demo runs on the real product and stops when something is not as it says."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from wellworn import Memory, Scope
from wellworn.cli.demo import story, tell


def told(keep: Path | None = None) -> str:
    page = io.StringIO()
    tell(Console(file=page, width=200), keep=keep)
    return page.getvalue()


def test_the_demo_answers_its_questions_and_forgets() -> None:
    page = told()
    for answer in ("Tokio. I tried async-std", "My sister Ingrid is visiting in May", "Deploys to production happen"):
        assert answer in page
    assert "words of bruno left in the file's bytes: none" in page
    assert "0 of bruno's own memories recalled" in page


def test_the_demo_keeps_its_file_where_it_is_told(tmp_path: Path) -> None:
    told(tmp_path / "kept.db")
    with Memory.open(tmp_path / "kept.db") as mem:
        assert mem.admin.stats(scope=Scope(tenant="harbour-lab", user="ada")).turns == 15
        assert mem.admin.stats(scope=Scope(tenant="harbour-lab", user="bruno")).entries == 0


def test_the_demo_fails_when_a_word_of_the_forgotten_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    world = json.dumps({"marks": ["tokio"]})
    monkeypatch.setattr(story, "_marks_in_files", lambda path, marks: json.loads(world)["marks"])
    with pytest.raises(SystemExit, match="should be gone"):
        told()

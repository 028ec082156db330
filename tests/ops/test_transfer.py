"""Which format a path tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from wellworn.core.errors import InvalidInput
from wellworn.store.sqlite import SqliteStore

from .conftest import ADA, open_memory


@pytest.mark.parametrize("name", ["backup.json", "notes.md", "memory.xyz"])
def test_an_ending_that_tells_no_format_is_refused_and_writes_nothing(name: str, tmp_path: Path) -> None:
    with open_memory(SqliteStore(":memory:")) as memory:
        memory.remember("Ben keeps bees.", scope=ADA)
        with pytest.raises(InvalidInput, match=name):
            memory.admin.export(tmp_path / name)
        assert not (tmp_path / name).exists()
        assert memory.admin.export(tmp_path / name, format="jsonl").entries == 1


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "notes.v2"
    folder.mkdir()
    with open_memory(SqliteStore(":memory:")) as memory:
        memory.remember("Ben keeps bees.", scope=ADA)
        assert memory.admin.export(folder).format == "markdown"

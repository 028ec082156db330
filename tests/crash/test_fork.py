"""A memory that was open before a fork works on both sides of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.crash, pytest.mark.slow]
PROGRAM = Path(__file__).with_name("forking.py")


def run(*args: str) -> None:
    done = subprocess.run([sys.executable, str(PROGRAM), *args], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("embedder", ["hash:8", "static"])
def test_parent_and_children_go_on_with_the_same_object(tmp_path: Path, embedder: str) -> None:
    run(str(tmp_path / "memory.db"), embedder)


def test_a_temporary_memory_is_shared_by_a_fork() -> None:
    run(":memory:", "hash:8")


def test_a_worker_goes_on_on_both_sides(tmp_path: Path) -> None:
    run(str(tmp_path / "memory.db"), "jobs")

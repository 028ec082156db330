"""Every example runs as its page says, in a folder of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(example: Path, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""


def test_the_agent_loop_remembers_over_sessions(tmp_path: Path) -> None:
    loop = next(example for example in EXAMPLES if example.stem == "agent_loop")
    run = subprocess.run([sys.executable, str(loop)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    monday, friday = run.stdout.splitlines()
    assert "nothing" in monday
    assert "green Brompton" in friday

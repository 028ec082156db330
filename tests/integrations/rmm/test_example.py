"""The example agent, run as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_example_remembers_from_monday_to_friday(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / "langchain_agent.py", "memory.db"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "monday: I will keep that in mind.",
        "friday: I remember: ada: My bicycle is a green Brompton and it squeaks.",
        "learned from 1 answer; faults: {}",
    ]
    assert (tmp_path / "memory.db").exists()

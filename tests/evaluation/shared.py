"""Where the evaluation data lies when it is beside the project; it is not part of it."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def shared_data(name: str) -> Path:
    """The set's folder; the test is skipped where there is none."""
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"no evaluation data in {folder}")
    return folder

"""The page of requirements names code and tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "rmm-requirements.md").read_text(encoding="utf-8")


def test_every_requirement_has_a_row() -> None:
    wanted = [
        *(f"M{n}" for n in range(1, 9)),
        *(f"S{n}" for n in range(1, 6)),
        *(f"C{n}" for n in range(1, 5)),
        *(f"F.{n}" for n in (1, 2, 3, 5, 6, 8)),
        *(f"F.4.{n}" for n in range(1, 7)),
    ]
    rows = re.findall(r"^\| ([MSCF][.\d]+) \|", PAGE, re.MULTILINE)
    assert set(rows) == set(wanted)


def test_every_test_named_is_there() -> None:
    named = re.findall(r"`((?:tests/)?[\w/]+\.py)(?:::(\w+))?`", PAGE)
    for path, test in named:
        here = Path(__file__).parent / path if test else ROOT / path
        source = here if here.exists() else ROOT / "src" / "wellworn" / path
        assert source.exists(), path
        assert not test or f"def {test}(" in source.read_text(encoding="utf-8"), test
    assert sum(bool(test) for _, test in named) > 25

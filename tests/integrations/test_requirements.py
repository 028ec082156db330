"""The page of requirements names code and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rmm-requirements.md").read_text(encoding="utf-8")


def test_every_requirement_has_a_row() -> None:
    wanted = [
        *(f"M{n}" for n in range(1, 9)),
        *(f"S{n}" for n in range(1, 6)),
        *(f"C{n}" for n in range(1, 5)),
        *(f"F.{n}" for n in (1, 2, 3, 5, 6, 8)),
        *(f"F.4.{n}" for n in range(1, 7)),
    ]
    assert set(re.findall(r"^\| ([MSCF][.\d]+) \|", PAGE, re.MULTILINE)) == set(wanted)


def test_every_path_and_test_named_exists() -> None:
    named = re.findall(r"`([\w/]+(?:\.py|/))(?:::(\w+))?`", PAGE)
    for path, test in named:
        places = [folder / path for folder in (ROOT, ROOT / "src" / "wellworn", Path(__file__).parent)]
        found = [place for place in places if place.exists()]
        assert found, path
        assert not test or f"def {test}(" in found[-1].read_text(encoding="utf-8"), test
    assert sum(bool(test) for _, test in named) > 25

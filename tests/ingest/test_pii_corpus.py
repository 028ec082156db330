"""How well the rules find what is there and leave what is not; prints the numbers by type (`pytest -s`)."""

from __future__ import annotations

from collections import Counter

import pytest

from ingest.pii_corpus.load import Case, load
from wellworn.ingest.pii.detectors import TYPES
from wellworn.ingest.pii.find import find

LEAST = 0.98


def test_the_corpus_is_as_large_as_it_should_be() -> None:
    cases = [*load("seen"), *load("held")]
    assert sum(len(case.find) for case in cases) >= 300
    assert sum(not case.find for case in cases) >= 300
    assert {type_ for case in cases for type_, _ in case.find} == set(TYPES)


@pytest.mark.parametrize("name", ["seen", "held"])
def test_the_rules_find_what_is_there_and_leave_the_rest(name: str) -> None:
    found, missed, wrong = counted(load(name))
    for type_ in TYPES:
        print(f"{name:5} {type_:12} found {found[type_]:3} missed {missed[type_]:3} wrong {wrong[type_]:3}")
    recall = found.total() / (found.total() + missed.total())
    precision = found.total() / (found.total() + wrong.total())
    print(f"{name:5} recall {recall:.3f} precision {precision:.3f}")
    assert recall >= LEAST
    assert precision >= LEAST


def counted(cases: list[Case]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Found exactly, missed, and found where nothing is or not exactly; by type."""
    found: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for case in cases:
        got = Counter((one.type, case.text[one.start : one.end]) for one in find(case.text))
        wanted = Counter(case.find)
        for into, some in ((found, got & wanted), (missed, wanted - got), (wrong, got - wanted)):
            for (type_, _), number in some.items():
                into[type_] += number
    return found, missed, wrong

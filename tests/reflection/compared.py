"""The labelled pairs of memories, and how well a comparison does on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from wellworn.reflection.candidate import Candidate
from wellworn.reflection.compare import Relation, compare
from wellworn.testing.builders import make_entry

HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Case:
    """A new and an old memory, what was said, and how they relate."""

    kind: str
    new: str
    old: str
    said: str
    speaker: str | None = None
    old_speaker: str | None = None
    held_out: bool = False

    def relation(self) -> Relation:
        new = Candidate(summary=self.new, turns=(0,), speaker=self.speaker)
        return compare(new, make_entry("old", text=self.old, speaker=self.old_speaker), said=self.said)


def cases(name: str) -> list[Case]:
    listed: dict[str, list[Any]] = yaml.safe_load((HERE / name).read_text(encoding="utf-8"))  # lists or mappings
    return [_case(kind, place, given) for kind, pairs in listed.items() for place, given in enumerate(pairs)]


def _case(kind: str, place: int, given: Any) -> Case:  # a list of two or three texts, or a mapping
    fields = dict(zip(("new", "old", "said"), given, strict=False)) if isinstance(given, list) else dict(given)
    return Case(kind=kind, held_out=place % 3 == 2, **({"said": fields["new"]} | fields))


@dataclass(frozen=True, kw_only=True)
class Score:
    """How often a kind was named rightly, and how many of it were found."""

    precision: float
    recall: float


def scores(tested: Iterable[Case]) -> dict[str, Score]:
    """By kind of relation; "all" holds the share that was right, twice."""
    found: Counter[tuple[str, str]] = Counter((case.kind, case.relation().kind) for case in tested)
    kinds = sorted({kind for kind, _ in found})
    by_kind = {
        kind: Score(
            precision=found[kind, kind] / max(1, sum(n for (_, told), n in found.items() if told == kind)),
            recall=found[kind, kind] / sum(n for (meant, _), n in found.items() if meant == kind),
        )
        for kind in kinds
    }
    right = sum(found[kind, kind] for kind in kinds) / found.total()
    return by_kind | {"all": Score(precision=right, recall=right)}

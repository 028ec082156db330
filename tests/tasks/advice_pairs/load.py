"""Pairs of advice, labelled by hand, and how well the rules tell which of them contradict each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import yaml

from wellworn.core.values import Entry
from wellworn.tasks.consolidation.stance import contradiction
from wellworn.testing.builders import make_entry

Half = Literal["seen", "held"]
CONTRADICTING = ("negation", "exclusive", "outcome")


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two pieces of advice, and what they are to each other."""

    label: str
    one: Entry
    other: Entry

    @property
    def contradicts(self) -> bool:
        return self.label in CONTRADICTING

    @property
    def found(self) -> str:
        return contradiction(self.one, self.other)


@dataclass(frozen=True, kw_only=True)
class Score:
    """How many contradictions there are, how many were found, and how much that is none was taken for one."""

    there: int
    found: int
    wrong: int

    @property
    def recall(self) -> float:
        return self.found / self.there

    @property
    def precision(self) -> float:
        return self.found / max(1, self.found + self.wrong)


def pairs(half: Half) -> list[Pair]:
    told = yaml.safe_load((Path(__file__).parent / f"{half}.yaml").read_text(encoding="utf-8"))
    return [
        Pair(label=row["is"], one=_entry(row["one"]), other=_entry(row["other"], warns=row["is"] == "outcome"))
        for row in told
    ]


def _entry(text: str, *, warns: bool = False) -> Entry:
    return replace(make_entry("advice"), text=text, kind="guardrail" if warns else "strategy")


def score(given: list[Pair]) -> Score:
    taken = [pair for pair in given if pair.found]
    right = [pair for pair in taken if pair.contradicts]
    return Score(there=sum(pair.contradicts for pair in given), found=len(right), wrong=len(taken) - len(right))

"""Reads the labelled corpus. `‖` parts fake keys in the files, so that scanners for secrets leave them alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

HERE = Path(__file__).parent
BREAK = "‖"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A text with what must be found in it, as (type, value); nothing for a hard negative, whose kind is told."""

    text: str
    find: tuple[tuple[str, str], ...]
    kind: str


def load(name: str) -> list[Case]:
    """`seen`, from which the rules were written, or `held`, which was not looked at until they were."""
    with (HERE / f"{name}.yaml").open(encoding="utf-8") as file:
        rows = yaml.safe_load(file)
    return [
        Case(
            text=row["text"].replace(BREAK, ""),
            find=tuple((type_, value.replace(BREAK, "")) for type_, value in row.get("find", [])),
            kind=row["kind"],
        )
        for row in rows
    ]

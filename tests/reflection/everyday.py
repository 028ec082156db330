"""Everyday sessions with the memories they should give, and how many of those the rules find."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from wellworn.reflection.candidate import Candidate
from wellworn.reflection.rules.extract import extract

from .dialogue import dialogue

HELD_OUT = 15
"""Sessions at the end of the list that were not looked at while the rules were written."""
_ROLES = {"u": "user", "a": "assistant"}


@dataclass(frozen=True, kw_only=True)
class Everyday:
    """A session, and the pieces of text that one memory each should have."""

    said: tuple[tuple[str, str], ...]
    want: tuple[tuple[str, ...], ...] = ()

    def found(self) -> list[Candidate]:
        return extract(dialogue(*self.said), user="ada")

    def missed(self) -> list[tuple[str, ...]]:
        texts = [one.summary.lower() for one in self.found()]
        return [pieces for pieces in self.want if not any(all(p.lower() in text for p in pieces) for text in texts)]

    def unwanted(self) -> list[str]:
        """Memories that none of the wanted ones is."""
        texts = [one.summary for one in self.found()]
        return [text for text in texts if not any(all(p.lower() in text.lower() for p in ps) for ps in self.want)]


def sessions() -> tuple[list[Everyday], list[Everyday]]:
    """The sessions the rules were written with, and those held out."""
    read = [_session(one["turns"], one["want"]) for one in _listed()["sessions"]]
    return read[:-HELD_OUT], read[-HELD_OUT:]


def tasks() -> list[Everyday]:
    """Sessions in which somebody only sets tasks."""
    return [_session(turns, []) for turns in _listed()["tasks"]]


def _listed() -> dict[str, list[Any]]:
    listed: dict[str, list[Any]] = yaml.safe_load(Path(__file__).with_name("everyday.yaml").read_text(encoding="utf-8"))
    return listed


def _session(turns: list[dict[str, str]], want: list[str]) -> Everyday:
    said = tuple((_ROLES[who], text) for turn in turns for who, text in turn.items())
    return Everyday(said=said, want=tuple(tuple(piece.strip() for piece in one.split("|")) for one in want))

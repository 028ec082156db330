"""Dialogues for the tests of reflection, written down as (role, text) pairs."""

from __future__ import annotations

from datetime import UTC, datetime

from wellworn.core.values import Turn

WEDNESDAY = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
"""When everything is said, unless told otherwise."""


def dialogue(*said: tuple[str, str], at: datetime = WEDNESDAY) -> list[Turn]:
    """Turns numbered from 0. A role that is a name is a person who talks under that name."""
    return [
        Turn(session_id="s", number=number, role=role, text=text, at=at, speaker=role if role.istitle() else None)
        for number, (role, text) in enumerate(said)
    ]

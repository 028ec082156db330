"""Statements put together into memories that stand alone: what a turn says of one topic is one memory.

Rules for the assistant, reminders, names, what has one value at a time and whatever has its own time of validity are
memories of their own, because they are looked up, changed and ended by themselves. Knows nothing about sessions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wellworn.reflection.candidate import Candidate
from wellworn.reflection.rules.statements import Statement

MOST_STATEMENTS = 6
"""In one memory; more make another one."""
MOST_CHARS = 700
MOST_PER_TURN = 3
MOST_ALONE = 5
_ALONE = frozenset({"rule", "manner", "reminder", "name"})


def memories(
    said: Sequence[Statement], *, speaker: str, turns: Sequence[int], context: str = "", settles: bool = True
) -> list[Candidate]:
    """The memories of one turn's statements, resting on these turns.

    `context` goes before the first; unless it `settles` something, it is none without a statement.
    """
    alone = [one for one in said if _stands_alone(one)]
    together = [one for one in said if not _stands_alone(one)]
    lead = context if together or settles else ""
    made = [_memory(group, speaker, turns, lead) for group, lead in _groups(together, lead)][:MOST_PER_TURN]
    return made + [_memory([one], speaker, [one.turn], "") for one in alone[:MOST_ALONE]]


def _stands_alone(one: Statement) -> bool:
    return one.frame.name in _ALONE or one.single or one.valid_from is not None or one.valid_to is not None


def _groups(said: Sequence[Statement], context: str) -> list[tuple[list[Statement], str]]:
    """Runs of statements that fit into one memory, each with what goes before it."""
    groups: list[tuple[list[Statement], str]] = []
    room = 0
    for one in said:
        if not groups or len(groups[-1][0]) >= MOST_STATEMENTS or room < len(one.text):
            groups.append(([], "" if groups else context))
            room = MOST_CHARS - len(groups[-1][1])
        groups[-1][0].append(one)
        room -= len(one.text) + 1
    return groups or ([([], context)] if context else [])


def _memory(said: Sequence[Statement], speaker: str, turns: Sequence[int], lead: str) -> Candidate:
    kinds = Counter(one.frame.kind for one in said)
    return Candidate(
        summary=" ".join([*([lead] if lead else []), *[one.text for one in said]]),
        turns=tuple(sorted(set(turns))),
        kind=kinds.most_common(1)[0][0] if kinds else "note",
        speaker=speaker,
        confidence=max((one.frame.confidence for one in said), default=0.5),
        valid_from=next((one.valid_from for one in said if one.valid_from), None),
        valid_to=next((one.valid_to for one in said if one.valid_to), None),
    )

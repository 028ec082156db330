"""Who takes part in a session, and what sort of talk it is: about a person's life, or a task set to a machine.

People who come with a task ("write …", "explain …", "act as …") say "I" of customers, characters and texts. People who
talk about their life answer questions, in sentences. Reads form, not topics.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from wellworn.core.values import Turn
from wellworn.reflection.rules import filters
from wellworn.reflection.rules.asked import heard
from wellworn.reflection.rules.person import Persons
from wellworn.reflection.rules.statements import only_tells

_USER = frozenset({"user", "human"})
_ASSISTANT = frozenset({"assistant", "ai", "model", "bot"})
_SILENT = frozenset({"system", "tool", "function", "developer"})
_NAME_LIKE = re.compile(r"[^\W\d_]{2,}(?:[ '’.-][^\W\d_]+){0,3}")
_FIRST = re.compile(r"\b(?:i|i'm|i've|i'll|i'd|im|ive|my|me|we|we're|we've|we'll|our|us)\b")
_CONTRACTION = re.compile(r"\w'(?:s|m|re|ve|ll|d|t)\b")
_YOU = re.compile(r"\byou(?:r|'re|'ve|’re|’ve)?\b")
_PASTED_CHARS = 1500
"""A longer turn is mostly a text that was pasted."""
_READ_CHARS = 4000
PERSONAL = 3.2
"""What a talk must reach: how the person speaks (-4 … 3.2) plus how the assistant does (0 … 2)."""
_FEW_TURNS = 3
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Talk:
    """A session as the rules see it: the turns that count, and whether it is personal."""

    people: tuple[Turn, ...]
    assistant: tuple[Turn, ...]
    names: tuple[str, ...]
    user: str | None
    personal: bool

    def persons(self, turn: Turn) -> Persons:
        """Who says this turn to whom."""
        speaker = self.name(turn)
        others = [name for name in self.names if name != speaker]
        if role(turn) == "user" and (self.assistant or not others):
            return Persons(speaker=speaker, listener="the assistant")
        listener = others[0] if len(others) == 1 else "the others" if others else "the assistant"
        return Persons(speaker=speaker, listener=listener)

    @property
    def short(self) -> bool:
        """A few turns without play, in which a word about oneself stands beside a question and no task runs on."""
        return len(self.people) <= _FEW_TURNS and not any(filters.is_play(turn.text.lower()) for turn in self.people)

    def name(self, turn: Turn) -> str:
        return name_of(turn, self.user)


UNNAMED = "the user"


def role(turn: Turn) -> str:
    """`user`, `assistant`, `silent` (its text is never learnt from), or `person` for a named speaker."""
    said = turn.role.strip().lower()
    return "user" if said in _USER else "assistant" if said in _ASSISTANT else "silent" if said in _SILENT else "person"


def name_of(turn: Turn, user: str | None) -> str:
    """What the speaker is called in a memory."""
    if turn.speaker and _NAME_LIKE.fullmatch(turn.speaker.strip()) and turn.speaker.strip().lower() not in _USER:
        return _capitalised(turn.speaker.strip())
    if role(turn) == "person":
        return _capitalised(turn.role.strip())
    return _capitalised(user.strip()) if user and _NAME_LIKE.fullmatch(user.strip()) else UNNAMED


def _capitalised(name: str) -> str:
    """A name in small letters, as ids are, written as a name: `ada lovelace` → `Ada Lovelace`."""
    return re.sub(r"(?<![^\W_])(?<!['’])[^\W\d_]", lambda found: found[0].upper(), name) if name.islower() else name


def read(turns: Sequence[Turn], user: str | None) -> Talk:
    """Sort the turns of a session, and weigh what sort of talk it is."""
    people = tuple(turn for turn in turns if role(turn) in ("user", "person"))
    names = tuple(dict.fromkeys(name_of(turn, user) for turn in people))
    users = [turn for turn in people if role(turn) == "user"]
    return Talk(
        people=people,
        assistant=tuple(turn for turn in turns if role(turn) == "assistant"),
        names=names,
        user=user,
        personal=not users or _personal(users, [turn for turn in turns if role(turn) == "assistant"]),
    )


def _personal(users: Sequence[Turn], replies: Sequence[Turn]) -> bool:
    """Whether people speak in person and the assistant speaks to them, on average over the turns."""
    own = sum(_weight(turn.text) for turn in users) / len(users)
    met = sum(_addressed(turn.text) for turn in replies) / len(replies) if replies else 1.0
    return own + met >= PERSONAL - _ROUNDING


def _addressed(text: str) -> float:
    """How much an assistant's turn speaks to the person: it says "you" at once, and ends by asking."""
    return bool(_YOU.search(text[:300].lower())) + ("?" in text[-300:])


def _weight(text: str) -> float:
    """How much a turn sounds like someone talking about themselves: -4 … 3.2."""
    said = heard(text[:_READ_CHARS])
    if not said:
        return 0.0
    lower = " ".join(one.text for one in said).lower()
    if len(text) <= _PASTED_CHARS and only_tells(said):
        return PERSONAL
    weight = -2.0 if len(text) > _PASTED_CHARS else 0.0
    weight += bool(_FIRST.search(lower))
    weight += len([one for one in said if one.end]) >= 2
    weight += bool(_CONTRACTION.search(lower))
    opening = said[0].text.lower()
    if filters.is_command(opening):
        weight -= 2
    elif filters.is_question(opening, said[0].end):
        weight -= 2 if len(said) == 1 else 1
    return weight - 2 if filters.is_play(lower) else weight

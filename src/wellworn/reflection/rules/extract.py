"""Memories of a session by rules, without a language model: the way in.

Deterministic and linear in the text. Each candidate rests on the turns it names; what is not said in them is not in
it. English only: other languages yield nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile

from wellworn.core.values import Turn
from wellworn.reflection.candidate import Candidate
from wellworn.reflection.rules.exchanges import Context, asks_of, context, handed_over
from wellworn.reflection.rules.frames import ANSWER, NOTED, PLAIN, UNMIXED, UNTASKED
from wellworn.reflection.rules.lists import words
from wellworn.reflection.rules.memories import memories
from wellworn.reflection.rules.people import introduced
from wellworn.reflection.rules.person import turn_around
from wellworn.reflection.rules.sentences import sentences
from wellworn.reflection.rules.statements import Statement, Told, fragment, told
from wellworn.reflection.rules.talk import Talk, read, role

FEWEST_WORDS = 6
"""Content words that a turn's statements need together, said in a talk about the speaker."""
FEWEST_WORDS_IN_ANSWER = 4
_POINTING_IN_NOTE = words("it this that they them")
_POINTING = words("it he she they this that these those there here his her its their him them")


def extract(turns: Sequence[Turn], *, user: str | None = None) -> list[Candidate]:
    """The memories worth proposing, by turn. `user` is what the person behind the role `user` is called.

    Two people talking by name are both listened to; beside an assistant only the person is, and the assistant's words
    count as far as the person took them up.
    """
    talk = read(turns, user)
    listened = [turn for turn in turns if role(turn) != "silent"]
    seen: set[str] = set()
    found: list[Candidate] = []
    known: dict[str, str] = {}
    earlier: Turn | None = None
    for place, turn in enumerate(listened):
        if role(turn) == "assistant":
            continue
        known = introduced(talk.name(turn), turn.text) | known
        before = listened[place - 1] if place and role(listened[place - 1]) == "assistant" else None
        found += _of_turn(turn, Around(before=before, earlier=earlier, known=known), talk, seen)
        earlier = turn
    found += _results(listened, talk, found)
    return sorted(found, key=lambda one: one.turns[-1])


@dataclass(frozen=True, kw_only=True)
class Around:
    """What a turn is heard with: the assistant's turn before it, the last one of a person, the people known by then."""

    before: Turn | None
    earlier: Turn | None
    known: Mapping[str, str]


def _of_turn(turn: Turn, near: Around, talk: Talk, seen: set[str]) -> list[Candidate]:
    speaker, who = talk.name(turn), talk.persons(turn)
    heard = told(turn, who, near.known)
    said = [one for one in heard.said if one.text not in seen]
    noted = any(one.frame is NOTED for one in said)
    if not talk.personal:
        said = [one for one in said if _stands_among_tasks(one, heard, talk)]
    seen.update(one.text for one in said)
    asked = talk.short and not heard.tasked and near.before is not None and asks_of(near.before.text)
    around = context(near.before, turn, speaker) if talk.personal or (noted and said) or asked else Context()
    if around.text and not around.settles:
        short = fragment(turn, who)
        said = said if short is None else [short, *said]
    if noted and said and near.earlier is not None:
        around = _led(around, near.earlier, said, talk)
    if not around.text:
        said = [*dropwhile(_points_back, said)]
    if not _enough(said, around, only=heard.only):
        return []
    return memories(
        said, speaker=speaker, turns=(*around.turns, turn.number), context=around.text, settles=around.settles
    )


def _stands_among_tasks(one: Statement, heard: Told, talk: Talk) -> bool:
    if heard.only and talk.short and one.frame.name in PLAIN and "the assistant" not in one.text:
        return talk.people[0].number != one.turn
    if one.frame.name in UNMIXED:
        return heard.only
    return one.frame.stands and not (heard.tasked and one.frame.name in UNTASKED)


def _led(around: Context, earlier: Turn, said: Sequence[Statement], talk: Talk) -> Context:
    """The context with what was spoken of before, where a note points back to it: "raising it to sixty helped"."""
    opening = next((one for one in sentences(earlier.text) if one.end != "?"), None)
    if opening is None or not any(_POINTING_IN_NOTE & {*one.text.lower().rstrip(".").split()} for one in said):
        return around
    text = f"{turn_around(opening.text, talk.persons(earlier))}." + (f" {around.text}" if around.text else "")
    return replace(around, text=text, turns=(earlier.number, *around.turns))


def _points_back(one: Statement) -> bool:
    """Whether a statement is about something said before it, which nobody would know: "It took me a year"."""
    return one.text.split(" ", 1)[0].split("'")[0].lower() in _POINTING


def _enough(said: Sequence[Statement], around: Context, *, only: bool) -> bool:
    """Whether a turn says enough to be kept; details alone never do, unless they answer a question."""
    if around.settles:
        return True
    if not said or (all(one.frame.name == "detail" for one in said) and not around.turns):
        return False
    if only or any(one.frame.stands or (one.frame is ANSWER and len(one.words) >= 2) for one in said):
        return True
    words = sum(len(one.words) for one in said)
    return words >= (FEWEST_WORDS_IN_ANSWER if around.turns else FEWEST_WORDS)


def _results(heard: Sequence[Turn], talk: Talk, found: Sequence[Candidate]) -> list[Candidate]:
    """What the assistant handed over in a talk that gave memories, where none of them holds it yet."""
    if not talk.personal or not found:
        return []
    covered = {number for one in found for number in one.turns}
    results: list[Candidate] = []
    for place, turn in enumerate(heard):
        if role(turn) == "assistant" and turn.number not in covered:
            after = heard[place + 1] if place + 1 < len(heard) else None
            speaker = talk.name(heard[place - 1]) if place else talk.names[0]
            result = handed_over(turn, after, speaker)
            results += [result] if result is not None else []
    return results

"""Sentences that say something of their speaker, turned around and dated: what memories are made of.

One turn in, its statements out. Knows who speaks to whom, not what the rest of the session says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from wellworn.core.values import Turn
from wellworn.reflection.rules import filters
from wellworn.reflection.rules.asked import heard
from wellworn.reflection.rules.dates import resolve
from wellworn.reflection.rules.frames import ANSWER, ASKED, DETAIL, KNOWN, NOTED, SLOT, Frame, frame_of
from wellworn.reflection.rules.lists import words
from wellworn.reflection.rules.parts import has_slot, parts
from wellworn.reflection.rules.people import about
from wellworn.reflection.rules.person import Persons, turn_around
from wellworn.reflection.rules.sentences import Sentence
from wellworn.reflection.rules.spoken import whole, written_out
from wellworn.reflection.rules.verbs import ADVERBS, is_verb

_QUOTED = re.compile(r'"[^"]{0,300}"')
_FIRST = re.compile(r"\b(?:i|we|my|our|i'm|i've|i'll|i'd|im|ive|we're|we've|we'll|we'd|me|us|mine)\b")
_SUBJECT = re.compile(r"\b(?:i|we)\s+(\w+(?:'\w+)?)(?:\s+(\w+(?:'\w+)?))?")
_ENGLISH = words(
    """
    the a an to and in of is was my that it for on with at but so this have has be not from about as are were been or
    because when just really very more some before after
    """
)
_QUOTING = re.compile(r"(?!i\b|we\b)(?:[\w']+ ){1,5}?(?:says?|said|writes?|wrote|replie[sd]|answers|goes|reads) ?:")
"""Somebody else's words without quotation marks."""
_UNSAID = frozenset({"rule", "manner", "wish"})
"""Frames in which nobody need say "I"."""
_LONGEST_FRAGMENT = 6
_NO_FRAGMENT = re.compile(rf"{_FIRST.pattern}|\byou\b|\byour|^(?:this|that|it|these|those|he|she|they)\b")
_SO = re.compile(r", (?:so|and) (?:please )?(?:give|show|tell|send|help|remind|get|find) me\b.*")
_CORRECTING = re.compile(
    r"^(?:actually|correction|sorry|scratch that|no wait|wait no)\b[,:;.]?\s*"
    r"(?:(?:no|that's (?:wrong|not right|not true|incorrect)|that was wrong|i was wrong)[,:;.]\s*)*"
    r"(?=(?:i|we|my|our)\b)",
    re.IGNORECASE,
)
"""What announces a correction; the evidence keeps it."""
SHORTEST = 2
"""Content words that a statement needs; one is enough where the frame stands for itself ("I am vegetarian")."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One thing said: in the third person, with its dates, its frame and the content words of the original."""

    text: str
    frame: Frame
    turn: int
    words: frozenset[str]
    valid_from: datetime | None
    valid_to: datetime | None
    single: bool = False
    """It gives one value that another will replace: a home, an age."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a turn says of its speaker, and what else it does."""

    said: list[Statement]
    only: bool
    """No question, no request, nothing in passing: such a turn needs fewer words to count."""
    tasked: bool
    """Something in it sets a task."""


def told(turn: Turn, who: Persons, known: Mapping[str, str] | None = None) -> Told:
    """What the speaker of the turn says of themselves and of people they `know`, in order, with details beside it."""
    found: dict[str, Statement] = {}
    spoken = heard(turn.text)
    for sentence in spoken:
        for statement in _statements(sentence, turn, who, known or {}):
            if not _only_names(statement.text, who):
                found.setdefault(statement.text, statement)
    tasked = any(tells(one) is None and _tasks(one) for one in spoken)
    return Told(said=[*found.values()], only=only_tells(spoken), tasked=tasked)


def fragment(turn: Turn, who: Persons) -> Statement | None:
    """The few words that a turn begins with and that answer the question before it: "Tokio.", "Neovim, for years."."""
    first = next(iter(heard(turn.text)), None)
    if first is None or tells(first) is not None:
        return None
    lower = whole(first.text).lower()
    count = len(filters.content_words(lower))
    other = filters.is_question(lower, first.end) or filters.is_command(lower) or filters.is_chatter(lower)
    if not 1 <= count <= _LONGEST_FRAGMENT or other or filters.is_request(lower) or _NO_FRAGMENT.search(lower):
        return None
    return _made(whole(first.text), ANSWER, turn, who)


def only_tells(spoken: Sequence[Sentence]) -> bool:
    """Whether all of it tells something of the speaker, but for a word of greeting."""
    telling = [tells(sentence) is not None for sentence in spoken]
    return any(telling) and all(yes or _passes(one) for yes, one in zip(telling, spoken, strict=True))


def _passes(sentence: Sentence) -> bool:
    """Said in passing: hardly a word in it, and nothing asked."""
    lower = sentence.text.lower()
    return (
        len(filters.content_words(lower)) <= SHORTEST
        and not filters.is_question(lower, sentence.end)
        and not filters.is_command(lower)
        and not filters.is_play(lower)
    )


def _tasks(sentence: Sentence) -> bool:
    lower = written_out(whole(sentence.text).lower())
    return filters.is_command(lower) or filters.is_play(lower)


def tells(sentence: Sentence) -> Frame | None:
    """The frame in which a sentence claims something of its speaker; None for anything else."""
    lower = written_out(_QUOTED.sub(' "" ', whole(sentence.text)).lower())
    frame = _frame(lower)
    if sentence.noted and (frame is None or frame.name not in ASKED):
        frame = NOTED
    elif has_slot(lower) and (frame is None or not frame.stands):
        frame = SLOT
    if frame is None or not _asserted(lower, sentence.end, frame):
        return None
    if frame is not NOTED and frame.name not in ASKED and not _english(lower):
        return None
    return frame if len(set(filters.content_words(lower))) >= (1 if frame.stands else SHORTEST) else None


def _statements(sentence: Sentence, turn: Turn, who: Persons, known: Mapping[str, str]) -> list[Statement]:
    """A sentence's statements: one, or one for each fact that changes by itself."""
    frame = tells(sentence)
    text = whole(sentence.text)
    if frame is None or frame is DETAIL:
        of_known = about(text, known)
        lower = text.lower()
        if of_known is not None and _asserted(lower, sentence.end, KNOWN):
            return [_made(of_known, KNOWN, turn, who)]
    if frame is None:
        return []
    if frame is NOTED or (frame.name in ASKED and not _begins_in_person(text)):
        return [_made(text, frame, turn, who)]
    first, *others = parts(text)
    found = [_made(first, SLOT if others and not frame.stands and has_slot(first) else frame, turn, who)]
    return found + [_made(part, tells(Sentence(text=part, end=".")) or SLOT, turn, who) for part in others]


def _made(text: str, frame: Frame, turn: Turn, who: Persons) -> Statement:
    dated = resolve(text, turn.at)
    return Statement(
        text=_told(dated.text, who, frame),
        frame=frame,
        turn=turn.number,
        single=has_slot(text),
        words=frozenset(filters.content_words(text.lower())),
        valid_from=dated.valid_from,
        valid_to=dated.valid_to,
    )


def _told(text: str, who: Persons, frame: Frame) -> str:
    """The sentence about its speaker; what it asks of the listener is told as asked."""
    if frame.name in ASKED and not _begins_in_person(text):
        asked = turn_around(text, who, named=True)
        turned = f"{who.speaker[:1].upper()}{who.speaker[1:]} asks: {asked[:1].lower()}{asked[1:]}"
    else:
        turned = turn_around(_CORRECTING.sub("", text), who)
        turned = turned.replace(f"{who.speaker} is {who.speaker}, ", f"{who.speaker} is ", 1)  # "I'm Ada, a nurse"
    turned = turned.rstrip(" ,;:–-")
    return turned + ("" if turned.endswith((".", "!", '."', "…")) else ".")


def _only_names(text: str, who: Persons) -> bool:
    """Whether it says no more than that the speaker is themselves: "I'm Ada" said by Ada."""
    name = who.speaker.lower()
    return text.lower().rstrip(".!") == f"{name} is {name}"


def _begins_in_person(text: str) -> bool:
    return bool(re.match(r"(?:i|we|my|our)\b", text, re.IGNORECASE))


def _frame(lower: str) -> Frame | None:
    """How it speaks of the speaker; without "I", as a rule for the listener ("always answer in German") or a detail."""
    frame = frame_of(lower)
    if _FIRST.search(lower) or (frame is not None and frame.name in _UNSAID):
        return frame
    return DETAIL if DETAIL.pattern.search(lower) else None


def _asserted(lower: str, end: str, frame: Frame) -> bool:
    """Whether the speaker claims it: no question, no wish in passing, no play."""
    told_not_to = frame.name in ASKED and end != "?" and lower.startswith(("don't ", "do not "))
    if filters.is_question(lower, end) and not told_not_to:
        return False
    if filters.is_hypothetical(lower) or filters.is_play(lower):
        return False
    if frame.name in ASKED:
        return True
    lower = _SO.sub("", lower)
    if filters.is_request(lower) or filters.is_chatter(lower) or _QUOTING.match(lower):
        return False
    return not filters.is_command(lower)


def _english(lower: str) -> bool:
    """Whether "i" is the pronoun: an English verb follows it, or English words are around."""
    subject = _SUBJECT.search(lower)
    if subject and any(word and (is_verb(word) or word in ADVERBS) for word in subject.groups()):
        return True
    known = [word for word in lower.rstrip(".!").split() if word in _ENGLISH or is_verb(word)]
    return len(known) >= 2 or ("'" in lower and bool(known)) or (len(known) == 1 and len(lower.split()) <= 4)

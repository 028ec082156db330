"""What the speaker said beside the fact itself: that it changed, that it was wrong, that it comes on top.

Looks only at the sentences that name the values in question and at their neighbours, so that "actually" about one
thing does not correct another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from wellworn.reflection.matching import lexicon as lx
from wellworn.reflection.matching.reading import Reading, read

MAX_SAID_CHARS = 3_000
_SENTENCE = re.compile(r"[^.!?;\n]+(?:[.!?;\n]+|$)")
_WRONG = re.compile(
    r"""\b(?: misspoke | misheard | misread | misremember\w* | misunderst\w+ | mistaken? | mistakes? | typo | incorrect
    | correction | correct\ (?:myself|that|you) | (?:i|i'm|was|were|got|had|have)\ (?:\w+\ )?wrong
    | wrong\ (?:about|number|date|day|name|address|one|year|time|place) | backwards | swapped\ the | scratch\ that
    | (?:that|this|it)(?:'s|\ is|\ was)\ (?:wrong|incorrect|false|not\ (?:right|true|correct))
    | mix(?:ed)?\ (?:\w+\ )?up | i\ meant | meant\ to\ say | should\ (?:be|have\ been|read|say) | always\ been
    | never\ (?:said|told|mentioned) | not\ what\ i\ said | why\ i\ said
    | i\ (?:wrote|said|typed|told\ you)\ [^,.]{1,40}?(?:,\ not|,?\ but) )""",
    re.VERBOSE | re.IGNORECASE,
)
_DOUBT = re.compile(r"\b(?:actually|sorry|oops|wait|in fact|whoops|hang on)\b|^\W*no\b", re.IGNORECASE)
_CHANGE = re.compile(
    r"""\b(?: now | nowadays | these\ days | any\ ?more | any\ longer | no\ longer | used\ to | mov(?:ed|ing)
    | switch\w* | chang(?:ed|es|ing) | instead | from\ now\ on | as\ of | became | again | since )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_NEWS = re.compile(
    r"""\b(?: left | quit | new | recently | just | resched\w+ | postpon\w+ | push(?:ed)? | brought\ forward | delay\w*
    | extend\w* | promot\w+ | become | start(?:ed|ing) | stop(?:ped)? | replac\w+ | upgrad\w+ | sold | g[ai]ve\ up
    | broke\ up | end(?:ed)? | cancel\w* | turned | last\ (?:week|month|year|spring|summer|autumn|fall|winter) | lost
    | got\ (?:married|divorced|engaged|a\ raise) | retrained | gone | migrat\w+ | finally | outgr[eo]w\w* | retired
    | updated? | took\ over | rais(?:ed|e) )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_MOVE = re.compile(r"\b(?:mov(?:ed|ing)|relocat\w+|settled|left|emigrat\w+|immigrat\w+)\b", re.IGNORECASE)
_MORE = re.compile(
    r"""\b(?: also | as\ well | in\ addition | additionally | besides | on\ the\ side | part[-\ ]time | both
    | second\ \w+ | side\ (?:job|gig|hustle|project) | (?:on|at)\ (?:the\ )?weekends? | sometimes | one\ more
    | moonlight\w* | during\ the | for\ the\ (?:week|summer|winter|month|time\ being) | temporar\w+ | holiday\ home )\b
    | ,\ too\b""",
    re.VERBOSE | re.IGNORECASE,
)
_NEVER = re.compile(r"\bnever\ (?:\w+ed|was|were|had|been|did|went|said|ate|drank|met|saw|owned|knew)\b", re.IGNORECASE)
_LEAVING = lx.word_set("instead rather replac switch ditch drop cancel leav quit swap sell stop migrat abandon")

_GOING = frozenset({"move", "chang", "go"})


@dataclass(frozen=True, kw_only=True)
class Cues:
    """How something was said: whether it corrects, changes or adds; `left` and `denied` are about the old value."""

    wrong: bool
    doubt: bool
    change: bool
    """Said outright: now, no longer, instead."""
    news: bool
    """Told as news: just, new, postponed."""
    moved: bool
    more: bool
    never: bool
    left: bool
    denied: bool


class Said:
    """What was said, sentence by sentence; the new memory's own text counts as the last. Read when first asked."""

    def __init__(self, said: str, new: Reading, *, speaker: str | None) -> None:
        self._said = said
        self._new = new
        self._speaker = speaker

    @cached_property
    def sentences(self) -> tuple[Reading, ...]:
        text = self._said[:MAX_SAID_CHARS].replace("’", "'")
        found = [match[0].strip() for match in _SENTENCE.finditer(text)]
        return (*(read(sentence, speaker=self._speaker) for sentence in found if sentence), self._new)

    def about(self, new: Iterable[str], old: Iterable[str]) -> Cues:
        """The cues near a mention of the new or the old value, given by their keys."""
        before = frozenset(old)
        near = self._near(frozenset(new) | before)
        text = "\n".join(reading.text for reading in near)
        change = bool(_CHANGE.search(text))
        denied = any(_denies(reading, before) for reading in near)
        return Cues(
            wrong=bool(_WRONG.search(text)),
            doubt=any(_DOUBT.search(reading.text) for reading in near),
            change=change,
            news=change or bool(_NEWS.search(text)),
            moved=bool(_MOVE.search(text)),
            more=bool(_MORE.search(text)),
            never=bool(_NEVER.search(text)),
            left=any(leaves(reading, before) for reading in near) or (denied and change),
            denied=denied,
        )

    def _near(self, keys: frozenset[str]) -> list[Reading]:
        """The sentences that name one of the keys, with those before and after; all of a few when none does."""
        spoken = self.sentences[:-1]
        hits = {place for place, reading in enumerate(spoken) if keys & {atom.key for atom in reading.telling}}
        if not hits and len(spoken) <= 3:
            return [*self.sentences]
        wanted = {near for place in hits for near in (place - 1, place, place + 1)}
        return [reading for place, reading in enumerate(spoken) if place in wanted] + [self.sentences[-1]]


def _denies(reading: Reading, keys: frozenset[str]) -> bool:
    """Whether the sentence says "not" of all the keys: "it's Max, not Rex"."""
    negated = {atom.key for atom in reading.telling if atom.negated}
    plain = {atom.key for atom in reading.telling if not atom.negated}
    return bool(keys) and keys <= negated and not keys <= plain


def leaves(reading: Reading, keys: frozenset[str]) -> bool:
    """Whether the sentence says that the keys' value was left: instead of it, from it to another, sold it."""
    atoms = reading.atoms
    named = [atom for atom in reading.telling if atom.key in keys]
    if not keys or not keys <= {atom.key for atom in named}:
        return False
    if any(atom.negated for atom in named) and reading.ended:
        return True
    if all(atom.role == "from" for atom in named) and (_LEAVING | _GOING) & {atom.key for atom in reading.telling}:
        return True
    first = next(place for place, atom in enumerate(atoms) if atom.key in keys)
    return any(_says_leaving(atoms[place].raw, atoms[place].key) for place in range(max(0, first - 4), first))


def _says_leaving(raw: str, key: str) -> bool:
    return key in _LEAVING or raw in ("instead", "rather")

"""Compare two memories without a language model: the same, more of the same, a change, or unrelated.

`compare(old, new)` reads each memory as a claim: a subject, a slot (the verb with its preposition) and a value. A
change needs the same subject, the same slot, a different value and a sign that only one of them can hold. In doubt two
memories are unrelated, because a duplicate does less harm than a lost fact. Vectors are not used: a number, a name or a
"not" hardly moves a cosine.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from wellworn.ingest.terms import stem
from wellworn.reflection.candidate import Candidate
from wellworn.reflection.person import MODALS, is_adverb, is_past
from wellworn.reflection.sentences import sentences

RelationKind = Literal["same", "adds", "supersedes", "unrelated"]


@dataclass(frozen=True, kw_only=True)
class Relation:
    """How a new memory relates to an old one, and the rule that decided."""

    kind: RelationKind
    why: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A memory as subject, slot and value; without a subject where its form is not understood."""

    text: str
    """All of it in lower case, without accents and punctuation."""
    subject: tuple[str, ...] = ()
    attribute: bool = False
    """The subject is something of somebody, or a certain thing: "Ada's manager", "the deploy key"."""
    slot: tuple[str, str] = ("", "")
    """The verb, with its tense or modal, and the preposition behind it."""
    value: tuple[str, ...] = ()
    """The words behind the slot, stemmed, without articles."""
    sort: str = ""
    """What the value is: a "number", a "day", a "name", or something else ("")."""
    negated: bool = False
    replaced: tuple[tuple[str, ...], ...] = ()
    """What it says is no longer so: "instead of pip", "…, not Tomas", "sold the Volvo"."""
    sorted: tuple[tuple[str, str], ...] = ()
    """Every word for comparing, with its sort."""

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word for word, _ in self.sorted)

    simple: bool = True
    """It says this and nothing more, and names no year that may be long ago."""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SPEAKER = "@"
_ATTRIBUTED = re.compile(r"^([^\W\d_][\w .'’-]{0,60}): (?=\S)")
_DATE_BEHIND = re.compile(r" \(\d{4}[-\d]*(?: to [-\d]+)?\)")
_PUNCTUATION = re.compile(r"[.,;:!?\"()。！？]+(?=\s|$)|[\"(]")
_TOKEN = re.compile(r"@|[^\W_]+(?:[.,:@/-][^\W_]+)*[+#]*|'s\b|[^\w\s.,;:!?'\"()]+")
_CONTRACTIONS = (
    ("can't", "can not"),
    ("cannot", "can not"),
    ("won't", "will not"),
    ("n't", " not"),
    ("'m ", " is "),
    ("'ve ", " has "),
    ("'re ", " are "),
    ("'ll ", " will "),
)
_PERSON = {
    "i": [_SPEAKER],
    "we": [_SPEAKER],
    "me": [_SPEAKER],
    "them": [_SPEAKER],
    "my": [_SPEAKER, "'s"],
    "their": [_SPEAKER, "'s"],
}
_BE = {"is": "is", "are": "is", "am": "is", "was": "was", "were": "was"}
_ARTICLES = _set("a an the this that my our their his her its 's @")
_DEFINITE = _set("the our this")
_PREPOSITIONS = _set("in at to for on with without from as by of into over under near before after during until since")
_GOES_ON = _PREPOSITIONS | _set("and or called named who which that because every each so when where while")
"""After these words a longer value says more of the same: "in Berlin with a cat", but not "a dog allergy"."""
_NEGATIONS = _set("not no never cannot stopped quit")
_FILLERS = _set("called named now currently anymore longer just recently already still please also always then")
_RESTRICTS = _set("only except hardly rarely unless if")
_NUMBERS = _set("one two three four five six seven eight nine ten eleven twelve")
_DAYS = _set("monday tuesday wednesday thursday friday saturday sunday")
_SEVERAL = frozenset(map(stem, "sister brother son daughter child friend colleague cousin cat dog pet".split()))  # noqa: SIM905
"""A person may have several of these."""
_ONE_AT_A_TIME = frozenset({("live", "in"), ("live", "at"), ("work", "at"), ("work", "for"), ("report", "to")})
"""Slots that hold one value at a time; so does an attribute: "Ada's manager is", "the deploy key is in"."""
_MANY_AT_A_TIME = _set("has have own keep know speak play like love enjoy is")
_AMOUNTS = _set("is has weigh")
"""Verbs of an amount that changes: "is 34 years old", "has two cats"."""
_SAME_SLOT = {
    ("move+past", "to"): ("live", "in"),
    ("switch+past", "to"): ("use", ""),
    ("switch+past", "from"): ("use", ""),
}
_REPLACED = re.compile(
    r"\b(?:instead of|rather than|not|no longer|(?:switched|moved|changed) from|sold|ditched|cancelled|returned|left"
    r"|replaced|got rid of|gave away)\s+([^\s,;.]+(?:\s+[^\s,;.]+){0,3}?)(?=\s+(?:to|please|any ?more|and|for|with|by|as)\b|[,;.]|$)"
)
"""What ends, behind the words that say so."""
_MOVED = re.compile(
    r"\b(?:moved|pushed|postponed|shifted|slipped|rescheduled|delayed|renamed|changed|switched|brought forward)\b|\bnow\b"
)
_TAKEN_OVER = re.compile(r"\b(?:took over|takes over|replaced|replaces|succeeded|succeeds|instead of)\b")
_LONG_AGO = re.compile(r"\b(?:19|20)\d\d\b|\bago\b|\bused to\b")
_LONGEST_SIMPLE_VALUE = 4


def compare(old: str, new: str, *, speaker: str | None = None) -> Relation:
    """How `new`, which was said later, relates to `old`. `speaker` is who said both, if that is known."""
    return relate(claim(old, speaker), claim(new, speaker))


def relate(old: Claim, new: Claim) -> Relation:
    """The relation of two memories that were read already."""
    if old.text == new.text:
        return Relation(kind="same", why="same words")
    if old.simple and not old.negated and (_is_moved(old, new) or _is_taken_over(old, new)):
        return Relation(kind="supersedes", why="says that it has changed")
    if not old.subject or old.subject != new.subject:
        return Relation(kind="unrelated", why="other subject")
    if old.simple and not old.negated and _is_replaced(old, new):
        return Relation(kind="supersedes", why="says that it no longer holds")
    if old.slot != new.slot:
        return Relation(kind="unrelated", why="other attribute")
    if old.negated != new.negated:
        return _opposite(old, new)
    return _other_value(old, new)


def _is_replaced(old: Claim, new: Claim) -> bool:
    """ "Sold the Volvo" ends "drives a Volvo V60"; "no longer vegan" ends "is vegan"."""
    ended = [phrase for phrase in new.replaced if phrase and old.value[: len(phrase)] == phrase]
    return bool(ended) and not any(phrase[0] in old.value for phrase in old.replaced)


def _is_moved(old: Claim, new: Claim) -> bool:
    """ "They pushed the retro to Thursday" moves "the retro is on Tuesday": same thing, a new value of the same sort."""
    if not (old.attribute and old.sort and _MOVED.search(new.text)) or new.negated:
        return False
    about = {word for word in old.subject if word != _SPEAKER}
    values = {word for word, sort in new.sorted if sort == old.sort} - about - {*old.value}
    gone = old.value[0] not in new.words or any(phrase[:1] == old.value[:1] for phrase in new.replaced)
    return gone and bool(about) and about <= {*new.words} and bool(values)


def _is_taken_over(old: Claim, new: Claim) -> bool:
    """ "Mira took over the backend team from Jonas" ends "Jonas leads the backend team"."""
    parts = {*old.subject, *old.value} - {_SPEAKER}
    return bool(old.subject and old.value) and bool(_TAKEN_OVER.search(new.text)) and parts <= {*new.words}


def _opposite(old: Claim, new: Claim) -> Relation:
    """ "Eats no meat" denies "eats meat on Sundays"; "drinks no coffee after noon" does not deny "drinks coffee"."""
    no, yes = (old, new) if old.negated else (new, old)
    if no.value and set(no.value) <= set(yes.value) and old.simple:
        return Relation(kind="supersedes", why="says the opposite")
    return Relation(kind="unrelated", why="other value")


def _other_value(old: Claim, new: Claim) -> Relation:
    if new.value == old.value:
        return Relation(kind="same", why="same claim")
    if _is_more(new, old):
        return Relation(kind="adds", why="more detail")
    if _is_more(old, new):
        return Relation(kind="same", why="less detail")
    if _excludes(old, new) or _is_so_now(old, new):
        return Relation(kind="supersedes", why="another value")
    return Relation(kind="unrelated", why="other value")


def _is_more(longer: Claim, shorter: Claim) -> bool:
    """Whether one value begins with all of the other and goes on with a detail."""
    size = len(shorter.value)
    begins = 0 < size < len(longer.value) and longer.value[:size] == shorter.value
    return begins and longer.value[size] in _GOES_ON and _RESTRICTS.isdisjoint(longer.text.split())


def _excludes(old: Claim, new: Claim) -> bool:
    """Whether only one of two values can hold: two names, days or amounts where there is room for one."""
    if not (old.simple and new.simple) or old.negated or not old.value or not new.value:
        return False
    if not old.sort or old.sort != new.sort:
        return "favourit" in new.subject or "favorit" in new.subject
    unit = set(old.value[1:]) & set(new.value[1:]) if old.sort == "number" else set()
    if (set(old.value) & set(new.value)) - unit or _is_acronym(old, new) or _is_acronym(new, old):
        return False
    if new.slot in _ONE_AT_A_TIME or (unit and new.slot[0] in _AMOUNTS and old.value[1:] == new.value[1:]):
        return True
    return new.attribute and new.slot[0] == "is" and _SEVERAL.isdisjoint(new.subject)


def _is_so_now(old: Claim, new: Claim) -> bool:
    """ "Works as a teacher now": said of the present, of what one does or uses rather than has or likes."""
    told_now = bool(re.search(r"\b(?:now|these days|nowadays|currently)\b", new.text)) and "also" not in new.words
    return told_now and old.simple and new.slot[0] not in _MANY_AT_A_TIME and {*old.value}.isdisjoint(new.value)


def _is_acronym(short: Claim, long: Claim) -> bool:
    initials = "".join(word[0] for word in long.value)
    return len(initials) > 1 and short.value[0].replace(".", "") == initials


# -- reading a claim ------------------------------------------------------------
def claim(text: str, speaker: str | None = None) -> Claim:
    """Read a memory as a claim."""
    attributed = _ATTRIBUTED.match(text)
    said = _DATE_BEHIND.sub("", text[attributed.end() :] if attributed else text).replace("’", "'").strip()
    parts = [one.text for one in sentences(said)] or [said]
    first, more = parts[0], parts[1:]
    raw = _tokens(first, attributed[1] if attributed else speaker)
    words = [word.lower() for word in raw]
    read = Claim(
        text=" ".join(_PUNCTUATION.sub(" ", fold(said)).split()),
        sorted=tuple((_normal(word), _sort(word) if n else "") for n, word in enumerate(raw)),
        replaced=tuple(
            tuple(_normal(word) for word in part.split() if word not in _ARTICLES | _PREPOSITIONS)
            for part in _REPLACED.findall(first.lower())
        ),
    )
    found = _subject(raw, words, instruction=attributed is not None)
    if found is None:
        return read
    subject, at = found
    at, modal = _to_verb(words, at)
    past = "+past" if is_past(words[at]) and words[at] not in _BE else ""
    verb = modal + (_BE.get(words[at]) or stem(words[at]) + past)
    rest = [n for n in range(at + 1, len(words)) if words[n] not in _FILLERS | _NEGATIONS | _ARTICLES]
    preposition = words[rest[0]] if rest and words[rest[0]] in _PREPOSITIONS else ""
    value = rest[1:] if preposition else rest
    slot = _SAME_SLOT.get((verb, preposition), (verb, preposition))
    sort = _sort(raw[value[0]]) if value else ""
    if value and not sort and slot in _ONE_AT_A_TIME and words[value[0] - 1] not in _ARTICLES:
        sort = "name"  # in small letters
    return replace(
        read,
        subject=tuple(map(_normal, subject)),
        attribute=words[1] == "'s" or words[0] in _DEFINITE,
        slot=slot,
        value=tuple(_normal(words[n]) for n in value),
        sort=sort,
        negated=not _NEGATIONS.isdisjoint(words[: at + 2]),
        simple=not more and len(value) <= _LONGEST_SIMPLE_VALUE and not _LONG_AGO.search(said),
    )


def _tokens(text: str, speaker: str | None) -> list[str]:
    """The words in order, with the speaker's name and "I" as one sign."""
    for short, long in _CONTRACTIONS:
        text = text.replace(short, long)
    if speaker:
        text = re.sub(rf"\b{re.escape(speaker)}\b", _SPEAKER, text, flags=re.IGNORECASE)
    return [token for word in _TOKEN.findall(text) for token in _PERSON.get(word.lower(), [word])]


def _subject(raw: list[str], words: list[str], *, instruction: bool) -> tuple[list[str], int] | None:
    """The words of the subject and the place behind them."""
    if len(words) < 2:
        return None
    if words[0] == _SPEAKER and words[1] != "'s":
        return [words[0]], 1
    owned = words[1] == "'s"
    if owned or words[0] in _DEFINITE:
        start = 2 if owned else 1
        for at in range(start + 1, min(len(words), 8)):
            if words[at] in _BE or words[at] in MODALS or re.fullmatch(r"\w+s", words[at]) or is_past(words[at]):
                return [word for word in words[:at] if word not in {*_DEFINITE, "'s"}], at
        return None
    if instruction:
        return [_SPEAKER], 0  # "Ada: Use uv"
    return ([words[0]], 1) if raw[0][:1].isupper() and words[1].endswith(("s", "d")) else None


def _to_verb(words: list[str], at: int) -> tuple[int, str]:
    """The place of the verb behind adverbs, negations and auxiliaries, and what it is qualified by: "might", "rarely"."""
    modal = ""
    while at + 1 < len(words):
        word, after = words[at], words[at + 1]
        helps = (word in ("has", "have", "had") and is_past(after)) or (
            word in ("do", "does", "did") and after == "not"
        )
        if word in MODALS or (is_adverb(word) and word not in _FILLERS | _NEGATIONS):
            modal += f"{word} "
        elif not (helps or word in _NEGATIONS or word in _FILLERS):
            break
        at += 1
    return at, modal


def _sort(word: str) -> str:
    if word.lower().rstrip("s") in _DAYS:
        return "day"
    if re.sub(r"[.,:]", "", word).isdigit() or word.lower() in _NUMBERS:
        return "number"
    return "" if word[0].islower() else "name"


def fold(text: str) -> str:
    """Lower case without accents."""
    return "".join(char for char in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(char))


def _normal(word: str) -> str:
    """A word for comparing: folded and stemmed; numbers as they are."""
    folded = fold(word)
    return stem(folded) if folded.isalpha() and folded.isascii() else folded.replace(",", "")


# -- repeats within one session ------------------------------------------------------------
def group_same(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without repeats, in the order of their first mention.

    Those that say the same, or one more than the other, become one with the turns of both, the fuller text and the
    higher confidence. Changes stay apart: the comparison with what is stored judges them.
    """
    kept: list[tuple[Candidate, Claim]] = []
    for one in candidates:
        read = claim(one.summary, one.speaker)
        for place, (before, known) in enumerate(kept):
            kind = relate(known, read).kind
            changed = any(relate(known, later).kind == "supersedes" for _, later in kept[place + 1 :])
            if kind in ("same", "adds") and may_be_one(one.speaker, before.speaker) and not changed:
                kept[place] = (_united(one, before), read) if kind == "adds" else (_united(before, one), known)
                break
        else:
            kept.append((one, read))
    return [one for one, _ in kept]


def may_be_one(one: str | None, other: str | None) -> bool:
    """Whether two speakers may be the same person: unknown, equal, or `Ada` and `Ada Lovelace`."""
    if not one or not other:
        return True
    first, second = fold(one).split(), fold(other).split()
    return first[: len(second)] == second[: len(first)]


def _united(fuller: Candidate, other: Candidate) -> Candidate:
    return replace(
        fuller,
        turns=tuple(sorted({*fuller.turns, *other.turns})),
        title=fuller.title or other.title,
        confidence=max(fuller.confidence, other.confidence),
        speaker=fuller.speaker or other.speaker,
        valid_from=fuller.valid_from or other.valid_from,
        valid_to=fuller.valid_to or other.valid_to,
    )

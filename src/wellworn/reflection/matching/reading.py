"""A memory's text as the comparison reads it: atoms that carry meaning, each in one form, with what steers them.

`Ada doesn't like green tea anymore` is ada · like · green · tea, the last three negated, and the state ended. English
rules; a text in another language keeps its words as they stand and is marked foreign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from wellworn.ingest.terms import stem
from wellworn.reflection.matching import lexicon as lx
from wellworn.reflection.matching.names import joined
from wellworn.reflection.matching.quantities import quantified
from wellworn.reflection.matching.tokens import Token, near_key, tokens

AtomKind = Literal["name", "word", "number", "clock", "date", "email", "phone", "link", "sign", "function", "mark"]

MAX_READ_CHARS = 4_000
"""Longer texts are compared by their wording only."""
_LONGEST_PHRASE = max(len(phrase) for phrase in lx.PHRASES)
_LONGEST_FRONT = 8
_ENDING = frozenset({"stopped", "stops", "stop", "quit", "quits", "ceased", "outgrew", "outgrown", "stopping"})
_BEGINNING = frozenset({"started", "starts", "start", "began", "begun", "begins", "resumed"})
_WHEN = frozenset({"yesterday", "today", "tomorrow", "tonight", "last", "recently"})
"""Words that begin a phrase of time without a preposition."""
_OPENING = frozenset({"actually", "no", "sorry", "well", "correction"})
_TURNS = frozenset({"but", "because", "although", "though", "while", "whereas"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Atom:
    """A unit of a text: `key` is what it is compared by, `raw` its folded word."""

    key: str
    kind: AtomKind
    raw: str
    start: int
    end: int
    role: str = ""
    """The preposition that leads its phrase, if any."""
    negated: bool = False
    past: bool = False
    closes: bool = False
    """Whether it ends a phrase: `dog` in "has a dog", not in "has a dog allergy"."""

    @property
    def tells(self) -> bool:
        return self.kind not in ("function", "mark")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """A text, read. `atoms` holds everything in order; `near` is equal for texts that differ in form only."""

    text: str
    near: tuple[str, ...]
    atoms: tuple[Atom, ...] = ()
    front: int = 0
    """Where in `atoms` the subject begins: after "In Denver," and the like."""
    verb: int = 0
    """Where in `atoms` the first clause's verb stands."""
    ended: bool = False
    question: bool = False
    foreign: bool = False

    @property
    def telling(self) -> tuple[Atom, ...]:
        return tuple(atom for atom in self.atoms if atom.tells)

    @property
    def subject(self) -> tuple[str, ...]:
        """The keys of what the text is about; empty when it is a pronoun that stands for someone unnamed."""
        return tuple(
            atom.key
            for atom in self.atoms[self.front : self.verb]
            if atom.tells and not (atom.role and atom.kind in ("date", "clock", "number"))
        )


def read(text: str, *, speaker: str | None = None) -> Reading:
    """The reading of a text; "I" and "the user" are the speaker, where one is known."""
    found = tokens(text)
    near = near_key(found)
    question = bool(near) and near[-1] == "?"
    if len(text) > MAX_READ_CHARS or not near:
        return Reading(text=text, near=near, question=question, foreign=True)
    foreign = _is_foreign(found)
    who = " ".join(token.raw for token in tokens(speaker or "") if token.kind == "word") or "user"
    atoms = _atoms(_phrased(joined(quantified(found))), who)
    front = _front(atoms)
    verb = front + _verb(atoms[front:])
    atoms, ended = _negated(_tensed(atoms, verb))
    return Reading(
        text=text,
        near=near,
        atoms=tuple(_placed(atoms)),
        front=front,
        verb=verb,
        ended=ended,
        question=question,
        foreign=foreign,
    )


def _is_foreign(found: Sequence[Token]) -> bool:
    """Whether English rules should keep away: other scripts, or function words of other languages."""
    words = [token for token in found if token.kind == "word"]
    other = sum(not token.raw.isascii() and not token.capital for token in words)
    other += sum(token.raw in lx.FOREIGN and not token.capital for token in words)
    return other > 0 and 4 * other >= len(words)


def _phrased(found: Sequence[Token]) -> list[Token]:
    """The tokens with fixed phrases and multi-word aliases in one form."""
    made: list[Token] = []
    place = 0
    while place < len(found):
        used, replacement = _phrase_at(found, place)
        if not used:
            made.append(found[place])
            place += 1
            continue
        first, last = found[place], found[place + used - 1]
        made += [replace(first, raw=word, text=word, end=last.end) for word in replacement]
        place += used
    return made


def _phrase_at(found: Sequence[Token], place: int) -> tuple[int, tuple[str, ...]]:
    if found[place].kind != "word":
        return 0, ()
    ahead = [token.raw for token in found[place : place + _LONGEST_PHRASE + 1]]
    for length in range(min(len(ahead), _LONGEST_PHRASE), 1, -1):
        key = tuple(ahead[:length])
        if key in lx.PHRASES:
            return length, lx.PHRASES[key]
        alias = lx.ALIASES.get(" ".join(key))
        if alias is not None:
            return length, (alias,)
    if ahead[0] in ("a", "an") and len(ahead) > 1 and ahead[1] in lx.SPANS and _is_rate(found, place):
        return 1, ("per",)
    if ahead[:2] == ["going", "to"] and len(ahead) > 2 and _may_be_verb(found[place + 2]):
        return 2, ("plan",)
    if ahead[:2] == ["used", "to"] and (place == 0 or found[place - 1].raw not in lx.BE):
        return 2, ("not", "anymore")
    return 0, ()


def _is_rate(found: Sequence[Token], place: int) -> bool:
    """Whether "a" means "per": 20 euros a month, twice a day."""
    before = found[max(0, place - 2) : place]
    return any(token.kind == "number" or token.raw in ("twice", "once", "times") for token in before)


def _may_be_verb(token: Token) -> bool:
    return token.kind == "word" and not token.capital and token.raw not in lx.DETERMINERS


def _atoms(found: Sequence[Token], who: str) -> list[Atom]:
    atoms: list[Atom] = []
    for place, token in enumerate(found):
        if token.kind == "mark":
            atoms.append(_atom(token, token.raw, "mark"))
        elif token.kind != "word":
            atoms.append(_atom(token, lx.SYNONYMS.get(token.raw, token.raw), token.kind))
        else:
            atoms += _word_atoms(found, place, who)
    return atoms


def _atom(token: Token, key: str, kind: AtomKind) -> Atom:
    return Atom(key=key, kind=kind, raw=token.raw, start=token.start, end=token.end)


def _word_atoms(found: Sequence[Token], place: int, who: str) -> list[Atom]:
    token = found[place]
    raw = token.raw
    if raw in ("i", "me", "user", "users"):
        return [_atom(token, who, "name")]
    if raw in ("my", "mine"):
        return [_atom(token, who, "name"), _atom(replace(token, raw="'s", start=token.end), "'s", "function")]
    if token.capital and len(raw) > 1 and token.text.isupper() and raw in lx.ALIASES:
        return [_atom(token, lx.ALIASES[raw], "name")]
    if token.capital and (" " in raw or token.text == raw or not lx.is_plain(raw)) and raw not in lx.MODALS:
        known = lx.ALIASES.get(raw, raw) if raw not in lx.UPPER_ONLY or token.text.isupper() else raw
        return [_atom(token, known, "name")]
    if raw in ("dislike", "dislikes", "disliked") or lx.SYNONYMS.get(raw) == "dislike":
        return [_atom(replace(token, raw="not"), "not", "function"), _atom(token, "like", "word")]
    if raw in _ENDING and _ends_something(found, place):
        return [_atom(replace(token, raw=word), word, "function") for word in ("not", "anymore")]
    if raw in _BEGINNING and place + 1 < len(found) and found[place + 1].raw.endswith("ing"):
        return [_atom(token, "begin", "function")]
    if raw in lx.PRONOUNS or raw in ("hers", "theirs") or (raw == "her" and _ends_phrase(found, place)):
        return [_atom(token, raw, "word" if place and raw not in lx.REFLEXIVE else "function")]
    return [_atom(token, *_class_of(found, place))]


def _ends_phrase(found: Sequence[Token], place: int) -> bool:
    """Whether nothing follows that a possessive could belong to: likes her, not likes her dog."""
    after = found[place + 1] if place + 1 < len(found) else None
    return after is None or after.kind in ("mark", "clock", "date") or after.raw in lx.AFTER_OBJECTS


def _ends_something(found: Sequence[Token], place: int) -> bool:
    after = found[place + 1] if place + 1 < len(found) else None
    return (
        after is not None
        and after.kind == "word"
        and (after.raw.endswith("ing") or (found[place].raw not in ("stopped", "stops", "stop") and after.raw != "as"))
    )


def _class_of(found: Sequence[Token], place: int) -> tuple[str, AtomKind]:
    """The key and kind of a plain word."""
    raw = found[place].raw
    if raw in lx.HAVE:
        return (raw, "function") if _is_auxiliary(found, place) else ("have", "word")
    if raw in lx.MODALS:
        return lx.MODALS[raw], "word"
    if raw in ("not", "never", "no", "nor", "neither", "none", "anymore", "'s") or raw in lx.BE or raw in lx.DO:
        return raw, "function"
    for group in (lx.PREPOSITIONS, lx.CONJUNCTIONS, lx.DETERMINERS, lx.PRONOUNS, lx.LIGHT_ADVERBS, lx.ADJOINING):
        if raw in group and not (raw in ("if", "when", "before") and raw in lx.CONJUNCTIONS):
            return raw, "function"
    return key_of(raw), "word"


def _is_auxiliary(found: Sequence[Token], place: int) -> bool:
    """Whether a form of "have" only helps a verb: has moved, has not been. To have an allergy is to be allergic."""
    if any(token.raw in ("allergy", "allergies") for token in found[place + 1 : place + 5]):
        return True
    for token in found[place + 1 : place + 4]:
        if token.raw in ("not", "never") or token.raw in lx.LIGHT_ADVERBS or token.raw in lx.ADJOINING:
            continue
        return token.raw in lx.IRREGULAR or (token.raw.endswith("ed") and not token.capital)
    return False


def key_of(raw: str) -> str:
    """What a lower-case word is compared by: its group of synonyms, else its stem."""
    spelled = lx.SPELLING.get(raw, raw)
    if spelled in lx.SYNONYMS:
        return lx.SYNONYMS[spelled]
    if spelled in lx.ALIASES and spelled not in lx.UPPER_ONLY:
        return lx.ALIASES[spelled]
    base = lx.IRREGULAR.get(spelled, spelled)
    return lx.SYNONYMS.get(base, stem(base) if base.isascii() else base)


def _front(atoms: Sequence[Atom]) -> int:
    """Where the subject begins: behind "actually," or the comma that closes a phrase of place or time put first."""
    first = atoms[0]
    if first.raw in _OPENING and len(atoms) > 1 and atoms[1].raw == ",":
        return 2
    if first.raw not in lx.PREPOSITIONS and first.kind != "date" and first.raw not in ("last", "next", "this", "every"):
        return 0
    for place, atom in enumerate(atoms[:_LONGEST_FRONT]):
        if atom.kind == "mark":
            return place + 1 if atom.raw == "," else 0
    return 0


def _verb(atoms: Sequence[Atom]) -> int:
    """Where the first verb stands, as far as form tells; the end of the first phrase when nothing does."""
    for place, atom in enumerate(atoms):
        before = atoms[place - 1] if place else None
        if atom.kind == "mark" and place:
            return _first_end(atoms)
        if before is None or atom.kind not in ("word", "function"):
            continue
        if atom.kind == "function" and (atom.raw in lx.BE or atom.raw in lx.DO or atom.raw in lx.HAVE or _steers(atom)):
            return place
        led = before.raw in lx.DETERMINERS or before.key == "'s"
        if atom.kind == "word" and not led and _looks_like_verb(atom, before):
            return place
    return _first_end(atoms)


def _steers(atom: Atom) -> bool:
    return atom.key in ("not", "never", "begin", "anymore")


def _looks_like_verb(atom: Atom, before: Atom) -> bool:
    if atom.key in (
        "have",
        "plan",
        "want",
        "maybe",
        "should",
        "must",
        "can",
        "would",
        "like",
        "live",
        "move",
        "prefer",
    ):
        return True
    if before.kind == "name" or before.raw in lx.PRONOUNS or before.raw in lx.LIGHT_ADVERBS or before.raw == "also":
        return True
    return atom.raw.endswith(("s", "ed")) or atom.raw in lx.IRREGULAR


def _first_end(atoms: Sequence[Atom]) -> int:
    return next((place + 1 for place, atom in enumerate(atoms) if atom.tells), 0)


def _tensed(atoms: Sequence[Atom], verb: int) -> list[Atom]:
    """The atoms with the first verb marked when it tells of the past; "has lived since" tells of now."""
    helper = ""
    raws = {atom.raw for atom in atoms}
    made = [*atoms]
    for place in range(verb, min(len(atoms), verb + 6)):
        atom = atoms[place]
        if atom.kind == "function":
            helper = atom.raw if atom.raw in lx.BE or atom.raw in lx.HAVE or atom.raw in lx.DO else helper
            continue
        form = atom.raw in lx.IRREGULAR or atom.raw.endswith("ed")
        if helper in lx.HAVE:
            past = form and not raws & {"since", "for"}
        elif helper:
            past = helper in ("was", "were", "did")
        else:
            past = form and atom.kind == "word" and atom.raw != "need"
        made[place] = replace(atom, past=past)
        break
    return made


def _negated(atoms: Sequence[Atom]) -> tuple[list[Atom], bool]:
    """The atoms with everything in a negation's reach marked, and whether a state is said to have ended."""
    made: list[Atom] = []
    negated = ended = False
    for place, atom in enumerate(atoms):
        if atom.key in ("not", "never", "no", "nor", "neither", "none") and atom.kind == "function":
            negated = not (atom.key == "not" and place + 1 < len(atoms) and atoms[place + 1].raw == "only")
        elif atom.key == "anymore":
            ended = True
        elif (atom.kind == "mark" and atom.raw in ".!?;,") or atom.raw in _TURNS:
            negated = False
        made.append(replace(atom, negated=negated and atom.tells))
    return made, ended


def _follows(atom: Atom) -> bool:
    """Whether a word after a phrase begins something of its own: named Rex, fluently, twice."""
    if atom.kind in ("date", "clock") or (atom.kind == "word" and atom.raw in _WHEN):
        return True
    return atom.kind == "word" and (atom.raw in ("named", "called") or atom.raw.endswith("ly") or atom.raw in lx.MANNER)


def _placed(atoms: Sequence[Atom]) -> list[Atom]:
    """The atoms with the preposition of their phrase, and with the ends of phrases marked."""
    made: list[Atom] = []
    role = ""
    for place, atom in enumerate(atoms):
        after = atoms[place + 1] if place + 1 < len(atoms) else None
        if atom.kind == "function" and atom.raw in lx.PREPOSITIONS:
            role = atom.raw
        elif atom.tells:
            closes = after is None or not (after.tells or after.key == "'s") or _follows(after)
            made.append(replace(atom, role=role, closes=closes))
            dated = atom.kind in ("date", "clock") and after is not None and after.kind in ("name", "word")
            if dated or (closes and (after is None or after.raw not in ("and", "or"))):
                role = ""
            continue
        elif atom.kind == "mark" and atom.raw != ",":
            role = ""
        made.append(atom)
    return made

"""A text cut into clauses, and the claims that can be made of one: a slot, whom it is about, and the value.

A slot's policy says what another value means: `single` slots change, `cued` ones only when a word says so, `lasting`
ones never, and of `open` ones there can be many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from wellworn.reflection.matching import attributes as at
from wellworn.reflection.matching import lexicon as lx
from wellworn.reflection.matching.reading import Atom, Reading

Policy = Literal["single", "cued", "lasting", "open"]
_MAX_CLAUSES = 8
_CONJOINED = frozenset({"live", "work", "move", "like", "prefer", "plan", "want", "speak", "studi"})
"""Verbs that begin a clause of their own after a comma or "and"."""
_SUBORDINATING = frozenset({"because", "although", "while", "whereas", "who", "which", "if", "when"})
MARRIED = "marri"


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One thing said of someone: the value of a slot."""

    slot: str
    about: tuple[str, ...]
    value: tuple[Atom, ...]
    policy: Policy = "single"
    negated: bool = False
    past: bool = False
    covers: frozenset[int] = frozenset()
    """Where in the text the atoms stand that this claim accounts for, by their starts."""

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(atom.key for atom in self.value)

    @property
    def heads(self) -> Sequence[Atom]:
        """The words that the value stands or falls with: its numbers and days, else its last word."""
        return heads_of(self.value)

    @property
    def item(self) -> tuple[object, ...]:
        """What two claims share that say the same, up to details of the value."""
        return (self.slot, self.about, tuple(sorted(atom.key for atom in self.heads)), self.negated, self.past)


@dataclass(frozen=True, kw_only=True)
class Clause:
    """A subject and what is said of it."""

    subject: tuple[Atom, ...]
    """Everything before the verb, function words included."""
    helpers: frozenset[str]
    """The function words before the main word."""
    main: Atom
    rest: tuple[Atom, ...]
    """What follows the main word."""

    @property
    def about(self) -> tuple[str, ...]:
        return tuple(atom.key for atom in self.subject if atom.tells)

    @property
    def copular(self) -> bool:
        return bool(self.helpers & lx.BE)


def clauses(reading: Reading) -> Iterator[Clause]:
    subject: tuple[Atom, ...] = tuple(reading.atoms[reading.front : reading.verb])
    bounds = _bounds(reading.atoms, reading.verb)
    for number, (start, end) in enumerate(bounds[:_MAX_CLAUSES]):
        body = reading.atoms[reading.verb if number == 0 else start : end]
        place = next((place for place, atom in enumerate(body) if atom.tells), None)
        if place is None or not any(atom.tells for atom in subject):
            continue
        yield Clause(
            subject=subject,
            helpers=frozenset(atom.raw for atom in body[:place]),
            main=body[place],
            rest=tuple(body[place + 1 :]),
        )


def _bounds(atoms: Sequence[Atom], verb: int) -> list[tuple[int, int]]:
    """Clauses of the first sentence that share its subject: "lives in Rome, works at Acme and has two dogs"."""
    bounds: list[tuple[int, int]] = []
    start = 0
    for place in range(verb, len(atoms)):
        atom = atoms[place]
        if (atom.kind == "mark" and atom.raw in ".!?;") or (atom.kind != "name" and atom.raw in _SUBORDINATING):
            return [*bounds, (start, place)]
        joins = atom.raw in ("and", "but", "or") or (atom.kind == "mark" and atom.raw == ",")
        if joins and _begins_with_verb(atoms, place + 1):
            bounds.append((start, place))
            start = place + 1
    return [*bounds, (start, len(atoms))]


def _begins_with_verb(atoms: Sequence[Atom], place: int) -> bool:
    skipped = lx.ADJOINING | lx.LIGHT_ADVERBS | {"and", "not", "does"}
    atom = next((atom for atom in atoms[place : place + 6] if atom.raw not in skipped), None)
    if atom is None:
        return False
    return atom.raw in lx.BE or atom.raw in lx.HAVE or (atom.kind == "word" and atom.key in _CONJOINED)


def phrase(atoms: Sequence[Atom], place: int) -> tuple[list[Atom], int]:
    """The telling atoms from here to the end of their phrase, and where that is."""
    found: list[Atom] = []
    while place < len(atoms):
        atom = atoms[place]
        if atom.tells:
            found.append(atom)
            if atom.closes:
                return found, place + 1
        elif atom.key != "'s" and (found or atom.raw not in lx.DETERMINERS | lx.LIGHT_ADVERBS):
            break
        place += 1
    return found, place


def led(atoms: Sequence[Atom], preposition: str | tuple[str, ...]) -> list[Atom]:
    """The first phrase that a preposition leads, when nothing but such phrases comes before it."""
    wanted = (preposition,) if isinstance(preposition, str) else preposition
    for place, atom in enumerate(atoms):
        if atom.kind == "function" and atom.raw in wanted:
            return phrase(atoms, place + 1)[0]
        if atom.kind == "mark":
            return []
    return []


def made(clause: Clause, slot: str, value: Sequence[Atom], **given: object) -> list[Claim]:
    """The claim, if there is a value; it accounts for the subject, the verb and the head of the value."""
    if not value:
        return []
    settings: dict[str, object] = {
        "about": clause.about,
        "negated": clause.main.negated,
        "past": clause.main.past,
        "covers": covered(clause, value),
    } | given
    return [Claim(slot=slot, value=tuple(value), **settings)]  # type: ignore[arg-type]  # the names above are its own


def covered(clause: Clause, value: Sequence[Atom]) -> frozenset[int]:
    """The subject, the verb and the heads of the value; its other words are details."""
    verb = [] if clause.main in value else [clause.main]
    return frozenset(atom.start for atom in (*clause.subject, *verb, *heads_of(value)) if atom.tells)


def heads_of(value: Sequence[Atom]) -> Sequence[Atom]:
    """The words that a value stands or falls with: its numbers and days, else its last word."""
    for kinds in (("date", "clock"), ("number",)):
        found = [atom for atom in value if atom.kind in kinds]
        if found:
            return found
    return value[-1:]


def when(clause: Clause, value: Sequence[Atom]) -> list[Claim]:
    head = next((atom.key for atom in reversed(clause.subject) if atom.tells and not atom.role), "")
    once = head in at.DATED
    return made(clause, "when", value, past=False, policy="single" if once else "cued")


def wed(clause: Clause, value: Sequence[Atom], about: tuple[str, ...], covers: frozenset[int]) -> list[Claim]:
    """Tom is Ada's husband: she is married, and to Tom."""
    married = Atom(key=MARRIED, kind="word", raw="married", start=clause.main.start, end=clause.main.end)
    return [
        claim
        for slot, what in (("relationship", [married]), ("spouse", value))
        for claim in made(clause, slot, what, about=about, covers=covers)
    ]

"""Two readings brought to the same names: acronyms, titles, short forms and lower-case spellings of one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from wellworn.reflection.matching.names import is_short_for, same_name
from wellworn.reflection.matching.reading import Atom, Reading

_MOST_NAMES = 40
"""Pairs of names are compared with each other; a text with more is left as it is."""


def aligned(new: Reading, old: Reading, *, speaker: str | None) -> tuple[Reading, Reading, bool]:
    """Both readings with one key for each name they share, and whether a name had to be recognised."""
    new, old = _parted(new, old), _parted(old, new)
    ours, theirs = _names(new), _names(old)
    new, old = _capitalised(new, theirs), _capitalised(old, ours)
    ours, theirs = _names(new), _names(old)
    if len(ours) > _MOST_NAMES or len(theirs) > _MOST_NAMES:
        return new, old, False
    meant: dict[str, str] = {}
    for name in sorted(theirs - ours):
        match = next((mine for mine in sorted(ours - theirs) if same_name(name, mine)), None)
        if match is not None:
            meant[name] = match
    recognised = bool(meant)
    who = " ".join((speaker or "").casefold().split())
    for name in sorted((ours | theirs) - meant.keys()):
        if who and name != who and is_short_for(name, who) and name.split()[0] == who.split()[0]:
            meant[name] = who
    return _renamed(new, meant), _renamed(old, meant), recognised


def _names(reading: Reading) -> set[str]:
    return {atom.key for atom in reading.atoms if atom.kind == "name"}


def _parted(reading: Reading, other: Reading) -> Reading:
    """The reading with runs of capitals cut into words where the other text has the words but not the run.

    `Informal Personal Loan` beside `informal personal loan` is no name.
    """
    names = _names(other)
    words = {word for atom in other.atoms if atom.tells for word in atom.raw.split()}
    cut = [
        atom
        for atom in reading.atoms
        if atom.kind == "name" and " " in atom.raw and atom.key not in names and words.issuperset(atom.raw.split())
    ]
    if not cut:
        return reading
    atoms: list[Atom] = []
    verb, front = reading.verb, reading.front
    for place, atom in enumerate(reading.atoms):
        pieces = _pieces(atom) if atom in cut else [atom]
        verb += (len(pieces) - 1) * (place < reading.verb)
        front += (len(pieces) - 1) * (place < reading.front)
        atoms += pieces
    return replace(reading, atoms=tuple(atoms), verb=verb, front=front)


def _pieces(atom: Atom) -> list[Atom]:
    words = atom.raw.split()
    return [
        replace(atom, key=word, raw=word, start=atom.start + place, closes=atom.closes and place == len(words) - 1)
        for place, word in enumerate(words)
    ]


def _capitalised(reading: Reading, names: set[str]) -> Reading:
    """The reading with words that the other text writes as names made names: `acme` where it has `Acme`."""
    if not any(atom.kind == "word" and atom.raw in names for atom in reading.atoms):
        return reading
    return _with(
        reading,
        [
            replace(atom, key=atom.raw, kind="name") if atom.kind == "word" and atom.raw in names else atom
            for atom in reading.atoms
        ],
    )


def _renamed(reading: Reading, meant: Mapping[str, str]) -> Reading:
    if not meant:
        return reading
    return _with(reading, [replace(atom, key=meant.get(atom.key, atom.key)) for atom in reading.atoms])


def _with(reading: Reading, atoms: list[Atom]) -> Reading:
    return replace(reading, atoms=tuple(atoms))

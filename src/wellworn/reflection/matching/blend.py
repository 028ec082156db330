"""One sentence from two that share a fact and each add something of their own."""

from __future__ import annotations

from wellworn.reflection.matching import lexicon as lx
from wellworn.reflection.matching.extent import holds_apart
from wellworn.reflection.matching.reading import Atom
from wellworn.reflection.matching.slots import Text

_STANDING = frozenset({"home", "employer", "job", "spouse"})
"""Slots that hold over time, so that details told apart belong to one state."""


def blended(new: Text, old: Text) -> str | None:
    """The old text with the new one's details at its end; None when that would not be safe or not be English.

    Only for one shared claim of a standing slot, and details that prepositions lead: "lives in Lisbon with Tom" and
    "lives in Lisbon near the river".
    """
    mine, theirs = new.claims, old.claims
    shared = {claim.item for claim in mine if claim.slot in _STANDING} & {claim.item for claim in theirs}
    if len(shared) != 1 or not holds_apart(new, old):
        return None
    claim = next(claim for claim in mine if claim.item in shared)
    tail = [atom for atom in new.reading.telling if atom.start > max(claim.covers)]
    before = [atom for atom in old.reading.telling if atom.start > max(_one(old, claim.item))]
    if not tail or not before or not _led_apart(tail, before):
        return None
    start = _phrase_start(new, tail[0])
    added = new.reading.text[start:].strip().rstrip(".!")
    return f"{old.reading.text.rstrip().rstrip('.!')} {added}." if added else None


def _one(text: Text, item: object) -> frozenset[int]:
    return next(claim.covers for claim in text.claims if claim.item == item)


def _led_apart(tail: list[Atom], before: list[Atom]) -> bool:
    """Whether every detail has a preposition, and none that the other text uses."""
    mine, theirs = {atom.role for atom in tail}, {atom.role for atom in before}
    return "" not in mine | theirs and not mine & theirs


def _phrase_start(text: Text, first: Atom) -> int:
    """Where the phrase begins that this atom stands in: at its preposition."""
    place = text.reading.atoms.index(first)
    while place > 0 and text.reading.atoms[place].raw not in lx.PREPOSITIONS:
        place -= 1
    return text.reading.atoms[place].start

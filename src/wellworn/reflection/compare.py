"""How a newly extracted memory relates to one that is stored, without a language model.

The same fact in other words is the same; more of it refines; another value where there is room for one is a change;
a speaker who takes something back corrects. Everything else is different: a duplicate does less harm than a lost fact.
Cosine similarity never decides alone, because a number, a name or a "not" hardly moves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wellworn.core.values import Entry
from wellworn.reflection.candidate import Candidate
from wellworn.reflection.matching.align import aligned
from wellworn.reflection.matching.blend import blended
from wellworn.reflection.matching.conflict import clash
from wellworn.reflection.matching.cues import Said
from wellworn.reflection.matching.extent import agree, holds
from wellworn.reflection.matching.names import is_short_for
from wellworn.reflection.matching.reading import Reading, read
from wellworn.reflection.matching.slots import Text, understood
from wellworn.reflection.matching.tokens import fold

RelationKind = Literal["same", "refines", "changed", "corrected", "different"]
UNRELATED_BELOW = 0.2
"""Cosine under which two texts are not taken for one fact in other words."""


@dataclass(frozen=True, kw_only=True)
class Relation:
    """How a new memory relates to an old one."""

    kind: RelationKind
    merged: str | None = None
    """The text that says both, where the new one refines the old."""
    why: str
    """The rule that decided, in a word or two: "exact", "reworded", "value changed: home"."""


def compare(new: Candidate, old: Entry, *, said: str, similarity: float | None = None) -> Relation:
    """The relation of a new memory to an old one.

    `said` is what the new one rests on, verbatim: there the speaker says that something changed or was wrong.
    `similarity` is the cosine of the two, if known; a low one speaks against sameness, a high one for nothing.
    """
    if not may_be_one(new.speaker, old.speaker):
        return Relation(kind="different", why="speaker")
    speaker = max(new.speaker or "", old.speaker or "", key=len) or None
    mine, theirs = read(new.summary, speaker=speaker), read(old.text, speaker=speaker)
    relation = relate(mine, theirs, said=said, speaker=speaker)
    told_alike = relation.why in ("exact", "near")
    if (
        similarity is not None
        and similarity < UNRELATED_BELOW
        and not told_alike
        and relation.kind in ("same", "refines")
    ):
        return Relation(kind="different", why="unlike")
    return relation


def may_be_one(one: str | None, other: str | None) -> bool:
    """Whether two speakers may be the same person: unknown, equal, or `Ada` and `Ada Lovelace`."""
    if not one or not other:
        return True
    first, second = (" ".join(fold(word) for word in name.split()) for name in (one, other))
    return first == second or is_short_for(first, second)


def relate(mine: Reading, theirs: Reading, *, said: str, speaker: str | None) -> Relation:
    """The relation of two texts that are read already."""
    if mine.text.split() == theirs.text.split():
        return Relation(kind="same", why="exact")
    if mine.near and mine.near == theirs.near:
        return Relation(kind="same", why="near")
    if mine.foreign or theirs.foreign:
        return Relation(kind="different", why="wording")
    if mine.question != theirs.question:
        return Relation(kind="different", why="question")
    mine, theirs, recognised = aligned(mine, theirs, speaker=speaker)
    new, old = understood(mine), understood(theirs)
    if agree(new, old):
        return Relation(kind="same", why="acronym" if recognised else "reworded")
    found = clash(new, old, Said(said, mine, speaker=speaker))
    return _extended(new, old) if found is None else Relation(kind=found[0], why=found[1])


def _extended(new: Text, old: Text) -> Relation:
    """More or less of the same fact."""
    if holds(new, old):
        return Relation(kind="refines", merged=new.reading.text, why="more detail")
    if holds(old, new):
        return Relation(kind="same", why="covered")
    merged = blended(new, old)
    if merged is not None:
        return Relation(kind="refines", merged=merged, why="both details")
    return Relation(kind="different", why="other")

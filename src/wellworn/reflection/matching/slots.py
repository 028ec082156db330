"""What a memory claims, slot by slot: where someone lives, for whom they work, how old they are, when an event is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from wellworn.reflection.matching import attributes as at
from wellworn.reflection.matching import lexicon as lx
from wellworn.reflection.matching.being import copular
from wellworn.reflection.matching.clauses import Claim, Clause, clauses
from wellworn.reflection.matching.reading import Atom, Reading
from wellworn.reflection.matching.verbs import BY_VERB


@dataclass(frozen=True, kw_only=True)
class Text:
    """A reading with what it claims."""

    reading: Reading
    claims: Sequence[Claim]

    @cached_property
    def covered(self) -> frozenset[int]:
        """Where the atoms stand that some claim accounts for, by their starts."""
        return frozenset(start for claim in self.claims for start in claim.covers)

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(atom.key for atom in self.reading.telling)

    @property
    def predicate(self) -> Atom | None:
        return next((atom for atom in self.reading.atoms[self.reading.verb :] if atom.tells), None)

    @property
    def action(self) -> str:
        """The key of the first verb that is no "will" or "wants to"."""
        ahead = (atom.key for atom in self.reading.atoms[self.reading.verb :] if atom.tells)
        return next((key for key in ahead if key not in lx.MODAL_KEYS), "")


def understood(reading: Reading) -> Text:
    """The text with its claims, in order; none where nothing is asserted in a form that is known here."""
    if reading.foreign or reading.question:
        return Text(reading=reading, claims=())
    return Text(reading=reading, claims=[claim for clause in clauses(reading) for claim in _claims_of(clause)])


def _claims_of(clause: Clause) -> list[Claim]:
    main = clause.main
    if main.key in at.HYPOTHETICAL and main.kind == "word" and not clause.copular:
        return []
    if {"if", "unless"} & {atom.raw for atom in (*clause.subject, *clause.rest)}:
        return []
    by_verb = BY_VERB.get(main.key)
    found = by_verb(clause) if by_verb is not None and main.kind == "word" else []
    return found or (copular(clause) if clause.copular else [])

"""What a person and an assistant settle between them: an offer and how it was taken.

The assistant's words count only as what the person answered ("Answering …"), what the person accepted, or the last
result handed over at the person's wish. An offer that was turned down is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wellworn.core.values import Turn
from wellworn.reflection.candidate import Candidate
from wellworn.reflection.rules.gist import Gist, gist
from wellworn.reflection.rules.replies import answer

ACCEPTED_POINTS = 3
"""Points that an accepted answer must list to be worth keeping."""
HANDED_OVER_POINTS = 10
"""Points that a result nobody replied to must list."""
_CONFIDENCE = 0.5
_OPEN = re.compile(r"(?:^|[,.] )(?:and )?(?:which|what|where|who|how|when)\b")
_OF_PERSON = re.compile(r"\b(?:do|are|did|have|would|will) you\b|\byour\b")
_CLOSED = re.compile(r"(?:\w+, )?(?:would|do|does|did|are|is|shall|should|can|could|will|have|has|ready|sound|may)\b")


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a person's turn answers: a sentence that goes before their own, and the turns it rests on."""

    text: str = ""
    turns: tuple[int, ...] = ()
    settles: bool = False
    """Enough for a memory even when the person adds nothing."""


def context(before: Turn | None, turn: Turn, speaker: str) -> Context:
    """How the turn takes the assistant's turn right before it."""
    if before is None:
        return Context()
    taken = answer(turn.text)
    offer = gist(before.text)
    name = speaker[:1].upper() + speaker[1:]
    if taken == "accepts" and offer.listed >= ACCEPTED_POINTS:
        return Context(text=f"{name} accepted: {_points(offer)}.", turns=(before.number,), settles=True)
    if taken == "rejects" or not offer.question:
        return Context()
    agreed = taken == "accepts" and _CLOSED.match(offer.question.lower())
    text = f'{name} agreed, asked "{offer.question}"' if agreed else f'Answering "{offer.question}":'
    return Context(text=text, turns=(before.number,))


def asks_of(text: str) -> bool:
    """Whether an assistant's turn ends by asking openly about the person: "Which one do you use?"."""
    question = gist(text).question.lower()
    return bool(_OPEN.search(question) and _OF_PERSON.search(question))


def handed_over(turn: Turn, after: Turn | None, speaker: str) -> Candidate | None:
    """A result that the assistant gave and the person did not turn down."""
    if after is not None and answer(after.text) == "rejects":
        return None
    offer = gist(turn.text)
    if offer.listed < HANDED_OVER_POINTS:
        return None
    return Candidate(
        summary=f"The assistant gave {speaker}: {_points(offer)}.",
        turns=(turn.number,),
        kind="note",
        speaker=speaker,
        confidence=_CONFIDENCE,
    )


def _points(offer: Gist) -> str:
    return "; ".join(offer.points).rstrip("….")

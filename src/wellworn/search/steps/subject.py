"""Questions about somebody who speaks in the memory: asked again for the subject alone, whenever it was said.

Every turn bears its speaker's name, so a question that names one is a little like all that he or she ever said, and
what says little else comes first. Hence the question is asked once more without the names of those who speak here and
without stop words, a supposition also without the words of supposing, and its scores s replace those of the question:

    subject = share · w(terms) · terms_s - w(terms) · terms + w(meaning) · (meaning_s - meaning)
    teller  = 1 where a person who is named speaks
    ageless = -recency: what has been done was done at any time
    event   = 1 where the text names a time, as what tells of a thing that was done mostly does
    detail  = n / (1 + n) for n words that few entries have
    kept    = what the two best hits for the question as it was asked need to stay first

w: the profile's weights. `event` is for what was done, `detail` for what is supposed. Where the question names nobody
who speaks here, and without an embedder, all of this is left out. Weights were set on the five LoCoMo conversations at
hand; leaving out one of them at a time chooses nearly the same (docs/experiments.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wellworn.ingest.hashing import signed64
from wellworn.ingest.terms import Trait, terms
from wellworn.search.context import SearchContext
from wellworn.search.score import Ranked, View
from wellworn.search.steps.bridges import Values
from wellworn.search.steps.order import summarized

TELLER = 0.7
KEPT = 2
"""Best hits that stay first: with none, LoCoMo's questions that name the wrong person lose their answers."""
_STEP = 0.01
"""By how much a hit that is kept is above the next: more than what counts as a tie."""


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How one kind of question about a person is asked again."""

    share: float
    """Of the weight of words: fewer words are a larger part of what can be found."""
    event: float = 0.0
    detail: float = 0.0
    without: frozenset[int] = frozenset()
    """Terms that say how it is asked, not what about."""


GATHERS = Manner(share=0.75, event=0.6)
SUPPOSES = Manner(
    share=0.5,
    detail=1.0,
    without=frozenset(
        terms(
            "likely unlikely probably possibly perhaps potentially considered based kind type sort still another much"
        )
    ),
)


Ask = Callable[[str], View]
"""Both arms for another query, within the time that is left."""


def gathered(ranked: Ranked, context: SearchContext, ask: Ask) -> Ranked:
    """The ranking for what asks for all of a kind: one hit a place (`summarize`)."""
    again = _asked_again(ranked, context, ask, GATHERS)
    if again is None:
        return summarized(ranked, context)
    return _kept(summarized(ranked, context, places=KEPT), summarized(again, context))


def inferred(ranked: Ranked, context: SearchContext, ask: Ask) -> Ranked:
    """The ranking for what is supposed of somebody (`infer`)."""
    again = _asked_again(ranked, context, ask, SUPPOSES)
    return ranked if again is None else _kept(ranked, again)


def subject_of(query: str, named: set[int], without: frozenset[int] = frozenset()) -> str:
    """The words of a question that are neither stop words nor one of these names or terms."""
    words = [(word, terms(word)) for word in query.split()]
    return " ".join(
        word.strip("?!.,;:")
        for word, own in words
        if own and signed64(own[0]) not in named and not without.issuperset(own)
    )


def _asked_again(ranked: Ranked, context: SearchContext, ask: Ask, manner: Manner) -> Ranked | None:
    """The ranking with the factors above but `kept`; None where nobody who speaks here is named, or nothing else is,
    or without vectors: a name is one word among others there, and does no harm."""
    bank = context.bank
    named = {
        name for name in context.view.question.names if any(name in partition.speakers for partition in bank.partitions)
    }
    if not named or context.view.vector is None:
        return None
    subject = subject_of(context.query, named, manner.without)
    if not subject:
        return None
    view = ask(subject)
    ranked = context.with_rows(ranked, view.rows)
    rows, weights = ranked.rows, view.profile.weights
    words, meaning = weights.get("terms", 0.0), weights.get("meaning", 0.0)
    change = words * (manner.share * view.lexical.score[rows] - _of(ranked, "terms"))
    change = change + meaning * (view.meaning[rows] - _of(ranked, "meaning"))
    traits = bank.column("traits", rows).astype(np.int64)
    rare = bank.column("rare", rows).astype(np.float64)
    ranked = ranked.with_factor("subject", change, 1.0)
    ranked = ranked.with_factor("teller", _of(ranked, "speaker"), TELLER)
    ranked = ranked.with_factor("ageless", -_of(ranked, "recency"), weights.get("recency", 0.0))
    if manner.event:
        ranked = ranked.with_factor("event", ((traits & int(Trait.TIMED)) != 0).astype(np.float64), manner.event)
    if manner.detail:
        ranked = ranked.with_factor("detail", rare / (1 + rare), manner.detail)
    return ranked


def _of(ranked: Ranked, name: str) -> Values:
    """The values of a factor; 0 where the profile does not have it."""
    return ranked.values[:, ranked.names.index(name)] if name in ranked.names else np.zeros(len(ranked.rows))


def _kept(before: Ranked, after: Ranked) -> Ranked:
    """The ranking with what was best before lifted to the top, in its order."""
    first = before.rows[np.argsort(-before.scores, kind="stable")[:KEPT]].tolist()
    places = [int(np.flatnonzero(after.rows == row)[0]) for row in first]
    scores = after.scores
    lift = np.zeros(len(scores))
    for place in reversed(places):
        others = np.delete(scores + lift, place).max(initial=-np.inf)
        lift[place] = max(others + _STEP - scores[place], 0.0) if np.isfinite(others) else 0.0
    return after.with_factor("kept", lift, 1.0)

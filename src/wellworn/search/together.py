"""The best candidates of a chat are read together with the question, by the head in `language.answers`.

It costs what reading so many short texts costs, and puts the right turn first more often (docs/reader.md). It also knows best whether
any of them answers.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np

from wellworn.core.errors import EmbeddingFailed
from wellworn.core.values import Entry
from wellworn.ingest.terms import Trait, place_in_text
from wellworn.language.answers import Contender, scores
from wellworn.language.sentences import in_other_script
from wellworn.search.bank import CHAT, PEOPLE
from wellworn.search.context import SearchContext
from wellworn.search.score import MICROS_PER_DAY, Ranked
from wellworn.search.sentences import Best

NAME = "answers"
LEAST = -4.0
"""Logits below it say the same: it does not answer."""
_log = logging.getLogger("wellworn.search")


class Together(NamedTuple):
    """A ranking, and the logarithm of the sum of the odds that each text which was read answers; None: none was read."""

    ranked: Ranked
    odds: float | None


def read_together(ranked: Ranked, context: SearchContext) -> Together:
    """The ranking with what the reader says of its best candidates; the others count as the least likely of these."""
    profile, talks = context.bounds.profile, context.bank.talks()
    places = ranked.order[: profile.reads]
    if (
        not context.view.by_reader
        or not len(places)
        or not (talks == CHAT).any()
        or (talks[ranked.rows[places]] == PEOPLE).any()
    ):
        return Together(ranked, None)
    entries, rows = context.read(ranked.rows[places]), ranked.rows[places].tolist()
    nearest = context.view.sentences.best(context.bank.named(ranked.rows[places])[0])
    assistant = context.bank.has_trait(Trait.ASSISTANT, ranked.rows[places]).tolist()
    days = (np.maximum(context.view.reference - context.bank.at[rows], 0) / MICROS_PER_DAY).tolist()
    there = [number for number, row in enumerate(rows) if row in entries and not in_other_script(entries[row].text)]
    several = [_contender(entries[rows[one]], assistant[one], days[one], nearest[one]) for one in there]
    if not several:
        return Together(ranked, None)
    try:
        logits = scores(context.query, several).astype(np.float64)
    except EmbeddingFailed as error:  # the ranking without it is good, too
        _log.warning("texts are not read together with the question: %s", error)
        return Together(ranked, None)
    values = np.full(len(ranked.rows), max(LEAST, logits.min()))
    values[places[there]] = np.maximum(logits, LEAST)
    return Together(ranked.with_factor(NAME, values - LEAST, profile.answers), float(np.logaddexp.reduce(logits)))


def _contender(entry: Entry, assistant: bool, days: float, nearest: Best) -> Contender:
    place = None if nearest is None else place_in_text(entry, *nearest[1])
    return Contender(entry.text, "assistant" if assistant else "user", days, 0 if place is None else place[0])

"""The named factors of a hit's score, and the features that learning looks at, for the few rows that are candidates.

A profile's weights say which factors are computed (`FACTORS`); learning sees `FEATURES` besides the base score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wellworn.core.dataclass import dataclass, filled_each
from wellworn.core.lazy import cached_property
from wellworn.core.values import Factor, filled
from wellworn.ingest.dates import NamedDate
from wellworn.ingest.terms import Question, Trait
from wellworn.language.parts import Span
from wellworn.learning.past import SHARED, PersonPast
from wellworn.search.arms import LazyMeaning, Lexical, Scores
from wellworn.search.bank import CHAT, PEOPLE, REST, Bank, Mask, Rows, Vector
from wellworn.search.partition import NONE
from wellworn.search.profiles import PROFILES, Profile
from wellworn.search.sentences import Best, Sentences

Column = npt.NDArray[np.floating]
Values = npt.NDArray[np.float64]
Spans = npt.NDArray[np.datetime64]

MICROS_PER_DAY = 86_400_000_000
USUAL_CONFIDENCE = 0.8
"""Of texts given to `remember`, and of turns."""
COMPARED_ROWS, NEAR_TIE, UNLIKE, HALF_A_DAY = 32, 0.05, 0.3, MICROS_PER_DAY // 2
"""For `_said_later`: how many candidates are compared, how steeply nearness counts, and the cosine below which texts are unlike."""
MOST_LATER = 0.1
"""Few turns of long messages reach it; without it short ones that are much alike would be ranked by their age alone."""
_SHORTEST, _LONGEST = -2.0, float(np.log(2.0))


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranked:
    """Candidates with the factors of their scores."""

    rows: Rows
    names: list[str]
    weights: Values
    """Shape (rows, names): what counts in a chat counts less among people."""
    values: Values
    """Shape (rows, names)."""

    @cached_property
    def scores(self) -> Values:
        total: Values = np.einsum("rn,rn->r", self.values, self.weights)
        return total

    @cached_property
    def order(self) -> Rows:
        """Places from the highest score to the lowest."""
        return (-self.scores).argsort(kind="stable")

    def part(self, name: str) -> Values:
        """What a factor adds to each score; nothing where there is no such factor."""
        return (
            self.values_of(name) * self.weights[:, self.names.index(name)]
            if name in self.names
            else self.values_of(name)
        )

    def values_of(self, name: str) -> Values:
        """A factor without its weight; 0 where there is no such factor."""
        return self.values[:, self.names.index(name)] if name in self.names else np.zeros(len(self.rows))

    def take(self, places: Sequence[int] | Rows) -> Ranked:
        order = np.asarray(places, dtype=np.intp)
        values, weights = self.values.take(order, axis=0), self.weights.take(order, axis=0)
        return filled(Ranked, rows=self.rows.take(order), names=self.names, weights=weights, values=values)

    def with_factor(self, name: str, values: Values | Mask, weight: float) -> Ranked:
        """The ranking with one more factor; one that is there already with this weight grows instead."""
        if name in self.names and (self.weights[:, (place := self.names.index(name))] == weight).all():
            added = self.values.copy()
            added[:, place] += values
            return filled(Ranked, rows=self.rows, names=self.names, weights=self.weights, values=added)
        grown, weights = np.empty((2, len(self.rows), len(self.names) + 1))
        grown[:, :-1], grown[:, -1] = self.values, values
        weights[:, :-1], weights[:, -1] = self.weights, weight
        return filled(Ranked, rows=self.rows, names=[*self.names, name], weights=weights, values=grown)


Reasons = tuple[float, tuple[Factor, ...], Span | None]
"""A score with its factors, and where the best sentence is in what was embedded."""


def reasons_of(ranked: Ranked, best: Sequence[Best] | None = None) -> list[Reasons]:
    """Of each row its score, and every factor of it."""
    found = []
    every = zip(ranked.values.tolist(), ranked.weights.tolist(), best or [None] * len(ranked.rows), strict=True)
    for values, weights, one in every:
        of = zip(ranked.names, values, weights, strict=True)
        told = [{"name": name, "value": value, "weight": weight} for name, value, weight in of if weight]
        parts = filled_each(Factor, told)
        found.append((sum([part.value * part.weight for part in parts]), tuple(parts), one and one[1]))
    return found


class View(NamedTuple):
    """What factors and features are computed from: one query over a bank, with its candidates."""

    bank: Bank
    rows: Rows
    """The candidates."""
    question: Question
    profile: Profile
    lexical: Lexical
    meaning: Scores | LazyMeaning
    similarity: Scores | LazyMeaning
    vector: Vector | None
    """The query's, when there is an embedder."""
    sentences: Sentences
    reference: int
    """The moment that recency counts back from, in microseconds."""
    by_reader: bool = False
    """Whether the bundled reader says something of the query: the weights of chats and talks were fitted on its vectors."""
    asks_past: float = 0.0
    """How likely the question asks for what was so before."""
    asks_assistant: float = 0.0
    """How likely it asks for what the assistant said."""

    def of_rows(self, rows: Rows) -> View:
        """The same view with other candidates."""
        return self if rows is self.rows else self._replace(rows=rows)


# -- factors ---------------------------------------------------------------------------------------------------------


def factors(view: View) -> Ranked:
    """The candidates with the factors that the profile weighs."""
    names = factor_names(view.profile)
    values = np.empty((len(view.rows), len(names)))
    for number, name in enumerate(names):
        values[:, number] = FACTORS[name](view)
    return filled(Ranked, rows=view.rows, names=names, weights=_weights(view, names), values=values)


def factor_names(profile: Profile) -> list[str]:
    """The factors that a profile weighs."""
    return [*dict.fromkeys(name for weights in (*_several(profile), profile.weights) for name in weights)]


def _weights(view: View, names: Sequence[str]) -> Values:
    """What each factor counts in each row: it differs between chats, talks among people, and what is in no talk."""
    profile, several = view.profile, _several(view.profile)
    if not view.by_reader:
        several = [profile.weights] * len(several)
    of_kind = np.array([[weights.get(name, 0.0) for name in names] for weights in several])
    talks = view.bank.talks()
    if (talks == CHAT).any():  # a memory beside chats competes with their turns
        of_kind[REST] = of_kind[CHAT]
    weights: Values = of_kind[talks[view.rows]]
    return weights


def _several(profile: Profile) -> list[Mapping[str, float]]:
    """The weights of each kind of row."""
    of_kind = {CHAT: profile.in_chats, PEOPLE: profile.among_people, REST: profile.remembered}
    return [of_kind[kind] or profile.weights for kind in sorted(of_kind)]


def _sentence(view: View) -> Column:
    """The cosine of the sentence that is nearest to the question; where a text is one sentence, its own."""
    of_text = np.asarray(view.similarity[view.rows], dtype=np.float64)
    best = view.sentences.best(view.bank.named(view.rows)[0])
    return np.array([near if one is None else one[0] for one, near in zip(best, of_text.tolist(), strict=True)])


def _past(view: View) -> Column:
    """ln(1 + age in days), as far as the question asks for what was so before."""
    return view.asks_past * np.log1p(_age_days(view))


def _older(view: View) -> Column:
    """How much of what is nearest to the question was said later, where it asks for what is so."""
    return (1 - view.asks_past) * _said_later(view)


def _former(view: View) -> Column:
    """The same where it asks for what was so before: then that is what it asks for."""
    return view.asks_past * _said_later(view)


def _said_later(view: View) -> Values:
    """How much of what is nearest to the question was said later, by a person, and is like this: of near ties the newest
    holds. With s the cosine to the question, and sums over the candidates j that are newer than i by half a day:

        later(i) = Σ_j exp(s_j / 0.05) · max(0, cos(i, j) - 0.3) / Σ_j exp(s_j / 0.05), at most 0.1
    """
    found = np.zeros(len(view.rows))
    if view.vector is None or len(view.rows) < 2:
        return found
    near = np.asarray(view.similarity[view.rows], dtype=np.float64)
    top = np.argsort(-near, kind="stable")[:COMPARED_ROWS]
    rows = view.rows[top]
    vectors, at = view.bank.vectors(rows), view.bank.at[rows]
    share = np.exp((near[top] - near[top[0]]) / NEAR_TIE)
    by_person = ~view.bank.has_trait(Trait.ASSISTANT, rows)
    newer = (at[:, None] - at > HALF_A_DAY) & by_person[:, None]
    alike = np.maximum(vectors @ vectors.T - UNLIKE, 0.0)
    found[top] = np.minimum((newer * alike * share[:, None]).sum(axis=0) / share.sum(), MOST_LATER)
    return found


def _speaker(view: View) -> Column:
    """1 when the query names the speaker."""
    if not view.bank.speakers:
        return np.zeros(len(view.rows), dtype=np.float32)
    names = np.array(view.question.terms, dtype=np.uint64).view(np.int64)
    named: Column = (view.bank.speaker[view.rows][:, None] == names).any(axis=1).astype(np.float32)
    return named


def _length(view: View) -> Column:
    """ln(characters / typical), from -2 to ln 2: very short texts say little."""
    chars = view.bank.chars[view.rows].astype(np.float64)
    return np.clip(np.log((chars + 1) / view.profile.typical_chars), _SHORTEST, _LONGEST)


def _age_days(view: View) -> Column:
    days: Column = np.maximum(view.reference - view.bank.at[view.rows], 0) / MICROS_PER_DAY
    return days


def _recency(view: View) -> Column:
    """exp(-age / recency days), age from the newest entry the scope sees, or `as_of` if earlier."""
    recency: Column = np.exp(-_age_days(view) / view.profile.recency_days)
    return recency


def _unsure(view: View) -> Column:
    """Entries extracted by rules, or that failed, rank lower."""
    return np.minimum(view.bank.confidence[view.rows].astype(np.float64) - USUAL_CONFIDENCE, 0.0)


def _reliability(view: View) -> Column:
    """min(confidence · sqrt(usage / 10), 1), confidence halved in each half-life, if one is set."""
    confidence, usage = (column[view.rows].astype(np.float64) for column in (view.bank.confidence, view.bank.usage))
    if view.profile.confidence_half_life_days < np.inf:
        confidence *= 0.5 ** (_age_days(view) / view.profile.confidence_half_life_days)
    return np.minimum(confidence * np.sqrt(usage / 10), 1.0)


def _of_assistant(view: View) -> Mask:
    return view.bank.has_trait(Trait.ASSISTANT, view.rows)


FACTORS: dict[str, Callable[[View], Column | Mask]] = {
    "terms": lambda view: view.lexical.score[view.rows],  # the lexical arm with its neighbourhood
    "meaning": lambda view: view.meaning[view.rows],  # the vector arm with its neighbourhood
    "similarity": lambda view: view.similarity[view.rows],  # plain cosine
    "sentence": _sentence,  # that of the best sentence
    "question": lambda view: view.bank.has_trait(Trait.QUESTION, view.rows),  # short: asking is not knowing
    "speaker": _speaker,
    "assistant": _of_assistant,
    "asked": lambda view: view.asks_assistant * _of_assistant(view),  # the question asks for what the assistant said
    "words": lambda view: view.lexical.plain[view.rows],  # the row's own, without its neighbourhood
    "past": _past,
    "older": _older,
    "former": _former,
    "length": _length,
    "recency": _recency,
    "date": lambda view: dated(view.question, view.bank, view.rows),
    "unsure": _unsure,
    "reliability": _reliability,
}


# -- dates that a query names ----------------------------------------------------------------------------------------


def dated(question: Question, bank: Bank, rows: Rows | None = None) -> Column:
    """The factor `date` of some rows, or of the whole bank: 1 in a month that the query names, 2 on a day."""
    if not question.dates:
        return np.zeros(len(bank) if rows is None else len(rows), dtype=np.float32)
    in_month, in_day = of_named_dates(question, bank, rows)
    return in_month.astype(np.float32) + in_day


def of_named_dates(question: Question, bank: Bank, rows: Rows | None = None) -> tuple[Mask, Mask]:
    """For each row (None: of the whole bank) whether it is of a month named, and whether it is of a day named."""
    moments = bank.at if rows is None else bank.at[rows]
    in_month = in_day = np.zeros(len(moments), dtype=bool)
    if len(moments):
        for named in question.dates:
            months = _months(named, moments)
            in_month = in_month | _within(moments, months, months + 1)
            if named.day:
                days = months.astype("datetime64[D]") + (named.day - 1)
                days = days[days < (months + 1).astype("datetime64[D]")]  # some months have no such day
                in_day = in_day | _within(moments, days, days + 1)
    return in_month, in_day


def _months(named: NamedDate, moments: npt.NDArray[np.int64]) -> Spans:
    """The month in its year, or in every year that a moment is of."""
    if named.year is not None:
        years = np.array([named.year - 1970])
    else:
        first, last = np.array([moments.min(), moments.max()]).astype("datetime64[us]").astype("datetime64[Y]")
        years = np.arange(first.astype(np.int64), last.astype(np.int64) + 1)
    return (12 * years + named.month - 1).astype("datetime64[M]")


def _within(moments: npt.NDArray[np.int64], begins: Spans, ends: Spans) -> Mask:
    """Whether each moment lies in one of the spans, which are in order and do not touch."""
    if not len(begins):
        return np.zeros(len(moments), dtype=bool)
    begin, end = (times.astype("datetime64[us]").astype(np.int64) for times in (begins, ends))
    place = np.searchsorted(begin, moments, side="right") - 1
    return (place >= 0) & (moments < end[place])


# -- features for learning -------------------------------------------------------------------------------------------

_SCALE_OF = {
    "month": 1.0,  # the query names the month (and year, if it names one) that the entry is of
    "day": 1.0,  # and the day too
    "own": 8.0,  # the entry's own words, as a share of the best attainable, without names of speakers
    "before": 8.0,  # the same of the turn before
    "after": 8.0,  # the same of the turn after
    "coverage": 4.0,  # share of the query's weight found in the entry or a direct neighbour
    "meaning": 10.0,  # as in the base
    "when": 1.0,  # the query asks when, and the text tells a time
    "session": 0.2,  # the best base score in the entry's thread, minus the best of all
    "recency": 1.0,  # as in the base
    "rare": 3.0,  # share of the entry's distinct terms that few entries have: rare / (distinct + 1)
    "repeated": 4.0,  # helped with similar questions of this person, or was passed over (`learning.past`)
    "newer": 2.0,  # share of the relevant candidates that are older; each counts exp(base - best base)
    "longer": 2.0,  # the same for shorter ones
    "habit": 4.0,  # how much more than others this person cites entries of its kind, source, speaker and tags
}
"""Fixed scales. The features were chosen by forward selection among 68 on held-out conversations (docs/learning.md)."""
FEATURES = tuple(_SCALE_OF)
_SCALES = np.array([*_SCALE_OF.values()])


def features(
    view: View,
    ranked: Ranked,
    base: Values,
    past: PersonPast | None = None,
    repeated: Mapping[int, float] = MappingProxyType({}),
) -> Values:
    """Shape (rows, features) for the rows of a ranking with these base scores; `repeated` is `PersonPast.values`."""
    view = view.of_rows(ranked.rows)
    bank, rows, plain, question = view.bank, view.rows, view.lexical.plain, view.question
    nothing = np.zeros(len(rows))
    month, day = of_named_dates(question, bank, rows) if question.dates else (nothing, nothing)
    beside = [bank.beside(name, rows) for name in ("before", "after")] if bank.threaded else []
    before, after = [np.where(near >= 0, plain[near], np.float32(0)) for near in beside] or (nothing, nothing)
    when = bank.has_trait(Trait.TIMED, rows) if question.asks_when else nothing
    recency = ranked.values[:, ranked.names.index("recency")] if "recency" in ranked.names else _recency(view)
    rare = bank.rare[rows] / (bank.distinct[rows].astype(np.float64) + 1)
    helped = [repeated.get(no, 0.0) for no in bank.no[rows].tolist()] if repeated else nothing
    relevance = np.exp(base - base.max(initial=0.0))
    newer, longer = (_share_below(column[rows], relevance) for column in (bank.at, bank.chars))
    habit = None
    if past is not None:
        habit = past.habits([*zip(*(getattr(bank, name)[rows].tolist() for name in ("tags", *SHARED)), strict=True)])
    columns = (month, day, plain[rows], before, after, _coverage(view, *beside), view.meaning[rows], when)
    found = np.empty((len(rows), len(FEATURES)))
    own = (helped, newer, longer, nothing if habit is None else habit)
    for place, column in enumerate((*columns, _session(view, base), recency, rare, *own)):
        found[:, place] = column
    found *= _SCALES
    return found


def _share_below(values: npt.NDArray[np.integer], weights: Values) -> Column:
    """For each row the share of the whole weight that rows with a smaller value have; ties count half."""
    order = values.argsort(kind="stable")
    ordered, sums, below = values[order], np.zeros(len(values) + 1), np.empty(len(values))
    weights[order].cumsum(out=sums[1:])
    below[order] = sums[ordered.searchsorted(ordered)] + sums[ordered.searchsorted(ordered, side="right")]
    return below / (2 * sums[-1] or 1.0)


def _coverage(view: View, *beside: Rows) -> Column:
    """The weight of the terms that each row has, or a neighbour of it: one of these, or none (-1)."""
    covered = np.zeros(len(view.rows))
    for idf, having in view.lexical.found:
        if len(having):
            there = having.take(having.searchsorted(view.rows), mode="clip") == view.rows
            for near in beside:
                there |= having.take(having.searchsorted(near), mode="clip") == near
            covered += idf * there
    return covered / (sum(idf for idf, _ in view.lexical.found) or 1.0)


def _session(view: View, base: Values) -> Column:
    top = float(base.max(initial=-np.inf))
    if not view.bank.in_threads or not len(base):
        return base - top
    thread = view.bank.thread[view.rows]
    _, place = np.unique(thread, return_inverse=True)
    best = np.full(len(thread), -np.inf)
    np.maximum.at(best, place, base)
    return np.where(thread == NONE, base, best[place]) - top


def none_of(profile: Profile) -> Ranked:
    """A ranking of nothing."""
    names = factor_names(profile)
    nothing = np.empty((0, len(names)))
    return Ranked(rows=np.empty(0, dtype=np.intp), names=names, weights=nothing, values=nothing)


# -- diversity -------------------------------------------------------------------------------------------------------


def diversify(scores: Values, vectors: Vector, k: int, *, lambda_: float) -> tuple[list[int], list[float]]:
    """Maximal marginal relevance: up to k places in the order picked, and each pick's largest cosine to an earlier one.

    Picks greedily argmax λ · score - (1 - λ) · max cosine to what was picked. In a hit's score the penalty is the factor
    `diversity`, minus that cosine with weight (1 - λ) / λ: the same order, and an explanation shows what it cost.
    """
    picked: list[int] = []
    redundancy: list[float] = []
    closest = np.zeros(len(scores))
    open_ = np.ones(len(scores), dtype=bool)
    while len(picked) < min(k, len(scores)):
        best = int(np.where(open_, lambda_ * scores - (1 - lambda_) * closest, -np.inf).argmax())
        picked.append(best)
        redundancy.append(float(closest[best]))
        open_[best] = False
        closest = np.maximum(closest, vectors @ vectors[best])
    return picked, redundancy


# -- confidence ------------------------------------------------------------------------------------------------------

_BIAS, _NEAR = -4.8, 16.0
"""By the reader's cosine of the first hit: half at .3. Of 420 questions of `evals life`, tune, it parts those with an answer from
those without with an AUROC of .95; of chats with about .70, where it says too much."""
_BIAS_OF_READ, _ODDS = -0.96, 0.39
"""By what the reader says of the texts that it reads together with the question. Fitted so that questions with and without an
answer weigh the same, on 1,095 and 136 of chats (AUROC .88)."""
_BIAS_OF_OTHERS, _SCORE, _MEANING = -2.22, 0.35, 2.3
"""With vectors of another model."""
_BIAS_OF_WORDS, _SCORE_OF_WORDS, _FEWER_WORDS = -1.98, 0.42, 0.8
"""Without an embedder; and what a question in another script has more, whose words are seldom those of the answer. The last
was set on 27 made-up questions."""


def confidence_of(
    ranked: Ranked,
    profile: Profile,
    *,
    embeds: bool,
    by_reader: bool = False,
    by_words: bool = False,
    odds: float | None = None,
) -> float | None:
    """How likely it is that an answer is among these hits, which are in order; 0 when there are none.

        p = 1 / (1 + exp(-(a + b · similarity)))        of the first hit

    `odds` is what reading the best candidates together with the question gave: then p is at most 1 / (1 + exp(-(a + b · odds))).
    `by_reader` says that the vectors are the bundled reader's, `by_words` that they say nothing of this query: then the words of
    the best hit count. docs/truth.md has the reliability. It is defined for the factors of the default profile: None when the
    profile weighs otherwise.
    """
    if profile.weights != PROFILES["default"].weights:
        return None
    if not len(ranked.rows):
        return 0.0
    of_meaning = ranked.part("similarity") + ranked.part("meaning")
    own = float(ranked.part("whose")[0] >= 0)  # else it is about somebody else
    if embeds and by_reader and not by_words:
        value = _BIAS + _NEAR * own * float(ranked.values[0, ranked.names.index("similarity")])
        if odds is not None:  # what is not even near is no answer
            value = min(value, _BIAS_OF_READ + _ODDS * own * odds)
    elif embeds and not by_words:
        score = float((ranked.scores - ranked.part("noted"))[0])  # who wrote it says nothing of whether it answers
        near = float(ranked.values[0, ranked.names.index("similarity")])
        value = _BIAS_OF_OTHERS + _SCORE * score + _MEANING * near
    else:
        best = float((ranked.scores - ranked.part("noted") - of_meaning - ranked.part("holds")).max())
        value = _BIAS_OF_WORDS + _SCORE_OF_WORDS * best + (_FEWER_WORDS if by_words else 0.0)
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value))))

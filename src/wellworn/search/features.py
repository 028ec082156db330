"""The named factors of a hit's score, for the few rows that are candidates.

| factor        | value                                                                                    |
|---------------|------------------------------------------------------------------------------------------|
| `terms`       | the lexical arm with its neighbourhood (`arms.words`)                                     |
| `meaning`     | the vector arm with its neighbourhood (`arms.meaning`)                                    |
| `similarity`  | plain cosine                                                                              |
| `question`    | 1 for a short question: asking is not knowing                                             |
| `answers`     | 1 when the turn before is a short question                                                |
| `speaker`     | 1 when the query names the speaker                                                        |
| `length`      | ln(characters / typical), from -2 to ln 2: very short texts say little                    |
| `recency`     | exp(-age / recency days), age from the newest entry the scope sees, or `as_of` if earlier    |
| `date`        | 1 when the query names the month the entry is of, 2 when it names the day                 |
| `unsure`      | confidence - 0.8 where it is less: what was extracted by rules, or failed, gives way         |
| `reliability` | min(confidence · sqrt(usage / 10), 1), confidence halved in each half-life, if one is set |

Each is a function of the same few values; a profile's weights say which are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wellworn.ingest.terms import Question, Trait
from wellworn.search.arms import Lexical, Scores
from wellworn.search.bank import Bank
from wellworn.search.dates import of_named_dates
from wellworn.search.profiles import Profile

MICROS_PER_DAY = 86_400_000_000
USUAL_CONFIDENCE = 0.8
"""Of what is told to `remember`, and of turns."""
_SHORTEST, _LONGEST = -2.0, float(np.log(2.0))


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """What the factors are computed from."""

    bank: Bank
    rows: npt.NDArray[np.intp]
    question: Question
    profile: Profile
    lexical: Lexical
    meaning: Scores
    similarity: Scores
    vector: npt.NDArray[np.float32] | None
    """The query's, when there is an embedder."""
    reference: int
    """The moment that recency counts back from, in microseconds."""


Feature = Callable[[View], npt.NDArray[np.floating]]


def _question(view: View) -> npt.NDArray[np.floating]:
    return _asks(view, view.rows)


def _asks(view: View, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.floating]:
    traits = view.bank.column("traits", rows).astype(np.int64)
    asks: npt.NDArray[np.float32] = ((traits & int(Trait.QUESTION)) != 0).astype(np.float32)
    return asks


def _answers(view: View) -> npt.NDArray[np.floating]:
    before = view.bank.beside("before", view.rows)
    return np.where(before >= 0, _asks(view, np.maximum(before, 0)), np.float32(0))


def _speaker(view: View) -> npt.NDArray[np.floating]:
    speaker = view.bank.column("speaker", view.rows)
    names = np.array(view.question.names, dtype=np.int64)
    named: npt.NDArray[np.float32] = (speaker[:, None] == names).any(axis=1).astype(np.float32)
    return named


def _length(view: View) -> npt.NDArray[np.floating]:
    chars = view.bank.column("chars", view.rows).astype(np.float64)
    return np.clip(np.log((chars + 1) / view.profile.typical_chars), _SHORTEST, _LONGEST)


def _recency(view: View) -> npt.NDArray[np.floating]:
    age = view.reference - view.bank.column("at", view.rows).astype(np.int64)
    return np.exp(-np.maximum(age, 0) / (view.profile.recency_days * MICROS_PER_DAY))


def _date(view: View) -> npt.NDArray[np.floating]:
    if not view.question.dates:
        return np.zeros(len(view.rows))
    return dated(view.question, view.bank, view.rows)


def dated(question: Question, bank: Bank, rows: npt.NDArray[np.intp] | None = None) -> npt.NDArray[np.floating]:
    """The factor `date` of some rows, or of the whole bank."""
    in_month, in_day = of_named_dates(question, bank, rows)
    return in_month.astype(np.float32) + in_day


def _unsure(view: View) -> npt.NDArray[np.floating]:
    return np.minimum(view.bank.column("confidence", view.rows).astype(np.float64) - USUAL_CONFIDENCE, 0.0)


def _reliability(view: View) -> npt.NDArray[np.floating]:
    confidence = view.bank.column("confidence", view.rows).astype(np.float64)
    usage = view.bank.column("usage", view.rows).astype(np.float64)
    if view.profile.confidence_half_life_days < np.inf:
        age_days = np.maximum(view.reference - view.bank.column("at", view.rows).astype(np.int64), 0) / MICROS_PER_DAY
        confidence *= 0.5 ** (age_days / view.profile.confidence_half_life_days)
    return np.minimum(confidence * np.sqrt(usage / 10), 1.0)


FEATURES: dict[str, Feature] = {
    "terms": lambda view: view.lexical.score[view.rows],
    "meaning": lambda view: view.meaning[view.rows],
    "similarity": lambda view: view.similarity[view.rows],
    "question": _question,
    "answers": _answers,
    "speaker": _speaker,
    "length": _length,
    "recency": _recency,
    "date": _date,
    "unsure": _unsure,
    "reliability": _reliability,
}


def features(view: View) -> npt.NDArray[np.float64]:
    """Shape (rows, factors), factors in the order of the profile's weights."""
    found = np.empty((len(view.rows), len(view.profile.weights)))
    for number, name in enumerate(view.profile.weights):
        found[:, number] = FEATURES[name](view)
    return found

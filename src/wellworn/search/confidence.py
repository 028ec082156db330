"""How likely it is that an answer is among the hits.

    p = 1 / (1 + exp(-(a + b · score + c · meaning)))        of the first hit

Without its meaning where that hit is about somebody else than the question.

Fitted on `evals/lives/tune.toml` with questions that nobody ever answered among the others; docs/truth.md has the
reliability and the AUROC on the other half. It is defined for the factors of the default profile.
"""

from __future__ import annotations

import math

from wellworn.search.profiles import PROFILES, Profile
from wellworn.search.score import Ranked

_BIAS, _SCORE, _MEANING = -2.22, 0.35, 2.3
_BIAS_OF_TOPIC, _SCORE_OF_TOPIC, _MEANING_OF_TOPIC, _TOPIC = -3.67, 0.29, 3.61, 0.78
"""Where the question has a topic: then the first hit should be about it."""
_BIAS_OF_WORDS, _SCORE_OF_WORDS = -1.98, 0.42
"""Without an embedder."""


def confidence_of(ranked: Ranked, profile: Profile, *, embeds: bool) -> float | None:
    """For hits in order; 0 when there are none, None when the profile weighs otherwise."""
    if profile.weights != PROFILES["default"].weights:
        return None
    if not len(ranked.rows):
        return 0.0
    score = float(ranked.scores[0])
    if "noted" in ranked.names:
        score -= float(ranked.values[0, ranked.names.index("noted")])  # who wrote it says nothing of whether it answers
    if embeds:
        of_another = "whose" in ranked.names and ranked.values[0, ranked.names.index("whose")] < 0
        near = 0.0 if of_another else float(ranked.values[0, ranked.names.index("meaning")])
        value = _BIAS + _SCORE * score + _MEANING * near
        if "topic" in ranked.names:
            place = ranked.names.index("topic")
            topic = 0.0 if of_another else float(ranked.values[0, place] * ranked.weights[place])
            rest = score - float(ranked.values[0, place] * ranked.weights[place])
            value = _BIAS_OF_TOPIC + _SCORE_OF_TOPIC * rest + _MEANING_OF_TOPIC * near + _TOPIC * topic
    else:
        value = _BIAS_OF_WORDS + _SCORE_OF_WORDS * score
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value))))

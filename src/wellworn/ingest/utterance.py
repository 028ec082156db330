"""What a turn does: does it only ask, does it only react, or does it state something?

A turn that only asks or only reacts stays in its session and is never a hit. The tests are kept narrow: a turn that
might state something is taken to state it.
"""

from __future__ import annotations

import re

from wellworn.core.lazy import regex
from wellworn.ingest.stop_words import STOP_WORDS

ASSISTANT_ROLES = frozenset({"assistant", "ai", "model", "bot"})
LONGEST_CHARS = 400
"""A longer text states something."""
_WORD = regex(r"[^\W_]+")
_PIECE = regex(r"[^.!?。！？…\n]+[.!?。！？…]*|[?？]+")
_OPENING = regex(
    r"^\W*(?:(?:hey|hi|hello|ok|okay|so|and|but|also|btw|by the way|well|oh|um|please|sorry|again|quick question)\b[\s,:;-]*)+",
    re.I,
)
_AUX = r"(?:is|are|was|were|am|do|does|did|can|could|should|would|will|has|have|had|might|may)"
_SUBJECT = r"(?:i|my|we|our|you|your|it|its|he|she|they|his|her|their|the|this|that|these|those|there|a|an)"
_ASKS = regex(
    rf"(?:(?:wh(?:o|om|at|ere|en|ich|ose|y)|how)\b(?:\W+\w+){{0,3}}?\W+{_AUX}\W+{_SUBJECT}\b"
    rf"|(?:what|who|where|when|how)['’]?s\W+{_SUBJECT}\b|who\W+\w+s\b|{_AUX}(?:n['’]t)?\W+{_SUBJECT}\b"
    r"|(?:can you |could you )?(?:tell|remind|show)\W+me\b)",
    re.I,
)
"""A question without its sign."""
_TELLS_TOO = regex(
    r"\b(?:since|because|now that|given that|considering|seeing that)\W+(?:i|we|my|our|he|she|they)\b"
    r"|\b(?:know|knew|remember|mention|note|notice|heard?)\W+(?:that\W+(?:i|we|my|our)|(?:i|we)\W+\w+)\b"
    r"|\b(?:did|have) i\b.{0,20}\b(?:tell|told|mention|say)"
    r"|\byou\W+(?:please\W+)?(?:update|change|switch|set|note|save|store|add|put|log|record)\b.*\b(?:my|our|i|we)\b"
    r"|^\W*(?:i|we|my|our|it)(?:\s+[^\s,;:]+){3}[^,;:]*[,;:](?!.*\b(?:who|what|where|when|which|how|whose)\b)",
    re.I,
)
"""A question that also states something: "did you know that I …", "since I …, which …"."""
_EXCLAIMS = regex(r"(?:what an?|how)\s+\w+(?:\s\w+)?\W*", re.I)
_REACTIONS = frozenset(
    """
    absolutely afternoon agreed ah alright amazing appreciate appreciated awesome bye cheers clear congrats
    congratulations cool correct course day deal definitely done dunno evening exactly excellent fair fantastic feel
    fine free fun gladly glad goodbye good got gotcha great haha hahaha happy heard hello help helped helpful helps hey
    hi hm hmm hope idea interesting job keep kind know later lol lot love lovely luck makes mention mind moment morning
    much need never nice night no nope noted nothing of oh ok okay one oops perfect please point pleasure problem
    really record recorded remember right same saved saying see sense share sharing sorry sound sounds soon sure talk
    talked tell telling terrific thank thanks thx today told tomorrow tonight true try ugh understand understood
    useful wait way welcome well wish wonderful work worked works worries wow yay yeah yep yes yet yup
    able already anything bit certain discussed earlier enough exact filed forgotten gave give given honest
    information info let like look long make may maybe mentioned note only question said say something somewhere
    still take thing things think time tracking while without
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
)
"""Words of thanks, greetings, consent and "I do not know". A turn with no other content word only reacts."""


def telling_words(content: list[str]) -> list[str]:
    """Those of some content words that do not merely react."""
    return [word for word in content if word not in _REACTIONS]


def without_opening(text: str) -> str:
    """A sentence without "Oh, well," and the like before it."""
    return _OPENING.sub("", text).strip()


def asks(sentence: str) -> bool:
    """Whether one sentence asks: by its sign, or without one by its first words."""
    said = without_opening(sentence)
    return said.endswith(("?", "？")) or (said[-1:].isalnum() and bool(_ASKS.match(said)))


def wants_answer(text: str) -> bool:
    """Whether the last sentence of a message asks."""
    return any(asks(piece) for piece in _PIECE.findall(text)[-1:])


def only_asks(text: str) -> bool:
    """Whether a turn asks and states nothing besides."""
    if len(text) > LONGEST_CHARS:
        return False
    asked = False
    for piece in _PIECE.findall(text):
        said = without_opening(piece)
        if not any(c.isalnum() for c in said):
            continue
        if asks(said):
            if _TELLS_TOO.search(said):
                return False
            asked = True
        elif not (_reacts(said) or _EXCLAIMS.match(said)):
            return False
    return asked


def only_reacts(content: list[str], text: str) -> bool:
    """Whether a turn with these content words is thanks, a greeting, consent or "I do not know"."""
    return len(text) <= LONGEST_CHARS and (_REACTIONS.issuperset(content) or bool(_EXCLAIMS.fullmatch(text.strip())))


def _reacts(said: str) -> bool:
    return _REACTIONS.issuperset(word for word in _WORD.findall(said.lower()) if word not in STOP_WORDS)

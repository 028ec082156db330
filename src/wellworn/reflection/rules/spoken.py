"""Spoken English made whole: openers dropped, left-out subjects put back, contractions written out.

"Oh well, just got home" → "I just got home". Works on one sentence; knows nothing about what it means.
"""

from __future__ import annotations

import re

from wellworn.reflection.rules.lists import words
from wellworn.reflection.rules.verbs import is_past

_OPENERS = re.compile(
    r"(?:(?:oh|well|yeah|yes|yep|no|nope|hey|hi|hello|wow|ok|okay|so|and|but|haha|lol|um|hmm|ah|alright|right|sure"
    r"|honestly|anyway|btw|also|plus|by the way|to be honest|you know|as you know|look|listen|perfect|great|good|fine"
    r"|cool|exactly|absolutely|definitely|thanks|thank you|got it|understood|seriously|unfortunately|luckily|personally"
    r"|my (?:guy|friend|man)|first|second|finally|now|true|agreed|awesome|nice|excellent)"
    r"(?: [A-Z]\w+)?\s*[,!.:…–-]+\s*)+",
    re.IGNORECASE,
)
_JOINER = re.compile(
    r"(?:(?:and|but|so|also|plus|then|because|yeah|well|oh|by the way|btw)\s+)+"
    r"(?=(?:i|i'm|i've|i'd|we|we're|we've|my|our|please)\b)",
    re.IGNORECASE,
)
_KNOWN = (
    r"as (?:you (?:may |might |probably |already |surely )*(?:know|remember|recall|are aware|can see)"
    r"|i(?:'ve| have)? (?:already )?(?:said|told you|mentioned|wrote)(?: you)?(?: before| earlier| already)?"
    r"|(?:already )?mentioned(?: before| earlier)?)|like i (?:said|told you)(?: before)?|you know"
)
_ASIDE = re.compile(rf"^(?:{_KNOWN}),\s*|,\s*(?:{_KNOWN})(?=$|[.!,;]),?", re.IGNORECASE)
"""What reminds the listener and says nothing itself."""
_LETS = re.compile(r"(?:let's|let us) (?=\w)", re.IGNORECASE)
_CLIPPED = re.compile(
    r"(?:(?:just|finally|recently|already|also|still|even|currently|really|always|never|only) )?(?P<verb>[a-z']+) \w"
)
_LABEL = re.compile(r"[\w /-]{1,40}:")
_DOING = words(
    """
    working planning thinking hoping trying looking getting going feeling studying training reading building saving
    considering making moving taking learning writing running preparing doing heading spending starting
    """
)
_AMBIGUOUS = words(
    """
    let put set read cut cost hurt upset split spread led left been gone done shown based need bet given used related
    excited tired bored interested was were had did made
    """
)
"""Openings that are no past tense of the speaker's."""
_CONTRACTION = re.compile(r"\b(i|we|you|they)'(m|ve|ll|d|re)\b")
_WRITTEN_OUT = {"m": "am", "ve": "have", "ll": "will", "d": "would", "re": "are"}


def whole(text: str) -> str:
    """The sentence without "oh, well," and "and" before its subject, and with a subject."""
    for pattern in (_OPENERS, _JOINER):
        opener = pattern.match(text)
        text = text[opener.end() :] if opener else text
    return _with_subject(_ASIDE.sub("", text))


def written_out(lower: str) -> str:
    """Lower-case text with "i've" as "i have"."""
    return _CONTRACTION.sub(lambda found: f"{found[1]} {_WRITTEN_OUT[found[2]]}", lower)


def _with_subject(text: str) -> str:
    """The subject put back where talk leaves it out: "Just got home late" → "I just got home late"."""
    together = _LETS.match(text)
    if together:
        return f"I want to {text[together.end() :]}"
    clipped = _CLIPPED.match(text[:80].lower())
    if not clipped or _LABEL.match(text):
        return text
    verb = clipped["verb"]
    small = text[:1].lower() + text[1:]
    if verb == "been":
        return f"I have {small}"
    if verb in _DOING:
        return f"I am {small}"
    return f"I {small}" if is_past(verb) and verb not in _AMBIGUOUS else text

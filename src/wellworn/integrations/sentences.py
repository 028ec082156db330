"""Recalled memories in plain sentences, for people: who said it and when, why it was found, and "I do not know".

Works on values only. This is how `wellworn chat` answers without a language model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from wellworn.core.lazy import regex
from wellworn.core.values import Entry, Hit, Recall
from wellworn.ingest.terms import content_words
from wellworn.ingest.utterance import only_reacts, telling_words, wants_answer

UNKNOWN = "I do not know that. Tell me, and I will remember it."
NOTED = "Noted."
HELLO = "Hello! Tell me something, or ask me."
INTRODUCTION = "I only remember: tell me something, or ask me about what you told me."
_GREETING = regex(
    r"(?=.*\w)\W*(?:(?:hi|hello|hey|good (?:morning|afternoon|evening))\b(?:\W+\w+)?)?"
    r"\W*(?:how(?:['’]s| is| are) (?:it going|things|life|everything)|what(?:['’]s| is) up)?\W*\Z",
    re.IGNORECASE,
)
_YOU = regex(r"\b(?:you|your)\b", re.IGNORECASE)
_SURE = 0.5
"""The confidence from which on a recall is taken to hold the answer."""
_FULL = 12.0
_CLOSE = 0.8
"""Further hits with this share of the best score are told too."""
_MOST_TOLD = 3
_REASONS = {
    "terms": "it has your words",
    "meaning": "its meaning is close",
    "similarity": "its meaning is close",
    "answers": "it followed a question like this",
    "speaker": "it is about the person you name",
    "date": "it is from the time you ask about",
    "recency": "it is recent",
    "learned": "it helped with questions like this",
}
"""What a factor of the score says, in words. Those without words say little to a person."""
_LEAST_SHARE = 0.15
"""A factor below this share of the score is no reason."""


Newer = Mapping[str, Sequence[Entry]]
"""By the id of an outdated entry, those that replaced it."""


def reply(text: str, recall: Recall | None, *, now: datetime, newer: Newer) -> str:
    """Answer a message from memory alone: a question with what is known, a statement with a short sign of receipt."""
    if _GREETING.match(text):
        return HELLO
    content = content_words(text)
    if not wants_answer(text):
        return "Any time." if only_reacts(content, text) else NOTED
    if recall is not None and knows(recall):
        return "\n".join(sentence(hit, now=now) for hit in told(recall.hits, newer))
    return INTRODUCTION if _YOU.search(text) and not telling_words(content) else UNKNOWN


def knows(recall: Recall) -> bool:
    """Whether the answer is likely among the hits."""
    sure = max(map(_fits, recall.hits[:_MOST_TOLD]), default=0.0) if recall.confidence is None else recall.confidence
    return bool(recall.hits) and sure >= _SURE


def _fits(hit: Hit) -> float:
    """How well an entry fits a question, from 0 to 1."""
    return sum(hit.factors.get(name, 0.0) for name in ("terms", "meaning")) / _FULL


def told(hits: Sequence[Hit], newer: Newer) -> list[Hit]:
    """The hits to tell: the best, those about as good, and what these have replaced, which stands below them.

    What is outdated may score higher than what holds now, so its score alone says little.
    """
    chosen: dict[str, Hit] = {}  # by their words: of those with the same words the first
    for hit in hits:
        replaced = any(_says(other.entry, one) for other in chosen.values() for one in newer.get(hit.entry.id, ()))
        if replaced or (hit.score >= _CLOSE * hits[0].score and hit.outdated <= hits[0].outdated):
            chosen.setdefault(_words_of(hit.entry).lower(), hit)
    return [*chosen.values()][:_MOST_TOLD]


def _says(entry: Entry, other: Entry) -> bool:
    """Whether an entry is another one, or rests on the same turn: a memory and its turn share one place among hits."""
    turns = {*entry.turn_refs} & {*other.turn_refs} if entry.session_id == other.session_id else set()
    return entry.id == other.id or bool(turns)


def sentence(hit: Hit, *, now: datetime) -> str:
    """One memory with its source: `You told me on 3 March: "I live in Oslo."`"""
    entry = hit.entry
    since = " Since then it has changed." if hit.outdated else ""
    return f"{_source(entry)} {day(entry.at, now)}: “{_words_of(entry)}”{since}"


def why(recall: Recall, *, now: datetime, used: Sequence[int] = ()) -> str:
    """Why a recall found what it found: what an answer used first, then the best."""
    asked = f"“{recall.query}”"
    if not recall.hits:
        return f"Nothing that I remember has to do with {asked}."
    known = bool(used) or knows(recall)
    lines = [f"For {asked} I found this:" if known else f"Nothing that I remember seems to answer {asked}. Nearest is:"]
    places = [*used, *(place for place in range(len(recall.hits)) if place not in used)]
    for place in places[: _MOST_TOLD if known else 1]:
        hit, mark = recall.hits[place], " My answer rests on it." if place in used else ""
        lines += [f"- {sentence(hit, now=now)}{mark}", f"  Because {_reasons(hit)}."]
    return "\n".join(lines)


def day(at: datetime, now: datetime) -> str:
    """The day as people say it: today, yesterday, on 3 March, on 3 March 2024."""
    at, now = at.astimezone(), now.astimezone()
    days = (now.date() - at.date()).days
    if days in (0, 1):
        return ("today", "yesterday")[days]
    return f"on {at.day} {at:%B}" + (f" {at.year}" if at.year != now.year else "")


def _source(entry: Entry) -> str:
    if entry.source in ("assistant", "ai", "model"):
        return "I said"
    if entry.source in ("user", "human", "reflection", "interaction"):
        return "You told me"
    if entry.kind == "episode" and entry.speaker:
        return f"{entry.speaker} said"
    return f"“{entry.title}” noted" if entry.title else "A note says, as of" if entry.kind == "note" else "I learned"


def _words_of(entry: Entry) -> str:
    """The person's own words, where an entry rests on them; else its text."""
    words = re.sub(r"^\w[\w .-]{0,60}: ", "", entry.evidence) if entry.source == "reflection" else entry.text
    return " ".join((words if words and "\n" not in words else entry.text).split())


def _reasons(hit: Hit) -> str:
    least = max(_LEAST_SHARE * hit.score, 1e-9)
    factors = sorted(hit.explanation, key=lambda factor: -factor.contribution)
    counted = [one.name for one in factors if one.contribution >= least and one.name in _REASONS]
    found = [*dict.fromkeys(_REASONS[name] for name in counted)]
    found += ["you have told me something newer since"] if hit.outdated else []
    return ", ".join(found[:-1]) + (" and " if len(found) > 1 else "") + found[-1] if found else "it is all there is"

"""Does a statement replace an earlier one? "I moved to Bergen" replaces "I live in Oslo".

A small logistic model over a pair of statements: how close they are in meaning, how close without their names and
numbers, whether the new one tells of a change, and whether both are about the same person. Its weights were fitted on
`evals/lives/tune.toml`; docs/truth.md has the figures on the other half. It always uses the bundled
vectors, so that it judges alike whatever embedder a store has.

It knows one language's words for change, kinship and doubt. Of statements in other languages the meaning alone counts.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from wellworn.ingest.terms import content_words, names_in, words
from wellworn.models.static import StaticEmbedder

LONGEST_CHARS = 300
"""Longer texts say many things: no single one replaces them."""

_WEIGHTS = {
    "bias": -8.9,
    "near": 8.1,
    "near_without_names": 5.0,
    "names_old_name": 3.0,
    "tells_change": 1.3,
    "other_people": -3.1,
    "both_have_names": 1.4,
    "both_of_speaker": 1.4,
    "same_topic": 4.0,
}
SURE = 0.3
"""From here on a statement is taken to replace the other."""
MAYBE = 0.04
"""From here on it may: nothing is marked, but where a question finds both, the newer one comes first."""
MOST_SENTENCES = 3
_CHANGE = frozenset(
    """
    abandoned adopted anymore appointed became become bought bumped cancelled canceled change changed changes changing
    converted current cut delayed ditched drop dropped dropping ended extended finally finished forget gave goodbye gone handed
    hired increased inherited instead joined joining landed latest leaving left longer lowered move moved moves moving new
    newer newest now nowadays officially over passed picked postponed promoted pushed quit quitting raised reassigned
    recently reduced relocated renamed replace replaced replacing rescheduled retired selling settled shifted signed slipped sold
    started starting stop stopped swap swapped swapping switch switched switching took traded transferred uninstalled
    updated upgrade upgraded went
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
)
_TOPICS = {
    word: topic
    for topic, group in {
        "home": "live lives living lived moved moving move relocated home flat apartment house based settled address reside",
        "work": "work works working worked job employer company firm hired joined quit employed career office",
        "manager": "manager boss supervisor lead report reports reporting",
        "diet": "eat eats eating diet vegetarian vegan meat fish food gluten",
        "car": "car cars drive drives driving drove vehicle suv",
        "pet": "dog cat pet puppy kitten adopted hamster rabbit",
        "phone": "phone mobile iphone android smartphone",
        "day": "monday tuesday wednesday thursday friday saturday sunday meeting sync standup rescheduled weekly",
        "due": "deadline due deliver submit postponed extended launch release",
        "favourite": "favourite favorite prefer prefers best love loves",
        "tool": "editor ide code coding laptop browser software app tool",
        "sport": "sport gym exercise training train fit workout",
        "language": "language learning learn lessons study studying course",
        "partner": "girlfriend boyfriend wife husband partner married engaged dating",
        "name": "called named renamed name",
    }.items()
    for word in group.split()
}
"""Words for the same thing that static vectors hold apart: one lives somewhere and moves somewhere else."""
_PEOPLE = frozenset(
    """
    aunt boyfriend brother child children colleague cousin coworker dad daughter father flatmate friend girlfriend
    grandfather grandma grandmother grandpa husband kids mom mother mum neighbor neighbour nephew niece parents partner
    roommate sister son uncle wife
    """.split()  # noqa: SIM905
)
_SPEAKER = frozenset({"i", "im", "ive", "my", "we", "our", "me", "mine", "us"})
_OF_SOMEONE = re.compile(r"\b([A-Z][a-z]+)['’]s\b(?!\s+(?:a|an|the|not|been|going|now)\b)")
_TO_SOMEONE = re.compile(r"\b(?:you|your|yours|yourself|y'all|ya|u|let's)\b", re.I)
_IS = re.compile(r"\W*(?:(?:the|my|our|a)\s+)?((?:[^\W_][\w'’-]*\s+){1,5}?)(?:is|are|isn't|aren't)\s+(?:now\s+)?", re.I)
_IS_MINE = re.compile(r"(?:my|our|the)\s", re.I)
_OF_NOW = re.compile(
    r"\b(?:i|we)(?:['’](?:m|re)|\s+(?:am|are)|\s+(?:always |usually |currently |mostly |only )?(?:live|work|drive|use|eat|drink"
    r"|report|study|learn|order|wear|stay|rent|pay|earn|do|go|take|commute|train|code|write|ride|follow|wake|sleep|run))\b",
    re.I,
)
_EVENT = re.compile(
    r"\b(?:i|we)\s+(?:just |also |recently )?(?:[a-z]+ed|met|went|saw|read|bought|had|was|were|did|made|came|ate|found|ran"
    r"|gave|told|heard|felt|wrote|won|lost|spent|flew|drove|slept|sang|swam|built|sent|paid|set|put|cut)\b",
    re.I,
)
_ONE_OF_MANY = re.compile(
    r"\b(?:i|we)(?:['’]ve)?\s+(?:also |really )?(?:have|had|like|love|know|speak|play|can|enjoy|need|want|think|hope|feel"
    r"|got|been|visited|tried|hate|own)\b|\btoo\b|\balso\b",
    re.I,
)
_ASKING = re.compile(r"[^.!?\n]*\?+")
_SENTENCE_ENDS = re.compile(r"[.!?]+(?:\s|$)")
_STATE = re.compile(r"\b(?:is|are|was|has|have|will)\b|['’]s\b|:", re.I)
_NO_NAME = frozenset({"i", "it", "that", "what", "let", "there", "here", "today", "he", "she", "who", "where", "how"})
_NOT_NOW = re.compile(
    r"\b(?:used to|as a (?:kid|child|student)|back then|back when|when i was|years ago|might|i'd (?:love|like)|i wish"
    r"|thinking (?:about|of)|considering|someday|one day)\b",
    re.I,
)
"""What was, or may be, does not replace what is."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Statement:
    """What the model looks at in one text."""

    vector: npt.NDArray[np.float32]
    without_names: npt.NDArray[np.float32]
    names: frozenset[str]
    topics: frozenset[str]
    people: frozenset[str]
    tells_change: bool
    of_speaker: bool
    asserts: bool
    subject: frozenset[str]
    """Of "my team is …": what is said to be something; empty in other sentences."""
    of_now: bool
    """It says what the speaker does or is now."""
    many: bool
    """It tells what happened, or something of which one has many."""
    holds_now: bool


@lru_cache(maxsize=1)
def _embedder() -> StaticEmbedder:
    return StaticEmbedder()


@lru_cache(maxsize=2048)
def read(text: str) -> Statement:
    """The statement in a text; sentences that ask are left out."""
    text = _ASKING.sub(" ", text)
    found = words(text)
    own = frozenset(found)
    names = frozenset(part for name in names_in(text) for part in words(name))
    plain = " ".join(word for word in found if word not in names)
    vector, without = _embedder().embed([text, plain])
    owners = frozenset(name.lower() for name in _OF_SOMEONE.findall(text)) - _NO_NAME
    return Statement(
        vector=vector,
        without_names=without,
        names=names,
        topics=frozenset(_TOPICS[word] for word in own if word in _TOPICS),
        people=(own & _PEOPLE) | owners,
        tells_change=not _CHANGE.isdisjoint(own),
        of_speaker=not _SPEAKER.isdisjoint(own),
        asserts=_asserts(text, own),
        subject=_subject(text),
        of_now=bool(_OF_NOW.search(text)),
        many=bool(_EVENT.search(text) or _ONE_OF_MANY.search(text)),
        holds_now=not _NOT_NOW.search(text),
    )


MAYBE = 0.04
"""From here on it may: no mark, but where a question finds both, the newer comes first."""


def forget_statements() -> None:
    """Empty the cache, which holds texts."""
    read.cache_clear()


def _subject(text: str) -> frozenset[str]:
    found = _IS.match(text)
    if found is None:
        return frozenset()
    own = text[found.end() :] if _IS_MINE.match(text[found.end() :]) else found[1]
    return frozenset(_TOPICS.get(word, word) for word in content_words(own))


def _most(before: Statement, after: Statement) -> float:
    """The highest probability that a pair can have. Without a word of change, only what the same thing is and what the
    speaker does now are surely replaced; of what merely happened and things of which one has many, the newer may come
    first; statements about different things have nothing to do with each other."""
    if after.tells_change:
        return 1.0
    if before.subject and after.subject:
        mine = before.of_speaker and after.of_speaker
        part = before.subject <= after.subject or after.subject <= before.subject
        return 1.0 if before.subject == after.subject or (mine and part) else 0.0
    plain = (before.of_now or before.subject) and (after.of_now or after.subject)
    return 1.0 if plain and not (before.many or after.many) else SURE - 0.01


def _asserts(text: str, own: frozenset[str]) -> bool:
    """Whether a text reads like a statement of fact: few sentences, not to "you", with a speaker, a change
    or a verb of state."""
    if _TO_SOMEONE.search(text) or len(_SENTENCE_ENDS.findall(text)) > MOST_SENTENCES:
        return False
    return not _SPEAKER.isdisjoint(own) or not _CHANGE.isdisjoint(own) or bool(_STATE.search(text))


def probability(old: str, new: str, *, stated: bool = False) -> float:
    """How likely it is that the new statement replaces the old one, 0 … 1; `stated` when both are known to be some."""
    if max(len(old), len(new)) > LONGEST_CHARS:
        return 0.0
    before, after = read(old), read(new)
    if not (after.holds_now and (stated or (before.asserts and after.asserts))):
        return 0.0
    values = features(before, after)
    score = sum(weight * values[name] for name, weight in _WEIGHTS.items())
    return min(_most(before, after), 1 / (1 + math.exp(-score)))


def features(before: Statement, after: Statement) -> dict[str, float]:
    """What the model weighs."""
    return {
        "bias": 1.0,
        "near": float(before.vector @ after.vector),
        "near_without_names": float(before.without_names @ after.without_names),
        "names_old_name": float(not before.names.isdisjoint(after.names)),
        "tells_change": float(after.tells_change),
        "other_people": float(before.people != after.people),
        "both_have_names": float(bool(before.names) == bool(after.names)),
        "both_of_speaker": float(before.of_speaker == after.of_speaker),
        "same_topic": len(before.topics & after.topics) / (len(before.topics | after.topics) or 1),
    }

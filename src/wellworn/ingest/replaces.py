"""Does a statement replace an earlier one? "I moved to Bergen" replaces "I live in Oslo".

A small logistic model over a pair of statements: how close they are in meaning, how close without their names and
numbers, whether the new one tells of a change, and whether both are about the same person. Its weights were fitted on
`evals/lives/tune.toml` and `more.toml`; docs/truth.md has the figures on `check.toml`. It always uses the bundled
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
    "bias": -6.9,
    "near": 10.7,
    "near_without_names": 5.1,
    "names_old_name": 2.1,
    "tells_change": 0.9,
    "other_people": -1.4,
    "both_have_names": 1.2,
    "both_of_speaker": 0.3,
}
SURE = 0.4
"""From here on a statement is taken to replace the other."""
MAYBE = 0.04
"""From here on it may: nothing is marked, but where a question finds both, the newer one comes first."""
SAME = 0.999
"""Statements this close say the same."""
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
_RESULTS = [
    (re.compile(r"\b(?:moved|relocated|moving) (?:back |over |out )?to (?=[A-Z])"), "live in "),
    (re.compile(r"\b(?:joined|started at|signed with|hired by) (?=[A-Z])"), "work at "),
    (re.compile(r"\b(?:took|takes|taking) over as "), "is "),
]
"""What holds after a change whose verb says nothing of it: static vectors hold "moved to" and "live in" apart."""
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
_HEADING = re.compile(r"([^:.!?\n]{3,60}):\s")
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
    people: frozenset[str]
    subject: frozenset[str]
    """Of "my team is …": what is said to be something; empty in other sentences."""
    tells_change: bool
    of_speaker: bool
    asserts: bool
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
    result = text
    for change, holds in _RESULTS:
        result = change.sub(holds, result)
    plain = " ".join(word for word in words(result) if word not in names)
    vector, without = _embedder().embed([result, plain])
    owners = frozenset(name.lower() for name in _OF_SOMEONE.findall(text)) - _NO_NAME
    return Statement(
        vector=vector,
        without_names=without,
        names=names,
        people=(own & _PEOPLE) | owners,
        subject=_subject(text),
        tells_change=not _CHANGE.isdisjoint(own),
        of_speaker=not _SPEAKER.isdisjoint(own),
        asserts=_asserts(text, own),
        of_now=bool(_OF_NOW.search(text)),
        many=bool(_EVENT.search(text) or _ONE_OF_MANY.search(text)),
        holds_now=not _NOT_NOW.search(text),
    )


def forget_statements() -> None:
    """Empty the cache, which holds texts."""
    read.cache_clear()


def _subject(text: str) -> frozenset[str]:
    found = _HEADING.match(text)
    if found is not None:
        return frozenset(content_words(found[1]))
    found = _IS.match(text)
    if found is None:
        return frozenset()
    own = text[found.end() :] if _IS_MINE.match(text[found.end() :]) else found[1]
    return frozenset(content_words(own))


def _most(before: Statement, after: Statement) -> float:
    """The highest probability that a pair can have. Statements of what different things are have nothing to do with each
    other. Of what merely happened, and of things of which one has many, nothing is surely replaced: there the newer may
    come first."""
    if after.tells_change:
        return 1.0
    if before.subject and after.subject and not _same_subject(before, after):
        return 0.0
    return SURE - 0.01 if before.many or after.many else 1.0


def _plainly(before: Statement, after: Statement) -> bool:
    """Whether a change is told, or both say what something is or what the speaker does now."""
    now = (before.of_now or before.subject) and (after.of_now or after.subject)
    return after.tells_change or bool(now)


def _tells_no_news(before: Statement, after: Statement) -> bool:
    """Whether the new statement tells of no change and names nothing that the old one does not name."""
    return bool(after.names) and after.names <= before.names and not after.tells_change


def _same_subject(before: Statement, after: Statement) -> bool:
    mine = before.of_speaker and after.of_speaker
    part = before.subject <= after.subject or after.subject <= before.subject
    return before.subject == after.subject or (mine and part)


def _asserts(text: str, own: frozenset[str]) -> bool:
    """Whether a text reads like a statement of fact: few sentences, not to "you", with a speaker, a change
    or a verb of state."""
    if _TO_SOMEONE.search(text) or len(_SENTENCE_ENDS.findall(text)) > MOST_SENTENCES:
        return False
    return not _SPEAKER.isdisjoint(own) or not _CHANGE.isdisjoint(own) or bool(_STATE.search(text))


def probability(old: str, new: str, *, stated: bool = False, spoken: bool = False) -> float:
    """How likely it is that the new statement replaces the old one, 0 … 1.

    `stated` when both are memories, which are statements: one of a dialogue replaces another only if it tells of a change,
    or both say plainly what is so now. Of `spoken` turns those that do not read like one may be replaced, but
    never surely; of other texts not even that.
    """
    if max(len(old), len(new)) > LONGEST_CHARS:
        return 0.0
    before, after = read(old), read(new)
    asserts = stated or (before.asserts and after.asserts)
    if not after.holds_now or not (asserts or spoken):
        return 0.0
    values = features(before, after)
    if values["near"] > SAME or _tells_no_news(before, after):
        return 0.0
    score = sum(weight * values[name] for name, weight in _WEIGHTS.items())
    most = _most(before, after)
    if not asserts or (stated and not _plainly(before, after)):
        most = min(most, SURE - 0.01)
    return min(most, 1 / (1 + math.exp(-score)))


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
    }

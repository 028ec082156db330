"""Is a text about somebody else than a question? "My sister lives in Porto." does not answer "Where do I live?"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from wellworn.core.lazy import regex
from wellworn.ingest.related import RELATED
from wellworn.ingest.statement import ACTOR, PERSON, PRONOUNS, SPEAKER, read
from wellworn.ingest.terms import words

_ANY_PERSON = regex(rf"\b{PERSON}", re.I)
_ANOTHERS = regex(rf"(?:my|our)\s+(?:\w+\s+)?(?:{PERSON}|\w+(?=(?:\s+is|['’]s)\s+(?:called|named?)\b))", re.I)
"""How a text begins that is about somebody else: "My sister lives …", "My dog is called …". A name may be the speaker's own."""
_ASKS_OF_ANOTHER = regex(
    rf"\b(?:do|does|did|is|are|was|were|has|have|will|can|can['’]t|should)\s+(?:my|our)\s+(?:\w+\s+)?({PERSON})\s+\w",
    re.I,
)
_ASKS_FURTHER = frozenset({"who", "whom", "whose", "should", "could", "can", "shall", "would", "must"})
"""Words of questions that others may answer: "Who can help me?", "What should I cook?"."""


def about_another(question: str, text: str) -> bool:
    """Whether a text is about somebody else than a question of which the speaker is a part: "My sister lives in Porto." for
    "Where do I live?", "I live in Leeds." for "Where does my brother live?"."""
    statement = read(text)
    asked, said = frozenset(words(question)), frozenset(words(statement.said))
    if other := _ASKS_OF_ANOTHER.search(question):
        of_them = _ANY_PERSON.search(statement.said) or said & (PRONOUNS | _told_as([other[1].lower()]))
        return not of_them and statement.of_speaker and statement.names.isdisjoint(asked)
    if SPEAKER.isdisjoint(asked) or not _ASKS_FURTHER.isdisjoint(asked) or _ANY_PERSON.search(question):
        return False
    begins = _ANOTHERS.match(statement.said)
    who = frozenset(words(begins[0])) - SPEAKER if begins else frozenset[str]()
    return bool(who) and who.isdisjoint(asked | _told_as(asked)) and said.isdisjoint(ACTOR)


def _told_as(asked: Iterable[str]) -> frozenset[str]:
    """The words that tell what these words ask for."""
    return frozenset(word for one in asked for word in RELATED.get(one, ()))

"""A sentence cut into facts that change by themselves: "I live in Berlin and work at Bosch" is two of them.

Home, work, age, family, numbers, names and the like have one value at a time. Each gets a memory of its own, so that
a new home does not end the job with the old one. Reads the beginning of a clause only.
"""

from __future__ import annotations

import re

from wellworn.reflection.rules.spoken import written_out

LONGEST_WORDS = 16
"""A longer clause tells more than the value."""
_ADVERBS = r"(?:(?:now|currently|still|also|just|actually|recently|really) )*"
_OCCUPATIONS = (
    "nurse|doctor|teacher|engineer|developer|designer|manager|lawyer|chef|cook|baker|pilot|student|scientist"
    "|researcher|writer|artist|musician|photographer|accountant|architect|consultant|analyst|plumber|electrician"
    "|carpenter|mechanic|farmer|driver|paramedic|dentist|vet|pharmacist|librarian|barista|waiter|waitress|freelancer"
    "|translator|journalist|programmer|midwife|therapist|professor|gardener|founder|lead|owner|retiree"
)
_KIN = "kids?|child(?:ren)?|sons?|daughters?|brothers?|sisters?|siblings?|dogs?|cats?|twins"
_BEING = (
    rf"\d{{1,3}}(?: years old)?(?=$|[ ,.])(?! (?:minutes|hours|days|weeks|months|km|%))|married|engaged|divorced|single"
    rf"|widowed|retired|based in|living in|from [a-z]|allergic to|vegetarian|vegan"
    rf"|an? (?:[\w-]+ ){{0,3}}?(?:{_OCCUPATIONS})\b"
)
_DOING = (
    r"(?:live|reside) (?:in|at|on|near|alone|with)\b|moved to\b|work (?:as|at|for|in)\b|report to\b|study\b"
    rf"|have (?:an?|one|two|three|four|five|\d|no) (?:\w+ )?(?:{_KIN})\b"
)
_OWN = (
    r"my (?:new |current |full |first |last |nick|middle )*(?:name|phone number|number|e-?mail(?: address)?|address"
    r"|birthday|age|boss|manager|wife|husband|partner|job|favou?rite [\w ]{2,30}?) is\b"
)
_CLAUSE = re.compile(rf"(?:(?:i|we) )?{_ADVERBS}(?:(?:am|are) {_ADVERBS}(?:{_BEING})|(?:{_DOING}))|{_OWN}")
_BARE = re.compile(rf"{_ADVERBS}(?:{_BEING})")
_SUBJECT = re.compile(r"(?:i|we|my)\b")
_JOINT = re.compile(r",?\s+and\s+|\s*[,;]\s+")
_BE = re.compile(r"(?:i am|i'm|im|we are|we're)\b")


def has_slot(text: str) -> bool:
    """Whether the sentence gives its speaker one value: a home, an age, a number."""
    lower = written_out(text.lower())
    return bool(_SUBJECT.match(lower) and _CLAUSE.match(lower)) and len(lower.split()) <= LONGEST_WORDS


def parts(text: str) -> list[str]:
    """The sentence cut before each further fact of that sort, with its subject put back; whole when there is none."""
    news, colon, value = text.partition(": ")
    if colon and has_slot(value) and _SUBJECT.match(news.lower()):  # "I switched teams: I report to Mireille"
        return [news, *parts(value)]
    lower = written_out(text.lower())
    if not _SUBJECT.match(lower) or not _CLAUSE.match(lower):
        return [text]
    found: list[str] = []
    start, lead = 0, ""
    for joint in _JOINT.finditer(text):
        subject = _subject(text, written_out(text[joint.end() :].lower()))
        if subject is not None and joint.start() > start:
            found.append(lead + text[start : joint.start()])
            start, lead = joint.end(), subject
    return [*found, lead + text[start:]]


def _subject(text: str, after: str) -> str | None:
    """What a clause needs before it to stand alone; None where no fact of its own begins."""
    if _SUBJECT.match(after):
        return "" if _CLAUSE.match(after) else None
    together = text.lower().startswith("we")
    if _BE.match(text.lower()) and _BARE.match(after):
        return "We are " if together else "I am "
    return ("We " if together else "I ") if _CLAUSE.match(after) else None

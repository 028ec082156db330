"""People whom a speaker has introduced: after "my sister Mia", what is said of Mia counts, and says whose sister."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wellworn.reflection.rules.lists import words

_KIN = (
    "wife|husband|spouse|partner|fiancée?|girlfriend|boyfriend|mother|father|mom|mum|dad|brother|sister|son|daughter"
    "|grandma|grandpa|grandmother|grandfather|grandson|granddaughter|uncle|aunt|cousin|niece|nephew|dog|cat|puppy"
    "|kitten|rabbit|hamster|parrot|horse|roommate|flatmate|neighbou?r|friend|colleague|boss|manager|teammate|baby"
)
_INTRODUCED = re.compile(
    rf"\b(?i:my|our) (?P<kin>(?:(?!and |or )[a-z]+ )?(?:{_KIN})),?"
    r"(?: is called| is named|'s name is|,? called|,? named)? (?P<name>[A-Z][a-z]+)\b(?!')"
)
_BEGINNING = re.compile(r"(?P<opener>(?i:actually|no|oh|and|but|also),? )?(?P<name>[A-Z][a-z]+)(?='s [a-z]| [a-z])")
_NO_NAMES = words(
    """
    I Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August
    September October November December
    """
)


def introduced(speaker: str, text: str) -> dict[str, str]:
    """How to speak of each person whom a turn introduces, by name: `Mia` → `Ada's sister Mia`."""
    owner = speaker[:1].upper() + speaker[1:]
    return {
        one["name"]: f"{owner}'s {one['kin']} {one['name']}"
        for one in _INTRODUCED.finditer(text)
        if one["name"] not in _NO_NAMES
    }


def about(text: str, known: Mapping[str, str]) -> str | None:
    """The sentence with a known person's full description where it begins with their name; None where it does not."""
    one = _BEGINNING.match(text)
    if one is None or one["name"] not in known:
        return None
    return f"{one['opener'] or ''}{known[one['name']]}{text[one.end() :]}"

"""Turn a sentence in the first person into one about the speaker: "I live in Oslo" becomes "Ada lives in Oslo".

Rewrites only where the result is certain to be a correct sentence and returns None otherwise; the caller then quotes
the speaker instead. Knows the grammar of "I", "my" and "me" in simple English sentences, and nothing about meaning.
"""

from __future__ import annotations

import re

from wellworn.core.lazy import regex


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MODALS = _words(
    "will would can could should shall must might may ought can't cannot couldn't won't wouldn't shouldn't mustn't"
)
_CHANGED = {"am": "is", "have": "has", "do": "does", "don't": "doesn't", "haven't": "hasn't", "ain't": "isn't"}
_SAME = _MODALS | _words("was had did wasn't hadn't didn't used")
_IRREGULAR_PASTS = _words(
    """
    ate became been began bent bit blew bought broke brought built burnt came caught chose dealt did done drank drew
    dreamt drove fed fell felt flew forgave forgot fought found froze gave gone got grew had heard held hid hung kept
    knew laid led learnt left lent lit lost made meant met overcame paid ran rang rebuilt rewrote rode rose said sang
    sank sat saw sent shook shone shot slept sold sped spent spoke spun stole stood struck stuck swam swept swore
    taught thought threw told took tore understood was went were withdrew woke won wore wrote
    """
)
_TENSELESS = _words("bet cast cost cut hit hurt let put quit read set shut split spread upset")
"""Present and past look alike, so the form after a name is open."""
_NOT_PAST = _words("need feed speed seed bleed exceed proceed succeed breed embed shed heed weed")
_ADVERBS = _words(
    "also always never ever just still already often usually sometimes now only even then too almost rather seldom not"
)
_NO_VERB = _words(
    """
    a an the this that these those my his her its our their your some any no all both each every one two three four
    five six seven eight nine ten i he she it we they you who what which when where why how if because since while
    although though after before until in on at by for from of off out over to under up with without about into near
    as than so and or but not very too more most less other others much many me him us them there here such only
    """
)
_UNCERTAIN = _words(
    "you your yours yourself you're you've you'll you'd we we're we've we'll we'd our ours us ourselves mine myself"
    " i'd let's wanna gonna gotta kinda"
)
_OTHERS = _words("they they're they've them their theirs")
_ADDRESS = regex(r"^my \w+,|, my \w+\W*$|^me ", re.IGNORECASE)
"""May be how the listener is called ("My friend, this works"), or no English grammar."""
_WORD = regex(r"[A-Za-z]+(?:'[A-Za-z]+)*")
_I = regex(r"\bi\b(?!')", re.IGNORECASE)
_CONTRACTED = regex(r"\bi(?:'(m|ve|ll)|'(d)(?= (?:like|love|rather|prefer)\b)|(?!M)(m|ve))\b", re.IGNORECASE)
_FULL = {"m": "I am", "ve": "I have", "ll": "I will", "d": "I would"}
_OWN = regex(r"\b(?:my|me)\b", re.IGNORECASE)
_JOINED = regex(r"(?:[,;]|\b(?:and|or|but|then)\b)\s+((?:[a-z]+ly\s+)?[a-z]+)")
_BEFORE_I = _MODALS | _words("am was do did have had don't didn't and or nor")
"""Before "I": "so do I", "my wife and I"."""


def is_past(word: str) -> bool:
    """Whether a verb form is certainly a past tense."""
    return word in _IRREGULAR_PASTS or (word.endswith("ed") and len(word) > 3 and word not in _NOT_PAST)


def is_adverb(word: str) -> bool:
    return word in _ADVERBS or (word.endswith("ly") and len(word) > 4 and word not in ("rely", "apply", "reply"))


def _third_form(verb: str) -> str | None:
    """The form of a verb after a name, from the one after "I"; None when that is not certain."""
    if verb in _CHANGED:
        return _CHANGED[verb]
    if verb in _SAME or is_past(verb):
        return verb
    if verb in _TENSELESS or verb in _NO_VERB or not (verb.isalpha() and len(verb) > 1) or verb.endswith("ing"):
        return None
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    return verb[:-1] + "ies" if verb.endswith("y") and verb[-2] not in "aeiou" else verb + "s"


def about_speaker(text: str, name: str) -> str | None:
    """The sentence with the speaker's name for "I", or None where that is not certain to be right."""
    text = _CONTRACTED.sub(lambda found: _FULL[(found[1] or found[2] or found[3]).lower()], text)
    words = {word.lower() for word in _WORD.findall(text)}
    if '"' in text or _ADDRESS.search(text) or not words.isdisjoint(_UNCERTAIN):
        return None
    theirs = words.isdisjoint(_OTHERS)  # unless the sentence says "they" of somebody else
    subjects = [*_I.finditer(text)]
    if not subjects:
        return _owned(text, name, theirs=False)
    before, after = text[: subjects[0].start()], text[subjects[0].end() :]
    verb = next((word for word in _WORD.finditer(after) if not _is_before_verb(word[0].lower())), None)
    last = _WORD.findall(before)[-1:]
    if len(subjects) > 1 or verb is None or (last and last[0].lower() in _BEFORE_I):
        return None
    third = _third_form(verb[0]) if after[: verb.start()].replace(" ", "a").isalpha() else None
    rest = after[verb.end() :]
    if third is None or (third != verb[0] and any(_may_be_verb(word) for word in _JOINED.findall(rest))):
        return None  # "I cook, sing and dance", "I live in Oslo and work at home"
    return _owned(before, name, theirs=False) + name + after[: verb.start()] + third + _owned(rest, name, theirs=theirs)


def _is_before_verb(word: str) -> bool:
    return is_adverb(word) or word in ("no", "longer")


def _may_be_verb(word: str) -> bool:
    """Whether what follows a join may be a second verb of the speaker, which would have to be inflected too."""
    return word not in _NO_VERB and not is_past(word)


def _owned(text: str, name: str, *, theirs: bool) -> str:
    """A part of the sentence with "my" and "me" replaced."""
    mine, me = ("their", "them") if theirs else (f"{name}'s", name)
    return _OWN.sub(lambda found: mine if found[0].lower() == "my" else me, text)

"""Turn a sentence in the first person into one about the speaker: "I live in Oslo" becomes "Ada lives in Oslo".

Rewrites only where the result is certain to be a correct sentence and returns None otherwise; the caller then quotes
the speaker instead. Knows the grammar of "I", "my" and "me" in simple English sentences, and nothing about meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_PIECE = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*|\s+|[^A-Za-z\s]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODALS = _words(
    "will would can could should shall must might may ought can't cannot couldn't won't wouldn't shouldn't mustn't"
)
_CHANGED = {"am": "is", "have": "has", "do": "does", "don't": "doesn't", "haven't": "hasn't", "ain't": "isn't"}
_SAME = MODALS | _words("was had did wasn't hadn't didn't used")
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
_JOINS = _words("and or but then")
_UNCERTAIN = _words(
    "you your yours yourself you're you've you'll you'd we we're we've we'll we'd our ours us ourselves mine myself"
    " let's wanna gonna gotta kinda"
)
_OTHERS = _words("they they're they've them their theirs")
_ADDRESS = re.compile(r"^my \w+,|, my \w+\W*$", re.IGNORECASE)
"""May be how the listener is called: "My friend, this works"."""
_LIKE_WOULD = _words("like love rather prefer be say never also always really")
_AUXILIARIES = MODALS | _words("am was do did have had don't didn't")


def is_past(word: str) -> bool:
    """Whether a verb form is certainly a past tense."""
    return word in _IRREGULAR_PASTS or (word.endswith("ed") and len(word) > 3 and word not in _NOT_PAST)


def is_adverb(word: str) -> bool:
    return word in _ADVERBS or (word.endswith("ly") and len(word) > 4 and word not in ("rely", "apply", "reply"))


def third_form(verb: str) -> str | None:
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


@dataclass(kw_only=True)
class _Rewriting:
    """A sentence on its way into the third person."""

    pieces: list[str]
    name: str
    done: list[str] = field(default_factory=list)
    first_subject: bool = False
    """"I" was the subject of a verb already."""
    inflected: bool = False
    """The last verb of the speaker stands in the present, so a verb after "and" must be inflected too."""
    others: bool = False
    """The sentence says "they" of somebody else."""

    def word(self, place: int, step: int) -> tuple[str, int]:
        """The nearest word on one side in lower case and its place; "" at the end or at any sign."""
        at = place + step
        while 0 <= at < len(self.pieces) and self.pieces[at].isspace():
            at += step
        return (self.pieces[at].lower(), at) if 0 <= at < len(self.pieces) else ("", at)

    def may_be_verb(self, place: int) -> bool:
        """Whether what follows a join may be a second verb of the speaker, which would have to be inflected too."""
        word, at = self.word(place, 1)
        while is_adverb(word) and word not in _NO_VERB:
            word, at = self.word(at, 1)
        if not word[:1].isalpha() or word in _NO_VERB or self.pieces[at][0].isupper():
            return False
        return not (word.endswith(("s", "ing")) or is_past(word) or word in MODALS)


def about_speaker(text: str, name: str) -> str | None:
    """The sentence with the speaker's name for "I", or None where that is not certain to be right."""
    pieces = [part for piece in _PIECE.findall(text) for part in _uncontracted(piece)]
    words = {piece.lower() for piece in pieces}
    if '"' in text or text[:3].lower() == "me " or _ADDRESS.search(text) or not words.isdisjoint(_UNCERTAIN):
        return None
    state = _Rewriting(pieces=pieces, name=name, others=not words.isdisjoint(_OTHERS))
    place = 0
    while place < len(pieces):
        after = _rewrite(state, place)
        if after is None:
            return None
        place = after
    return "".join(state.done)


def _uncontracted(piece: str) -> list[str]:
    pair = {"i'm": "am", "i've": "have", "i'll": "will", "i'd": "'d", "im": "am", "ive": "have"}.get(piece.lower())
    return ["I", " ", pair] if pair and piece != "IM" else [piece]


def _rewrite(state: _Rewriting, place: int) -> int | None:
    """Rewrite the piece here and return where to go on; None gives up."""
    lower = state.pieces[place].lower()
    if lower == "i":
        return _subject(state, place)
    if lower == "my":
        state.done.append("their" if state.first_subject and not state.others else f"{state.name}'s")
    elif lower == "me":
        state.done.append("them" if state.first_subject and not state.others else state.name)
    elif (lower in _JOINS or lower[0] in ",;") and state.inflected and state.may_be_verb(place):
        return None  # "I cook, sing and dance", "I live in Oslo and work at home"
    else:
        state.done.append(state.pieces[place])
    return place + 1


def _subject(state: _Rewriting, place: int) -> int | None:
    """ "I" with its adverbs and its verb."""
    before, _ = state.word(place, -1)
    if before in _AUXILIARIES or (before in ("and", "or", "nor") and not state.first_subject):
        return None  # "so do I", "my wife and I"
    state.done.append(state.name)
    at = place + 1
    while at < len(state.pieces):
        piece = state.pieces[at]
        lower = piece.lower()
        if piece.isspace() or is_adverb(lower):
            state.done.append(piece)
        elif lower == "no" and state.word(at, 1)[0] == "longer":
            state.done.append(f"{piece} longer")
            at = state.word(at, 1)[1]
        else:
            break
        at += 1
    if at >= len(state.pieces) or state.pieces[at][0].isupper():
        return None  # nothing follows, or a title: "How I Built This"
    verb = _verb_after_i(state, at)
    if verb is None:
        return None
    state.done.append(verb)
    lower = state.pieces[at].lower()
    state.first_subject = True
    state.inflected = verb != lower
    return at + 1


def _verb_after_i(state: _Rewriting, at: int) -> str | None:
    lower = state.pieces[at].lower()
    if lower == "'d":
        after = state.word(at, 1)[0]
        return "would" if after in _LIKE_WOULD else "had" if is_past(after) or after == "better" else None
    return third_form(lower)

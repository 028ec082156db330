"""From text to what ranking needs of it: stemmed terms, a few traits, and sketches for near-identical texts.

The same analysis serves entries and queries. Terms are kept as stable 64-bit hashes, so an index holds no word list
that could outlive a forgotten text. Knows nothing about scores.
"""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import field
from enum import IntFlag
from functools import cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import Stemmer

from wellworn.core.cache import text_cache
from wellworn.core.dataclass import dataclass
from wellworn.core.hashes import hash64, signed64, thread_of
from wellworn.core.lazy import regex
from wellworn.core.values import Entry, filled
from wellworn.core.wellformed import fold
from wellworn.ingest.dates import NamedDate, named_dates
from wellworn.ingest.utterance import ASSISTANT_ROLES, knows_not, only_asks, only_reacts
from wellworn.ingest.word_lists import ENGLISH_WORDS, FOREIGN_WORDS, MONTHS, RELATED, WEEKDAYS
from wellworn.ingest.word_lists import STOP_WORDS as STOP_WORDS
from wellworn.store.port import IndexRecord


class Trait(IntFlag):
    """What a text is like, beyond its words."""

    QUESTION = 1
    """A short one: a long text that happens to end in a question mark is mostly not a question."""
    TIMED = 2
    FIRST_PERSON = 4
    ASKS = 8
    """A turn that only asks."""
    REACTS = 16
    """A turn that only thanks, greets, agrees or does not know."""
    ASSISTANT = 32
    """A turn of the assistant."""
    TURN = 64
    """What somebody said in a session."""


TASK_LEAD, TASK_END = "For tasks like “", "”: "
"""Around the task that a strategy or guardrail is for, at the beginning of its text."""
_UNSPACED = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"  # Chinese, Japanese, Korean
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u1780-\u17d3"  # Thai, Lao, Khmer
)
_MARKS = "\u0900-\u0963\u0971-\u0dff"
"""The letters of India with their vowel signs, which `\\w` leaves out."""
_WORD = regex(r"[^\W_]+")
_ASCII_WORDS = bytes(ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(128)).ljust(256)
"""What each ASCII character becomes before a text is split at its spaces."""
_WORD_OR_UNSPACED = regex(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]|[{_MARKS}])+")
_IS_UNSPACED = regex(rf"[{_UNSPACED}]")
_TIME_WORDS = frozenset(
    """
    yesterday today tonight tomorrow last next ago week weeks weekend weekends month months year years since until
    spring summer autumn winter
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
).union(WEEKDAYS, MONTHS, map(str, range(1900, 2100)))
_CLOCK = regex(r"\d(?: ?[ap]m\b|(?:(?<=\b\d)|(?<=\b[01])\d|(?<=\b2)[0-3]):[0-5]\d\b)", re.IGNORECASE)
"""Begins with what is rare, so that most texts are passed over quickly."""
_FIRST_PERSON = frozenset({"i", "my", "me", "mine", "we", "our", "us"})
_STEMMERS = threading.local()
SHORT_QUESTION_CHARS = 250


def stem(word: str) -> str:
    """Snowball's English stem. A stemmer object is not to be shared between threads."""
    stemmer = getattr(_STEMMERS, "english", None)
    if stemmer is None:
        stemmer = _STEMMERS.english = Stemmer.Stemmer("english")
    return str(stemmer.stemWord(word))


@text_cache(200_000)
def _term(word: str) -> int:
    """The hash of a lower-case word's stem; 0 for a stop word."""
    if word in STOP_WORDS:
        return 0
    return hash64(stem(word) if word.isascii() else word)


def words(text: str) -> list[str]:
    """Lower-case words in order; a run of signs that are written without spaces gives its overlapping pairs."""
    if text.isascii():
        return text.encode().translate(_ASCII_WORDS).decode().split()
    folded = fold(text)
    if max(folded, default="") < "\u0900":
        return _WORD.findall(folded)
    found: list[str] = []
    for word in _WORD_OR_UNSPACED.findall(folded):
        if _IS_UNSPACED.match(word) and len(word) > 1:
            found += [word[i : i + 2] for i in range(len(word) - 1)]
        else:
            found.append(word)
    return found


def terms(text: str) -> list[int]:
    """The terms of a text in order, stop words left out."""
    return [term for word in words(text) if (term := _term(word))]


def record_of(entry: Entry) -> IndexRecord:
    """The index record an entry must have."""
    return records_of([entry])[0]


_OF_ONESELF = frozenset({"i", "im", "me"})
"""One of these words is in each text that a form below fits."""
_IM = r"\bI(?:['’]?m| am|(?:['’]ve| have)? bec[ao]me) (?:now |currently |originally )?"
_IMPLIED = {
    "named": regex(
        rf"(?:{_IM}|\b[Cc]all me )(?!\w+(?:ish|ese)\b|(?:Dutch|French|German|Italian|Indian|Russian|Christian|Muslim)\b"
        r"|(?:Americ|Canad|Austr|Cathol))[A-Z][^\W\d_A-Z]+(?![\w'’-])"
    ),
    "employed": regex(
        rf"{_IM}an? (?!bit |little )(?:[\w-]+ ){{0,2}}?(?!vegetarian|beginner|smoker|lover|owner|member|runner|father|mother|brother|sister)"
        r"(?:\w*(?:er|or|ista?|ian|ant|man|woman|wife|nurse|chef|cook|clerk|coach|pilot|vet|student)\b|[\w -]{1,40}? at [A-Z])"
        r"|\bI(?:['’]?m| am) (?:doing|teaching|coaching|working|employed)\b[\w ]{0,20} (?:at|for) [A-Z]"
    ),
    "aged": regex(rf"(?:{_IM}|\bI(?:['’]ve)? (?:just )?turned )\d{{2}}\b(?=\s*(?:years?\b|and\b|[,;!]|\.?$))"),
    "origin": regex(rf"(?:{_IM}|\bI come )from [A-Z]|\bI grew up in\b"),
}
"""What a statement tells that none of its words names, by a word for it that `word_lists.py` has: "I'm Tom", "I'm a nurse"."""
_Words = tuple[dict[int, int], int, int, int]
"""Terms with their counts; characters, traits and the speaker's hash."""


def _read(entry: Entry) -> _Words:
    """Title, tags and the speaker's name count as words of an entry."""
    text, title, tags, speaker = entry.text, entry.title, entry.tags, entry.speaker
    of_dialogue = entry.session_id is not None and entry.thread == thread_of("session", entry.session_id)
    role = entry.source if entry.kind == "episode" and of_dialogue else None
    own = words(text)
    if not _OF_ONESELF.isdisjoint(own):
        own += [word for word, form in _IMPLIED.items() if form.search(text)]
    around = words(" ".join([speaker or "", title, *tags])) if speaker or title or tags else []
    found: dict[int, int] = {}
    for term in filter(None, map(_term, (*around, *own))):
        found[term] = found.get(term, 0) + 1
    return found, len(text), _traits(text, own, role), name_hash(speaker) if speaker else 0


def records_of(entries: Sequence[Entry]) -> list[IndexRecord]:
    """The index records of many entries: their sketches are computed together."""
    read = [_read(entry) for entry in entries]
    ordered = [sorted(found) for found, _, _, _ in read]
    hashes = np.array([term for terms in ordered for term in terms], dtype="<u8")
    counted = np.array([one[0][term] for one, terms in zip(read, ordered, strict=True) for term in terms], dtype=int)
    counts = np.minimum(counted, 65_535).astype("<u2")
    ends = [*accumulate(map(len, ordered))]
    return [
        filled(
            IndexRecord,
            terms=hashes[end - len(terms) : end],
            counts=counts[end - len(terms) : end],
            length=sum(found.values()),
            chars=chars,
            traits=traits,
            speaker=speaker,
            near=near,
        )
        for (found, chars, traits, speaker), terms, end, near in zip(
            read, ordered, ends, _sketches(hashes, ordered), strict=True
        )
    ]


def embedding_text(entry: Entry) -> str:
    """What is embedded for an entry: who said it, under which title, and the words.

    Of what a task taught, the task it is for and the title: it is looked for with the words of a task, and calls with
    their arguments would drown these.
    """
    return "".join(_embedded(entry))


def _embedded(entry: Entry) -> tuple[str, str, str]:
    """What is embedded for an entry: what stands before its words, these (its text, or how that begins), and what follows."""
    if entry.title and entry.text.startswith(TASK_LEAD) and TASK_END in entry.text:
        return "", entry.text.partition(TASK_END)[0], f"”. {entry.title}"
    title = f"{entry.title}. " if entry.title else ""
    return f"{entry.speaker}: {title}" if entry.speaker else title, entry.text, ""


def place_in_text(entry: Entry, begin: int, end: int) -> tuple[int, int] | None:
    """Where a stretch of the embedded text is in the entry's own; None where it is not in it, or all of it."""
    before, own, _ = _embedded(entry)
    begin, end = max(0, begin - len(before)), min(len(own), end - len(before))
    return (begin, end) if 0 < end - begin < len(entry.text) else None


_NAME = regex(r"(?<![^\W_])[^\W_]+(?:[-'’][^\W_]+)*")
_DIGIT = regex(r"\d")
_OF_SPEAKER = regex(r"I(?:['’]|$)")
_SENTENCE_BEGINS = regex(r"(?:\A|[.!?:;\n])\W*\Z")
_LOOK_BACK_CHARS = 12


def names_in(text: str) -> set[str]:
    """Words with digits, and capitalised words that do not begin a sentence."""
    found = set()
    for match in _NAME.finditer(text):
        word = match[0]
        if _DIGIT.search(word):
            found.add(word)
        elif word[0].isupper() and not _OF_SPEAKER.match(word):
            before = max(0, match.start() - _LOOK_BACK_CHARS)
            if not _SENTENCE_BEGINS.search(text, before, match.start()):
                found.add(word)
    return found


def content_words(text: str) -> list[str]:
    """The words of a text that are no stop words."""
    return [word for word in words(text) if word not in STOP_WORDS]


def _traits(text: str, found: Sequence[str], role: str | None) -> int:
    """What a text with these words is like; `role` is who says it, when it is a turn."""
    traits = 0
    if len(text) < SHORT_QUESTION_CHARS and text.rstrip().endswith(("?", "？")):
        traits |= Trait.QUESTION.value
    if not _TIME_WORDS.isdisjoint(found) or _CLOCK.search(text):
        traits |= Trait.TIMED.value
    if not _FIRST_PERSON.isdisjoint(found):
        traits |= Trait.FIRST_PERSON.value
    if role is not None:
        traits |= Trait.TURN.value
        if role.strip().lower() in ASSISTANT_ROLES:
            traits |= Trait.ASSISTANT.value
        if only_asks(text):
            traits |= Trait.ASKS.value
        elif only_reacts([word for word in found if word not in STOP_WORDS], text) or (
            traits & Trait.ASSISTANT and knows_not(text)
        ):
            traits |= Trait.REACTS.value
    return traits


def name_hash(name: str) -> int:
    """The hash of a name's first telling word, as a signed number: `Ada Lovelace` is named by `Ada`; 0 if none."""
    return next((signed64(term) for word in words(name) if (term := _term(word))), 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """A query as ranking sees it."""

    terms: list[int]
    """Distinct terms, in order of appearance."""
    related: dict[int, list[int]] = field(default_factory=dict)
    """For a term, those of words that tell what it asks for."""
    named: frozenset[int] = frozenset()
    """Those of its terms that are written like a name or a number; in "Where do we go in August?" none."""
    asks_when: bool = False
    about_past: bool = False
    """It asks for what held before."""
    dates: tuple[NamedDate, ...] = ()
    """Months and days it names."""


_ASKS_WHICH = frozenset({"who", "what", "which", "where", "how"})
_WHAT_IS_MY = regex(r"^(?:who|what)(?:['’]?s| is| are) (?:my|our) (?:new |current )?([^\W_]+)")
"""Its thing is not named: "Who is my GP?" asks for no "GP"."""
_ASKS_NAME = regex(r"^(\W*what\b.+)\b(?:called|named)\W*$", re.I | re.S)
"""What it is called is asked for, not told: an answer need not say "called"."""
_ASKS_WHEN = regex(r"\b(?:when|what (?:time|date|day|year|month)|how long ago|which (?:day|month|year))\b", re.I)
_ABOUT_PAST = regex(
    r"\b(?:before|previous(?:ly)?|former(?:ly)?|original(?:ly)?|earlier|prior|used? to|in the past|back then|the old|my old"
    r"|no longer|not any ?more|früher|vorher|zuvor|antes|anteriormente|avant|auparavant|vroeger|eerder|prima(?=\W*$)|precedente(?:mente)?"
    r"|wcześniej|przedtem|раньше|до этого|önceden)\b|以前|之前",
    re.I,
)
_WHICH = regex(r"^\W*(?:which|what)\s+([^\W_]+)")
"""The thing that is asked for, which is not a name that the answer must have: "Which CI do we use?"."""


@cache
def _related() -> dict[int, list[int]]:
    return {_term(asked): [_term(word) for word in told] for asked, told in RELATED.items()}


@text_cache(512)  # asked again when it is told what became of it
def read_question(query: str) -> Question:
    """The terms of a query; if only stop words are in it, those are taken after all."""
    plain = words(_ASKS_NAME.sub(r"\1", query))
    found = [term for word in plain if (term := _term(word))] or [hash64(word) for word in plain]
    beside = {*_TIME_WORDS, *_WHAT_IS_MY.findall(query.lower())} if plain and plain[0] in _ASKS_WHICH else ()
    beside = {*beside, *_WHICH.findall(query.lower())}
    foreign = len(FOREIGN_WORDS.intersection(plain)) > len(ENGLISH_WORDS.intersection(plain))
    names = [] if foreign else names_in(query)  # German writes all things like names
    if len(FOREIGN_WORDS.intersection(plain)) > 1 and foreign:
        form = {_term(word) for word in plain if word in FOREIGN_WORDS}
        found = [term for term in found if term not in form] or found
    told = {term: [one for one in _related().get(term, ()) if one not in found] for term in found}
    return Question(
        terms=list(dict.fromkeys(found)),
        related={term: others for term, others in told.items() if others},
        named=frozenset(term for name in names if name.lower() not in beside for term in terms(name)),
        asks_when=bool(_ASKS_WHEN.search(query)),
        about_past=bool(_ABOUT_PAST.search(query)),
        dates=named_dates(query, plain),
    )


# Min-hash: two texts with Jaccard similarity J of their term sets agree in a sketch of four with probability J⁴, and
# in at least one of two sketches with 1 - (1 - J⁴)²: 0.97 at J = 0.95, 0.88 at 0.9, 0.003 at 0.2.
_MULTIPLIERS = np.array(
    [
        0x9E3779B97F4A7C15,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0xD6E8FEB86659FD93,
        0xA0761D6478BD642F,
        0xE7037ED1A0B428DB,
        0x8EBC6AF09C88C6E3,
        0x589965CC75374CC3,
    ],
    dtype="<u8",
)
SMALLEST_SKETCHED = 4
_FOLD = np.uint64(0x9E3779B97F4A7C15)


def _sketches(hashes: npt.NDArray[np.uint64], each: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Both sketches of each text; `hashes` are the terms of all, one text's after another's."""
    if len(each) == 1:  # as most often; the same numbers without the cost of doing it for many
        if len(hashes) < SMALLEST_SKETCHED:
            return [_small_sketches(each[0])]
        smallest = (hashes * _MULTIPLIERS[:, None]).min(axis=1).tolist()
        return [(_folded(smallest[:4]), _folded(smallest[4:]))]
    if len(hashes) < SMALLEST_SKETCHED:
        return [_small_sketches(terms) for terms in each]
    # A text with too few terms takes part with those of the next; what comes of it is not used.
    starts = np.array([0, *accumulate(map(len, each))])[:-1]
    spread = np.full((len(_MULTIPLIERS), len(hashes) + 1), ~np.uint64(0))  # the last: texts without terms may end here
    np.multiply(hashes, _MULTIPLIERS[:, None], out=spread[:, :-1])
    least = np.minimum.reduceat(spread, starts, axis=1)
    folded = np.zeros((2, len(each)), dtype=np.uint64)
    for number in range(4):
        folded = folded * _FOLD + least[number::4]
    first, second = folded.view(np.int64).tolist()
    return [
        (a, b) if len(terms) >= SMALLEST_SKETCHED else _small_sketches(terms)
        for a, b, terms in zip(first, second, each, strict=True)
    ]


def _small_sketches(terms: Sequence[int]) -> tuple[int, int]:
    """Of too few terms to differ in one and still be alike: all of them must agree."""
    whole = _folded(terms) if len(terms) > 1 else 0
    return (whole, whole)


def _folded(values: Sequence[int]) -> int:
    """Several 64-bit numbers as one, signed."""
    total = 0
    for value in values:
        total = (total * int(_FOLD) + value) & 0xFFFFFFFFFFFFFFFF
    return signed64(total)


# -- hashes, the same on every machine, in every process and every release ---------------------------------------------


def text_hash(text: str, *, salt: str = "") -> str:
    """What two texts must share to count as the same: everything but spacing and Unicode form."""
    plain = " ".join((text if text.isascii() else unicodedata.normalize("NFC", text)).split())
    return hashlib.blake2b(f"{salt}\x1f{plain}".encode(errors="surrogatepass"), digest_size=16).hexdigest()


def content_hash(entry: Entry) -> str:
    """The hash an entry must carry."""
    return hash_of(entry.text, kind=entry.kind, session_id=entry.session_id, turn_refs=entry.turn_refs)


def hash_of(text: str, *, kind: str, session_id: str | None, turn_refs: Sequence[int]) -> str:
    """The content hash before there is an entry. The same words in another turn are another episode."""
    is_turn = kind == "episode" and session_id is not None and turn_refs
    return text_hash(text, salt=f"{session_id}\x1f{turn_refs[0]}" if is_turn else "")

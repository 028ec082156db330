"""What sort of sentence somebody wrote: a statement, an instruction that stays in force, a question, small talk …

Judged by general signs: the closing sign, the subject, the first words. Sentences in languages other than English are
statements unless they ask. Whether a sentence asks or merely reacts is the judgement of `ingest.utterance`.

A turn is split into the sentences that its speaker asserts, in linear time: code, quoted lines, tables, headings and
transcripts are left out. A sentence in the first person becomes one about the speaker ("I live in Oslo", "Ada lives in
Oslo") only where the result is certain to be correct; else the speaker is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from wellworn.core.dataclass import dataclass
from wellworn.core.lazy import regex
from wellworn.ingest.terms import STOP_WORDS, content_words, words
from wellworn.ingest.utterance import asks, telling_words, wants_work, without_opening


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# -- the first person --------------------------------------------------------------------------------------------------

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


# -- sentences ---------------------------------------------------------------------------------------------------------

LONGEST_CHARS = 600
"""A longer sentence is pasted text."""
MOST_SENTENCES = 400
"""The rest of the turn is not read."""

_TYPOGRAPHY = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " ", "\u202e": " "})
_CODE = "```"
_NOT_SAID = regex(r"[>#|<{}]|\d{1,2}:\d\d(?::\d\d)?\s+[A-Z]|[^|]*\|[^|]*\|")
"""Quoted lines, headings, tables, markup, and lines of a transcript."""
_LIST_MARKER = regex(r"(?:[-•–—+*]|\(?\d{1,3}[.)]|[a-zA-Z][.)])\s+")
_END = regex(r"[.!?…]+[\"')\]]*(?=\s|$)|[。！？]+")
_MONTH_ABROAD = regex(r"\s(?:jan|f[eé]b|mär|mar|apr|ma[ijy]|jun|jul|aug|sep|o[kc]t|nov|de[zcs])", re.I)
_LAST_WORD = regex(r"[\w.]{1,12}\Z")
_ABBREVIATIONS = frozenset(
    """
    mr mrs ms dr prof st vs etc e.g i.e approx jr sr inc ltd dept no a.m p.m dra sra srta mme mlle dott sig ul z.b bzw nr tel
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One sentence without its closing sign, which is `end` ("" where there is none, ":" before a list)."""

    text: str
    end: str = ""


def sentences(text: str) -> list[Sentence]:
    """The sentences of a turn, in order."""
    said = "\n".join(text.split(_CODE)[::2]) if _CODE in text else text
    found: list[Sentence] = []
    for raw in said.translate(_TYPOGRAPHY).splitlines():
        line = raw.strip()
        if line and not _NOT_SAID.match(line):
            line = _LIST_MARKER.sub("", line, count=1) if _LIST_MARKER.match(line) else line
            found += _split(" ".join(line.replace("**", "").split()))
        if len(found) >= MOST_SENTENCES:
            return found[:MOST_SENTENCES]
    return found


def _split(line: str) -> Iterator[Sentence]:
    start = 0
    for mark in _END.finditer(line):
        if _is_end(line, start, mark):
            yield from _sentence(line[start : mark.start()], mark[0])
            start = mark.end()
    yield from _sentence(line[start:], "")


def _sentence(text: str, end: str) -> Iterator[Sentence]:
    text = text.strip()
    if text and len(text) <= LONGEST_CHARS:
        closing = '"' if '"' in end and text.count('"') % 2 else ")" if ")" in end and "(" in text else ""
        sign = "?" if "?" in end or "？" in end else end[:1] or (":" if text.endswith(":") else "")
        yield Sentence(text=text + closing, end=sign)


def _is_end(line: str, start: int, mark: re.Match[str]) -> bool:
    """Whether a sentence ends here: not after an abbreviation, an initial or the number of a day, nor in a pause ("well... maybe")."""
    sign = mark[0]
    if sign[0] not in ".…" or "?" in sign or "!" in sign:
        return True
    if sign.startswith(("..", "…")) and line[mark.end() : mark.end() + 3].lstrip()[:1].islower():
        return False
    last = _LAST_WORD.search(line[max(start, mark.start() - 13) : mark.start()])
    word = last[0].lower() if last else ""
    if word.isdecimal() and len(word) < 3 and line[mark.end() + 1 : mark.end() + 2].isalpha() and not is_english(line):
        return _MONTH_ABROAD.match(line, mark.end()) is None  # "am 3. Mai"
    street = word.endswith("str") and not is_english(line)
    return not (word in _ABBREVIATIONS or street or (len(word) == 1 and word.isalpha() and word != "i"))


Label = Literal[
    "statement",
    "instruction",
    "question",
    "request",
    "small talk",
    "hypothetical",
    "fragment",
    "aside",
    "points back",
    "passing",
]


# -- labels ------------------------------------------------------------------------------------------------------------

_WORDS = regex(r"[^\W\d_]+(?:'[^\W\d_]+)?")
SELF = _words("i i'm i've i'll i'd im ive my me")
GROUP = _words("we we're we've we'll we'd our us")
_OBJECTS = _words("me us a an the his her its their")
_NOMINATIVE = _words("i i'm i've i'll we we're we've")
_SUBJECTS = SELF | GROUP | _words("the a an he he's she she's they they're his her its their there there's")
_POINTING = _words("it it's this that that's these those its")
"""A sentence that begins with one of these says nothing without the one before it."""
_LEADS = _words(
    "in on at after before when while since because last next yesterday today tomorrow tonight for from with without"
    " during as although though even every then now currently once until by under over here so and but also plus"
    " besides maybe perhaps this these"
)
"""Words that open a clause before its subject: "In 2019 I moved"."""
_FINITE = _words(
    "is are was were has had will can could should must may might does did isn't aren't wasn't weren't hasn't won't"
    " can't doesn't didn't"
)
_OF_THE_TALK = _words(
    "actually answer back beautiful best bet better btw clearly completely context continue cute else excited first"
    " grateful guess hard hear important incredible inspiring listen listening looking looks lot mean mistake next"
    " option part plan powerful proceed proud quick quickly ready second set sharp solved special start starting step"
    " steps stoked suggestion suggestions super thankful third though thought thrilled together totally tough trying"
    " update version wonder wrong"
)
"""Words about the talk itself: with words that merely react, they say nothing about anyone."""
_REQUEST = regex(
    r"\b(?:can|could|would|will) you\b|\bi(?:'d| would)? (?:want|need|like) you\b|\b(?:tell|show) me\b"
    r"|^as an? (?:\w+ )?user,? i (?:want|need)\b"
)
"""What is wanted of the assistant for the moment."""
_PASSING = regex(
    r"\b(?:build|tests?|ci|pipeline|server|staging|page|app|container|endpoint|deploy\w*)(?: \w+)?? (?:fails?|crashes|hangs|broke|times out"
    r"|(?:is|are|keeps?|ist|sind|está) (?:\w+ )?(?:failing|crashing|hanging|broken|down|red|blank|stuck|offline|kaputt|roto))"
    r"(?: again| now| here| today| locally)?(?: (?:on|with|since|for|in|at) (?!.*\b(?:every|each|when|if|because)\b)[^,;]{1,40})?$|\w(?:error|exception):|\b(?:get|got|see|throws|gives)\b.*\berrors?:?$"
)
"""How one's programs are at the moment: true today, and wrong when it is read again."""
_PROPOSES = regex(
    r"(?:so |then |now )?(?:let's|let us|let me|we (?:can|could|should|may|might|need to)|(?:i'm|i am) (?:\w+ )?ready)\b"
)
"""How the talk is to go on."""
_HYPOTHETICAL = regex(
    r"^(?:if|suppose|imagine|assum\w+|pretend|let's say|say i|what if)\b"
    r"|\bif (?:i|we) (?:were|was|had|could)\b|\bi wish\b|\bi would have\b"
)
_EACH = _words("all both each every most this these")
_LONGEST_FRAGMENT = 6
_THIRD = regex(r"[a-z]{2,}[^s\W]s")
_QUOTATION = regex(r'"[^"]*"')
_TEXTS = _words(
    "act analyse analyze answer compare compose continue describe draft expand explain generate give help improve list"
    " proofread provide regenerate rewrite show suggest summarise summarize tell translate write"
)
"""What asks for words: who is "I" in them, and what happens there, may be made up."""
_TASKS = _TEXTS | _words("add change check convert correct create find fix go include let make rename try")
_BEFORE_TASK = _words("please now then also and so next just but again kindly")
_OBJECTS_FOLLOW = _words("the a an this that these those it them me us some")
_POLITE = regex(r"(?:(?:so|then|now|and|please)\b,? )*(?:(?:can|could|would|will) you|please)\b")
_PARTICLES = _words("away back down in off on out over up")
_POINTED = _words("it them this that")
_PASSIVE = _words("is are be being get gets")
_BARE = regex(r"(?:i|we|they)\b", re.IGNORECASE)
"""Subjects whose second verb reads like an order: "I collect stamps, sell them at fairs"."""
_LAST_CLAUSE = regex(r"(?:[,;]| [-–—]) ([^,;]+)$")
_LEANS = regex(r"\b(?:it|them|why)\b|\b(?:this|that|these|those|look)\W*(?:\w+\W*)?$")
_MOMENT = regex(
    r"\b(?:again|still|now|just|currently|today|yesterday|yet|since|this (?:morning|week)|(?:is|are) \w+ing)\b"
    r"|\b(?:fail|crash|br[eo]k|break|bug|error|wrong|missing|hang|leak|slow|typo|problem|issue|conflict|timeout)"
)
"""A state of the moment or a fault: beside an order, it is what the order is about."""
_AMOUNTS = _words("one two three four five six seven eight nine ten twelve twenty some many most all both few several")
YOU = regex(r"\byou(?:r|rs|'re|'ve|'ll)?\b", re.IGNORECASE)
_INSTRUCTS = regex(
    r"(?:please )?(?:always|never|don't|do not|avoid|stop \w+ing|remember|note|call me|use|keep|prefer|remind me|be"
    r"|no more|no .+ please|for \w+(?: \w+)?,? use|[\w ]+ in \w+ only$"
    r"|(?:you (?:may|can|needn't|(?:don't|do not|no longer) (?:need|have) to|are allowed to)|it's (?:ok|okay|fine) to)\b.*"
    r"\b(?:now|again|any ?more|no longer)"
    r"|(?:answer|reply|respond|speak|talk|address|write)(?: (?!an?\b|the\b|it\b|this\b)\w+){0,2}"
    r" (?:in|with|without|formally|informally|briefly))\b"
    r"|(?:whenever|every time|(?:if|when) (?:i|we) (?:\w+ ){0,2}(?:ask|send|say|paste|share|mention))[^,]*, "
    r"(?!(?:i|my|we|our|it|he|she|they|the|what|how)\b)"
    r"|(?:when|before|after|if) (?:you (?!finish|are\b|have\b|can\b|could\b|want|get\b|like|know|see\b)|tests? )[^,]+, "
    r"(?!(?:i|my|we|our|it|he|she|they|the|what|how|you|please|can|tell|write)\b)"
)
_STANDING = regex(
    r"\b(?:always|never|from now on|going forward|in (?:the )?future|instead of|any ?more|no longer|by default|every time)\b"
)
"""What makes an imperative an instruction that stays in force, and not a task for now."""
_DESCRIBES = regex(r"\b(?:where|which|who|because|why|(?<!sure )that)\b.*")
"""What describes the matter of a task: "fix the loop that never ends"."""
_SHARED = _words(
    "a am an as at by d do for had he her i in is m me no o of on or over re s so t to under us was we will all"
)
_ENGLISH = STOP_WORDS - _SHARED | {"please"}
"""Function words that no other common language has."""
_FOREIGN = _words(
    "ich bin ist und der die das den nicht mein meine wir haben habe seit mit auf zu im von ein eine kein für je suis le la"
    " les et est pas mon ma nous à des une de du au que qui dans un yo soy el los es mi tengo estoy me gusta con una en por"
    " para io sono il che di ho per mio eu sou não meu uma em com um na ik ben het een niet mijn met van op jag är"
    " och inte min jeg er ikke og på et til av som har w z nie jest mam ve bir"
)
"""Function words of other languages."""
_FEWEST_FOREIGN = 4


def label(sentence: Sentence) -> Label:
    """What sort of sentence it is."""
    whole = without_opening(sentence.text)
    text = _QUOTATION.sub(" ", whole.lower()).strip()
    said = text.replace(",", " ").split()
    if sentence.end == "?":
        return "question"
    content = says_something(text)
    if not said or not content:
        return "small talk"
    if asks(text + sentence.end):
        return "question"
    task = next((word for word in said if word not in _BEFORE_TASK), "") in _TASKS
    if not task and not is_english(text):
        if wants_work(text):
            return "request"
        return _stated(text) if len(words(text)) >= 3 else "fragment"
    if task or _REQUEST.search(text):
        return "instruction" if _INSTRUCTS.match(text) or _stays(text) else "request"
    if _INSTRUCTS.match(text) and len(said) > 1:
        return "instruction"
    if _PROPOSES.match(text):
        return "aside"
    return _told(sentence, whole, text, said, content)


def _stated(text: str) -> Label:
    return "passing" if _PASSING.search(text) else "statement"


def _told(sentence: Sentence, whole: str, text: str, said: list[str], content: list[str]) -> Label:
    """The label of a sentence that neither asks nor instructs."""
    if _HYPOTHETICAL.search(text):
        return "hypothetical"
    if said[0] in _POINTING and not (said[0] in _LEADS and (_has_subject(said[1:], "") or _is_verb(said[2:]))):
        return "points back"
    if YOU.match(text) or _has_subject(said, whole):
        return _stated(text) if _has_own_clause(text) else "aside"
    if _stays(text) and len(said) > 1:
        return "instruction"
    return "fragment" if len(content) <= _LONGEST_FRAGMENT and sentence.end != ":" else "request"


def clauses(sentence: Sentence) -> list[Sentence]:
    """A sentence that tells and then orders ("The test fails, fix it") as two; the first ends with a comma."""
    found = _LAST_CLAUSE.search(sentence.text)
    if found is None or not orders(found[1]) or not is_english(sentence.text) or label(sentence) == "instruction":
        return [sentence]
    end = "." if found[1].startswith("so ") else ","  # "…, so …" gives a reason, which may last
    told = Sentence(text=sentence.text[: found.start()], end=end)
    if label(told) not in ("statement", "passing") or (_BARE.match(told.text) and not _is_task(found[1])):
        return [sentence]
    return [told, Sentence(text=found[1], end=sentence.end)]


def orders(text: str) -> bool:
    """Whether a clause tells the listener to do something: politely, or by a verb before its object."""
    said = [word for word in plain_words(without_opening(text)) if word not in _BEFORE_TASK]
    if not said or _is_task(text):
        return bool(said)
    if len(said) == 1 and (len(text.split()) > 1 or is_adverb(said[0])):
        return False  # "phone 0341 555", "never again", "sadly"
    verb = said[0] not in STOP_WORDS - {"do", "have"} and not is_past(said[0]) and not _THIRD.fullmatch(said[0])
    return verb and (said[-1] in _POINTED or len(said) == 1 or _takes_object(said))


def _is_task(text: str) -> bool:
    """Whether a clause is certainly an order: it is polite, or begins with a verb that people give machines."""
    first = next((word for word in plain_words(text) if word not in _BEFORE_TASK), "")
    return first in _TASKS or _POLITE.match(text.lower()) is not None


def wants_text(sentence: Sentence) -> bool:
    """Whether a text is ordered, in which who is "I" and what happens may be made up."""
    return not _TEXTS.isdisjoint([word for word in plain_words(sentence.text) if word not in _BEFORE_TASK][:1])


def is_matter(sentence: Sentence, order: Sentence | None) -> bool:
    """Whether a statement beside an order is what the order is about, and nothing that lasts.

    It tells of the moment or of a fault, or the order behind it leans on it ("… Correct it", "…, raise the limit").
    """
    said = plain_words(sentence.text)
    leans = order is not None and (sentence.end == "," or " " not in order.text or _LEANS.search(order.text.lower()))
    if leans and GROUP.isdisjoint(said[:1]):
        return True
    past = any(is_past(word) and said[n] not in _PASSIVE for n, word in enumerate(said[1:]))
    return past or _MOMENT.search(sentence.text.lower()) is not None


def _is_verb(said: list[str]) -> bool:
    """Whether words after a noun begin with a verb and its object: "(this project) uses pnpm"."""
    return len(said) > 1 and _THIRD.fullmatch(said[0]) is not None and said[0] not in _OF_THE_TALK


def _takes_object(said: list[str]) -> bool:
    """Whether a first word is followed by its object: "scale the workers", "figure out the cause"."""
    behind = said[2:] if not _PARTICLES.isdisjoint(said[1:2]) else said[1:]
    return not _OBJECTS_FOLLOW.isdisjoint(behind[:1])


def _stays(text: str) -> bool:
    return _STANDING.search(_DESCRIBES.sub("", text)) is not None


def says_something(text: str) -> list[str]:
    """The words of a text that are neither reactions nor about the talk."""
    return [word for word in telling_words(content_words(text)) if word not in _OF_THE_TALK]


def _has_own_clause(text: str) -> bool:
    """Whether a clause is not about the listener: "I'm Dewi, nice to meet you", but not "I read your answer"."""
    if not YOU.search(text):
        return True
    own = [clause for clause in re.split(r"[,;–]", text) if not YOU.search(clause)]
    return any(_has_subject(clause.split(), "") for clause in own)


def is_english(text: str) -> bool:
    """False for other scripts, and where no word is certainly English or those of another language are more."""
    letters = [char for char in text if char.isalpha()]
    if sum(not char.isascii() for char in letters) > len(letters) / 3:
        return False
    said = _WORDS.findall(text.lower())
    if not said or said[0].partition("'")[0] in ("i", "my"):
        return True
    english, foreign = (sum(word.partition("'")[0] in known for word in said) for known in (_ENGLISH, _FOREIGN))
    if english or foreign:
        return english >= foreign
    return not _SHARED.isdisjoint(said) or (len(said) < _FEWEST_FOREIGN and text.isascii())


def _has_subject(said: list[str], text: str) -> bool:
    """Whether a clause with a subject opens the sentence: a pronoun, an article, a name with a verb, or a lead."""
    if not said:
        return False
    first, rest = said[0], said[1:9]
    head, mark, tail = first.partition("'")
    if mark and tail in ("ve", "ll", "d", "re", "s") and head in _SUBJECTS:
        return True
    if (
        tail == "s"
        and rest
        and head not in STOP_WORDS
        and (rest[0] in STOP_WORDS or is_past(rest[0]) or rest[0].endswith("ing"))
    ):
        return True  # "Helen's in Durham now"
    if first in _SUBJECTS or not _NOMINATIVE.isdisjoint(rest[:2]):
        return True  # "Sam and I live …", "Turns out I'm …"
    if first in _LEADS | _EACH or is_adverb(first):
        found = any((word in _SUBJECTS and word not in _OBJECTS) or word in _FINITE or is_past(word) for word in rest)
        return found or (first in _EACH and rest[0] not in _AMOUNTS and _is_verb(rest[1:]))
    if is_past(first):
        return not STOP_WORDS.isdisjoint(rest[:1])  # "Moved to Bergen last week"
    if not rest or first in STOP_WORDS | _AMOUNTS or _takes_object(said):
        return False
    near = rest if first.endswith("s") else rest[:4]
    finite = [n for n, word in enumerate(near) if word in _FINITE or (is_past(word) and n == 0 and rest[1:])]
    if finite or not text[:1].isupper():
        return bool(finite) and (text[:1].isupper() or finite[0] < 2)
    follows = [n for n in range(len(rest) - 1) if n == 0 or rest[n + 1] in STOP_WORDS]
    verbs = [rest[n] for n in follows[:4] if _THIRD.fullmatch(rest[n]) and rest[n] not in STOP_WORDS]
    return bool(verbs) or (first.endswith("s") and rest[0] not in STOP_WORDS and not STOP_WORDS.isdisjoint(rest[1:2]))


def plain_words(text: str) -> list[str]:
    """The words of an English text in small letters, with their apostrophes."""
    return re.findall(r"[a-z']+", text.lower().replace("’", "'"))

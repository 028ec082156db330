"""What sort of sentence somebody wrote: a statement, an instruction that stays in force, a question, small talk …

Judged by general signs: the closing sign, the subject, the first words. Sentences in languages other than English are
statements unless they ask or greet. Knows nothing about turns and memories.
"""

from __future__ import annotations

import re
from typing import Literal

from wellworn.ingest.terms import STOP_WORDS, words
from wellworn.reflection.person import is_adverb, is_past
from wellworn.reflection.sentences import Sentence

Label = Literal[
    "statement", "instruction", "question", "request", "small talk", "hypothetical", "fragment", "aside", "points back"
]


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORDS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_OBJECTS = _set("me us a an the his her its their")
_FEWEST_FOREIGN = 4
SELF = _set("i i'm i've i'll i'd im ive my me")
GROUP = _set("we we're we've we'll we'd our us")
_NOMINATIVE = _set("i i'm i've i'll we we're we've")
_OWN = _set("my our i'm i've me us mine ours")
_SUBJECTS = SELF | GROUP | _set("the a an he he's she she's they they're his her its their there there's")
_POINTING = _set("it it's this that that's these those its")
"""A sentence that begins with one of these says nothing without the one before it."""
_LEADS = _set(
    "in on at after before when while since because last next yesterday today tomorrow tonight for from with without"
    " during as although though even every then now currently recently usually sometimes once until by under over"
    " here originally lately so and but also plus besides maybe perhaps unfortunately luckily sadly this these"
)
"""Words that open a clause before its subject: "In 2019 I moved"."""
_FINITE = _set(
    "is are was were has had will can could should must may might does did isn't aren't wasn't weren't hasn't won't"
    " can't doesn't didn't"
)
SOCIAL = _set(
    """
    absolutely actually agree alright amazing answer anything anyway apologise apologize appreciate awesome back
    beautiful best bet better blessed btw bye cheers clear clearly completely context continue cool correct course cute
    day definitely done else exactly excited fantastic fine first fun fyi glad good got grateful great guess haha
    happy hard hear hello help helpful helps hey hi hilarious hmm honestly hope idea important incredible inspiring
    interesting know later let like listen listening lol look looking looks lot love lovely luck makes maybe mean mind
    mistake moment morning much need never next nice night nope noted oh okay ok one option part perfect plan please
    point powerful problem proceed proud question quick quickly ready really right second see sense set sharp solved
    soon sorry sound sounds special start starting step steps still stoked suggestion suggestions super sure sweet
    talk thank thankful thanks then thing things think third though thought thrilled time together tomorrow too totally
    tough true try trying understand understood update useful version wait way welcome well wonderful wonder works
    worries wow wrong yeah yep yes yup
    """
)
"""Politeness, praise and words about the talk itself: a sentence of these alone says nothing about anyone."""
_INTERJECTION = re.compile(
    r"(?:oh|ah|eh|um|hmm|well|ok|okay|yes|yeah|yep|no|nope|sure|thanks|hi|hello|hey|wow|haha|btw|by the way|actually"
    r"|fyi)\s+(?=(?:ok|i|i'm|i've|im|my|we|we're|our|the|now)\b)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"my \w+, (?=(?:i|i'm|i've|you|you're|yes|this|that|that's|we|it|it's)\b)", re.IGNORECASE)
_HEAD = re.compile(r"([^,!:;]{1,30})(?:[,!:;]+\s*|\s+[–-]+\s+)(?=\S)")
_WH = _set("what how why who whose which when where what's how's who's where's whats")
_ASKING_SECOND = _FINITE | _set("do to would the have many much about if else")
INVERTED = re.compile(
    r"(?:is|are|am|was|were|do|does|did|can|could|should|would|will|shall|may|has|have|had|isn't|aren't|don't|doesn't"
    r"|didn't|can't|couldn't|won't) (?:i|you|we|it|he|she|they|there|the|this|that|these|those|my|your|our|any)\b"
)
_REQUEST = re.compile(
    r"\b(?:can|could|would|will) you\b"
    r"|\bi(?:'d| would|'ll)? (?:\w+ ){0,2}?(?:want|need|like|expect|ask) (?:for )?your?\b"
    r"|\blet me know\b|^(?:\w+ ){0,2}?(?:tell|show|give|send|walk|help|explain)(?: to)? me\b"
    r"|^i(?:'d| would)? (?:also |just )?(?:want|need|like) (?:to (?:see|know|hear|get)|an?\b|the\b|some\b|more\b)"
    r"(?=.*\b"
    r"(?:list|summary|table|e?mail|titles?|names?|script|outline|template|report|examples?|ideas?|version|draft|essay"
    r"|article|post|code|prompt)s?\b)"
)
"""What is wanted of the assistant for the moment."""
_PROPOSES = re.compile(
    r"(?:so |then |now )?(?:let's|let us|let me|we (?:can|could|should|may|might|need to)|(?:i'm|i am) (?:\w+ )?ready)\b"
)
"""How the talk is to go on."""
_HYPOTHETICAL = re.compile(
    r"^(?:if|suppose|imagine|assum\w+|pretend|let's say|say i|what if)\b"
    r"|\bif (?:i|we) (?:were|was|had|could)\b|\bi wish\b|\bi would have\b"
)
_LONGEST_FRAGMENT = 6
_LONGEST_HEADING = 4
_THIRD = re.compile(r"[a-z]{2,}[^s\W]s")
_QUOTATION = re.compile(r'"[^"]*"')
_TASKS = _set(
    "act add analyse analyze answer change check compare continue convert correct create describe draft expand explain"
    " find fix generate give go help improve include let list make proofread provide regenerate rename rewrite show"
    " suggest summarise summarize tell translate try write"
)
_AMOUNTS = _set("one two three four five six seven eight nine ten twelve twenty some many most all both few several")
_BEFORE_TASK = _set("please now then also and so next just but again kindly")
YOU = re.compile(r"\byou(?:r|rs|'re|'ve|'ll)?\b", re.IGNORECASE)
_WHERE = re.compile(r"you(?:'ll| will| can) (?:find|reach|get)\b")
_ATTITUDE = re.compile(
    r"(?:i|we)(?:'m|'ve|'d| am| was| have| had| can| would)?(?: \w+ly| also| just| never| no| still| only| so| not| do)*"
    r" (?:(?:appreciate|imagine|wonder|wondering|curious|agree|idea|surprised|impressed|amazed|guess|believe|suppose|hope"
    r"|hopeful|glad|sure|afraid|worried|worry|excited|happy|thrilled|love how|like how)\b"
    r"|(?:think|thought|feel|felt|know|knew|see|noticed?|heard?|mean|meant|understand|read) (?:like|that|about|of|how|why"
    r"|what|where|if|so|(?=i|my|we|our|the|this|these|those|it|you|your|he|she|they|there)\b))(?: that| if| to)?\s*"
)
"""How the speaker takes what they read. What follows counts: "I think my son is allergic", not "I think this is great"."""
ROLE_PLAY = re.compile(
    r"\b(?:act(?:ing)? as|role[- ]?play|pretend|play the role|in character|you are now|as an ai|my character)\b"
    r"|^you(?:'re| are) (?:a|an)\b",
    re.MULTILINE,
)
_INSTRUCTS = re.compile(
    r"(?:please )?(?:always|never|don't|do not|avoid|stop \w+ing|remember|note|call me|use|keep|prefer|remind me|be"
    r"|no more|no .+ please"
    r"|(?:answer|reply|respond|speak|talk|address|write)(?: (?!an?\b|the\b|it\b|this\b)\w+){0,2}"
    r" (?:in|with|without|formally|informally|briefly))\b"
    r"|(?:whenever|every time|each time|(?:if|when) (?:i|we) [^,]*\b(?:you|ask|send|say|paste|share|mention))[^,]*, "
    r"(?!(?:i|my|we|our|it|he|she|they|the|what|how|would|should|could|can|do|is)\b)"
)
_STANDING = re.compile(
    r"\b(?:always|never|from now on|going forward|in (?:the )?future|instead of|any ?more|no longer|by default"
    r"|every time|write that down|note that|remember that|remember this)\b"
)
"""What makes an imperative an instruction that stays in force, and not a task for now."""
_SHARED = _set(
    "a am an as at by d do for had he her i in is m me no o of on or over re s so t to under us was we will all"
)
_ENGLISH = STOP_WORDS - _SHARED | {"please"}
"""Function words that no other common language has."""
_FOREIGN = _set(
    "ich bin ist und der die das den nicht mein meine wir haben habe seit mit auf zu im von ein eine kein für je suis le la"
    " les et est pas mon ma nous à des une de du au que qui dans un yo soy el los es mi tengo estoy me gusta con una en por"
    " para io sono il che di ho per mio eu sou não meu uma em com um na ik ben het een niet mijn met van op jag är"
    " och inte min jeg er ikke og på et til av som har w z nie jest mam ve bir"
)
"""Function words of other languages."""
_THANKS = _set(
    "danke merci gracias obrigado obrigada grazie takk tack tak bedankt спасибо dziękuję teşekkürler 谢谢 ありがとう"
    " hallo bonjour salut hola ciao olá hei привет 你好"
)


def label(sentence: Sentence) -> Label:
    """What sort of sentence it is, by general signs of English: its closing sign, its subject, its first words."""
    text = _QUOTATION.sub(" ", without_opener(sentence.text).lower()).strip()
    said = text.replace(",", " ").split()
    if sentence.end == "?":
        return "question"
    content = [word for word in words(text) if word not in STOP_WORDS]
    if not said or all(word in SOCIAL for word in content):
        return "small talk"
    task = next((word for word in said if word not in _BEFORE_TASK), "") in _TASKS
    if not task and not is_english(text):
        return _in_other_words(text)
    if _asks(said, text, sentence.end):
        return "question"
    if task or _REQUEST.search(text):
        return "instruction" if _INSTRUCTS.match(text) or _STANDING.search(text) else "request"
    if _INSTRUCTS.match(text) and len(said) > 1:
        return "instruction"
    if _PROPOSES.match(text):
        return "aside"
    attitude = _ATTITUDE.match(text)
    if attitude and _OWN.isdisjoint(plain_words(text[attitude.end() :])):
        return "aside"
    return _told_or_asked_for(sentence, text, said, content)


def _told_or_asked_for(sentence: Sentence, text: str, said: list[str], content: list[str]) -> Label:
    if _HYPOTHETICAL.search(text):
        return "hypothetical"
    if said[0] in _POINTING and not (said[0] in _LEADS and _has_subject(said[1:], "")):
        return "points back"
    if YOU.match(text) or _has_subject(said, without_opener(sentence.text)):
        return "statement" if _WHERE.match(text) or _has_own_clause(text) else "aside"
    if _STANDING.search(text) and len(said) > 1:
        return "instruction"
    return "fragment" if len(content) <= _LONGEST_FRAGMENT and sentence.end != ":" else "request"


def _has_own_clause(text: str) -> bool:
    """Whether a clause is not about the listener: "I'm Dewi, nice to meet you", but not "I read your answer"."""
    if not YOU.search(text):
        return True
    own = [clause for clause in re.split(r"[,;–]", text) if not YOU.search(clause)]
    return any(_has_subject(clause.split(), "") for clause in own)


def without_opener(text: str) -> str:
    """The sentence without "Oh, well,", "Sorry, I was wrong:" or a heading before it."""
    for _ in range(4):
        head = _HEAD.match(text)
        said = words(head[1]) if head else []
        empty = bool(said) and all(word in SOCIAL or word in STOP_WORDS for word in said)
        if head and empty and (len(said) == 1 or not SOCIAL.isdisjoint(said)):
            text = text[head.end() :]
            continue
        lead = _INTERJECTION.match(text)
        if lead is None:
            break
        text = text[lead.end() :]
    address = _ADDRESS.match(text)
    text = text[address.end() :] if address else text
    heading, colon, rest = text.partition(": ")
    own = heading.lower().split()
    if colon and len(own) <= _LONGEST_HEADING and (SELF | GROUP | _TASKS).isdisjoint(own):
        return rest
    return text


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


def _in_other_words(text: str) -> Label:
    """The label of a sentence in another language that does not ask."""
    said = words(text)
    if len(said) < 6 and ((said[:1] and said[0] in _THANKS) or text[:2] in _THANKS):
        return "small talk"
    return "statement" if len(said) >= 3 else "fragment"


def _asks(said: list[str], text: str, end: str) -> bool:
    """A question without its sign: it begins like one ("how can i …", "is my flight …")."""
    if INVERTED.match(text):
        return True
    return said[0] in _WH and (len(said) == 1 or said[1] in _ASKING_SECOND or not end)


def _has_subject(said: list[str], text: str) -> bool:
    """Whether a clause with a subject opens the sentence: a pronoun, an article, a name with a verb, or a lead."""
    if not said:
        return False
    first, rest = said[0], said[1:9]
    if first in _SUBJECTS or first.partition("'")[0] in ("i", "we", "he", "she", "they", "there"):
        return True
    if not _NOMINATIVE.isdisjoint(rest[:2]):
        return True  # "Sam and I live …", "Turns out I'm …"
    if first in _LEADS or is_adverb(first):
        return any((word in _SUBJECTS and word not in _OBJECTS) or word in _FINITE or is_past(word) for word in rest)
    if is_past(first):
        return any(word in STOP_WORDS for word in rest[:1])  # "Moved to Bergen last week"
    if not rest or first in _AMOUNTS or first in STOP_WORDS:
        return False
    finite = [n for n, word in enumerate(rest[:4]) if word in _FINITE or (is_past(word) and n == 0 and rest[1:])]
    if finite or not text[:1].isupper():
        return bool(finite) and (text[:1].isupper() or finite[0] < 2)
    follows = [n for n in range(len(rest) - 1) if n == 0 or rest[n + 1] in STOP_WORDS]
    verbs = [rest[n] for n in follows[:4] if _THIRD.fullmatch(rest[n]) and rest[n] not in STOP_WORDS]
    return bool(verbs) or (first.endswith("s") and rest[0] not in STOP_WORDS and not STOP_WORDS.isdisjoint(rest[1:2]))


def plain_words(text: str) -> list[str]:
    """The words of an English text in small letters, with their apostrophes."""
    return re.findall(r"[a-z']+", text.lower().replace("’", "'"))

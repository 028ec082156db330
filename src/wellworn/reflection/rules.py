"""Find memories in a session by rules, without a language model.

Keeps what people state about themselves and their world, standing instructions, and answers to questions. A memory is
the sentence itself: about the speaker by name where that rewrite is certain, a quotation otherwise. For every turn
that gives no memory the reason is recorded. Deterministic, and linear in the text. Sentences in languages other than
English are kept as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from wellworn.core.values import Kind, Turn
from wellworn.ingest.terms import STOP_WORDS, terms, words
from wellworn.reflection.candidate import Candidate
from wellworn.reflection.dates import with_dates
from wellworn.reflection.person import about_speaker, is_adverb, is_past
from wellworn.reflection.sentences import Sentence, sentences

Label = Literal["statement", "instruction", "question", "request", "small talk", "hypothetical", "fragment", "aside"]
MOST_PER_TURN = 8
_PASTED_CHARS = 1500
"""A longer turn is mostly a text that somebody else wrote."""
_USER_ROLES = frozenset({"user", "human"})
_ASSISTANT_ROLES = frozenset({"assistant", "ai", "model", "bot"})
_SILENT_ROLES = frozenset({"system", "tool", "function", "developer", "tool_result"})
_NAME_LIKE = re.compile(r"[^\W\d_]{2,}(?:[ '’.-][^\W\d_]+){0,3}")
UNNAMED = "the user"


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The memories of a session, and for every other turn why it gave none."""

    candidates: list[Candidate]
    skipped: dict[int, str] = field(default_factory=dict)


def role(turn: Turn) -> str:
    """`user`, `assistant`, `silent` (its text is never learnt from), or `person` for a named speaker."""
    said = turn.role.strip().lower()
    if said in _USER_ROLES:
        return "user"
    return "assistant" if said in _ASSISTANT_ROLES else "silent" if said in _SILENT_ROLES else "person"


def name_of(turn: Turn, user: str | None) -> str:
    """What the speaker of a turn is called in a memory."""
    spoken = (turn.speaker or "").strip()
    if _NAME_LIKE.fullmatch(spoken) and spoken.lower() not in _USER_ROLES:
        return _capitalised(spoken)
    if role(turn) == "person":
        return _capitalised(turn.role.strip())
    return _capitalised(user.strip()) if user and _NAME_LIKE.fullmatch(user.strip()) else UNNAMED


def _capitalised(name: str) -> str:
    """A name in small letters, as ids are, written as a name: `ada lovelace` → `Ada Lovelace`."""
    return re.sub(r"(?<![^\W_])(?<!['’])[^\W\d_]", lambda found: found[0].upper(), name) if name.islower() else name


# -- what sort of sentence it is ------------------------------------------------------------
def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FIRST = _set("i i'm i've i'll i'd im ive my mine me we we're we've we'll we'd our ours us myself")
_OBJECTS = _set("me us mine ours myself a an the this that these those all both each every no one two three some")
_SELF = _set("i i'm i've i'll i'd im ive my me")
_SUBJECTS = _FIRST | _set(
    "the a an this that these those it it's he he's she she's they they're his her its their there there's that's let's"
)
_LEADS = _set(
    "in on at after before when while since because last next yesterday today tomorrow tonight for from with without"
    " during as although though even every then now currently recently usually sometimes once until by under over"
    " here originally lately so and but also plus besides maybe perhaps unfortunately luckily sadly"
)
"""Words that open a clause before its subject: "In 2019 I moved"."""
_FINITE = _set(
    "is are was were has had will can could should must may might does did isn't aren't wasn't weren't hasn't won't"
    " can't doesn't didn't"
)
_OPENERS = re.compile(
    r"(?:(?:oh|ah|eh|um|hmm|well|ok|okay|yes|yeah|yep|yup|no|nope|nah|sure|right|alright|great|good|nice|perfect"
    r"|thanks|thank you|hi|hello|hey|wow|haha|lol|btw|by the way|anyway|actually|honestly|look|listen|true"
    r"|exactly|absolutely|definitely|of course|got it|sorry|morning|good morning|fyi|for context|quick one)"
    r"(?:[,!:;–-]+\s*|\s+(?=i\b|i'|my\b|we\b|our\b|the\b)))+",
    re.IGNORECASE,
)
_SOCIAL = _set(
    "absolutely agree amazing anything apologise apologize appreciate awesome back beautiful bet blessed bye cheers"
    " completely cool course cute day definitely done exactly excited fine fun glad good got grateful great guess haha"
    " happy hard hear hello help helpful helps hey hi hope idea important incredible inspiring interesting know let"
    " like listening lol look looking lot love lovely makes mean morning much need next nice night noted okay perfect"
    " please point powerful problem proud question ready really right see sense soon sorry sounds special stoked super"
    " sure sweet talk thank thankful thanks think thrilled together totally tough true understand understood wait way"
    " welcome well wonderful worries wow yeah yep yes"
)
"""Politeness, praise and reactions: they say nothing about anyone."""
_WH = _set("what how why who whose which when where what's how's who's where's")
_ASKING_SECOND = _FINITE | _set("do to would the have many much about if else")
_INVERTED = re.compile(
    r"(?:is|are|am|was|were|do|does|did|can|could|should|would|will|shall|may|has|have|had|isn't|aren't|don't|doesn't"
    r"|didn't|can't|couldn't|won't) (?:i|you|we|it|he|she|they|there|the|this|that|these|those|my|your|our|any)\b"
)
_REQUEST = re.compile(
    r"\b(?:can|could|would|will) you\b"
    r"|\bi(?:'d| would|'ll)? (?:\w+ ){0,2}?(?:want|need|like|expect|ask) (?:for )?you\b"
    r"|\blet me know\b|^(?:\w+ ){0,2}?(?:tell|show|give|send|walk|help|explain)(?: to)? me\b"
    r"|^i(?:'d| would)? (?:also |just )?(?:want|need|like) (?:to (?:see|know|hear|get)|an?\b|the\b|some\b|more\b)"
    r"(?=.*\b"
    r"(?:list|summary|table|e?mail|titles?|names?|script|outline|template|report|examples?|ideas?|version|draft|essay"
    r"|article|post|code|prompt)s?\b)"
)
_HYPOTHETICAL = re.compile(
    r"^(?:if|suppose|imagine|assum\w+|pretend|let's say|say i|what if)\b"
    r"|\bif (?:i|we) (?:were|was|had|could)\b|\bi wish\b|\bi would have\b"
)
_LONGEST_FRAGMENT = 6
_QUOTATION = re.compile(r'"[^"]*"')
_TASKS = _set(
    "act add analyse analyze answer change check compare continue convert create describe draft expand explain find fix"
    " generate give go help improve include let list make provide regenerate rewrite show suggest summarise summarize"
    " tell translate try write"
)
_AMOUNTS = _set("one two three four five six seven eight nine ten twelve twenty some many most all both few several")
_BEFORE_TASK = _set("please now then also and so next just but again kindly")
_YOURS = _set("you you're you've you'll you'd your yours")
_REACTION = re.compile(
    r"i(?:'m|'ve|'d| am| was| have| had| can| would)?(?: \w+ly| \w+ly| also| just| never| no| still| only| always| so)*"
    r" (?:appreciate|imagine|wonder|wondering|curious|agree|idea|surprised|impressed|interested|know|guess|believe|think"
    r"|thought|feel like|see|noticed?|hear|heard|mean|meant|hope|hopeful|understand|glad|sure|worried|excited)\b"
)
"""How the speaker takes what they read: it says more about the talk than about them."""
_ROLE_PLAY = re.compile(
    r"\b(?:act(?:ing)? as|role[- ]?play|pretend|play the role|in character|you are now|as an ai|my character)\b"
    r"|^you(?:'re| are) (?:a|an)\b",
    re.MULTILINE,
)
_STANDING = re.compile(
    r"^(?:please )?(?:always|never|don't|do not|avoid|stop \w+ing|remember|note|call me|use|keep|prefer|remind me"
    r"|no .+ please)\b"
    r"|\b(?:always|never|from now on|going forward|in (?:the )?future|instead of|any ?more|no longer|by default"
    r"|every time|write that down|note that|remember that|remember this)\b"
)
"""What makes an imperative an instruction that stays in force, and not a task for now."""
_FOREIGN = _set(
    "ich bin ist und der die das nicht mein meine wir haben habe je suis le la les et est pas mon ma nous j'ai j'habite"
    " yo soy el los es mi tengo estoy me gusta con una io sono il che di ho eu sou não meu uma ik ben het een niet mijn"
    " jag är och inte min jeg er ikke og på"
)
"""Function words of other languages."""


def label(sentence: Sentence) -> Label:
    """What sort of sentence it is, by general signs of English: its closing sign, its subject, its first words."""
    text = _QUOTATION.sub(" ", without_opener(sentence.text).lower())
    said = text.replace(",", " ").split()
    if sentence.end == "?":
        return "question"
    content = [word for word in words(text) if word not in STOP_WORDS]
    if not said or all(word in _SOCIAL for word in content):
        return "small talk"
    if _asks(said, text, sentence.end):
        return "question"
    if said[0] in _YOURS:
        return "aside"
    if _HYPOTHETICAL.search(text):
        return "hypothetical"
    if _REACTION.match(text):
        return "aside"
    return _told_or_asked_for(sentence, text, said, content)


def _told_or_asked_for(sentence: Sentence, text: str, said: list[str], content: list[str]) -> Label:
    if not is_english(text):
        return "statement"
    task = next((word for word in said if word not in _BEFORE_TASK), "") in _TASKS
    if task or _REQUEST.search(text):
        return "instruction" if _STANDING.search(text) else "request"
    if _has_subject(said, without_opener(sentence.text)):
        return "statement"
    if _STANDING.search(text):
        return "instruction"
    return "fragment" if len(content) <= _LONGEST_FRAGMENT and sentence.end != ":" else "request"


def without_opener(text: str) -> str:
    """The sentence without "Oh, well," before it."""
    return _OPENERS.sub("", text, count=1) if _OPENERS.match(text) else text


def is_english(text: str) -> bool:
    """False for other scripts, and where function words of another language outnumber the English ones."""
    if sum(char.isalpha() and not char.isascii() for char in text) > len(text) / 3:
        return False
    said = text.split()
    foreign = sum(word in _FOREIGN for word in said)
    return foreign < 2 or foreign <= sum(word in STOP_WORDS for word in said)


def _asks(said: list[str], text: str, end: str) -> bool:
    """A question without its sign: it begins like one ("how can i …", "is my flight …")."""
    if _INVERTED.match(text):
        return True
    return said[0] in _WH and (len(said) == 1 or said[1] in _ASKING_SECOND or not end)


def _has_subject(said: list[str], text: str) -> bool:
    """Whether a clause with a subject opens the sentence: a pronoun, an article, a name with a verb, or a lead."""
    first, rest = said[0], said[1:9]
    if first in _SUBJECTS or first.partition("'")[0] in ("i", "we", "it", "he", "she", "they", "that", "there"):
        return True
    if first in _LEADS or is_adverb(first):
        return any((word in _SUBJECTS and word not in _OBJECTS) or word in _FINITE or is_past(word) for word in rest)
    if is_past(first):
        return any(word in STOP_WORDS for word in rest[:1])  # "Moved to Bergen last week"
    named = text[:1].isupper() and bool(rest) and first not in _AMOUNTS
    return named and (not _FINITE.isdisjoint(rest[:4]) or is_past(rest[0]) or rest[0].endswith("s"))


# -- from turns to memories ------------------------------------------------------------
_PERSONAL = 0.5
"""Of the turns of people, in a talk about themselves."""
_FEWEST_NEW = 2
"""Words of a sentence in a longer turn that nobody said before in the session."""
_SHORT_CHARS = 200
_LONGEST_QUESTION = 200
_WANTS = re.compile(r"\bi(?:'d| would|'m| am)? (?:\w+ )?(?:want|need|like to|trying|looking)\b")
_COMMITS = re.compile(
    r"\b(?:i'll|i will|we'll|let's|i'm going to|i can|go ahead|go with|proceed|start|do it|next)\b", re.IGNORECASE
)
"""The speaker takes a proposal up."""
_POINT = re.compile(r"^\s{0,12}(?:[-*•–+]|\d{1,3}[.)]|#{1,6})\s+(.*)$", re.MULTILINE)
_FEWEST_POINTS = 3
_LONGEST_POINT = 60
_YOU = re.compile(r"\byou(?:r|rs|'re|'ve|'ll)?\b", re.IGNORECASE)
_ASKS_FOR_A_TASK = re.compile(r"\b(?:can you|could you|want|would you like|help|assist)\b", re.IGNORECASE)
_YES_OR_NO = re.compile(
    r"(?:yes|yeah|yep|yup|sure|no|nope|nah|of course|absolutely|definitely|exactly)\b", re.IGNORECASE
)
_KEPT = ("statement", "instruction")
_SOCIAL_TERMS = frozenset(terms(" ".join(_SOCIAL)))
_POINTS_BACK = _set("it this that these those they he she there his her its their them")
_PREFERENCE = re.compile(
    r"\b(?:prefer|love|like|enjoy|hate|dislike|can't stand|favou?rite|rather|always|never|keen on|into|fond of)\w*\b"
)


@dataclass(kw_only=True)
class _Session:
    """Who speaks in a session, whether people talk about themselves in it, and which words were said so far."""

    user: str | None
    talk: str
    """`personal`, `task` or `mixed`."""
    addressed: re.Pattern[str] | None
    """The participants' names where a sentence begins or ends with them."""
    heard: set[int] = field(default_factory=set)

    @property
    def personal(self) -> bool:
        return self.talk == "personal"

    def name(self, turn: Turn) -> str:
        return name_of(turn, self.user)

    def said(self, turn: Turn) -> list[Sentence]:
        """The sentences of a turn, without the name of whom they are said to: "Thanks, Mel" is thanks."""
        found = sentences(turn.text)
        if self.addressed is None:
            return found
        cut = [replace(one, text=self.addressed.sub("", one.text)) for one in found]
        return [one for one in cut if one.text]

    def count_new(self, one: Sentence) -> int:
        """How many words a sentence has that nobody said before in this session and that are not mere politeness."""
        return len({*terms(one.text)} - _SOCIAL_TERMS - self.heard)


def extract(turns: Sequence[Turn], *, user: str | None = None, context: Sequence[Turn] = ()) -> Findings:
    """The memories worth proposing, in order.

    `user` is what the person behind the role `user` is called. `context` are the turns before: read already, they tell
    what a first reply answers.
    """
    everything = [*context, *turns]
    session = _Session(user=user, talk=_sort_of_talk(everything), addressed=_names_addressed(everything))
    session.heard.update(term for turn in context for term in terms(turn.text))
    candidates: list[Candidate] = []
    skipped: dict[int, str] = {}
    before: Turn | None = next((turn for turn in reversed(context) if role(turn) != "silent"), None)
    for turn in turns:
        if role(turn) == "silent":
            skipped[turn.number] = "not said by a person"
            continue
        if role(turn) == "assistant":
            skipped[turn.number] = "said by the assistant"
        else:
            found = _of_turn(turn, before, session)
            if isinstance(found, str):
                skipped[turn.number] = found
            else:
                candidates += found
        session.heard.update(terms(turn.text))
        before = turn
    used = {number for one in candidates for number in one.turns}
    return Findings(candidates=candidates, skipped={n: why for n, why in skipped.items() if n not in used})


def _sort_of_talk(turns: Sequence[Turn]) -> str:
    """`personal` when people mostly speak of themselves, `task` when they set tasks to a machine, else `mixed`.

    People who set tasks ("write …", "explain …") say "I" and "we" of customers, characters and texts, too, but not in
    most turns. Bare replies ("Ten kilometres") do not count.
    """
    users = [turn.text for turn in turns if role(turn) == "user"]
    own = others = tasks = 0
    for text in users:
        said = [(one.text, label(one)) for one in sentences(text[:_PASTED_CHARS])]
        tasks += len(text) > _PASTED_CHARS or bool(said and said[0][1] == "request") or _is_play(text)
        if any(sort == "statement" and not _SELF.isdisjoint(_plain_words(one)) for one, sort in said):
            own += 1
        elif any(sort not in ("small talk", "fragment", "aside") for _, sort in said):
            others += 1
    if not users or (own > _PERSONAL * (own + others) and not any(map(_is_play, users))):
        return "personal"
    return "task" if tasks else "mixed"


def _is_play(text: str) -> bool:
    return bool(_ROLE_PLAY.search(text.lower()))


def _names_addressed(turns: Sequence[Turn]) -> re.Pattern[str] | None:
    """Matches the first names of those who speak, and their short forms, at either end of a sentence."""
    names = {name_of(turn, None).split()[0] for turn in turns if role(turn) == "person"}
    if not names:
        return None
    short = {name[:size] for name in names for size in range(3, len(name) + 1)}
    either = "|".join(sorted(map(re.escape, short), key=len, reverse=True))
    return re.compile(rf"^(?:hey |hi )?(?:{either})(?:[,!:]\s*|$)|,\s*(?:{either})$", re.IGNORECASE)


def _of_turn(turn: Turn, before: Turn | None, session: _Session) -> list[Candidate] | str:
    """The memories of one turn, or the reason why there is none."""
    said = session.said(turn)
    labels = [label(one) for one in said]
    reason = _refused(turn, said, labels, session)
    if reason:
        return reason
    reply = _reply(turn, before, said, labels, session)
    brief = len(turn.text) <= _SHORT_CHARS
    kept: list[Candidate] = []
    concerns = _concerns_speaker(turn, said, labels, session)
    for place, (one, sort) in enumerate(zip(said, labels, strict=True)):
        if reply is not None and reply[0] == place:
            kept.append(reply[1])
        elif sort not in _KEPT or not concerns[place]:
            continue
        elif one.text.lower().split()[0].partition("'")[0] not in _POINTS_BACK:
            fewest = 1 if len(said) == 1 or (brief and _opens_in_person(one.text)) else _FEWEST_NEW
            kept += [_memory(one, sort, turn, session)] if session.count_new(one) >= fewest else []
        elif kept and labels[place - 1] in _KEPT:
            kept[-1] = _extended(kept[-1], one, turn, session)
    return kept[:MOST_PER_TURN] or _why_nothing(labels)


def _refused(turn: Turn, said: Sequence[Sentence], labels: Sequence[Label], session: _Session) -> str:
    """Why a turn is not read: pasted text, and outside a personal talk tasks and the world at large."""
    if not said:
        return "nothing said in sentences"
    if role(turn) == "user" and len(turn.text) > _PASTED_CHARS:
        return "pasted text"
    if not session.personal and (labels[0] == "request" or _is_play(turn.text)):
        return "part of a task"
    return ""


def _concerns_speaker(turn: Turn, said: Sequence[Sentence], labels: Sequence[Label], session: _Session) -> list[bool]:
    """Which sentences may be kept: in a personal talk all, else what the speaker says of themselves.

    A short turn that only tells ("The deploy key is in 1Password") is kept, too, where no tasks are set.
    """
    brief = len(turn.text) <= _SHORT_CHARS
    only_tells = brief and {*labels} <= {*_KEPT, "small talk", "fragment"}
    if session.personal or (only_tells and session.talk == "mixed"):
        return [True] * len(said)
    return [
        (sort == "instruction" and brief) or (_opens_in_person(one.text) and not _WANTS.search(one.text.lower()))
        for one, sort in zip(said, labels, strict=True)
    ]


def _opens_in_person(text: str) -> bool:
    return not _SELF.isdisjoint(_plain_words(without_opener(text))[:4])


def _plain_words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower().replace("’", "'"))


def _why_nothing(labels: Sequence[Label]) -> str:
    for sort in ("request", "question", "hypothetical", "fragment", "small talk"):
        if sort in labels:
            return sort
    return "nothing new"


def _reply(
    turn: Turn, before: Turn | None, said: list[Sentence], labels: list[Label], session: _Session
) -> tuple[int, Candidate] | None:
    """The place and the memory of a sentence that says nothing without the question or proposal before it."""
    if before is None or _same_speaker(before, turn, session):
        return None
    place = next((n for n, sort in enumerate(labels) if sort != "small talk"), 0)
    place = place if labels[place] == "fragment" else 0
    lead = _question(before, said[place], labels[place], session)
    lead = lead or (_proposal(before, turn, labels[0], session.name(turn)) if session.personal else "")
    if not lead:
        return None
    text = f'{lead} {session.name(turn)} said: "{_quoted(said[place].text)}."'
    return place, Candidate(
        summary=text, turns=(before.number, turn.number), speaker=session.name(turn), confidence=0.5
    )


def _question(before: Turn, reply: Sentence, sort: Label, session: _Session) -> str:
    """The question that a turn ends with, where the reply is no sentence of its own or says yes or no to it."""
    asked = sentences(before.text)[-1:]
    if not asked or asked[0].end != "?" or len(asked[0].text) > _LONGEST_QUESTION:
        return ""
    question = asked[0].text
    if not session.personal and (not _YOU.search(question) or _ASKS_FOR_A_TASK.search(question)):
        return ""
    settled = _YES_OR_NO.match(reply.text) and _INVERTED.match(question.lower())
    return f'Asked "{_quoted(question)}?",' if sort == "fragment" or settled else ""


def _proposal(before: Turn, turn: Turn, sort: Label, name: str) -> str:
    """The points that an assistant listed, unless the reply asks for something else."""
    if role(before) != "assistant" or sort in ("question", "request", "hypothetical"):
        return ""
    if not _COMMITS.search(turn.text.replace("’", "'")):
        return ""
    points = [_point(line[1]) for line in _POINT.finditer(before.text)]
    shown = "; ".join(point for point in points if point)
    return f"The assistant proposed to {name}: {shown}." if len(points) >= _FEWEST_POINTS else ""


def _point(line: str) -> str:
    """The head of a point: what stands before its colon, or its first words."""
    head = line.replace("*", "").partition(":")[0].strip()
    return head if len(head) <= _LONGEST_POINT else head[:_LONGEST_POINT].rsplit(" ", 1)[0] + "…"


def _same_speaker(one: Turn, other: Turn, session: _Session) -> bool:
    return role(one) == role(other) and session.name(one) == session.name(other)


def _memory(one: Sentence, sort: Label, turn: Turn, session: _Session) -> Candidate:
    dated = with_dates(without_opener(one.text), turn.at)
    name = session.name(turn)
    kind: Kind = "preference" if sort == "instruction" or _PREFERENCE.search(one.text.lower()) else "fact"
    return Candidate(
        summary=_told(dated.text, one.end, name, quoted=sort == "instruction"),
        turns=(turn.number,),
        kind=kind,
        speaker=name,
        valid_from=dated.valid_from,
        valid_to=dated.valid_to,
    )


def _told(text: str, end: str, name: str, *, quoted: bool) -> str:
    """The sentence for a memory: in the third person where that is certain, else as it stands."""
    first = next((word for word in _plain_words(text) if not is_adverb(word)), "")
    quoted = quoted or is_past(first) or not is_english(text.lower())  # "Moved to Bergen" has no subject
    about = None if quoted else about_speaker(text, name)
    return (_lead(name) + _sentence_case(text) if about is None else _sentence_case(about)) + _closing(end)


def _extended(memory: Candidate, one: Sentence, turn: Turn, session: _Session) -> Candidate:
    """A memory with the sentence behind it, which points back to it, where both can be told alike."""
    name = session.name(turn)
    text = with_dates(one.text, turn.at).text
    more = text if memory.summary.startswith(_lead(name)) else about_speaker(text, name)
    if more is None:
        return memory
    return replace(memory, summary=f"{memory.summary} {_sentence_case(more)}{_closing(one.end)}")


def _lead(name: str) -> str:
    return f"{_sentence_case(name)}: "


def _closing(end: str) -> str:
    return end if end in ("!", "…", "。", "！") else "."


def _sentence_case(text: str) -> str:
    return text[:1].upper() + text[1:]


def _quoted(text: str) -> str:
    return text.replace('"', "'").rstrip(" .?")

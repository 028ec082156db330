"""A conversation with memory: messages and commands in, sentences out. `wellworn chat` is one on a terminal.

Without a language model it answers from memory alone, in plain sentences: who said it and when, or that it does not know.
Recalling, storing and learning are the work of `loop`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from wellworn.core.clock import Clock, aware, system_clock
from wellworn.core.errors import NotFound, WellwornError
from wellworn.core.lazy import regex
from wellworn.core.values import Entry, Hit, Recall
from wellworn.core.wellformed import counted
from wellworn.ingest.terms import content_words
from wellworn.ingest.utterance import asks_for_all, only_reacts, telling_words, wants_answer, wants_work
from wellworn.ingest.validate import checked_scope
from wellworn.integrations.loop import MemoryMiddleware, MiddlewareContext
from wellworn.memory import Memory
from wellworn.models.port import Message, Model, Request
from wellworn.reflection import Reflection

UNKNOWN = "I do not know that. Tell me, and I will remember it."
NOTED = "Noted."
HELLO = "Hello! Tell me something, or ask me."
INTRODUCTION = "I only remember: tell me something, or ask me about what you told me."
CANNOT = "I only remember; that takes a language model, as in `wellworn chat --llm ollama:llama3.2`."
_GREETING = regex(
    r"(?=.*\w)\W*(?:(?:hi|hello|hey|good (?:morning|afternoon|evening))\b(?:\W+\w+)?)?"
    r"\W*(?:how(?:['’]s| is| are) (?:it going|things|life|everything)|what(?:['’]s| is) up)?\W*\Z",
    re.IGNORECASE,
)
_MOST_KNOWN, _ALL = 12, 100
_WORDS = regex(r"[^\W_]+")
_YES = regex(r"y|(?:yes|yep|yeah|ja|oui|sí)(?: (?:please|forget|do|it|this|that|them|both|all))*")
_FORGET = regex(
    r"\W*(?:(?:please|bitte|(?:can|could) you)\W+)*(?:forget|(?:delete|erase)(?= (?:my|our|that|everything)\b)|vergiss)\s+"
    r"(?:(?:that|about|the fact that|what i (?:said|told you) about|everything about|dass)\s+)*(?!(?:it|this|that|to|him|her|them)\b)([^,;:\n]+?)[\s.!?]*",
    re.IGNORECASE,
)
"""A wish to forget something, in words."""
_UNKEPT = regex(
    r"\W*off the record\b.*|(.*?)(?<!n['’]t )(?<!never )(?<!not )(?<!me )(?<!will )(?<!to )(?<!i )(?<!we )\b"
    r"(?:forget (?:it|this|that)|off the record|(?:do not|don['’]?t) (?:save|store|keep|note|remember|write) "
    r"(?:it|this|(?:any of )?that)(?: down)?)(?:[\s,]+(?:please|ok|okay|again|afterwards|anywhere))*\W*",
    re.IGNORECASE | re.DOTALL,
)
"""A message that is not to be kept, and what it says before that wish."""
NOT_KEPT = "I have not kept that."
_EVERYTHING = regex(
    r"(?:everything|all|me|alles)\b(?: (?:about me|i (?:said|told you|have told you)|you know.*|of it))?", re.IGNORECASE
)
_YOU = regex(r"\b(?:you|your)\b", re.IGNORECASE)
_SURE = 0.5
"""The confidence from which on a recall is taken to hold the answer."""
_FULL = 12.0
_WEAK = 0.3
"""A hit that fits less than this is a weak match."""
_CLOSE = 0.8
"""Further hits with this share of the best score are told too."""
_MOST_TOLD = 3
_LEAST_SHARE = 0.15
"""A factor below this share of the score is no reason."""


Newer = Mapping[str, Sequence[Entry]]
"""By the id of an entry, those that replaced it or a part of it."""
NONE_NEWER: Newer = {}


def reply(text: str, recall: Recall | None, *, now: datetime, newer: Newer) -> str:
    """Answer a message from memory alone: a question with what is known, a statement with a short sign of receipt."""
    if _GREETING.match(text):
        return HELLO
    content = content_words(text)
    if wants_work(text) and not (recall is not None and wants_answer(text) and knows(recall)):
        return CANNOT
    if not wants_answer(text):
        return "Any time." if only_reacts(content, text) else NOTED
    if recall is not None and knows(recall):
        return "\n".join(sentence(hit, now=now, newer=newer) for hit in told(recall.hits, newer))
    return INTRODUCTION if _YOU.search(text) and not telling_words(content) else UNKNOWN


def knows(recall: Recall) -> bool:
    """Whether the answer is likely among the hits."""
    sure = max(map(_fits, recall.hits[:_MOST_TOLD]), default=0.0) if recall.confidence is None else recall.confidence
    return bool(recall.hits) and sure >= _SURE


def _fits(hit: Hit) -> float:
    """How well an entry fits a question, from 0 to 1."""
    return sum(hit.factors.get(name, 0.0) for name in ("terms", "meaning")) / _FULL


def told(hits: Sequence[Hit], newer: Newer) -> list[Hit]:
    """The hits to tell: the best, those about as good, and what these have replaced, which stands below them.

    What is outdated may score higher than what holds now, so its score alone says little.
    """
    chosen: dict[str, Hit] = {}  # by their words: of those with the same words the first
    for hit in hits:
        replaced = hit.outdated and any(
            _says(other.entry, one) for other in chosen.values() for one in newer.get(hit.entry.id, ())
        )
        if replaced or (hit.score >= _CLOSE * hits[0].score and hit.outdated <= hits[0].outdated):
            chosen.setdefault(_words_of(hit.entry).lower(), hit)
    return [*chosen.values()][:_MOST_TOLD]


def _says(entry: Entry, other: Entry) -> bool:
    """Whether an entry is another one, or rests on the same turn: a memory and its turn share one place among hits."""
    turns = {*entry.turn_refs} & {*other.turn_refs} if entry.session_id == other.session_id else set()
    return entry.id == other.id or bool(turns)


def sentence(hit: Hit, *, now: datetime, newer: Newer = NONE_NEWER) -> str:
    """One memory with its source: `You told me on 3 March: "I live in Oslo."`"""
    entry = hit.entry
    since = " Part of this no longer holds." if newer.get(entry.id) else ""
    since = " Since then it has changed." if hit.outdated else since
    return f"{_source(entry)} {day(entry.at, now)}: “{_words_of(entry)}”{since}"


def why(recall: Recall, shown: Sequence[Hit], *, now: datetime, newer: Newer = NONE_NEWER) -> str:
    """Why an answer showed these hits; if it showed none, what came nearest."""
    asked = f"“{recall.query}”"
    if not recall.hits:
        return f"Nothing that I remember has to do with {asked}."
    lines = [f"For {asked} I found this:" if shown else f"Nothing that I remember seems to answer {asked}. Nearest is:"]
    for hit in shown or recall.hits[:1]:
        weak = not shown or (_fits(hit) < _WEAK and "told" not in hit.factors)
        because = f"But the match is weak: {_reasons(hit)}." if weak else f"Because {_reasons(hit)}."
        lines += [f"- {sentence(hit, now=now, newer=newer)}", f"  {because}"]
    return "\n".join(lines)


def day(at: datetime, now: datetime) -> str:
    """The day as people say it: today, yesterday, on 3 March, on 3 March 2024."""
    at, now = at.astimezone(), now.astimezone()
    days = (now.date() - at.date()).days
    if days in (0, 1):
        return ("today", "yesterday")[days]
    return f"on {at.day} {at:%B}" + (f" {at.year}" if at.year != now.year else "")


def _source(entry: Entry) -> str:
    if entry.source in ("assistant", "ai", "model"):
        return "I said"
    if entry.source in ("user", "human", "interaction") or entry.source.startswith("reflection"):
        return "You told me"
    if entry.kind == "episode" and entry.speaker:
        return f"{entry.speaker} said"
    return f"“{entry.title}” noted" if entry.title else "A note says, as of" if entry.kind == "note" else "I learned"


def _words_of(entry: Entry) -> str:
    """The person's own words, where an entry rests on them; else its text."""
    words = re.sub(r"^\w[\w .-]{0,60}: ", "", entry.evidence) if entry.source.startswith("reflection") else entry.text
    return " ".join((words if words and "\n" not in words else entry.text).split())


def _reasons(hit: Hit) -> str:
    least = max(_LEAST_SHARE * hit.score, 1e-9)
    factors = sorted(hit.explanation, key=lambda factor: -factor.contribution)
    found = [*dict.fromkeys(one.sentence for one in factors if one.contribution >= least and one.sentence)]
    found += ["you have told me something newer since"] if hit.outdated else []
    return ", ".join(found[:-1]) + (" and " if len(found) > 1 else "") + found[-1] if found else "nothing is nearer"


# -- the conversation --------------------------------------------------------------------------------------------------

SYSTEM = "You are a helpful assistant with a memory of earlier conversations. Answer in a few sentences."
HISTORY_TURNS = 12
NOT_ASKED = "You have not asked me anything yet."
HELP = """Tell me things, and ask me about them later.
/why      why I gave the last answer
/forget   forget what the last answer rests on; with words, as in /forget my address, what fits them best
/undo     take back what you told me last; what it replaced holds again
/quit     end the conversation"""


class Conversation:
    """One conversation: commands and messages in, sentences out."""

    def __init__(
        self,
        memory: Memory,
        middleware: MemoryMiddleware,
        model: Model | None,
        *,
        tell: Callable[[str], None],
        clock: Clock = system_clock,
    ) -> None:
        self._memory, self._middleware, self._model = memory, middleware, model
        self._tell, self._clock = tell, aware(clock)
        self._last: Recall | None = None
        self._shown: Sequence[Hit] = ()
        """The hits that the last answer rests on."""
        self._newer: Newer = {}
        self._offered: Sequence[Entry] = ()
        """What will be forgotten if the person says yes."""
        self._told: list[str] = []
        """The ids of the statements of this conversation."""
        self._questions: dict[str, set[str]] = {}
        """Each question, and the ids of the entries that its answer rests on."""
        self._reflections: list[Reflection] = []
        """What became of statements so far. Without a model they become memories at once."""

    def end(self) -> list[Reflection]:
        """End the session and make memories of the rest; returns what became of it all and still holds."""
        self._middleware.end_session()
        self._reflections += self._memory.reflect(session_id=self._middleware.session_id)
        return self.kept

    @property
    def kept(self) -> list[Reflection]:
        """What statements became so far, without what was forgotten or replaced since."""
        return [
            replace(one, memories=[each for each in one.memories if self._holds(each.id)]) for one in self._reflections
        ]

    def _holds(self, id: str) -> bool:
        with suppress(NotFound):
            return self._memory.get(id).state in ("active", "flagged")
        return False

    def run(self, messages: Iterator[str]) -> int:
        """Answer until the person leaves; returns how many messages there were."""
        turns = 0
        for text in messages:
            if self._offered and self._agreed(text):
                continue
            name, _, about = text.partition(" ")
            if name == "/help":
                self._tell(HELP)
            elif name == "/why":
                self._tell(self._why())
            elif name == "/forget":
                self._offer(about.strip())
            elif name == "/undo":
                self._undo()
            elif wish := _FORGET.fullmatch(text):
                self._offer(wish[1])
            elif _UNKEPT.fullmatch(text) and not wants_answer(text):
                self._leave(text)
            elif name.startswith("/"):
                self._tell(f"I do not know {name}; /help lists what I know.")
            else:
                self._turn(text)
                turns += 1
        return turns

    def _leave(self, text: str) -> None:
        """Keep nothing of a message; one that is a mere wish to forget takes back what was said before it."""
        said = _UNKEPT.fullmatch(text.lower().replace("please", ""))
        if said is None or said[1] is None or _WORDS.search(said[1]):
            self._tell(NOT_KEPT)
        else:
            self._undo()

    def _turn(self, text: str) -> None:
        """Answer one message."""
        context = MiddlewareContext(user_input=text, current_system_prompt=SYSTEM)
        system, answer = self._middleware.enrich_system_prompt(context), ""
        found = self._middleware.recalled(text)
        newer = {} if found is None else self._replacements(found)
        used: Sequence[int] = ()
        if self._model is None:
            said = self._known(text) if asks_for_all(text) else ""
            said = said or reply(text, found, now=self._clock(), newer=newer)
            self._middleware.after_response(text, "")
            self._tell(" ".join([said, *self._replaced()]) if said == NOTED else said)
        else:
            try:
                answer = self._asked(self._model, system, text)
                citation = self._middleware.cited(text, answer)
                used = citation.places or ()
                self._tell(citation.text.strip())
            except WellwornError as error:  # a model that fails ends one answer, not the chat
                self._tell(f"The model did not answer: {error}")
            self._middleware.after_response(text, answer)
        asked = wants_answer(text)
        if found is not None and (asked or self._model is not None):  # /why is about the last question
            rests_on = [found.hits[place] for place in used] or told(found.hits, newer)
            self._last, self._newer = found, newer
            self._shown = rests_on if used or knows(found) else ()
            self._questions |= {text: {hit.entry.id for hit in rests_on}} if asked else {}
        if not (asked or wants_work(text) or _GREETING.match(text) or only_reacts(content_words(text), text)):
            self._told.append(self._last_turn())

    def _known(self, text: str) -> str:
        """What holds of the person, the latest first; empty where nothing does."""
        found = self._memory.recall(text, k=_ALL)
        told = [*dict.fromkeys(_words_of(hit.entry) for hit in found if "told" in hit.factors)]
        more = [f"… and {len(told) - _MOST_KNOWN} more; `wellworn list` shows all."] if len(told) > _MOST_KNOWN else []
        return "\n".join(["You told me:", *(f"- {one}" for one in told[:_MOST_KNOWN]), *more]) if told else ""

    def _why(self) -> str:
        if self._last is None:
            return "That is forgotten." if self._questions else NOT_ASKED
        return why(self._last, self._shown, now=self._clock(), newer=self._newer)

    def _replacements(self, found: Recall) -> dict[str, list[Entry]]:
        """What replaced the hits, or a part of them."""
        with suppress(WellwornError):  # the answer leaves out what was then
            changer, scope = self._memory.engine.changer, checked_scope(self._memory.scope)
            return {hit.entry.id: changer.replacements(hit.entry.id, scope=scope) for hit in found.hits}
        return {}

    def _replaced(self) -> list[str]:
        """Make memories of the last statement; says what it replaces."""
        try:
            self._reflections += self._memory.reflect(session_id=self._middleware.session_id)
            said = self._last_turn()
            ended = [
                link.target for link in self._memory.links(said) if (link.type, link.source) == ("supersedes", said)
            ]
            old = [self._memory.get(one) for one in ended[:1]]
            return [
                f"So {'this' if one.state == 'superseded' else 'part of this'} no longer holds: “{one.text}” (/undo if it does)"
                for one in old
            ]
        except WellwornError:  # the end of the session tries again
            return []

    def _asked(self, model: Model, system: str, text: str) -> str:
        earlier = [
            Message(role="assistant" if turn.role == "assistant" else "user", text=turn.text)
            for turn in self._memory.session(self._middleware.session_id).turns()[-HISTORY_TURNS:]
            if turn.entry_id  # else it was forgotten
        ]
        messages = (Message(role="system", text=system), *earlier, Message(role="user", text=text))
        return model.complete(Request(messages=messages, purpose="chat", max_output_tokens=800)).text

    def _last_turn(self) -> str:
        """The id of what the person said last."""
        turns = self._memory.session(self._middleware.session_id).turns()
        return next((turn.entry_id or "" for turn in reversed(turns) if turn.role == "user"), "")

    def _offer(self, about: str) -> None:
        """Offer to forget what fits some words best, or what the last answer rests on, with what it replaced."""
        if _EVERYTHING.fullmatch(about):
            user = shlex.quote((self._memory.scope and self._memory.scope.user) or "me")
            self._tell(f"`wellworn forget --everything --user {user}` forgets all that you told me.")
            return
        found = self._memory.recall(about) if about else None
        hits = self._shown if found is None else found.hits if knows(found) else ()
        if not hits:
            nothing = f"Nothing that I remember fits “{about}”." if about else "There is nothing to forget."
            self._tell(f"{nothing} Say what, as in /forget my address.")
            return
        self._offered = [hits[0].entry, *self._middleware.older(hits[0].entry)]
        older = dict.fromkeys(_words_of(one) for one in self._offered[1:])
        what = f"this and the {counted(len(older), 'older versions')}" if older else "this"
        shown = [sentence(hits[0], now=self._clock(), newer=self._newer), *(f"- before: “{one}”" for one in older)]
        self._tell("\n".join([*shown, f"Forget {what} for good? (yes or no)"]))

    def _agreed(self, text: str) -> bool:
        """Forget what was offered if the person says yes; whether the message was an answer to that."""
        offered, self._offered = self._offered, ()
        word = " ".join(_WORDS.findall(text.lower()))
        if _YES.fullmatch(word):
            gone = sum(self._middleware.forget(one, asked=self._questions) for one in offered)
            self._last, self._shown, self._told = None, (), []
            self._tell("Forgotten." if gone else "It was gone already.")
            return True
        no = word in ("n", "no", "nope", "nah", "no thanks", "nein", "cancel")
        self._tell("Kept." if no else "Kept, as you did not say yes.")
        asks = text.startswith("/") or wants_answer(text)
        return no or (not asks and only_reacts(content_words(text), text))

    def _undo(self) -> None:
        """Forget the last statement; what it replaced holds again."""
        while self._told:
            with suppress(NotFound):  # it was forgotten since
                said = self._memory.get(self._told.pop())
                self._middleware.forget(said, asked=self._questions)
                self._tell(f"Taken back: “{_words_of(said)}”")
                return
        self._tell("There is nothing to take back. What is forgotten is gone for good.")

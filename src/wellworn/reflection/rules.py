"""Find memories in a session by rules, without a language model.

Keeps what people state about themselves and their world, standing instructions, and answers to questions. A memory is
the sentence itself: about the speaker by name where that rewrite is certain, a quotation otherwise. For every turn
that gives no memory the reason is recorded. Deterministic, and linear in the text. Sentences in languages other than
English are kept as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from wellworn.core.values import Kind, Turn
from wellworn.ingest.terms import terms
from wellworn.reflection.candidate import Candidate
from wellworn.reflection.dates import with_dates
from wellworn.reflection.labels import (
    GROUP,
    INVERTED,
    ROLE_PLAY,
    SELF,
    SOCIAL,
    YOU,
    Label,
    is_english,
    label,
    plain_words,
    without_opener,
)
from wellworn.reflection.person import about_speaker, is_adverb, is_past
from wellworn.reflection.sentences import MOST_SENTENCES, Sentence, sentences

MOST_PER_TURN = 8
_PASTED_CHARS = 1000
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


_FEWEST_NEW, _FEWEST_NEW_IN_LONG = 2, 4
"""Words of a sentence among others that the people did not say before in the session; in a turn that is not short."""
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
_ASKS_FOR_A_TASK = re.compile(r"\b(?:can you|could you|want|would you like|help|assist)\b", re.IGNORECASE)
_YES_OR_NO = re.compile(
    r"(?:yes|yeah|yep|yup|sure|no|nope|nah|of course|absolutely|definitely|exactly)\b", re.IGNORECASE
)
_KEPT = ("statement", "instruction")
_SOCIAL_TERMS = frozenset(terms(" ".join(SOCIAL)))
_NEGATED = re.compile(r"\b(?:not|no|never|without|stopped|quit)\b|n't\b", re.IGNORECASE)
_PREFERENCE = re.compile(
    r"\b(?:prefer|love|like|enjoy|hate|dislike|can't stand|favou?rite|rather|always|never|keen on|into|fond of)\w*\b"
)


@dataclass(kw_only=True)
class _Session:
    """Who speaks in a session, and what was said so far: no turn changes what was made of the ones before it."""

    user: str | None
    speakers: set[str] = field(default_factory=set)
    addressed: re.Pattern[str] | None = None
    """The speakers' first names where a sentence begins or ends with them."""
    heard: set[int] = field(default_factory=set)
    claims: list[frozenset[int]] = field(default_factory=list)
    users: int = 0
    own: int = 0
    """Turns of the user that say something of themselves."""
    asked: int = 0
    """Turns of the user that begin with a request or a question, or are pasted."""
    tasks: int = 0
    """Those of them that are no question."""
    plays: int = 0

    @property
    def talk(self) -> str:
        """`personal` when people mostly speak of themselves, `task` when they set tasks to a machine, else `mixed`.

        People who set tasks ("write …", "explain …") say "I" and "we" of customers, characters and texts, too.
        """
        if not self.users or (self.own > self.asked and not self.plays):
            return "personal"
        return "task" if self.tasks else "mixed"

    def hear(self, turn: Turn) -> None:
        """Count a turn before it is read."""
        if role(turn) == "person" and self.name(turn) not in self.speakers:
            self.speakers.add(self.name(turn))
            self.addressed = _names_addressed(self.speakers)
        if role(turn) != "user":
            return
        said = [(one.text, label(one)) for one in sentences(turn.text[:_PASTED_CHARS])]
        play = bool(ROLE_PLAY.search(turn.text.lower()))
        self.users += 1
        self.plays += play
        task = len(turn.text) > _PASTED_CHARS or bool(said and said[0][1] == "request") or play
        self.tasks += task
        self.asked += task or bool(said and said[0][1] == "question")
        self.own += any(sort == "statement" and not SELF.isdisjoint(plain_words(one)) for one, sort in said)

    def remember(self, turn: Turn) -> None:
        """Keep the words of a turn that was read."""
        if role(turn) in ("user", "person"):
            self.claims += [frozenset(_claimed(one.text)) for one in sentences(turn.text)]
            self.heard.update(*self.claims[-MOST_SENTENCES:])

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
        """How many words a sentence has that no person said before in this session and that are not mere politeness.

        Known words in a new connection count as one.
        """
        claimed = {*_claimed(one.text)} - _SOCIAL_TERMS
        if claimed <= self.heard:
            return int(bool(claimed) and not any(claimed <= known for known in self.claims))
        return len(claimed - self.heard)


def _claimed(text: str) -> list[int]:
    """The terms of a sentence; those of a negated one are others than those of its opposite."""
    found = terms(text)
    return [-term for term in found] if _NEGATED.search(text) else found


def extract(turns: Sequence[Turn], *, user: str | None = None, context: Sequence[Turn] = ()) -> Findings:
    """The memories worth proposing, in order.

    `user` is what the person behind the role `user` is called. `context` are the turns before: read already, they tell
    what a first reply answers. What is found in a turn depends on it and the turns before it, never on later ones.
    """
    session = _Session(user=user)
    candidates: list[Candidate] = []
    skipped: dict[int, str] = {}
    before: Turn | None = None
    for turn in (*context, *turns):
        if role(turn) == "silent":
            skipped[turn.number] = "not said by a person"
            continue
        session.hear(turn)
        if role(turn) == "assistant":
            skipped[turn.number] = "said by the assistant"
        elif turn in turns:
            found = _of_turn(turn, before, session)
            if isinstance(found, str):
                skipped[turn.number] = found
            else:
                candidates += found
        session.remember(turn)
        before = turn
    used = {number for one in candidates for number in one.turns} | {turn.number for turn in context}
    return Findings(candidates=candidates, skipped={n: why for n, why in skipped.items() if n not in used})


def _names_addressed(speakers: Collection[str]) -> re.Pattern[str]:
    """Matches the first names of those who speak, and their short forms, at either end of a sentence."""
    names = {name.split()[0] for name in speakers}
    short = {name[:size] for name in names for size in range(3, len(name) + 1)} or names
    either = "|".join(sorted(map(re.escape, short), key=len, reverse=True))
    return re.compile(rf"^(?:hey |hi )?(?:{either})(?:[,!:]\s*|$)|,\s*(?:{either})$", re.IGNORECASE)


def _of_turn(turn: Turn, before: Turn | None, session: _Session) -> list[Candidate] | str:
    """The memories of one turn, or the reason why there is none."""
    said = session.said(turn)
    labels = [label(one) for one in said]
    reason = _refused(turn, said, session)
    if reason:
        return reason
    reply = _reply(turn, before, said, labels, session)
    brief = len(turn.text) <= _SHORT_CHARS
    kept: list[Candidate] = []
    for place, (one, sort) in enumerate(zip(said, labels, strict=True)):
        if reply is not None and reply[0] == place:
            kept.append(reply[1])
        elif sort == "points back" or (sort == "statement" and place and plain_words(one.text)[:1] in _PERSONS):
            if kept and labels[place - 1] in (*_KEPT, "points back"):
                kept[-1] = _extended(kept[-1], one, turn, session)
        elif sort in _KEPT and _concerns_speaker(one, sort, labels, session, brief=brief):
            alone = len(said) == 1 or (brief and _opens_with(SELF, one.text))
            fewest = 1 if alone else _FEWEST_NEW if brief else _FEWEST_NEW_IN_LONG
            kept += [_memory(one, sort, turn, session)] if session.count_new(one) >= fewest else []
    return kept[:MOST_PER_TURN] or _why_nothing(labels)


_PERSONS = (["he"], ["she"], ["they"], ["his"], ["her"], ["their"], ["she's"], ["he's"], ["they're"])


def _refused(turn: Turn, said: Sequence[Sentence], session: _Session) -> str:
    """Why a turn is not read: it is pasted, or played."""
    if not said:
        return "nothing said in sentences"
    if role(turn) == "user" and len(turn.text) > _PASTED_CHARS:
        return "pasted text"
    if session.talk != "personal" and ROLE_PLAY.search(turn.text.lower()):
        return "part of a task"
    return ""


def _concerns_speaker(one: Sentence, sort: Label, labels: Sequence[Label], session: _Session, *, brief: bool) -> bool:
    """Whether a sentence may be kept: in a personal talk always, else where the speaker tells of themselves.

    A short turn that only tells ("The deploy key is in 1Password") is kept, too, where no tasks are set.
    """
    only_tells = brief and {*labels} <= {*_KEPT, "small talk", "fragment"}
    if session.talk == "personal" or (only_tells and session.talk == "mixed") or (sort == "instruction" and brief):
        return True
    return _opens_with(SELF | GROUP if only_tells else SELF, one.text) and not _WANTS.search(one.text.lower())


def _opens_with(people: frozenset[str], text: str) -> bool:
    return not people.isdisjoint(plain_words(without_opener(text))[:4])


def _why_nothing(labels: Sequence[Label]) -> str:
    for sort in ("request", "question", "hypothetical", "fragment", "points back", "aside", "small talk"):
        if sort in labels:
            return _REASONS.get(sort, sort)
    return "nothing new"


_REASONS = {
    "request": "part of a task",
    "points back": "says nothing without what it points to",
    "aside": "about the talk itself",
}


def _reply(
    turn: Turn, before: Turn | None, said: list[Sentence], labels: list[Label], session: _Session
) -> tuple[int, Candidate] | None:
    """The place and the memory of a sentence that says nothing without the question or proposal before it."""
    if before is None or _same_speaker(before, turn, session):
        return None
    place = next((n for n, sort in enumerate(labels) if sort != "small talk"), 0)
    place = place if labels[place] == "fragment" else 0
    lead = _question(before, said[place], labels[place], session)
    lead = lead or (_proposal(before, turn, labels[0], session.name(turn)) if session.talk == "personal" else "")
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
    if session.talk == "task" and (not YOU.search(question) or _ASKS_FOR_A_TASK.search(question)):
        return ""
    settled = _YES_OR_NO.match(reply.text) and INVERTED.match(question.lower())
    return f'Asked "{_quoted(question)}?",' if sort == "fragment" or settled else ""


def _proposal(before: Turn, turn: Turn, sort: Label, name: str) -> str:
    """The points that an assistant listed, unless the reply asks for something else."""
    if role(before) != "assistant" or sort in ("question", "request", "hypothetical"):
        return ""
    if not _COMMITS.search(turn.text.replace("’", "'")) or _NEGATED.search(sentences(turn.text)[0].text):
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
    first = next((word for word in plain_words(text) if not is_adverb(word)), "")
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

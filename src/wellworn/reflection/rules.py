"""Find memories in a session by rules, without a language model.

Keeps what people state about themselves and their world, standing instructions, and answers to questions. A memory is
the sentence itself: about the speaker by name where that rewrite is certain, a quotation otherwise. For every turn
that gives no memory the reason is recorded. Deterministic, and linear in the text. Sentences in languages other than
English are kept as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace

from wellworn.core.dataclass import dataclass
from wellworn.core.lazy import regex
from wellworn.core.values import Kind, Turn
from wellworn.ingest.dates import with_dates
from wellworn.ingest.session import name_of
from wellworn.ingest.terms import terms
from wellworn.ingest.utterance import ASSISTANT_ROLES, without_opening
from wellworn.reflection import Candidate, labels

MOST_PER_TURN = 8
_PASTED_CHARS = 1000
"""A longer turn is mostly a text that somebody else wrote."""
_USER_ROLES = frozenset({"user", "human"})
UNNAMED = "the user"
_FEWEST_NEW, _FEWEST_NEW_IN_LONG = 2, 4
"""Words of a sentence among others that the people did not say before in the session; in a turn that is not short."""
_SHORT_CHARS = 200
_LONGEST_QUESTION = 200
_COMMITS = regex(
    r"\b(?:i'll|i will|we'll|let's|i'm going to|i can|go ahead|go with|proceed|start|do it|next)\b", re.IGNORECASE
)
"""The speaker takes a proposal up."""
_POINT = regex(r"^\s{0,12}(?:[-*•–+]|\d{1,3}[.)]|#{1,6})\s+(.*)$", re.MULTILINE)
_FEWEST_POINTS = 3
_LONGEST_POINT = 60
_YES_OR_NO = regex(r"(?:yes|yeah|yep|yup|sure|no|nope|nah|of course|absolutely|definitely|exactly)\b", re.I)
_KEPT = ("statement", "instruction")
_NEGATED = regex(r"\b(?:not|no|never|without|stopped|quit)\b|n't\b", re.IGNORECASE)
_PREFERENCE = regex(
    r"\b(?:prefer|love|like|enjoy|hate|dislike|can't stand|favou?rite|rather|always|never|keen on|fond of)\w*\b"
    r"|(?:\b(?:am|are|is|really|so|very|totally)|['’](?:m|re|s)) into\b"
)
_REASONS = {
    "request": "part of a task",
    "question": "question",
    "hypothetical": "hypothetical",
    "fragment": "fragment",
    "points back": "says nothing without what it points to",
    "aside": "about the talk itself",
    "passing": "true for the moment",
    "small talk": "small talk",
}
"""Why a turn with sentences of a sort gave no memory; the first that applies."""
_TAKES_BACK = regex(
    r"(?:(?:oh|ah|um|hm)\W+)*(?:no|nope|sorry|wait|oops|actually|correction|scratch that|i mean)\b.*(?:\d|,)", re.I
)
"""How people correct what they just said: "My flight is at 9:40. No sorry, 10:40."."""


def role(turn: Turn) -> str:
    """`user`, `assistant`, or `person` for a named speaker."""
    said = turn.role.strip().lower()
    return "user" if said in _USER_ROLES else "assistant" if said in ASSISTANT_ROLES else "person"


def speaker_of(turn: Turn, user: str | None) -> str:
    """What the speaker of a turn is called in a memory; a name in small letters, as ids are, is written as a name."""
    spoken = name_of((turn.speaker or "").strip())
    if spoken is None or spoken.lower() in _USER_ROLES:
        spoken = turn.role.strip() if role(turn) == "person" else name_of((user or "").strip()) or UNNAMED
    if spoken is UNNAMED or not spoken.islower():
        return spoken
    return re.sub(r"(?<![^\W_])(?<!['’])[^\W\d_]", lambda found: found[0].upper(), spoken)


@dataclass(kw_only=True)
class _Session:
    """Who speaks in a session, and what was said so far: no turn changes what was made of the ones before it."""

    user: str | None
    heard: set[int] = field(default_factory=set)
    claims: list[frozenset[int]] = field(default_factory=list)
    users: int = 0
    own: int = 0
    """Turns of the user that say something of themselves."""
    asked: int = 0
    """Turns of the user that begin with a request or a question, or are pasted."""
    texts: int = 0
    """Those of them that are pasted or order a text."""

    @property
    def talk(self) -> str:
        """`personal` when people mostly speak of themselves, `texts` when they order texts, else `mixed`.

        People who order texts ("write …", "explain …") say "I" and "we" of customers, characters and texts, too.
        """
        if not self.users or self.own > self.asked:
            return "personal"
        return "texts" if self.texts else "mixed"

    def hear(self, turn: Turn) -> None:
        """Count a turn before it is read."""
        if role(turn) != "user":
            return
        said = [(one, labels.label(one)) for one in labels.sentences(turn.text[:_PASTED_CHARS])]
        pasted, first = len(turn.text) > _PASTED_CHARS, said[0][1] if said else ""
        self.users += 1
        self.texts += pasted or (first == "request" and labels.wants_text(said[0][0]))
        self.asked += pasted or first in ("request", "question")
        self.own += any(
            sort == "statement" and not labels.SELF.isdisjoint(labels.plain_words(one.text)) for one, sort in said
        )

    def remember(self, turn: Turn) -> None:
        """Keep the words of a turn that was read."""
        if role(turn) != "assistant":
            claimed = [frozenset(_claimed(one.text)) for one in labels.sentences(turn.text)]
            self.claims += claimed
            self.heard.update(*claimed)

    def name(self, turn: Turn) -> str:
        return speaker_of(turn, self.user)

    def count_new(self, one: labels.Sentence) -> int:
        """How many words a sentence has that no person said before in this session and that are not mere politeness.

        Known words in a new connection count as one.
        """
        claimed = {*_claimed(" ".join(labels.says_something(one.text)), negated=_NEGATED.search(one.text) is not None)}
        if claimed <= self.heard:
            return int(bool(claimed) and not any(claimed <= known for known in self.claims))
        return len(claimed - self.heard)


def _claimed(text: str, *, negated: bool | None = None) -> list[int]:
    """The terms of a sentence; those of a negated one are others than those of its opposite."""
    negated = _NEGATED.search(text) is not None if negated is None else negated
    return [-term if negated else term for term in terms(text)]


def extract(
    turns: Sequence[Turn], *, user: str | None = None, context: Sequence[Turn] = ()
) -> tuple[list[Candidate], dict[int, str]]:
    """The memories worth proposing, in order, and for every other turn why it gave none.

    `user` is what the person behind the role `user` is called. `context` are the turns before: read already, they tell
    what a first reply answers. What is found in a turn depends on it and the turns before it, never on later ones.
    """
    session = _Session(user=user)
    candidates: list[Candidate] = []
    skipped: dict[int, str] = {}
    before: Turn | None = None
    for turn in (*context, *turns):
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
    return candidates, {number: why for number, why in skipped.items() if number not in used}


def _of_turn(turn: Turn, before: Turn | None, session: _Session) -> list[Candidate] | str:
    """The memories of one turn, or the reason why there is none."""
    said = [clause for one in labels.sentences(turn.text) for clause in labels.clauses(one)]
    if not said:
        return "nothing said in sentences"
    if role(turn) == "user" and len(turn.text) > _PASTED_CHARS:
        return "pasted text"
    sorts = [labels.label(one) for one in said]
    reply = _reply(turn, before, said, sorts, session)
    brief = len(turn.text) <= _SHORT_CHARS
    kept: list[Candidate] = []
    for place, (one, sort) in enumerate(zip(said, sorts, strict=True)):
        if reply is not None and reply[0] == place:
            kept.append(reply[1])
        elif sort == "points back" or (sort == "fragment" and _TAKES_BACK.match(one.text)):
            if kept and sorts[place - 1] in (*_KEPT, "points back"):
                kept[-1] = _extended(kept[-1], one, turn, session)
        elif sort in _KEPT and _concerns_speaker(place, said, sorts, session, brief=brief):
            alone = len(said) == 1 or (brief and _opens_with(labels.SELF, one.text))
            fewest = 1 if alone else _FEWEST_NEW if brief else _FEWEST_NEW_IN_LONG
            kept += [_memory(one, sort, turn, session)] if session.count_new(one) >= fewest else []
    name = session.name(turn).lower()
    kept = [one for one in kept if one.summary.lower().rstrip(" .!…") != f"{name} is {name}"]  # "I'm Maja", says Maja
    return kept[:MOST_PER_TURN] or next((why for sort, why in _REASONS.items() if sort in sorts), "nothing new")


def _concerns_speaker(
    place: int, said: Sequence[labels.Sentence], sorts: Sequence[labels.Label], session: _Session, *, brief: bool
) -> bool:
    """Whether a sentence may be kept: what the speaker tells of themselves, and in a short turn what holds of their world.

    What an order beside it is about is part of the task. Where texts are ordered only the speaker's own matters count.
    """
    one, sort, personal = said[place], sorts[place], session.talk == "personal"
    if sort == "instruction" and brief:
        return True
    ordered = [sort not in _KEPT and labels.orders(other.text) for other, sort in zip(said, sorts, strict=True)]
    asked = any(sort == "question" and not order for sort, order in zip(sorts, ordered, strict=True))
    behind = said[place + 1] if ordered[place + 1 :][:1] == [True] else None
    beside_order = behind is not None if personal else any(ordered)
    if beside_order and not _opens_with(labels.SELF, one.text) and labels.is_matter(one, behind):
        return False
    if personal or (brief and session.talk == "mixed" and not asked):
        return True
    return _opens_with(labels.SELF if asked or any(ordered) else labels.SELF | labels.GROUP, one.text)


def _opens_with(people: frozenset[str], text: str) -> bool:
    return not people.isdisjoint(labels.plain_words(without_opening(text))[:4])


def _reply(
    turn: Turn, before: Turn | None, said: list[labels.Sentence], sorts: list[labels.Label], session: _Session
) -> tuple[int, Candidate] | None:
    """The place and the memory of a sentence that says nothing without the question or proposal before it."""
    name = session.name(turn)
    if before is None or (role(before) == role(turn) and session.name(before) == name):
        return None
    place = next((n for n, sort in enumerate(sorts) if sort != "small talk"), 0)
    place = place if sorts[place] == "fragment" else 0
    lead = _question(before, said[place], sorts[place], session)
    lead = lead or (_proposal(before, turn, sorts[0], name) if session.talk == "personal" else "")
    if not lead:
        return None
    text = f'{lead} {name} said: "{_quoted(said[place].text)}."'
    return place, Candidate(summary=text, turns=(before.number, turn.number), speaker=name, confidence=0.5)


def _question(before: Turn, reply: labels.Sentence, sort: labels.Label, session: _Session) -> str:
    """The question that a turn ends with, where the reply is no sentence of its own or says yes or no to it."""
    asked = labels.sentences(before.text)[-1:]
    if not asked or asked[0].end != "?" or len(asked[0].text) > _LONGEST_QUESTION:
        return ""
    question = asked[0].text
    if session.talk == "texts" and not labels.YOU.search(question):
        return ""
    return f'Asked "{_quoted(question)}?",' if sort == "fragment" or _YES_OR_NO.match(reply.text) else ""


def _proposal(before: Turn, turn: Turn, sort: labels.Label, name: str) -> str:
    """The points that an assistant listed, unless the reply asks for something else."""
    if role(before) != "assistant" or sort in ("question", "request", "hypothetical"):
        return ""
    if not _COMMITS.search(turn.text.replace("’", "'")) or _NEGATED.search(labels.sentences(turn.text)[0].text):
        return ""
    points = [_point(line[1]) for line in _POINT.finditer(before.text)]
    shown = "; ".join(point for point in points if point)
    return f"The assistant proposed to {name}: {shown}." if len(points) >= _FEWEST_POINTS else ""


def _point(line: str) -> str:
    """The head of a point: what stands before its colon, or its first words."""
    head = line.replace("*", "").partition(":")[0].strip()
    return head if len(head) <= _LONGEST_POINT else head[:_LONGEST_POINT].rsplit(" ", 1)[0] + "…"


def _memory(one: labels.Sentence, sort: labels.Label, turn: Turn, session: _Session) -> Candidate:
    dated = with_dates(without_opening(one.text), turn.at)
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
    first = next((word for word in labels.plain_words(text) if not labels.is_adverb(word)), "")
    quoted = quoted or labels.is_past(first) or not labels.is_english(text.lower())  # "Moved to Bergen" has no subject
    about = None if quoted else labels.about_speaker(text, name)
    if about is None:
        return _lead(name) + _closed(text, end)
    own = about.split(" ", 1)[0] == text.split(" ", 1)[0]  # "pytest.ini" and "npm" are written as people write them
    return _closed(about if own else _sentence_case(about), end)


def _extended(memory: Candidate, one: labels.Sentence, turn: Turn, session: _Session) -> Candidate:
    """A memory with the sentence behind it, which points back to it, where both can be told alike."""
    name = session.name(turn)
    text = with_dates(one.text, turn.at).text
    more = text if memory.summary.startswith(_lead(name)) else labels.about_speaker(text, name)
    if more is None:
        return memory
    return replace(memory, summary=f"{memory.summary} {_closed(_sentence_case(more), one.end)}")


def _lead(name: str) -> str:
    return f"{_sentence_case(name)}: "


def _closed(text: str, end: str) -> str:
    """The text with how its sentence ends; what looks like an abbreviation has kept its full stop: "Acme Inc." """
    return text if text.endswith(".") else text + (end if end in ("!", "…", "。", "！") else ".")


def _sentence_case(text: str) -> str:
    return text[:1].upper() + text[1:]


def _quoted(text: str) -> str:
    return text.replace('"', "'").rstrip(" .?")

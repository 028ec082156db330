"""What a sentence tells of its speaker: the frame it fits, as a name, a kind of memory and how sure that makes us.

The first frame that matches counts. A frame that `stands` is worth keeping wherever it is said; the others only where
the talk is about the speaker's life. Patterns see one sentence in lower case, at most `LONGEST_CHARS` long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wellworn.core.values import Kind

_I = r"\b(?:i|we)\b"
_AM = r"\b(?:i am|i'm|im|we are|we're|i was|we were|i've been|i have been)\b"
_FEW = r"(?:\s+\w+){0,2}?\s+"
_KIN = (
    "wife|husband|spouse|partner|fianc\\w+|girlfriend|boyfriend|mother|father|mom|mum|dad|parents?|brother|sister|son"
    "|daughter|kids?|child(?:ren)?|baby|grand\\w+|uncle|aunt|cousin|niece|nephew|in-laws?|twins?|family|dog|cat|puppy"
    "|kitten|pets?|rabbit|hamster|parrot|horse|turtle|roommate|flatmate|neighbou?r"
)
_LANGUAGE = (
    "german|english|french|spanish|italian|portuguese|dutch|polish|russian|ukrainian|turkish|arabic|hebrew|hindi"
    "|japanese|chinese|mandarin|korean|swedish|norwegian|danish|finnish|greek|czech|hungarian|romanian|vietnamese|thai"
    "|indonesian"
)
_STYLE = "british|american|plain|simple|short|full sentences|lower ?case"
_PERIODS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday|tomorrow|tonight|next (?:week|month|year|weekend)"


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A way of telling something."""

    name: str
    kind: Kind
    confidence: float
    pattern: re.Pattern[str]
    stands: bool = False


def _frame(name: str, kind: Kind, confidence: float, pattern: str, *, stands: bool = False) -> Frame:
    return Frame(name=name, kind=kind, confidence=confidence, pattern=re.compile(pattern), stands=stands)


FRAMES: tuple[Frame, ...] = (
    _frame(
        "correction",
        "fact",
        0.7,
        r"^(?:actually|correction|scratch that|no wait|wait no|sorry, i meant|i meant|to correct)\b"
        rf"|{_I}{_FEW}?changed (?:my|our) minds?\b|\b(?:i|we) (?:was|were) wrong\b",
    ),
    _frame(
        "wish",
        "fact",
        0.65,
        r"^(?!i\b|we\b|you\b|it\b|please\b)[\w' ]{2,60}?\b(?:wants?|needs?|prefers?|expects?|asked for|asks for)\b"
        r".{0,160}\b(?:next time|from now on|in (?:the )?future|going forward|any ?more|no longer|instead of)\b",
        stands=True,
    ),
    _frame(
        "rule",
        "preference",
        0.75,
        r"\b(?:from now on|going forward|from here on)\b|\bin (?:the )?future,? (?:please|always|never|you|don't)\b"
        r"|^(?:please )?(?:always|never)\b|\b(?:every time|whenever) (?:you|i ask)\b",
        stands=True,
    ),
    _frame(
        "manner",
        "preference",
        0.75,
        r"^(?:and |also |but |just |please |kindly )*(?:"
        r"(?:keep|make|give me|write|format|phrase) (?:all |your |the |me )*(?:\w+ )?(?:answers|replies|responses)\b"
        rf"|(?:answer|reply|respond|speak|talk|chat|write)(?: to me| with me| me| back)?(?: only)? in (?:{_STYLE})\b"
        rf"|(?:answer|reply|respond|speak|talk|chat|write (?:to )?me)(?: to me| with me| me| back)?(?: only)?"
        rf" in (?:{_LANGUAGE})\b"
        r"|(?:use|don't use|do not use|avoid|stop using|no|skip|leave out|stop with)(?: the| any| more| your)*"
        r" (?:emojis?|bullet points|bullets|exclamation marks|jargon|small talk|tables|apologies|disclaimers"
        r"|metric|imperial|celsius|fahrenheit|british spelling|american spelling)\b"
        r"|(?:use|don't|do not|stop|be|talk|speak) [\w ]{2,50}\bwith me\b"
        r"|(?:address|refer to) me (?:as|by|with)\b)",
        stands=True,
    ),
    _frame("name", "fact", 0.8, r"\bmy (?:full |first |last |nick)?name(?:'s| is)\b|\bcall me [a-z]", stands=True),
    _frame(
        "reminder",
        "note",
        0.75,
        r"\b(?:remind me|don't let me forget|remember (?:that )?(?:i|my|we|our))\b",
        stands=True,
    ),
    _frame(
        "health",
        "fact",
        0.75,
        r"\b(?:allerg\w+|intoleran\w+|diabet\w+|asthma\w*|vegetarian|vegan|pregnan\w+|diagnosed|migraines?)\b",
        stands=True,
    ),
    _frame("favourite", "preference", 0.75, r"\b(?:my|our) (?:all-time )?favou?rites?\b", stands=True),
    _frame(
        "liking",
        "preference",
        0.7,
        rf"{_I}{_FEW}?(?<!would )(?:like|love|adore|enjoy|hate|dislike|prefer|loathe|despise|detest|can't stand"
        r"|cannot stand|crave|value|appreciate)"
        r"(?! (?:these|this|that|it|them|what|how|your?|yours|option|all|both|a lot of your"
        r"|the (?:\w+ )?(?:idea|sound|plan|look|way|concept|first|second|third|last|ones?|version|options?))\b)"
        r"(?= \w)"
        rf"|{_AM}{_FEW}?(?:a (?:big |huge )?fan of|not a fan|into|fond of|keen on|crazy about|obsessed with"
        r"|passionate about)\b|\bi'd rather\b|\bi would rather\b",
        stands=True,
    ),
    _frame(
        "home",
        "fact",
        0.75,
        rf"{_I}{_FEW}?(?:live (?:in|at|on|with|near|alone|here|there|by|together)|lived|moved|grew up|was born"
        rf"|were born|reside|relocated)\b|{_AM}{_FEW}?(?:from|based in|living in|moving to|staying in)\b"
        r"|\bmy (?:home ?town|apartment|house|flat)\b",
        stands=True,
    ),
    _frame(
        "relation",
        "fact",
        0.7,
        rf"\b(?:my|our)(?: \w+)? (?:{_KIN})\b|\bi have (?:a|an|\w+) (?:\w+ )?(?:{_KIN})\b",
        stands=True,
    ),
    _frame(
        "work",
        "fact",
        0.7,
        rf"{_I}{_FEW}?(?:work(?:ed)? (?:as|at|for|in)|studied|study|teach|taught|graduated|major(?:ed)? in|run a"
        r"|own a)\b"
        rf"|{_AM}{_FEW}?(?:working (?:at|for|as)|studying|a \w+ ?(?:student|engineer|teacher|nurse|doctor"
        r"|developer|manager|artist|writer|designer|lawyer|chef))\b"
        r"|\bmy (?:job|work|company|business|career|degree|major|startup|shop|school|studies|thesis|commute)\b",
        stands=True,
    ),
    _frame(
        "dated",
        "fact",
        0.7,
        r"\b(?:my|our) (?:\w+ )?(?:appointment|meeting|birthday|anniversary|exam|interview|flight|wedding|deadline"
        rf"|surgery|reservation|graduation|trip|class)\b|{_I}\b.{{0,80}}\b(?:on|by|this|next) (?:{_PERIODS})\b",
    ),
    _frame(
        "decision",
        "fact",
        0.7,
        rf"{_I}{_FEW}?(?:decided|chose|choose|picked|settled|agreed|confirmed|committed|approve[ds]?|booked"
        r"|signed up)\b"
        r"|\b(?:i'll|i will|we'll|we will|let's|let us) (?:\w+ )?(?:go|take|stick|proceed|start|do|use|keep|lock)\b"
        r"|\boption (?:\d|[a-c]|one|two|three)\b|\bthe (?:first|second|third|last) (?:one|option|approach)\b",
    ),
    _frame(
        "plan",
        "fact",
        0.6,
        rf"{_AM}{_FEW}?(?:going to|planning|thinking (?:of|about)|hoping|about to|considering|aiming|preparing"
        r"|looking forward to|trying|gonna|training for|saving)\b"
        rf"|{_I}{_FEW}?(?:plan|plans|intend|hope|aim|want|need|have to|must|wish)\b|\b(?:i|we)(?:'ll| will)\b"
        r"|\b(?:i'd|i would|we'd) (?:\w+ )?(?:like|love) to\b",
    ),
    _frame(
        "goal",
        "fact",
        0.65,
        r"\b(?:my|our|the) (?:\w+ )?(?:goals?|aim|dream|target|objective|priority|plan|budget|kpis?)\b",
    ),
    _frame(
        "limit",
        "fact",
        0.65,
        rf"{_I}{_FEW}?(?:can't|cannot|can only|only have|don't have|won't|couldn't|refuse|struggle|lack|never)\b"
        r"|\b(?:must|needs? to|has to|have to|non-negotiable|no more than|at (?:most|least)|under|within|budget)\b",
    ),
    _frame(
        "possession",
        "fact",
        0.6,
        rf"{_I}{_FEW}?(?:have|own|bought|got|purchased|sold|adopted|received|built|made|created|wrote)\b",
    ),
    _frame(
        "state", "fact", 0.55, rf"{_AM}|{_I}{_FEW}?(?:feel|felt|think|believe|found|find|realized?|learned|learnt)\b"
    ),
    _frame("event", "fact", 0.6, rf"{_I}\b"),
    _frame("own", "fact", 0.55, r"\b(?:my|our|me|us)\b"),
)
ASKED = frozenset({"rule", "manner", "reminder", "name"})
"""Frames that ask something of the listener, and may do so in the imperative."""
DETAIL = _frame(
    "detail",
    "fact",
    0.55,
    r"\d|\b(?:must|needs? to|has to|have to|budget|deadline|priority|goal|target|non-negotiable|only|instead"
    r"|because)\b",
)
"""What is said beside the statements: without "I", but with a number, a limit or a reason."""

NOTED = _frame("noted", "note", 0.75, r"", stands=True)
"""What the speaker asked to be remembered, whatever it is about."""
SLOT = _frame("slot", "fact", 0.75, r"", stands=True)
"""One value of the speaker's, which another will replace: an age, a home, a number."""
KNOWN = _frame("known", "fact", 0.65, r"", stands=True)
"""About somebody whom a speaker has introduced."""
ANSWER = _frame("answer", "fact", 0.6, r"")
"""A few words that only the question before them makes a statement: "Tokio."."""
UNTASKED = frozenset({"noted", "slot", "known", "manner", "wish"})
"""Frames that count among tasks only in a turn that sets none."""
PLAIN = frozenset({"event", "limit", "possession", "dated"})
"""Frames that count beside a question in a talk of few turns."""
UNMIXED = frozenset({"slot", "manner"})
"""Frames that count among tasks only in a turn that does nothing else."""


def frame_of(lower: str) -> Frame | None:
    """The first frame the sentence fits; None when it says nothing of its speaker."""
    return next((frame for frame in FRAMES if frame.pattern.search(lower)), None)

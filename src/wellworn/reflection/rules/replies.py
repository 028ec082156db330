"""How a person takes what the assistant put before them: accepts it, turns it down, or just goes on.

Reads the opening of the reply only, where people say it.
"""

from __future__ import annotations

import re
from typing import Literal

Answer = Literal["accepts", "rejects", "goes on"]

_READ_CHARS = 160
_OPENING = re.compile(r"(?:[^\w]|(?:hmm|ah|oh|well|uh|hey|hello|hi|look|listen|thanks|thank you|finally|now)\b)*")
_GOOD = "it|good|great|perfect|exactly|fine|better|solid|clear|helpful|right|correct"
_ACCEPTS = re.compile(
    r"(?:yes|yeah|yep|yup|sure|ok|okay|alright|all right|right|perfect|great|good|excellent|fine|got it|understood"
    r"|exactly|sounds|agreed|solid|deal|done|brilliant|awesome|nice|love it|i like|i love|i accept|absolutely"
    r"|definitely|of course|confirmed|correct|makes sense|option \w+|the (?:first|second|third|last) (?:one|option)"
    rf"|that's (?:{_GOOD})|this is (?:{_GOOD})|(?:that|this) (?:works|sounds|looks|makes sense|helps)"
    r"|let's (?:go|do|start|proceed|get)|(?:i'll|i will) (?:take|go|try|do|start|use))\b"
)
_REJECTS = re.compile(
    r"(?:no\b(?!,? (?:problem|worries|questions|need))|nope|not (?:really|quite|exactly|that|this|yet)|i disagree|wrong"
    r"|i don't (?:want|like|need|think)|i do not|i can't (?:do|use|accept)|that's not|this is not|that isn't|this isn't"
    r"|that doesn't|this doesn't|stop|forget it|are you (?:serious|kidding)"
    r"|too (?:\w+ )?(?:much|long|expensive|complicated))\b"
)


def answer(text: str) -> Answer:
    """What the first words of a reply say to the turn before."""
    lower = text[:_READ_CHARS].lower().replace("’", "'")
    opening = _OPENING.match(lower)
    said = lower[opening.end() :] if opening else lower
    if _REJECTS.match(said):
        return "rejects"
    return "accepts" if _ACCEPTS.match(said) else "goes on"

"""What a person asks to be remembered, and how they want to be answered from now on.

"…, write that down" marks what was said right before it; "remember: …" what follows. The marked sentences lose the
request and count whatever they are about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from wellworn.reflection.rules.sentences import Sentence, sentences

_THAT = "(?:that|this|it)"
_BEHIND = re.compile(
    rf"(?:^|[,;:.–-]\s*|\s)(?:(?:and|so|but|also) )?(?:please )?(?:(?:can|could|would) you )?(?:please )?"
    rf"(?:write {_THAT} down|remember {_THAT}|note {_THAT}(?: down)?|make a note(?: of {_THAT})?|keep {_THAT} in mind"
    rf"|bear {_THAT} in mind|don't forget {_THAT}|take (?:a )?note(?: of {_THAT})?|save {_THAT})"
    r"(?: somewhere)?(?:,? for (?:next time|later|the future|me|the record))?(?:,? please)?$",
    re.IGNORECASE,
)
_AHEAD = re.compile(
    r"(?:please )?(?:(?:remember|note|keep in mind|bear in mind|don't forget|note to self|for the record)"
    r"(?:,? please)?(?: that |: ?|, )|for the record,? )(?=\S)",
    re.IGNORECASE,
)
_WISHED = re.compile(
    r"(?:can|could|would|will) you (?:please )?(?=.*\b(?:from now on|going forward|in (?:the )?future|always|never)\b)",
    re.IGNORECASE,
)
"""A rule put as a question."""
_SPEAKER = re.compile(r"(?:that )?(?:i|we|my|our)\b", re.IGNORECASE)
_MOST_BEFORE = 3
"""Sentences that a request alone in its sentence reaches back to."""


def heard(text: str) -> list[Sentence]:
    """The sentences of a turn, with those marked that are asked to be remembered, the request cut off."""
    found: list[Sentence] = []
    for sentence in sentences(text):
        wished = _WISHED.match(sentence.text)
        if wished is not None:
            sentence = replace(sentence, text=sentence.text[wished.end() :], end=".")
        behind, ahead = _BEHIND.search(sentence.text), _AHEAD.match(sentence.text)
        if behind is not None:
            kept = sentence.text[: behind.start()].rstrip(" ,;:–-")
            found = [*found, replace(sentence, text=kept, end=".", noted=True)] if kept else _marked(found)
        elif ahead is not None and not _SPEAKER.match(sentence.text, ahead.end()):
            rest = sentence.text[ahead.end() :]
            found.append(replace(sentence, text=rest[:1].upper() + rest[1:], noted=True))
        else:
            found.append(sentence)
    return found


def _marked(found: Sequence[Sentence]) -> list[Sentence]:
    first = max(0, len(found) - _MOST_BEFORE)
    return [replace(one, noted=True) if place >= first and one.end != "?" else one for place, one in enumerate(found)]

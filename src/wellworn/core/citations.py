"""The citation at the end of a model's answer: `[0, 2]` for the memories it used, `[NO_CITE]` for none.

Pure text. Only the end of an answer is read, and only what cannot well be anything else is taken for a citation: what
is wrongly learned costs more than what is missed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_MARKER = re.compile(r"\[\s*(?:(?P<places>[0-9]{1,3}(?:\s*,\s*[0-9]{1,3})*)|NO_CITE)\s*\]", re.IGNORECASE)
_LONGEST = 400
"""Characters of the longest marker that is looked for."""
_FENCE = re.compile(r"^ {0,3}(?:```+|~~~+)(?P<language>[^`\n]*)$", re.MULTILINE)
_FENCE_AT_END = re.compile(r"\n {0,3}(?:```+|~~~+)\Z")
_PROSE = frozenset({"", "text", "txt", "markdown", "md"})
_SENTENCE_ENDS = frozenset(".!?…。！？")
_CODE_BEFORE = frozenset("=([{,+*/\\<|&%^~")
"""Signs after which a bracket is a list or an index, not a citation."""


@dataclass(frozen=True, kw_only=True)
class Citation:
    """An answer without its marker, and the places it cites; None when there is nothing to learn."""

    text: str
    places: tuple[int, ...] | None


def read_citation(text: str, shown: int) -> Citation:
    """Read the marker that ends the answer, where `shown` memories were numbered from 0.

    Places come in the order written, without repeats; none cited is an empty tuple. A marker with a place that was not
    shown teaches nothing; when none of its places was shown it is not one, and stays in the text, as `[2024]` does.
    Text without a marker is given back as it is.
    """
    nothing = Citation(text=text, places=None)
    body = text.rstrip()
    closing = _FENCE_AT_END.search(body, max(0, len(body) - 16))
    fence = closing[0] if closing else ""
    body = body[: len(body) - len(fence)].rstrip()
    stop = "." if body.endswith("].") else ""
    body = body.removesuffix(stop) if stop else body
    found = _marker_at_end(body)
    if found is None:
        return nothing
    marker, before = found
    head = before.rstrip()
    if not _stands_alone(before, head) or not _outside_code(head, before, fenced=bool(fence)):
        return nothing
    places = tuple(dict.fromkeys(int(place) for place in (marker["places"] or "").split(",") if place.strip()))
    if places and not any(place < shown for place in places):
        return nothing
    if stop and (not head or head[-1] in _SENTENCE_ENDS):
        stop = ""
    left = head + stop + fence
    if read_citation(left, shown).text != left:  # two markers, one in a fence: who knows which is meant
        return nothing
    learnt = shown > 0 and all(place < shown for place in places)
    return Citation(text=left, places=places if learnt else None)


def _marker_at_end(body: str) -> tuple[re.Match[str], str] | None:
    """The marker that the text ends with, and what stands before it."""
    start = body.rfind("[", max(0, len(body) - _LONGEST))
    marker = _MARKER.fullmatch(body, start) if start >= 0 else None
    return None if marker is None else (marker, body[:start])


def _stands_alone(before: str, head: str) -> bool:
    """Not an index (`arr[0]`), a reference link (`[text][0]`), a list in code (`x = [0]`) or one of several markers."""
    if not head:
        return True
    spaced = len(before) > len(head)
    if not spaced and head[-1] not in _SENTENCE_ENDS:
        return False
    on_its_line = "\n" in before[len(head) :]
    if head[-1] in _CODE_BEFORE and not on_its_line:
        return False
    return _marker_at_end(head.removesuffix(".")) is None


def _outside_code(head: str, before: str, *, fenced: bool) -> bool:
    """Whether the marker is the answer's own, not the last line of a block of code.

    Inside a fence it is the answer's own only if the fence holds the whole answer as prose, and the marker has a line
    to itself.
    """
    fences = [*_FENCE.finditer(head)]
    if len(fences) % 2 == 0:
        return not fenced or not fences  # a fence closes after it that none has opened: a stray one, or a new block
    whole = not head[: fences[0].start()].strip() and len(fences) == 1
    prose = fences[0]["language"].strip().lower() in _PROSE and bool(head[fences[0].end() :].strip())
    return whole and prose and "\n" in before[len(head) :]

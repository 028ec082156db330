"""The citations in a model's answer: `[0, 2]` for the memories it used, `[NO_CITE]` for none.

Models write them at the end, inline, in a row, in bold, or after a label. One reader takes them all out, from a whole
answer or while it streams. Indexes, lists, links and everything in code stay as they are. Pure text. What is wrongly
learned costs more than what is missed: an answer in doubt teaches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_ITEM = r"#?[0-9]{1,3}(?:\s*[-–—]\s*[0-9]{1,3})?"
_MARKER = re.compile(
    r"[\[【［]\s*(?:(?:memory|memories)?\s*"
    rf"(?P<places>{_ITEM}(?:\s*(?:[,;，、&]|and)\s*{_ITEM})*)(?:†\w{{0,20}})?|NO\\?[_ -]?CITE)\s*[\]】］]",
    re.IGNORECASE,
)
_LONGEST = 400
"""Characters of the longest marker, and of the longest code span on a line, that are looked for."""
_BEGINNING = re.compile(r"[\[【［][\w\s,;，、&#†\\–—-]{0,400}\Z")
"""From a bracket to the end of the text: what may become a marker."""
_BETWEEN = re.compile(r"[ \t]{0,9}(?:[,;&]|and)?[ \t]{0,9}(?=[\[【［])")
_BETWEEN_BEGINNING = re.compile(r"[ \t]{0,9}(?:[,;&]|a|an|and)?[ \t]{0,9}\Z")
_SPECIAL = re.compile(r"[\[【［]|`+|~+")
_CLOSING = re.compile(r"[^ \t.*_)]|\Z")
"""What follows a group with its closing signs."""
_TRAILING = re.compile(r"[^\s.*_)`~]")
_NEXT = re.compile(r"\S")
_FENCE_ENDS = re.compile(r"\s*(?:`+|~+)?\s*\Z")
_MAX_WRAPPERS = 6
_WRAPPERS = {"(": ")", "*": "*", "_": "_"}
_PARENTHESIS = re.compile(r"\s*\([^\W\d_]{0,12}:?\Z")
"""The beginning of `(see [0])`."""
_LABEL_WORDS = frozenset(
    "citations citation cited cites cite sources source memories memory used references reference refs ref".split()  # noqa: SIM905
)
_LABEL = re.compile(
    rf"(?:^|(?<=[.!?…。])|(?=\n))(?P<label>\s*[*_(]*(?:\b(?:{'|'.join(sorted(_LABEL_WORDS))})\b ?){{1,3}}[*_]*[:：][*_]*)\Z",
    re.IGNORECASE,
)
_LABEL_BEGINNING = re.compile(
    r"(?:(?<=[.!?…。])|(?=\n))(?P<gap>\s*[*_(]*)(?P<words>[a-z]+(?: [a-z]*){0,2})[*_]*[:：]?[*_]*\Z", re.IGNORECASE
)
_VALUE = re.compile(r"\b(?:is|was|equals?|list|array|tuple|vector|returns?|prints?|index)\Z", re.IGNORECASE)
_VALUES = re.compile(
    r"\b(?:are|were|be|lists|arrays|outputs?|gives|yields|range|interval|indices|indexes|values?)\Z", re.IGNORECASE
)
"""Words before a bracket that is a value, not a citation; the second ones before several numbers."""
_EMPHASIS = re.compile(r"(?<=[^\s*_])[*_]+\Z")
_CODE_BEFORE = frozenset("=([{,+*/\\<&%^~")
_BULLET = re.compile(r"(?:^|\n)\s*[*+>-]\Z")
_INDEXED = re.compile(r"[A-Za-z0-9_)\]}\"'$]\Z")
_SENTENCE_ENDS = frozenset(".!?…。！？")
_PROSE = frozenset({"", "text", "txt", "markdown", "md"})
_MEMORY_CHARS = 80
"""How much of the text before a marker is looked at."""

Reading = Literal["citation", "doubtful", "text"]


@dataclass(frozen=True, kw_only=True)
class Citation:
    """An answer without its markers, and the places it cites; None when there is nothing to learn."""

    text: str
    places: tuple[int, ...] | None


def read_citation(text: str, shown: int) -> Citation:
    """Read the markers of an answer, where `shown` memories were numbered from 0.

    Places come in the order written, without repeats; none cited is an empty tuple. A place that was not shown, a
    marker beside `[NO_CITE]`, and a number that may or may not be a citation make the answer teach nothing. Text
    without a marker is given back as it is.
    """
    reader = CitationReader(shown)
    start = reader.take(text)
    rest, places = reader.finish()
    return Citation(text=start + rest, places=places)


class CitationReader:
    """Reads one answer while it streams: only text that may belong to a citation waits."""

    def __init__(self, shown: int) -> None:
        self._shown = shown
        self._waiting = ""
        self._before = ""
        """The end of what was let through."""
        self._said = False
        self._fence: _Fence | None = None
        self._cited: dict[int, None] = {}
        self._none = self._doubt = False

    def take(self, piece: str) -> str:
        """Take the next piece and return what can be shown now."""
        return self._read(self._waiting + piece, last=False)

    def finish(self) -> tuple[str, tuple[int, ...] | None]:
        """Return the rest to show, now that the answer is whole, and the places it cites."""
        rest = self._read(self._waiting, last=True)
        sure = self._shown > 0 and not self._doubt and self._none is not bool(self._cited)
        return rest, tuple(self._cited) if sure else None

    def _read(self, text: str, *, last: bool) -> str:
        out: list[str] = []
        at = 0
        while at < len(text):
            fence = self._fence
            step = self._in_prose(text, at, last) if fence is None else self._in_fence(fence, text, at, last)
            at = step.end
            if step.visible:
                out.append(step.visible)
                self._before = self._with(step.visible, 0, len(step.visible))
                self._said = self._said or bool(step.visible.strip())
            if step.waits:
                break
        self._waiting = text[at:]
        return "".join(out)

    def _with(self, text: str, at: int, end: int) -> str:
        """The end of what the user would see if text[at:end] were let through."""
        return (self._before + text[max(at, end - _MEMORY_CHARS) : end])[-_MEMORY_CHARS:]

    # -- prose ---------------------------------------------------------------------------------------------------

    def _in_prose(self, text: str, at: int, last: bool) -> _Step:
        special = _SPECIAL.search(text, at)
        if special is None:
            return _Step(text[at:], len(text)) if last else self._until(text, at, len(text))
        if special[0][0] in "`~":
            return self._code(text, at, special, last)
        group = _group_at(text, at, special.start(), last=last)
        if group is None:
            return self._until(text, at, special.start())
        reading = self._reading(text, at, group)
        if reading != "citation":
            self._doubt = self._doubt or reading == "doubtful"
            return _Step(text[at : group.last], group.last)
        self._note(group.markers, group.places)
        return self._without(text, at, group)

    def _until(self, text: str, at: int, end: int) -> _Step:
        """Let through what stands before `end`, but not what would go with a marker there; wait for more."""
        kept = _without_opening(text, at, end)
        seen = self._with(text, at, kept)
        label = _LABEL_BEGINNING.search(seen)
        if label is not None and _may_be_label(label["words"]):
            kept -= len(seen) - label.start("gap")
        elif found := _PARENTHESIS.search(seen):
            kept -= len(seen) - found.start()
        kept = max(at, kept)
        return _Step(text[at:kept], kept, waits=True)

    def _reading(self, text: str, at: int, group: _Group) -> Reading:
        """What a group of markers is, by what stands around it."""
        if not group.places:
            return "citation" if group.markers else "text"
        before, after = self._with(text, at, group.start), text[group.end : group.end + 1]
        own_line = "\n" in text[group.start : group.opening] or not before.strip() or before.endswith("\n")
        if (after.isascii() and (after.isalnum() or after in ("+", "{", "=", "_"))) or (after == ":" and own_line):
            return "doubtful"  # a pattern, an index, or a list of links
        ends = _TRAILING.search(text, group.end) is None
        known = [place < self._shown for place in group.places]
        if not any(known) or (not all(known) and (group.has_range or not ends)):
            return "doubtful"
        if _LABEL.search(before):
            return "citation"
        if before.endswith((":", "：", ",")) and group.start < group.opening:  # a value, or the source of what follows
            return "citation" if _after(text, group.end).isalpha() else "doubtful"
        if own_line or _BULLET.search(before):
            return "citation"
        if group.start == group.opening and _INDEXED.search(before):
            return "doubtful"
        bare = _EMPHASIS.sub("", before)
        value = _VALUE.search(bare) or (len(group.places) > 1 and _VALUES.search(bare))
        return "doubtful" if bare[-1:] in _CODE_BEFORE or value else "citation"

    def _note(self, markers: Sequence[re.Match[str]], places: Sequence[int]) -> None:
        self._none = self._none or any(marker["places"] is None for marker in markers)
        self._doubt = self._doubt or any(place >= self._shown for place in places)
        self._cited |= dict.fromkeys(places)

    def _without(self, text: str, at: int, group: _Group) -> _Step:
        """Leave out a group, with its label, and with one of the spaces or stops around it."""
        start, end = group.start, group.end
        before, gap = self._with(text, at, start), text[start : group.opening]
        label = _LABEL.search(before)
        if label is not None and _after(text, end) in ("", "\n"):
            if before[: label.start("label")].strip():  # an answer is more than its label
                newline = text.find("\n", end)
                head = text[at : max(at, start - len(label["label"]))]
                return _Step(head, newline if newline >= 0 and _NEXT.search(text, newline) else len(text))
        elif text[end : end + 1] == ")" and (found := _PARENTHESIS.search(before)) and found[0].strip() != "(":
            start, end = max(at, start - len(found[0])), end + 1
        head = text[at:start]
        shown = self._with(text, at, start).rstrip()
        if text[end : end + 1] == "." != text[end + 1 : end + 2] and (not shown or shown[-1] in _SENTENCE_ENDS):
            end += 1
        follows = _NEXT.search(text, end)
        if follows is None:
            return _Step(head, len(text))
        if not shown:
            return _Step(head.rstrip(), follows.start())
        if "\n" in gap and text[end] in " \t":  # at the beginning of a line
            newline = text.find("\n", end, follows.start())
            return _Step(head + gap, follows.start() if newline < 0 else newline)
        return _Step(head, end)

    # -- code ----------------------------------------------------------------------------------------------------

    def _code(self, text: str, at: int, run: re.Match[str], last: bool) -> _Step:
        """Pass a code span, or enter a fence."""
        wait = self._until(text, at, run.start())
        if run.end() == len(text) and not last:
            return wait
        line = self._with(text, at, run.start()).rsplit("\n", 1)[-1]
        newline = text.find("\n", run.end(), run.end() + _LONGEST)
        info = text[run.end() : run.end() + _LONGEST if newline < 0 else newline]
        unfinished = not last and newline < 0 and len(info) < _LONGEST
        if len(run[0]) >= 3 and len(line) <= 3 and not line.strip() and "`" not in info:
            if unfinished:
                return wait
            prose = not self._said and not text[at : run.start()].strip() and info.strip().lower() in _PROSE
            self._fence = _Fence(mark=run[0], prose=prose)
            end = newline + 1 if newline >= 0 else run.end() + len(info)
            return _Step(text[at:end], end)
        if run[0][0] == "~":
            return _Step(text[at : run.end()], run.end())
        closing = re.search(rf"(?<!`){run[0]}(?!`)", info)
        if unfinished and (closing is None or closing.end() == len(info)):
            return wait
        end = run.end() + (0 if closing is None else closing.end())
        return _Step(text[at:end], end)

    def _in_fence(self, fence: _Fence, text: str, at: int, last: bool) -> _Step:
        """Let a line of code through. A marker on the last line of an answer that is all one fence is a citation."""
        newline = text.find("\n", at)
        end = newline + 1 if newline >= 0 else len(text)
        line, whole = text[at:end], newline >= 0 or last
        said = line.strip()
        if fence.begun:  # the rest of a line whose beginning was let through
            fence.begun = newline < 0
            return _Step(line, end)
        readable = fence.prose and fence.lines
        if not whole and (not said.strip("`~") or (readable and _BEGINNING.match(said.rstrip("].")))):
            return _Step("", at, waits=True)
        if whole and said.startswith(fence.mark) and not said.strip(fence.mark[0]) and not line.startswith("    "):
            self._fence = None
            end = at + len(line.removesuffix("\n"))
            return _Step(text[at:end], end)
        marker = _MARKER.fullmatch(said.removesuffix(".")) if readable else None
        if marker is not None:
            places = _places_of([marker])[0]
            ends = _FENCE_ENDS.match(text, end)
            if ends is not None and not last:
                return _Step("", at, waits=True)
            if ends is not None and (not places or any(place < self._shown for place in places)):
                self._note([marker], places)
                return _Step(ends[0].strip(), len(text))
            self._doubt = True
        fence.lines = fence.lines or bool(said)
        fence.begun = not whole
        return _Step(line, end)


@dataclass(frozen=True)
class _Step:
    """What is let through, and how far the text was read."""

    visible: str
    end: int
    waits: bool = False


@dataclass(kw_only=True)
class _Fence:
    """A block of code: its mark, whether it may hold the whole answer, and what was read of it."""

    mark: str
    prose: bool
    lines: bool = False
    begun: bool = False


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Markers in a row. text[start:opening] is the space before them, text[opening:end] they with their wrapping."""

    markers: list[re.Match[str]]
    last: int
    """Where the last bracket ends."""
    start: int = 0
    opening: int = 0
    end: int = 0

    @property
    def places(self) -> list[int]:
        return _places_of(self.markers)[0]

    @property
    def has_range(self) -> bool:
        return _places_of(self.markers)[1]


def _group_at(text: str, at: int, bracket: int, *, last: bool) -> _Group | None:
    """The group at a bracket, without markers if it is none; None if more text must come first."""
    markers: list[re.Match[str]] = []
    end = bracket
    while marker := _MARKER.match(text, end, end + _LONGEST):
        markers.append(marker)
        between = _BETWEEN.match(text, marker.end())
        end = marker.end() if between is None else between.end()
        if between is None:
            break
    if not last and (_BEGINNING.match(text, end) or (markers and _BETWEEN_BEGINNING.match(text, end))):
        return None
    if markers and text[markers[-1].end() : markers[-1].end() + 1] == "(":
        link = markers.pop()  # [1](https://…)
        if not markers:
            return _Group(markers=[], last=link.end())
    if not markers:
        return _Group(markers=[], last=bracket + 1)
    final, opening, closing = markers[-1].end(), bracket, ""
    while opening > at and len(closing) < _MAX_WRAPPERS and text[opening - 1] in _WRAPPERS:
        opening -= 1
        closing += _WRAPPERS[text[opening]]
    if not text.startswith(closing, final):
        opening, closing = bracket, ""
    end = final + len(closing)
    if not last and _TRAILING.search(text, final) is None:
        return None
    start = _without_space(text, at, opening)
    return _Group(markers=markers, last=final, start=start, opening=opening, end=end)


def _after(text: str, end: int) -> str:
    """The sign after a group and what closes around it; empty at the end."""
    found = _CLOSING.search(text, end)
    return "" if found is None else found[0]


def _places_of(markers: Sequence[re.Match[str]]) -> tuple[list[int], bool]:
    """The places that markers name, in order, and whether they name a range."""
    places: list[int] = []
    ranged = False
    for marker in markers:
        for first, end in re.findall(r"([0-9]+)(?:\s*[-–—]\s*([0-9]+))?", marker["places"] or ""):
            ranged = ranged or bool(end)
            places += range(int(first), max(int(first), int(end or first)) + 1)
    return places, ranged


def _without_space(text: str, at: int, end: int) -> int:
    while end > at and text[end - 1].isspace():
        end -= 1
    return end


def _without_opening(text: str, at: int, end: int) -> int:
    """Where the text ends without what may belong to a marker after it: space, and signs that wrap it."""
    end = _without_space(text, at, end)
    for _ in range(_MAX_WRAPPERS):
        if end > at and text[end - 1] in _WRAPPERS:
            end -= 1
    return _without_space(text, at, end)


def _may_be_label(words: str) -> bool:
    *whole, last = words.lower().split(" ")
    return set(whole) <= _LABEL_WORDS and any(word.startswith(last) for word in _LABEL_WORDS)

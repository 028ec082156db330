"""The citations in a model's answer: `[0, 2]` for the memories it used, `[NO_CITE]` for none.

Models write them at the end, inline, in a row, in bold, or after a label. One reader takes them all out, from a whole
answer or while it streams. Indexes, lists, links and everything in code stay as they are. Pure text. What is wrongly
learned costs more than what is missed: an answer in doubt teaches nothing.
"""

from __future__ import annotations

import re

from wellworn.core.dataclass import dataclass
from wellworn.core.lazy import regex

_WINDOW = 80
"""How many characters before a marker are looked at."""
_LONGEST = 400
"""Characters of the longest row of markers, and of the longest code span, that are looked for."""

_ITEM = r"#?[0-9]{1,3}(?:\s*[-–—]\s*[0-9]{1,3})?"
_MARKER = (
    rf"[\[【［]\s*(?:(?:memory|memories)?\s*{_ITEM}(?:\s*(?:[,;，、&]|and)\s*{_ITEM})*(?:†\w{{0,20}})?"
    r"|NO\\?[_ -]?CITE)\s*[\]】］]"
)
_GROUP = regex(rf"{_MARKER}(?:[ \t]{{0,9}}(?:[,;&]|and)?[ \t]{{0,9}}{_MARKER})*", re.I)
_PLACES = regex(r"([0-9]+)(?:\s*[-–—]\s*([0-9]+))?")
_BEGINNING = r"[\[【［][\w\s,;，、&#†\\–—-]{0,400}\Z"
_MAY_BECOME_GROUP = regex(_BEGINNING)
_MAY_GO_ON = regex(rf"[\s.*_)]{{0,99}}(?:[,;&]|a|an|and)?\s{{0,9}}(?:{_BEGINNING}|\Z)")
"""After a group: what follows it is not known yet."""
_SPECIAL = regex(r"[\[【［]|`+|~+")

_LABEL_WORDS = ("citations", "citation", "cited", "sources", "source", "references", "memories", "memory", "used")
_WORD = "|".join(_LABEL_WORDS)
_WORD_BEGINNING = "|".join(sorted({word[:n] for word in _LABEL_WORDS for n in range(1, len(word))}, reverse=True))
_LABEL_START = r"(?:^|(?<=[.!?…。])|(?=\n))\s*[*_(]*"
_OPENING = r"(?:\([a-z]{0,8}:? )?[(*_]{0,6}"
_LEAD = regex(rf"(?P<label>{_LABEL_START}(?:(?:{_WORD}) ?){{1,3}}[*_]*[:：][*_]*)?\s*(?P<opening>{_OPENING})\Z", re.I)
"""What goes with a marker that follows, if only nothing: a label, space, signs that wrap the marker, `(see`."""
_MAY_LEAD = regex(
    rf"(?:{_LABEL_START}(?:(?:{_WORD}) ?){{0,3}}(?:{_WORD_BEGINNING})?[*_]*[:：]?[*_]*)?"
    rf"\s*(?:{_OPENING}|\([a-z]{{0,8}}:?)\Z",
    re.I,
)
_CLOSING = {"(": ")", "*": "*", "_": "_"}
_AFTER = regex(r"[ \t.*_)]*")

_INDEXED = regex(r"[A-Za-z0-9_)\]}\"'$]\Z")
_BEFORE_CODE = regex(r"(?:[=(\[{]|\b(?:list|array|tuple|vector|range|index|indices))\Z", re.I)
_BEFORE_VALUE = regex(r"(?:[:：,]|\b(?:is|are|was|were|be|equals?|returns?|prints?|gives|outputs?))\Z", re.I)
"""Before a value, or before the source of what follows: then a letter comes next."""
_PAIR = regex(r"\[\d+, ?\d+\]")
"""Within a sentence it is an interval rather than a citation: "f maps [0, 1] to itself"."""
_SENTENCE_ENDS = tuple(".!?…。！？")


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
        self._fence = ""
        """What ends the block of code that is being read."""
        self._cited: dict[int, None] = {}
        self._none = self._doubt = False
        self._removed = False
        """Whether nothing but space was let through since the last marker."""

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
        at, waits = 0, False
        while at < len(text) and not waits:
            stop, end, waits = (self._in_fence if self._fence else self._in_prose)(text, at, last)
            if visible := text[at:stop]:
                out.append(visible)
                self._before = (self._before + visible[-_WINDOW:])[-_WINDOW:]
            self._removed = end > stop or (self._removed and not visible.strip())
            at = end
        self._waiting = text[at:]
        return "".join(out)

    # Each step says up to where the text is let through, where the next step begins, and whether to wait for more text.

    def _in_prose(self, text: str, at: int, last: bool) -> tuple[int, int, bool]:
        special = _SPECIAL.search(text, at)
        if special is None:
            blank = self._removed and not text[at:].strip()  # it goes with the marker before it
            return (at if blank else len(text), len(text), False) if last else self._until(text, at, len(text))
        start, group = special.start(), None
        if special[0][0] in "`~":
            step = self._code(text, at, special, last)
        else:
            group = _GROUP.match(text, start, start + _LONGEST)
            open_ended = _MAY_GO_ON.match(text, group.end()) if group else _MAY_BECOME_GROUP.match(text, start)
            step = start + 1 if last or not open_ended else -1
        if step < 0:
            return self._until(text, at, start)
        return (step, step, False) if group is None else (*self._marked(text, at, group), False)

    def _until(self, text: str, at: int, end: int) -> tuple[int, int, bool]:
        """Let through what stands before `end`, but not what would go with a marker there."""
        seen = self._seen(text, at, end)
        stop = max(at, end - len(seen) + next(_MAY_LEAD.finditer(seen)).start())
        return stop, stop, True

    def _seen(self, text: str, at: int, end: int) -> str:
        """The end of what the user would see if text[at:end] were let through."""
        return (self._before + text[max(at, end - _WINDOW) : end])[-_WINDOW:]

    def _code(self, text: str, at: int, run: re.Match[str], last: bool) -> int:
        """Enter a block of code, or pass a code span, which ends on its line; -1 if its end must come first."""
        start, limit = run.end(), run.end() + _LONGEST
        if start == len(text) and not last:
            return -1
        if len(run[0]) >= 3 and not self._seen(text, at, run.start()).rpartition("\n")[2].strip():
            self._fence = run[0]
        if self._fence or run[0][0] == "~":
            return start
        line = text.find("\n", start, limit)
        closing = text.find(run[0], start, limit if line < 0 else line)
        if closing >= 0:
            return closing + len(run[0])
        return start if last or line >= 0 or len(text) >= limit else -1

    def _in_fence(self, text: str, at: int, last: bool) -> tuple[int, int, bool]:
        end = text.find(self._fence, at) + len(self._fence)
        if end >= len(self._fence):
            self._fence = ""
            return end, end, False
        end = len(text) if last else max(at, len(text.rstrip(self._fence[0])))
        return end, end, not last

    # -- markers -------------------------------------------------------------------------------------------------

    def _marked(self, text: str, at: int, group: re.Match[str]) -> tuple[int, int]:
        """Take markers out with what goes with them, or let them through."""
        seen, end = self._seen(text, at, group.start()), group.end()
        lead, after = next(_LEAD.finditer(seen)), next(_AFTER.finditer(text, end)).end()
        follows = text[after : after + 1]
        closing = "".join(_CLOSING.get(sign, "") for sign in reversed(lead["opening"]))
        opening, label = len(seen), lead["label"] is not None and follows in ("", "\n")
        if label:
            opening, end = lead.start(), after
        elif text.startswith(closing, end):
            opening, end = lead.start("opening"), end + len(closing)
        before = seen[:opening].rstrip()
        gap = seen[len(before) : opening]
        start = max(at, group.start() - len(seen) + len(before))
        own_line, next_sign = "\n" in gap or not before, text[end : end + 1]
        places = self._places(group[0])
        if places and next_sign == "(":  # a link
            return group.end(), group.end()
        if places and not (
            any(place < self._shown for place in places)
            and not re.match(r"[A-Za-z0-9+{=_]", next_sign)
            and not (next_sign == ":" and own_line)
            and (label or not _BEFORE_VALUE.search(before) or follows.isalpha())
            and (label or own_line or not _BEFORE_CODE.search(before))
            and (label or bool(gap) or not _INDEXED.search(before))
            and not (_PAIR.fullmatch(group[0]) and follows.islower() and not before.endswith(_SENTENCE_ENDS))
        ):
            self._doubt = True
            return group.end(), group.end()
        self._none = self._none or "cite" in group[0].lower()
        self._doubt = self._doubt or any(place >= self._shown for place in places)
        self._cited |= dict.fromkeys(places)
        if next_sign == "." != text[end + 1 : end + 2] and (not before or before.endswith(_SENTENCE_ENDS)):
            end += 1
        rest = text[end : end + _WINDOW]
        if not before:  # at the beginning
            return at, end + len(rest) - len(rest.lstrip())
        if "\n" in gap and rest.lstrip(" \t") != rest and rest.lstrip(" \t")[:1] not in ("", "\n"):
            return start + len(gap), end + len(rest) - len(rest.lstrip(" \t"))  # at the beginning of a line
        return start, end

    def _places(self, markers: str) -> list[int]:
        """The places that markers name, in order. A range that was not shown names one that was not."""
        places: list[int] = []
        for first, end in _PLACES.findall(markers):
            places += range(int(first), int(end or first) + 1) if int(end or first) < self._shown else [self._shown]
        return places

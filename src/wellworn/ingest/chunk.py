"""Long texts in pieces that can be recalled one by one.

A piece aims at 200 to 300 tokens and never has more than 500. It ends before a heading or at a paragraph where one is
in that range, else at a sentence, else at a word, and only inside a word when there is nothing else. A code fence is
never cut: one that is longer than a piece is closed and opened again. A piece that begins within a section begins with
the section's heading and the end of the piece before, so that a sentence is not torn from what it refers to. Takes
time in proportion to the text, whatever the text. Knows nothing about entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wellworn.core.dataclass import dataclass
from wellworn.core.lazy import regex
from wellworn.core.wellformed import count_tokens

LEAST_TOKENS = 200
"""From this size on a piece ends before the next heading, or at a paragraph."""
TARGET_TOKENS = 250
MOST_TOKENS = 300
MAX_TOKENS = 500
LEAST_OVERLAP_TOKENS, MOST_OVERLAP_TOKENS = 20, 60
STEP = " › "
"""Between the headings of a path."""

# Possessive (`++`, `*+`): what was read is not given back, so a million full stops are read once.
_PARAGRAPH_END = regex(r"\n[ \t]*+\n\s*+")
_SENTENCE_END = regex(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?:\s++|\Z)"  # a run of marks, then space
    r"|[。！？]++[”’』」]*+\s*+"  # marks that no space follows
    r"|\n\s*+"
)
_WORD = regex(r"\S++\s*+|\s++")
_LINE = regex(r"\n")
_BLOCK = regex(
    r"^ {0,3}(?P<fence>`{3,}+|~{3,4}+)(?P<info>[^`\n]*+)\n(?s:.*?)(?:^ {0,3}(?P=fence)[`~]*+[ \t]*+$\n?|\Z)\s*+"
    r"|^(?P<marks>#{1,6})[ \t]++(?P<name>[^\n]++)\n?\s*+"
    r"|(?:(?<=\n\n)|\A)(?P<over>\S[^\n]{0,200})\n(?P<line>={3,}+|-{3,}+|~{3,}+|\^{3,}+)[ \t]*+$\s*+",
    re.MULTILINE,
)
"""A code fence, or a heading in one of the two ways to write it."""
_MARKUP = regex(r"<[^>]*>|\]\([^)]*\)|[\[\]`*]")
"""What a heading's name is shown without: tags, the targets of links, emphasis."""
_LEVELS = {"=": 1, "-": 2, "~": 3, "^": 4}


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A piece: `own` is its share of the text, verbatim; `text` has the heading and the overlap before it; `heading` is
    the path of headings that it stands under."""

    text: str
    own: str
    heading: str = ""


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A heading, a code fence, a sentence, or a run of words or lines of a very long one."""

    text: str
    tokens: int
    ends_paragraph: bool = False
    path: tuple[str, ...] = ()
    heading: bool = False
    fence: tuple[str, str] | None = None
    """What opens and closes a run of lines of a fence that is too long for one piece."""


def is_short(text: str) -> bool:
    """Whether a text is one piece."""
    return len(text) <= MOST_TOKENS or count_tokens(text) <= MOST_TOKENS  # a character is one token at most


def chunk(text: str) -> list[Chunk]:
    """The pieces in order; joining every `own` gives the text back exactly."""
    if is_short(text):
        return [Chunk(text=text, own=text)]
    chunks: list[Chunk] = []
    for piece in _packed(_parts(text)):
        own, first = _text(piece), piece[0]
        tokens = sum(part.tokens for part in piece)
        lead = "" if first.heading or not chunks else _lead(first, chunks[-1].own, tokens)
        if own.startswith(("```", "~~~", "|", "- ", "* ")):  # what must begin a line
            lead = lead.rstrip() + "\n\n" if lead else ""
        opening, closing = first.fence or (lead, "")
        chunks.append(Chunk(text=opening + own + closing, own=own, heading=STEP.join(first.path)))
    return chunks


def _parts(text: str) -> Iterator[_Part]:
    place, path = 0, dict[int, str]()
    for block in _BLOCK.finditer(text):
        yield from _prose(text[place : block.start()], tuple(path.values()))
        place = block.end()
        if block["fence"]:
            yield from _fence(block, tuple(path.values()))
        else:
            level = len(block["marks"]) if block["marks"] else _LEVELS[block["line"][0]]
            name = _MARKUP.sub("", (block["name"] or block["over"])[:400]).strip(" \t#*`")
            path = {above: heading for above, heading in path.items() if above < level} | {level: name}
            for run in _short_enough(block[0]):
                yield _Part(text=run, tokens=count_tokens(run), path=tuple(path.values()), heading=True)
    yield from _prose(text[place:], tuple(path.values()))


def _prose(text: str, path: tuple[str, ...]) -> Iterator[_Part]:
    for paragraph in _split(text, _PARAGRAPH_END):
        sentences = [part for sentence in _split(paragraph, _SENTENCE_END) for part in _short_enough(sentence)]
        for number, sentence in enumerate(sentences, start=1):
            last = number == len(sentences)
            yield _Part(text=sentence, tokens=count_tokens(sentence), ends_paragraph=last, path=path)


def _fence(block: re.Match[str], path: tuple[str, ...]) -> Iterator[_Part]:
    """A fence as one part; as runs of its lines where it is too long."""
    tokens = count_tokens(block[0])
    if tokens <= MAX_TOKENS - MOST_OVERLAP_TOKENS:
        yield _Part(text=block[0], tokens=tokens, ends_paragraph=True, path=path)
        return
    opening, closing = f"{block['fence']}{block['info'].rstrip()[:40]}\n", f"\n{block['fence']}"
    runs = [""]
    for line in _split(block[0], _LINE):
        for run in _short_enough(line):
            if count_tokens(runs[-1]) + count_tokens(run) > MOST_TOKENS:
                runs.append("")
            runs[-1] += run
    for number, run in enumerate(runs):
        fence = (opening if number else "", closing if number < len(runs) - 1 else "")
        yield _Part(text=run, tokens=count_tokens(run), ends_paragraph=True, path=path, fence=fence)


def _split(text: str, end: re.Pattern[str]) -> Iterator[str]:
    """The text cut after every match; nothing is lost, nothing is empty."""
    start = 0
    for match in end.finditer(text):
        if match.end() > start:
            yield text[start : match.end()]
            start = match.end()
    if start < len(text):
        yield text[start:]


def _short_enough(sentence: str) -> list[str]:
    """The sentence, or runs of its words up to the target; a word beyond that is cut."""
    if count_tokens(sentence) <= TARGET_TOKENS:
        return [sentence]
    runs: list[str] = []
    room = 0
    for word in _WORD.findall(sentence):
        cost = count_tokens(word)
        if cost > TARGET_TOKENS:
            runs += [word[start : start + TARGET_TOKENS] for start in range(0, len(word), TARGET_TOKENS)]
            room = 0
        elif runs and cost <= room:
            runs[-1] += word
            room -= cost
        else:
            runs.append(word)
            room = TARGET_TOKENS - cost
    return runs


def _packed(parts: Iterator[_Part]) -> list[list[_Part]]:
    """Parts joined into pieces: closed before a heading or at a paragraph's end from 200 tokens on, at a sentence's from
    250."""
    pieces: list[list[_Part]] = [[]]
    size = 0
    for part in parts:
        last = pieces[-1][-1] if pieces[-1] else None
        alone = part.fence or (last and last.fence)
        full = part.heading and not (last and last.heading) and size >= LEAST_TOKENS
        if last and (alone or full or size + part.tokens > MOST_TOKENS):
            pieces.append([])
            size = 0
        pieces[-1].append(part)
        size += part.tokens
        if not part.heading and size >= (LEAST_TOKENS if part.ends_paragraph else TARGET_TOKENS):
            pieces.append([])
            size = 0
    pieces = [piece for piece in pieces if piece]
    for number in range(len(pieces) - 1, 0, -1):  # nothing but space goes to the piece before
        if not _text(pieces[number]).strip():
            pieces[number - 1] += pieces.pop(number)
    return pieces


def _text(piece: list[_Part]) -> str:
    return "".join(part.text for part in piece)


def _lead(first: _Part, before: str, tokens: int) -> str:
    """What a piece within a section begins with: the section's heading and the end of the piece before."""
    heading = f"{first.path[-1]}\n\n" if first.path and count_tokens(first.path[-1]) <= LEAST_OVERLAP_TOKENS else ""
    room = min(max(TARGET_TOKENS - tokens, LEAST_OVERLAP_TOKENS), MOST_OVERLAP_TOKENS) - count_tokens(heading)
    after_fence = max((block.end() for block in _BLOCK.finditer(before) if block["fence"]), default=0)
    return heading + _tail(before[after_fence:], min(room, MAX_TOKENS - tokens - count_tokens(heading)))


def _tail(piece: str, room: int) -> str:
    """The last sentence of a piece if there is room for it, else its last words."""
    sentences = [sentence for sentence in _split(piece, _SENTENCE_END) if sentence.strip()]
    if sentences and count_tokens(sentences[-1]) <= room:
        return sentences[-1].rstrip() + " "
    words: list[str] = []
    for word in reversed(piece[-20 * MOST_OVERLAP_TOKENS :].split()):
        room -= count_tokens(word)
        if room < 0:
            break
        words.insert(0, word)
    return " ".join(words) + " " if words else ""

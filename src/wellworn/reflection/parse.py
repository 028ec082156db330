"""A model's answers, read with suspicion: whatever comes, what leaves here is well-formed or counted as dropped.

{"extracted_memories": [{"summary": "…", "reference": [0, 2]}]}   or the single word NO_TRAIT
0: Add()    1: Merge(2, "…")    2: Supersede(0)    3: Correct(1)  one action per line
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import ReplyUnreadable
from wellworn.core.lazy import regex
from wellworn.core.values import Kind
from wellworn.core.wellformed import one_line
from wellworn.models.structured import read_json
from wellworn.reflection.values import Candidate

NOTHING = "NO_TRAIT"
MAX_SUMMARY_CHARS = 600
MOST_MEMORIES = 24
"""Memories from one window at most; what comes beyond is dropped and counted."""
MODEL_CONFIDENCE = 0.8
_KINDS: dict[str, Kind] = {"fact": "fact", "preference": "preference", "pattern": "pattern"}
_DIGITS = regex(r"\d{1,9}")

ActionName = Literal["add", "merge", "supersede", "correct"]


def read_memories(answer: str, numbers: Collection[int]) -> tuple[list[Candidate], Counter[str]]:
    """The memories of an extraction, and what was dropped by reason.

    `numbers` are the turns that may be referred to. `ReplyUnreadable` when nothing can be read at all.
    """
    if answer.strip().strip("\"'`.").upper() == NOTHING:
        return [], Counter()
    dropped: Counter[str] = Counter()
    found: list[Candidate] = []
    for item in _items(answer):
        candidate = _candidate(item, numbers, dropped)
        if candidate is None:
            continue
        if len(found) >= MOST_MEMORIES:
            dropped["too many"] += 1
        else:
            found.append(candidate)
    return found, dropped


def _items(answer: str) -> list[Any]:
    try:
        value: Any = read_json(answer, wants=("extracted_memories",))
    except ReplyUnreadable:
        if NOTHING in answer:  # a sentence around the word
            return []
        raise
    if isinstance(value, Mapping):
        value = value.get("extracted_memories", value.get("memories", value if "summary" in value else None))
    if isinstance(value, Mapping):
        value = [value]
    if isinstance(value, list):
        return value
    if NOTHING in answer:
        return []
    raise ReplyUnreadable("the model's answer has no list of memories")


def _candidate(item: object, numbers: Collection[int], dropped: Counter[str]) -> Candidate | None:
    if not isinstance(item, Mapping) or not isinstance(item.get("summary"), str):
        dropped["no summary"] += 1
        return None
    summary = one_line(item["summary"])
    if not summary or summary.strip(".").upper() == NOTHING:
        dropped["no summary"] += 1
        return None
    if len(summary) > MAX_SUMMARY_CHARS:
        dropped["too long"] += 1
        return None
    turns = tuple(dict.fromkeys(n for n in _references(item.get("reference")) if n in numbers))
    if not turns:
        dropped["no evidence"] += 1
        return None
    speaker = item.get("speaker")
    return Candidate(
        summary=summary,
        turns=turns,
        kind=_KINDS.get(str(item.get("kind", "")).lower(), "fact"),
        speaker=one_line(speaker)[:100] or None if isinstance(speaker, str) else None,
        confidence=MODEL_CONFIDENCE,
    )


def _references(value: object, depth: int = 0) -> Iterator[int]:
    """Turn numbers in whatever form: 2, "2", "Turn 2", [0, [2]]."""
    if isinstance(value, bool) or depth > 3:
        return
    if isinstance(value, int):
        yield value
    elif isinstance(value, float) and value.is_integer():
        yield int(value)
    elif isinstance(value, str):
        yield from (int(digits) for digits in _DIGITS.findall(value[:200]))
    elif isinstance(value, list):
        for one in value[:200]:
            yield from _references(one, depth + 1)


@dataclass(frozen=True, kw_only=True)
class Action:
    """What the model wants done with one new memory; `indices` are places among those it was shown."""

    name: ActionName
    indices: tuple[int, ...] = ()
    text: str = ""


_LINE = regex(
    r"^[\s>*`-]*(?:\[?#?(?P<number>\d{1,4})\]?\s*[:.)-]\s*)?(?P<name>add|merge|supersede|correct)\s*\((?P<inside>.*)$",
    re.IGNORECASE,
)
_INSIDE = regex(r"\s*[\"']?\[?(?P<index>\d{1,4})\]?[\"']?\s*(?:,(?P<text>.*))?\s*\)?[\s`.;]*$")
_NAMES: dict[str, ActionName] = {"add": "add", "merge": "merge", "supersede": "supersede", "correct": "correct"}


def read_actions(answer: str, shown: list[int]) -> dict[int, Action]:
    """New memory → the first usable action for it; `shown[n]` is how many existing ones it was shown.

    Lines without a number count through. Foreign numbers, foreign indices and anything unreadable are left out.
    """
    found: dict[int, Action] = {}
    following = 0
    for line in answer[:200_000].splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        number = following if match["number"] is None else int(match["number"])
        following = number + 1
        if number >= len(shown) or number in found:
            continue
        action = _action(_NAMES[match["name"].lower()], match["inside"], shown[number])
        if action is not None:
            found[number] = action
    return found


def _action(name: ActionName, inside: str, shown: int) -> Action | None:
    """The action with its places: one for a merge, any number for what supersedes or corrects."""
    if name == "add":
        return Action(name="add")
    match = _INSIDE.match(inside[:5_000])
    if match is None:
        return None
    text = one_line(_unquoted(match["text"] or "")) if name == "merge" else ""
    if name == "merge" and (not text or len(text) > 2 * MAX_SUMMARY_CHARS):
        return None
    more = "" if name == "merge" else match["text"] or ""
    indices = tuple(dict.fromkeys(map(int, [match["index"], *_DIGITS.findall(more)])))
    return Action(name=name, indices=indices, text=text) if max(indices) < shown else None


def _unquoted(text: str) -> str:
    """The second argument: what stands between its quotes, or all of it up to the closing bracket."""
    text = text.strip().rstrip("`;. ")
    text = text[:-1].rstrip() if text.endswith(")") else text
    for opening, closing in (('"', '"'), ("'", "'"), ("“", "”")):
        if len(text) >= 2 and text.startswith(opening) and text.endswith(closing):
            return text[1:-1].replace('\\"', '"').replace("\\'", "'")
    return text.strip("\"'")

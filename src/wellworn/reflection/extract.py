"""From a window of a session to proposed memories: by a model, or by rules where there is none.

The dialogue goes to a model as data: each turn on one line, escaped, between marks, in a message of its own.
System text, tool output and recalled memories are not read: they would come back as new facts, and again.
A memory that the turns it names do not say is rejected. Words are compared by stem; a summary may paraphrase, so a share
of its words suffices. Names and numbers may not be invented: each must stand somewhere in what was said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache, partial
from typing import Any, Literal, get_args

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import BudgetExceeded, ReplyUnreadable
from wellworn.core.fence import escape
from wellworn.core.lazy import regex
from wellworn.core.values import Entry, Kind, Partition, Turn
from wellworn.core.wellformed import count_tokens, one_line
from wellworn.ingest.session import said_at
from wellworn.ingest.terms import terms, words
from wellworn.ingest.utterance import ASSISTANT_ROLES
from wellworn.ingest.word_lists import MONTHS, WEEKDAYS
from wellworn.models.port import Model, Request, read_prompt
from wellworn.models.structured import read_json
from wellworn.reflection import Candidate
from wellworn.reflection.compare import group_same
from wellworn.reflection.rules import extract as extract_by_rules
from wellworn.store.port import Store

WINDOW_TURNS = 40
WINDOW_TOKENS = 6_000
CONTEXT_TURNS = 4
"""Turns before a window that are shown with it, for reference only."""
RECALLED_TAG = "recalled"
"""A turn with this tag holds recalled memories and is not reflected on."""
_SILENT_ROLES = frozenset({"system", "developer", "tool", "function", "tool_result"})
_FENCED = regex(r"<(memories|memory-context)\b[^>]*>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)


def turns_before(
    store: Store, partition: Partition, session_id: str, stop: int
) -> tuple[list[Turn], Mapping[str, Entry], list[Turn]]:
    """The turns of a session below a number, their episodes by id, and those turns that are to be read."""
    turns = [turn for turn in store.turns(partition, session_id) if turn.number < stop]
    entries = store.get([partition], [turn.entry_id for turn in turns if turn.entry_id is not None])
    return turns, entries, readable(turns, entries)


def readable(turns: Sequence[Turn], entries: Mapping[str, Entry]) -> list[Turn]:
    """The turns to read, as edited, with every block of recalled memories cut out; `entries` are their episodes by id.

    Every turn is stored with an episode: one without was forgotten, and is not read.
    """
    kept = []
    for turn in turns:
        entry = entries.get(turn.entry_id or "")
        if entry is None or entry.state == "pruned":
            continue
        if turn.role.strip().lower() in _SILENT_ROLES or RECALLED_TAG in entry.tags:
            continue
        said = _FENCED.sub(" ", entry.text).strip() if "<" in entry.text else entry.text.strip()
        if said:
            kept.append(replace(turn, text=said, speaker=entry.speaker, at=said_at(entry)))
    return kept


@dataclass(frozen=True, kw_only=True)
class Window:
    """Turns to extract from, and the turns before them, which only help to understand."""

    context: tuple[Turn, ...]
    turns: tuple[Turn, ...]

    @property
    def numbers(self) -> frozenset[int]:
        return frozenset(turn.number for turn in self.turns)


def windows(turns: Sequence[Turn], start: int = 0) -> list[Window]:
    """The turns from number `start` on, in order, each in one window; a turn too large for any has one of its own."""
    before = [turn for turn in turns if turn.number < start]
    parts: list[list[Turn]] = []
    tokens = 0
    for turn in turns[len(before) :]:
        cost = count_tokens(turn.text)
        if not parts or len(parts[-1]) >= WINDOW_TURNS or tokens + cost > WINDOW_TOKENS:
            parts.append([])
            tokens = 0
        parts[-1].append(turn)
        tokens += cost
    found = []
    for part in parts:
        found.append(Window(context=tuple(before[-CONTEXT_TURNS:]), turns=tuple(part)))
        before += part
    return found


# -- evidence ----------------------------------------------------------------------------------------------------------

MIN_SHARE = 0.3
"""Of a summary's words that must have been said; one of them in a turn that it names."""
_SAID_OF_ANYONE = frozenset({"user", "users", "assistant", "speaker", "person", "they", "their", "he", "she"})
_CALENDAR = frozenset({*MONTHS, *(month[:3] for month in MONTHS), *WEEKDAYS})
_DATE = regex(
    rf"\b\d{{4}}-\d{{2}}-\d{{2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{'|'.join(MONTHS)})(?:,?\s+\d{{4}})?"
    rf"|\b(?:{'|'.join(MONTHS)})\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}})?|\b(?:{'|'.join(MONTHS)})\s+\d{{4}}",
    re.IGNORECASE,
)
_NUMBER = regex(r"\d+(?:[.,:]\d+)*")
_SHORT_YEAR = regex(r"['’](\d\d)\b")
_LONG_NAME = 5
"""Letters from which on a name may be part of a word: Jenkins of "jenkinsfile"."""
_NAME = regex(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'’-]*")
"""A capitalised word inside a sentence."""
_TO_TWENTY = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty
"""
_SPELLED = {word: str(value) for value, word in enumerate(_TO_TWENTY.split())}
_SPELLED |= {"thirty": "30", "forty": "40", "fifty": "50", "hundred": "100", "thousand": "1000", "dozen": "12"}
_SPELLED |= {"once": "1", "twice": "2"}


def rejection(candidate: Candidate, turns: Sequence[Turn], around: Sequence[Turn]) -> str | None:
    """Why a memory is not believed, or None when it is. `turns` are those it names, `around` all that was read."""
    about = {candidate.speaker or "", *(turn.speaker or turn.role for turn in around)}
    undated = without_dates(candidate.summary)
    own = set(terms(undated)) - _terms_of(about) - _generic()
    if not own:
        return "says nothing"
    everything = [turn.text for turn in around]
    people = [
        turn.text for turn in (*turns, *around) if turn in turns or turn.role.strip().lower() not in ASSISTANT_ROLES
    ]
    if own.isdisjoint(_terms_of(turn.text for turn in turns)) or len(own & _terms_of(people)) < MIN_SHARE * len(own):
        return "not in the evidence"
    return invention(undated, everything, around, about)


def invention(undated: str, told: Sequence[str], dated: Sequence[Turn | Entry], about: Iterable[str]) -> str | None:
    """What a summary without its dates has that nobody told; `about` are those it may name, and `dated` has days that it
    may count from."""
    spelled = {_SPELLED[word] for word in words(undated) if word in _SPELLED} - {"1"}  # "one of them"
    if not spelled | {_plain(number) for number in _NUMBER.findall(undated)} <= _all_numbers(told, dated):
        return "invented number"
    known, spoken = _terms_of([*told, *about]) | _generic(), " ".join(told).lower()
    if not all(known.issuperset(terms(name)) or _begins_a_word(name, spoken) for name in _NAME.findall(undated)):
        return "invented name"
    return None


def without_dates(summary: str) -> str:
    """A summary without its dates, which it may have worked out."""
    return _DATE.sub(" ", summary)


def evidence_of(turns: Iterable[Turn]) -> str:
    """The turns verbatim, one below the other."""
    return "\n".join(f"{turn.speaker or turn.role}: {turn.text}" for turn in turns)


def _terms_of(texts: Iterable[str]) -> set[int]:
    return {term for text in texts for term in terms(text)}


@lru_cache(maxsize=1)
def _generic() -> frozenset[int]:
    return frozenset(_terms_of(_SAID_OF_ANYONE | _CALENDAR))


def _plain(number: str) -> str:
    """1,200 and 1200 are the same; so are 3:00 and 3."""
    return re.sub(r"(?:[.:]0+)?$", "", number.replace(",", "")) or number


def _all_numbers(texts: Iterable[str], turns: Iterable[Turn | Entry]) -> set[str]:
    """Every number said, in digits or spelled, with those of the turns' own dates."""
    found: set[str] = set()
    for text in texts:
        numbers = [_plain(number) for number in _NUMBER.findall(text)]
        found.update(numbers)
        found.update(part for number in numbers for part in re.split(r"[.:]", number))
        found.update(_SPELLED[word] for word in words(text) if word in _SPELLED)
        found.update(century + year for year in _SHORT_YEAR.findall(text) for century in ("19", "20"))
    for turn in turns:
        found.update(map(str, (turn.at.year - 1, turn.at.year, turn.at.year + 1, turn.at.month, turn.at.day)))
    return found


def _begins_a_word(name: str, text: str) -> bool:
    return len(name) >= _LONG_NAME and re.search(rf"\b{re.escape(name.lower())}", text) is not None


# -- proposals ---------------------------------------------------------------------------------------------------------

EXTRACT_TOKENS = 3_000
UNUSED = "the model kept nothing of it"
MAX_TURN_CHARS = 8_000
"""Of one turn that a model is shown; rules read all of it."""
prompt = partial(read_prompt, __file__)


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """The memories of a window, who found them, and what was not kept and why."""

    candidates: list[Candidate]
    by: str
    dropped: Counter[str] = field(default_factory=Counter)
    skipped: dict[int, str] = field(default_factory=dict)
    """Why a turn gave no memory, by its number."""
    fallback: str = ""
    """Why rules answered although there is a model."""


def by_rules(window: Window, *, user: str | None, fallback: str = "") -> Extracted:
    """Without a model. `user` is the name of the session's user, if it is known."""
    found, skipped = extract_by_rules(window.turns, user=user, context=window.context)
    return Extracted(candidates=group_same(found), by="rules", skipped=skipped, fallback=fallback)


def by_model(window: Window, model: Model, *, user: str | None) -> Extracted:
    """With a model: one call. Over the budget, or when its answer cannot be read, rules answer instead."""
    told = dialogue(window.turns, context=window.context)
    request = Request.of(prompt("extract"), told, purpose="extract", max_output_tokens=EXTRACT_TOKENS, json=True)
    try:
        found, dropped = read_memories(model.complete(request).text, window.numbers)
    except BudgetExceeded:
        return by_rules(window, user=user, fallback="over the budget")
    except ReplyUnreadable:
        return by_rules(window, user=user, fallback="the model's answer could not be read")
    candidates = _believed(found, window, dropped)
    skipped = sorted(window.numbers - {number for one in candidates for number in one.turns})
    return Extracted(candidates=candidates, by=model.name, dropped=dropped, skipped=dict.fromkeys(skipped, UNUSED))


def _believed(found: Sequence[Candidate], window: Window, dropped: Counter[str]) -> list[Candidate]:
    """Those that the turns say, duplicates folded."""
    by_number = {turn.number: turn for turn in window.turns}
    kept = []
    for candidate in found:
        reason = rejection(candidate, [by_number[n] for n in candidate.turns], [*window.context, *window.turns])
        if reason is None:
            kept.append(candidate)
        else:
            dropped[reason] += 1
    folded = group_same(kept)
    dropped["said twice"] += len(kept) - len(folded)
    return folded


def dialogue(turns: Sequence[Turn], *, context: Sequence[Turn] = ()) -> str:
    """Turns as data for a prompt."""
    lines = [_line(turn, "earlier") for turn in context] + [_line(turn, f"Turn {turn.number}") for turn in turns]
    return "\n".join(["<dialogue>", *lines, "</dialogue>"])


def _line(turn: Turn, mark: str) -> str:
    text = turn.text if len(turn.text) <= MAX_TURN_CHARS else turn.text[:MAX_TURN_CHARS] + " […]"
    return f"{mark} | {turn.at.date().isoformat()} | {escape(turn.speaker or turn.role)} | {escape(text)}"


# -- a model's answers -------------------------------------------------------------------------------------------------
#
# Read with suspicion: whatever comes, what leaves here is well-formed or counted as dropped.
#
#     {"extracted_memories": [{"summary": "…", "reference": [0, 2]}]}   or the single word NO_TRAIT
#     0: Add()    1: Merge(2, "…")    2: Update(1, "…")    3: Supersede(0)    4: Correct(1)  one action per line

NOTHING = "NO_TRAIT"
MAX_SUMMARY_CHARS = 600
MOST_MEMORIES = 32
"""Memories from one window at most; what comes beyond is dropped and counted."""
MODEL_CONFIDENCE = 0.8
_KINDS: dict[str, Kind] = {"fact": "fact", "preference": "preference", "pattern": "pattern"}
_DIGITS = regex(r"\d{1,9}")

ActionName = Literal["add", "merge", "update", "supersede", "correct"]


def read_memories(answer: str, numbers: Collection[int]) -> tuple[list[Candidate], Counter[str]]:
    """The memories of an extraction, and what was dropped by reason.

    `numbers` are the turns that may be referred to. `ReplyUnreadable` when nothing can be read at all.
    """
    if answer.strip().strip("\"'`.").upper() == NOTHING:
        return [], Counter()
    try:
        items = _items(answer)
    except ReplyUnreadable:
        if NOTHING not in answer:
            raise
        items = []  # a sentence around the word
    dropped: Counter[str] = Counter()
    found: list[Candidate] = []
    if items and not any(isinstance(one, Mapping) and isinstance(one.get("summary"), str) for one in items):
        raise ReplyUnreadable("none of the memories in the model's answer has a summary")
    for item in items:
        candidate = _candidate(item, numbers)
        if isinstance(candidate, str):
            dropped[candidate] += 1
        elif len(found) >= MOST_MEMORIES:
            dropped["too many"] += 1
        else:
            found.append(candidate)
    return found, dropped


def _items(answer: str) -> list[Any]:
    value: Any = read_json(answer, wants=("extracted_memories",))
    if isinstance(value, Mapping):
        value = value.get("extracted_memories", value.get("memories", value if "summary" in value else None))
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, list):
        raise ReplyUnreadable("the model's answer has no list of memories")
    return value


def _candidate(item: object, numbers: Collection[int]) -> Candidate | str:
    """The memory, or why it is none."""
    if not isinstance(item, Mapping) or not isinstance(item.get("summary"), str):
        return "no summary"
    summary = one_line(item["summary"])
    if not summary or summary.strip(".").upper() == NOTHING:
        return "no summary"
    if len(summary) > MAX_SUMMARY_CHARS:
        return "too long"
    turns = tuple(dict.fromkeys(n for n in _references(item.get("reference")) if n in numbers))
    if not turns:
        return "no evidence"
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
    r"^[\s>*`-]*(?:\[?#?(?P<number>\d{1,4})\]?\s*[:.)-]\s*)?(?P<name>add|merge|update|supersede|correct)\s*\((?P<inside>.*)$",
    re.IGNORECASE,
)
_INSIDE = regex(r"\s*[\"']?\[?(?P<index>\d{1,4})\]?[\"']?\s*(?:,(?P<text>.*))?\s*\)?[\s`.;]*$")
_NAMES: dict[str, ActionName] = {name: name for name in get_args(ActionName)}


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
    """The action with its places: one for a merge or an update, which have a text, any number for what supersedes or corrects."""
    if name == "add":
        return Action(name="add")
    match = _INSIDE.match(inside[:5_000])
    if match is None:
        return None
    texts = name in ("merge", "update")
    text = one_line(_unquoted(match["text"] or "")) if texts else ""
    if texts and (not text or len(text) > 2 * MAX_SUMMARY_CHARS):
        return None
    more = "" if texts else match["text"] or ""
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

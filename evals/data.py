"""Public data sets read from disk: LoCoMo, RealMem, and multi-hop questions as HippoRAG stores them.

None is shipped; an error says where to get the files. Uses nothing of the package, so that `gates` can measure any
version of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

PUBLISHED = {
    "locomo": "snap-research/locomo",
    "realmem": "zhiyuan5986/RealMemBench",
    "multihop": "OSU-NLP-Group/HippoRAG",
    "traces": "sierra-research/tau-bench (historical_trajectories/*.json) or noahshinn/reflexion (ReAct logs)",
}
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

T = TypeVar("T")
Place = tuple[str, int]
"""A session id and the number of a turn in it."""


class DataError(ValueError):
    """A data set is missing or has another shape; the message says where to get it."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question and what answers it: places of turns, ids of sessions, or numbers of passages."""

    text: str
    category: str
    evidence: frozenset[Any]


@dataclass(frozen=True, kw_only=True)
class Gold:
    """A memory that the makers of RealMem extracted; `turn` is None where the file names none that exists."""

    text: str
    turn: int | None


@dataclass(frozen=True, kw_only=True)
class Dialogue:
    """One session: (speaker, text) turns. In RealMem also the questions asked before it, and its gold memories."""

    id: str
    at: datetime | None
    turns: list[tuple[str, str]]
    questions: list[Question]
    gold: list[Gold]


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """One file; `skipped` questions have no evidence that can be found."""

    name: str
    sessions: list[Dialogue]
    questions: list[Question]
    skipped: int


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Passages as (title, text), and questions about them."""

    name: str
    passages: list[tuple[str, str]]
    questions: list[Question]
    skipped: int


def locomo(folder: Path) -> list[Conversation]:
    """Two people chat over months; questions name the turns that answer them (Maharana et al., ACL 2024)."""
    found: list[Conversation] = []
    for path in json_files("locomo", folder):
        value = read_json(path)
        samples = value if isinstance(value, list) else [value]  # the published file holds all of them
        for number, sample in enumerate(samples):
            name = path.stem if len(samples) == 1 else f"{path.stem}-{number}"
            found.append(_checked("locomo", path, partial(_locomo, sample, name)))
    return found


def realmem(folder: Path) -> list[Conversation]:
    """A person and an assistant over some 200 dated sessions, half of them idle chatter (arXiv 2601.06966)."""
    paths = json_files("realmem", folder)
    return [_checked("realmem", path, partial(_realmem, read_json(path), path.stem)) for path in paths]


def multihop(folder: Path) -> list[Corpus]:
    """Pairs of files NAME.json and NAME_corpus.json: MuSiQue, HotpotQA, 2WikiMultihopQA."""
    names = {path.stem: path for path in json_files("multihop", folder)}
    pairs = [(names[stem], names[f"{stem}_corpus"]) for stem in names if f"{stem}_corpus" in names]
    if not pairs:
        raise DataError(f"no pair NAME.json and NAME_corpus.json in {str(folder)!r} ({_hint('multihop')})")
    return [
        _checked("multihop", one, partial(_multihop, one.stem, read_json(one), read_json(two))) for one, two in pairs
    ]


def json_files(dataset: str, folder: Path) -> list[Path]:
    """The JSON files of a folder by name (or the one file given), at least one."""
    if folder.is_file():
        return [folder]
    found = sorted(folder.glob("*.json"))
    if not found:
        raise DataError(f"no .json file in {str(folder)!r} ({_hint(dataset)})")
    return found


def read_json(path: Path) -> Any:  # whatever the file holds
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {str(path)!r}: {error}") from None


def _hint(dataset: str) -> str:
    return f"data sets are not shipped: get it from the public repository {PUBLISHED[dataset]}"


def _checked(dataset: str, path: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"{type(error).__name__} {error}"
        raise DataError(f"{str(path)!r} is not a {dataset} file: {problem} ({_hint(dataset)})") from None


def _answerable(questions: list[Question]) -> list[Question]:
    return [one for one in questions if one.evidence]


# -- LoCoMo --------------------------------------------------------------------------------------------------------


def _locomo(sample: dict[str, Any], name: str) -> Conversation:
    talk = sample.get("conversation", sample)  # the published file nests it, one file per conversation does not
    numbers = sorted(int(m[1]) for key in talk if (m := re.fullmatch(r"session_(\d+)", key)))
    if not numbers:
        raise ValueError("no session_1")
    places: dict[str, Place] = {}
    sessions = []
    for key in (f"session_{number}" for number in numbers):
        # A bare picture without a caption holds nothing to remember.
        spoken = [turn for turn in talk[key] if turn["text"].strip() or turn.get("blip_caption")]
        places |= {turn["dia_id"]: (key, index) for index, turn in enumerate(spoken)}
        date = talk.get(f"{key}_date_time")  # 1:56 pm on 8 May, 2023
        at = datetime.strptime(date.upper(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC) if date else None
        turns = [(turn["speaker"], _captioned(turn)) for turn in spoken]
        sessions.append(Dialogue(id=key, at=at, turns=turns, questions=[], gold=[]))
    questions = [_locomo_question(item, places) for item in sample["qa"]]
    known = _answerable(questions)
    label = str(sample.get("sample_id", name))
    return Conversation(name=label, sessions=sessions, questions=known, skipped=len(questions) - len(known))


def _captioned(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return str(turn["text"]) + (f" [shares {caption}]" if caption else "")


def _locomo_question(item: dict[str, Any], places: dict[str, Place]) -> Question:
    # One string may hold several ids ("D8:6; D9:17"), and some ids belong to no turn.
    ids = [found for text in item.get("evidence") or [] for found in re.findall(r"D\d+:\d+", str(text))]
    return Question(
        text=item["question"],
        category=CATEGORIES.get(item.get("category", 0), "other"),
        evidence=frozenset(places[one] for one in ids if one in places),
    )


# -- RealMem -------------------------------------------------------------------------------------------------------


def _realmem(value: dict[str, Any], name: str) -> Conversation:
    """A query is asked before its own session is added: only earlier sessions can answer it."""
    sessions: list[Dialogue] = []
    skipped = 0
    earlier: set[str] = set()
    for item in value["dialogues"]:
        turns = item["dialogue_turns"]
        asked = [
            Question(
                text=turn["content"],
                category=turn.get("category_name") or "other",
                evidence=frozenset(answer.get("memory_session_uuids") or []) & earlier,
            )
            for turn, answer in zip(turns, [*turns[1:], {}], strict=True)
            if turn.get("is_query")
        ]
        spoken = [place for place, turn in enumerate(turns) if turn["content"].strip()]
        sessions.append(
            Dialogue(
                id=item["session_uuid"],
                at=datetime.strptime(item["current_time"][:10], "%Y-%m-%d").replace(tzinfo=UTC),
                turns=[(turns[place]["speaker"], turns[place]["content"]) for place in spoken],
                questions=_answerable(asked),
                gold=[_gold(one, spoken) for one in item.get("extracted_memory") or []],
            )
        )
        skipped += len(asked) - len(sessions[-1].questions)
        earlier.add(item["session_uuid"])
    label = str(value.get("_metadata", {}).get("person_name", name)).replace("_", " ")
    return Conversation(name=label, sessions=sessions, questions=[], skipped=skipped)


def _gold(item: dict[str, Any], spoken: list[int]) -> Gold:
    """The file counts turns from 1; 0 and -1 stand for memories whose turn its makers did not find."""
    place = item["source_turn"] - 1
    return Gold(text=item["content"], turn=spoken.index(place) if place in spoken else None)


# -- multi-hop -----------------------------------------------------------------------------------------------------


def _multihop(name: str, questions: Any, corpus: Any) -> Corpus:  # JSON from outside
    """HotpotQA's corpus maps title → sentences, the others list {title, text}; an empty text is read as its title."""
    pairs = (
        [(title, "".join(sentences)) for title, sentences in corpus.items()]
        if isinstance(corpus, dict)
        else [(item["title"], item["text"]) for item in corpus]
    )
    passages = [(title, text if text.strip() else title) for title, text in pairs]
    by_text = {passage: number for number, passage in enumerate(passages)}
    by_title = {title: number for number, (title, _) in enumerate(passages)}
    found = [_multihop_question(item, by_text, by_title) for item in questions]
    known = _answerable(found)
    return Corpus(name=name, passages=passages, questions=known, skipped=len(found) - len(known))


def _multihop_question(item: dict[str, Any], by_text: dict[tuple[str, str], int], by_title: dict[str, int]) -> Question:
    """MuSiQue marks whole paragraphs, the others name titles; a MuSiQue id opens with its hops (`2hop__…`)."""
    if "paragraphs" in item:
        keys = [(p["title"], p["paragraph_text"]) for p in item["paragraphs"] if p["is_supporting"]]
        support = frozenset(by_text[key] for key in keys if key in by_text)
        category = str(item.get("id", "")).partition("__")[0] or "other"
    else:
        support = frozenset(by_title[title] for title, _ in item["supporting_facts"] if title in by_title)
        category = str(item.get("type") or "other")
    return Question(text=item["question"], category=category, evidence=support)

"""LoCoMo: two people chat over months; questions name the turns that answer them (Maharana et al., ACL 2024).

Reads one JSON file a conversation, or the published `locomo10.json` with all of them. Every turn goes through
`session().add`, the way an agent adds it; a question is answered well when its evidence turns are ranked high.
With memories extracted from each session beside the turns, a memory stands for the turns it rests on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evals import metrics
from evals.files import json_files, misshapen, read_json
from evals.report import Graded, Report
from evals.run import LARGEST_K, WIDER, Settings, Steps, scope_for, score, sessions_of, timed_recall, turns_of
from wellworn.core.values import Progress
from wellworn.memory import Memory

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

_SESSION = re.compile(r"session_(\d+)")
_DIALOGUE_ID = re.compile(r"D\d+:\d+")
_DATE_FORMAT = "%I:%M %p on %d %B, %Y"  # 1:56 pm on 8 May, 2023


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """One turn as it is added."""

    speaker: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Dialogue:
    """One session: its id is the key it has in the file."""

    id: str
    at: datetime | None
    turns: list[Utterance]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question and the (session id, turn number) pairs that answer it."""

    text: str
    category: str
    evidence: frozenset[tuple[str, int]]


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """Everything of one file; `skipped` questions had no evidence that resolves."""

    name: str
    sessions: list[Dialogue]
    questions: list[Question]
    skipped: int

    @property
    def steps(self) -> int:
        return sum(len(session.turns) for session in self.sessions) + len(self.questions)


def load(folder: Path) -> list[Conversation]:
    """Every conversation of the folder, by file name."""
    found: list[Conversation] = []
    for path in json_files("locomo", folder):
        value = read_json(path)
        samples = value if isinstance(value, list) else [value]
        for number, sample in enumerate(samples):
            name = path.stem if len(samples) == 1 else f"{path.stem}-{number}"
            found.append(_conversation(path, name, sample))
    return found


def run(folder: Path, settings: Settings, *, progress: Progress | None = None, reflected: bool = False) -> Report:
    """Ask every question of every conversation, each conversation in a memory of its own.

    `reflected` turns every session into memories first, which then stand beside the turns.
    """
    conversations = load(folder)
    steps = Steps(total=sum(one.steps for one in conversations), progress=progress)
    graded: list[Graded] = []
    entries = 0
    for conversation in conversations:
        with settings.open() as memory:
            tell(memory, conversation, steps)
            if reflected:
                memory.reflect(scope=scope_for(conversation.name))
            entries += memory.stats(scope=scope_for(conversation.name)).entries
            graded += [
                _ask(memory, conversation.name, question, settings, steps, beside=reflected)
                for question in conversation.questions
            ]
    return Report(
        dataset="locomo",
        embedder=settings.embedder,
        profile=settings.profile,
        ks=settings.ks,
        entries=entries,
        skipped=sum(one.skipped for one in conversations),
        graded=graded,
        categories=tuple(CATEGORIES.values()),
    )


def tell(memory: Memory, conversation: Conversation, steps: Steps) -> None:
    """Add every turn, each session under its own id, to the scope of the conversation's name."""
    for dialogue in conversation.sessions:
        session = memory.session(scope=scope_for(conversation.name), session_id=dialogue.id)
        for turn in dialogue.turns:
            session.add(turn.speaker, turn.text, at=dialogue.at)
            steps.advance()


def _ask(
    memory: Memory, name: str, question: Question, settings: Settings, steps: Steps, *, beside: bool = False
) -> Graded:
    """Ask one question. With memories beside the turns, `turn` counts a memory as the turns it rests on, one by one,
    and `hit` what the first k hits rest on."""
    largest = max(settings.ks)
    hits, seconds = timed_recall(memory, question.text, scope=scope_for(name), k=largest)
    wider, _ = timed_recall(memory, question.text, scope=scope_for(name), k=largest * WIDER)
    steps.advance()
    gold_sessions = {session_id for session_id, _ in question.evidence}
    scores = {
        "turn": score(turns_of(wider if beside else hits), question.evidence, settings.ks),
        "session": score(sessions_of(wider), gold_sessions, settings.ks),
    }
    if beside:
        scores["hit"] = {
            f"recall@{k}": metrics.recall_at_k(turns_of(hits[:k]), question.evidence, LARGEST_K) for k in settings.ks
        }
    return Graded(conversation=name, category=question.category, seconds=seconds, scores=scores)


def _conversation(path: Path, name: str, sample: Any) -> Conversation:  # JSON from outside, checked here
    if not isinstance(sample, dict):
        raise misshapen("locomo", path, "no conversation object")
    dialogue = sample.get("conversation", sample)  # the published file nests it, one file a conversation does not
    try:
        numbers = sorted(int(m[1]) for key in dialogue if (m := _SESSION.fullmatch(key)))
        sessions = [_dialogue(dialogue, f"session_{number}") for number in numbers]
        places = {
            turn["dia_id"]: (f"session_{number}", index)
            for number in numbers
            for index, turn in enumerate(_spoken(dialogue[f"session_{number}"]))
        }
        questions = [_question(item, places) for item in sample["qa"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise misshapen("locomo", path, f"{type(error).__name__} {error}") from None
    if not sessions:
        raise misshapen("locomo", path, "no session_1")
    answerable = [question for question in questions if question.evidence]
    return Conversation(
        name=str(sample.get("sample_id", name)),
        sessions=sessions,
        questions=answerable,
        skipped=len(questions) - len(answerable),
    )


def _dialogue(dialogue: dict[str, Any], key: str) -> Dialogue:
    date = dialogue.get(f"{key}_date_time")
    at = datetime.strptime(date.upper(), _DATE_FORMAT).replace(tzinfo=UTC) if date else None
    return Dialogue(id=key, at=at, turns=[_utterance(turn) for turn in _spoken(dialogue[key])])


def _spoken(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turns with something to remember; a bare picture without caption has nothing."""
    return [turn for turn in turns if turn["text"].strip() or turn.get("blip_caption")]


def _utterance(turn: dict[str, Any]) -> Utterance:
    caption = turn.get("blip_caption")
    return Utterance(speaker=turn["speaker"], text=turn["text"] + (f" [shares {caption}]" if caption else ""))


def _question(item: dict[str, Any], places: dict[str, tuple[str, int]]) -> Question:
    # One string may hold several ids ("D8:6; D9:17"), and some ids are of no turn.
    ids = [found for text in item.get("evidence") or [] for found in _DIALOGUE_ID.findall(str(text))]
    return Question(
        text=item["question"],
        category=CATEGORIES.get(item.get("category", 0), "other"),
        evidence=frozenset(places[dialogue_id] for dialogue_id in ids if dialogue_id in places),
    )

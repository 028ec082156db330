"""How well recall finds what answers a question, on three public data sets.

Uses the public facade only, so that what is measured is what a user gets. Each conversation has a memory of its own.
A ranking counts each turn, session or passage once, where it occurs first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals import data
from evals.data import Conversation, Corpus, Dialogue, Question
from evals.report import Report, Steps, Table
from wellworn import Memory, Scope
from wellworn.core.values import Hit, Progress

WIDER = 10
"""Sessions are ranked by their best hit, and one session fills many places: ask for this many times k."""
CHUNKS = 3
"""A long passage is remembered in several chunks: ask for this many times k."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The cut-offs, and what `Memory.open` is given."""

    ks: tuple[int, ...] = (5, 10, 20)
    embedder: str = "reader"
    profile: str = "default"
    recursion: str = "on"
    reflected: bool = False
    """Whether LoCoMo's sessions are turned into memories first; a memory then stands for the turns it rests on."""

    def open(self) -> Memory:
        return Memory.open(":memory:", embedder=self.embedder, profile=self.profile, recursion=self.recursion)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Graded:
    """The scores of one question, by level (`turn`, `session`, `passage`) and metric (`recall@5`), in percent."""

    conversation: str
    category: str
    scores: dict[str, dict[str, float]]
    seconds: float


def locomo(folder: Path, settings: Settings, *, progress: Progress | None = None) -> Report:
    """Evidence turns, and the sessions they are in, ranked among all turns of a conversation."""
    talks = data.locomo(folder)
    steps = Steps(total=sum(_turns(one) + len(one.questions) for one in talks), progress=progress)
    graded: list[Graded] = []
    for talk in talks:
        with settings.open() as memory:
            tell(memory, talk.name, talk.sessions, steps)
            if settings.reflected:
                memory.reflect(scope=scope_for(talk.name))
            graded += [_ask_turns(memory, talk.name, question, settings, steps) for question in talk.questions]
    return _report("locomo", settings, graded, sum(one.skipped for one in talks))


def realmem(folder: Path, settings: Settings, *, progress: Progress | None = None) -> Report:
    """Earlier sessions that a gold answer draws on, ranked among those before the question."""
    personas = data.realmem(folder)
    asked = sum(len(session.questions) for one in personas for session in one.sessions)
    steps = Steps(total=sum(map(_turns, personas)) + asked, progress=progress)
    graded: list[Graded] = []
    for one in personas:
        with settings.open() as memory:
            for session in one.sessions:
                for question in session.questions:
                    hits, seconds = _timed(memory, question, one.name, max(settings.ks) * WIDER)
                    ranks = {"session": scores(sessions_of(hits), question.evidence, settings.ks)}
                    graded.append(_graded(one.name, question, ranks, seconds))
                    steps.advance()
                tell(memory, one.name, [session], steps)
    return _report("realmem", settings, graded, sum(one.skipped for one in personas))


def multihop(folder: Path, settings: Settings, *, progress: Progress | None = None) -> Report:
    """Supporting passages ranked among all passages; all@k asks for every one of them."""
    corpora = data.multihop(folder)
    steps = Steps(total=sum(len(one.passages) + len(one.questions) for one in corpora), progress=progress)
    graded: list[Graded] = []
    for corpus in corpora:
        with settings.open() as memory:
            memory.remember_many(passages_of(corpus), scope=scope_for(corpus.name), source="corpus")
            steps.advance(len(corpus.passages))
            for question in corpus.questions:
                hits, seconds = _timed(memory, question, corpus.name, max(settings.ks) * CHUNKS)
                ranked = [int(hit.entry.metadata["passage"]) for hit in hits]
                ranks = {"passage": scores(ranked, question.evidence, settings.ks)}
                graded.append(_graded(corpus.name, question, ranks, seconds))
                steps.advance()
    return _report("multihop", settings, graded, sum(one.skipped for one in corpora))


# -- shared with other evaluations -----------------------------------------------------------------------------------


def scope_for(name: str) -> Scope:
    return Scope(tenant="eval", user=name)


def tell(memory: Memory, name: str, sessions: Iterable[Dialogue], steps: Steps) -> None:
    """Add every turn, the way an agent adds it."""
    for one in sessions:
        session = memory.session(scope=scope_for(name), session_id=one.id)
        for speaker, text in one.turns:
            session.add(speaker, text, at=one.at)
            steps.advance()


def passages_of(corpus: Corpus) -> list[dict[str, Any]]:
    return [
        {"text": text, "title": title, "kind": "fact", "metadata": {"passage": number}}
        for number, (title, text) in enumerate(corpus.passages)
    ]


def turns_of(hits: Iterable[Hit]) -> list[data.Place]:
    """(session id, turn number) of each hit, best first."""
    return [(hit.entry.session_id, n) for hit in hits if hit.entry.session_id for n in hit.entry.turn_refs]


def sessions_of(hits: Iterable[Hit]) -> list[str]:
    return [hit.entry.session_id for hit in hits if hit.entry.session_id]


def recall_at(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """The share of the relevant that is among the first k distinct names."""
    if k < 1 or not relevant:
        raise ValueError("recall@k needs k ≥ 1 and something relevant")
    return len(set(relevant).intersection(list(dict.fromkeys(ranked))[:k])) / len(set(relevant))


def ndcg_at(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """Discounted gain over the best possible one: a relevant name at rank i (from 1) gains 1 / log2(i + 1)."""
    first = list(dict.fromkeys(ranked))[:k]
    gain = sum(1 / math.log2(place + 2) for place, name in enumerate(first) if name in relevant)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(k, len(set(relevant)))))


def scores(ranked: Sequence[Hashable], relevant: Collection[Hashable], ks: Sequence[int]) -> dict[str, float]:
    """Every metric at every cut-off, in percent; all@k is whether all of the relevant are among the first k."""
    metrics: dict[str, Callable[[int], float]] = {
        "recall": lambda k: recall_at(ranked, relevant, k),
        "all": lambda k: float(recall_at(ranked, relevant, k) == 1),
        "ndcg": lambda k: ndcg_at(ranked, relevant, k),
    }
    return {f"{name}@{k}": 100 * metric(k) for name, metric in metrics.items() for k in ks}


# -- inside ----------------------------------------------------------------------------------------------------------


def _turns(one: Conversation) -> int:
    return sum(len(session.turns) for session in one.sessions)


def _timed(memory: Memory, question: Question, name: str, k: int) -> tuple[list[Hit], float]:
    start = time.perf_counter()
    hits = memory.recall(question.text, scope=scope_for(name), k=k).hits
    return hits, time.perf_counter() - start


def _ask_turns(memory: Memory, name: str, question: Question, settings: Settings, steps: Steps) -> Graded:
    largest = max(settings.ks)
    hits, seconds = _timed(memory, question, name, largest)
    wider, _ = _timed(memory, question, name, largest * WIDER)
    steps.advance()
    sessions = {session_id for session_id, _ in question.evidence}
    ranks = {
        "turn": scores(turns_of(wider if settings.reflected else hits), question.evidence, settings.ks),
        "session": scores(sessions_of(wider), sessions, settings.ks),
    }
    return _graded(name, question, ranks, seconds)


def _graded(name: str, question: Question, ranks: dict[str, dict[str, float]], seconds: float) -> Graded:
    return Graded(conversation=name, category=question.category, scores=ranks, seconds=seconds)


def _report(name: str, settings: Settings, graded: list[Graded], skipped: int) -> Report:
    levels = list(dict.fromkeys(level for one in graded for level in one.scores))
    seconds = sum(one.seconds for one in graded) / max(len(graded), 1)
    about = {
        "questions": len(graded),
        "skipped": skipped,
        "ms per recall": round(1000 * seconds, 1),
        "embedder": settings.embedder,
        "profile": settings.profile,
        "recursion": settings.recursion,
    }
    return Report(name=name, about=about, tables=[_table(level, graded) for level in levels])


def _table(level: str, graded: list[Graded]) -> Table:
    groups: dict[str, list[Graded]] = {"overall": graded}
    for key in ("category", "conversation"):
        for label in sorted({getattr(one, key) for one in graded}):
            groups[label] = [one for one in graded if getattr(one, key) == label]
    metrics = list(graded[0].scores[level]) if graded else []
    rows = [
        (label, len(members), *[sum(one.scores[level][m] for one in members) / len(members) for m in metrics])
        for label, members in groups.items()
        if members
    ]
    return Table(title=level, columns=("", "n", *metrics), rows=rows)

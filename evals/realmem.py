"""RealMem: a person and an assistant over some 200 dated sessions, half of them idle chatter (arXiv 2601.06966).

A query turn is asked before its own session is added, so that only earlier sessions are in memory. It is answered
well when the sessions its gold answer drew on (`memory_session_uuids` of the next assistant turn) are ranked high.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evals.files import json_files, misshapen, read_json
from evals.report import Graded, Report
from evals.run import WIDER, Settings, Steps, scope_for, score, sessions_of, timed_recall
from wellworn.core.values import Progress
from wellworn.memory import Memory


@dataclass(frozen=True, kw_only=True)
class Query:
    """A question and the earlier sessions that answer it."""

    text: str
    category: str
    sessions: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Dialogue:
    """One session: (speaker, text) turns, and the queries asked in it."""

    id: str
    at: datetime
    turns: list[tuple[str, str]]
    queries: list[Query]


@dataclass(frozen=True, kw_only=True)
class Persona:
    """Everything of one file; `skipped` queries name no earlier session."""

    name: str
    sessions: list[Dialogue]
    skipped: int

    @property
    def steps(self) -> int:
        return sum(len(session.turns) + len(session.queries) for session in self.sessions)


def load(folder: Path) -> list[Persona]:
    """Every persona of the folder, by file name."""
    return [_persona(path, read_json(path)) for path in json_files("realmem", folder)]


def run(folder: Path, settings: Settings, *, progress: Progress | None = None) -> Report:
    """Live through every persona's sessions in order, asking each query at its time."""
    personas = load(folder)
    steps = Steps(total=sum(one.steps for one in personas), progress=progress)
    graded: list[Graded] = []
    entries = 0
    for persona in personas:
        with settings.open() as memory:
            for dialogue in persona.sessions:
                graded += [_ask(memory, persona.name, query, settings, steps) for query in dialogue.queries]
                _tell(memory, persona.name, dialogue, steps)
            entries += memory.stats(scope=scope_for(persona.name)).entries
    return Report(
        dataset="realmem",
        embedder=settings.embedder,
        profile=settings.profile,
        ks=settings.ks,
        entries=entries,
        skipped=sum(one.skipped for one in personas),
        graded=graded,
    )


def _ask(memory: Memory, name: str, query: Query, settings: Settings, steps: Steps) -> Graded:
    k = max(settings.ks) * WIDER
    hits, seconds = timed_recall(memory, query.text, scope=scope_for(name), k=k)
    steps.advance()
    return Graded(
        conversation=name,
        category=query.category,
        seconds=seconds,
        scores={"session": score(sessions_of(hits), query.sessions, settings.ks)},
    )


def _tell(memory: Memory, name: str, dialogue: Dialogue, steps: Steps) -> None:
    session = memory.session(scope=scope_for(name), session_id=dialogue.id)
    for speaker, text in dialogue.turns:
        session.add(speaker, text, at=dialogue.at)
        steps.advance()


def _persona(path: Path, value: Any) -> Persona:  # JSON from outside, checked here
    sessions: list[Dialogue] = []
    skipped = 0
    earlier: set[str] = set()
    try:
        for item in value["dialogues"]:
            queries = _queries(item["dialogue_turns"], earlier)
            answerable = [query for query in queries if query.sessions]
            skipped += len(queries) - len(answerable)
            sessions.append(_dialogue(item, answerable))
            earlier.add(item["session_uuid"])
        name = value.get("_metadata", {}).get("person_name", path.stem)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise misshapen("realmem", path, f"{type(error).__name__} {error}") from None
    return Persona(name=str(name), sessions=sessions, skipped=skipped)


def _dialogue(item: dict[str, Any], queries: list[Query]) -> Dialogue:
    return Dialogue(
        id=item["session_uuid"],
        at=datetime.strptime(item["current_time"][:10], "%Y-%m-%d").replace(tzinfo=UTC),  # 2025-12-15 (Monday)
        turns=[(turn["speaker"], turn["content"]) for turn in item["dialogue_turns"] if turn["content"].strip()],
        queries=queries,
    )


def _queries(turns: list[dict[str, Any]], earlier: set[str]) -> list[Query]:
    found: list[Query] = []
    for turn, answer in zip(turns, [*turns[1:], {}], strict=True):
        if turn.get("is_query"):
            gold = frozenset(answer.get("memory_session_uuids") or []) & earlier
            found.append(Query(text=turn["content"], category=turn.get("category_name") or "other", sessions=gold))
    return found

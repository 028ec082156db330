"""Chats as people type them: several facts in a message, requests beside, long answers of an assistant; then what is asked.

Five authors wrote six lives each, of five to nine months; they had not seen the code. Each question names the turns that
answer it. `tune` may be looked at while tuning, claims come from `check`, by two of the authors.

| question    | asks for                                            |
|-------------|-----------------------------------------------------|
| `now`       | what changed at least once, as it is now            |
| `once`      | what was told and never changed                     |
| `past`      | what was so before                                  |
| `assistant` | what only the assistant said                        |
| `absent`    | what was never told                                 |

`outdated` counts the questions of `now` for which a turn with a former value stands above every right one, `sure` those with a
confidence from 0.5 on.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from evals.report import Report, Table, interval
from wellworn import Entry, Memory
from wellworn.models.port import Embedder, Matrix

CHATS = Path(__file__).parent / "lives" / "chats"
NAMES = ("first", "five", "outdated", "sure")
SURE = 0.5
KINDS = ("now", "once", "past", "assistant", "absent")


def chats(part: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((CHATS / f"{part}.json").read_text())
    return found


def told(memory: Memory, life: dict[str, Any]) -> Memory:
    """The memory of one person who said all that."""
    person = memory.for_user(f"{life['author']} {life['person']}")
    for number, session in enumerate(life["sessions"]):
        at, chat = datetime.fromisoformat(f"{session['date']}T09:00+00:00"), person.session(str(number))
        for turn, (role, text) in enumerate(session["turns"]):
            chat.add(role, text, at=at + timedelta(minutes=turn))
        chat.end(wait=60)
    return person


def judged(entries: Sequence[Entry], question: dict[str, Any]) -> dict[str, bool]:
    """What the entries that were found for one question are."""
    turns = [{f"{entry.session_id}.{turn}" for turn in entry.turn_refs} for entry in entries]
    right = [not some.isdisjoint(question["at"]) for some in turns]
    former = [not some.isdisjoint(question.get("outdated", ())) for some in turns]
    first = right.index(True) if any(right) else len(right)
    return {"first": right[:1] == [True], "five": any(right), "outdated": any(former[:first])}


def by_cosine(turns: Sequence[Entry], vectors: Matrix, query: str, embedder: Embedder) -> list[Entry]:
    """The baseline: of all turns the five nearest."""
    return [turns[place] for place in np.argsort(-(vectors @ embedder.embed_query(query)))[:5]]


def run(part: str, *, embedder: str) -> Report:
    """The share of questions of each kind, and of all that have an answer; of these also by plain cosine."""
    values: defaultdict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    with Memory(":memory:", learning="off", embedder=embedder) as memory:
        for number, life in enumerate(chats(part)):
            person, model = told(memory, life), memory.engine.embedder
            turns = person.entries(kind="episode", state=["active", "superseded"], limit=1000)
            vectors = None if model is None else model.embed([turn.text for turn in turns])
            for question in life["questions"]:
                kind, found = question["kind"], person.recall(question["ask"], k=5)
                figures = {(kind, "sure"): (found.confidence or 0.0) >= SURE}
                if kind != "absent":
                    for name, so in judged([hit.entry for hit in found.hits], question).items():
                        figures |= {(kind, name): so, ("all", name): so}
                    if model is not None and vectors is not None:
                        nearest = by_cosine(turns, vectors, question["ask"], model)
                        figures |= {("all, by cosine", name): so for name, so in judged(nearest, question).items()}
                for key, so in figures.items():
                    values[key].append((number, 100.0 * so))
    rows = [[kind, *(interval(values[kind, name]) for name in NAMES)] for kind in (*KINDS, "all", "all, by cosine")]
    about = {"part": part, "embedder": embedder}
    return Report(name="chats", about=about, tables=[Table(title="percent", columns=["", *NAMES], rows=rows)])

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

With `--read` a language model has read each session: its answers are in `*.read.json`, and so is, by another one, which memories
tell the answer to a question and which a former one. Where a memory is found that was not judged, it counts as wrong.

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
from wellworn.core.fence import escape
from wellworn.models.port import Embedder, Matrix

CHATS = Path(__file__).parent / "lives" / "chats"
NAMES = ("first", "five", "outdated", "sure")
SURE = 0.5
KINDS = ("now", "once", "past", "assistant", "absent")


def chats(part: str, suffix: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((CHATS / f"{part}{suffix}.json").read_text())
    return found


class Reader:
    """A language model that has read these lives: its recorded answers, whatever the prompts around the data are."""

    def __init__(self, lives: Sequence[dict[str, Any]], read: Sequence[dict[str, Any]]) -> None:
        self._read = {
            escape(session["turns"][0][1]): memories
            for life, recorded in zip(lives, read, strict=True)
            for session, memories in zip(life["sessions"], recorded["sessions"], strict=True)
        }
        self._memories = {escape(one["summary"]): one for memories in self._read.values() for one in memories}

    def __call__(self, prompt: str) -> str:
        if (begin := prompt.rfind('{"existing_memories"')) >= 0:
            return self._decided(json.loads(prompt[begin:]))
        first = (
            prompt.rsplit("<dialogue>", 1)[1].split(" | ", 3)[3].split("\nTurn 1 | ")[0].removesuffix("\n</dialogue>")
        )
        return json.dumps({"extracted_memories": self._read[first]})

    def _decided(self, data: dict[str, Any]) -> str:
        places = {one["summary"]: one["index"] for one in data["existing_memories"]}
        lines = []
        for new in data["new_memories"]:
            one = self._memories[new["summary"]]
            olds = [str(places[old]) for old in one.get("olds", ()) if old in places]
            text = [json.dumps(one["text"], ensure_ascii=False)] if "text" in one else []
            action = f"{one['action']}({', '.join(olds + text)})" if olds else "Add()"
            lines.append(f"{new['number']}: {action}")
        return "\n".join(lines)


def told(memory: Memory, life: dict[str, Any]) -> Memory:
    """The memory of one person who said all that."""
    person = memory.for_user(f"{life['author']} {life['person']}")
    for number, session in enumerate(life["sessions"]):
        at, chat = datetime.fromisoformat(f"{session['date']}T09:00+00:00"), person.session(str(number))
        for turn, (role, text) in enumerate(session["turns"]):
            chat.add(role, text, at=at + timedelta(minutes=turn))
        chat.end(wait=60)
    return person


def judged(entries: Sequence[Entry], question: dict[str, Any], read: dict[str, Any] | None) -> dict[str, bool]:
    """What the entries that were found for one question are; a memory is what its judge said of it in `read`."""
    told = read or {}

    def has(entry: Entry, turns: Sequence[str], texts: Sequence[str]) -> bool:
        if read is not None and entry.kind != "episode":
            return entry.text in texts
        return not {f"{entry.session_id}.{turn}" for turn in entry.turn_refs}.isdisjoint(turns)

    right = [has(entry, question["at"], told.get("right", ())) for entry in entries]
    former = [has(entry, question.get("outdated", ()), told.get("former", ())) for entry in entries]
    first = right.index(True) if any(right) else len(right)
    return {"first": right[:1] == [True], "five": any(right), "outdated": any(former[:first])}


def by_cosine(turns: Sequence[Entry], vectors: Matrix, query: str, embedder: Embedder) -> list[Entry]:
    """The baseline: of all turns the five nearest."""
    return [turns[place] for place in np.argsort(-(vectors @ embedder.embed_query(query)))[:5]]


def run(part: str, *, embedder: str, read: bool = False) -> Report:
    """The share of questions of each kind, and of all that have an answer; of these also by plain cosine."""
    values: defaultdict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    lives, labels = chats(part), chats(part, ".read") if read else []
    reader = Reader(lives, labels) if read else None
    with Memory(":memory:", learning="off", embedder=embedder, llm=reader) as memory:
        for number, life in enumerate(lives):
            person, model = told(memory, life), memory.engine.embedder
            turns = person.entries(kind="episode", state=["active", "superseded"], limit=1000)
            vectors = None if model is None else model.embed([turn.text for turn in turns])
            for place, question in enumerate(life["questions"]):
                of_memories = labels[number]["questions"][place] if read else None
                kind, found = question["kind"], person.recall(question["ask"], k=5)
                figures = {(kind, "sure"): (found.confidence or 0.0) >= SURE}
                if kind != "absent":
                    for name, so in judged([hit.entry for hit in found.hits], question, of_memories).items():
                        figures |= {(kind, name): so, ("all", name): so}
                    if model is not None and vectors is not None:
                        nearest = by_cosine(turns, vectors, question["ask"], model)
                        figures |= {
                            ("all, by cosine", name): so for name, so in judged(nearest, question, None).items()
                        }
                for key, so in figures.items():
                    values[key].append((number, 100.0 * so))
    rows = [[kind, *(interval(values[kind, name]) for name in NAMES)] for kind in (*KINDS, "all", "all, by cosine")]
    about = {"part": part, "embedder": embedder, "read by a model": read}
    return Report(name="chats", about=about, tables=[Table(title="percent", columns=["", *NAMES], rows=rows)])

"""Gates: one set of numbers that a change of structure must not move.

Runs against any version of the package, using only calls that every version has:

    python evals/gates.py --package wellworn --data DATA --out after.json
    python evals/gates.py --compare before.json after.json

Quality is LoCoMo, RealMem and multi-hop recall, and learning under five kinds of feedback. Speed is CPU time of warm
calls, as ratios to a fixed numpy scan timed in the same run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

FEEDBACK = {"perfect": (0.0, 0.0), "9/5": (0.09, 0.05), "30/15": (0.30, 0.15), "random": None, "inverted": None}
TOLERANCE = 0.5
SLOWER = 1.10


# -- data ------------------------------------------------------------------------------------------------------------


def locomo(folder: Path) -> list[dict[str, Any]]:
    """Conversations: sessions of (speaker, text) turns, questions with their evidence turns."""
    found = []
    for path in sorted(folder.glob("*.json")):
        sample = json.loads(path.read_text(encoding="utf-8"))
        talk = sample.get("conversation", sample)
        numbers = sorted(int(m[1]) for key in talk if (m := re.fullmatch(r"session_(\d+)", key)))
        sessions: list[tuple[str, datetime | None, list[tuple[str, str]]]] = []
        places: dict[str, tuple[str, int]] = {}
        for number in numbers:
            key = f"session_{number}"
            date = talk.get(f"{key}_date_time")
            at = datetime.strptime(date.upper(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC) if date else None
            spoken = [turn for turn in talk[key] if turn["text"].strip() or turn.get("blip_caption")]
            places |= {turn["dia_id"]: (key, index) for index, turn in enumerate(spoken)}
            turns = [
                (t["speaker"], t["text"] + (f" [shares {c}]" if (c := t.get("blip_caption")) else "")) for t in spoken
            ]
            sessions.append((key, at, turns))
        questions = []
        for item in sample["qa"]:
            ids = [i for text in item.get("evidence") or [] for i in re.findall(r"D\d+:\d+", str(text))]
            evidence = {places[i] for i in ids if i in places}
            if evidence:
                questions.append((item["question"], evidence))
        found.append({"name": path.stem, "sessions": sessions, "questions": questions})
    return found


def turns_of(hits: list[Any]) -> list[tuple[str, int]]:
    return [(hit.entry.session_id, n) for hit in hits if hit.entry.session_id for n in hit.entry.turn_refs]


def recall_at(ranked: list[Any], relevant: set[Any], k: int) -> float:
    return len(relevant.intersection(list(dict.fromkeys(ranked))[:k])) / len(relevant)


class Gates:
    """The measurements, on one version of the package."""

    def __init__(self, package: str, data: Path) -> None:
        self.module = importlib.import_module(package)
        self.package = package
        self.data = data

    def open(self, where: str | Path = ":memory:", **options: Any) -> Any:
        return self.module.Memory.open(where, **options)

    def scope(self, name: str) -> Any:
        return self.module.Scope(tenant="eval", user=name)

    def tell(self, memory: Any, talk: dict[str, Any]) -> None:
        for session_id, at, turns in talk["sessions"]:
            session = memory.session(scope=self.scope(talk["name"]), session_id=session_id)
            for speaker, text in turns:
                session.add(speaker, text, at=at)

    def locomo(self) -> dict[str, float]:
        """Evidence turns in the first 5, mean over questions."""
        scores: list[float] = []
        for talk in locomo(self.data / "locomo"):
            with self.open() as memory:
                self.tell(memory, talk)
                for text, evidence in talk["questions"]:
                    hits = memory.recall(text, scope=self.scope(talk["name"]), k=5).hits
                    scores.append(recall_at(turns_of(hits), evidence, 5))
        return {"locomo turn@5": 100 * fmean(scores)}

    def realmem(self) -> dict[str, float]:
        """Right sessions in the first 10, each question asked at its time."""
        scores: list[float] = []
        for path in sorted((self.data / "realmem").glob("*.json")):
            earlier: set[str] = set()
            with self.open() as memory:
                for item in json.loads(path.read_text(encoding="utf-8"))["dialogues"]:
                    turns = item["dialogue_turns"]
                    for turn, answer in zip(turns, [*turns[1:], {}], strict=True):
                        gold = set(answer.get("memory_session_uuids") or []) & earlier
                        if turn.get("is_query") and gold:
                            hits = memory.recall(turn["content"], scope=self.scope("p"), k=200).hits
                            scores.append(recall_at([h.entry.session_id for h in hits if h.entry.session_id], gold, 10))
                    at = datetime.strptime(item["current_time"][:10], "%Y-%m-%d").replace(tzinfo=UTC)
                    session = memory.session(scope=self.scope("p"), session_id=item["session_uuid"])
                    for turn in turns:
                        if turn["content"].strip():
                            session.add(turn["speaker"], turn["content"], at=at)
                    earlier.add(item["session_uuid"])
        return {"realmem session@10": 100 * fmean(scores)}

    def multihop(self) -> dict[str, float]:
        """Supporting passages in the first 5, and how often all of them are there; titled passages."""
        found: dict[str, float] = {}
        for path in sorted((self.data / "multihop").glob("*_corpus.json")):
            corpus = json.loads(path.read_text(encoding="utf-8"))
            pairs = (
                [(t, "".join(s)) for t, s in corpus.items()]
                if isinstance(corpus, dict)
                else [(p["title"], p["text"]) for p in corpus]
            )
            pairs = [(title, text if text.strip() else title) for title, text in pairs]
            by_text, by_title = {p: i for i, p in enumerate(pairs)}, {p[0]: i for i, p in enumerate(pairs)}
            share, whole = [], []
            with self.open() as memory:
                items = [
                    {"text": x, "title": t, "kind": "fact", "metadata": {"passage": i}}
                    for i, (t, x) in enumerate(pairs)
                ]
                memory.remember_many(items, scope=self.scope("p"))
                for q in json.loads((path.parent / path.name.replace("_corpus", "")).read_text(encoding="utf-8")):
                    if "paragraphs" in q:
                        gold = {
                            by_text[k]
                            for p in q["paragraphs"]
                            if p["is_supporting"] and (k := (p["title"], p["paragraph_text"])) in by_text
                        }
                    else:
                        gold = {by_title[t] for t, _ in q["supporting_facts"] if t in by_title}
                    if not gold:
                        continue
                    hits = memory.recall(q["question"], scope=self.scope("p"), k=15).hits
                    score = recall_at([int(h.entry.metadata["passage"]) for h in hits], gold, 5)
                    share.append(score)
                    whole.append(float(score == 1))
            name = path.stem.removesuffix("_corpus")
            found |= {f"{name} passage@5": 100 * fmean(share), f"{name} all@5": 100 * fmean(whole)}
        return found

    def learning(self) -> dict[str, float]:
        """LoCoMo lived through question by question: the others first, then the one left out; its turn@5."""
        talks = locomo(self.data / "locomo")
        found: dict[str, float] = {}
        with tempfile.TemporaryDirectory() as place:
            filled = Path(place) / "filled.db"
            with self.open(filled, learning="off", durability="normal") as memory:
                for talk in talks:
                    self.tell(memory, talk)
            for name in FEEDBACK:
                scores: list[float] = []
                for left_out in talks:
                    life = Path(place) / "life.db"
                    shutil.copy(filled, life)
                    draw = random.Random(7)
                    with self.open(
                        life,
                        durability="normal",
                        new_id=lambda d=draw: str(uuid.UUID(int=d.getrandbits(128), version=4)),
                    ) as memory:
                        for talk in [t for t in talks if t is not left_out] + [left_out]:
                            lived = self._live(memory, talk, name)
                        scores += lived
                    life.unlink()
                found[f"learned, {name}"] = 100 * fmean(scores)
        return found

    def _live(self, memory: Any, talk: dict[str, Any], feedback: str) -> list[float]:
        rng = random.Random(f"0/{talk['name']}")
        order = list(range(len(talk["questions"])))
        rng.shuffle(order)
        scores = []
        for number in order:
            text, evidence = talk["questions"][number]
            found = memory.recall(text, scope=self.scope(talk["name"]), k=5)
            scores.append(recall_at(turns_of(found.hits), evidence, 5))
            cited = []
            for place, hit in enumerate(found.hits):
                useful, chance = not evidence.isdisjoint(turns_of([hit])), rng.random()
                noise = FEEDBACK[feedback]
                if noise is not None:
                    cites = chance >= noise[0] if useful else chance < noise[1]
                else:
                    cites = chance < 0.3 if feedback == "random" else not useful
                if cites:
                    cited.append(place)
            memory.outcome(found.id, cited=cited, scope=self.scope(talk["name"]))
        return scores

    def speed(self) -> dict[str, float]:
        """CPU time of warm calls over 10,000 entries, as ratios to a numpy scan; import times in seconds of CPU."""
        rng = random.Random(3)
        words = [f"{a}{b}" for a in "bcdfglmnprst" for b in ("ado", "eli", "ino", "oru", "uma", "ane", "ilt", "ors")]
        texts = [" ".join(rng.choices(words, k=14)) for _ in range(10_000)]
        scan = np.random.default_rng(0).standard_normal((10_000, 256), dtype=np.float32)
        found: dict[str, float] = {}
        with tempfile.TemporaryDirectory() as place, self.open(Path(place) / "m.db") as memory:
            scope = self.scope("p")
            memory.remember_many(texts, scope=scope)
            memory.recall("warm up", scope=scope)
            questions = [" ".join(rng.choices(words, k=6)) for _ in range(330)]
            recalls: list[Any] = []

            def ask(i: int) -> None:
                recalls.append(memory.recall(questions[i], scope=scope))

            calls: dict[str, Callable[[int], Any]] = {
                "floor": lambda i: np.argpartition(scan @ scan[i], -5),
                "recall": ask,
                "outcome": lambda i: memory.outcome(recalls[-1].id, cited=[0]),
                "remember": lambda i: memory.remember(f"{questions[i]} {i}", scope=scope),
            }
            times: dict[str, list[float]] = {name: [] for name in calls}
            for i in range(330):
                for name, call in calls.items():
                    start = time.thread_time()
                    call(i)
                    if i >= 30:
                        times[name].append(time.thread_time() - start)
            floor = median(times["floor"])
            for name in ("recall", "outcome", "remember"):
                found[f"{name}, ms of CPU"] = 1000 * median(times[name])
                found[f"{name}, ratio to scan"] = median(times[name]) / floor
        for statement in (f"import {self.package}", f"from {self.package} import Memory"):
            code = f"import time; t=time.process_time(); {statement}; print(time.process_time()-t)"
            spent = [
                float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)
                for _ in range(5)
            ]
            found[f"{statement.replace(self.package, 'PACKAGE')}, s of CPU"] = min(spent)
        return found


GATES = ("locomo", "realmem", "multihop", "learning", "speed")


def compare(before: Path, after: Path) -> int:
    """Print both side by side; 1 if quality fell by more than the tolerance or a ratio grew."""
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    failed = 0
    for name, value in old.items():
        if name not in new:
            print(f"  missing {name}")
            failed = 1
            continue
        slow = "CPU" in name or "ratio" in name
        worse = (
            new[name] > value * SLOWER
            if "ratio" in name or "s of CPU" in name.split(", ")[-1:]
            else not slow and new[name] < value - TOLERANCE
        )
        failed |= int(worse)
        print(f"{'! ' if worse else '  '}{name:<34} {value:9.3f} {new[name]:9.3f}")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", default="wellworn")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="*", choices=GATES, default=GATES)
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    args = parser.parse_args()
    if args.compare:
        return compare(*args.compare)
    gates = Gates(args.package, args.data)
    found: dict[str, float] = {}
    for name in args.only:
        start = time.time()
        found |= getattr(gates, name)()
        print(f"{name} took {time.time() - start:.0f} s", file=sys.stderr)
        if args.out:
            args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

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
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # it also runs as a script, beside another version of the package

from evals import data
from evals.data import Conversation, Dialogue

FEEDBACK = {"perfect": (0.0, 0.0), "9/5": (0.09, 0.05), "30/15": (0.30, 0.15), "random": None, "inverted": None}
TOLERANCE = 0.5
SLOWER = 1.10


def turns_of(hits: list[Any]) -> list[tuple[str, int]]:
    return [(hit.entry.session_id, n) for hit in hits if hit.entry.session_id for n in hit.entry.turn_refs]


def recall_at(ranked: list[Any], relevant: Collection[Any], k: int) -> float:
    return len(set(relevant).intersection(list(dict.fromkeys(ranked))[:k])) / len(relevant)


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

    def tell(self, memory: Any, name: str, sessions: list[Dialogue]) -> None:
        for dialogue in sessions:
            session = memory.session(scope=self.scope(name), session_id=dialogue.id)
            for speaker, text in dialogue.turns:
                session.add(speaker, text, at=dialogue.at)

    def locomo(self) -> dict[str, float]:
        """Evidence turns in the first 5, mean over questions."""
        scores: list[float] = []
        for talk in data.locomo(self.data / "locomo"):
            with self.open() as memory:
                self.tell(memory, talk.name, talk.sessions)
                for question in talk.questions:
                    hits = memory.recall(question.text, scope=self.scope(talk.name), k=5).hits
                    scores.append(recall_at(turns_of(hits), question.evidence, 5))
        return {"locomo turn@5": 100 * fmean(scores)}

    def realmem(self) -> dict[str, float]:
        """Right sessions in the first 10, each question asked at its time."""
        scores: list[float] = []
        for persona in data.realmem(self.data / "realmem"):
            with self.open() as memory:
                for dialogue in persona.sessions:
                    for question in dialogue.questions:
                        hits = memory.recall(question.text, scope=self.scope("p"), k=200).hits
                        sessions = [hit.entry.session_id for hit in hits if hit.entry.session_id]
                        scores.append(recall_at(sessions, question.evidence, 10))
                    self.tell(memory, "p", [dialogue])
        return {"realmem session@10": 100 * fmean(scores)}

    def multihop(self) -> dict[str, float]:
        """Supporting passages in the first 5, and how often all of them are there; titled passages."""
        found: dict[str, float] = {}
        for corpus in data.multihop(self.data / "multihop"):
            items = [
                {"text": text, "title": title, "kind": "fact", "metadata": {"passage": number}}
                for number, (title, text) in enumerate(corpus.passages)
            ]
            shares = []
            with self.open() as memory:
                memory.remember_many(items, scope=self.scope("p"))
                for question in corpus.questions:
                    hits = memory.recall(question.text, scope=self.scope("p"), k=15).hits
                    ranked = [int(hit.entry.metadata["passage"]) for hit in hits]
                    shares.append(recall_at(ranked, question.evidence, 5))
            found[f"{corpus.name} passage@5"] = 100 * fmean(shares)
            found[f"{corpus.name} all@5"] = 100 * fmean(share == 1 for share in shares)
        return found

    def learning(self) -> dict[str, float]:
        """LoCoMo lived through question by question: the others first, then the one left out; its turn@5."""
        talks = data.locomo(self.data / "locomo")
        found: dict[str, float] = {}
        with tempfile.TemporaryDirectory() as place:
            filled = Path(place) / "filled.db"
            with self.open(filled, learning="off", durability="normal") as memory:
                for talk in talks:
                    self.tell(memory, talk.name, talk.sessions)
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

    def _live(self, memory: Any, talk: Conversation, feedback: str) -> list[float]:
        rng = random.Random(f"0/{talk.name}")
        order = list(range(len(talk.questions)))
        rng.shuffle(order)
        scores = []
        for number in order:
            question = talk.questions[number]
            evidence = question.evidence
            found = memory.recall(question.text, scope=self.scope(talk.name), k=5)
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
            memory.outcome(found.id, cited=cited, scope=self.scope(talk.name))
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
    """Print both side by side; 1 if quality fell by more than the tolerance or a ratio to the scan grew."""
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    failed = 0
    for name, value in old.items():
        now = new.get(name)
        speed = "CPU" in name or "ratio" in name
        worse = now is None or ("ratio" in name and now > value * SLOWER) or (not speed and now < value - TOLERANCE)
        failed |= int(worse)
        shown = "missing" if now is None else f"{now:9.3f}"
        print(f"{'! ' if worse else '  '}{name:<34} {value:9.3f} {shown}")
    return failed


def run(data_folder: Path, only: Sequence[str] = GATES, *, package: str = "wellworn") -> dict[str, float]:
    """Measure, and say on standard error how long each took."""
    gates = Gates(package, data_folder)
    found: dict[str, float] = {}
    for name in only:
        start = time.time()
        found |= getattr(gates, name)()
        print(f"{name} took {time.time() - start:.0f} s", file=sys.stderr)
    return found


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
    text = json.dumps(run(args.data, args.only, package=args.package), indent=1)
    print(text)
    if args.out:
        args.out.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

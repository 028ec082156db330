"""What the reader is trained on, as numbers of tokens: reads `data/`, needs no PyTorch.

A *room* is a set of texts with questions about them: a life, a dialogue, a binder of notes. A question has the texts that answer
it, and those that did once. A *pair* is a question with one text that answers it, and perhaps one that only looks so.

    python -m training.examples OUT [--public DIR]

`DIR` holds the public sets that `CARD.md` names; without them the rest is built.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wellworn.language.sentences import sentences
from wellworn.language.wordpiece import WordPiece

DATA = Path(__file__).parent / "data"
EVALS = Path(__file__).parent.parent / "evals"
MOST_TOKENS = 200
LANGUAGES = {"deu", "fra", "spa", "ita", "por", "nld", "pol", "swe", "dan", "nob"}
MADE_UP = 60_000
"""Messages that are put together from sentences on known topics."""


@dataclass
class Question:
    """`at` and `former` are places of texts in its room."""

    text: str
    kind: str
    at: list[int]
    former: list[int] = field(default_factory=list)


@dataclass
class Room:
    """`said` has for each text who says it, and how many days before the end."""

    name: str
    kind: str
    texts: list[str]
    said: list[tuple[str, int]]
    questions: list[Question]


@dataclass
class Pair:
    """`same` names texts that answer each other's questions, so that none is a negative of another."""

    question: str
    text: str
    near: str = ""
    same: str = ""


# -- what was written for it -----------------------------------------------------------------------------------------


def lives() -> Iterator[Room]:
    """Of `data/lives`, and of `evals/lives/chats/tune.json`, which may be looked at."""
    for path in sorted((DATA / "lives").glob("*.txt")):
        yield life_of_text(path)
    for path in [*sorted((DATA / "lives").glob("*.json")), EVALS / "lives" / "chats" / "tune.json"]:
        for number, one in enumerate(json.loads(path.read_text(encoding="utf-8"))):
            yield life_of_json(one, f"{path.stem}-{number}")


def life_of_text(path: Path) -> Room:
    """A life as its author wrote it: sessions, turns with their numbers, questions."""
    days: list[str] = []
    places: dict[str, int] = {}
    texts: list[str] = []
    said: list[tuple[str, str]] = []
    questions: list[Question] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            days.append(line[3:].strip())
        elif turn := re.match(r"(\d+\.\d+) ([^:]{1,30}): (.+)", line):
            places[turn[1]] = len(texts)
            who = {"U": "user", "A": "assistant"}.get(turn[2], turn[2])
            texts.append(turn[3].strip() if who in ("user", "assistant") else f"{who}: {turn[3].strip()}")
            said.append((who, days[-1]))
        elif line.startswith("? "):
            fields = [part.strip() for part in line[2:].split("|")]
            kind, ask, at, former = (
                (fields[0], fields[1], fields[3], fields[4]) if len(fields) == 5 else ("talk", fields[0], fields[1], "")
            )
            right, before = ([places[one] for one in part.replace(",", " ").split()] for part in (at, former))
            questions.append(Question(ask, kind, right, [one for one in before if one not in right]))
    return Room(path.stem, "talk" if questions[0].kind == "talk" else "life", texts, _ages(said), questions)


def life_of_json(one: dict[str, Any], name: str) -> Room:
    """A life in the form of `evals/lives/chats`."""
    places: dict[str, int] = {}
    texts, said = list[str](), list[tuple[str, str]]()
    for session, of_day in enumerate(one["sessions"]):
        for number, (who, text) in enumerate(of_day["turns"]):
            places[f"{session}.{number}"] = len(texts)
            texts.append(text)
            said.append((who, of_day["date"]))
    questions = [
        Question(
            asked["ask"],
            asked["kind"],
            [places[at] for at in asked["at"] if at in places],
            [places[at] for at in asked.get("outdated", ()) if at in places and at not in asked["at"]],
        )
        for asked in one["questions"]
    ]
    return Room(name, "life", texts, _ages(said), questions)


def _ages(said: list[tuple[str, str]]) -> list[tuple[str, int]]:
    days = [np.datetime64(day) for _, day in said]
    return [(who, int((max(days) - day).astype(int))) for (who, _), day in zip(said, days, strict=True)]


def talks() -> Iterator[Room]:
    """Dialogues of two people, and what a third person asks about them."""
    return map(life_of_text, sorted((DATA / "talk").glob("*.txt")))


def notes() -> Iterator[Room]:
    """Notes, code facts and documents of one place."""
    for path in sorted((DATA / "notes").glob("*.txt")):
        places: dict[str, int] = {}
        texts: list[str] = []
        questions: list[Question] = []
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("? "):
                ask, _, at = line[2:].rpartition("|")
                right = [places[one] for one in at.replace(",", " ").split() if one in places]
                if right:
                    questions.append(Question(ask.strip(), "note", right))
            elif entry := re.match(r"(\d+)\s+(.+)", line):
                places[entry[1]] = len(texts)
                texts.append(re.sub(r"^\[(?:[^\]]*> )?([^\]>]+)\]\s*", r"\1. ", entry[2]))
        yield Room(path.stem, "note", texts, [("note", 0)] * len(texts), questions)


def messages() -> Iterator[Pair]:
    """Single messages with questions and a near miss; in other languages also asked in English, and told in it."""
    for path in sorted((DATA / "messages").glob("*.jsonl")):
        for one in _lines(path):
            for ask in one["qs"]:
                yield Pair(ask if isinstance(ask, str) else ask[0], one["msg"], one.get("near") or "")
    for path in sorted((DATA / "lang").glob("*.jsonl")):
        for one in _lines(path):
            for ask in [*one["qs"], *one["en"]]:
                yield Pair(ask, one["msg"], one.get("near") or "")
            for ask in one["qs"]:
                yield Pair(ask, one["msg_en"])
            yield Pair(one["msg_en"], one["msg"])


def spoken() -> list[str]:
    """Every sentence of `evals/sentences`."""
    lines = (
        line for path in sorted((EVALS / "sentences").glob("*.txt")) for line in path.read_text("utf-8").splitlines()
    )
    return [found[1] for line in lines if (found := re.match(r"[tcq]:\s*(.+)", line))]


def made_up(count: int, chance: random.Random) -> Iterator[Pair]:
    """Questions on topics of `evals/sentences` against messages that hold a sentence on them among others."""
    told: defaultdict[str, list[str]] = defaultdict(list)
    asked: defaultdict[str, list[str]] = defaultdict(list)
    chatter: list[str] = []
    for path in sorted((EVALS / "sentences").glob("*.txt")):
        topic = "none"
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                topic = line[1:].split()[0]
            elif found := re.match(r"([tcq]):\s*(.+)", line):
                if path.stem == "none":
                    chatter += [found[2]] if found[1] != "q" else []
                else:
                    (asked if found[1] == "q" else told)[topic].append(found[2])
    topics = sorted(topic for topic in asked if told[topic])
    for _ in range(count):
        topic = chance.choice(topics)
        parts, held = [chance.choice(told[topic])], {topic}
        while chance.random() < 0.45 and len(parts) < 4:
            if chance.random() < 0.5:
                parts.append(chance.choice(chatter))
            else:
                other = chance.choice(topics)
                held.add(other)
                parts.append(chance.choice(told[other]))
        chance.shuffle(parts)
        text = " ".join(one if one[-1] in ".!?" else one + chance.choice([".", "", ",", " -"]) for one in parts)
        yield Pair(chance.choice(asked[topic]), text, same=" ".join(sorted(held)))


# -- public sets -----------------------------------------------------------------------------------------------------


def public(folder: Path) -> dict[str, list[Pair]]:
    """Pairs of the public sets, by the name of the set."""

    def rows(name: str) -> Iterable[dict[str, Any]]:
        return _lines(folder / f"{name}.jsonl.gz")

    found: dict[str, list[Pair]] = {
        "persona": [Pair(one["question"], one["answer"]) for one in rows("persona_chat_qa")],
        "topical": [Pair(one["question"], one["answer"]) for one in rows("topical_chat_qa")],
        "dstc9": [
            Pair(one["question"], f"{one['entity'].title()}. {one['answer']}" if one["entity"] else one["answer"])
            for one in rows("dstc9_faq_pairs")
        ],
        "disfl": [Pair(one["disfluent"], one["original"]) for one in rows("disfl_qa_pairs")],
        "tatoeba": [
            Pair(one["text"], one["eng"]) for one in rows("tatoeba_laser_parallel") if one["lang"] in LANGUAGES
        ],
        "letta": [],
        "qmsum": [],
    }
    for one in rows("letta_core_memory_read"):
        facts = [fact for fact in one["facts"] if one["answer"] in fact]
        found["letta"] += [Pair(one["question"], chosen) for chosen in facts[:1]]
    turns = {one["id"]: one["turns"] for one in rows("qmsum_meetings")}
    for one in rows("qmsum_queries"):
        for first, last in one["spans"][:1]:
            said = [f"{who}: {text}" for who, text in turns[one["meeting"]][first : last + 1] if len(text) > 120]
            found["qmsum"] += [Pair(one["query"], text) for text in said[:2]]
    return {name: [pair for pair in pairs if _is_fine(pair)] for name, pairs in found.items()}


def _is_fine(pair: Pair) -> bool:
    return len(pair.text) > 15 and len(pair.question) > 8


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


# -- as numbers ------------------------------------------------------------------------------------------------------


class Texts:
    """Every text once, as tokens, with the ends of its sentences."""

    def __init__(self, pieces: WordPiece) -> None:
        self._pieces, self._place = pieces, dict[str, int]()
        self.tokens: list[list[int]] = []
        self.ends: list[list[int]] = []

    def add(self, text: str) -> int:
        if text not in self._place:
            self._place[text] = len(self.tokens)
            tokens, ends = [self._pieces.cls], []
            for begin, end in sentences(text):
                tokens += self._pieces.ids(text[begin:end])
                ends.append(min(len(tokens), MOST_TOKENS - 1))
            tokens = [*tokens[: MOST_TOKENS - 1], self._pieces.sep]
            self.tokens.append(tokens)
            self.ends.append(sorted({end for end in ends if end > 1}) or [len(tokens) - 1])
        return self._place[text]

    def arrays(self) -> dict[str, Any]:
        return {
            "tokens": np.array([one for text in self.tokens for one in text], dtype=np.uint16),
            "lengths": np.array([len(text) for text in self.tokens], dtype=np.uint16),
            "ends": np.array([one for text in self.ends for one in text], dtype=np.uint16),
            "counts": np.array([len(text) for text in self.ends], dtype=np.uint8),
        }


def _vocabulary() -> list[str]:
    from wellworn.language.reader import vocabulary

    return vocabulary()


def locomo(folder: Path) -> Iterator[Room]:
    """Dialogues of LoCoMo, which are only looked at, never trained on."""
    from evals import data

    for talk in data.locomo(folder):
        places, texts = dict[data.Place, int](), list[str]()
        for session in talk.sessions:
            for number, (speaker, text) in enumerate(session.turns):
                places[session.id, number] = len(texts)
                texts.append(f"{speaker}: {text}")
        questions = [Question(one.text, one.category, [places[at] for at in one.evidence]) for one in talk.questions]
        yield Room(f"held-locomo-{talk.name}", "talk", texts, [("person", 0)] * len(texts), questions)


def build(
    out: Path,
    folder: Path | None,
    *,
    made: int = MADE_UP,
    held: Iterable[str] = ("check",),
    looked_at: Path | None = None,
) -> dict[str, int]:
    """Write `examples.npz` and `examples.json`; returns how much there is of each kind."""
    texts, chance = Texts(WordPiece(_vocabulary())), random.Random(0)
    rooms = [*lives(), *talks(), *notes()]
    for name in held:
        parts = json.loads((EVALS / "lives" / "chats" / f"{name}.json").read_text(encoding="utf-8"))
        rooms += [life_of_json(one, f"held-{name}-{number}") for number, one in enumerate(parts)]
    rooms += locomo(looked_at) if looked_at else []
    pairs = {"messages": [*messages()], "made_up": [*made_up(made, chance)], **(public(folder) if folder else {})}
    saved: dict[str, Any] = {
        "rooms": [
            {
                "name": room.name,
                "kind": room.kind,
                "texts": [texts.add(text) for text in room.texts],
                "said": room.said,
                "questions": [[texts.add(one.text), one.kind, one.at, one.former] for one in room.questions],
            }
            for room in rooms
        ],
        "pairs": {
            name: [
                [texts.add(one.question), texts.add(one.text), texts.add(one.near) if one.near else -1, one.same]
                for one in some
            ]
            for name, some in pairs.items()
        },
    }
    out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out / "examples.npz", **texts.arrays())
    (out / "examples.json").write_text(json.dumps(saved), encoding="utf-8")
    counts = {f"rooms of {kind}": sum(room.kind == kind for room in rooms) for kind in ("life", "talk", "note")}
    counts["questions"] = sum(len(room.questions) for room in rooms)
    return counts | {name: len(some) for name, some in pairs.items()} | {"texts": len(texts.tokens)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build what the reader is trained on.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--public", type=Path, default=None, metavar="DIR", help="the public sets of CARD.md")
    parser.add_argument("--locomo", type=Path, default=None, metavar="DIR", help="LoCoMo, to look at while training")
    given = parser.parse_args()
    for name, count in build(given.out, given.public, looked_at=given.locomo).items():
        print(f"{count:>8,} {name}")

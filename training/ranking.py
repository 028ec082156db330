"""Fit the weights of the ranking on what the product sees: `python -m training.ranking FOLDER --data DIR`.

`FOLDER` has lives that the reader was not trained on; `DIR` has the public sets. Every question is asked of a real memory, and the
factors of its candidates are written down. A conditional softmax over the candidates of each question gives the weights; what is
printed comes from folds by room, so no question is judged by weights that have seen its room.
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from evals import data

from training.examples import EVALS, Room, life_of_json, life_of_text
from wellworn import Memory
from wellworn.search.filters import NO_FILTERS
from wellworn.search.score import FACTORS, Ranked, View

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
NEAREST = 24
"""Best candidates whose texts are kept, for the head that reads them."""
SHARES = {"chats": 3.0, "facts": 1.0, "realmem": 0.6, "locomo": 1.0, "notes": 1.0}


@dataclass
class Asked:
    """One question with its candidates."""

    room: str
    set: str
    kind: str
    text: str
    factors: np.ndarray
    """Shape (candidates, names)."""
    right: np.ndarray
    former: np.ndarray
    sessions: np.ndarray
    wanted: int
    """How many texts, or sessions, answer it."""
    read: list[tuple[str, str, float]] = field(default_factory=list)
    """Text, voice and age in days of the best candidates,"""
    places: list[int] = field(default_factory=list)
    """and which candidates these are."""


@dataclass
class Told:
    """A room as it is told to a memory: texts in sessions, and questions, some of them between two sessions."""

    name: str
    set: str
    texts: list[tuple[str, str, int, datetime]]
    """Who, what, the number of the session, when."""
    titles: list[str]
    questions: list[tuple[str, str, set[int], set[int], set[int], int]]
    """Text, kind, places of right and of former texts, right sessions, and how many texts had been told."""


def _lives(rooms: Sequence[Room]) -> Iterator[Told]:
    for room in rooms:
        days = [age for _, age in room.said]
        sessions = [days.index(day) for day in days]
        texts = [
            (who, text, session, BEGIN + timedelta(days=max(days) - day, minutes=place))
            for place, ((who, day), text, session) in enumerate(zip(room.said, room.texts, sessions, strict=True))
        ]
        asked = [(one.text, one.kind, {*one.at}, {*one.former}, set[int](), len(texts)) for one in room.questions]
        yield Told(room.name, "chats", texts, [], asked)


def _facts(rooms: Sequence[Room]) -> Iterator[Told]:
    """What the person of a life said, as memories without a session."""
    for life in _lives(rooms):
        own = [place for place, (who, *_) in enumerate(life.texts) if who == "user"]
        new = {place: number for number, place in enumerate(own)}
        asked = [
            (
                text,
                kind,
                {new[one] for one in right & {*own}},
                {new[one] for one in former & {*own}},
                sessions,
                len(own),
            )
            for text, kind, right, former, sessions, _ in life.questions
            if right & {*own} or not right
        ]
        yield Told(life.name, "facts", [life.texts[place] for place in own], [""] * len(own), asked)


def _locomo(folder: Path) -> Iterator[Told]:
    for talk in data.locomo(folder):
        places: dict[tuple[str, int], int] = {}
        texts = []
        for number, session in enumerate(talk.sessions):
            for turn, (who, text) in enumerate(session.turns):
                places[session.id, turn] = len(texts)
                texts.append((who, text, number, (session.at or BEGIN) + timedelta(seconds=turn)))
        asked = [
            (one.text, one.category, {places[at] for at in one.evidence}, set[int](), set[int](), len(texts))
            for one in talk.questions
        ]
        yield Told(talk.name, "locomo", texts, [], asked)


def _realmem(folder: Path) -> Iterator[Told]:
    for talk in data.realmem(folder):
        numbers = {session.id: number for number, session in enumerate(talk.sessions)}
        texts: list[tuple[str, str, int, datetime]] = []
        asked = []
        for number, session in enumerate(talk.sessions):
            asked += [
                (one.text, one.category, set[int](), set[int](), {numbers[at] for at in one.evidence}, len(texts))
                for one in session.questions
            ]
            for turn, (who, text) in enumerate(session.turns):
                texts.append((who.lower(), text, number, (session.at or BEGIN) + timedelta(seconds=turn)))
        yield Told(talk.name, "realmem", texts, [], asked)


def _notes(folder: Path) -> Iterator[Told]:
    for corpus in data.multihop(folder):
        texts = [("note", text, 0, BEGIN) for _, text in corpus.passages]
        titles = [title for title, _ in corpus.passages]
        asked = [
            (one.text, one.category, {*one.evidence}, set[int](), set[int](), len(texts)) for one in corpus.questions
        ]
        yield Told(corpus.name, "notes", texts, titles, asked)


def asked_of(told: Told) -> Iterator[Asked]:
    """Every question of a room, asked when it was asked."""
    with Memory(":memory:", learning="off", background=False) as memory:
        person, where = memory.for_user("p"), dict[tuple[str, int], int]()
        searcher = memory.engine.searcher
        if told.titles:
            person.remember_many(
                [
                    {"text": text, "title": title, "kind": "fact", "at": at, "metadata": {"place": place}}
                    for place, ((_, text, _, at), title) in enumerate(zip(told.texts, told.titles, strict=True))
                ]
            )
        due, begun, chat = sorted(told.questions, key=lambda one: one[5]), -1, None
        for place in range(len(told.texts) + 1):
            while due and due[0][5] <= place:
                text, kind, right, former, sessions, _ = due.pop(0)
                caught: list[tuple[View, dict[int, Any]]] = []

                def catch(ranked: Ranked, context: Any, caught: list[Any] = caught) -> Ranked:
                    caught.append((context.view, context.read(context.view.rows), ranked))
                    return ranked

                searcher.recall(text, scope=person.scope, k=10, filters=NO_FILTERS, refine=catch)
                if caught:
                    yield _looked_at(told, text, kind, right, former, sessions, where, *caught[0])
            if place == len(told.texts) or told.titles:
                continue
            who, text, session, at = told.texts[place]
            if session != begun:
                begun, chat, turn = session, person.session(str(session)), 0
            assert chat is not None
            chat.add(who, text, at=at)
            where[str(session), turn] = place
            turn += 1


def _looked_at(
    told: Told,
    text: str,
    kind: str,
    right: set[int],
    former: set[int],
    sessions: set[int],
    where: dict[tuple[str, int], int],
    view: View,
    entries: dict[int, Any],
    ranked: Ranked,
) -> Asked:
    rows = view.rows.tolist()
    places = [
        entries[row].metadata["place"] if told.titles else where[entries[row].session_id, entries[row].turn_refs[0]]
        for row in rows
    ]
    in_sessions = np.array([told.texts[place][2] for place in places])
    is_right = np.isin(in_sessions, [*sessions]) if sessions else np.isin(places, [*right])
    base = dict(zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True))
    order = np.argsort([-base.get(row, 0.0) for row in rows])[:NEAREST].tolist()
    age = np.maximum(view.reference - view.bank.at[view.rows], 0) / 86_400e6
    columns = [np.asarray(find(view), dtype=np.float64) for find in FACTORS.values()]
    return Asked(
        room=told.name,
        set=told.set,
        kind=kind,
        text=text,
        factors=np.stack([*columns, [base.get(row, 0.0) for row in rows]], 1).astype(np.float32),
        right=is_right,
        former=np.isin(places, [*former]),
        sessions=in_sessions,
        wanted=len(sessions or right),
        read=[(entries[rows[one]].text, told.texts[places[one]][0], float(age[one])) for one in order],
        places=order,
    )


NAMES = [*FACTORS, "base"]


# -- fitting -----------------------------------------------------------------------------------------------------------


def fit(
    items: Sequence[Asked], names: Sequence[str], *, decay: float = 1e-3, extra: dict[int, np.ndarray] | None = None
) -> np.ndarray:
    """The weights under which right texts are likeliest to be drawn."""
    items = [one for one in items if one.right.any()]
    columns = [NAMES.index(name) for name in names]
    most, width = max(len(one.right) for one in items), len(columns) + (extra is not None)
    values = torch.zeros(len(items), most, width)
    there, right = torch.zeros(len(items), most, dtype=torch.bool), torch.zeros(len(items), most, dtype=torch.bool)
    for number, one in enumerate(items):
        count = len(one.right)
        values[number, :count, : len(columns)] = torch.from_numpy(one.factors[:, columns])
        if extra is not None:
            values[number, :count, -1] = torch.from_numpy(extra[id(one)]).float()
        there[number, :count], right[number, :count] = True, torch.from_numpy(one.right)
        there[number, :count] &= ~torch.from_numpy(one.former & ~one.right) | (one.kind == "now")
    of_set: defaultdict[str, int] = defaultdict(int)
    for one in items:
        of_set[one.set] += 1
    shares = torch.tensor([SHARES[one.set] / of_set[one.set] for one in items])
    spread = values[there].std(0) + 1e-6
    weights = torch.zeros(width, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=400, line_search_fn="strong_wolfe")

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        scores = ((values / spread) @ weights).masked_fill(~there, -1e9)
        gained = torch.logsumexp(scores.masked_fill(~right, -1e9), 1) - torch.logsumexp(scores, 1)
        lost = -(shares / shares.sum() * gained).sum() + decay * weights.square().sum()
        lost.backward()
        return lost

    optimizer.step(step)
    return (weights / spread).detach().numpy()


def scored(
    items: Sequence[Asked], names: Sequence[str], folds: int = 5, *, extra: dict[int, np.ndarray] | None = None
) -> list[np.ndarray]:
    rooms = sorted({one.room for one in items})
    fold = {room: number % folds for number, room in enumerate(rooms)}
    columns = [NAMES.index(name) for name in names]
    found: list[np.ndarray] = [np.zeros(0)] * len(items)
    for part in range(folds):
        weights = fit([one for one in items if fold[one.room] != part], names, extra=extra)
        for number, one in enumerate(items):
            if fold[one.room] == part:
                values = one.factors[:, columns]
                if extra is not None:
                    values = np.concatenate([values, extra[id(one)][:, None]], 1)
                found[number] = values @ weights
    return found


def figures(items: Sequence[Asked], scores: Sequence[np.ndarray]) -> dict[str, float]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for one, score in zip(items, scores, strict=True):
        if not one.wanted:
            continue
        order = np.argsort(-score, kind="stable")
        right = one.right[order]
        if one.set in ("chats", "facts"):
            for most in (1, 5, 10):
                found[f"{one.set} {most}"].append(right[:most].any())
            found[f"{one.set} {one.kind} 1"].append(right[0])
            if one.kind == "now":
                first = int(right.argmax()) if right.any() else len(right)
                found[f"{one.set} former above"].append(one.former[order][:first].any())
        elif one.set == "realmem":
            sessions = list(dict.fromkeys(one.sessions[order].tolist()))[:10]
            found["realmem R@10"].append(len({*sessions} & {*one.sessions[one.right].tolist()}) / one.wanted)
        elif one.set == "locomo":
            found["locomo R@5"].append(right[:5].sum() / one.wanted)
        else:
            found["notes all@5"].append(right[:5].sum() == one.wanted)
    return {name: round(100 * float(np.mean(some)), 1) for name, some in found.items()}


def collected(told: Sequence[Told], out: Path) -> list[Asked]:
    items: list[Asked] = []
    for one in told:
        items += asked_of(one)
        print(one.set, one.name, len(items), flush=True)
    out.write_bytes(pickle.dumps(items))
    return items


WEIGHED = {
    "in_chats": (("chats", "realmem"), "terms meaning sentence assistant asked past recency older former length date"),
    "among_people": (("locomo",), "terms meaning similarity question date"),
}
"""What each set of weights is fitted on, and its factors; `unsure` is set by hand."""


def fitted(items: Sequence[Asked]) -> None:
    """Print the weights of each set, and how good they are in folds by room."""
    for name, (sets, factors) in WEIGHED.items():
        some, names = [one for one in items if one.set in sets], factors.split()
        if some:
            print(name, figures(some, scored(some, names)))
            print(dict(zip(names, fit(some, names).round(1).tolist(), strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the weights of the ranking.")
    parser.add_argument("lives", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", default="chats,locomo,realmem,notes")
    given = parser.parse_args()
    sets, told = given.sets.split(","), list[Told]()
    if "chats" in sets:
        rooms = [life_of_text(path) for path in sorted(given.lives.glob("*.txt"))]
        check = (EVALS / "lives" / "chats" / "check.json").read_text(encoding="utf-8")
        rooms += [life_of_json(one, f"check-{number}") for number, one in enumerate(json.loads(check))]
        told += _lives(rooms)
        told += _facts(rooms)
    if "locomo" in sets:
        told += _locomo(given.data / "locomo")
    if "notes" in sets:
        told += _notes(given.data / "multihop")
    if "realmem" in sets:
        told += _realmem(given.data / "realmem")
    fitted(collected(told, given.out))


if __name__ == "__main__":
    main()

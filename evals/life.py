"""An assistant used for months: facts that change, questions asked again, small talk; then what holds now is asked.

Each person has a dozen sessions. A fact is told, later told anew with another value, and asked about in between. At
the end every fact is asked for once. The wordings are data: `lives/tune.toml` may be looked at while tuning, claims
come from `lives/check.toml`, which another author wrote. `lives/more.toml` has 56 further facts to tune on. `lives/pairs.toml`
has pairs of statements in families, half of them look-alikes in which nothing changed. `lives/typed.toml` has such pairs as people type them. `lives/first_chat.toml` has what people
tell first.

| figure          | share of the final questions                                    |
|-----------------|-----------------------------------------------------------------|
| `first`         | the first hit has the value that holds now                      |
| `five`          | one of the first five has it                                    |
| `outdated`      | a former value stands above every hit with the present one      |
| `question`      | the first hit is something that was asked                       |
| `marked`        | of the former values shown, those marked as outdated            |
| `past`          | asked what held before, a former value comes first              |
| `as_of`         | asked as of the time a former value held, that value comes first |
| `stable`        | of facts told once, the first hit has the answer                |
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evals.report import Interval, Report, Table, interval
from wellworn import Memory, Scope
from wellworn.core.values import Recall
from wellworn.ingest.replaces import SURE, probability

LIVES = Path(__file__).parent / "lives"
START = datetime(2025, 1, 6, 9, 0, tzinfo=UTC)
BESIDES = (
    "The weather is awful today.",
    "I had pasta for lunch.",
    "I watched a film about penguins.",
    "My laptop is slow again.",
    "The train was late this morning.",
)
SESSIONS = 12
SESSIONS_APART = timedelta(days=21)


@dataclass(frozen=True, kw_only=True)
class Said:
    """One turn of a life."""

    role: str
    text: str
    at: datetime
    session: int
    asks: bool = False


@dataclass(frozen=True, kw_only=True)
class Final:
    """A question at the end, the value that holds, those that held before and when each was told."""

    ask: str
    value: str
    former: tuple[str, ...] = ()
    past: str = ""
    told: tuple[datetime, ...] = ()


@dataclass(kw_only=True)
class Life:
    """What one person said to an assistant, and what is asked at the end."""

    person: str
    turns: list[Said] = field(default_factory=list)
    finals: list[Final] = field(default_factory=list)
    unanswerable: list[str] = field(default_factory=list)


def words_of(split: str) -> dict[str, Any]:
    """The wordings of `tune`, `check` or `more`, which takes its small talk from `tune`."""
    words = tomllib.loads((LIVES / f"{split}.toml").read_text())
    return {**words_of("tune"), **words} if split == "more" else words


def life(words: dict[str, Any], person: str, rng: random.Random, *, vague: bool) -> Life:
    """A life; with `vague`, answers of the assistant do not repeat the fact."""
    made = Life(person=person)
    slots = rng.sample(words["slot"], min(16, len(words["slot"])))
    stable = rng.sample(words["stable"], min(9, len(words["stable"])))
    planned: dict[int, list[tuple[str, dict[str, Any]]]] = {number: [] for number in range(SESSIONS)}
    current: dict[str, list[tuple[str, datetime]]] = {}
    for slot in slots:
        changes = rng.choice([0, 1, 1, 2])
        when = sorted(rng.sample(range(SESSIONS - 1), 1 + changes))
        values = rng.sample(slot["values"], 1 + changes)
        for place, (number, value) in enumerate(zip(when, values, strict=True)):
            told = {"slot": slot, "new": value, "old": values[place - 1] if place else ""}
            planned[number].append(("tell" if not place else "change", told))
        for number in rng.sample(range(when[0] + 1, SESSIONS), min(2, SESSIONS - when[0] - 1)):
            planned[number].append(("ask", {"slot": slot}))
    for fact in stable:
        planned[rng.randrange(SESSIONS)].append(("fact", {"fact": fact}))
    for number, events in planned.items():
        at = START + number * SESSIONS_APART
        rng.shuffle(events)
        events.sort(key=lambda event: event[0] == "ask")
        for kind, event in events:
            for role, text, asks in _exchange(words, kind, event, current, rng, vague=vague, at=at):
                made.turns.append(Said(role=role, text=text, at=at, session=number, asks=asks))
                at += timedelta(minutes=1)
            if rng.random() < 0.5:
                for role in ("user", "assistant"):
                    text = rng.choice(words["small_talk"][role])
                    made.turns.append(
                        Said(role=role, text=text, at=at, session=number, asks=text.rstrip().endswith("?"))
                    )
                    at += timedelta(minutes=1)
    made.finals = [_final(slot, current[slot["name"]], rng) for slot in slots]
    made.finals += [Final(ask=rng.choice(fact["ask"]), value=fact["answer"]) for fact in stable]
    made.unanswerable = rng.sample(words["unanswerable"]["ask"], 10)
    return made


def _final(slot: dict[str, Any], values: list[tuple[str, datetime]], rng: random.Random) -> Final:
    return Final(
        ask=rng.choice(slot["ask"]),
        value=values[-1][0],
        former=tuple(value for value, _ in values[:-1]),
        past=rng.choice(slot["ask_past"]),
        told=tuple(at for _, at in values),
    )


def _exchange(
    words: dict[str, Any],
    kind: str,
    event: dict[str, Any],
    current: dict[str, list[tuple[str, datetime]]],
    rng: random.Random,
    *,
    vague: bool,
    at: datetime,
) -> Iterator[tuple[str, str, bool]]:
    """The turns of one event: who, what, and whether it only asks."""
    replies = words["assistant"]
    if kind == "fact":
        yield "user", event["fact"]["text"], False
        yield "assistant", rng.choice(replies["ack"]), False
        return
    slot = event["slot"]
    if kind == "ask":
        yield "user", rng.choice(slot["ask"]), True
        known = current.get(slot["name"])
        if vague or known is None:
            said = rng.choice(replies["answer_vague"] + replies["dont_know"])
        else:
            said = rng.choice(replies["answer"]).format(new=known[-1][0])
        yield "assistant", said, False
        return
    text = rng.choice(slot[kind]).format(new=event["new"], old=event["old"])
    current.setdefault(slot["name"], []).append((event["new"], at))
    yield "user", text, False
    how = rng.choice(["ack", "ack", "claim"] if vague else ["ack", "ack", "echo", "claim"])
    yield "assistant", rng.choice(replies[how]).format(text=text, new=event["new"]), False


def lives(split: str, *, people: int, seed: int, vague: bool) -> list[Life]:
    words = words_of(split)
    names = [f"person{number}" for number in range(people)]
    return [life(words, name, random.Random(f"{split}{seed}{name}"), vague=vague) for name in names]


def lived(memory: Memory, one: Life, *, end: bool) -> Scope:
    """The life told to a memory."""
    scope = Scope(user=one.person)
    for number in range(SESSIONS):
        said = [turn for turn in one.turns if turn.session == number]
        if said:
            session = memory.session(f"{one.person}-{number}", scope=scope)
            for turn in said:
                session.add(turn.role, turn.text, at=turn.at)
            if end:
                session.end(wait=30)
    return scope


def _has(text: str, value: str) -> bool:
    return value.lower() in text.lower()


def _judged(recall: Recall, value: str, former: Sequence[str], asked: set[str]) -> dict[str, bool]:
    """What the hits of one final question are."""
    right = [place for place, hit in enumerate(recall.hits) if _has(hit.text, value) and hit.text not in asked]
    wrong = [
        place
        for place, hit in enumerate(recall.hits)
        if hit.text not in asked and not _has(hit.text, value) and any(_has(hit.text, old) for old in former)
    ]
    first = right[0] if right else len(recall.hits)
    return {
        "first": first == 0,
        "five": first < 5,
        "outdated": bool(wrong) and wrong[0] < first,
        "question": bool(recall.hits) and recall.hits[0].text in asked,
    }


def measure(
    split: str, *, people: int = 12, seed: int = 0, vague: bool = True, end: bool = True, show: int = 0, **settings: Any
) -> dict[str, Interval]:
    """Each figure with its interval, in per cent."""
    counts: dict[str, list[bool]] = {}
    with Memory(":memory:", **settings) as memory:
        for one in lives(split, people=people, seed=seed, vague=vague):
            scope = lived(memory, one, end=end)
            asked = {turn.text for turn in one.turns if turn.asks}
            for final in one.finals:
                recall = memory.recall(final.ask, scope=scope, k=5)
                judged = _judged(recall, final.value, final.former, asked)
                if show and not judged["first"]:
                    show -= 1
                    print(f"\n{final.ask!r} → {final.value!r}, before {final.former}\n{recall}")
                names = ("first", "five", "question") if not final.former else (*judged,)
                for name in names:
                    counts.setdefault(name, []).append(judged[name])
                if not final.told:
                    counts.setdefault("stable", []).append(judged["first"])
                if final.former:
                    counts.setdefault("changed", []).append(judged["first"])
                    counts.setdefault("marked", []).extend(
                        hit.outdated
                        for hit in recall.hits
                        if not _has(hit.text, final.value) and any(_has(hit.text, old) for old in final.former)
                    )
                    past = memory.recall(final.past, scope=scope, k=5)
                    counts.setdefault("past", []).append(
                        bool(past.hits) and any(_has(past[0].text, old) for old in final.former)
                    )
                    then = final.told[-1] - timedelta(days=1)
                    was = memory.recall(final.ask, scope=scope, k=5, as_of=then)
                    counts.setdefault("as_of", []).append(bool(was.hits) and _has(was[0].text, final.former[-1]))
    return {name: interval((n, 100.0 * value) for n, value in enumerate(values)) for name, values in counts.items()}


def confidences(split: str, *, people: int, seed: int, embedder: str) -> Table:
    """How often an answer was among the hits, by the confidence that was said, and the AUROC; the unanswerable count."""
    said: list[tuple[float, bool]] = []
    with Memory(":memory:", learning="off", embedder=embedder) as memory:
        for one in lives(split, people=people, seed=seed, vague=True):
            scope = lived(memory, one, end=False)
            asked = [(final.ask, final.value) for final in one.finals] + [(ask, None) for ask in one.unanswerable]
            for ask, value in asked:
                recall = memory.recall(ask, scope=scope, k=5)
                found = value is not None and any(_has(hit.text, value) for hit in recall.hits)
                said.append((recall.confidence or 0.0, found))
    right, wrong = ([sure for sure, found in said if found is which] for which in (True, False))
    pairs = sum((a > b) + (a == b) / 2 for a in right for b in wrong)
    rows: list[list[Any]] = [["AUROC", len(said), round(pairs / max(1, len(right) * len(wrong)), 3)]]
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        held = [found for sure, found in said if low <= sure < low + 0.2 or (low == 0.8 and sure >= 1)]
        rows.append([f"{low:.1f} - {low + 0.2:.1f}", len(held), round(sum(held) / len(held), 2) if held else None])
    return Table(title="confidence", columns=["said", "questions", "answered"], rows=rows)


def judged_pairs(part: str, name: str = "pairs") -> Table:
    """How many pairs of a file the judge takes for a change, of those that are one and of those that are none."""
    counts = {True: [0, 0], False: [0, 0]}
    for family in tomllib.loads((LIVES / f"{name}.toml").read_text())["family"]:
        if family["part"] == part:
            for old, new in family["pairs"]:
                counts[family["changed"]][0] += probability(old, new, spoken=True) >= SURE
                counts[family["changed"]][1] += 1
    (found, changed), (false, _) = counts[True], counts[False]
    rows: list[list[Any]] = [["recall", found, changed, round(found / changed, 2)]]
    rows.append(["precision", found, found + false, round(found / (found + false), 2)])
    return Table(title=name, columns=["", "right", "of", "share"], rows=rows)


def first_chats(part: str, *, embedder: str = "reader") -> Table:
    """How often what a person told in a first chat comes first when it is asked for, and how often recall is sure of it."""
    counts = {"first": 0, "first and sure": 0, "sure but wrong": 0}
    cases = [one for one in tomllib.loads((LIVES / "first_chat.toml").read_text())["case"] if one["part"] == part]
    with Memory(":memory:", learning="off", embedder=embedder) as memory:
        for number, case in enumerate(cases):
            person = memory.for_user(f"person{number}")
            for day, told in enumerate(case["told"]):
                session = person.session(f"{number}-{day}")
                for place, text in enumerate((BESIDES[day], told, BESIDES[day + 2])):
                    at = START + timedelta(days=day, minutes=2 * place)
                    session.add("user", text, at=at)
                    session.add("assistant", "Got it, noted.", at=at + timedelta(minutes=1))
                session.end(wait=30)
            found = person.recall(case["ask"], k=5)
            right, sure = bool(found.hits) and case["answer"] in found[0].text, (found.confidence or 0.0) >= 0.5
            for name, so in (
                ("first", right),
                ("first and sure", right and sure),
                ("sure but wrong", sure and not right),
            ):
                counts[name] += so
    return Table(title="first chat", columns=["", "cases", "of"], rows=[[*one, len(cases)] for one in counts.items()])


def run(split: str, *, people: int, seed: int, embedder: str) -> Report:
    """Every figure, for an assistant whose answers do not repeat a fact and for one whose answers do."""
    ways = {
        way: measure(split, people=people, seed=seed, vague=vague, learning="off", embedder=embedder)
        for way, vague in (("vague answers", True), ("repeating answers", False))
    }
    names = [*next(iter(ways.values()))]
    rows = [[name, *(figures.get(name) for figures in ways.values())] for name in names]
    about = {"split": split, "people": people, "seed": seed, "embedder": embedder}
    sure = confidences(split, people=people, seed=seed, embedder=embedder)
    percent, pairs = Table(title="percent", columns=["", *ways], rows=rows), "check" if split == "check" else "tune"
    chats = first_chats(pairs, embedder=embedder)
    return Report(
        name="life",
        about=about,
        tables=[percent, *(judged_pairs(pairs, name) for name in ("pairs", "typed", "longer")), chats, sure],
    )

"""Does learning help a new person? LoCoMo lived through question by question.

Each conversation is a user of one tenant. For the conversation that is left out, the other users ask their questions
first and train the tenant's prior; then the left-out user lives. Questions come in random order, five hits are shown,
citations are simulated from the evidence among them and reported with `Memory.outcome`. Four ways are compared:

    untrained        learning off
    cold             the user alone: nothing is shared
    prior only       others taught the prior, this user reports no outcome
    prior + person   others taught the prior, and this user's outcomes count too
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from evals import data
from evals.data import Conversation, DataError
from evals.recall import recall_at, scope_for, tell, turns_of
from evals.report import Interval, Report, Steps, Table, interval
from wellworn import Memory
from wellworn.core.values import LearningStatus, Progress
from wellworn.learning.policy import Prior, dumps_state
from wellworn.learning.ranker import example_of
from wellworn.search.score import FEATURES

Feedback = Literal["honest", "random", "inverted", "first", "last"]
FEEDBACKS: tuple[str, ...] = get_args(Feedback)
WAYS = ("untrained", "cold", "prior only", "prior + person")
SHOWN = 5
NEUTRAL = ("recency", "newer", "longer")
RANDOM_SHARE = 0.3
"""How often random feedback cites: about as often as honest feedback with five shown."""


@dataclass(frozen=True, kw_only=True)
class Citing:
    """How citations are simulated.

    `honest` cites evidence, but misses a share `miss` of it and cites a share `false` of the rest. `random` cites each
    hit with the same chance, `inverted` what is not evidence, `first` and `last` go by the place alone.
    """

    feedback: str = "honest"
    miss: float = 0.0
    false: float = 0.0

    def __post_init__(self) -> None:
        if self.feedback not in FEEDBACKS or not (0 <= self.miss <= 1 and 0 <= self.false <= 1):
            raise ValueError(f"{self} is not usable (feedback is one of {', '.join(FEEDBACKS)}, shares are 0 … 1)")

    def cited(self, evidence: Sequence[bool], rng: random.Random) -> list[int]:
        """Places of the cited among the shown; one draw per hit, whatever the feedback."""
        draws = [rng.random() for _ in evidence]
        rules: dict[str, Callable[[int], bool]] = {
            "honest": lambda n: draws[n] >= self.miss if evidence[n] else draws[n] < self.false,
            "random": lambda n: draws[n] < RANDOM_SHARE,
            "inverted": lambda n: not evidence[n],
            "first": lambda n: n == 0,
            "last": lambda n: n == len(evidence) - 1,
        }
        return [n for n in range(len(evidence)) if rules[self.feedback](n)]


@dataclass(frozen=True, kw_only=True)
class Settings:
    citing: Citing = field(default_factory=Citing)
    seeds: int = 1
    conversations: int | None = None
    """Only the first so many; None for all."""
    embedder: str = "reader"
    profile: str = "default"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One question, asked once: the share of its evidence among the shown, here and untrained."""

    conversation: str
    question: int
    seed: int
    place: float
    """When in the person's life it was asked: 0 first, towards 1 last."""
    recall: float
    untrained: float
    level: str
    """What served it: `base`, `prior` or `person`."""


@dataclass(frozen=True, kw_only=True)
class Lived:
    """One life: question number → (recall, level that served), in order; and how learning stood at the end."""

    recalls: dict[int, tuple[float, str]]
    status: LearningStatus


def run(folder: Path, settings: Settings, *, progress: Progress | None = None) -> Report:
    """Leave each conversation out once per seed, and compare the four ways."""
    talks = data.locomo(folder)[: settings.conversations]
    if len(talks) < 2 or settings.seeds < 1:
        raise DataError("a prior needs two conversations or more, and one seed or more")
    turns = sum(len(session.turns) for one in talks for session in one.sessions)
    asked = sum(len(one.questions) for one in talks)
    steps = Steps(total=turns + settings.seeds * asked * (len(WAYS) + len(talks) - 1), progress=progress)
    answers: dict[str, list[Answer]] = {way: [] for way in WAYS}
    trusted = 0
    with tempfile.TemporaryDirectory() as place:
        lab = Lab(settings, Path(place), talks, steps)
        for seed in range(settings.seeds):
            for talk in talks:
                lives = lab.leave_out(talk, seed)
                for way, lived in lives.items():
                    answers[way] += _answers(talk, seed, lived, lives["untrained"])
                trusted += lives["prior + person"].status.trusted
    about = {
        "citations": str(settings.citing),
        "questions": asked,
        "seeds": settings.seeds,
        "feedback trusted": f"{trusted} of {settings.seeds * len(talks)}",
        "embedder": settings.embedder,
        "profile": settings.profile,
    }
    return Report(name="learn", about=about, tables=_tables(answers))


class Lab:
    """Files to start lives from: turns are added once, and every life begins with a copy."""

    def __init__(self, settings: Settings, folder: Path, talks: list[Conversation], steps: Steps) -> None:
        self._settings, self._folder, self._talks, self._steps = settings, folder, talks, steps
        self._filled = folder / "filled.db"
        self._opened = 0
        with self._open(self._filled, learning="off") as memory:
            for talk in talks:
                tell(memory, talk.name, talk.sessions, steps)

    def leave_out(self, talk: Conversation, seed: int) -> dict[str, Lived]:
        """The left-out person's life, in each of the ways."""
        with self._copy(self._filled, learning="off") as memory:
            untrained = self._live(memory, talk, seed, report=False)
        with self._copy(self._filled) as memory:
            memory.learning.share(False, scope=scope_for(talk.name))
            cold = self._live(memory, talk, seed)
        taught = self._folder / "taught.db"
        shutil.copy(self._filled, taught)
        with self._open(taught) as memory:
            for other in self._talks:
                if other is not talk:
                    self._live(memory, other, seed)
        with self._copy(taught) as memory:
            prior_only = self._live(memory, talk, seed, report=False)
        with self._copy(taught) as memory:
            both = self._live(memory, talk, seed)
        return dict(zip(WAYS, (untrained, cold, prior_only, both), strict=True))

    def _live(self, memory: Memory, talk: Conversation, seed: int, *, report: bool = True) -> Lived:
        """Ask every question once, in this seed's order; with `report` every recall gets its citations."""
        rng = random.Random(f"{seed}/{talk.name}")
        scope = scope_for(talk.name)
        order = list(range(len(talk.questions)))
        rng.shuffle(order)
        recalls: dict[int, tuple[float, str]] = {}
        for number in order:
            question = talk.questions[number]
            level = memory.learning.status(scope=scope).level
            found = memory.recall(question.text, scope=scope, k=SHOWN)
            recalls[number] = recall_at(turns_of(found.hits), question.evidence, SHOWN), level
            useful = [not question.evidence.isdisjoint(turns_of([hit])) for hit in found.hits]
            cited = self._settings.citing.cited(useful, rng)
            if report:
                memory.outcome(found.id, cited=cited, scope=scope)
            self._steps.advance()
        return Lived(recalls=recalls, status=memory.learning.status(scope=scope))

    @contextmanager
    def _copy(self, start: Path, *, learning: str = "on") -> Iterator[Memory]:
        copy = self._folder / "life.db"
        shutil.copy(start, copy)
        with self._open(copy, learning=learning) as memory:
            yield memory
        copy.unlink()

    def _open(self, path: Path, *, learning: str = "on") -> Memory:
        self._opened += 1
        draw = random.Random(self._opened)  # exploration may depend on ids
        return Memory.open(
            path,
            embedder=self._settings.embedder,
            profile=self._settings.profile,
            durability="normal",
            learning=learning,  # type: ignore[arg-type]
            new_id=lambda: str(uuid.UUID(int=draw.getrandbits(128), version=4)),
        )


def pretrain(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """A prior from labelled questions of these conversations, as `learning.export` writes it.

    How old or how long an entry is stays neutral: what dialogues say about it does not hold for other memories.
    """
    examples = []
    for talk in (one for one in data.locomo(folder) if one.name in names):
        with Memory.open(":memory:", learning="observe") as memory:
            tell(memory, talk.name, talk.sessions, Steps(total=0, progress=None))
            for question in talk.questions:
                seen = memory.engine.searcher.examine(question.text, scope=scope_for(talk.name))
                if seen is None:
                    continue
                entries = memory.engine.store.read(seen.nos)
                places = {no: {(one.session_id, turn) for turn in one.turn_refs} for no, one in entries.items()}
                right = {no for no, turns in places.items() if not question.evidence.isdisjoint(turns)}
                features = seen.features * [name not in NEUTRAL for name in FEATURES]
                example = example_of(replace(seen, shown=len(seen.nos), features=features), right, set(entries))
                if example is not None and example.wanted is not None:
                    examples.append(example)
    return {"prior": json.loads(dumps_state(Prior().pretrained(examples), FEATURES))}


def _answers(talk: Conversation, seed: int, lived: Lived, untrained: Lived) -> list[Answer]:
    return [
        Answer(
            conversation=talk.name,
            question=number,
            seed=seed,
            place=place / len(lived.recalls),
            recall=100 * recall,
            untrained=100 * untrained.recalls[number][0],
            level=level,
        )
        for place, (number, (recall, level)) in enumerate(lived.recalls.items())
    ]


def _tables(answers: dict[str, list[Answer]]) -> list[Table]:
    names = list(dict.fromkeys(one.conversation for one in answers["untrained"]))
    overall, talks, course = [], [], []
    for way, found in answers.items():
        served = [sum(one.level == level for one in found) / len(found) for level in ("prior", "person")]
        halves = [_mean([one for one in found if (one.place < 0.5) is first]).mean for first in (True, False)]
        overall.append((way, _mean(found), _gain(found), *halves, *[100 * share for share in served]))
        talks.append((way, *[_mean([one for one in found if one.conversation == name]).mean for name in names]))
        course.append((way, *[_gain([one for one in found if int(10 * one.place) == n]).mean for n in range(10)]))
    columns = ("way", "recall@5", "gain", "first half", "second half", "% by prior", "% by person")
    return [
        Table(title="overall", columns=columns, rows=overall),
        Table(title="by conversation", columns=("way", *names), rows=talks),
        Table(title="gain by tenth of a life", columns=("way", *map(str, range(1, 11))), rows=course),
    ]


def _mean(found: list[Answer]) -> Interval:
    return interval(((one.conversation, one.question), one.recall) for one in found)


def _gain(found: list[Answer]) -> Interval:
    return interval(((one.conversation, one.question), one.recall - one.untrained) for one in found)

"""Does learning help a new person? LoCoMo lived through question by question, on the real product.

Each conversation is a user of one tenant. For the conversation that is left out: the other users live through their
questions first, one after another, and what became of their recalls trains the tenant's prior; then the left-out user
lives. Questions come in random order, five entries are shown by whatever ranking serves, citations are simulated from
the evidence among the shown (`citing`) and told with `Memory.outcome`. Four ways to live are compared:

    untrained        learning off
    cold             the user alone: no one else has asked, and nothing is shared
    prior only       others taught the prior, this user tells no outcome
    prior + person   others taught the prior, and this user's outcomes count too

Turns are added once; every life starts from a copy of that file.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from evals import locomo
from evals.citing import Citing
from evals.learn_report import SHOWN, WAYS, Answer, Ending, LearnReport
from evals.locomo import Conversation
from evals.metrics import recall_at_k
from evals.run import Steps, scope_for, turns_of
from wellworn.core.errors import InvalidInput
from wellworn.core.values import LearningStatus, Progress
from wellworn.memory import Memory


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to run: the feedback, how many random orders, and what `Memory.open` is given."""

    citing: Citing = field(default_factory=Citing)
    seeds: int = 1
    conversations: int | None = None
    """Only the first so many; None for all."""
    embedder: str = "static"
    profile: str = "default"


@dataclass(frozen=True, kw_only=True)
class Lived:
    """What came of one person's questions: by question its share of evidence shown and what served it, in order."""

    recalls: dict[int, tuple[float, str]]
    status: LearningStatus


def run(folder: Path, settings: Settings, *, progress: Progress | None = None) -> LearnReport:
    """Leave each conversation out once for every seed, and compare the four ways."""
    if settings.seeds < 1:
        raise InvalidInput("--seeds", f"is {settings.seeds}", "at least 1")
    conversations = locomo.load(folder)[: settings.conversations]
    if len(conversations) < 2:
        raise InvalidInput(
            "--data", f"{len(conversations)} conversation, but a prior needs another", "give two or more"
        )
    steps = Steps(total=_planned(conversations, settings.seeds), progress=progress)
    with tempfile.TemporaryDirectory(prefix="wellworn-eval-") as place:
        lab = Lab(settings, Path(place), conversations, steps)
        answers: dict[str, list[Answer]] = {way: [] for way in WAYS}
        endings: list[Ending] = []
        for seed in range(settings.seeds):
            for conversation in conversations:
                lives = lab.leave_out(conversation, seed)
                for way, lived in lives.items():
                    answers[way] += _answers(conversation, seed, lived, lives["untrained"])
                ending = lives["prior + person"].status
                endings.append(Ending(conversation=conversation.name, seed=seed, status=ending))
    return LearnReport(
        citing=settings.citing,
        embedder=settings.embedder,
        profile=settings.profile,
        seeds=settings.seeds,
        answers=answers,
        endings=endings,
    )


class Lab:
    """Files to start lives from."""

    def __init__(self, settings: Settings, folder: Path, conversations: list[Conversation], steps: Steps) -> None:
        self._settings = settings
        self._folder = folder
        self._conversations = conversations
        self._steps = steps
        self._filled = folder / "filled.db"
        self._opened = 0
        with self._open(self._filled, learning="off") as memory:
            for conversation in conversations:
                locomo.tell(memory, conversation, steps)

    def leave_out(self, conversation: Conversation, seed: int) -> dict[str, Lived]:
        """The left-out person's life, in each of the ways."""
        with self._copy(self._filled, learning="off") as memory:
            untrained = self._live(memory, conversation, seed, tell=False)
        with self._copy(self._filled) as memory:
            memory.share_learning(False, scope=scope_for(conversation.name))
            cold = self._live(memory, conversation, seed)
        taught = self._folder / "taught.db"
        shutil.copy(self._filled, taught)
        with self._open(taught) as memory:
            for other in self._conversations:
                if other is not conversation:
                    self._live(memory, other, seed)
        with self._copy(taught) as memory:
            prior_only = self._live(memory, conversation, seed, tell=False)
        with self._copy(taught) as memory:
            both = self._live(memory, conversation, seed)
        return dict(zip(WAYS, (untrained, cold, prior_only, both), strict=True))

    def _live(self, memory: Memory, conversation: Conversation, seed: int, *, tell: bool = True) -> Lived:
        """Ask every question once, in this seed's order; with `tell` every recall gets its citations."""
        rng = random.Random(f"{seed}/{conversation.name}")
        scope = scope_for(conversation.name)
        order = list(range(len(conversation.questions)))
        rng.shuffle(order)
        recalls: dict[int, tuple[float, str]] = {}
        for number in order:
            question = conversation.questions[number]
            level = memory.learning(scope=scope).level
            found = memory.recall(question.text, scope=scope, k=SHOWN)
            recalls[number] = recall_at_k(turns_of(found.hits), question.evidence, SHOWN), level
            evidence = [not question.evidence.isdisjoint(turns_of([hit])) for hit in found.hits]
            cited = self._settings.citing.cited(evidence, rng)
            if tell:
                memory.outcome(found.id, cited=cited, scope=scope)
            self._steps.advance()
        return Lived(recalls=recalls, status=memory.learning(scope=scope))

    @contextmanager
    def _copy(self, start: Path, *, learning: str = "on") -> Iterator[Memory]:
        """A memory that begins as `start` stands and is gone afterwards."""
        copy = self._folder / "life.db"
        shutil.copy(start, copy)
        with self._open(copy, learning=learning) as memory:
            yield memory
        copy.unlink()

    def _open(self, path: Path, *, learning: str = "on") -> Memory:
        # Ids from a seed of their own, since what is explored may follow from them.
        self._opened += 1
        draw = random.Random(self._opened)
        return Memory.open(
            path,
            embedder=self._settings.embedder,
            profile=self._settings.profile,
            durability="normal",
            learning=learning,
            new_id=lambda: str(uuid.UUID(int=draw.getrandbits(128), version=4)),
        )


def _planned(conversations: list[Conversation], seeds: int) -> int:
    turns = sum(len(session.turns) for one in conversations for session in one.sessions)
    questions = sum(len(one.questions) for one in conversations)
    return turns + seeds * questions * (len(WAYS) + len(conversations) - 1)


def _answers(conversation: Conversation, seed: int, lived: Lived, untrained: Lived) -> list[Answer]:
    return [
        Answer(
            conversation=conversation.name,
            question=number,
            seed=seed,
            place=place / len(lived.recalls),
            recall=recall,
            untrained=untrained.recalls[number][0],
            level=level,
        )
        for place, (number, (recall, level)) in enumerate(lived.recalls.items())
    ]

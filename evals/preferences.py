"""Does learning help where the untrained ranking is wrong? A made-up world of look-alike notes; it needs no data.

About each subject there are several entries that fit a question equally well. The person always means one of them, by a
preference that nothing tells the ranking: the newest, what a certain person said, what has a certain tag. Every subject
is asked about once, so that only what holds for all of them can help. One question in ten fits one entry alone: there
the untrained ranking is right. `TUNE` was looked at while the learner was written, `CHECK` was not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from evals.learn import Citing
from evals.report import Interval, Report, Steps, Table, interval
from wellworn import Memory, Scope
from wellworn.core.values import Hit, LearningStatus, Progress

SHOWN = 3
LOOK_ALIKES = 12
OUTCOMES = 400
LAST = 100
"""Questions at the end of a life that are counted."""
EASY = 0.1
"""Share of the questions that name a word of their answer."""

ADJECTIVES = """
    amber brisk copper dusty early frozen gentle hollow ivory jagged keen lunar mellow narrow oaken pale
    quiet rusty silver timber upper velvet wicker young
""".split()  # noqa: SIM905
NOUNS = """
    anchor bridge cellar depot engine ferry garden harbour island jetty kiln lantern mill nursery
    orchard pier quarry reactor stable tunnel valve windmill yard zeppelin
""".split()  # noqa: SIM905
SAID = (
    "The {subject} was painted by {word}.",
    "{word} repaired the {subject} and checked it twice.",
    "The {subject} belongs to the {word} family.",
    "We met at the {subject}, {word} was late as always and nobody minded.",
    "The keys of the {subject} are with {word}.",
    "{word} wants to sell the {subject} before the winter comes.",
)
ASKED = ("What about the {subject}?", "Tell me of the {subject}.", "What do we know of the {subject}?")
SPEAKERS = ("Ines", "Jonas", "Kofi", "Lena", "Marek", "Nadia", "Otis", "Paula", "Radu", "Sofia")
SOURCES = ("mail", "wiki", "meeting", "phone", "chat", "form", "scan", "letter", "survey", "calendar")
KINDS = ("fact", "note", "preference", "pattern", "summary", "strategy", "guardrail")
TAGS = "house boat money travel urgent family garden tools health music school winter".split()  # noqa: SIM905
SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "ve")

Item = dict[str, Any]
"""The keywords of `Memory.remember`."""
Prefers = Callable[[Item], float]
"""The person means the look-alike with the highest value."""


def is_(field: str, value: str) -> Prefers:
    return lambda item: float(value in item[field])


TUNE: dict[str, Prefers] = {
    "newest": lambda item: item["at"].timestamp(),
    "longest": lambda item: len(item["text"]),
    "speaker": is_("speaker", "Kofi"),
    "kind": is_("kind", "preference"),
    "tag": is_("tags", "boat"),
}
CHECK: dict[str, Prefers] = {
    "oldest": lambda item: -item["at"].timestamp(),
    "shortest": lambda item: -len(item["text"]),
    "source": is_("source", "phone"),
    "two speakers": lambda item: is_("speaker", "Lena")(item) + is_("speaker", "Otis")(item),
    "another tag": is_("tags", "urgent"),
    "newest fact": lambda item: 1e10 * (item["kind"] == "fact") + item["at"].timestamp(),
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question, and the texts of the entries that answer it."""

    text: str
    right: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Told:
    """One life: for each question whether an answer was shown, and whether it came first."""

    shown: list[bool]
    first: list[bool]
    status: LearningStatus


class World:
    """Subjects with look-alike entries, and one question about each."""

    def __init__(self, prefers: Prefers, seed: int, *, subjects: int = OUTCOMES) -> None:
        dice = random.Random(seed)
        pairs = [f"{adjective} {noun}" for adjective in ADJECTIVES for noun in NOUNS]
        self.items: list[Item] = []
        self.asked: list[Asked] = []
        for subject in dice.sample(pairs, subjects):
            like: list[Item] = []
            while len({*map(prefers, like)}) < 2:  # one of them at least is not meant
                like = [_item(subject, dice) for _ in range(LOOK_ALIKES)]
            best = max(map(prefers, like))
            right, query = [item for item in like if prefers(item) == best], dice.choice(ASKED).format(subject=subject)
            if dice.random() < EASY:
                right = [dice.choice(like)]
                query = f"{query[:-1]} and {right[0]['metadata']['word']}?"
            self.items += like
            self.asked.append(Asked(text=query, right=frozenset(item["text"] for item in right)))

    def live(self, memory: Memory, scope: Scope, citing: Citing, *, seed: int = 0) -> Told:
        """Ask every question once and report what was used of the shown."""
        rng, shown, first = random.Random(seed), list[bool](), list[bool]()
        for asked in self.asked:
            found = memory.recall(asked.text, scope=scope, k=SHOWN)
            useful = [_answers(hit, asked) for hit in found.hits]
            shown.append(any(useful))
            first.append(useful[:1] == [True])
            memory.outcome(found.id, cited=citing.cited(useful, rng), scope=scope)
        return Told(shown=shown, first=first, status=memory.learning.status(scope=scope))


def _item(subject: str, dice: random.Random) -> Item:
    word = "".join(dice.choices(SYLLABLES, k=3)).capitalize()
    text = dice.choice(SAID).format(subject=subject, word=word)
    return {
        "text": text,
        "kind": dice.choice(KINDS),
        "tags": dice.sample(TAGS, 2),
        "source": dice.choice(SOURCES),
        "speaker": dice.choice(SPEAKERS),
        "at": datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=dice.randrange(20_000)),
        "metadata": {"word": word},
    }


def _answers(hit: Hit, asked: Asked) -> bool:
    return hit.entry.text in asked.right


def run(
    names: Sequence[str] = (),
    *,
    citing: Citing,
    seeds: int = 1,
    embedder: str = "reader",
    progress: Progress | None = None,
) -> Report:
    """One life for each preference and seed, beside the same life without learning."""
    worlds = {**TUNE, **CHECK}
    wanted = {name: worlds[name] for name in names or worlds}
    steps = Steps(total=2 * len(wanted) * seeds, progress=progress)
    rows = []
    for name, prefers in wanted.items():
        lives: dict[str, list[Told]] = {"off": [], "on": []}
        for seed in range(seeds):
            world = World(prefers, seed)
            for mode, found in lives.items():
                with Memory.open(
                    ":memory:", embedder=embedder, learning="observe" if mode == "off" else "on"
                ) as memory:
                    scope = Scope(tenant="eval", user=name)
                    memory.remember_many(world.items, scope=scope)
                    found.append(world.live(memory, scope, citing, seed=seed))
                    steps.advance()
        part = "tune" if name in TUNE else "check"
        rates = [_rate(lives[mode], what) for what in ("shown", "first") for mode in lives]
        rows.append((part, name, *rates, lives["on"][-1].status.level))
    columns = ("part", "the person means", "untrained", "learned", "untrained, first", "learned, first", "serves")
    about = {"citations": str(citing), "outcomes": OUTCOMES, "counted": f"the last {LAST}", "embedder": embedder}
    return Report(
        name="preferences", about=about, tables=[Table(title="answer among the shown", columns=columns, rows=rows)]
    )


def _rate(lives: Sequence[Told], what: str) -> Interval:
    return interval((number, 100.0 * one) for number, life in enumerate(lives) for one in getattr(life, what)[-LAST:])

"""Which memories are found in a session? RealMem, whose gold memories name their source turn, and sessions of our own.

Every session of RealMem is reflected on by itself. A session with gold memories shows what is covered
and what is right; a session without any is filler, where every memory is junk.

Our own sessions are in `sessions/tune.txt` and `sessions/check.txt`. `== NAME: topic` begins a person, `-- ` a later
session of the same person, `ROLE: text` is a turn. Below a turn stands what is expected: `+ words` are in a memory,
`- words` are in none, and when all sessions are read, `~ words` are in an outdated memory and in no other, `= words` in
one that holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from evals import data
from evals.data import Dialogue, Gold
from evals.recall import scope_for
from evals.report import Interval, Report, Steps, Table, interval
from wellworn import Memory
from wellworn.core.values import Progress


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """One session: (text, evidence turns) of each memory found, beside the gold ones with a source turn."""

    persona: str
    session: str
    filler: bool
    found: list[tuple[str, tuple[int, ...]]]
    gold: list[Gold]
    by: str

    @property
    def evidence(self) -> set[int]:
        return {turn for _, turns in self.found for turn in turns}

    @property
    def wanted(self) -> set[int]:
        return {one.turn for one in self.gold if one.turn is not None}

    def missed(self) -> list[Gold]:
        return [one for one in self.gold if one.turn not in self.evidence]


def run(
    folder: Path,
    *,
    llm: str | None = None,
    limit: int | None = None,
    examples: int = 0,
    progress: Progress | None = None,
) -> Report:
    """Extract from every session, or from the first `limit` of each persona, and compare with gold."""
    personas = data.realmem(folder)
    steps = Steps(total=sum(len(one.sessions[:limit]) for one in personas), progress=progress)
    found: list[Extracted] = []
    for persona in personas:
        # Words alone: which turns are evidence does not depend on an embedder, and nothing is recalled here.
        with Memory.open(":memory:", embedder="hash", llm=llm, background=False) as memory:
            for dialogue in persona.sessions[:limit]:
                found.append(_extracted(memory, persona.name, dialogue))
                steps.advance()
    by = ", ".join(sorted({one.by for one in found}))
    names = list(dict.fromkeys(one.persona for one in found))
    rows = [_row("overall", found), *[_row(name, [one for one in found if one.persona == name]) for name in names]]
    columns = ("", "sessions", "memories", "gold turns covered", "gold covered", "right", "turns right", "junk")
    about = {"by": by, "junk": "memories per filler session", "others": "percent"}
    table = Table(title="extraction", columns=columns, rows=rows)
    return Report(name="extraction", about=about, tables=[table], lines=_examples(found, examples))


def _extracted(memory: Memory, persona: str, dialogue: Dialogue) -> Extracted:
    session = memory.session(scope=scope_for(persona), session_id=dialogue.id)
    for speaker, text in dialogue.turns:
        session.add(speaker.lower(), text, at=dialogue.at, speaker=persona if speaker.lower() == "user" else None)
    made = memory.reflect(scope=scope_for(persona), session_id=dialogue.id)
    return Extracted(
        persona=persona,
        session=dialogue.id,
        filler=not dialogue.gold,
        found=[(one.text, one.turns) for part in made for one in part.memories],
        gold=[one for one in dialogue.gold if one.turn is not None],
        by=", ".join(sorted({part.by for part in made})),
    )


def _row(label: str, found: list[Extracted]) -> tuple[str | int | Interval, ...]:
    real = [one for one in found if not one.filler]
    shares: list[Callable[[Extracted], list[bool]]] = [
        lambda one: [turn in one.evidence for turn in one.wanted],
        lambda one: [gold.turn in one.evidence for gold in one.gold],
        lambda one: [not one.wanted.isdisjoint(turns) for _, turns in one.found],
        lambda one: [turn in one.wanted for turn in one.evidence],
    ]
    return (
        label,
        len(found),
        sum(len(one.found) for one in found),
        *[interval((one.session, 100.0 * yes) for one in real for yes in share(one)) for share in shares],
        interval((one.session, float(len(one.found))) for one in found if one.filler),
    )


def _examples(found: list[Extracted], count: int) -> list[str]:
    """Some of the memories that were missed, and some of the junk, at even distances."""
    missed = [f"missed ({one.session}, turn {gold.turn}): {gold.text}" for one in found for gold in one.missed()]
    junk = [f"junk ({one.session}): {text}" for one in found if one.filler for text, _ in one.found]
    return [
        lines[place * len(lines) // count][:200]
        for lines in (missed, junk)
        if lines
        for place in range(min(count, len(lines)))
    ]


# -- sessions of our own ------------------------------------------------------------
OWN = Path(__file__).parent / "sessions"
EXPECTED = {"+": "kept", "-": "left out", "~": "outdated", "=": "holds"}
_START = datetime(2026, 3, 2, 9, tzinfo=UTC)


@dataclass(kw_only=True)
class Person:
    """A person with sessions of (role, text) turns, and what is expected of them by sign."""

    name: str
    sessions: list[list[tuple[str, str]]] = field(default_factory=lambda: [[]])
    expected: list[tuple[str, str]] = field(default_factory=list)


def people(path: Path) -> list[Person]:
    """Read a file of sessions."""
    found: list[Person] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        sign, _, rest = line.strip().partition(" ")
        if sign == "==":
            found.append(Person(name=rest.partition(":")[0]))
        elif sign == "--":
            found[-1].sessions.append([])
        elif sign in EXPECTED:
            found[-1].expected.append((sign, rest))
        elif sign.endswith(":"):
            found[-1].sessions[-1].append((sign[:-1], rest.replace("\\n", "\n")))
    return found


def judged(person: Person, memory: Memory) -> Iterator[tuple[str, str, bool]]:
    """(sign, words, whether it is as expected) for everything that is expected of a person."""
    user = memory.for_user(person.name)
    for number, turns in enumerate(person.sessions):
        session = user.session(str(number))
        for role, text in turns:
            session.add(role, text, at=_START + timedelta(days=40 * number))
        user.reflect(str(number))
    entries = user.entries(kind=["fact", "preference", "pattern"])
    holding = [entry.text.lower() for entry in entries if entry.state == "active"]
    every = [entry.text.lower() for entry in entries]
    for sign, words in person.expected:
        held = any(words.lower() in text for text in holding)
        there = any(words.lower() in text for text in every)
        yield sign, words, {"+": there, "-": not there, "~": there and not held, "=": held}[sign]


def own(path: Path) -> Report:
    """What is kept of the sessions of a file, what is left out, and what is outdated at the end."""
    found: list[tuple[str, str, str, bool]] = []
    for person in people(path):
        with Memory.open(":memory:", background=False) as memory:
            found += [(person.name, *one) for one in judged(person, memory)]
    rows = [
        (
            name,
            sum(one[1] == sign for one in found),
            interval((one[0], 100.0 * one[3]) for one in found if one[1] == sign),
        )
        for sign, name in EXPECTED.items()
    ]
    lines = [f"{EXPECTED[sign]}, not as expected ({name}): {words}" for name, sign, words, right in found if not right]
    table = Table(title=f"sessions, {path.stem}", columns=("", "expected", "right"), rows=rows)
    return Report(name="sessions", about={"right": "percent"}, tables=[table], lines=lines)

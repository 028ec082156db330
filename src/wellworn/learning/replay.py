"""A tenant's log learned from the start, by the same step that learned it as it came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from wellworn.core.values import Partition
from wellworn.learning.example import Example
from wellworn.learning.policy import Advanced, Person, Prior, advance
from wellworn.store.port import LoggedOutcome


@dataclass(frozen=True, kw_only=True)
class Step:
    """One outcome learned: whose, when, what it taught, and the state after it."""

    told: LoggedOutcome
    example: Example
    after: Advanced

    @property
    def partition(self) -> Partition:
        return self.told.recall.partition

    @property
    def at(self) -> datetime:
        return self.told.at


@dataclass(kw_only=True)
class Replay:
    """The state so far. `log` gives outcomes after a number, in order; `steps` may be asked again for newer ones.

    What was told up to number `last` has been learned, or is not to be.
    """

    prior: Prior
    log: Callable[[int], Iterable[tuple[LoggedOutcome, Example]]]
    people: dict[Partition, Person] = field(default_factory=dict)
    last: int = 0
    _past: dict[Partition, list[Example]] = field(default_factory=dict)

    def steps(self) -> Iterator[Step]:
        """Learn what has not been learned yet, outcome by outcome."""
        for told, example in self.log(self.last):
            partition = told.recall.partition
            past = self._past.setdefault(partition, [])
            after = advance(self.prior, self.people.get(partition), example, past=past.copy, at=told.at)
            past.append(example)
            self.prior, self.people[partition], self.last = after.prior, after.person, told.no
            yield Step(told=told, example=example, after=after)

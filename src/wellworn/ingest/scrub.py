"""The hook through which every text passes before anything of it is stored, embedded, hashed, logged or sent.

Knows how to walk through values that hold texts, and nothing about what is taken out of them: see `pii`, which is
loaded only when scrubbing is switched on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, Union

from wellworn.core.clock import Clock
from wellworn.core.values import Partition
from wellworn.store.port import Store, Tx

Scrubber = Callable[[str], str]
ScrubberSpec: TypeAlias = Union[str, Scrubber, "Scrubbing"]
"""A mode's name, or a function from text to text."""


def keep_all(text: str) -> str:
    """The default: nothing is taken out."""
    return text


class Scrubbing:
    """Scrubbers by partition. This one has the same function for all; `pii` has one with rules and numbers."""

    def __init__(self, scrubber: Scrubber = keep_all) -> None:
        self._scrubber = scrubber
        self.on = scrubber is not keep_all
        """Whether anything is ever taken out."""

    def stored(self, partition: Partition) -> Scrubber:
        """For what is to be stored there. May raise `PersonalData`; not for inside a transaction."""
        return self._scrubber

    def asked(self, partition: Partition | None) -> Scrubber:
        """For questions: never refuses and writes nothing."""
        return self._scrubber

    def sent(self, partition: Partition) -> Scrubber:
        """For what a model reads: never refuses; not for inside a transaction."""
        return self._scrubber

    def settle(self, tx: Tx) -> None:
        """Record, with whatever is being written, how much was taken out since the last time."""

    def counts(self, partitions: Sequence[Partition]) -> dict[str, int]:
        """How often something of each type was taken out of texts of these partitions."""
        return {}


NO_SCRUBBING = Scrubbing()


def choose_scrubbing(spec: ScrubberSpec, store: Store, *, clock: Clock) -> Scrubbing:
    """The scrubbing for `off`, `mask`, `strict`, `reject` or a function from text to text."""
    if spec == "off" or spec is keep_all:
        return NO_SCRUBBING
    if isinstance(spec, Scrubbing):
        return spec
    if callable(spec):
        return Scrubbing(spec)
    from wellworn.ingest.pii import RuleScrubbing, check_mode

    check_mode(spec)
    return RuleScrubbing(spec, store, clock=clock)


def scrubbed_json(value: Any, scrub: Scrubber) -> Any:  # any JSON value, here and there
    """A JSON value with every text in it scrubbed, names of fields included."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return {scrub(key): _scrubbed_field(key, one, scrub) for key, one in value.items()}
    return [scrubbed_json(one, scrub) for one in value] if isinstance(value, list | tuple) else value


def _scrubbed_field(name: str, value: Any, scrub: Scrubber) -> Any:
    """A text is read together with the name of its field, which may say that it is a password."""
    if not isinstance(value, str) or scrub is keep_all:
        return scrubbed_json(value, scrub)
    before = f'"{name}": "'
    field = scrub(f'{before}{value}"')
    whole = field.startswith(before) and field.endswith('"') and '"' not in value
    return field[len(before) : -1] if whole else scrub(value)

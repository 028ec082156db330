"""Scrubbing of a memory: modes, numbers by partition, and the count of what was taken out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from wellworn.core.clock import Clock, aware
from wellworn.core.errors import InvalidInput, PersonalData
from wellworn.core.locks import ForkLock
from wellworn.core.values import Partition
from wellworn.ingest.pii.find import find
from wellworn.ingest.pii.finding import Finder, Finding
from wellworn.ingest.pii.mask import Numbering, checked_mode, masked, refuse
from wellworn.ingest.pii.pseudonyms import Pseudonyms
from wellworn.ingest.scrub import NO_SCRUBBING, ByFunction, Scrubber, ScrubberSpec, Scrubbing
from wellworn.store.port import Event, Store, Tx

AT_ONCE = 1000
"""How many texts are read ahead for their numbers to be given in one transaction."""


@dataclass(frozen=True, kw_only=True)
class Scrub:
    """What `Memory.open(scrubber=…)` takes besides a mode's name: a mode, and finders to ask besides the rules."""

    mode: str = "mask"
    finders: Sequence[Finder] = ()


def scrubbing_of(spec: ScrubberSpec, store: Store, *, clock: Clock) -> Scrubbing:
    """The scrubbing that a mode's name, settings or a function stand for."""
    if isinstance(spec, str):
        spec = Scrub(mode=spec)
    if isinstance(spec, Scrub):
        if checked_mode(spec.mode) == "off":
            return NO_SCRUBBING
        return ByRules(store, mode=spec.mode, finders=spec.finders, clock=clock)
    if isinstance(spec, ByRules):
        return spec
    if callable(spec):
        return ByFunction(spec)
    raise InvalidInput("scrubber", f"{type(spec).__name__} is none", "use 'off', 'mask', 'reject' or a function")


class ByRules:
    """Masks or refuses what the finders find; safe between threads."""

    on = True

    def __init__(self, store: Store, *, mode: str, finders: Sequence[Finder], clock: Clock) -> None:
        self._store = store
        self._mode = mode
        self._finders = tuple(finders)
        self._clock = aware(clock)
        self._pseudonyms = Pseudonyms(store, clock=self._clock)
        self._lock = ForkLock()
        self._taken: dict[Partition, Counter[str]] = {}

    def stored(self, partition: Partition) -> Scrubber:
        return self._refusing(partition) if self._mode == "reject" else self.sent(partition)

    def sent(self, partition: Partition) -> Scrubber:
        return self._masking(partition, lambda found: self._pseudonyms.numbered(partition, found))

    def asked(self, partition: Partition | None) -> Scrubber:
        if partition is None:
            return lambda text: masked(text, lambda found: [None] * len(found), self._finders).text
        return self._masking(partition, lambda found: self._pseudonyms.known(partition, found))

    def _masking(self, partition: Partition, numbering: Numbering) -> Scrubber:
        def scrub(text: str) -> str:
            scrubbed = masked(text, numbering, self._finders)
            if scrubbed.counts:
                with self._lock:
                    self._taken.setdefault(partition, Counter()).update(scrubbed.counts)
            return scrubbed.text

        return scrub

    def _refusing(self, partition: Partition) -> Callable[[str], str]:
        def scrub(text: str) -> str:
            try:
                refuse(text, self._finders)
            except PersonalData as error:
                event = Event(at=self._clock(), tenant=partition.tenant, action="refuse", detail={"why": error.problem})
                with self._store.transact() as tx:
                    tx.audit(event)
                raise
            return text

        return scrub

    def expect(self, partition: Partition, texts: Iterator[str]) -> None:
        if self._mode == "reject":
            return
        while some := [*islice(texts, AT_ONCE)]:
            found: list[Finding] = [*chain.from_iterable(find(text, others=self._finders) for text in some)]
            if found:
                self._pseudonyms.numbered(partition, found)

    def settle(self, tx: Tx) -> None:
        if not self._taken:
            return
        with self._lock:
            taken, self._taken = self._taken, {}
        now = self._clock()
        for partition, counts in taken.items():
            self._pseudonyms.count(tx, partition, counts)
            tx.audit(Event(at=now, tenant=partition.tenant, action="scrub", detail={**counts}))

    def counts(self, partitions: Sequence[Partition]) -> dict[str, int]:
        total: Counter[str] = Counter()
        for partition in partitions:
            total.update(self._pseudonyms.counts(partition))
            with self._lock:
                total.update(self._taken.get(partition, {}))
        return dict(sorted(total.items()))

"""Placeholders instead of what was found: `[EMAIL_1]`. For single texts (`scrub_text`) and for a whole memory.

In a memory the numbers are kept in the store, by partition, without the values: a value is known by its HMAC under a
random salt of the partition, so it gets the same number in every process and after a restart. Whoever has the file has
the salt too and can try values out: this hides secrets, not the few hundred million social security numbers there are.
A partition's salt and numbers go with the partition.
"""

from __future__ import annotations

import hmac
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any

from wellworn.core.clock import Clock, aware
from wellworn.core.errors import InvalidInput, PersonalData
from wellworn.core.locks import ForkLock
from wellworn.core.values import Partition
from wellworn.ingest.pii.detectors import Finder
from wellworn.ingest.pii.find import find
from wellworn.ingest.pii.secrets import Finding
from wellworn.ingest.scrub import NO_SCRUBBING, Scrubber, ScrubberSpec, Scrubbing
from wellworn.models.port import Model, Reply, Request
from wellworn.store.events import Event, audit
from wellworn.store.port import Record, RecordFilter, Store, StoreReader, Tx

MODES = ("off", "mask", "reject")
LEVELS = ("standard", "strict")
Look = Callable[[str], list[Finding]]
Numbering = Callable[[Sequence[Finding]], Sequence[int | None]]
"""A number for each finding, the same for the same type and value; None for a placeholder without one."""
HEAD, ONE = "pseudonyms", "pseudonym"
"""Kinds of records: the salt, the last numbers and the counts of a partition; the number of one value."""
_HEAD_KEY = "head"
AT_ONCE = 1000
"""How many texts are read ahead so that their numbers are given in one transaction."""


@dataclass(frozen=True, kw_only=True)
class Scrubbed:
    """A text without what was taken out of it, and how often something of each type was."""

    text: str
    counts: dict[str, int] = field(default_factory=dict)


class CountedUp:
    """Numbers from 1 for each type, in the order of appearance, as long as this object lives; keeps the values."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}

    def __call__(self, found: Sequence[Finding]) -> list[int]:
        given = []
        for _, _, type_, value in found:
            known = self._numbers.setdefault(type_, {})
            given.append(known.setdefault(value, len(known) + 1))
        return given


def scrub_text(
    text: str,
    *,
    mode: str = "mask",
    level: str = "standard",
    numbering: Numbering | None = None,
    finders: Sequence[Finder] = (),
) -> Scrubbed:
    """The text without personal data and secrets.

    `mode` is `mask`, `reject` (raises `PersonalData` where there is any) or `off`. `level="strict"` also looks for
    names, addresses, dates of birth and documents. Placeholders are numbered within the text; pass one `CountedUp()`
    to several calls to number them through. `finders` are asked besides the rules.
    """
    look = _looking(Scrub(mode=mode, level=level, finders=finders))
    if not isinstance(text, str):
        raise InvalidInput("text", f"must be text, not {type(text).__name__}")
    if mode == "mask":
        return _masked(text, numbering or CountedUp(), look)
    if mode == "reject":
        _refuse(text, look)
    return Scrubbed(text=text)


def _looking(scrub: Scrub) -> Look:
    """The search that settings stand for."""
    for name, given, known in (("scrubber", scrub.mode, MODES), ("level", scrub.level, LEVELS)):
        if given not in known:
            what = "mode" if name == "scrubber" else "level"
            raise InvalidInput(name, f"{given!r} is not a {what}", f"use one of {', '.join(known)}")
    return partial(find, strict=scrub.level == "strict", others=tuple(scrub.finders))


def _masked(text: str, numbering: Numbering, look: Look) -> Scrubbed:
    """Masks until nothing is found: what stood beside a finding may be one when that is gone. Each time there is less
    outside of placeholders, in which nothing is looked for, so it ends."""
    counts: Counter[str] = Counter()
    while found := look(text):
        parts, place = [], 0
        for (start, end, type_, _), number in zip(found, numbering(found), strict=True):
            parts += [text[place:start], f"[{type_}]" if number is None else f"[{type_}_{number}]"]
            place = end
        text = "".join([*parts, text[place:]])
        counts.update([one[2] for one in found])
    return Scrubbed(text=text, counts=dict(counts))


def _refuse(text: str, look: Look) -> None:
    """Raise `PersonalData` when there is any; the message has types and numbers, never what was found."""
    counts = Counter(one.type for one in look(text))
    if counts:
        listed = ", ".join(f"{number} {type_}" for type_, number in sorted(counts.items()))
        raise PersonalData("text", f"holds {listed}", "take it out, or open the memory with scrubber='mask'")


class Pseudonyms:
    """The numbers of one store's partitions."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def known(self, partition: Partition, found: Sequence[Finding]) -> list[int | None]:
        """The numbers that are given already; writes nothing. Two reads, however many there are."""
        return self._looked_up(partition, found)[1]

    def _looked_up(self, partition: Partition, found: Sequence[Finding]) -> tuple[str, list[int | None]]:
        """The partition's salt, empty when it has none, and the numbers under it."""
        head = self._store.record(partition, HEAD, _HEAD_KEY)
        if head is None:
            return "", [None] * len(found)
        salt = head.body["salt"]
        keys = _keys(salt, found)
        given = _numbers(self._store, partition, keys)
        return salt, [given.get(key) for key in keys]

    def numbered(self, partition: Partition, found: Sequence[Finding]) -> list[int]:
        """The numbers of all; a transaction only where some are new."""
        salt, known = self._looked_up(partition, found)
        new = [one for one, number in zip(found, known, strict=True) if number is None]
        if not new:
            return [number for number in known if number is not None]
        with self._store.transact() as tx:
            if salt and self._head(tx, partition)["salt"] != salt:  # forgotten meanwhile, and begun anew
                return self._given(tx, partition, found)
            given = iter(self._given(tx, partition, new))
        return [next(given) if number is None else number for number in known]

    def _given(self, tx: Tx, partition: Partition, found: Sequence[Finding]) -> list[int]:
        body = self._head(tx, partition)
        last: dict[str, int] = body["last"]
        keys = _keys(body["salt"], found)
        given = _numbers(tx, partition, keys)
        new: list[Record] = []
        for one, key in zip(found, keys, strict=True):
            if key not in given:
                last[one.type] = given[key] = last.get(one.type, 0) + 1
                new.append(self._record(partition, ONE, key, {"number": given[key]}))
        if new:
            tx.put_records(new)
            self._put_head(tx, partition, body)
        return [given[key] for key in keys]

    def count(self, tx: Tx, partition: Partition, counts: Mapping[str, int]) -> None:
        """Add to how often something was taken out."""
        body = self._head(tx, partition)
        taken: dict[str, int] = body["taken"]
        for type_, number in counts.items():
            taken[type_] = taken.get(type_, 0) + number
        self._put_head(tx, partition, body)

    def counts(self, partition: Partition) -> dict[str, int]:
        head = self._store.record(partition, HEAD, _HEAD_KEY)
        return {} if head is None else dict(head.body["taken"])

    def _head(self, tx: Tx, partition: Partition) -> dict[str, Any]:  # as in the store's JSON
        head = tx.record(partition, HEAD, _HEAD_KEY)
        if head is None:
            return {"salt": secrets.token_hex(16), "last": {}, "taken": {}}
        return {"salt": head.body["salt"], "last": dict(head.body["last"]), "taken": dict(head.body["taken"])}

    def _put_head(self, tx: Tx, partition: Partition, body: dict[str, Any]) -> None:
        tx.put_records([self._record(partition, HEAD, _HEAD_KEY, body)])

    def _record(self, partition: Partition, kind: str, key: str, body: dict[str, Any]) -> Record:
        now = self._clock()
        return Record(partition=partition, kind=kind, key=key, body=body, created_at=now, updated_at=now)


def _numbers(reader: StoreReader, partition: Partition, keys: Sequence[str]) -> dict[str, int]:
    """The numbers that are given, by key."""
    found = reader.records(RecordFilter(partition=partition, kinds=[ONE], keys=[*dict.fromkeys(keys)]))
    return {record.key: int(record.body["number"]) for record in found}


def _keys(salt: str, found: Sequence[Finding]) -> list[str]:
    """What the values are known by; each is computed once."""
    key, known = bytes.fromhex(salt), dict[tuple[str, str], str]()
    for _, _, type_, value in found:
        if (type_, value) not in known:
            data = f"{type_}\x1f{value}".encode("utf-8", "surrogatepass")
            known[type_, value] = hmac.digest(key, data, "sha256").hex()
    return [known[one.type, one.value] for one in found]


@dataclass(frozen=True, kw_only=True)
class Scrub:
    """What `Memory.open(scrubber=…)` takes besides a mode's name: a mode, a level (`standard` or `strict`), and finders
    to ask besides the rules."""

    mode: str = "mask"
    level: str = "standard"
    finders: Sequence[Finder] = ()


def scrubbing_of(spec: ScrubberSpec, store: Store, *, clock: Clock) -> Scrubbing:
    """The scrubbing that a mode's name, settings or a function stand for."""
    if isinstance(spec, str):
        spec = Scrub(level="strict") if spec == "strict" else Scrub(mode=spec)
    if isinstance(spec, Scrub):
        scrubbing = RuleScrubbing(spec, store, clock=clock)
        return NO_SCRUBBING if spec.mode == "off" else scrubbing
    if callable(spec):
        return Scrubbing(spec)
    raise InvalidInput(
        "scrubber", f"{type(spec).__name__} is none", "use 'off', 'mask', 'strict', 'reject' or a function"
    )


class RuleScrubbing(Scrubbing):
    """Masks or refuses what is found; safe between threads."""

    on = True

    def __init__(self, scrub: Scrub, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._refuses = scrub.mode == "reject"
        self._look = _looking(scrub)
        self._clock = aware(clock)
        self._pseudonyms = Pseudonyms(store, clock=self._clock)
        self._lock = ForkLock()
        self._taken: dict[Partition, Counter[str]] = {}

    def stored(self, partition: Partition) -> Scrubber:
        return self._refusing(partition) if self._refuses else self.sent(partition)

    def sent(self, partition: Partition) -> Scrubber:
        return self._masking(partition, lambda found: self._pseudonyms.numbered(partition, found))

    def asked(self, partition: Partition | None) -> Scrubber:
        if partition is None:
            return lambda text: _masked(text, lambda found: [None] * len(found), self._look).text
        return self._masking(partition, lambda found: self._pseudonyms.known(partition, found))

    def _masking(self, partition: Partition, numbering: Numbering) -> Scrubber:
        def scrub(text: str) -> str:
            scrubbed = _masked(text, numbering, self._look)
            if scrubbed.counts:
                with self._lock:
                    self._taken.setdefault(partition, Counter()).update(scrubbed.counts)
            return scrubbed.text

        return scrub

    def _refusing(self, partition: Partition) -> Scrubber:
        def scrub(text: str) -> str:
            try:
                _refuse(text, self._look)
            except PersonalData as error:
                event = Event(at=self._clock(), tenant=partition.tenant, action="refuse", detail={"why": error.problem})
                with self._store.transact() as tx:
                    audit(tx, event)
                raise
            return text

        return scrub

    def expect(self, partition: Partition, texts: Iterator[str]) -> None:
        while not self._refuses and (some := [*islice(texts, AT_ONCE)]):
            found = [*chain.from_iterable(map(self._look, some))]
            if found:
                self._pseudonyms.numbered(partition, found)

    def settle(self, tx: Tx) -> None:
        with self._lock:
            taken, self._taken = self._taken, {}
        for partition, counts in taken.items():
            self._pseudonyms.count(tx, partition, counts)
            audit(tx, Event(at=self._clock(), tenant=partition.tenant, action="scrub", detail={**counts}))

    def counts(self, partitions: Sequence[Partition]) -> dict[str, int]:
        total: Counter[str] = Counter()
        for partition in partitions:
            total.update(self._pseudonyms.counts(partition))
            with self._lock:
                total.update(self._taken.get(partition, {}))
        return dict(sorted(total.items()))


class ScrubbedModel:
    """A language model whose every message is scrubbed before it is sent; its answers come as they are."""

    def __init__(self, model: Model, scrub: Scrubber) -> None:
        self._model = model
        self._scrub = scrub

    @property
    def name(self) -> str:
        return self._model.name

    def complete(self, request: Request) -> Reply:
        return self._model.complete(self._clean(request))

    def _clean(self, request: Request) -> Request:
        messages = tuple(replace(message, text=self._scrub(message.text)) for message in request.messages)
        return replace(request, messages=messages)

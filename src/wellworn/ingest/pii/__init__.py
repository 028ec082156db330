"""Personal data and secrets: what is found (`find`, `secrets`), and placeholders in its place, as in `[EMAIL_1]`. For single texts (`scrub_text`) and for a whole memory.

In a memory the numbers are kept in the store, by partition, without the values: a value is known by its HMAC under a
random salt of the partition, so it gets the same number in every process and after a restart. Whoever has the file has
the salt too and can try values out: this hides secrets, not the few hundred million social security numbers there are.
A partition's salt and numbers go with the partition.
"""

from __future__ import annotations

import hmac
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any

from wellworn.core.clock import Clock, aware
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, PersonalData
from wellworn.core.locks import fork_lock
from wellworn.core.values import Partition
from wellworn.ingest.pii.find import find
from wellworn.ingest.pii.secrets import Finding
from wellworn.ingest.scrub import Scrubber, Scrubbing
from wellworn.models.port import Model, Reply, Request
from wellworn.store.events import Event, audit
from wellworn.store.port import Record, RecordFilter, Store, StoreReader, Tx

MODES = ("off", "mask", "strict", "reject")
Numbering = Callable[[Sequence[Finding]], Sequence[int | None]]
"""A number for each finding, the same for the same type and value; None for a placeholder without one."""
HEAD, ONE = "pseudonyms", "pseudonym"
"""Kinds of records: the salt, the last numbers and the counts of a partition; the number of one value."""
_HEAD_KEY = "head"


@dataclass(frozen=True, kw_only=True)
class Scrubbed:
    """A text without what was taken out of it, and how often something of each type was."""

    text: str
    counts: dict[str, int] = field(default_factory=dict)


def scrub_text(text: str, *, mode: str = "mask") -> Scrubbed:
    """The text without personal data and secrets; placeholders are numbered within it.

    `mode` is `mask`, `strict` (also masks names, addresses, dates of birth and documents), `reject` (raises
    `PersonalData` where there is any) or `off`.
    """
    check_mode(mode)
    if not isinstance(text, str):
        raise InvalidInput("text", f"must be text, not {type(text).__name__}")
    if mode == "reject":
        _refuse(text)
    if mode in ("off", "reject"):
        return Scrubbed(text=text)
    numbers: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def numbered(found: Sequence[Finding]) -> list[int]:
        return [numbers[one.type].setdefault(one.value, len(numbers[one.type]) + 1) for one in found]

    return _masked(text, numbered, strict=mode == "strict")


def check_mode(mode: object) -> None:
    if mode not in MODES:
        raise InvalidInput("scrubber", f"{mode!r} is not a mode", f"use one of {', '.join(MODES)}, or a function")


def _masked(text: str, numbering: Numbering, *, strict: bool) -> Scrubbed:
    """Masks until nothing is found: what stood beside a finding may be one when that is gone. Each time there is less
    outside of placeholders, in which nothing is looked for, so it ends."""
    counts: Counter[str] = Counter()
    while found := find(text, strict=strict):
        parts, place = [], 0
        for (start, end, type_, _), number in zip(found, numbering(found), strict=True):
            parts += [text[place:start], f"[{type_}]" if number is None else f"[{type_}_{number}]"]
            place = end
        text = "".join([*parts, text[place:]])
        counts.update(one.type for one in found)
    return Scrubbed(text=text, counts=dict(counts))


def _refuse(text: str) -> None:
    """Raise `PersonalData` when there is any; the message has types and numbers, never what was found."""
    counts = Counter(one.type for one in find(text))
    if counts:
        listed = ", ".join(f"{number} {type_}" for type_, number in sorted(counts.items()))
        raise PersonalData("text", f"holds {listed}", "take it out, or let the scrubber mask it")


class RuleScrubbing(Scrubbing):
    """Masks or refuses what is found, and numbers it by partition; safe between threads."""

    on = True

    def __init__(self, mode: str, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._mode = mode
        self._clock = aware(clock)
        self._lock = fork_lock()
        self._taken: dict[Partition, Counter[str]] = {}

    def stored(self, partition: Partition) -> Scrubber:
        return self._refusing(partition) if self._mode == "reject" else self.sent(partition)

    def sent(self, partition: Partition) -> Scrubber:
        return self._masking(partition, lambda found: self._numbered(partition, found))

    def asked(self, partition: Partition | None) -> Scrubber:
        if partition is None:
            return lambda text: self._masked(text, lambda found: [None] * len(found)).text
        return self._masking(partition, lambda found: _given(self._store, partition, found)[2])

    def _masked(self, text: str, numbering: Numbering) -> Scrubbed:
        return _masked(text, numbering, strict=self._mode == "strict")

    def _masking(self, partition: Partition, numbering: Numbering) -> Scrubber:
        def scrub(text: str) -> str:
            scrubbed = self._masked(text, numbering)
            if scrubbed.counts:
                with self._lock:
                    self._taken.setdefault(partition, Counter()).update(scrubbed.counts)
            return scrubbed.text

        return scrub

    def _refusing(self, partition: Partition) -> Scrubber:
        def scrub(text: str) -> str:
            try:
                _refuse(text)
            except PersonalData as error:
                event = Event(at=self._clock(), tenant=partition.tenant, action="refuse", detail={"why": error.problem})
                with self._store.transact() as tx:
                    audit(tx, event)
                raise
            return text

        return scrub

    def _numbered(self, partition: Partition, found: Sequence[Finding]) -> Sequence[int | None]:
        """The numbers of all; a transaction only where some are new."""
        _, _, known = _given(self._store, partition, found)
        if None not in known:
            return known
        with self._store.transact(tenant=partition.tenant) as tx:
            body, keys, known = _given(tx, partition, found)
            given, new = dict(zip(keys, known, strict=True)), list[Record]()
            for one, key in zip(found, keys, strict=True):
                if given[key] is None:
                    body["last"][one.type] = given[key] = body["last"].get(one.type, 0) + 1
                    new.append(self._record(partition, ONE, key, {"number": given[key]}))
            tx.put_records([*new, self._record(partition, HEAD, _HEAD_KEY, body)])
        return [given[key] for key in keys]

    def _record(self, partition: Partition, kind: str, key: str, body: dict[str, Any]) -> Record:
        now = self._clock()
        return Record(partition=partition, kind=kind, key=key, body=body, created_at=now, updated_at=now)

    def settle(self, tx: Tx) -> None:
        with self._lock:
            mine = [partition for partition in self._taken if tx.tenant in (None, partition.tenant)]
            taken = {partition: self._taken.pop(partition) for partition in mine}
        for partition, counts in taken.items():
            body = _head(tx, partition)
            body["taken"] = dict(Counter(body["taken"]) + counts)
            tx.put_records([self._record(partition, HEAD, _HEAD_KEY, body)])
            audit(tx, Event(at=self._clock(), tenant=partition.tenant, action="scrub", detail={**counts}))

    def counts(self, partitions: Sequence[Partition]) -> dict[str, int]:
        total: Counter[str] = Counter()
        for partition in partitions:
            total.update(_head(self._store, partition)["taken"])
            with self._lock:
                total.update(self._taken.get(partition, {}))
        return dict(sorted(total.items()))


def _head(reader: StoreReader, partition: Partition) -> dict[str, Any]:  # as in the store's JSON
    """The salt, the last number of each type and the counts of a partition, as they are or as they begin."""
    head = reader.record(partition, HEAD, _HEAD_KEY)
    if head is None:
        return {"salt": os.urandom(16).hex(), "last": {}, "taken": {}}
    return {"salt": head.body["salt"], "last": dict(head.body["last"]), "taken": dict(head.body["taken"])}


def _given(
    reader: StoreReader, partition: Partition, found: Sequence[Finding]
) -> tuple[dict[str, Any], list[str], list[int | None]]:
    """The head of a partition, what the values are known by, and the numbers that are given already: two reads, however
    many there are."""
    head = _head(reader, partition)
    salt, texts = bytes.fromhex(head["salt"]), [f"{one.type}\x1f{one.value}" for one in found]
    keys = [hmac.digest(salt, text.encode("utf-8", "surrogatepass"), "sha256").hex() for text in texts]
    there = reader.records(RecordFilter(partition=partition, kinds=[ONE], keys=[*dict.fromkeys(keys)]))
    numbers = {record.key: int(record.body["number"]) for record in there}
    return head, keys, [numbers.get(key) for key in keys]


class ScrubbedModel:
    """A language model whose every message is scrubbed before it is sent; its answers come as they are."""

    def __init__(self, model: Model, scrub: Scrubber) -> None:
        self._model = model
        self._scrub = scrub

    @property
    def name(self) -> str:
        return self._model.name

    def complete(self, request: Request) -> Reply:
        messages = tuple(replace(message, text=self._scrub(message.text)) for message in request.messages)
        return self._model.complete(replace(request, messages=messages))

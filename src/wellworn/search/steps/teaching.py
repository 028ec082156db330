"""What searches taught, in a store: each lesson one row of the outcome log and one step of a state.

Learned as they come or from the log it is the same step (`lessons`), so `relearn` rebuilds a state bit for bit. States
are a tenant's, or a person's where people do not learn from each other; what waits for trust is always a person's.
Every switch of what serves, and of which scores are recursive, is an event.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from wellworn.core.clock import Clock, aware
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Partition, Searching
from wellworn.ingest.hashing import hash64
from wellworn.learning.state import SETTINGS, Tenant, loads_tenant
from wellworn.search.steps.lessons import KINDS, Learned, Lesson, lesson_of, plain_lesson
from wellworn.search.steps.routing import BANDS, Band
from wellworn.search.steps.trainer import PROFILE, Policy, Practice, dumps, loads
from wellworn.store.port import Event, LoggedOutcome, Store, Tx

WAITING = f"{PROFILE}/waiting"
"""The profile under which lessons wait until a person is trusted."""
PAGE = 500
_HELD = 500


class Teacher:
    """Reads, changes and rebuilds the states of one store."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = aware(clock)
        self._read: dict[Partition, tuple[str | None, Policy]] = {}

    def policy(self, home: Partition) -> Policy:
        """What serves a home: its own state where the tenant's people do not learn from each other."""
        of_all, own = self._store.policies(home, profile=PROFILE)
        text, held = own or of_all, self._read.get(home)
        if held is None or held[0] != text:
            if len(self._read) >= _HELD:
                self._read.clear()
            held = self._read[home] = (text, loads(text, seed=_seed(home.tenant)))
        return held[1]

    def teach(self, tx: Tx, recall_id: str, partition: Partition, lesson: Lesson, *, kind: str) -> None:
        """Append a lesson to the log and learn it; nothing when one of this kind was logged before."""
        now = self._clock()
        if tx.add_outcome(recall_id, kind, plain_lesson(lesson), now) is None:
            return
        of = _of(partition, loads_tenant(tx.policy(partition.tenant, None, profile=SETTINGS)))
        before = Learned(
            policy=loads(tx.policy(partition.tenant, of, profile=PROFILE), seed=_seed(partition.tenant)),
            waiting=_loads_waiting(tx.policy(partition.tenant, partition, profile=WAITING)),
        )
        after = before.after(lesson, kind=kind)
        if after.policy is not before.policy:
            tx.put_policy(partition.tenant, of, dumps(after.policy), profile=PROFILE)
            _receipt(tx, partition.tenant, before.policy, after.policy, now)
        if after.waiting != before.waiting:
            tx.put_policy(partition.tenant, partition, _dumps_waiting(after.waiting), profile=WAITING)

    def begin(self, home: Partition, practice: Practice, tasks: int, *, last: int) -> None:
        """Begin a state with what synthetic tasks said, after outcome number `last`."""
        with self._store.transact() as tx:
            of = _of(home, loads_tenant(tx.policy(home.tenant, None, profile=SETTINGS)))
            policy = loads(tx.policy(home.tenant, of, profile=PROFILE), seed=_seed(home.tenant))
            tx.put_policy(home.tenant, of, dumps(policy.begun(practice, tasks, after=last)), profile=PROFILE)

    # -- the log learned anew --------------------------------------------------------------------------------------

    def relearn(self, tenant: str) -> None:
        """Learn the log since the last reset anew. Practice, which is not in it, is taken over where it stood."""
        settled = loads_tenant(self._store.policy(tenant, None, profile=SETTINGS))
        replay = _Replay(tenant=tenant, settled=settled, state=self._state)
        replay.follow(self._lessons(tenant, settled.since))
        with self._store.transact() as tx:
            now = loads_tenant(tx.policy(tenant, None, profile=SETTINGS))
            if now != settled:  # reset, or shared otherwise, while this was learned
                replay = _Replay(tenant=tenant, settled=now, state=self._state)
            replay.follow(self._lessons(tenant, replay.last))  # what was told meanwhile
            replay.end()
            for profile in (PROFILE, WAITING):
                tx.drop_policies(tenant, profile=profile)
            for of, policy in replay.policies.items():
                tx.put_policy(tenant, of, dumps(policy), profile=PROFILE)
            for partition, waiting in replay.waiting.items():
                if waiting:
                    tx.put_policy(tenant, partition, _dumps_waiting(waiting), profile=WAITING)

    def _lessons(self, tenant: str, after: int) -> Iterator[LoggedOutcome]:
        while page := self._store.outcomes(tenant, after=after, limit=PAGE):
            after = page[-1].no
            yield from (one for one in page if one.kind in KINDS)

    def _state(self, tenant: str, of: Partition | None) -> Policy:
        return loads(self._store.policy(tenant, of, profile=PROFILE), seed=_seed(tenant))

    def status(self, home: Partition, threshold: float) -> tuple[Searching, ...]:
        """How questions of each shape that was told of are searched now."""
        policy = self.policy(home)
        shapes = dict.fromkeys([*policy.families, *policy.routing.bands])
        return tuple(
            Searching(
                shape=shape,
                outcomes=policy.family(shape).outcomes,
                serves=policy.family(shape).serves,
                starts=policy.routing.starts(shape, threshold),
                rewards={choice: tried.seen.mean for choice, tried in policy.family(shape).tried.items()},
            )
            for shape in shapes
        )


@dataclass(kw_only=True)
class _Replay:
    """The states so far; what was told up to number `last` is learned. `state` gives those that there are."""

    tenant: str
    settled: Tenant
    state: Callable[[str, Partition | None], Policy]
    policies: dict[Partition | None, Policy] = field(default_factory=dict)
    waiting: dict[Partition, tuple[Lesson, ...]] = field(default_factory=dict)
    last: int = field(init=False)
    _held: dict[Partition | None, Policy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.last = self.settled.since
        if self.settled.shares:
            self._policy(None, before=0)

    def follow(self, log: Iterator[LoggedOutcome]) -> None:
        for one in log:
            partition = one.recall.partition
            of = _of(partition, self.settled)
            known = Learned(policy=self._policy(of, before=one.no), waiting=self.waiting.get(partition, ()))
            after = known.after(lesson_of(one.value), kind=one.kind)
            if after.policy is not known.policy:
                self.policies[of] = after.policy
            self.waiting[partition], self.last = after.waiting, one.no

    def end(self) -> None:
        """Practice that came after all that was told."""
        for of in self._held:
            self._policy(of, before=math.inf)

    def _policy(self, of: Partition | None, *, before: float) -> Policy:
        """The state as it was before this outcome: with its practice, if that came earlier."""
        if of not in self._held:
            self._held[of] = self.state(self.tenant, of)
        held, known = self._held[of], self.policies.get(of, Policy(seed=_seed(self.tenant)))
        if held.bootstrapped and not known.bootstrapped and held.practised_after < before:
            known = self.policies[of] = known.begun(held.practice, held.bootstrapped, after=held.practised_after)
        return known


def _of(partition: Partition, settled: Tenant) -> Partition | None:
    return None if settled.shares else partition


def _receipt(tx: Tx, tenant: str, before: Policy, after: Policy, now: datetime) -> None:
    """Every switch of what serves is an event."""
    for shape, family in after.families.items():
        served = before.family(shape).serves
        if family.serves != served:
            why = (
                f"searches of shape {shape}: {served} {family.of(served).seen}, "
                f"{family.serves} {family.of(family.serves).seen}"
            )
            _event(tx, tenant, now, served, family.serves, why, family.outcomes)
    for shape, bands in after.routing.bands.items():
        for number, band in bands.items():
            to = before.routing.bands.get(shape, {}).get(number, Band()).to
            if band.to != to:
                why = (
                    f"questions of shape {shape} that score {number / BANDS:.1f} to {(number + 1) / BANDS:.1f}: "
                    f"recursive {band.recursive}, plain {band.plain}"
                )
                seen = round(band.recursive.n + band.plain.n)
                _event(tx, tenant, now, to or "as set", band.to or "as set", why, seen)


def _event(tx: Tx, tenant: str, now: datetime, before: str, after: str, why: str, outcomes: int) -> None:
    detail: dict[str, int | float | str] = {"from": before, "to": after, "why": why, "outcomes": outcomes}
    tx.audit(Event(at=now, tenant=tenant, action="learn", detail=detail))


def _dumps_waiting(waiting: tuple[Lesson, ...]) -> str:
    return json.dumps([plain_lesson(one) for one in waiting], separators=(",", ":"))


def _loads_waiting(text: str | None) -> tuple[Lesson, ...]:
    try:
        return tuple(lesson_of(value) for value in json.loads(text or "[]"))
    except (ValueError, TypeError, InvalidInput):
        return ()


def _seed(tenant: str) -> int:
    return hash64(f"searches:{tenant}") % (1 << 53)

"""Writes every model call into the ledger and keeps calls within a budget.

The ledger is records of kind `call`, which are never changed and name no session. Beside them `spent` records hold what
a tenant, each of its days and each of its sessions have cost, so that a budget is checked without adding up the calls.
`Meter` is itself a `Model`: it checks the budget, calls the model it wraps, and records what the call took, whether it
worked or not. Never reads a prompt.
"""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from wellworn.core.clock import Clock, aware, system_clock
from wellworn.core.errors import StoreError
from wellworn.core.locks import ForkLock
from wellworn.core.values import Partition
from wellworn.models.base import most_input_tokens
from wellworn.models.costs import Budget, CallCost, Prices, Span
from wellworn.models.port import Model, Reply, Request
from wellworn.store.port import Record, RecordFilter, Store, StoreReader, Tx

if TYPE_CHECKING:
    import asyncio

_log = logging.getLogger("wellworn.models")
_warned: set[str] = set()  # models without a price that were logged already

CALL, SPENT = "call", "spent"
"""Kinds of records: one call; what a span adds up to."""
GROUPS = ("tenant", "purpose", "model", "day")
_PAGE = 10_000
_NUMBERS = ("input_tokens", "output_tokens", "usd", "seconds")


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a language model: numbers and names, never text."""

    at: datetime
    tenant: str
    purpose: str
    model: str
    session: str | None = None
    """The session that it is counted for; the ledger itself does not name it."""
    input_tokens: int
    output_tokens: int
    usd: float
    seconds: float
    ok: bool = True

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0:
                raise StoreError(f"a call of {self.model!r} cannot have {name} = {value!r}; give a number from 0 up")

    @property
    def day(self) -> str:
        """In UTC, as `2026-05-01`."""
        return self.at.astimezone(UTC).date().isoformat()


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What calls add up to; `key` holds the values they were grouped by, in that order."""

    key: tuple[str, ...]
    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0


def add_calls(tx: Tx, calls: Sequence[Call]) -> None:
    """Append to the ledger, and add to the sums."""
    for call in calls:
        body = {name: getattr(call, name) for name in ("purpose", "model", *_NUMBERS, "ok")}
        tx.put_records([Record(tenant=call.tenant, kind=CALL, body=body, created_at=call.at, updated_at=call.at)])
        cost = CallCost(tokens=call.input_tokens + call.output_tokens, usd=float(call.usd))
        for key, session in _sums(call):
            total = total_cost(tx, call.tenant, key) + cost
            sums = {"tokens": total.tokens, "usd": total.usd}
            record = Record(tenant=call.tenant, kind=SPENT, key=key, created_at=call.at, updated_at=call.at)
            tx.put_records([replace(record, body=sums, session=session)])


def _sums(call: Call) -> Iterator[tuple[str, str | None]]:
    """The keys of the sums that a call counts for; that of a session goes with the session."""
    yield "tenant", None
    yield f"day {call.day}", None
    if call.session is not None:
        yield f"session {call.session}", call.session


def total_cost(reader: StoreReader, tenant: str, key: str) -> CallCost:
    """One of the sums: `tenant`, `day 2026-05-01`, `session NAME`."""
    found = reader.records(RecordFilter(kinds=[SPENT], tenant=tenant, of_tenant=True, keys=[key]))
    return CallCost(tokens=found[0].body["tokens"], usd=found[0].body["usd"]) if found else CallCost()


def spent(
    reader: StoreReader, tenant: str | None, *, since: datetime | None = None, by: Sequence[str] = ()
) -> list[Spent]:
    """What the calls of a tenant (None: of all) add up to, from a moment on.

    `by` groups them, by `tenant`, `purpose`, `model` or `day` (UTC, as `2026-05-01`), in the order of these keys;
    without it there is one total, also when it is nothing.
    """
    for name in by:
        if name not in GROUPS:
            raise StoreError(f"calls are not grouped by {name!r}; use {', '.join(GROUPS)}")
    grouped: dict[tuple[str, ...], list[Call]] = {} if by else {(): []}
    for call in _calls(reader, tenant, since):
        grouped.setdefault(tuple(getattr(call, name) for name in by), []).append(call)
    return [
        Spent(
            key=key,
            calls=len(calls),
            failed=sum(not call.ok for call in calls),
            **{name: sum(getattr(call, name) for call in calls) for name in _NUMBERS},
        )
        for key, calls in sorted(grouped.items())
    ]


def _calls(reader: StoreReader, tenant: str | None, since: datetime | None) -> Iterator[Call]:
    wanted = RecordFilter(kinds=[CALL], tenant=tenant, since=since, order="oldest", limit=_PAGE)
    while page := reader.records(wanted):
        for record in page:
            yield Call(at=record.created_at, tenant=record.tenant, **record.body)
        wanted = replace(wanted, after=page[-1].no)


class InFlight:
    """What unfinished calls may still cost, so that concurrent calls do not exceed a cap together.

    Share one between the meters of a store. Other processes do not see it: several processes can exceed a cap by what
    each has in flight.
    """

    def __init__(self) -> None:
        self.lock = ForkLock()
        self._tickets = itertools.count()
        self._held: dict[int, tuple[str, str | None, CallCost]] = {}

    def hold(self, tenant: str, session: str | None, cost: CallCost) -> int:
        """Reserve this cost; the ticket releases it. Call it with the lock held."""
        ticket = next(self._tickets)
        self._held[ticket] = (tenant, session, cost)
        return ticket

    def settle(self, ticket: int, cost: CallCost | None) -> None:
        """Release a reservation: None once the cost is in the store, else the cost that is not there yet."""
        with self.lock:
            tenant, session, _ = self._held.pop(ticket)
            if cost is not None:
                self._held[ticket] = (tenant, session, cost)

    def held(self, tenant: str, session: str | None = None) -> CallCost:
        """For a tenant, or for one of its sessions."""
        costs = (cost for whose, where, cost in self._held.values() if whose == tenant and session in (None, where))
        return sum(costs, start=CallCost())


@dataclass(frozen=True, kw_only=True)
class _Visit:
    """One call on its way through the meter."""

    request: Request
    ticket: int
    stored: bool
    """Whether the store had the session when the call began."""


class Meter:
    """A model whose calls are counted for a tenant and, where there is one, a session; safe between threads.

    Over a cap, `complete` raises `BudgetExceeded` before anything is sent. A model without a price counts as free: caps
    in dollars do not hold it, those in tokens do. That is logged once.

    `partition` is where the session is stored. If the session is forgotten while a call runs, the ledger does not name
    it: the call is counted for the tenant alone.
    """

    def __init__(
        self,
        model: Model,
        store: Store,
        *,
        tenant: str,
        session: str | None = None,
        budget: Budget | None = None,
        prices: Prices | None = None,
        clock: Clock = system_clock,
        in_flight: InFlight | None = None,
        partition: Partition | None = None,
    ) -> None:
        self.model = model
        self.budget = budget or Budget()
        self.prices = prices or Prices.load()
        self._store = store
        self._tenant = tenant
        self._session = session
        self._clock = aware(clock)
        self._in_flight = in_flight or InFlight()
        self._partition = partition
        self._unwritten: list[tuple[Call, _Visit]] = []
        self._lock = ForkLock()
        self.priced = self.prices.of(model.name) is not None
        """Whether the model has a price."""
        if not self.priced and self.budget.capped_in_usd and model.name not in _warned:
            _warned.add(model.name)
            _log.warning(
                "model %r has no price: it counts as free, and caps in dollars do not hold it. "
                "Put it into the file of WELLWORN_PRICES",
                model.name,
            )

    @property
    def name(self) -> str:
        return self.model.name

    def complete(self, request: Request) -> Reply:
        """As the model's own; `BudgetExceeded` over a cap."""
        visit, began = self._admit(request), time.perf_counter()
        try:
            reply = self.model.complete(request)
        except BaseException:
            self._record(visit, None, time.perf_counter() - began)
            raise
        self._record(visit, reply, reply.seconds)
        return reply

    async def acomplete(self, request: Request) -> Reply:
        """The same, awaited. The store is used in a thread, which finishes its work even if the caller is cancelled."""
        import asyncio

        admission = asyncio.get_running_loop().run_in_executor(None, self._admit, request)
        try:
            visit = await asyncio.shield(admission)
        except asyncio.CancelledError:
            admission.add_done_callback(self._release)
            raise
        began = time.perf_counter()
        try:
            reply = await self.model.acomplete(request)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(self._record, visit, None, time.perf_counter() - began))
            raise
        await asyncio.shield(asyncio.to_thread(self._record, visit, reply, reply.seconds))
        return reply

    def most(self, request: Request) -> CallCost:
        """The most a call may cost: the prompt, counted with a margin, and the longest answer allowed."""
        read, written = most_input_tokens(request), request.max_output_tokens
        return CallCost(tokens=read + written, usd=self.prices.usd(self.name, read, written))

    def _admit(self, request: Request) -> _Visit:
        wanted, stored = self.most(request), self._is_stored()
        with self._in_flight.lock:
            self.budget.check(wanted, self.spent)
            ticket = self._in_flight.hold(self._tenant, self._session, wanted)
        return _Visit(request=request, ticket=ticket, stored=stored)

    def _release(self, admission: asyncio.Future[_Visit]) -> None:
        if admission.exception() is None:
            self._in_flight.settle(admission.result().ticket, None)

    def spent(self, span: Span) -> CallCost:
        """What a span has cost so far, calls in flight included."""
        if span == "session" and self._session is None:
            return CallCost()
        session = self._session if span == "session" else None
        today = self._clock().astimezone(UTC).date().isoformat()
        keys = {"tenant": "tenant", "day": f"day {today}", "session": f"session {session}"}
        return total_cost(self._store, self._tenant, keys[span]) + self._in_flight.held(self._tenant, session)

    def _record(self, visit: _Visit, reply: Reply | None, seconds: float) -> None:
        """Into the store; a failed call took time, and nothing else that we know of."""
        read, written = (reply.input_tokens, reply.output_tokens) if reply else (0, 0)
        call = Call(
            at=self._clock(),
            tenant=self._tenant,
            session=self._session,
            purpose=visit.request.purpose,
            model=self.name,
            input_tokens=read,
            output_tokens=written,
            seconds=seconds,
            ok=reply is not None,
            usd=self.prices.usd(self.name, read, written),
        )
        self._in_flight.settle(visit.ticket, CallCost(tokens=read + written, usd=call.usd))
        with self._lock:
            waiting, self._unwritten = [*self._unwritten, (call, visit)], []
            self._write(waiting)

    def _is_stored(self) -> bool:
        if self._partition is None or self._session is None:
            return False
        return self._store.session(self._partition, self._session) is not None

    def _write(self, waiting: list[tuple[Call, _Visit]]) -> None:
        """If the ledger cannot be written now, the caller still gets its answer and the calls wait for the next one."""
        try:
            with self._store.transact() as tx:  # nobody forgets anything meanwhile
                gone = any(visit.stored for _, visit in waiting) and not self._is_stored()
                add_calls(
                    tx, [replace(call, session=None) if gone and visit.stored else call for call, visit in waiting]
                )
        except StoreError as error:
            self._unwritten = waiting
            _log.warning("%d model calls are not in the ledger yet: %s", len(waiting), type(error).__name__)
            return
        for _, visit in waiting:
            self._in_flight.settle(visit.ticket, None)

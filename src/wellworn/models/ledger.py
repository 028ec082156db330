"""What language-model calls cost: prices, caps, and the ledger that every call is in.

Prices come from `prices.yaml` of this package and, over it, a file of the user's; a model in neither counts as free. The
ledger is records of kind `call`, which are never changed and name no session. Beside them `spent` records hold what a
tenant, each of its days and each of its sessions have cost, so that a budget is checked without adding up the calls.
`Meter` is itself a `Model`: it checks the budget, calls the model it wraps, and records what the call took, whether it
worked or not. Never reads a prompt.
"""

from __future__ import annotations

import functools
import logging
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from wellworn.core import spans
from wellworn.core.clock import Clock, aware, system_clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import BudgetExceeded, InvalidInput, StoreError
from wellworn.core.lazy import regex
from wellworn.core.locks import fork_lock
from wellworn.core.plain import from_plain
from wellworn.core.values import Partition
from wellworn.models.base import most_input_tokens
from wellworn.models.port import Model, Reply, Request
from wellworn.store.port import Record, RecordFilter, Store, StoreReader, Tx

_log = logging.getLogger("wellworn.models")
_warned: set[str] = set()  # models without a price that were logged already

Span = Literal["session", "tenant", "day"]
"""What a cap sums: one session, everything of the tenant, or the tenant's present day (UTC)."""
SPANS: tuple[Span, ...] = ("session", "tenant", "day")
CALL, SPENT = "call", "spent"
"""Kinds of records: one call; what a span adds up to."""
GROUPS = ("tenant", "purpose", "model", "day")
_NUMBERS = ("input_tokens", "output_tokens", "usd", "seconds")
_TABLE = "usd_per_million_tokens"
_DATED = regex(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
_PRICE_REMEDY = f"as in {_TABLE}: {{my-model: {{input: 0.15, output: 0.60}}}}"
_CAP_REMEDIES = {
    "call": "raise the cap, ask for less at once, or choose a cheaper model",
    "session": "raise the cap, or go on without a model in this session",
    "tenant": "raise the cap, or go on without a model",
    "day": "raise the cap, or wait for tomorrow (UTC)",
}
Dollars = Annotated[float, Meta(ge=0)]


# -- prices ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class Price:
    """US dollars per million tokens."""

    input: Dollars
    output: Dollars

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        """What a call costs."""
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


class Prices:
    """A price for each model name. A name that ends in `*` stands for every longer one."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._exact = {name: price for name, price in prices.items() if not name.endswith("*")}
        starts = [(name[:-1], price) for name, price in prices.items() if name.endswith("*")]
        self._starts = sorted(starts, key=lambda start: -len(start[0]))  # the longest fits best

    @classmethod
    def load(cls, path: str | Path | None = None) -> Prices:
        """The shipped table, overridden and extended by the file at `path`, else at `WELLWORN_PRICES`."""
        own = path or os.environ.get("WELLWORN_PRICES")
        return cls(_shipped() | (_read_prices(Path(own)) if own else {}))

    def of(self, model: str) -> Price | None:
        """The price of a model by the name it has in the ledger; None when it is in no table.

        Looked up: the whole name, then without the provider (`openai:`, `langchain:CLASS:`), then without its date.
        """
        names = [model, model.partition(":")[2]]
        if model.startswith("langchain:"):
            names.append(model.split(":", 2)[-1])
        for name in filter(None, names):
            price = self._exact.get(name) or self._exact.get(_DATED.sub("", name))
            price = price or next((price for start, price in self._starts if name.startswith(start)), None)
            if price is not None:
                return price
        return None

    def usd(self, model: str, input_tokens: int, output_tokens: int) -> float:
        """What a call costs; 0 for a model without a price, see `of`."""
        price = self.of(model)
        return price.usd(input_tokens, output_tokens) if price is not None else 0.0


@functools.cache
def _shipped() -> dict[str, Price]:
    return _read_prices(Path(__file__).with_name("prices.yaml"))


def _read_prices(path: Path) -> dict[str, Price]:
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput("prices", f"cannot read {str(path)!r}: {error.strerror}", "give a YAML file") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput("prices", f"{str(path)!r} is not YAML: {error}", _PRICE_REMEDY) from error
    table = data.get(_TABLE) if isinstance(data, dict) else None
    if not isinstance(table, dict):
        raise InvalidInput("prices", f"{str(path)!r} has no {_TABLE}", _PRICE_REMEDY)
    prices = {}
    for name, row in table.items():
        try:
            prices[str(name)] = from_plain(Price, row)
        except ValueError as error:
            raise InvalidInput("prices", f"{path}: {name} is {row!r}: {error}", _PRICE_REMEDY) from None
    return prices


# -- caps ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class CallCost:
    """Tokens read and written, and US dollars."""

    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: CallCost) -> CallCost:
        return CallCost(tokens=self.tokens + other.tokens, usd=self.usd + other.usd)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Caps in US dollars and in tokens; None is no cap. A tenant's day is the calendar's, in UTC."""

    per_call_usd: float | None = None
    per_call_tokens: int | None = None
    per_session_usd: float | None = None
    per_session_tokens: int | None = None
    per_tenant_usd: float | None = None
    per_tenant_tokens: int | None = None
    per_day_usd: float | None = None
    per_day_tokens: int | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            cap = getattr(self, each.name)
            bad = isinstance(cap, bool) or not isinstance(cap, int | float) or math.isnan(cap) or cap < 0
            if cap is not None and bad:
                raise InvalidInput(each.name, f"{cap!r} is no cap", "0 or more, or None for no cap")

    @property
    def capped_in_usd(self) -> bool:
        """Whether any cap is in dollars, which a model without a price does not reach."""
        return any(getattr(self, each.name) is not None for each in fields(self) if each.name.endswith("_usd"))

    def check(self, wanted: CallCost, spent: Callable[[Span], CallCost]) -> None:
        """Raise `BudgetExceeded` when what was spent and what is wanted exceed a cap together.

        `spent` is called only for spans that have a cap.
        """
        self._check("call", wanted, CallCost)
        for span in SPANS:
            self._check(span, wanted, functools.partial(spent, span))

    def _check(self, span: str, wanted: CallCost, spent: Callable[[], CallCost]) -> None:
        caps = {unit: getattr(self, f"per_{span}_{unit}") for unit in ("usd", "tokens")}
        if caps["usd"] is None and caps["tokens"] is None:
            return
        sums = spent()
        for unit, limit in caps.items():
            gone, more = getattr(sums, unit), getattr(wanted, unit)
            if limit is not None and gone + more > limit:
                cap = f"per_{span}_{unit}"
                raise BudgetExceeded(cap, limit=limit, spent=gone, wanted=more, remedy=_CAP_REMEDIES[span])


# -- the ledger ------------------------------------------------------------------------------------------------------
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
    grouped: dict[tuple[str, ...], list[dict[str, Any]]] = {} if by else {(): []}
    for record in reader.every_record(RecordFilter(kinds=[CALL], tenant=tenant, since=since)):
        call = {**record.body, "tenant": record.tenant, "day": _day(record.created_at)}
        grouped.setdefault(tuple(call[name] for name in by), []).append(call)
    return [
        Spent(
            key=key,
            calls=len(calls),
            failed=sum(not call["ok"] for call in calls),
            **{name: sum(call[name] for call in calls) for name in _NUMBERS},
        )
        for key, calls in sorted(grouped.items())
    ]


def total_cost(reader: StoreReader, tenant: str, key: str, partition: Partition | None = None) -> CallCost:
    """One of the sums: `tenant`, `day 2026-05-01`, or `session NAME` of a partition."""
    wanted = RecordFilter(kinds=[SPENT], tenant=tenant, partition=partition, of_tenant=partition is None, keys=[key])
    found = reader.records(wanted)
    if not found and partition is not None:  # release 0.1 kept it for the tenant
        return total_cost(reader, tenant, key)
    return CallCost(tokens=found[0].body["tokens"], usd=found[0].body["usd"]) if found else CallCost()


def _day(at: datetime) -> str:
    """In UTC, as `2026-05-01`."""
    return at.astimezone(UTC).date().isoformat()


InSession = tuple[Partition | None, str]
"""Where a session is stored, and its name: others may have one of the same name."""


class InFlight:
    """What unfinished calls may still cost, so that concurrent calls do not exceed a cap together.

    Share one between the meters of a store. Other processes do not see it: several processes can exceed a cap by what
    each has in flight.
    """

    def __init__(self) -> None:
        self.lock = fork_lock()
        self._held: dict[object, tuple[str, InSession | None, CallCost]] = {}

    def hold(self, ticket: object, tenant: str, session: InSession | None, cost: CallCost) -> None:
        """Reserve this cost. Call it with the lock held."""
        self._held[ticket] = (tenant, session, cost)

    def release(self, ticket: object) -> None:
        with self.lock:
            del self._held[ticket]

    def held(self, tenant: str, session: InSession | None = None) -> CallCost:
        """For a tenant, or for one of its sessions."""
        costs = (cost for whose, where, cost in self._held.values() if whose == tenant and session in (None, where))
        return sum(costs, start=CallCost())


class Meter:
    """A model whose calls are counted for a tenant and, where there is one, a session; safe between threads.

    Over a cap, `complete` raises `BudgetExceeded` before anything is sent. A model without a price counts as free: caps
    in dollars do not hold it, those in tokens do. That is logged once.

    `partition` is where the session is stored. If the session is forgotten while a call runs, the call is counted for
    the tenant alone, and nothing names the session.
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
        self._in_session = None if session is None else (partition, session)
        self._clock = aware(clock)
        self._in_flight = in_flight or InFlight()
        self._partition = partition
        if self.budget.capped_in_usd and self.prices.of(self.name) is None and self.name not in _warned:
            _warned.add(self.name)
            free = "it counts as free, and caps in dollars do not hold it. Put it into the file of WELLWORN_PRICES"
            _log.warning("model %r has no price: %s", self.name, free)

    @property
    def name(self) -> str:
        return self.model.name

    def complete(self, request: Request) -> Reply:
        """As the model's own; `BudgetExceeded` over a cap."""
        ticket, wanted, stored = object(), self.most(request), self._is_stored()
        with self._in_flight.lock:
            self.budget.check(wanted, self.spent)
            self._in_flight.hold(ticket, self._tenant, self._in_session, wanted)
        reply, began = None, time.perf_counter()
        with spans.span("model_call") as note:
            note(model=self.name, purpose=request.purpose, session=self._session)
            try:
                reply = self.model.complete(request)
                note(input_tokens=reply.input_tokens, output_tokens=reply.output_tokens)
            finally:
                self._record(request, reply, time.perf_counter() - began, ticket=ticket, stored=stored)
        return reply

    def most(self, request: Request) -> CallCost:
        """The most a call may cost: the prompt, counted with a margin, and the longest answer allowed."""
        read, written = most_input_tokens(request), request.max_output_tokens
        return CallCost(tokens=read + written, usd=self.prices.usd(self.name, read, written))

    def spent(self, span: Span) -> CallCost:
        """What a span has cost so far, calls in flight included."""
        if span == "session" and self._session is None:
            return CallCost()
        partition, session = (self._partition, self._in_session) if span == "session" else (None, None)
        keys = {"tenant": "tenant", "day": f"day {_day(self._clock())}", "session": f"session {self._session}"}
        gone = total_cost(self._store, self._tenant, keys[span], partition)
        return gone + self._in_flight.held(self._tenant, session)

    def _record(self, request: Request, reply: Reply | None, seconds: float, *, ticket: object, stored: bool) -> None:
        """Write a call down; a failed one took time, and nothing else that we know of.

        If the ledger cannot be written, the caller still gets its answer, and the cost is held against the caps for as
        long as the process lives.
        """
        read, written = (reply.input_tokens, reply.output_tokens) if reply else (0, 0)
        cost = CallCost(tokens=read + written, usd=self.prices.usd(self.name, read, written))
        numbers = {"input_tokens": read, "output_tokens": written, "usd": cost.usd, "seconds": seconds}
        body = {"purpose": request.purpose, "model": self.name, **numbers, "ok": reply is not None}
        with self._in_flight.lock:
            self._in_flight.hold(ticket, self._tenant, self._in_session, cost)
        try:
            with self._store.transact(tenant=self._tenant) as tx:  # nobody forgets anything meanwhile
                self._add(tx, body, cost, session=None if stored and not self._is_stored() else self._session)
        except StoreError as error:
            _log.warning("a call of model %r is not in the ledger: %s", self.name, type(error).__name__)
        else:
            self._in_flight.release(ticket)

    def _add(self, tx: Tx, body: Mapping[str, Any], cost: CallCost, *, session: str | None) -> None:
        """Append to the ledger, and add to the sums; that of a session goes with the session."""
        now = self._clock()
        record = Record(tenant=self._tenant, kind=CALL, body=dict(body), created_at=now, updated_at=now)
        tx.put_records([record])
        keys: dict[str, str | None] = {"tenant": None, f"day {_day(now)}": None}
        keys |= {} if session is None else {f"session {session}": session}
        for key, whose in keys.items():
            partition = None if whose is None else self._partition
            total = total_cost(tx, self._tenant, key, partition) + cost
            sums = {"tokens": total.tokens, "usd": total.usd}
            tx.put_records([replace(record, partition=partition, kind=SPENT, key=key, body=sums, session=whose)])

    def _is_stored(self) -> bool:
        if self._partition is None or self._session is None:
            return False
        return self._store.session(self._partition, self._session) is not None

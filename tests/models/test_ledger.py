from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wellworn.core.errors import BudgetExceeded, ModelFailed, StoreBusy
from wellworn.models import Budget, InFlight, Meter, Price, Prices, Reply, Request, ScriptedModel
from wellworn.models.costs import CallCost
from wellworn.models.ledger import spent
from wellworn.store.port import Store, Tx
from wellworn.store.sqlite import SqliteStore
from wellworn.testing.models import make_request

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
PRICES = Prices({"scripted": Price(input=10.0, output=100.0)})
"""A call of 1,000 tokens in and 50 out costs 0.015."""


@pytest.fixture
def store() -> Iterator[Store]:
    made: Store = SqliteStore(":memory:")
    yield made
    made.close()


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


def metered(store: Any, *, replies: Any = "fine", **options: Any) -> Meter:
    model = ScriptedModel(replies, input_tokens=1000, output_tokens=50)
    given: dict[str, Any] = {"tenant": "acme", "prices": PRICES, "clock": Clock()}
    return Meter(model, store, **(given | options))


def plainly(meter: Meter, request: Request) -> Reply:
    return meter.complete(request)


def awaited(meter: Meter, request: Request) -> Reply:
    return asyncio.run(meter.acomplete(request))


Ask = Callable[[Meter, Request], Reply]


@pytest.fixture(params=[plainly, awaited], ids=["complete", "acomplete"])
def ask(request: pytest.FixtureRequest) -> Ask:
    way: Ask = request.param
    return way


# -- recording ---------------------------------------------------------------------------------------------------


def test_a_call_is_written_down_with_its_cost(store: Store, ask: Ask) -> None:
    meter = metered(store, session="monday")
    assert ask(meter, make_request(purpose="extract")).text == "fine"
    assert meter.name == "scripted"
    (total,) = spent(store, "acme", by=["tenant", "purpose", "model", "day"])
    assert total.key == ("acme", "extract", "scripted", "2026-05-01")
    assert (total.calls, total.failed, total.input_tokens, total.output_tokens) == (1, 0, 1000, 50)
    assert total.usd == pytest.approx(0.015)
    assert total.seconds >= 0


def test_a_failed_call_is_written_down_too(store: Store, ask: Ask) -> None:
    meter = metered(store, replies=[ModelFailed("busy", retryable=True), "fine"])
    with pytest.raises(ModelFailed, match="busy"):
        ask(meter, make_request())
    (total,) = spent(store, "acme")
    assert (total.calls, total.failed, total.input_tokens, total.usd) == (1, 1, 0, 0.0)
    ask(meter, make_request())
    (total,) = spent(store, "acme")
    assert (total.calls, total.failed, total.input_tokens) == (2, 1, 1000)


def test_a_cancelled_call_is_written_down_and_holds_nothing_back(store: Store) -> None:
    in_flight = InFlight()
    meter = Meter(
        ScriptedModel("late", delay_s=5), store, tenant="acme", prices=PRICES, in_flight=in_flight, clock=Clock()
    )

    async def give_up() -> None:
        async with asyncio.timeout(0.2):
            await meter.acomplete(make_request())

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    (total,) = spent(store, "acme")
    assert (total.calls, total.failed) == (1, 1)
    assert in_flight.held("acme") == CallCost()


def test_being_cancelled_while_the_store_is_asked_holds_nothing_back(store: Store) -> None:
    in_flight = InFlight()
    meter = metered(store, in_flight=in_flight, budget=Budget(per_tenant_usd=5))

    async def give_up() -> None:
        with in_flight.lock:  # admission waits for it in its thread
            call = asyncio.ensure_future(meter.acomplete(make_request()))
            await asyncio.sleep(0.05)
            call.cancel()
            await asyncio.sleep(0.05)
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(give_up())
    assert in_flight.held("acme") == CallCost()
    assert spent(store, "acme")[0].calls == 0


def test_tenants_do_not_see_each_others_calls(store: Store) -> None:
    metered(store).complete(make_request())
    metered(store, tenant="rival").complete(make_request())
    assert [total.calls for total in spent(store, "acme")] == [1]
    assert [total.key for total in spent(store, None, by=["tenant"])] == [("acme",), ("rival",)]


def test_a_model_without_a_price_is_flagged_once(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "wellworn.models")
    name = f"mystery:{type(store).__name__}"  # once in a process
    model = ScriptedModel("a", name=name, input_tokens=5, output_tokens=5)
    meters = [Meter(model, store, tenant="acme", budget=Budget(per_day_usd=0.0)) for _ in range(3)]
    meters[0].complete(make_request())
    assert not meters[0].priced
    assert metered(store).priced
    assert [record.getMessage().startswith(f"model {name!r} has no price") for record in caplog.records] == [True]
    assert spent(store, "acme")[0].usd == 0.0


def test_a_ledger_that_cannot_be_written_now_is_written_later(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    reluctant = Reluctant(store)
    meter = metered(reluctant, budget=Budget(per_tenant_usd=0.2))
    reluctant.reluctant = True
    assert meter.complete(make_request()).text == "fine"
    assert meter.complete(make_request()).text == "fine"
    assert spent(store, "acme")[0].calls == 0
    assert "2 model calls are not in the ledger yet" in caplog.text
    assert meter.spent("tenant").usd == pytest.approx(0.03)  # and counts all the same
    reluctant.reluctant = False
    meter.complete(make_request())
    assert spent(store, "acme")[0].calls == 3
    assert meter.spent("tenant").usd == pytest.approx(0.045)


class Reluctant:
    """A store that can be made to refuse writing."""

    def __init__(self, inner: Store) -> None:
        self._inner, self.reluctant = inner, False

    @contextmanager
    def transact(self) -> Iterator[Tx]:
        if self.reluctant:
            raise StoreBusy("not now")
        with self._inner.transact() as tx:
            yield tx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


# -- caps --------------------------------------------------------------------------------------------------------


def test_over_a_cap_nothing_is_sent(store: Store, ask: Ask) -> None:
    meter = metered(store, budget=Budget(per_call_tokens=100))
    with pytest.raises(BudgetExceeded, match="per_call_tokens is 100"):
        ask(meter, make_request(max_output_tokens=101))
    assert isinstance(meter.model, ScriptedModel)
    assert meter.model.requests == []
    assert spent(store, "acme")[0].calls == 0
    ask(meter, make_request(max_output_tokens=10))


def test_the_most_a_call_may_take_is_its_prompt_with_a_margin_and_all_it_may_say(store: Store) -> None:
    most = metered(store).most(make_request("four words are here", max_output_tokens=100))
    assert most.tokens == 12 + 100
    assert most.usd == pytest.approx((12 * 10 + 100 * 100) / 1e6)


def test_caps_of_session_and_tenant_add_up_over_objects(store: Store, ask: Ask) -> None:
    # A call wants at most about 0.0053 and takes 0.015.
    small = make_request(max_output_tokens=50)
    budget = Budget(per_session_usd=0.03, per_tenant_usd=0.06)
    ask(metered(store, session="a", budget=budget), small)
    ask(metered(store, session="a", budget=budget), small)
    with pytest.raises(BudgetExceeded, match=r"per_session_usd is 0\.03: 0\.03 spent"):
        ask(metered(store, session="a", budget=budget), small)
    ask(metered(store, session="b", budget=budget), small)
    ask(metered(store, budget=budget), small)
    with pytest.raises(BudgetExceeded, match="per_tenant_usd"):
        ask(metered(store, session="c", budget=budget), small)
    ask(metered(store, tenant="rival", budget=budget), small)


def test_a_day_ends_at_midnight_in_utc(store: Store) -> None:
    clock = Clock()
    clock.now = datetime(2026, 5, 1, 23, 30, tzinfo=UTC).astimezone(tz=None)
    meter = metered(store, budget=Budget(per_day_tokens=2000), clock=clock)
    meter.complete(make_request(max_output_tokens=50))
    with pytest.raises(BudgetExceeded, match="per_day_tokens"):
        meter.complete(make_request(max_output_tokens=1000))
    clock.now += timedelta(minutes=31)
    meter.complete(make_request(max_output_tokens=1000))


def test_calls_at_the_same_time_do_not_pass_a_cap_together(store: Store) -> None:
    gate = threading.Barrier(8)
    in_flight = InFlight()
    budget = Budget(per_tenant_tokens=3500)
    refused = []

    def work(number: int) -> None:
        model = ScriptedModel("a", input_tokens=900, output_tokens=100, delay_s=0.05)
        meter = Meter(
            model,
            store,
            tenant="acme",
            session=str(number),
            budget=budget,
            prices=PRICES,
            in_flight=in_flight,
            clock=Clock(),
        )
        gate.wait(timeout=30)
        try:
            meter.complete(make_request("x " * 600, max_output_tokens=90))  # wants 996 at most
        except BudgetExceeded as error:
            refused.append(error)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    (total,) = spent(store, "acme")
    assert total.calls == 3
    assert total.input_tokens + total.output_tokens <= 3500
    assert len(refused) == 5
    assert in_flight.held("acme") == CallCost()


def test_many_threads_write_every_call_once(store: Store) -> None:
    meter = metered(store)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: meter.complete(make_request()), range(80)))
    (total,) = spent(store, "acme")
    assert (total.calls, total.input_tokens) == (80, 80_000)


def test_awaiting_does_not_stop_the_loop_for_the_store(store: Store) -> None:
    in_flight = InFlight()
    meter = metered(store, in_flight=in_flight)

    async def live() -> None:
        with in_flight.lock:  # as if another thread were asking the store
            call = asyncio.ensure_future(meter.acomplete(make_request()))
            for _ in range(20):
                await asyncio.sleep(0.005)
            assert not call.done()
        assert (await call).text == "fine"

    asyncio.run(live())

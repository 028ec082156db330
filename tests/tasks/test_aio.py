"""The awaitable bank: the same verbs, coroutines in bounded numbers, and nothing half kept when cancelled."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from wellworn import AsyncMemory, Memory
from wellworn.models.port import Reply, Request
from wellworn.models.scripted import ScriptedModel
from wellworn.tasks import ReasoningBank, Work
from wellworn.tasks.aio import AsyncReasoningBank

from .world import AGENT, a_call, corrected

Coroutine = Callable[[AsyncReasoningBank], Awaitable[Any]]
WAIT_S = 300.0
TASK: dict[str, Any] = {"task_id": "t", "query": "Create user bob with the panel", "domain": "web"}


@pytest.fixture
def mem() -> Iterator[Memory]:
    with Memory.open(":memory:", embedder="hash:64", background=False) as memory:
        yield memory


def on(mem: Memory, act: Coroutine) -> Any:
    async def main() -> Any:
        return await act(AsyncReasoningBank(mem, scope=AGENT))

    return asyncio.run(main())


def test_every_verb_can_be_awaited(mem: Memory) -> None:
    verbs = {
        name for name, call in vars(ReasoningBank).items() if not name.startswith("_") and inspect.isfunction(call)
    }
    bank = AsyncReasoningBank(mem)
    assert {name for name in verbs if not inspect.iscoroutinefunction(getattr(bank, name, None))} == set()


async def coroutine(work: Work) -> Any:
    await asyncio.sleep(0)
    assert threading.current_thread() is threading.main_thread()
    return corrected("bob")


def plain(work: Work) -> Any:
    assert threading.current_thread() is not threading.main_thread()
    return corrected("bob")


@pytest.mark.parametrize("execute", [coroutine, plain, lambda work: coroutine(work)])
def test_a_task_from_beginning_to_end(execute: Callable[[Work], Any]) -> None:
    async def main() -> None:
        mem = await AsyncMemory.open(":memory:", embedder="hash:64", background=False)
        bank = AsyncReasoningBank(mem, scope=AGENT)
        out = await bank.run_task(**TASK, execute=execute)
        assert (out.success, out.state, out.exception) == (True, "reinforced", None)
        assert {item.id for item in await bank.items()} == {*out.entry_ids}
        assert (await bank.retrieve(TASK["query"])).hits[0].entry.id in out.entry_ids
        assert (await bank.stats()).tasks == 1
        await mem.close()

    asyncio.run(main())


def test_parallel_attempts_are_coroutines_in_bounded_numbers(mem: Memory) -> None:
    running, most = 0, 0
    two = asyncio.Barrier(2)

    async def agent(work: Work) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        async with asyncio.timeout(WAIT_S):
            await two.wait()
        running -= 1
        ok = work.number % 2 == 0
        return {"steps": [a_call("create_user", ok, role="admin" if ok else "Admin")], "verdict": ok}

    async def act(bank: AsyncReasoningBank) -> Any:
        return await bank.matts_parallel(**TASK, execute=agent, k=6, concurrency=2)

    out = on(mem, act)
    assert (most, len(out.attempts), out.success) == (2, 6, True)
    assert {one.state for one in out.attempts} == {"reinforced"}
    assert out.entry_ids


def test_agents_may_wait_for_other_threads_of_the_loop(mem: Memory) -> None:
    """More agents at once than a pool has threads, each waiting for one: nobody starves."""

    async def agent(work: Work) -> Any:
        await asyncio.to_thread(threading.Event().wait, 0.01)
        return corrected("bob")

    async def act(bank: AsyncReasoningBank) -> Any:
        tasks = [{**TASK, "task_id": f"t{number}"} for number in range(12)]
        return await asyncio.gather(*(bank.run_task(**task, execute=agent) for task in tasks))

    assert all(out.success for out in on(mem, act))


# -- cancelled ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["run_task", "matts_parallel", "matts_sequential"])
def test_cancelled_while_the_agent_works_everything_is_abandoned(
    mem: Memory, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    at_work = asyncio.Event()

    async def agent(work: Work) -> Any:
        if work.number == 1 and way != "run_task":
            return {"steps": [a_call("create_user", False)], "verdict": False}  # made and judged before the end
        at_work.set()
        return await asyncio.sleep(WAIT_S)

    async def act(bank: AsyncReasoningBank) -> None:
        running = asyncio.ensure_future(getattr(bank, way)(**TASK, execute=agent))
        await at_work.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    on(mem, act)
    bank = ReasoningBank(mem, scope=AGENT)
    assert {(task.state, task.why) for task in bank.tasks()} == {("abandoned", "CancelledError")}
    assert bank.items() == []
    gc.collect()
    assert "never retrieved" not in caplog.text
    assert mem.verify().ok


class Slow(ScriptedModel):
    """Answers when it may, so that a cancellation comes while it is asked."""

    asked: threading.Event
    may: threading.Event

    def complete(self, request: Request) -> Reply:
        self.asked.set()
        assert self.may.wait(WAIT_S)
        return super().complete(request)


def test_cancelled_while_it_is_judged_the_attempt_is_kept_whole() -> None:
    model = Slow('{"success": true, "confidence": 0.9, "reasons": []}')
    model.asked, model.may = threading.Event(), threading.Event()
    with Memory.open(":memory:", embedder="hash:64", background=False, llm=model) as mem:

        async def agent(work: Work) -> Any:
            return {"steps": [a_call("create_user", None)]}

        async def act(bank: AsyncReasoningBank) -> None:
            running = asyncio.ensure_future(bank.run_task(**TASK, execute=agent))
            await asyncio.to_thread(model.asked.wait)
            running.cancel()
            model.may.set()
            with pytest.raises(asyncio.CancelledError):
                await running

        on(mem, act)
        (task,) = ReasoningBank(mem, scope=AGENT).tasks()
        assert task.state == "reinforced"


@pytest.mark.parametrize("steps", range(0, 12, 2))
def test_cancelled_after_any_number_of_turns_of_the_loop_nothing_is_left_open(mem: Memory, steps: int) -> None:
    async def agent(work: Work) -> Any:
        return corrected("bob")

    async def act(bank: AsyncReasoningBank) -> None:
        running = asyncio.ensure_future(bank.run_task(**TASK, execute=agent))
        for _ in range(steps):
            await asyncio.sleep(0.003)
        running.cancel()
        await asyncio.wait([running])

    on(mem, act)
    for task in ReasoningBank(mem, scope=AGENT).tasks():
        assert task.finished, task.state

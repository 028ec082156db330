"""Workers: in the caller's thread and in the background."""

from __future__ import annotations

import gc
import logging
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from jobs.world import Clock, add, effect, effects, state_of, writer
from wellworn.core.errors import StoreBusy
from wellworn.core.values import Job
from wellworn.jobs import Queue, Worker
from wellworn.jobs.queue import list_jobs
from wellworn.store.port import Store

LONG = 600.0
"""Seconds that no test waits: what happens sooner was not polled for."""


def until(true: Callable[[], bool], *, within_s: float = 300) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.002)


# -- in the caller's thread --------------------------------------------------------------------------------------


def test_jobs_are_run_in_order_until_there_are_none(queue: Queue, store: Store) -> None:
    worker = Worker(queue, {"write": writer(queue)})
    add(queue, "a", "b", "c")
    seen: list[tuple[int, int]] = []
    first = worker.run_one()
    assert first is not None
    assert (first.key, first.state, first.result) == ("a", "done", {"entries": 1})
    assert worker.run_until_empty(progress=lambda done, total: seen.append((done, total))) == 2
    assert seen == [(1, 2), (2, 2)]
    assert effects(store) == {"a": 1, "b": 1, "c": 1}
    assert worker.run_one() is None
    assert worker.run_until_empty() == 0


def test_a_handler_that_says_nothing_has_done_its_job(queue: Queue) -> None:
    add(queue, "a")
    job = Worker(queue, {"write": lambda job: None}).run_one()
    assert job is not None
    assert (job.state, job.result) == ("done", {})


def test_what_a_handler_raises_is_the_jobs_failure_only(
    queue: Queue, store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(job: Job) -> None:
        with store.transact() as tx:
            effect(tx, job)
            queue.finish(tx, job)
            raise ZeroDivisionError(job.key)

    worker = Worker(queue, {"bad": refuse, "write": writer(queue)})
    add(queue, "secret", kind="bad")
    add(queue, "good")
    with caplog.at_level(logging.INFO):
        bad, good = worker.run_one(), worker.run_one()
    assert bad is not None
    assert (bad.state, bad.attempts) == ("queued", 1)
    assert bad.error.startswith("ZeroDivisionError in test_worker.py:")
    assert good is not None
    assert good.state == "done"
    assert effects(store) == {"good": 1}
    assert "secret" not in caplog.text
    for _ in range(2):
        clock.forward(3600)
        assert worker.run_until_empty() == 1
    assert state_of(queue, "secret") == "dead"


def test_a_slow_handler_does_not_write_what_another_worker_has_written(
    queue: Queue, store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    other = Worker(queue, {"write": writer(queue)})

    def dawdle(job: Job) -> None:
        clock.forward(3600)
        assert other.run_until_empty() == 1
        writer(queue)(job)

    add(queue, "a")
    with caplog.at_level(logging.WARNING):
        job = Worker(queue, {"write": dawdle}).run_one()
    assert job is not None
    assert (job.state, job.attempts) == ("done", 2)
    assert effects(store) == {"a": 1}
    assert not caplog.records


def test_an_interrupted_job_is_given_back(queue: Queue) -> None:
    def interrupt(job: Job) -> None:
        raise KeyboardInterrupt

    add(queue, "a")
    with pytest.raises(KeyboardInterrupt):
        Worker(queue, {"write": interrupt}).run_one()
    assert state_of(queue, "a") == "queued"
    assert Worker(queue, {"write": writer(queue)}).run_until_empty() == 1


def test_the_lease_is_renewed_while_a_handler_runs(queue: Queue, store: Store, clock: Clock) -> None:
    first = clock()

    def wait(job: Job) -> None:
        clock.forward(30)
        until(lambda: all((found.lease_until or first) > clock() for found in list_jobs(store)))
        assert queue.claim("other") is None

    add(queue, "a")
    job = Worker(queue, {"write": wait}, lease_s=0.05).run_one()
    assert job is not None
    assert (job.state, job.attempts) == ("done", 1)


# -- in the background -------------------------------------------------------------------------------------------


def test_a_job_is_run_at_once_when_the_worker_is_woken(queue: Queue) -> None:
    worker = Worker(queue, {"write": writer(queue)}, poll_s=LONG)
    worker.start()
    worker.start()
    for key in ("a", "b"):
        add(queue, key)
        worker.wake()
        until(lambda key=key: state_of(queue, key) == "done")  # type: ignore[misc]  # a default binds the key
    assert worker.stop()
    add(queue, "c")
    worker.wake()
    assert worker.stop()
    assert state_of(queue, "c") == "queued"
    worker.start()
    until(lambda: state_of(queue, "c") == "done")
    assert worker.stop()


def test_a_failing_handler_does_not_end_the_thread(queue: Queue) -> None:
    def refuse(job: Job) -> None:
        raise StoreBusy("x")

    worker = Worker(queue, {"bad": refuse, "write": writer(queue)}, poll_s=LONG)
    add(queue, "bad", kind="bad")
    worker.start()
    until(lambda: list_jobs(queue.store)[0].error != "")
    add(queue, "good")
    worker.wake()
    until(lambda: state_of(queue, "good") == "done")
    worker.stop()


def test_stopping_waits_for_the_running_job_and_not_for_ever(queue: Queue) -> None:
    begun, go = threading.Event(), threading.Event()

    def wait(job: Job) -> None:
        begun.set()
        assert go.wait(300)

    worker = Worker(queue, {"write": wait}, poll_s=LONG)
    add(queue, "a", "b")
    worker.start()
    assert begun.wait(300)
    thread = worker._thread
    assert thread is not None
    assert not worker.stop(timeout_s=0.02)
    go.set()
    thread.join(300)
    assert not thread.is_alive()
    assert (state_of(queue, "a"), state_of(queue, "b")) == ("done", "queued")


def test_a_handler_may_stop_its_own_worker(queue: Queue) -> None:
    stopped: list[bool] = []
    worker = Worker(queue, {"write": lambda job: stopped.append(worker.stop())}, poll_s=LONG)
    add(queue, "a")
    worker.start()
    until(lambda: state_of(queue, "a") == "done")
    assert stopped == [True]


def test_periodic_tasks_are_called_at_once_and_again_whatever_they_raise(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []

    def fail() -> None:
        calls.append("fail")
        raise ZeroDivisionError

    worker = Worker(queue, {"write": writer(queue)}, poll_s=LONG)
    worker.every(0.01, fail)
    worker.every(LONG, lambda: calls.append("once"))
    worker.start()
    until(lambda: calls.count("fail") > 3)
    assert calls[:2] == ["fail", "once"]
    assert calls.count("once") == 1
    assert worker.stop()
    assert "ZeroDivisionError" in caplog.text


def test_a_worker_nobody_stops_goes_when_nobody_needs_it(queue: Queue) -> None:
    worker = Worker(queue, {"write": writer(queue)}, poll_s=LONG)
    worker.start()
    thread, ref = worker._thread, weakref.ref(worker)
    assert thread is not None
    del worker
    until(lambda: gc.collect() >= 0 and ref() is None)
    thread.join(300)
    assert not thread.is_alive()


def test_the_thread_ends_with_its_store(queue: Queue) -> None:
    worker = Worker(queue, {"write": lambda job: None}, poll_s=0.01)
    worker.start()
    thread = worker._thread
    assert thread is not None
    queue.store.close()
    thread.join(300)
    assert not thread.is_alive()

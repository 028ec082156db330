"""The queue: a job's way from one state to the next, and what is kept of its failures."""

from __future__ import annotations

from typing import Any

import pytest

from contract.builders import make_new_entry, make_turn
from jobs.world import PARTITION, PARTITIONS, Clock, add, effect, effects, make_job
from wellworn.core.errors import (
    EmbeddingFailed,
    InvalidInput,
    LeaseLost,
    MissingExtra,
    NotFound,
    StoreBusy,
    StoreError,
    WellwornError,
)
from wellworn.core.values import Job
from wellworn.jobs import Queue
from wellworn.jobs.queue import MOST_CHARS, is_permanent, list_jobs, restart_jobs, told, wait_s
from wellworn.store.port import Selection

SECRET = "zqxmarker"


def claimed(queue: Queue, worker: str = "w", **chosen: Any) -> Job:
    job = queue.claim(worker, **chosen)
    assert job is not None
    return job


# -- the way of a job --------------------------------------------------------------------------------------------


def test_a_job_is_added_with_the_reason_for_it_or_not_at_all(queue: Queue) -> None:
    def add_and_fail() -> None:
        with queue.store.transact() as tx:
            assert queue.add(tx, PARTITION, "write", "k", {})
            tx.add(make_new_entry("a"))
            tx.add(make_new_entry("a"))

    with pytest.raises(StoreError):
        add_and_fail()
    assert list_jobs(queue.store) == []
    assert effects(queue.store) == {}
    assert add(queue, "k") == [True]
    assert add(queue, "k") == [False]


def test_a_finished_job_and_its_effects_last_together(queue: Queue, clock: Clock) -> None:
    add(queue, "k")
    job = claimed(queue)
    clock.forward(1)
    with queue.store.transact() as tx:
        effect(tx, job)
        done = queue.finish(tx, job, {"entries": 1})
    assert list_jobs(queue.store) == [done]
    assert (done.state, done.result, done.attempts, done.worker, done.updated_at) == (
        "done",
        {"entries": 1},
        1,
        None,
        clock(),
    )
    assert effects(queue.store) == {"k": 1}
    assert queue.claim("w") is None


def test_a_lease_is_renewed_and_not_once_it_is_lost(queue: Queue, clock: Clock) -> None:
    add(queue, "k")
    job = claimed(queue)
    for _ in range(5):
        clock.forward(50)
        queue.extend(job, lease_s=60)
        assert queue.claim("other") is None
    clock.forward(60)
    claimed(queue, "other")
    with pytest.raises(LeaseLost):
        queue.extend(job)


def test_a_job_gone_with_its_session_is_lost_to_its_worker(queue: Queue) -> None:
    with queue.store.transact() as tx:
        tx.add_turn(PARTITION, make_turn(0))
        queue.add(tx, PARTITION, "write", "k", {"session": "monday"})
    job = claimed(queue)
    with queue.store.transact() as tx:
        tx.remove(PARTITION, Selection(session_id="monday"), turns=True)
    with pytest.raises(LeaseLost), queue.store.transact() as tx:
        queue.finish(tx, job)
    assert queue.fail(job, StoreBusy("x")) is None
    assert queue.settle(job) is None
    queue.release(job)
    assert list_jobs(queue.store) == []


def test_turns_removed_under_a_running_job_make_it_run_again(queue: Queue) -> None:
    with queue.store.transact() as tx:
        tx.add(make_new_entry("e"))
        tx.add_turn(PARTITION, make_turn(0, entry_id="e"))
        tx.add_turn(PARTITION, make_turn(1))
        queue.add(tx, PARTITION, "write", "k", {"session": "monday"})
    job = claimed(queue)
    with queue.store.transact() as tx:
        removed = tx.remove(PARTITION, Selection(ids=["e"]), turns=True)
        restart_jobs(tx, PARTITION, removed.cut)
    with pytest.raises(LeaseLost), queue.store.transact() as tx:
        queue.finish(tx, job)
    assert claimed(queue).attempts == 2


# -- failing -----------------------------------------------------------------------------------------------------


def test_a_failed_job_waits_longer_each_time_is_given_up_and_can_be_tried_again(queue: Queue, clock: Clock) -> None:
    add(queue, "k")
    for base in (5, 10):
        failed = queue.fail(claimed(queue), StoreBusy("another writer"))
        assert failed is not None
        assert (failed.state, failed.error) == ("queued", "StoreBusy: another writer")
        assert base <= (failed.due_at - clock()).total_seconds() < base * 1.25
        assert queue.claim("w") is None
        clock.forward(base * 1.25)
    job = claimed(queue)
    with pytest.raises(InvalidInput, match="is running"):
        queue.retry(job.id)
    dead = queue.fail(job, StoreBusy("another writer"))
    assert dead is not None
    assert (dead.state, dead.attempts) == ("dead", 3)
    clock.forward(10**6)
    assert queue.claim("w") is None
    for id, tenant in (("nobody", None), (job.id, "rival")):
        with pytest.raises(NotFound):
            queue.retry(id, tenant=tenant)
    again = queue.retry(job.id, tenant="acme")
    assert (again.state, again.attempts, again.due_at, again.error) == ("queued", 0, clock(), dead.error)
    queue.fail(claimed(queue), StoreBusy("x"))
    queue.retry(job.id)  # one that waits is due at once
    queue.settle(claimed(queue))
    with pytest.raises(InvalidInput, match="is done"):
        queue.retry(job.id)


def test_waits_grow_to_a_limit_and_differ_from_job_to_job() -> None:
    assert 3600 <= wait_s(make_job("j", attempts=500)) == wait_s(make_job("j", attempts=500)) < 4500
    assert len({wait_s(make_job(f"j{n}", attempts=1)) for n in range(50)}) == 50


class HopelessError(WellwornError):
    retryable = False


@pytest.mark.parametrize(
    "error", [InvalidInput("x", "is wrong"), NotFound("session", "s"), MissingExtra("x", "y"), HopelessError("x")]
)
def test_what_another_attempt_would_not_change_is_given_up_at_once(queue: Queue, error: Exception) -> None:
    add(queue, "k")
    dead = queue.fail(claimed(queue), error)
    assert dead is not None
    assert (dead.state, dead.attempts) == ("dead", 1)
    assert not is_permanent(StoreBusy("x"))
    assert not is_permanent(ZeroDivisionError())


def test_a_job_that_takes_its_workers_down_is_given_up(queue: Queue, clock: Clock) -> None:
    add(queue, "poison")
    for _ in range(3):
        claimed(queue)
        clock.forward(60)
    add(queue, "good")
    assert claimed(queue).key == "good"
    poison = list_jobs(queue.store)[-1]
    assert (poison.state, poison.attempts) == ("dead", 3)
    assert "none of them ended" in poison.error


def test_jobs_are_claimed_by_kind_and_tenant(queue: Queue) -> None:
    add(queue, "a", kind="sum")
    add(queue, "b", partition=PARTITIONS[2])
    assert queue.claim("w", kinds=["x"]) is None
    assert claimed(queue, tenants=["rival"]).key == "b"
    job = queue.claim("w", kinds=["sum"])
    assert job is not None
    assert job.key == "a"


# -- how long to wait --------------------------------------------------------------------------------------------


# -- what is kept of an error ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("text", f"{SECRET!r} is not a date", "give one"),
        InvalidInput("text", f'"{SECRET}" is not a date'),
        NotFound("entry", SECRET),
        StoreError(f"no session {SECRET!r}"),
        EmbeddingFailed(f"embedder 'x': host answered HTTP 400: you sent {SECRET} (check the model)"),
        ValueError(f"cannot parse {SECRET}"),
        KeyError(SECRET),
    ],
)
def test_nothing_that_anybody_said_is_kept(queue: Queue, error: Exception) -> None:
    add(queue, "k")
    job = claimed(queue)
    try:
        raise error
    except Exception as raised:
        failed = queue.fail(job, raised)
    assert failed is not None
    assert SECRET not in failed.error
    assert failed.error.startswith(type(error).__name__)


def test_what_helps_is_kept() -> None:
    assert told(EmbeddingFailed("embedder 'x': host answered HTTP 429: slow down (wait)")) == (
        "EmbeddingFailed: embedder '…': host answered HTTP 429"
    )
    assert told(InvalidInput("k", "-1 is below\n 0")) == "InvalidInput: k: -1 is below 0"
    assert len(told(StoreError("x" * 1000))) == MOST_CHARS
    assert told(ZeroDivisionError("x")) == "ZeroDivisionError"
    with pytest.raises(ValueError) as raised:
        raise ValueError("x")
    assert told(raised.value).startswith("ValueError in test_queue.py:")

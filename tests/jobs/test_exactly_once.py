"""Whatever happens to jobs and in whichever order: each one's effects happen exactly once, and none is lost."""

from __future__ import annotations

import contextlib
from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from jobs.world import PARTITIONS, Clock, effect, effects, writer
from wellworn.core.errors import InvalidInput, LeaseLost, NotFound, StoreBusy
from wellworn.core.values import Job
from wellworn.jobs import Queue, Worker
from wellworn.jobs.queue import list_jobs
from wellworn.store.sqlite import SqliteStore

KEYS = ["a", "b", "c"]
LEASE_S = 60.0


class Jobs(RuleBasedStateMachine):
    """Workers that come and go, under a clock that only we move."""

    claims: Bundle[Job | None] = Bundle("claims")

    @initialize()
    def open(self) -> None:
        self.clock = Clock()
        ids = count()
        store = SqliteStore(":memory:")
        self.queue = Queue(store, clock=self.clock, new_id=lambda: f"{next(ids)}", max_attempts=3)
        self.added: set[str] = set()

    @rule(key=st.sampled_from(KEYS), place=st.integers(0, 2))
    def add(self, key: str, place: int) -> None:
        key, partition = f"{key}{place}", PARTITIONS[place]
        with self.queue.store.transact() as tx:
            assert self.queue.add(tx, partition, "write", key, {"place": place}) == (key not in self.added)
        self.added.add(key)

    @rule(target=claims, worker=st.sampled_from("vw"), tenants=st.sampled_from([None, None, ["acme"], ["rival"]]))
    def claim(self, worker: str, tenants: list[str] | None) -> Job | None:
        return self.queue.claim(worker, lease_s=LEASE_S, tenants=tenants)

    @rule(seconds=st.sampled_from([1.0, 10.0, LEASE_S, 3600.0]))
    def wait(self, seconds: float) -> None:
        self.clock.forward(seconds)

    @rule(job=claims)
    def finish(self, job: Job | None) -> None:
        if job is None:
            return
        try:
            with self.queue.store.transact() as tx:
                effect(tx, job)
                assert self.queue.finish(tx, job).state == "done"
        except LeaseLost:
            pass

    @rule(job=claims, hopeless=st.booleans())
    def fail(self, job: Job | None, hopeless: bool) -> None:
        if job is not None:
            self.queue.fail(job, NotFound("session", "s") if hopeless else StoreBusy("x"))

    @rule(job=claims)
    def release(self, job: Job | None) -> None:
        if job is not None:
            self.queue.release(job)

    @rule(job=claims)
    def extend(self, job: Job | None) -> None:
        try:
            if job is not None:
                self.queue.extend(job, lease_s=LEASE_S)
        except LeaseLost:
            pass

    @rule(no=st.integers(0, 8))
    def retry(self, no: int) -> None:
        with contextlib.suppress(NotFound, InvalidInput):
            assert self.queue.retry(str(no)).state == "queued"

    @invariant()
    def effects_are_those_of_the_jobs_that_are_done(self) -> None:
        if hasattr(self, "queue"):
            jobs = list_jobs(self.queue.store)
            assert {job.key for job in jobs} == self.added
            assert effects(self.queue.store) == {job.key: 1 for job in jobs if job.state == "done"}

    def teardown(self) -> None:
        """Leases end, waits too, and the dead are tried again: then everything can be done."""
        if not hasattr(self, "queue"):
            return
        try:
            self.clock.forward(7200)
            worker = Worker(self.queue, {"write": writer(self.queue)})
            worker.run_until_empty()  # also gives up those whose last attempt never ended
            for job in list_jobs(self.queue.store, states=["dead"]):
                self.queue.retry(job.id)
            worker.run_until_empty()
            assert effects(self.queue.store) == dict.fromkeys(self.added, 1)
        finally:
            self.queue.store.close()


TestJobs = Jobs.TestCase

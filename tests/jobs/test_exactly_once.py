"""Whatever happens to jobs and in whichever order: each one's effects happen exactly once, and none is lost.

The same steps are taken on both stores, which must agree after each.
"""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from jobs.world import ENGINES, PARTITIONS, STEADY, Clock, effect, effects, open_store, writer
from wellworn.core.errors import InvalidInput, LeaseLost, NotFound, StoreBusy
from wellworn.jobs import Queue, Worker
from wellworn.store.port import Job

KEYS = ["a", "b", "c"]
LEASE_S = 60.0
Claim = list[Job]
"""The same claim on each store."""


class Jobs(RuleBasedStateMachine):
    """Workers that come and go on two stores, under a clock that only we move."""

    claims: Bundle[Claim] = Bundle("claims")

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.queues = [self._queue(engine) for engine in ENGINES]
        self.added: set[str] = set()

    def _queue(self, engine: str) -> Queue:
        ids = count()
        store = open_store(engine, Path(self.folder.name))
        return Queue(store, clock=self.clock, new_id=lambda: f"{next(ids)}", max_attempts=3, backoff=STEADY)

    @rule(key=st.sampled_from(KEYS), place=st.integers(0, 2))
    def add(self, key: str, place: int) -> None:
        key, partition = f"{key}{place}", PARTITIONS[place]
        for queue in self.queues:
            with queue.store.transact() as tx:
                assert queue.add(tx, partition, "write", key, {"place": place}) == (key not in self.added)
        self.added.add(key)

    @rule(target=claims, worker=st.sampled_from("vw"), tenant=st.sampled_from([None, None, "acme", "rival"]))
    def claim(self, worker: str, tenant: str | None) -> Claim:
        found = [queue.claim(worker, lease_s=LEASE_S, tenant=tenant) for queue in self.queues]
        assert found[0] == found[1]
        return [job for job in found if job is not None]

    @rule(seconds=st.sampled_from([1.0, 10.0, LEASE_S, 3600.0]))
    def wait(self, seconds: float) -> None:
        self.clock.forward(seconds)

    @rule(claim=claims)
    def finish(self, claim: Claim) -> None:
        outcomes = []
        for queue, job in zip(self.queues, claim, strict=False):
            try:
                with queue.store.transact() as tx:
                    effect(tx, job)
                    outcomes.append(queue.finish(tx, job).state)
            except LeaseLost:
                outcomes.append("lost")
        assert outcomes in ([], ["done", "done"], ["lost", "lost"])

    @rule(claim=claims, hopeless=st.booleans())
    def fail(self, claim: Claim, hopeless: bool) -> None:
        error = NotFound("session", "s") if hopeless else StoreBusy("x")
        outcomes = [queue.fail(job, error) for queue, job in zip(self.queues, claim, strict=False)]
        assert outcomes[:1] == outcomes[1:]

    @rule(claim=claims)
    def release(self, claim: Claim) -> None:
        for queue, job in zip(self.queues, claim, strict=False):
            queue.release(job)

    @rule(claim=claims)
    def extend(self, claim: Claim) -> None:
        outcomes: list[Job | None] = []
        for queue, job in zip(self.queues, claim, strict=False):
            try:
                outcomes.append(queue.extend(job, lease_s=LEASE_S))
            except LeaseLost:
                outcomes.append(None)
        assert outcomes[:1] == outcomes[1:]

    @rule(no=st.integers(0, 8))
    def retry(self, no: int) -> None:
        outcomes: list[object] = []
        for queue in self.queues:
            try:
                outcomes.append(queue.retry(str(no)))
            except (NotFound, InvalidInput) as error:
                outcomes.append(type(error))
        assert outcomes[0] == outcomes[1]

    @invariant()
    def effects_are_those_of_the_jobs_that_are_done(self) -> None:
        if not hasattr(self, "queues"):
            return
        reference, sqlite = (queue.store.jobs() for queue in self.queues)
        assert reference == sqlite
        assert {job.key for job in reference} == self.added
        for queue in self.queues:
            assert effects(queue.store) == {job.key: 1 for job in reference if job.state == "done"}

    def teardown(self) -> None:
        if not hasattr(self, "queues"):
            return
        try:
            for queue in self.queues:
                self._run_the_rest(queue)
                assert effects(queue.store) == dict.fromkeys(self.added, 1)
        finally:
            for queue in self.queues:
                queue.store.close()
            self.folder.cleanup()

    def _run_the_rest(self, queue: Queue) -> None:
        """Leases end, waits too, and the dead are tried again: then everything can be done."""
        self.clock.forward(7200)
        worker = Worker(queue, {"write": writer(queue)})
        worker.run_until_empty()  # also gives up those whose last attempt never ended
        for job in queue.store.jobs(states=["dead"]):
            queue.retry(job.id)
        worker.run_until_empty()


Jobs.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestJobs = Jobs.TestCase

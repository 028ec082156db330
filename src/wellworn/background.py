"""Background work: reflections and summaries as durable jobs, run on a thread of this process or on demand.

Loaded when a session is opened or a job is asked for; a program that only remembers and recalls never needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

from wellworn.core.errors import NotFound, ScopeError, StoreError
from wellworn.core.values import Partition, Progress
from wellworn.jobs.queue import Queue, list_jobs
from wellworn.jobs.worker import Handler, Worker
from wellworn.models.ledger import Budget, InFlight, Meter, Prices
from wellworn.models.port import READERS, Model
from wellworn.ops.reembed import RENEWAL, Renewal
from wellworn.reflection import Reflection, ReflectionSettings
from wellworn.reflection.reflector import Reflector
from wellworn.reflection.service import Reflections, Summarizer

if TYPE_CHECKING:
    from wellworn.engine import Engine

SWEEP_S = 60.0
"""How often idle sessions are looked for."""
PRUNE_S = 3600.0
"""How often jobs that have long been done are dropped."""


class Background:
    """The job queue, its worker and what they run."""

    def __init__(
        self,
        engine: Engine,
        *,
        summarizer: Model | None,
        budget: Budget | None,
        prices: Prices | None,
        settings: ReflectionSettings | None,
        on_thread: bool,
        tenants: Sequence[str] | Literal["all"] | None,
    ) -> None:
        """Takes the parts of the engine and not itself: a memory which is let go is gone at once."""
        settings = settings or ReflectionSettings()
        store, writer, clock, new_id = engine.store, engine.writer, engine.clock, engine.new_id
        self._store = store
        self._told = tenants
        self._scrubbing = writer.scrubbing
        self._on_thread = on_thread
        self._llm = engine.llm
        self._metered = partial(
            Meter, store=store, budget=budget, prices=prices, clock=clock, in_flight=InFlight()
        )  # shares what is under way, so that calls at the same time do not pass a cap together
        self.queue = Queue(store, clock=clock, new_id=new_id)
        reflector = Reflector(store, writer, engine.searcher, model_for=self.model)
        summaries = None
        if summarizer is not None:
            summaries = Summarizer(store=store, writer=writer, model_for=partial(self.meter, summarizer))
        self.reflections = Reflections(
            store=store,
            queue=self.queue,
            settings=settings,
            reflector=reflector,
            summarizer=summaries,
            clock=clock,
            new_id=new_id,
            committed=self.wake,
            background=on_thread,
        )
        self._worker = Worker(self.queue, self.reflections.handlers, tenants=self._served)
        self._renewal: Renewal | None = None
        if engine.embedder is not None and engine.embedder.name.startswith(READERS):
            self._renewal = Renewal(store, engine.embedder, self.queue, clock)
            self.handle({RENEWAL: self._renewal.run})
        self._keep_jobs_days = settings.keep_jobs_days
        if settings.idle_minutes is not None:
            self._worker.every(SWEEP_S, lambda: self.reflections.sweep(tenants=self._served()))
        if settings.keep_jobs_days is not None:
            self._worker.every(PRUNE_S, lambda: self.prune(self._served()))

    def handle(self, handlers: Mapping[str, Handler]) -> None:
        """Run jobs of these kinds, too."""
        self._worker.handle(handlers)

    def model(self, partition: Partition, session_id: str | None) -> Meter | None:
        """The model whose calls are counted for a partition's tenant, and for a session of it; None when there is none."""
        return None if self._llm is None else self.meter(self._llm, partition, session_id)

    def meter(self, model: Model, partition: Partition, session_id: str | None = None) -> Meter:
        """Any model as it may be asked for a partition: scrubbed, counted, under the budget."""
        if self._scrubbing.on:
            from wellworn.ingest.pii import ScrubbedModel

            model = ScrubbedModel(model, self._scrubbing.sent(partition))
        return self._metered(model, tenant=partition.tenant, session=session_id, partition=partition)

    def _served(self) -> Sequence[str] | None:
        """The tenants whose work is done here: those it was told to serve (None: all), else those opened here."""
        if self._told == "all":
            return None
        return [*self.queue.tenants] if self._told is None else self._told

    def start(self, tenant: str) -> None:
        """Serve a tenant, on the thread where there is to be one: it also finds idle sessions and what was left."""
        self.queue.tenants.add(tenant)
        if self._on_thread:
            self._worker.start()

    def renew(self) -> None:
        """Renew the vectors of the store, which are of a former bundled model."""
        if self._renewal is None:
            return
        with suppress(StoreError):  # it is begun below, too
            self._renewal.begin(again=True)
        self._worker.every(SWEEP_S, self._renewal.begin)  # the job goes when somebody forgets what it lies with
        self.wake()

    def wake(self) -> None:
        """Something may be due: see to it on the thread, where there is one."""
        if self._on_thread:
            self._worker.start()
            self._worker.wake()

    def reflect(
        self, partition: Partition, session_id: str | None, *, again: bool, progress: Progress
    ) -> list[Reflection]:
        return self.reflections.reflect(partition, session_id, again=again, take=self._worker.taking, progress=progress)

    def run(self, *, tenant: str | None, progress: Progress) -> int:
        """Do what is due for a tenant; without one, for those served here, or for the only one that the store has."""
        tenants = self._served() if tenant is None else [tenant]
        if tenants == []:
            tenants = [*dict.fromkeys(one.tenant for one in self._store.partitions())]
            if len(tenants) > 1:
                raise ScopeError(
                    "scope", "is missing, and the store has several tenants", "pass scope=…, or open with tenants=[…]"
                )
        self.reflections.sweep(tenants=tenants)
        self.prune(tenants)
        if self._renewal is not None:
            self._renewal.begin()
        return self._worker.run_until_empty(tenants=tenants, progress=progress)

    def prune(self, tenants: Sequence[str] | None) -> int:
        """Drop jobs that were done longer ago than they are kept; returns how many."""
        return 0 if self._keep_jobs_days is None else self.queue.prune(self._keep_jobs_days, tenants=tenants)

    def retry(self, tenant: str, job_id: str | None) -> int:
        dead = list_jobs(self._store, tenant=tenant, states=["dead"], limit=100_000)
        wanted = [job for job in dead if job_id in (None, job.id)]
        if job_id is not None and not wanted:
            raise NotFound("dead job", job_id, "see `wellworn jobs list --state dead`")
        for job in wanted:
            self.queue.retry(job.id, tenant=tenant)
        if wanted:
            self.wake()
        return len(wanted)

    def close(self) -> None:
        """End the thread after the job that it is running; what is queued stays queued."""
        self._worker.stop()

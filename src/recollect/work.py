"""Work in the background, put together: reflections and summaries as jobs, on a thread of this process or on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from recollect.clock import Clock, NewId
from recollect.errors import NotFound
from recollect.ingest.remember import Writer
from recollect.jobs.queue import Queue
from recollect.jobs.worker import Handler, Worker
from recollect.llm.base import Model
from recollect.llm.budget import Budget
from recollect.llm.ledger import InFlight, Meter
from recollect.llm.prices import Prices
from recollect.reflection.reflector import Reflector
from recollect.reflection.report import Reflection
from recollect.reflection.service import Reflections
from recollect.reflection.settings import ReflectionSettings
from recollect.reflection.summary import Summarizer
from recollect.reflection.watch import SessionWatch
from recollect.retrieval.pipeline import Searcher
from recollect.stores.base import Store
from recollect.types import Shelf

Progress = Callable[[int, int], None]
SWEEP_S = 60.0
"""How often idle sessions are looked for."""
PRUNE_S = 3600.0
"""How often jobs that have long been done are dropped."""


class Work:
    """The queue, its worker and what they run."""

    def __init__(self, store: Store, writer: Writer, searcher: Searcher, *, llm: Model | None,
                 summarizer: Model | None, budget: Budget | None, prices: Prices | None,
                 settings: ReflectionSettings, background: bool, clock: Clock, new_id: NewId) -> None:  # fmt: skip
        self._store = store
        self._scrubbing = writer.scrubbing
        self._background = background
        self._llm = llm
        self._metered = partial(
            Meter, store=store, budget=budget, prices=prices, clock=clock, in_flight=InFlight()
        )  # shares what is under way, so that calls at the same time do not pass a cap together
        self._queue = Queue(store, clock=clock, new_id=new_id)
        reflector = Reflector(
            store, writer, searcher, settings=settings,
            model_for=self.model,
        )  # fmt: skip
        summaries = None if summarizer is None else Summarizer(
            store, writer, settings=settings,
            model_for=lambda shelf, session_id: self.meter(summarizer, shelf, session_id),
        )  # fmt: skip
        self._reflections = Reflections(
            store=store, queue=self._queue, reflector=reflector, summarizer=summaries, settings=settings, new_id=new_id
        )
        self.watch = SessionWatch(
            store, self._queue, settings=settings, summarizes=summaries is not None, clock=clock, wake=self.wake,
            background=background,
        )  # fmt: skip
        self._worker = Worker(self._queue, self._reflections.handlers)
        self._keep_jobs_days = settings.keep_jobs_days
        if settings.idle_minutes is not None:
            self._worker.every(SWEEP_S, self.watch.sweep)
        if settings.keep_jobs_days is not None:
            self._worker.every(PRUNE_S, self.prune)

    @property
    def queue(self) -> Queue:
        return self._queue

    def handle(self, handlers: Mapping[str, Handler]) -> None:
        """Run jobs of these kinds, too: for mechanisms that are built on an open memory."""
        self._worker.handle(handlers)

    def model(self, shelf: Shelf, session_id: str | None) -> Meter | None:
        """The model whose calls are counted for a shelf's tenant, and for a session of it; None when there is none."""
        return None if self._llm is None else self.meter(self._llm, shelf, session_id)

    def meter(self, model: Model, shelf: Shelf, session_id: str | None = None) -> Meter:
        """Any model as it may be asked for a shelf: scrubbed, counted, under the budget."""
        return self._metered(self._scrubbed(model, shelf), tenant=shelf.tenant, session=session_id, shelf=shelf)

    def _scrubbed(self, model: Model, shelf: Shelf) -> Model:
        """The model as it may be asked: of what the scrubbing takes out it is told nothing."""
        if not self._scrubbing.on:
            return model
        from recollect.ingest.pii.model import ScrubbedModel

        return ScrubbedModel(model, self._scrubbing.sent(shelf))

    def start(self) -> None:
        """Begin the thread, where there is to be one: it also finds idle sessions and what was left to do."""
        if self._background:
            self._worker.start()

    def wake(self) -> None:
        """Something may be due: see to it on the thread, where there is one."""
        if self._background:
            self._worker.start()
            self._worker.wake()

    def reflect(self, shelf: Shelf, session_id: str | None, *, dry_run: bool, again: bool,
                progress: Progress | None) -> list[Reflection]:  # fmt: skip
        return self._reflections.reflect(
            shelf, session_id, dry_run=dry_run, again=again, take=self._worker.taking, progress=progress
        )

    def run(self, *, tenant: str | None, progress: Progress | None) -> int:
        self.watch.sweep(tenant=tenant)
        self.prune()
        return self._worker.run_until_empty(tenant=tenant, progress=progress)

    def prune(self) -> int:
        """Drop jobs that were done longer ago than they are kept; returns how many."""
        return 0 if self._keep_jobs_days is None else self._queue.prune(self._keep_jobs_days)

    def retry(self, tenant: str, job_id: str | None) -> int:
        dead = self._store.jobs(tenant=tenant, states=["dead"], limit=100_000)
        wanted = [job for job in dead if job_id in (None, job.id)]
        if job_id is not None and not wanted:
            raise NotFound("dead job", job_id, "see `recollect jobs list --state dead`")
        for job in wanted:
            self._queue.retry(job.id, tenant=tenant)
        if wanted:
            self.wake()
        return len(wanted)

    def close(self) -> None:
        """End the thread after the job that it is running; what is queued stays queued."""
        self._worker.stop()

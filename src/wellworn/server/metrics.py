"""What Prometheus reads at `/metrics`: numbers of the process and of the store, without names of tenants or people.

Counted as it happens: requests, recalls, faults that were logged. Read from the store, at most every 15 seconds and for at
most a twentieth of the time: entries, jobs, what was learned, and what any process wrote to the log since the service
began: model calls, outcomes, tasks, changes.
"""

from __future__ import annotations

import logging
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics import MetricWrapperBase

from wellworn.core.errors import WellwornError
from wellworn.core.spans import Fact, Note, listen
from wellworn.core.values import KINDS, STATES
from wellworn.engine import Engine
from wellworn.jobs.queue import JOB
from wellworn.learning.records import OUTCOME
from wellworn.models.ledger import CALL
from wellworn.search.pipeline import ROUTE, WORDS_ROUTE
from wellworn.store.events import EVENT
from wellworn.store.port import Record, RecordFilter

FRESH_S = 15.0
REST = 20.0
"""The store is left alone for so many times as long as it took to read."""
MOST_PAGES, PAGE = 10, 2_000
"""New records of the log that one reading counts; the rest is counted by the next."""
MOST_JOBS = 1_000
JOBS = ("reflect", "summarize", "consolidate")
COMPONENTS = ("doors", "integrations", "jobs", "learning", "models", "search", "server", "store", "tasks", "other")
OUTCOMES = ("cited", "not_cited", "used", "ignored", "refined", "verdict")
RESULTS = ("success", "failure", "unsure", "abandoned")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """The numbers of one service."""

    def __init__(self, engine: Engine, *, ticks: Callable[[], float] = time.monotonic) -> None:
        self._engine, self._ticks = engine, ticks
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        counter = partial(Counter, namespace="wellworn", registry=self._registry)
        gauge = partial(Gauge, namespace="wellworn", registry=self._registry)
        timer = partial(Histogram, namespace="wellworn", registry=self._registry, buckets=_SECONDS)
        self._requests = counter("requests", "Requests answered", ("method", "route", "status"))
        self._seconds = timer("request_seconds", "Time to answer", ("route",))
        self._labelled: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.running = gauge("requests_running", "Requests under way")
        self._recalls = timer("recall_seconds", "Time of a recall, by how it searched", ("route",))
        self._errors = counter("errors", "Faults that were logged", ("component",))
        self._up = gauge("store_up", "Whether the store could be read")
        self._entries = gauge("entries", "Entries by kind", ("kind",))
        self._states = gauge("entry_states", "Entries by state", ("state",))
        self._sessions = gauge("sessions", "Sessions")
        self._bytes = gauge("store_bytes", "Size of the store")
        self._jobs = gauge("jobs", "Jobs that wait or run (1000 at most)", ("kind", "state"))
        self._late = gauge("jobs_late_seconds", "How long the job that waits longest has been due")
        self._gain = gauge("reranker_gain", "How much better the learned order foretells citations")
        self._bound = gauge("reranker_gain_bound", "Lower bound of that gain")
        self._taught = gauge("reranker_users", "People whose outcomes taught it")
        self._lookups = counter("embedding_cache", "Lookups by level", ("level", "result"))
        self._calls = counter("model_calls", "Model calls", ("model", "purpose", "result"))
        self._tokens = counter("model_tokens", "Tokens of model calls", ("model", "purpose", "direction"))
        self._usd = counter("model_usd", "US dollars of model calls", ("model", "purpose"))
        self._outcomes = counter("outcomes", "How recalls turned out", ("kind",))
        self._tasks = counter("tasks", "Tasks that ended", ("result",))
        self._events = counter("events", "Changes, by the audit log", ("action",))
        _begin_at_zero(self._recalls, (ROUTE, WORDS_ROUTE, "recursive"))
        _begin_at_zero(self._errors, COMPONENTS)
        _begin_at_zero(self._outcomes, OUTCOMES)
        _begin_at_zero(self._tasks, RESULTS)
        _begin_at_zero(self._events, ("remember",))
        self._reading, self._next_at = Lock(), float("-inf")
        self._seen_lookups = Tally[tuple[str, str]]()
        newest = engine.store.records(RecordFilter(limit=1))
        self._last = newest[0].no if newest else 0
        self._stops: list[Callable[[], None]] = []

    def start(self) -> None:
        """Count recalls and faults of this process, until `stop`."""
        counted, log = _CountingHandler(self._errors), logging.getLogger("wellworn")
        log.addHandler(counted)
        self._stops = [listen(self._span), lambda: log.removeHandler(counted)]

    def stop(self) -> None:
        for stop in self._stops:
            stop()

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        known = self._labelled.get((method, route, status))
        if known is None:  # to find them by their labels takes most of the time
            known = self._requests.labels(method, route, status), self._seconds.labels(route)
            self._labelled[method, route, status] = known
        known[0].inc()
        known[1].observe(seconds)

    def exposed(self) -> bytes:
        """All numbers, as Prometheus reads them."""
        with self._reading:
            begun = self._ticks()
            if begun >= self._next_at:
                try:
                    self._read_store()
                    self._up.set(1)
                except WellwornError:  # the numbers stay as they were read last
                    self._up.set(0)
                now = self._ticks()
                self._next_at = now + max(FRESH_S, REST * (now - begun))
            return generate_latest(self._registry)

    @contextmanager
    def _span(self, name: str) -> Iterator[Note]:
        told: dict[str, Fact] = {}
        begun = self._ticks()
        yield told.update
        if name == "recall":
            self._recalls.labels(told["route"]).observe(self._ticks() - begun)

    # -- the store -------------------------------------------------------------------------------------------------

    def _read_store(self) -> None:
        self._follow_log()
        store = self._engine.store
        counts = store.counts(store.partitions())
        for kind in KINDS:
            self._entries.labels(kind).set(counts.get(f"kind:{kind}", 0))
        for state in STATES:
            self._states.labels(state).set(counts.get(f"state:{state}", 0))
        self._sessions.set(counts["sessions"])
        self._bytes.set(counts["bytes"])
        self._read_jobs()
        gain, bound, users = self._engine.learner.pooled_gain()
        self._gain.set(gain)
        self._bound.set(bound)
        self._taught.set(users)
        levels = getattr(self._engine.embedder, "metrics", None)  # only one with a cache has any
        for level in levels() if callable(levels) else ():
            for result, total in (("hit", level.hits), ("miss", level.misses)):
                self._lookups.labels(level.level, result).inc(total - self._seen_lookups[level.level, result])
                self._seen_lookups[level.level, result] = total

    def _read_jobs(self) -> None:
        waiting = RecordFilter(kinds=[JOB], states=["queued", "running"], order="due", limit=MOST_JOBS)
        numbers = Tally(dict.fromkeys(((kind, state) for kind in JOBS for state in ("queued", "running")), 0))
        late, now = 0.0, self._engine.clock()
        for one in self._engine.store.records(waiting):
            numbers[str(one.body.get("kind")), one.state] += 1
            if one.state == "queued" and one.due_at is not None:
                late = max(late, (now - one.due_at).total_seconds())
        self._jobs.clear()
        for key, number in numbers.items():
            self._jobs.labels(*key).set(number)
        self._late.set(late)

    def _follow_log(self) -> None:
        """Count what was appended to the log since the last time, by whatever process."""
        for _ in range(MOST_PAGES):
            wanted = RecordFilter(kinds=[CALL, OUTCOME, EVENT], after=self._last, order="oldest", limit=PAGE)
            page = self._engine.store.records(wanted)
            for record in page:
                self._count(record)
                self._last = record.no
            if len(page) < PAGE:
                break

    def _count(self, record: Record) -> None:
        body = record.body
        if record.kind == CALL:
            name = body.get("model"), body.get("purpose")
            self._calls.labels(*name, "ok" if body.get("ok") else "failed").inc()
            self._usd.labels(*name).inc(body.get("usd", 0.0))
            for direction in ("input", "output"):
                self._tokens.labels(*name, direction).inc(body.get(f"{direction}_tokens", 0))
        elif record.kind == OUTCOME:
            cited = record.state != "cited" or body.get("value", {}).get("nos")
            self._outcomes.labels(record.state if cited else "not_cited").inc()
        else:
            detail = body.get("detail", {})
            self._events.labels(record.state).inc()
            if record.state == "task" and detail.get("to") in ("reinforced", "abandoned"):
                result = "abandoned" if detail["to"] == "abandoned" else detail.get("outcome")
                self._tasks.labels(result if result in RESULTS else "unsure").inc()


class _CountingHandler(logging.Handler):
    """Counts warnings and errors by the room of the package that they come from."""

    def __init__(self, errors: Counter) -> None:
        super().__init__(logging.WARNING)
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        room = record.name.removeprefix("wellworn.").partition(".")[0]
        self._errors.labels(room if room in COMPONENTS else "other").inc()


def _begin_at_zero(metric: MetricWrapperBase, values: Iterable[str]) -> None:
    """Show these values of its label before they are counted: a rate needs the zero."""
    for value in values:
        metric.labels(value)

"""What Prometheus reads at `/metrics`: numbers of the process and of the store, without names of tenants or people.

Counted as it happens: requests, recalls, faults that were logged. Read from the store, at most every 15 seconds and for at
most a twentieth of the time: entries, jobs, what was learned, and what others wrote to the log since the service began:
model calls, outcomes, tasks, changes.
"""

from __future__ import annotations

import logging
import time
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

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
MOST_RECORDS, PAGE = 20_000, 2_000
"""New records of the log that one reading counts; the rest is counted by the next."""
OVERLAP = 500
"""Numbers that are looked at again: a writer of another tenant may have taken a lower number and commit later."""
MOST_JOBS = 1_000
JOBS = ("reflect", "summarize", "consolidate")
MOST_NAMES = 50
"""Different names that a label may have; further ones are `other`."""
COMPONENTS = ("doors", "integrations", "jobs", "learning", "models", "search", "server", "store", "tasks", "other")
ROUTES = (ROUTE, WORDS_ROUTE, "recursive")
OUTCOMES = ("cited", "not_cited", "used", "ignored", "refined", "verdict")
RESULTS = ("success", "failure", "unsure", "abandoned")
LOG = {
    "model_calls": ("Model calls", ["model", "purpose", "result"]),
    "model_tokens": ("Tokens of model calls", ["model", "purpose", "direction"]),
    "model_usd": ("US dollars of model calls", ["model", "purpose"]),
    "outcomes": ("How recalls turned out", ["kind"]),
    "tasks": ("Tasks that ended", ["result"]),
    "events": ("Changes, by the audit log", ["action"]),
}
"""What is counted of the log: the name, what it is, its labels."""
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """The numbers of one service."""

    def __init__(self, engine: Engine, *, ticks: Callable[[], float] = time.monotonic) -> None:
        self.registry = registry = CollectorRegistry()
        self._ticks = ticks
        labels = ("method", "route", "status")
        self.requests = Counter("wellworn_requests", "Requests answered", labels, registry=registry)
        self.seconds = Histogram(
            "wellworn_request_seconds", "Time to answer", ("route",), buckets=_SECONDS, registry=registry
        )
        self.running = Gauge("wellworn_requests_running", "Requests under way", registry=registry)
        self._recalls = Histogram(
            "wellworn_recall_seconds",
            "Time of a recall, by how it searched",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._errors = Counter("wellworn_errors", "Faults that were logged", ("component",), registry=registry)
        for route in ROUTES:
            self._recalls.labels(route)
        for component in COMPONENTS:
            self._errors.labels(component)
        ProcessCollector(registry=registry)
        registry.register(StoreNumbers(engine, ticks))
        self._stops: list[Callable[[], None]] = []

    def start(self) -> None:
        """Count recalls and faults of this process, until `stop`."""
        counted, log = _CountingHandler(self._errors), logging.getLogger("wellworn")
        log.addHandler(counted)
        self._stops = [listen(self._span), lambda: log.removeHandler(counted)]

    def stop(self) -> None:
        for stop in self._stops:
            stop()

    @contextmanager
    def _span(self, name: str) -> Iterator[Note]:
        told: dict[str, Fact] = {}
        begun = self._ticks()
        yield told.update
        if name == "recall":
            self._recalls.labels(told["route"]).observe(self._ticks() - begun)


class _CountingHandler(logging.Handler):
    """Counts warnings and errors by the room of the package that they come from."""

    def __init__(self, errors: Counter) -> None:
        super().__init__(logging.WARNING)
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        room = record.name.removeprefix("wellworn.").partition(".")[0]
        self._errors.labels(room if room in COMPONENTS else "other").inc()


class StoreNumbers(Collector):
    """What the store says, read now and then."""

    def __init__(self, engine: Engine, ticks: Callable[[], float]) -> None:
        self._engine = engine
        self._ticks = ticks
        self._lock = Lock()
        self._next = float("-inf")
        self._families: list[Metric] = []
        newest = engine.store.records(RecordFilter(limit=1))
        self._first = self._last = newest[0].no if newest else 0
        self._counted: set[int] = set()
        self._counts: dict[str, defaultdict[tuple[str, ...], float]] = {name: defaultdict(float) for name in LOG}
        for name, first in (("outcomes", OUTCOMES), ("tasks", RESULTS), ("events", ("remember",))):
            self._counts[name].update(dict.fromkeys(((one,) for one in first), 0.0))
        self._names: dict[str, set[str]] = {}

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            begun = self._ticks()
            if begun >= self._next:
                up = True
                try:
                    self._families = [*self._read()]
                except WellwornError:
                    up = False
                now = self._ticks()
                self._next = now + max(FRESH_S, REST * (now - begun))
                alive = _gauge("wellworn_store_up", "Whether the store could be read", float(up))
                self._families = [alive, *(one for one in self._families if one.name != alive.name)]
            return self._families

    def _read(self) -> Iterator[Metric]:
        self._follow()
        yield from self._amounts()
        yield from self._jobs()
        yield from self._learning()
        yield from self._log()

    def _amounts(self) -> Iterator[Metric]:
        store = self._engine.store
        counts = store.counts(store.partitions())
        entries = GaugeMetricFamily("wellworn_entries", "Entries by kind", labels=["kind"])
        for kind in KINDS:
            entries.add_metric([kind], counts.get(f"kind:{kind}", 0))
        states = GaugeMetricFamily("wellworn_entry_states", "Entries by state", labels=["state"])
        for state in STATES:
            states.add_metric([state], counts.get(f"state:{state}", 0))
        yield entries
        yield states
        yield _gauge("wellworn_sessions", "Sessions", counts["sessions"])
        yield _gauge("wellworn_store_bytes", "Size of the store", counts["bytes"])

    def _jobs(self) -> Iterator[Metric]:
        waiting = RecordFilter(kinds=[JOB], states=["queued", "running"], order="due", limit=MOST_JOBS)
        numbers = Tally(dict.fromkeys(((kind, state) for kind in JOBS for state in ("queued", "running")), 0))
        late, now = 0.0, self._engine.clock()
        for one in self._engine.store.records(waiting):
            numbers[self._known("job", one.body.get("kind")), one.state] += 1
            if one.state == "queued" and one.due_at is not None:
                late = max(late, (now - one.due_at).total_seconds())
        jobs = GaugeMetricFamily("wellworn_jobs", "Jobs that wait or run (1000 at most)", labels=["kind", "state"])
        for key, number in numbers.items():
            jobs.add_metric([*key], number)
        yield jobs
        yield _gauge("wellworn_jobs_late_seconds", "How long the job that waits longest has been due", late)

    def _learning(self) -> Iterator[Metric]:
        gain, bound, users = self._engine.learner.pooled_gain()
        yield _gauge("wellworn_reranker_gain", "How much better the learned order foretells citations", gain)
        yield _gauge("wellworn_reranker_gain_bound", "Lower bound of that gain", bound)
        yield _gauge("wellworn_reranker_users", "People whose outcomes taught it", users)
        levels = getattr(self._engine.embedder, "metrics", None)  # only one with a cache has any
        lookups = CounterMetricFamily("wellworn_embedding_cache", "Lookups by level", labels=["level", "result"])
        for level in levels() if callable(levels) else ():
            lookups.add_metric([level.level, "hit"], level.hits)
            lookups.add_metric([level.level, "miss"], level.misses)
        yield lookups

    # -- the log -----------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Count what was appended to the log since the last time, by whatever process."""
        after = max(self._first, self._last - OVERLAP)
        for _ in range(MOST_RECORDS // PAGE):
            wanted = RecordFilter(kinds=[CALL, OUTCOME, EVENT], after=after, order="oldest", limit=PAGE)
            page = self._engine.store.records(wanted)
            for record in page:
                if record.no not in self._counted:
                    self._count(record)
                    self._counted.add(record.no)
                self._last = after = max(after, record.no)
            if len(page) < PAGE:
                break
        self._counted = {no for no in self._counted if no > self._last - OVERLAP}

    def _count(self, record: Record) -> None:
        body, counts = record.body, self._counts
        if record.kind == CALL:
            model, purpose = self._known("model", body.get("model")), self._known("purpose", body.get("purpose"))
            counts["model_calls"][model, purpose, "ok" if body.get("ok") else "failed"] += 1
            counts["model_usd"][model, purpose] += body.get("usd", 0.0)
            for direction in ("input", "output"):
                counts["model_tokens"][model, purpose, direction] += body.get(f"{direction}_tokens", 0)
        elif record.kind == OUTCOME:
            cited = record.state != "cited" or body.get("value", {}).get("nos")
            counts["outcomes"][(record.state if cited else "not_cited",)] += 1
        else:
            detail = body.get("detail", {})
            counts["events"][(self._known("action", record.state),)] += 1
            if record.state == "task" and detail.get("to") in ("reinforced", "abandoned"):
                result = "abandoned" if detail["to"] == "abandoned" else detail.get("outcome")
                counts["tasks"][(result if result in RESULTS else "unsure",)] += 1

    def _known(self, label: str, name: object) -> str:
        """A name as a value of a label, unless there are too many."""
        names = self._names.setdefault(label, set())
        if str(name) not in names and len(names) >= MOST_NAMES:
            return "other"
        names.add(str(name))
        return str(name)

    def _log(self) -> Iterator[Metric]:
        for name, (what, labels) in LOG.items():
            family = CounterMetricFamily(f"wellworn_{name}", what, labels=labels)
            for key, number in self._counts[name].items():
                family.add_metric([*key], number)
            yield family


def _gauge(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(name, what, value=value)

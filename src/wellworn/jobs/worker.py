"""Workers: they take jobs from a queue and run their handlers, in the caller's thread or in one of their own.

A handler gets the job and ends it by `queue.finish` in the transaction that writes its effects. While it runs, its
lease is renewed. What a handler raises is the job's failure and never the worker's.
"""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import LeaseLost, StoreClosed, WellwornError
from wellworn.core.locks import fork_lock
from wellworn.core.spans import span
from wellworn.core.values import Job, Partition, Progress, unwatched
from wellworn.jobs.queue import LEASE_S, Queue, list_jobs, told

Handler = Callable[[Job], object]

POLL_S = 5.0
STOP_S = 30.0
_COUNTED = 10_000  # jobs counted ahead, for progress

_logger = logging.getLogger(__name__)


@dataclass
class _Task:
    """Something to be done now and then; due when `time.monotonic()` has come to `due`."""

    seconds: float
    act: Callable[[], object]
    due: float


class Worker:
    """Runs jobs of the kinds it has handlers for, one at a time. Several may work on one store."""

    def __init__(
        self,
        queue: Queue,
        handlers: Mapping[str, Handler],
        *,
        lease_s: float = LEASE_S,
        poll_s: float = POLL_S,
        tenants: Callable[[], Sequence[str] | None] = lambda: None,
    ) -> None:
        """`poll_s` is how often the background thread looks for jobs that it was not woken for; `tenants` says whose
        jobs it takes, None for anyone's."""
        self._queue = queue
        self._handlers = dict(handlers)
        self._lease_s = lease_s
        self._poll_s = poll_s
        self._tenants = tenants
        self._tasks: list[_Task] = []
        self._lock = fork_lock()
        self._pid: int | None = None
        """The process whose background thread it is; None when there is to be none."""
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._stop = threading.Event()

    @property
    def name(self) -> str:
        """As jobs name it while they run."""
        return f"{platform.node()}-{os.getpid()}"

    def handle(self, handlers: Mapping[str, Handler]) -> None:
        """Run jobs of these kinds as well, from now on; one of a kind that is known takes its place."""
        self._handlers = {**self._handlers, **handlers}

    # -- in the caller's thread ----------------------------------------------------------------------------------

    def run_one(self, *, tenants: Sequence[str] | None = None) -> Job | None:
        """Run the next job that is due, of these tenants or of those it serves; returns it as it then stands, None
        when there is none."""
        whose = self._tenants() if tenants is None else tenants
        job = self._queue.claim(self.name, lease_s=self._lease_s, kinds=list(self._handlers), tenants=whose)
        return None if job is None else self._run(job)

    def run_until_empty(self, *, tenants: Sequence[str] | None = None, progress: Progress = unwatched) -> int:
        """Run jobs until none is due, those included that others add meanwhile; returns how many runs that were.

        `progress(done, total)` is called after each.
        """
        waiting = list_jobs(
            self._queue.store,
            tenants=self._tenants() if tenants is None else tenants,
            states=["queued", "running"],
            kinds=list(self._handlers),
            limit=_COUNTED,
        )
        done = 0
        while self.run_one(tenants=tenants) is not None:
            done += 1
            progress(done, max(done, len(waiting)))
        return done

    @contextmanager
    def taking(self, partition: Partition, kind: str, key: str, payload: Mapping[str, Any]) -> Iterator[Job | None]:
        """Have a job while the block lasts, which runs it; None when it is done or someone else has it.

        What the block raises is the job's failure, and is raised here too.
        """
        job = self._queue.take(self.name, partition, kind, key, payload, lease_s=self._lease_s)
        if job is None:
            yield None
            return
        try:
            with self._renewed(job):
                yield job
        except Exception as error:
            self._queue.fail(job, error)
            raise
        except BaseException:
            with suppress(WellwornError):
                self._queue.release(job)
            raise

    def _run(self, job: Job) -> Job:
        try:
            with span("job") as note, self._renewed(job):
                note(job=job.id, kind=job.kind, attempt=job.attempts)
                self._handlers[job.kind](job)
        except Exception as error:  # whatever a handler raises is the job's failure, and nothing if it lost the job
            lost = isinstance(error, LeaseLost)
            _logger.log(
                logging.INFO if lost else logging.WARNING,
                "job %s (%s), attempt %d: %s",
                job.id,
                job.kind,
                job.attempts,
                told(error),
            )
            return self._queue.fail(job, error) or job
        except BaseException:  # interrupted: the next worker need not wait for the lease to end
            with suppress(WellwornError):
                self._queue.release(job)
            raise
        return self._queue.settle(job) or job

    @contextmanager
    def _renewed(self, job: Job) -> Iterator[None]:
        """Renews the lease in good time for as long as the block lasts."""
        done = threading.Event()
        thread = threading.Thread(target=_renew, args=(self._queue, job, self._lease_s, done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    # -- in the background ---------------------------------------------------------------------------------------

    def every(self, seconds: float, act: Callable[[], object]) -> None:
        """Let the background thread call this when it begins, and again so long after each call."""
        self._tasks.append(_Task(seconds=seconds, act=act, due=time.monotonic()))
        self._wake.set()

    def start(self) -> None:
        """Begin the background thread, one a process; starting twice is fine. It ends with `stop`, with the store, or
        when nobody refers to the worker any more."""
        with self._lock:
            if self._pid == os.getpid():
                return
            self._pid = os.getpid()
            self._wake, self._stop = threading.Event(), threading.Event()
            wake = self._wake
            self._thread = threading.Thread(
                target=_work, args=(weakref.ref(self, lambda _: wake.set()), wake, self._stop), daemon=True
            )
            self._thread.start()

    def wake(self) -> None:
        """Look for jobs now: call it after a transaction that added one. Begins the thread anew in a forked child."""
        if self._pid is not None:
            self.start()
            self._wake.set()

    def stop(self, *, timeout_s: float = STOP_S) -> bool:
        """End the background thread after the job that it is running; False when that took too long. Such a job goes
        on, or is left to the next worker when its lease is over."""
        with self._lock:
            thread, mine = self._thread, self._pid == os.getpid()
            self._pid = self._thread = None
            self._stop.set()
            self._wake.set()
        if thread is None or not mine or thread is threading.current_thread():
            return True
        thread.join(timeout_s)
        return not thread.is_alive()

    def _round(self) -> float | None:
        """Tasks that are due and one job; returns how long to wait, None when there may be more to do."""
        for task in [task for task in self._tasks if task.due <= time.monotonic()]:
            try:
                task.act()
            except StoreClosed:
                raise
            except Exception as error:  # its next time may be better
                _logger.warning("a periodic task failed: %s", told(error))
            task.due = time.monotonic() + task.seconds
        if self.run_one() is not None:
            return None
        next_task = min((task.due for task in self._tasks), default=float("inf")) - time.monotonic()
        return max(0.0, min(self._poll_s, next_task))


def _renew(queue: Queue, job: Job, lease_s: float, done: threading.Event) -> None:
    while not done.wait(lease_s / 3):
        try:
            queue.extend(job, lease_s=lease_s)
        except (LeaseLost, StoreClosed):
            return
        except WellwornError as error:  # there is time for another try
            _logger.warning("the lease of job %s was not renewed: %s", job.id, told(error))


def _work(ref: weakref.ref[Worker], wake: threading.Event, stop: threading.Event) -> None:
    """The background thread: refers to the worker only while it works, so that one nobody stops can still go."""
    while not stop.is_set() and (worker := ref()) is not None:
        wake.clear()
        try:
            wait_s = worker._round()
        except StoreClosed:
            return
        except Exception as error:  # the store may be busy or unreachable for a while
            _logger.warning("no job could be run: %s", told(error))
            wait_s = worker._poll_s
        del worker
        if wait_s is not None and not stop.is_set():
            wake.wait(wait_s)

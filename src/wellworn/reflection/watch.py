"""When a session is reflected on: at its end, every so many turns, or after it has been idle for long.

Whatever starts it, the job is queued in the transaction that is its reason, and named by session and turns: the same
turns are never queued twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from wellworn.core.clock import Clock
from wellworn.core.values import Partition
from wellworn.jobs.queue import Queue
from wellworn.reflection.settings import ReflectionSettings
from wellworn.store.port import Job, SessionHead, Store, Tx

REFLECT = "reflect"
SUMMARIZE = "summarize"
MOST_AT_ONCE = 1_000
_POLL_S = 0.02


class SessionWatch:
    """Told of every turn and every end; queues what they call for. `wake` is called when something was committed.

    `background` says whether a thread of this process runs it then.
    """

    def __init__(
        self,
        store: Store,
        queue: Queue,
        *,
        settings: ReflectionSettings,
        summarizes: bool,
        clock: Clock,
        wake: Callable[[], None],
        background: bool,
    ) -> None:
        self._store = store
        self._queue = queue
        self._settings = settings
        self._summarizes = summarizes
        self._clock = clock
        self._wake = wake
        self._background = background

    def added(self, tx: Tx, partition: Partition, session_id: str, turns: int) -> bool:
        """Queue a reflection in the middle of a session, where that is asked for; whether anything was queued."""
        every, above = self._settings.every_turns, self._settings.summarize_above
        reflects = every is not None and turns % every == 0
        if reflects and (head := tx.session(partition, session_id)) is not None:
            self._reflect(tx, head)
        summarizes = self._summarizes and turns % above == 0
        if summarizes:
            self._summarize(tx, partition, session_id, turns)
        return reflects or summarizes

    def ended(self, tx: Tx, partition: Partition, session_id: str) -> str | None:
        """Queue what is left to read; the key of the reflection's job, also when it was queued before."""
        head = tx.session(partition, session_id)
        if head is None:
            return None
        if self._summarizes and head.turns >= self._settings.summarize_above:
            self._summarize(tx, partition, session_id, head.turns)
        return self._reflect(tx, head)

    def _reflect(self, tx: Tx, head: SessionHead) -> str | None:
        if head.reflected >= head.turns:
            return None
        key = f"{head.id}:{head.reflected}-{head.turns}"
        payload = {"session": head.id, "start": head.reflected, "stop": head.turns}
        self._queue.add(tx, head.partition, REFLECT, key, payload)
        return key

    def _summarize(self, tx: Tx, partition: Partition, session_id: str, turns: int) -> None:
        self._queue.add(tx, partition, SUMMARIZE, f"{session_id}:{turns}", {"session": session_id, "stop": turns})

    def sweep(self, *, tenant: str | None = None) -> int:
        """End every session that was left idle; returns how many there were."""
        if self._settings.idle_minutes is None:
            return 0
        before = self._clock() - timedelta(minutes=self._settings.idle_minutes)
        ended = 0
        for head in self._store.idle_sessions(before, tenant=tenant, limit=MOST_AT_ONCE):
            with self._store.transact() as tx:
                now = tx.session(head.partition, head.id)
                if now is None or now.ended_at is not None or now.touched_at >= before:
                    continue  # forgotten, ended or gone on meanwhile
                tx.mark_session(head.partition, head.id, ended_at=self._clock())
                self.ended(tx, head.partition, head.id)
                ended += 1
        if ended:
            self._wake()
        return ended

    def committed(self) -> None:
        self._wake()

    def job(self, partition: Partition, key: str, *, wait_s: float) -> Job | None:
        """The reflection's job when it is done or dead, or as it stands when the time is up."""
        deadline = time.monotonic() + wait_s
        while True:
            job = self._queue.find(partition, REFLECT, key)
            if job is None or job.state in ("done", "dead") or time.monotonic() >= deadline:
                return job
            if job.state == "queued" and not self._background:
                return job  # nobody here will run it
            time.sleep(_POLL_S)

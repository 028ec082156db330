"""A thread that sweeps expired items away every so often, until it is told to stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from wellworn.core.errors import StoreClosed, WellwornError

log = logging.getLogger(__name__)


class Sweeper:
    """Calls `sweep` at an interval. A sweep that fails is logged and tried again at the next one."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, interval_minutes: float) -> None:
        """Begin; one that runs already goes on as it is."""
        with self._lock:
            if self.running:
                return
            self._stop.clear()
            self._thread = threading.Thread(
                target=self._run, args=(interval_minutes * 60,), name="wellworn-ttl-sweeper", daemon=True
            )
            self._thread.start()

    def stop(self, timeout_s: float | None = None) -> bool:
        """End it, waiting for a sweep under way; False when that took longer than the time-out."""
        with self._lock:
            self._stop.set()
            if self._thread is not None:
                self._thread.join(timeout_s)
            return not self.running

    def _run(self, interval_s: float) -> None:
        while not self._stop.wait(interval_s):
            try:
                swept = self._sweep()
            except StoreClosed:
                return
            except WellwornError:
                log.exception("expired items could not be swept; the next try is in %s s", interval_s)
            else:
                if swept:
                    log.info("%d expired items swept", swept)

"""What gunicorn (`--preload`) and Celery (prefork) load in tests: a memory that is open before the workers are forked.

Threads of the parent recall and remember all the time, so that a fork meets them at work.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from celery import Celery

from wellworn import Memory, Scope

ADA = Scope(user="ada")
folder = Path(os.environ["FORKING_FOLDER"])
memory = Memory(folder / "memory.db", embedder="hash")
for text in ("The parent opened the harbour.", "The parent closed the harbour."):  # twice: what loads on use is loaded
    memory.remember(text, scope=ADA)
    memory.recall(text, scope=ADA)
stop = threading.Event()


def work() -> None:
    # Python itself cannot fork while a thread imports a module: the child would wait for that import for ever.
    number = 0
    while not stop.wait(0.05):
        number += 1
        memory.recall("Who opened the harbour?", scope=ADA)
        memory.remember(f"The parent said {number}.", scope=ADA)


threading.Thread(target=work, daemon=True).start()


def answer(text: str) -> dict[str, Any]:
    """Write and read in a worker."""
    (entry_id,) = memory.remember(text, scope=ADA)
    found = [hit.entry.id for hit in memory.recall(text, scope=ADA, k=20)]
    return {"pid": os.getpid(), "id": entry_id, "found": entry_id in found}


def application(environ: dict[str, Any], respond: Callable[..., object]) -> Iterable[bytes]:
    """WSGI."""
    body = json.dumps(answer(f"A worker was asked for {environ['PATH_INFO']}.")).encode()
    respond("200 OK", [("Content-Type", "application/json")])
    return [body]


app = Celery("forking", broker="filesystem://", backend=f"file://{folder / 'results'}")
app.conf.update(
    broker_transport_options={
        option: str(folder / "queue") for option in ("data_folder_in", "data_folder_out", "control_folder")
    },
    worker_prefetch_multiplier=1,
)


@app.task(name="note")  # type: ignore[untyped-decorator]
def note(text: str) -> dict[str, Any]:
    return answer(text)

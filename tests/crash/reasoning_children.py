"""A process that does tasks until it is killed."""

from __future__ import annotations

import itertools
import time
from multiprocessing.connection import Connection
from pathlib import Path

from crash.children import ADA, EMBEDDER
from wellworn import Memory
from wellworn.tasks import ReasoningBank, Work

INSIDE = "inside a task"


def learn_for_ever(path: Path, life: int, told: Connection) -> None:
    """One task after the other, every second one a run of two attempts; say each when it begins.

    Every fourth life stays inside its third task.
    """
    with Memory.open(path, embedder=EMBEDDER, durability="normal", background=False) as mem:
        bank = ReasoningBank(mem, scope=ADA)
        bank.resume(idle_s=0.0)
        told.send("resumed")
        for number in itertools.count():
            name = f"life{life}task{number}"

            def agent(work: Work, name: str = name, number: int = number) -> object:
                if life % 4 == 3 and number == 2:
                    told.send(INSIDE)
                    time.sleep(600)  # until it is killed
                right = work.number == 1
                step = {"tool": f"{name}x{work.number}", "args": {"x": work.number}, "ok": right}
                return {"query": name, "steps": [step], "used": list(range(len(work.hits)))}

            told.send(name)
            if number % 2:
                bank.matts_parallel(task_id=name, query=name, execute=agent, k=2, concurrency=1)
            else:
                bank.run_task(task_id=name, query=name, execute=agent)

"""A process that reflects until it is killed."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from wellworn import Memory
from wellworn.models.port import Reply, Request

EMBEDDER = "hash:8"
_TOWN = re.compile(r"\| I live in (town\d+)")


class Answering:
    """Takes its time, then says what the dialogue says; asked to decide, it adds."""

    name = "answering"

    def complete(self, request: Request) -> Reply:
        time.sleep(0.01)
        return Reply(
            text=self._answer(request), model=self.name, input_tokens=1, output_tokens=1, seconds=0.01, estimated=True
        )

    def _answer(self, request: Request) -> str:
        if request.purpose == "update":
            return "Add()"
        town = _TOWN.search(request.messages[1].text)
        assert town is not None
        return json.dumps({"extracted_memories": [{"summary": f"Ada lives in {town[1]}.", "reference": [0]}]})


def reflect_for_ever(path: Path, minutes_ahead: float, told: Connection) -> None:
    """Run jobs; its clock is ahead, so that what a killed process held is free again."""

    def clock() -> datetime:
        return datetime.now(UTC) + timedelta(minutes=minutes_ahead)

    with Memory.open(path, embedder=EMBEDDER, llm=Answering(), background=False, clock=clock) as mem:
        mem.jobs.run(progress=lambda done, _: told.send(done))
        told.send("empty")
        time.sleep(60)

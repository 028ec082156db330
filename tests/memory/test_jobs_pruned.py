"""Jobs that have long been done leave the store, and nothing is done again because of it."""

from __future__ import annotations

import pytest

from memory.world import ADA, Clock
from wellworn import InvalidInput, Memory, ReflectionSettings


def test_jobs_that_were_done_a_week_ago_are_dropped_where_work_is_done() -> None:
    for days, left in ((7.0, []), (None, ["reflect"])):
        clock = Clock()
        settings = ReflectionSettings(keep_jobs_days=days)
        with Memory.open(":memory:", embedder="hash", background=False, clock=clock, reflection=settings) as mem:
            session = mem.session(scope=ADA, session_id="monday")
            session.add("user", "My sister Mia has a cat called Momo.")
            session.end()
            mem.jobs.run()
            for step in (8, 2):  # one jump of the clock deletes nothing
                clock.forward(days=step)
                assert [job.kind for job in mem.jobs.list(scope=ADA)] == ["reflect"]
                mem.jobs.run()
            assert [job.kind for job in mem.jobs.list(scope=ADA)] == left
            assert mem.reflect(scope=ADA) == []  # what is done is not done again
    with pytest.raises(InvalidInput, match="keep_jobs_days"):
        ReflectionSettings(keep_jobs_days=-1)

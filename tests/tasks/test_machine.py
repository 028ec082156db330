"""The life of attempts as a state machine: begun, told, cut off anywhere, resumed by anyone, in any order.

Whatever happens: states only go where the diagram says, items are there exactly when an attempt is stored, each once,
and every use and verdict is counted once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from wellworn import Memory
from wellworn.tasks import ReasoningBank
from wellworn.tasks.attempts import Attempts
from wellworn.tasks.consolidate import Consolidator
from wellworn.tasks.engine import Parts
from wellworn.tasks.items import bank_partition, is_item
from wellworn.tasks.tasks import NEXT, Task, TaskMoved, Tasks, TaskState

from .world import AGENT, Clock, a_call, a_try


class Died(BaseException):
    """Takes nothing with it but what was not written."""


class Mortal(Tasks):
    """Dies at a transition."""

    deadly = ""

    def move_in(self, tx: Any, task: Task, to: TaskState, **changes: Any) -> Task:
        if to == self.deadly:
            raise Died
        return super().move_in(tx, task, to, **changes)


class Lives(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        self.clock = Clock()
        self.mem = Memory.open(":memory:", embedder="hash:16", background=False, clock=self.clock)
        self.bank = ReasoningBank(self.mem, scope=AGENT)
        parts = Parts(self.mem, AGENT, "mask")
        self.tasks = Mortal(parts.engine.store, parts.engine.clock)
        self.finisher = Attempts(parts, self.tasks, Consolidator(parts).added)
        self.begun: list[Task] = []
        self.number = 0
        self.stored: dict[str, bool] = {}
        self.seen: dict[str, str] = {}
        self.uses: Counter[str] = Counter()
        self.verdicts: Counter[tuple[str, bool]] = Counter()

    def _do(self, number: int, success: bool) -> Any:  # a trajectory
        """Every attempt teaches one item of its own."""
        step = a_call(f"tool{number}", error="" if success else "no", x=1)
        return a_try(f"task number{number}", step, verdict=success, used=(0,))

    @rule(success=st.booleans())
    def run(self, success: bool) -> None:
        self.number += 1
        number = self.number
        self.bank.run_task(task_id=f"t{number}", query="task", execute=lambda _: self._do(number, success))

    @rule()
    def begin(self) -> None:
        self.number += 1
        work = self.bank.begin(task_id=f"t{self.number}", query="task")
        self.begun.append(work.task)

    @rule(success=st.booleans())
    def tell_and_die(self, success: bool) -> None:
        """The process dies inside the transaction that would have finished the attempt."""
        if not self.begun:
            return
        task = self.begun.pop()
        if task not in self.tasks.all(task.partition, limit=1000):
            return  # given up meanwhile
        task = self.tasks.move(task, "judging", trajectory=self._do(int(task.task_id[1:]), success))
        self.tasks.deadly = "reinforced"
        with pytest.raises(Died):
            self.finisher.finish([(task, self.finisher.judge(task))])
        self.tasks.deadly = ""

    @rule(hours=st.sampled_from([0, 2]))
    def resume(self, hours: int) -> None:
        self.clock.forward(hours=hours)
        self.bank.resume()
        if hours:
            assert all(task.finished for task in self.tasks.all(bank_partition(AGENT), limit=1000))

    @rule()
    def finish_what_another_has_finished(self) -> None:
        done = [task for task in self.bank.tasks(limit=1000) if task.state == "reinforced"]
        if done:
            stale = replace(done[0], state="judging", entry_ids=())
            with pytest.raises(TaskMoved):
                self.finisher.finish([(stale, self.finisher.judge(stale))])

    @invariant()
    def states_only_go_where_they_may(self) -> None:
        if not hasattr(self, "bank"):
            return
        events = [
            event for event in reversed(self.mem.admin.events(scope=AGENT, limit=100_000)) if event.action == "task"
        ]
        states: dict[str, str] = {}
        for event in events:
            id, before, after = (str(event.detail[name]) for name in ("task", "from", "to"))
            assert states.get(id, "") == before
            assert before == "" or after in NEXT[before]  # type: ignore[index]  # one of them
            states[id] = after
        assert {task.id: task.state for task in self.bank.tasks(limit=1000)} == states

    @invariant()
    def items_are_there_exactly_when_their_attempt_is_stored(self) -> None:
        if not hasattr(self, "bank"):
            return
        kept = [entry for entry in self.mem.entries(scope=AGENT, limit=10_000) if is_item(entry)]
        tasks = self.bank.tasks(limit=1000)
        named = [id for task in tasks for id in task.entry_ids]
        assert sorted(named) == sorted(entry.id for entry in kept)
        assert all(bool(task.entry_ids) == (task.state == "reinforced") for task in tasks)
        assert {entry.repeats for entry in kept} <= {0}

    @invariant()
    def use_and_success_are_counted_once(self) -> None:
        if not hasattr(self, "bank"):
            return
        uses: Counter[str] = Counter()
        judged: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        ahead: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        """The log takes a verdict before the last transition: a process that dies between them leaves it ahead."""
        for task in self.bank.tasks(limit=1000):
            if task.verdict is not None and task.state == "reinforced":
                uses.update(task.shown)
                judged[task.verdict.success].update(task.shown)
            elif task.state == "judging":
                ahead[bool(task.done.verdict)].update(task.shown)
        for entry in self.bank.items(limit=10_000):
            assert uses[entry.id] <= entry.usage_count <= uses[entry.id] + sum(one[entry.id] for one in ahead.values())
            for success, count in ((True, entry.success_count), (False, entry.failure_count)):
                least = judged[success][entry.id]
                assert least <= count <= least + ahead[success][entry.id]

    def teardown(self) -> None:
        if hasattr(self, "mem"):
            assert self.mem.verify().ok
            self.mem.close()


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)

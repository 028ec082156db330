"""Attempts at a task: retrieve what helps, run the agent, judge, distil, store, reinforce. One, or several compared.

What the caller got wrong is an error before anything is done. From then on, whatever the store or the embedder raises
is reported in the result, and the agent works without the bank. Several attempts (memory-aware test-time scaling) are
all judged first and distilled together. A budget that is used up ends a run early; what was made until then is kept.

At the end, models are called and texts embedded first. Then one transaction writes all of it: an attempt is finished or
as before. An item keeps every word of its task, because any of them may decide ("stable", "nightly").
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from threading import Event as Flag
from typing import Any, TypedDict, TypeVar

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import BudgetExceeded, InvalidInput, ModelFailed, NotFound, StoreError, WellwornError
from wellworn.core.values import Entry, Hit, Link, Partition, Recall, Scope
from wellworn.ingest.remember import keep
from wellworn.ingest.validate import checked_line, checked_query, checked_session_id
from wellworn.learning.records import FAILURE_STEP, OutcomeInput, judged
from wellworn.store.events import Event, audit
from wellworn.store.port import NewEntry, Selection, Tx
from wellworn.tasks import items
from wellworn.tasks.calls import called, followed, tried
from wellworn.tasks.consolidate import ended
from wellworn.tasks.distill import Distilled, distill
from wellworn.tasks.engine import OfBank, Parts
from wellworn.tasks.items import bank_partition, checked_domain
from wellworn.tasks.judge import Judged, Verdict, judge, prompt, shown_attempts
from wellworn.tasks.tasks import Task, TaskMoved, Tasks
from wellworn.tasks.trajectory import Trajectory, bounded, text_of, trajectory_of

T = TypeVar("T")
REFUTED_STEP = 0.3
"""What an item loses when its advice was followed and failed: that is an observation, a verdict is an opinion."""
REJECTED_STEP = 0.45
"""What a strategy loses when the user rejects the work that taught it: a new one is not given again."""
DOUBTED_STEP = 0.05
"""What it loses when its calls worked, and yet the task is said to have failed."""
ALIKE = 0.5
"""Share of the words that two tasks must have in common for a failure at one to count at the other."""
MOST_TWINS = 50
LOST = "the process ended before the work did"
_MANY = 10_000

JudgedTask = tuple[Task, Verdict]
Use = tuple[bool, float]
"""Whether an item helped, and what it costs it if not."""

_log = logging.getLogger("wellworn.tasks")


class TaskSpec(TypedDict, total=False):
    """What a caller says about a task. `task_id` and `query` are needed."""

    task_id: str
    """The caller's name for the task. Each attempt at it gets an id of its own."""
    query: str
    """What is to be done, in words. Items are retrieved by it."""
    agent_id: str
    domain: str
    """What the task is about, as `web.admin`. What it teaches is stored under it, and items are looked for there."""
    scope: Scope | None
    session_id: str | None
    """The session it belongs to: forgetting the session forgets the task."""


def planned(spec: TaskSpec, scope: Scope, parts: Parts) -> Task:
    """The attempt that a caller wants, checked before anything is done. It is not stored yet."""
    task_id, session_id = checked_line("task_id", spec.get("task_id", "")), spec.get("session_id")
    if not task_id.strip():
        raise InvalidInput("task_id", "is empty", "give the task a name; an id will do")
    now = parts.engine.clock()
    return Task(
        id=parts.engine.new_id(),
        partition=bank_partition(scope),
        task_id=task_id,
        query=checked_query(spec.get("query", "")),
        agent_id=checked_line("agent_id", spec.get("agent_id", "")),
        domain=checked_domain(spec.get("domain", "")),
        session_id=None if session_id is None else checked_session_id(session_id),
        created_at=now,
        updated_at=now,
    )


@dataclass(frozen=True, kw_only=True)
class Work:
    """A task for an agent, with what the bank knows about it."""

    task: Task
    query: str
    """The task in the caller's own words; what is stored is scrubbed."""
    stored: bool = True
    """False when the store could not be written to."""
    recall: Recall | None = None
    previous: tuple[Judged, ...] = ()
    """Earlier attempts of a sequential run, oldest first."""

    @property
    def task_id(self) -> str:
        return self.task.task_id

    @property
    def number(self) -> int:
        """Which attempt of its run it is, from 1 on."""
        return self.task.number

    @property
    def hits(self) -> list[Hit]:
        """The items found, best first."""
        return [] if self.recall is None else self.recall.hits

    def context(self, *, max_tokens: int = 1500) -> str:
        """The items as a fenced block of data for a prompt; empty when there are none."""
        return "" if self.recall is None else self.recall.context(max_tokens=max_tokens)

    def instruction(self) -> str:
        """In a sequential run, from the second attempt on: what to do with the earlier ones, and these as data."""
        if not self.previous:
            return ""
        return f"{prompt('refine' if len(self.previous) == 1 else 'refine_again')}\n{shown_attempts(self.previous)}"


Execute = Callable[[Work], Any]
"""The agent. It may return anything that `trajectory_of` takes; other values are an error of the caller. An exception is a
failed attempt."""


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Everything that an attempt needs but the agent."""

    plan: Task
    home: Partition
    """Where its session is stored."""
    look: Callable[[], Recall]
    """Retrieves the items for the task."""


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """How one attempt ended."""

    work: Work
    trajectory: Trajectory
    verdict: Verdict
    value: Any = None
    """What the agent returned."""
    exception: Exception | None = None
    distilled: Distilled | None = None
    fault: str = ""
    """What went wrong with the memory meanwhile; the agent was not stopped by it."""

    @property
    def task_id(self) -> str:
        return self.work.task_id

    @property
    def id(self) -> str:
        """The attempt's own; empty when it could not be stored."""
        return self.work.task.id if self.work.stored else ""

    @property
    def state(self) -> str:
        return self.work.task.state if self.work.stored else ""

    @property
    def entry_ids(self) -> tuple[str, ...]:
        """Items that came from it, new or strengthened."""
        return self.work.task.entry_ids

    @property
    def recall(self) -> Recall | None:
        return self.work.recall

    @property
    def success(self) -> bool:
        return self.verdict.success


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """How several attempts at one task ended."""

    run_id: str
    """The `run_id` of its attempts among `ReasoningBank.tasks`."""
    best: TaskResult
    attempts: Sequence[TaskResult]
    distilled: Distilled | None = None
    fault: str = ""

    @property
    def entry_ids(self) -> tuple[str, ...]:
        """Items that came from it, new or strengthened."""
        return self.best.entry_ids

    @property
    def success(self) -> bool:
        return self.best.success


def _rank(one: TaskResult) -> tuple[bool, float, int]:
    """Best first: a success before a failure; then the surer success or the less sure failure, then the fewer steps."""
    sure = one.verdict.confidence if one.success else -one.verdict.confidence
    return (not one.success, -sure, len(one.trajectory.steps))


class Attempts(OfBank):
    """Begins attempts, runs the agent, ends them, and goes on with those that a crash cut off."""

    def __init__(self, parts: Parts, tasks: Tasks, added: Callable[[Tx, Partition, int], bool]) -> None:
        """`added` is told of new items in the transaction that stores them, and says whether it queued a job."""
        super().__init__(parts)
        self._tasks = tasks
        self._added = added

    def begin(self, given: Assignment, previous: tuple[Judged, ...] = ()) -> Work:
        """An attempt, stored and given what the bank knows."""
        plan, recall = given.plan, _guarded(given.look)
        shown = tuple(hit.entry.id for hit in recall.hits) if recall else ()

        def opened() -> Task:
            query = self._parts.scrubbing.sent(plan.partition)(plan.query)
            named = replace(plan, query=query, recall_id=recall.id if recall else "", shown=shown)
            return self._tasks.open(named, home=given.home)

        task = _guarded(opened)
        stored = task is not None
        return Work(task=task or plan, query=plan.query, stored=stored, recall=recall, previous=previous)

    def run(self, work: Work, execute: Execute) -> TaskResult:
        """Let the agent work, then judge. An exception is a failure; an interrupt, or a value that is no trajectory,
        leaves the attempt abandoned."""
        value, exception = None, None
        try:
            value = execute(work)
            trajectory = trajectory_of(value, query=work.query)
        except BaseException as error:
            if not isinstance(error, Exception) or (value is not None and isinstance(error, InvalidInput)):
                self.abandon([work], type(error).__name__)
                raise
            exception = error  # of the agent, perhaps while its steps are read: what this learns from
            trajectory = bounded(Trajectory(query=work.query, error=f"{type(error).__name__}: {text_of(error)}"))
        task, verdict, fault = work.task, None, "" if work.stored else "the store was not writable"
        try:
            if work.stored:
                task = self._tasks.move(task, "judging", trajectory=self._parts.scrubbed(trajectory, task.partition))
                verdict = self.judge(task)
        except Exception as error:  # of the store, a model, or ours: the agent has done its work
            fault = _noted(error)
        return TaskResult(
            work=replace(work, task=task),
            trajectory=trajectory,
            verdict=verdict or judge(trajectory),
            value=value,
            exception=exception,
            fault=fault,
        )

    def end(self, made: Sequence[TaskResult]) -> list[TaskResult]:
        """Attempts at one task, distilled together, stored and reinforced."""
        sound = [one for one in made if not one.fault]
        if not sound:
            return [*made]
        try:
            tasks, distilled = self.finish([(one.work.task, one.verdict) for one in sound])
        except Exception as error:  # of the store, a model, or ours: the agents have done their work
            fault = _noted(error)
            return [replace(one, fault=one.fault or fault) for one in made]
        own = {task.id: task for task in tasks}
        return [
            replace(one, work=replace(one.work, task=own[one.id]), distilled=distilled) if one.id in own else one
            for one in made
        ]

    def abandon(self, works: Sequence[Work], why: str) -> None:
        """The work will not come to an end."""
        for work in works:
            if work.stored and not work.task.finished:
                _guarded(partial(self._tasks.move, work.task, "abandoned", why=why))

    # -- several -----------------------------------------------------------------------------------------------------

    def several(self, given: Assignment, execute: Execute, mode: str, *, most: int, at_once: int = 1) -> RunResult:
        """Attempts at one task: `parallel` ones know nothing of each other, `sequential` ones see those before them and
        end with a success. An interrupted run is abandoned: its attempts cannot be compared."""
        stop, made, run_id = Flag(), dict[int, TaskResult](), self._new_id()
        sequential = mode == "sequential"

        def one(number: int) -> None:
            if stop.is_set():
                return
            previous = tuple((one.trajectory, one.verdict) for one in made.values()) if sequential else ()
            try:
                now, id = self._clock(), self._new_id()
                plan = replace(
                    given.plan, id=id, run_id=run_id, mode=mode, number=number, created_at=now, updated_at=now
                )
                made[number] = out = self.run(self.begin(replace(given, plan=plan), previous), execute)
            except BaseException:
                stop.set()
                raise
            if isinstance(out.exception, BudgetExceeded) or (sequential and out.success):
                stop.set()

        try:
            if at_once == 1:
                for number in range(1, most + 1):
                    one(number)
            else:
                from concurrent.futures import ThreadPoolExecutor

                with ThreadPoolExecutor(max_workers=at_once) as pool:
                    for attempt in [pool.submit(one, number) for number in range(1, most + 1)]:
                        attempt.result()
        except BaseException as error:
            self.abandon([each.work for each in made.values()], type(error).__name__)
            raise
        ended = self.end([made[number] for number in sorted(made)])
        best = min(ended, key=_rank)
        return RunResult(run_id=run_id, best=best, attempts=ended, distilled=best.distilled, fault=best.fault)

    # -- the end: distilled, stored, and the items it was given made surer or less sure --------------------------------

    def judge(self, task: Task) -> Verdict:
        """Whether the work of an attempt succeeded."""
        return judge(task.done, self._background.model(task.partition, task.session_id))

    def finish(self, attempts: Sequence[JudgedTask]) -> tuple[list[Task], Distilled]:
        """Attempts at one task, compared where there are several, distilled, stored and reinforced."""
        first = attempts[0][0]
        model = self._background.model(first.partition, first.session_id)
        found = distill([(task.done, verdict) for task, verdict in attempts], model)
        made = self._items(attempts, found)
        uses = [(task, used := self._uses(task, verdict), self._log(task, used)) for task, verdict in attempts]
        now = self._clock()
        with self._writer.transact() as tx:
            for task, used, logged in uses:
                self._reinforce(tx, task, used, logged)
            stored = [store(tx, record, now) for record, _ in made]
            for id, (_, beaten) in zip(stored, made, strict=True):
                there = tx.get([first.partition], beaten).values()
                ended = [one for one in there if one.state == "active" and one.id not in stored]
                end(tx, id, ended, now, change="superseded")
            ids = tuple(dict.fromkeys(stored))
            changes = [(task, {"verdict": verdict, "entry_ids": ids}) for task, verdict in attempts]
            over = [self._tasks.move_in(tx, task, "reinforced", **changed) for task, changed in changes]
            new = len({record.entry.id for record, _ in made} & set(ids))
            queued = new > 0 and self._added(tx, first.partition, new)
        if queued:
            self._background.wake()
        return over, found

    # -- what it taught ----------------------------------------------------------------------------------------------

    def _items(self, attempts: Sequence[JudgedTask], found: Distilled) -> list[tuple[NewEntry, list[str]]]:
        """The items as they are to be stored, each with the stored ones that it ends. Texts are embedded here."""
        writer, now, task = self._writer, self._clock(), attempts[0][0]
        verdicts = {verdict.success for _, verdict in attempts}
        outcome: items.Outcome = "contrast" if len(verdicts) == 2 else "success" if True in verdicts else "failure"
        origin = items.Origin(task=task.task_id, agent=task.agent_id, outcome=outcome, run=task.run_id, by=found.by)
        trusted = all(task.done.trusted for task, _ in attempts)
        drafts = [
            items.draft_of(item, origin, domain=task.domain, layer=task.partition.layer, trusted=trusted)
            for item in found.items
        ]
        entries = [writer.entry(draft, task.partition.scope, now) for draft in drafts]
        records = writer.records_of(entries) if entries else []
        beaten = [self._beaten(item, task, trusted) for item in found.items]
        return list(zip(records, beaten, strict=True))

    def _beaten(self, item: items.NewItem, task: Task, trusted: bool) -> list[str]:
        """Strategies for the very task of a new one, to make a call that it says has failed and does not make itself."""
        calls = [call.text for call in item.pattern.calls if item.kind == "strategy"]
        failed = [call for call in item.pattern.failed if calls and call.text not in calls]
        found = [self._twins(items.Pattern(calls=(call,)), item.kind, task, trusted) for call in failed]
        own = item.pattern.conditions
        return [one.id for each in found for one in each if items.pattern_of(one).conditions == own]

    def _twins(self, pattern: items.Pattern, kind: items.ItemKind, task: Task, trusted: bool) -> list[Entry]:
        """Stored items with the same calls, of the same domain and trust."""
        tags, trust = items.calls_tag(pattern, kind), "trusted" if trusted else "untrusted"
        chosen = Selection(kinds=[kind], states=["active"], tags=tags)
        rows = self._store.select([task.partition], chosen, limit=MOST_TWINS) if tags else []
        return [one for _, one in rows if one.trust == trust and items.domain_of(one.tags) == task.domain]

    # -- what it was given -------------------------------------------------------------------------------------------

    def _uses(self, task: Task, verdict: Verdict) -> dict[str, Use]:
        """What the work says about the items that it used: as it says itself, else those whose calls it made, and
        guardrails about what it did another way. Where nothing can be compared, all count as used.

        A strategy whose calls were made and failed loses whatever the verdict, and a guardrail whose calls worked. An
        unsure verdict is about none.
        """
        uses: dict[str, Use] = {}
        there = self._store.get(None, task.shown)
        silent = task.done.used is None and called(task.done)
        for place, id in enumerate(task.shown):
            entry = there.get(id)
            if entry is None or (task.done.used is not None and place not in task.done.used):
                continue
            guards, pattern = entry.kind == "guardrail", items.pattern_of(entry)
            calls = pattern.failed if guards else pattern.calls
            worked = followed(calls, task.done)
            if guards and worked and not calls[-1].error:  # these worked before, too, and the result was wrong
                worked = verdict.success if verdict.teaches else None
            told = not (calls and silent) or (guards and tried(calls, task.done))
            if worked is guards:
                uses[id] = (False, REFUTED_STEP)
            elif verdict.teaches and (told or worked is not None):
                right = verdict.success or (guards and worked is False)
                uses[id] = (right, FAILURE_STEP if verdict.success or worked is None else DOUBTED_STEP)
        return uses

    def _log(self, task: Task, uses: Mapping[str, Use]) -> bool:
        """Into the outcome log, which takes each once, also after a crash; False when it does not have the recall."""
        learner, tenant = self._parts.learner, task.partition.tenant
        told = []
        if task.done.used is not None:
            told.append(OutcomeInput(kind="cited", value={}, places=self._places(task, task.shown)))
        about = [id for id, (_, step) in uses.items() if step == FAILURE_STEP]
        if about:
            value = {"success": uses[about[0]][0]}
            told.append(OutcomeInput(kind="verdict", value=value, places=self._places(task, about)))
        try:
            for outcome in told if task.shown else ():
                learner.outcome(task.recall_id, outcome, may_see=lambda one: one.tenant == tenant)
        except NotFound:  # learning is off, or a crash took the recall
            return False
        return True

    def _places(self, task: Task, ids: Sequence[str]) -> tuple[int, ...]:
        used = task.done.used
        return tuple(p for p, id in enumerate(task.shown) if id in ids and (used is None or p in used))

    def _reinforce(self, tx: Tx, task: Task, uses: Mapping[str, Use], logged: bool) -> None:
        """One more use of each item, unless the log counted it as cited, and what the work says about it."""
        now, there = self._clock(), tx.get(None, [*uses])
        for id, (success, step) in uses.items():
            entry = there.get(id)
            if entry is None:
                continue
            if not logged or step != FAILURE_STEP:
                entry = judged(entry, success, now, step=step)
            if not logged or task.done.used is None:
                entry = replace(entry, usage_count=entry.usage_count + 1, updated_at=max(now, entry.updated_at))
            tx.update(entry, change=None)
            detail: dict[str, int | float | str] = {"task": task.id, "success": int(success)}
            audit(tx, Event(at=now, tenant=entry.tenant, action="reinforce", entry_id=id, detail=detail))
            if step == REFUTED_STEP:
                self._doubt_twins(tx, task, entry)

    def _doubt_twins(self, tx: Tx, task: Task, refuted: Entry) -> None:
        """Items that say the same calls at much the same words were refuted too: each would fail in its turn."""
        now, said = self._clock(), set(items.content_words(task.query))
        tags = items.calls_tag(items.pattern_of(refuted), refuted.kind)
        chosen = Selection(kinds=[refuted.kind], states=["active"], tags=tags)
        for _, twin in tx.select([refuted.partition], chosen, limit=MOST_TWINS):
            words = set(items.pattern_of(twin).conditions)
            if twin.id not in task.shown and len(words & said) >= ALIKE * len(words | said):
                tx.update(judged(twin, False, now, step=REFUTED_STEP), change=None)

    # -- after a crash -----------------------------------------------------------------------------------------------

    def resume(self, partition: Partition, before: datetime) -> list[Task]:
        """Finish or abandon attempts that nothing has happened to since a moment.

        Those of one run are distilled together. One that somebody else goes on with is left alone. One that cannot be
        ended is abandoned, so that it does not keep others from it; but a store or a model that does not answer is
        nobody's fault: that is raised, and another time will do.
        """
        open_ = self._tasks.all(partition, states=("executing", "judging"), limit=_MANY)
        runs: dict[str, list[Task]] = {}
        for task in reversed([task for task in open_ if task.updated_at <= before]):  # oldest first
            runs.setdefault(task.run_id or task.id, []).append(task)
        over: list[Task] = []
        for made in runs.values():
            done = [task for task in made if task.state == "judging"]
            try:
                over += [self._tasks.move(task, "abandoned", why=LOST) for task in made if task not in done]
                over += self.finish([(task, self.judge(task)) for task in done])[0] if done else []
            except TaskMoved:
                continue
            except (StoreError, ModelFailed):
                raise
            except Exception as error:  # whatever is wrong with its words
                over += [self._tasks.move(task, "abandoned", why=type(error).__name__) for task in done]
        return over


def store(tx: Tx, record: NewEntry, now: datetime) -> str:
    """Write an item, or strengthen the one that says it already."""
    id = keep(tx, record, now)
    entry = tx.get([record.entry.partition], [id])[id]
    tx.update(replace(entry, at=max(now, entry.at)), change=None)
    return id


def end(tx: Tx, id: str, others: Sequence[Entry], now: datetime, *, change: str) -> None:
    """Let items no longer hold, which another stands for."""
    for entry in others:
        tx.update(ended(entry, now), change=change)
        tx.add_links([Link(source=id, target=entry.id, type="supersedes", created_at=now)])


def _guarded(call: Callable[[], T]) -> T | None:
    """The result of a call, or None when the memory fails: the agent goes on."""
    try:
        return call()
    except WellwornError as error:
        _noted(error)
        return None


def _noted(error: Exception) -> str:
    _log.warning("a task goes on without the bank: %s", type(error).__name__)
    return f"{type(error).__name__}: {text_of(error)}"

"""Attempts brought to their end: judged, distilled, stored, and the items they were given made surer or less sure.

Every step reads what the one before it wrote, so that it can continue after a crash at any point. Models are called
and texts embedded before the transaction that stores the items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from wellworn.core.errors import ModelFailed, NotFound, StoreError
from wellworn.core.values import Entry, Partition
from wellworn.learning.outcome import FAILURE_STEP, OutcomeInput, judged
from wellworn.store.events import Event, audit
from wellworn.store.port import Selection, StoreReader, Tx
from wellworn.tasks.calls import followed
from wellworn.tasks.distill import Distilled, distill, distill_attempts
from wellworn.tasks.engine import Parts
from wellworn.tasks.items import (
    NewItem,
    Origin,
    Outcome,
    calls_tag,
    content_words,
    domain_of,
    draft_of,
    pattern_of,
    scope_of,
)
from wellworn.tasks.judge import judge
from wellworn.tasks.siblings import MOST_TWINS, Stored, join, store
from wellworn.tasks.tasks import NEXT, UNFINISHED, Task, TaskMoved, Tasks

REFUTED_STEP = 0.3
"""What an item loses when its advice was followed and failed: that is an observation, a verdict is an opinion."""
ALIKE = 0.5
"""Share of the words that two tasks must have in common for a failure at one to count at the other."""
DOUBTED_STEP = 0.05
"""What it loses when its calls worked, and yet the task is said to have failed."""
LOST = "the process ended before the work did"
_MANY = 10_000


class Finisher:
    """Takes attempts from `judging` to `reinforced`."""

    def __init__(self, parts: Parts, tasks: Tasks, added: Callable[[Tx, Partition, int], bool]) -> None:
        """`added` is told of new items in the transaction that stores them, and says whether it queued a job."""
        self._parts = parts
        self._tasks = tasks
        self._added = added

    def finish(self, task: Task) -> tuple[Task, Distilled | None]:
        """One attempt, from wherever it is; what was distilled is None when that had been done before."""
        found = None
        if task.state == "judging":
            task = self.judge(task)
        if task.state == "distilling":
            found = distill(task.done, task.judged, self._parts.model(task.partition, task.session_id))
            (task,) = self._store([task], found, "success" if task.judged.success else "failure")
        if task.state == "stored":
            task = self._reinforce(task)
        return task, found

    def judge(self, task: Task) -> Task:
        """The attempt with its verdict."""
        verdict = judge(task.done, self._parts.model(task.partition, task.session_id))
        return self._tasks.move(task, "distilling", verdict=verdict)

    def finish_run(self, tasks: Sequence[Task]) -> tuple[list[Task], Distilled]:
        """Several attempts at one task, all judged: compared, stored in one transaction, reinforced."""
        model = self._parts.model(tasks[0].partition, tasks[0].session_id)
        found = distill_attempts([(task.done, task.judged) for task in tasks], model)
        verdicts = {task.judged.success for task in tasks}
        outcome: Outcome = "contrast" if len(verdicts) == 2 else "success" if True in verdicts else "failure"
        return [self._reinforce(task) for task in self._store(tasks, found, outcome)], found

    def _store(self, tasks: Sequence[Task], found: Distilled, outcome: Outcome) -> list[Task]:
        """Items and states in one transaction: either all of it is there afterwards or none."""
        stores = self._stores(tasks, found, outcome)
        now = self._parts.clock()
        with self._parts.writer.transact() as tx:
            ids = tuple(dict.fromkeys(store(tx, one, now) for one in stores))
            stored = [self._tasks.move_in(tx, task, "stored", entry_ids=ids) for task in tasks]
            new = len({one.record.entry.id for one in stores} & set(ids))
            queued = new > 0 and self._added(tx, tasks[0].partition, new)
        if queued:
            self._parts.wake()
        return stored

    def _stores(self, tasks: Sequence[Task], found: Distilled, outcome: Outcome) -> list[Stored]:
        """The items as they are to be stored, each with the stored ones that it joins. Texts are embedded here."""
        writer, now, task = self._parts.writer, self._parts.clock(), tasks[0]
        origin = Origin(
            task=task.task_id, agent=task.agent_id, domain=task.domain, outcome=outcome, run=task.run_id, by=found.by
        )
        trusted = all(task.done.trusted for task in tasks)
        joined = [join(item, self._twins(item, task, trusted)) for item in found.items]
        drafts = [draft_of(one.item, origin, layer=task.partition.layer, trusted=trusted) for one in joined]
        entries = [writer.entry(draft, scope_of(task.partition), now) for draft in drafts]
        records = writer.records_of(entries) if entries else []
        return [Stored(record=record, joined=one) for record, one in zip(records, joined, strict=True)]

    def _twins(self, item: NewItem, task: Task, trusted: bool) -> list[Entry]:
        """Stored items with the same calls, of the same domain and trust."""
        tags, trust = calls_tag(item.pattern, item.kind), "trusted" if trusted else "untrusted"
        chosen = Selection(kinds=[item.kind], states=["active"], tags=tags)
        rows = self._parts.store.select([task.partition], chosen, limit=MOST_TWINS) if tags else []
        return [one for _, one in rows if one.trust == trust and domain_of(one.tags) == task.domain]

    # -- what it was given -------------------------------------------------------------------------------------------

    def _reinforce(self, task: Task) -> Task:
        """Report the outcome of the recall, and count the use of what was shown.

        A verdict is about the items that were used, where the trajectory says which, and not about those whose advice
        was seen to fail: these lose whatever the verdict. An unsure verdict is about none. The log takes a verdict
        once, so a second try after a crash changes nothing; the rest is written together with the last transition.
        """
        used, store, success = _used(task), self._parts.store, task.judged.success
        shown = _shown(task, store)
        seen = {
            place: worked
            for place in used
            if (one := shown.get(task.shown[place])) is not None
            and (worked := followed(pattern_of(one).calls, task.done)) is not None
        }
        failed = [place for place, worked in seen.items() if not worked]
        doubted = [place for place, worked in seen.items() if worked and task.judged.teaches and not success]
        about = [place for place in used if place not in (*failed, *doubted)] if task.judged.teaches else []
        logged = not task.shown or self._log(task, about)
        with store.transact() as tx:
            moved = self._tasks.move_in(tx, task, "reinforced")
            self._count(tx, task, dict.fromkeys(about, success), judge_too=not logged)
            self._count(tx, task, dict.fromkeys(failed, False), judge_too=True, step=REFUTED_STEP)
            self._count(tx, task, dict.fromkeys(doubted, False), judge_too=True, step=DOUBTED_STEP)
            self._doubt_twins(tx, task, [shown[task.shown[place]] for place in failed])
        return moved

    def _doubt_twins(self, tx: Tx, task: Task, refuted: Sequence[Entry]) -> None:
        """Items that say the same calls at much the same words were refuted too: each would fail in its turn."""
        now, said = self._parts.clock(), set(content_words(task.query))
        for one in refuted:
            pattern = pattern_of(one)
            chosen = Selection(kinds=[one.kind], states=["active"], tags=calls_tag(pattern, one.kind))
            for _, twin in tx.select([one.partition], chosen, limit=MOST_TWINS):
                words = set(pattern_of(twin).conditions)
                if twin.id not in task.shown and len(words & said) >= ALIKE * len(words | said):
                    tx.update(judged(twin, False, now, step=REFUTED_STEP), change=None)

    def _log(self, task: Task, about: Sequence[int]) -> bool:
        """Into the outcome log; False when the log does not have the recall (learning is off, or a crash took it)."""
        learner, tenant = self._parts.learner, task.partition.tenant
        try:
            if task.done.used is not None:
                learner.outcome(
                    task.recall_id, OutcomeInput(kind="cited", value={}, places=tuple(_used(task))), tenant=tenant
                )
            if about:
                verdict = OutcomeInput(kind="verdict", value={"success": task.judged.success}, places=tuple(about))
                learner.outcome(task.recall_id, verdict, tenant=tenant)
        except NotFound:
            return False
        return True

    def _count(
        self, tx: Tx, task: Task, how: Mapping[int, bool], *, judge_too: bool, step: float = FAILURE_STEP
    ) -> None:
        """One more use of each of these items, unless the log counted it as cited; and an event each."""
        now = self._parts.clock()
        there = _shown(task, tx) if how else {}
        for place, success in how.items():
            entry = there.get(task.shown[place])
            if entry is None:
                continue
            if judge_too:
                entry = judged(entry, success, now, step=step)
            if task.done.used is None:
                entry = replace(entry, usage_count=entry.usage_count + 1, updated_at=max(now, entry.updated_at))
            tx.update(entry, change=None)
            detail: dict[str, int | float | str] = {"task": task.id, "success": int(success)}
            audit(tx, Event(at=now, tenant=entry.tenant, action="reinforce", entry_id=entry.id, detail=detail))

    # -- after a crash -----------------------------------------------------------------------------------------------

    def resume(self, partition: Partition, before: datetime) -> list[Task]:
        """Finish or abandon attempts that nothing has happened to since a moment.

        Those of one run are distilled together. One that somebody else goes on with is left alone.
        """
        left = [
            task for task in self._tasks.all(partition, states=UNFINISHED, limit=_MANY) if task.updated_at <= before
        ]
        ended: list[Task] = []
        runs: dict[str, list[Task]] = {}
        for task in reversed(left):  # oldest first
            with self._ending([task]):
                if task.state in ("ready", "executing"):
                    ended.append(self._tasks.move(task, "abandoned", why=LOST))
                elif task.run_id and task.state in ("judging", "distilling"):
                    runs.setdefault(task.run_id, []).append(self.judge(task) if task.state == "judging" else task)
                else:
                    ended.append(self.finish(task)[0])
        for made in runs.values():
            with self._ending(made):
                ended += self.finish_run(made)[0]
        return ended

    @contextmanager
    def _ending(self, attempts: Sequence[Task]) -> Iterator[None]:
        """Attempts that cannot be ended are abandoned, so that they do not keep others from it.

        A store or a model that does not answer is nobody's fault: that is raised, and another time will do.
        """
        try:
            yield
        except TaskMoved:
            return
        except (StoreError, ModelFailed):
            raise
        except Exception as error:
            for task in attempts:
                now = self._tasks.get(task.partition, task.id)
                if now is not None and "abandoned" in NEXT[now.state]:
                    self._tasks.move(now, "abandoned", why=type(error).__name__)


def _used(task: Task) -> list[int]:
    """Places of the items shown that count as used: all, when the trajectory does not say."""
    used = task.done.used
    return [place for place in range(len(task.shown)) if used is None or place in used]


def _shown(task: Task, reader: StoreReader) -> dict[str, Entry]:
    """The items that it was given, as they are now."""
    there = reader.get(None, task.shown)
    return {id: entry for id, entry in there.items() if entry.tenant == task.partition.tenant}

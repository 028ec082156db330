"""Attempts brought to their end: distilled, stored, and the items they were given made surer or less sure.

Models are called and texts embedded first. Then one transaction writes all of it: an attempt is finished or as before.
An item keeps every word of its task, because any of them may decide ("stable", "nightly").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from wellworn.core.errors import ModelFailed, NotFound, StoreError
from wellworn.core.values import Entry, Link, Partition
from wellworn.ingest.remember import keep
from wellworn.learning.log import FAILURE_STEP, OutcomeInput, judged
from wellworn.store.events import Event, audit
from wellworn.store.port import NewEntry, Selection, Tx
from wellworn.tasks import items
from wellworn.tasks.calls import called, followed, tried
from wellworn.tasks.consolidate import ended
from wellworn.tasks.distill import Distilled, distill
from wellworn.tasks.engine import Parts
from wellworn.tasks.judge import Verdict, judge
from wellworn.tasks.tasks import Task, TaskMoved, Tasks

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


class Finisher:
    """Takes attempts from `judging` to their end."""

    def __init__(self, parts: Parts, tasks: Tasks, added: Callable[[Tx, Partition, int], bool]) -> None:
        """`added` is told of new items in the transaction that stores them, and says whether it queued a job."""
        self._parts = parts
        self._tasks = tasks
        self._added = added

    def judge(self, task: Task) -> Verdict:
        """Whether the work of an attempt succeeded."""
        return judge(task.done, self._parts.engine.background.model(task.partition, task.session_id))

    def finish(self, attempts: Sequence[JudgedTask]) -> tuple[list[Task], Distilled]:
        """Attempts at one task, compared where there are several, distilled, stored and reinforced."""
        first = attempts[0][0]
        model = self._parts.engine.background.model(first.partition, first.session_id)
        found = distill([(task.done, verdict) for task, verdict in attempts], model)
        made = self._items(attempts, found)
        uses = [(task, used := self._uses(task, verdict), self._log(task, used)) for task, verdict in attempts]
        now = self._parts.engine.clock()
        with self._parts.writer.transact() as tx:
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
            self._parts.engine.background.wake()
        return over, found

    # -- what it taught ----------------------------------------------------------------------------------------------

    def _items(self, attempts: Sequence[JudgedTask], found: Distilled) -> list[tuple[NewEntry, list[str]]]:
        """The items as they are to be stored, each with the stored ones that it ends. Texts are embedded here."""
        writer, now, task = self._parts.writer, self._parts.engine.clock(), attempts[0][0]
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
        rows = self._parts.engine.store.select([task.partition], chosen, limit=MOST_TWINS) if tags else []
        return [one for _, one in rows if one.trust == trust and items.domain_of(one.tags) == task.domain]

    # -- what it was given -------------------------------------------------------------------------------------------

    def _uses(self, task: Task, verdict: Verdict) -> dict[str, Use]:
        """What the work says about the items that it used: as it says itself, else those whose calls it made, and
        guardrails about what it did another way. Where nothing can be compared, all count as used.

        A strategy whose calls were made and failed loses whatever the verdict, and a guardrail whose calls worked. An
        unsure verdict is about none.
        """
        uses: dict[str, Use] = {}
        there = self._parts.engine.store.get(None, task.shown)
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
        now, there = self._parts.engine.clock(), tx.get(None, [*uses])
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
        now, said = self._parts.engine.clock(), set(items.content_words(task.query))
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

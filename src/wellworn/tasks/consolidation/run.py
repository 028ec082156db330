"""Runs over a partition: read, compare, decide, write; and undo.

Comparing happens outside any transaction. Each batch of cases is then decided anew inside one, from the entries as
they stand, and written whole or not at all together with the record of how to take it back. So two processes may
consolidate one partition at once, entries may be used or changed meanwhile, and a process that dies leaves a shorter run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from wellworn.core.clock import Clock, NewId
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.values import Entry, Link, Partition, Progress
from wellworn.store.port import Event, Record, Store, Tx
from wellworn.tasks.consolidation.cases import find_cases
from wellworn.tasks.consolidation.record import Change, change_of, taken_back
from wellworn.tasks.consolidation.report import REVIEW, RUN, RUN_PART, Consolidation, Undone, counted, run_of
from wellworn.tasks.consolidation.rings import leads_to
from wellworn.tasks.consolidation.rows import LIVE, Rows, read_rows
from wellworn.tasks.consolidation.settings import ConsolidationSettings
from wellworn.tasks.consolidation.settle import Case, Decision, Settled, marked, settle

Finish = Callable[[Tx, Consolidation], None]
STALE_S = 120.0
"""A run that says it is running, and has written nothing for so long, is taken to have died."""
_MANY = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Consolidator:
    """Consolidates partitions of one store."""

    store: Store
    clock: Clock
    new_id: NewId
    settings: ConsolidationSettings = field(default_factory=ConsolidationSettings)

    # -- run -----------------------------------------------------------------------------------------------------

    def run(
        self,
        partition: Partition,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
        finish: Finish | None = None,
    ) -> Consolidation:
        """Consolidate a partition. `finish` is called in the transaction that ends the run; `dry_run` writes nothing."""
        began = time.perf_counter()
        tell = progress or _say_nothing
        at = self.clock()  # before anything is read: what is older took part
        rows = read_rows(self.store, partition)
        total = 2 * len(rows)
        run = Consolidation(
            id=self.new_id(),
            partition=partition,
            at=at,
            state="running",
            entries=len(rows),
            counts=counted([]),
            dry_run=dry_run,
        )
        if not dry_run and len(rows):
            self._begin(run)
        cases, left_out = find_cases(
            self.store,
            partition,
            rows,
            now=self.clock(),
            settings=self.settings,
            progress=lambda done, of: tell(len(rows) * done // of, total),
        )
        run = replace(run, left_out=left_out)
        decisions: list[Decision] = []
        places = {id: place for place, id in enumerate(rows.ids)}
        done = len(rows)
        for number, batch in enumerate(_batches(cases, self.settings.batch)):
            decisions += self._decide(run, number, batch, rows, places, dry_run=dry_run)
            done += sum(len(case.ids) for case in batch)
            tell(done, total)
        tell(total, total)
        run = replace(
            run,
            state="done",
            counts=counted(decisions),
            decisions=decisions,
            seconds=round(time.perf_counter() - began, 6),
        )
        if not dry_run:
            self._end(run, finish)
        return run

    def _begin(self, run: Consolidation) -> None:
        """Say that the partition's entries are being consolidated."""
        with self.store.transact() as tx:
            tx.put_record(run.record(state="running", now=self.clock()))
            detail: dict[str, int | float | str] = {"run": run.id, "entries": run.entries}
            tx.audit(Event(at=run.at, tenant=run.partition.tenant, action="consolidating", detail=detail))

    def _end(self, run: Consolidation, finish: Finish | None) -> None:
        with self.store.transact() as tx:
            tx.put_record(run.record(state="done", now=self.clock()))
            detail: dict[str, int | float | str] = {"run": run.id, **{name: n for name, n in run.counts.items() if n}}
            tx.audit(Event(at=self.clock(), tenant=run.partition.tenant, action="consolidate", detail=detail))
            if finish is not None:
                finish(tx, run)
        self._forget_old(run.partition)

    def _decide(
        self,
        run: Consolidation,
        number: int,
        batch: Sequence[Case],
        rows: Rows,
        places: dict[str, int],
        *,
        dry_run: bool,
    ) -> list[Decision]:
        """Decide some cases as their entries stand now, and write what comes of it."""
        ids = [id for case in batch for id in case.ids]
        if dry_run:
            found = self.store.get([run.partition], ids)
            return [
                decision for one in self._settled(batch, found, rows, places, None, run) for decision in one.decisions
            ]
        with self.store.transact() as tx:
            found = tx.get([run.partition], ids)
            settled = list(self._settled(batch, found, rows, places, tx, run))
            self._write(tx, run, number, settled, found)
        return [decision for one in settled for decision in one.decisions]

    def _settled(
        self,
        batch: Sequence[Case],
        found: dict[str, Entry],
        rows: Rows,
        places: dict[str, int],
        tx: Tx | None,
        run: Consolidation,
    ) -> Iterator[Settled]:
        look = self.store.record if tx is None else tx.record
        same = {id: entry for id, entry in found.items() if rows.unchanged(places[id], entry)}
        for case in batch:
            yield settle(
                case,
                same,
                lambda key: look(run.partition, REVIEW, key) is not None,
                now=self.clock(),
                settings=self.settings,
            )

    def _write(
        self, tx: Tx, run: Consolidation, number: int, settled: Sequence[Settled], found: dict[str, Entry]
    ) -> None:
        """Entries, links, reviews and the record of all of them."""
        after = {id: entry for one in settled for id, entry in one.after.items()}
        changes: list[Change] = []
        for id, entry in after.items():
            kept = marked(entry, run.id) if entry.state in LIVE else entry
            tx.update(kept, change=_label(run.id), before=found[id])
            changes.append(change_of(found[id], kept))
        for decision in (decision for one in settled for decision in one.decisions):
            tx.audit(_event(decision, run))
        links = self._new_links([link for one in settled for link in one.links])
        tx.add_links(links)
        reviews = [review for one in settled for review in one.reviews]
        for review in reviews:
            body = {"reason": review.reason, "ids": list(review.ids), "similarity": review.similarity, "run": run.id}
            tx.put_record(
                Record(
                    partition=run.partition,
                    kind=REVIEW,
                    key=review.key,
                    state="open",
                    body=body,
                    names=review.ids,
                    created_at=run.at,
                    updated_at=self.clock(),
                )
            )
        tx.put_record(run.record(state="running", now=self.clock()))
        if changes or links or reviews:
            part = {
                "changes": [change.value() for change in changes],
                "links": [[link.source, link.target, link.type] for link in links],
                "reviews": [review.key for review in reviews],
            }
            tx.put_record(
                Record(
                    partition=run.partition,
                    kind=RUN_PART,
                    key=f"{run.id}/{number:06d}",
                    state="done",
                    body=part,
                    created_at=run.at,
                    updated_at=self.clock(),
                )
            )

    def _new_links(self, links: Sequence[Link]) -> list[Link]:
        """Those that are not there yet and do not close a ring. Nobody else writes now, so what is read is all."""
        if not links:
            return []
        ends = sorted({end for link in links for end in (link.source, link.target)})
        types = sorted({link.type for link in links} | {"supersedes"})
        there = {(link.source, link.target, link.type) for link in self.store.links(ends, types=types)}
        replacing = {source for source, _, type_ in there if type_ == "supersedes"}

        def closes_ring(link: Link) -> bool:
            may = link.type == "supersedes" and link.target in replacing
            return may and leads_to(self.store, link.target, link.source, "supersedes")

        return [link for link in links if (link.source, link.target, link.type) not in there and not closes_ring(link)]

    # -- look back -----------------------------------------------------------------------------------------------

    def runs(self, partition: Partition, *, limit: int = 20) -> list[Consolidation]:
        """The runs over a partition, newest first."""
        return [run_of(record) for record in self.store.records(partition=partition, kinds=[RUN], limit=limit)]

    def undo(self, partition: Partition, run_id: str | None = None, *, progress: Progress | None = None) -> Undone:
        """Take a run back, by default the last that changed anything: entries, links and open questions as they were
        before it, but for what happened since. Undoing twice changes nothing the second time; one that was broken off
        is gone on with by the next call."""
        run = self._undoable(partition, run_id)
        parts = sorted(self._parts(partition, run.id), key=lambda part: part.key, reverse=True)
        restored, gone = 0, 0
        kept: list[str] = []
        for number, part in enumerate(parts, start=1):
            with self.store.transact() as tx:
                if not tx.drop_record(partition, RUN_PART, part.key):
                    continue  # someone else undoes it too
                for value in part.body["changes"]:
                    fate = self._take_back(tx, partition, run.id, Change(**value))
                    restored += fate != "gone"
                    gone += fate == "gone"
                    kept += [value["id"]] if fate == "kept" else []
                for source, target, type_ in part.body["links"]:
                    tx.remove_link(source, target, type_)
                for key in part.body["reviews"]:
                    asked = tx.record(partition, REVIEW, key)
                    if asked is not None and asked.state == "open":
                        tx.drop_record(partition, REVIEW, key)
            if progress is not None:
                progress(number, len(parts) + 1)
        with self.store.transact() as tx:
            tx.put_record(run.record(state="undone", now=self.clock()))
            detail: dict[str, int | float | str] = {"run": run.id, "restored": restored}
            tx.audit(Event(at=self.clock(), tenant=partition.tenant, action="undo_consolidation", detail=detail))
        return Undone(id=run.id, restored=restored, kept=kept, gone=gone)

    def _undoable(self, partition: Partition, run_id: str | None) -> Consolidation:
        if run_id is None:
            found = [
                run
                for run in self.runs(partition, limit=_MANY)
                if run.state != "undone" and self._parts(partition, run.id)
            ]
            if not found:
                raise NotFound("consolidation", f"of {partition.layer} {partition.layer_id}", "there is none to undo")
            run_id = found[0].id
        record = self.store.record(partition, RUN, run_id)
        if record is None:
            raise NotFound("consolidation", run_id, "see `wellworn bank runs`")
        if record.state == "running" and self.clock() - record.updated_at < timedelta(seconds=STALE_S):
            raise InvalidInput("run", f"{run_id} is running", f"wait for its end; one that died: {STALE_S:g} seconds")
        return run_of(record)

    def _parts(self, partition: Partition, run_id: str) -> list[Record]:
        found = self.store.records(partition=partition, kinds=[RUN_PART], limit=_MANY)
        return [part for part in found if part.key.startswith(f"{run_id}/")]

    def _take_back(self, tx: Tx, partition: Partition, run_id: str, change: Change) -> str:
        """Restore an entry: `restored`; `kept` where its state had to be left; `gone`."""
        now_is = tx.get([partition], [change.id]).get(change.id)
        versions = [old.entry for old in self.store.replaced(change.id) if old.change == _label(run_id)]
        if now_is is None or not versions:
            return "gone"
        back = taken_back(now_is, versions[0], change, self.clock())
        kept = now_is.state != change.state
        same = tx.find_same(partition, back.content_hash) if back.state in LIVE else None
        if same is not None and same.id != back.id:  # the same was learned again: one of them is enough
            back, kept = replace(back, state=now_is.state, valid_to=now_is.valid_to), True
        if back != replace(now_is, updated_at=back.updated_at):
            tx.update(back, change=f"undone {run_id}")
        return "kept" if kept else "restored"

    def _forget_old(self, partition: Partition) -> None:
        """Drop the records of runs beyond the last so many."""
        old = self.store.records(partition=partition, kinds=[RUN], limit=_MANY)[self.settings.keep_runs :]
        for run in old:
            parts = self._parts(partition, run.key)
            with self.store.transact() as tx:
                for part in parts:
                    tx.drop_record(partition, RUN_PART, part.key)
                tx.drop_record(partition, RUN, run.key)


def _label(run_id: str) -> str:
    """How an entry's history names what a run did to it."""
    return f"consolidated {run_id}"


def _batches(cases: Sequence[Case], size: int) -> Iterator[list[Case]]:
    """Cases together of about so many entries; a large case is a batch of its own."""
    batch: list[Case] = []
    entries = 0
    for case in cases:
        if batch and entries + len(case.ids) > size:
            yield batch
            batch, entries = [], 0
        batch.append(case)
        entries += len(case.ids)
    if batch:
        yield batch


def _event(decision: Decision, run: Consolidation) -> Event:
    detail: dict[str, int | float | str] = {"run": run.id}
    detail.update({name: value for name in ("other", "why") if (value := getattr(decision, name))})
    return Event(
        at=run.at, tenant=run.partition.tenant, action=f"bank_{decision.action}", entry_id=decision.id, detail=detail
    )


def _say_nothing(done: int, total: int) -> None:
    pass

"""Whether everything in the in-memory tables still points at something that is there."""

from __future__ import annotations

from collections.abc import Iterator

from wellworn.store.inmemory.tables import Tables
from wellworn.store.port import Flaw


def broken_references(tables: Tables) -> Iterator[Flaw]:
    """References without an end. Finding one means a bug: there is nothing else that could break them."""
    shelved = {no: board.no for board in tables.boards.values() for no in board.rows}
    for no, row in tables.rows.items():
        if shelved.get(no) != row.partition_no or tables.row_of.get(row.entry.id) != no:
            yield _flaw(f"entry {row.entry.id}", "is not on its partition, or not found by its id")
    for no in shelved.keys() - tables.rows.keys():
        yield _flaw(f"row {no}", "is on a partition and has no entry")
    for source, target, type_ in tables.links:
        if source not in tables.rows or target not in tables.rows:
            yield _flaw(f"link {source} {type_} {target}", "has an end that is gone")
    yield from _broken_log(tables)
    yield from _broken_work(tables)
    for what, nos in _hanging(tables):
        for no in nos - tables.rows.keys():
            yield _flaw(f"row {no}", f"is gone and has {what}")


def _broken_log(tables: Tables) -> Iterator[Flaw]:
    """Recalls and policies of partitions, and outcomes of recalls, that are gone."""
    for recall in tables.log.recalls.values():
        if recall.partition not in tables.boards:
            yield _flaw(f"recall {recall.id}", "is of a partition that is gone")
    for no, told in tables.log.told.items():
        if told.recall_id not in tables.log.recalls or tables.log.told_of[told.recall_id].get(told.kind) != no:
            yield _flaw(f"outcome {no}", "is of a recall that is gone, or not found by its kind")
    for _, partition, _ in tables.log.policies:
        if partition is not None and partition not in tables.boards:
            yield _flaw(f"policy of {partition}", "is of a partition that is gone")


def _broken_work(tables: Tables) -> Iterator[Flaw]:
    """Jobs of partitions, and records of partitions and entries, that are gone."""
    for job in tables.jobs.by_id.values():
        if job.partition not in tables.boards or tables.jobs.by_key.get((job.partition, job.kind, job.key)) != job.id:
            yield _flaw(f"job {job.id}", "is of a partition that is gone, or not found by its key")
    for record in tables.records.by_key.values():
        if record.partition not in tables.boards or any(name not in tables.row_of for name in record.names):
            yield _flaw(f"{record.kind} {record.key}", "is of a partition or an entry that is gone")


def _hanging(tables: Tables) -> Iterator[tuple[str, set[int]]]:
    """Row numbers that other tables refer to."""
    yield "older states", set(tables.left_behind)
    yield "links", set(tables.links_at)
    yield "postings", {no for nos in tables.postings.values() for no in nos}
    for model, vectors in tables.vectors.items():
        yield f"a vector of {model.name}", set(vectors)


def _flaw(subject: str, problem: str) -> Flaw:
    return Flaw(check="references", subject=subject, problem=problem, repairable=False)

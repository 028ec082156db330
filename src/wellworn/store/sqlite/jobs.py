"""Jobs in the SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from wellworn.core.clock import from_micros, to_micros
from wellworn.core.errors import StoreCorrupt, StoreError
from wellworn.core.values import Partition
from wellworn.store.port import Job
from wellworn.store.sqlite.queries import partition_no_of

_JOB = """
j.id, s.tenant, s.layer, s.layer_id, j.kind, j.key, j.payload, j.state, j.attempts, j.due_at, j.lease_until, j.worker,
j.error, j.result, j.created_at, j.updated_at
"""
_CHANGING = ("payload", "state", "attempts", "due_at", "lease_until", "worker", "error", "result", "updated_at")
"""What `put` may change; the rest says which job it is."""


def add(db: sqlite3.Connection, partition_no: int, job: Job) -> bool:
    there = db.execute(
        "SELECT 1 FROM jobs WHERE partition = ? AND kind = ? AND key = ?", (partition_no, job.kind, job.key)
    )
    if there.fetchone() is not None:
        return False
    db.execute(
        f"INSERT INTO jobs (id, partition, kind, key, created_at, {', '.join(_CHANGING)}) "
        f"VALUES ({', '.join('?' * (5 + len(_CHANGING)))})",
        (job.id, partition_no, job.kind, job.key, to_micros(job.created_at), *_changing(job)),
    )
    return True


def claim(
    db: sqlite3.Connection,
    worker: str,
    now: datetime,
    lease_until: datetime,
    *,
    kinds: Sequence[str] | None,
    tenant: str | None,
    id: str | None,
) -> Job | None:
    where, values = _conditions(kinds=kinds, tenant=tenant, id=id)
    row = db.execute(
        # Along the index of open jobs, which are few however many were ever done.
        "SELECT j.no, j.id FROM jobs j INDEXED BY jobs_open CROSS JOIN partitions s ON s.no = j.partition "
        "WHERE j.state IN ('queued', 'running') AND j.due_at <= ?1 AND (j.state = 'queued' OR j.lease_until <= ?1)"
        f"{where} ORDER BY j.due_at, j.no LIMIT 1",
        (to_micros(now), *values),
    ).fetchone()
    if row is None:
        return None
    db.execute(
        "UPDATE jobs SET state = 'running', attempts = attempts + 1, worker = ?, lease_until = ?, updated_at = ? "
        "WHERE no = ?",
        (worker, to_micros(lease_until), to_micros(now), row[0]),
    )
    return by_id(db, row[1])


def by_id(db: sqlite3.Connection, id: str) -> Job | None:
    row = db.execute(
        f"SELECT {_JOB} FROM jobs j JOIN partitions s ON s.no = j.partition WHERE j.id = ?", (id,)
    ).fetchone()
    return None if row is None else _job_from(row)


def by_key(db: sqlite3.Connection, partition: Partition, kind: str, key: str) -> Job | None:
    row = db.execute(
        f"SELECT {_JOB} FROM jobs j JOIN partitions s ON s.no = j.partition WHERE j.partition = ? AND j.kind = ? AND j.key = ?",
        (partition_no_of(db, partition), kind, key),
    ).fetchone()
    return None if row is None else _job_from(row)


def put(db: sqlite3.Connection, job: Job) -> None:
    changed = db.execute(
        f"UPDATE jobs SET {', '.join(f'{column} = ?' for column in _CHANGING)} "
        "WHERE id = ? AND partition = ? AND kind = ? AND key = ?",
        (*_changing(job), job.id, partition_no_of(db, job.partition), job.kind, job.key),
    ).rowcount
    if not changed:
        raise StoreError(f"no job {job.id!r} of this partition, kind and key to replace")


def prune(db: sqlite3.Connection, before: datetime) -> int:
    return db.execute("DELETE FROM jobs WHERE state = 'done' AND updated_at < ?", (to_micros(before),)).rowcount


def listed(
    db: sqlite3.Connection,
    *,
    tenant: str | None,
    partition: Partition | None,
    states: Sequence[str] | None,
    kinds: Sequence[str] | None,
    limit: int,
) -> list[Job]:
    where, values = _conditions(kinds=kinds, tenant=tenant, states=states, partition=partition)
    rows = db.execute(
        f"SELECT {_JOB} FROM jobs j JOIN partitions s ON s.no = j.partition WHERE 1{where} ORDER BY j.no DESC LIMIT ?",
        (*values, limit),
    )
    return [_job_from(row) for row in rows]


def count_on(db: sqlite3.Connection, partition_no: int) -> int:
    return int(db.execute("SELECT count(*) FROM jobs WHERE partition = ?", (partition_no,)).fetchone()[0])


def forget_sessions(db: sqlite3.Connection, partition_no: int, gone: Sequence[str], cut: Sequence[str]) -> int:
    """Drop the jobs of sessions that are gone; of those that lost some turns drop the ended ones and queue the running
    ones again. Returns how many were dropped."""
    about = "partition = ? AND json_extract(payload, '$.session') IN (SELECT value FROM json_each(?))"
    left = (partition_no, json.dumps(list(cut)))
    db.execute(
        f"UPDATE jobs SET state = 'queued', worker = NULL, lease_until = NULL WHERE {about} AND state = 'running'", left
    )
    return (
        db.execute(f"DELETE FROM jobs WHERE {about}", (partition_no, json.dumps(list(gone)))).rowcount
        + db.execute(f"DELETE FROM jobs WHERE {about} AND state IN ('done', 'dead')", left).rowcount
    )


def _conditions(
    *,
    kinds: Sequence[str] | None = None,
    states: Sequence[str] | None = None,
    tenant: str | None = None,
    partition: Partition | None = None,
    id: str | None = None,
) -> tuple[str, list[Any]]:
    """Conditions on `jobs j JOIN partitions s`, each beginning with AND, and their values."""
    given: list[tuple[str, Any]] = [("s.tenant", tenant), ("j.id", id)]
    if partition is not None:
        given += [("s.tenant", partition.tenant), ("s.layer", partition.layer), ("s.layer_id", partition.layer_id)]
    where = "".join(f" AND {column} = ?" for column, value in given if value is not None)
    values = [value for _, value in given if value is not None]
    for column, wanted in (("j.kind", kinds), ("j.state", states)):
        if wanted is not None:
            where += f" AND {column} IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(list(wanted), ensure_ascii=False))
    return where, values


def _changing(job: Job) -> tuple[Any, ...]:
    """The values of `_CHANGING`."""
    return (
        json.dumps(job.payload, ensure_ascii=False),
        job.state,
        job.attempts,
        to_micros(job.due_at),
        None if job.lease_until is None else to_micros(job.lease_until),
        job.worker,
        job.error,
        json.dumps(job.result, ensure_ascii=False),
        to_micros(job.updated_at),
    )


def _job_from(row: tuple[Any, ...]) -> Job:
    """The job of a row selected with `_JOB`."""
    (
        id_,
        tenant,
        layer,
        layer_id,
        kind,
        key,
        payload,
        state,
        attempts,
        due_at,
        lease_until,
        worker,
        error,
        result,
        created_at,
        updated_at,
    ) = row
    try:
        return Job(
            id=id_,
            partition=Partition(tenant=tenant, layer=layer, layer_id=layer_id),
            kind=kind,
            key=key,
            payload=json.loads(payload),
            state=state,
            attempts=attempts,
            due_at=from_micros(due_at),
            lease_until=None if lease_until is None else from_micros(lease_until),
            worker=worker,
            error=error,
            result=json.loads(result),
            created_at=from_micros(created_at),
            updated_at=from_micros(updated_at),
        )
    except (ValueError, TypeError, OverflowError) as problem:
        raise StoreCorrupt(f"job {id_!r} cannot be read: {problem}; run `wellworn doctor`") from problem

"""Calls, jobs and records as every store keeps them: checked, and sharing nothing that can be changed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wellworn.core.errors import StoreError
from wellworn.store.port import Call, Job, Record

JOB_STATES = ("queued", "running", "done", "dead")
GROUPS = ("tenant", "purpose", "model", "day")


def checked_call(call: Call) -> Call:
    """The call, if its numbers can be added up."""
    for name in ("input_tokens", "output_tokens", "usd", "seconds"):
        value = getattr(call, name)
        if not math.isfinite(value) or value < 0:
            raise StoreError(f"a call of {call.model!r} cannot have {name} = {value!r}; give a number from 0 up")
    return call


def checked_by(by: Sequence[str]) -> tuple[str, ...]:
    """What calls may be grouped by."""
    for name in by:
        if name not in GROUPS:
            raise StoreError(f"calls are not grouped by {name!r}; use {', '.join(GROUPS)}")
    return tuple(by)


def own_job(job: Job) -> Job:
    """A copy that shares nothing that can be changed; refused in a state that no job can be in."""
    problem = job_problem(job)
    if problem is not None:
        raise StoreError(f"job {job.id!r} {problem}")
    what = f"job {job.id!r}"
    return replace(
        job, payload=_own(job.payload, f"the payload of {what}"), result=_own(job.result, f"the result of {what}")
    )


def own_record(record: Record) -> Record:
    """A copy that shares nothing that can be changed; each entry is named once."""
    body = own_body(record.body, record.kind, record.key)
    return replace(record, body=body, names=tuple(dict.fromkeys(record.names)))


def own_body(body: dict[str, Any], kind: str, key: str) -> dict[str, Any]:
    """The body of a record, as it comes back from JSON."""
    return _own(body, f"the body of {kind} {key!r}")


def job_problem(job: Job) -> str | None:
    """What is impossible about a job, if anything."""
    if job.state not in JOB_STATES:
        return f"is in state {job.state!r}, which is not one of {', '.join(JOB_STATES)}"
    if job.attempts < 0:
        return f"was tried {job.attempts} times"
    running = job.state == "running"
    if (job.lease_until is not None) != running or (job.worker is not None) != running:
        return "is running without a worker and a lease" if running else f"is {job.state} and has a worker or a lease"
    return None


def _own(value: dict[str, Any], what: str) -> dict[str, Any]:
    """The value as it comes back from JSON."""
    try:
        own = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise StoreError(f"{what} is not JSON: {error}") from None
    if not isinstance(own, dict):
        raise StoreError(f"{what} is not a JSON object")
    return own

"""The routes of `/v1` for owners and operators: forgetting, counts, learning, jobs, the audit log, keys, exports.

What concerns a whole tenant (`whole`) is refused to a key that is bound to a part of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, BinaryIO, cast

from fastapi import Depends, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Send
from starlette.types import Scope as ASGIScope

from wellworn.core.errors import AccessDenied, TransferError
from wellworn.core.values import LearningStatus, Partition, Receipt, Stats
from wellworn.ingest.validate import as_time, checked_job_state
from wellworn.jobs.queue import list_jobs
from wellworn.ops.doctor import Report
from wellworn.ops.files import explained, scratch
from wellworn.ops.retention import Expired, RetentionPolicy, SignedReceipt
from wellworn.ops.transfer import Loaded, Written, export_into
from wellworn.server import bodies, keys, wire
from wellworn.server.guard import LOAD_PATH
from wellworn.server.routes import Limit, Reader, Writer
from wellworn.server.service import Call, Needs, ServiceReply, v1_routes

_CHUNK = 1 << 16
_LINES = "application/x-ndjson"

TenantReader = Annotated[Call, Depends(Needs("reader", layer=False))]
Admin = Annotated[Call, Depends(Needs("admin", layer=False))]
TenantAdmin = Annotated[Call, Depends(Needs("admin", layer=False, whole=True))]
KeyAdmin = Annotated[Call, Depends(Needs("admin", once=False, layer=False, whole=True))]
"""Made each time it is sent: an answer with the text of a key must not be kept."""
Loads = Annotated[Call, Depends(Needs("admin", once=False, layer=False))]
"""Made each time it is sent: its body is too large to be compared."""

care = v1_routes()


@care.post("/forget", tags=["care"], response_model=Receipt)
def forget(call: Writer, body: bodies.ForgetBody) -> Response:
    """Remove for good, and report what was removed. `everything` needs an admin."""
    if body.everything:
        call.caller.require("admin")
        call.require_named()
    return call.once(lambda: call.memory.forget(**body.given()))


@care.get("/stats", tags=["care"], response_model=Stats)
def stats(call: TenantReader) -> Response:
    """How much the scope holds."""
    return call.answer(call.memory.admin.stats())


# -- learning ----------------------------------------------------------------------------------------------------------


@care.get("/learning", tags=["learning"], response_model=LearningStatus)
def learning(call: Reader) -> Response:
    """What serves the scope's home layer now, and on which evidence."""
    return call.answer(call.memory.learning.status())


@care.get("/learning/export", tags=["learning"], response_model=wire.LearnedState)
def export_learning(call: Reader) -> Response:
    """What was learned for the tenant and the scope's home: numbers only."""
    return call.answer(wire.LearnedState(learned=call.memory.learning.export()))


@care.post("/learning/relearn", tags=["learning"], response_model=LearningStatus)
def relearn(call: TenantAdmin, body: bodies.RelearnBody) -> Response:
    """Learn the tenant's log again, after pairs of a query and the ids of its right entries, if any are given."""
    return call.once(lambda: call.memory.learning.relearn(**body.given()), long=True)


@care.post("/learning/reset", tags=["learning"], response_model=wire.Counted)
def reset_learning(call: TenantAdmin) -> Response:
    """Discard what the tenant's users taught."""
    return call.once(lambda: wire.Counted(count=call.memory.learning.reset()))


@care.post("/learning/share", tags=["learning"], response_model=wire.Done)
def share_learning(call: TenantAdmin, body: bodies.ShareBody) -> Response:
    """Choose whether the tenant's users learn from each other."""

    def work() -> wire.Done:
        call.memory.learning.share(body.on)
        return wire.Done(done=True)

    return call.once(work)


@care.post("/learning/practise", tags=["learning"], response_model=wire.Counted)
def practise(call: Writer, body: bodies.PractiseBody) -> Response:
    """Try every way of searching on questions made from the scope's own entries."""
    return call.once(lambda: wire.Counted(count=call.memory.learning.practise(**body.given())), long=True)


# -- jobs, costs, the audit log ----------------------------------------------------------------------------------------


@care.get("/jobs", tags=["jobs"], response_model=wire.JobList)
def jobs(call: TenantReader, state: str | None = None, limit: Limit = 100) -> Response:
    """Background work of the scope, or of the whole tenant if no layer is named, newest first."""
    store, states = call.memory.engine.store, None if state is None else [checked_job_state(state)]
    seen: Sequence[Partition | None] = call.scope.partitions() or [None]
    tenant = call.scope.tenant
    found = [job for one in seen for job in list_jobs(store, tenant=tenant, partition=one, states=states, limit=limit)]
    found.sort(key=lambda job: job.created_at, reverse=True)
    return call.answer(wire.JobList(jobs=found[:limit]))


@care.post("/jobs/run", tags=["jobs"], response_model=wire.Counted)
def run_jobs(call: TenantAdmin) -> Response:
    """End idle sessions and run every job of the tenant that is due."""
    return call.once(lambda: wire.Counted(count=call.memory.jobs.run()), long=True)


@care.post("/jobs/retry", tags=["jobs"], response_model=wire.Counted)
def retry_jobs(call: TenantAdmin, body: bodies.RetryBody) -> Response:
    """Queue a dead job of the tenant again, or all of them."""
    return call.once(lambda: wire.Counted(count=call.memory.jobs.retry(body.id)))


@care.get("/costs", tags=["care"], response_model=wire.SpentList)
def costs(call: TenantAdmin, since: str | None = None, by: str = "purpose,model") -> Response:
    """What model calls of the tenant cost, added up by any of `purpose`, `model`, `day`, with commas between them."""
    groups = [one.strip() for one in by.split(",") if one.strip()]
    return call.answer(wire.SpentList(spent=call.memory.admin.costs(since=since, by=groups)))


@care.get("/events", tags=["care"], response_model=wire.EventList)
def events(call: TenantAdmin, limit: Limit = 100) -> Response:
    """The tenant's audit log, newest first: who called what, and what was done to which entry, never its text."""
    call.service.trail.flush()
    return call.answer(wire.EventList(events=call.memory.admin.events(limit=limit)))


@care.post("/verify", tags=["care"], response_model=Report)
def verify(call: Admin) -> Response:
    """Check the whole store."""
    call.require_store("verify")
    with call.service.long():
        return call.answer(call.memory.verify())


# -- keeping and erasing -----------------------------------------------------------------------------------------------


@care.get("/retention", tags=["care"], response_model=RetentionPolicy)
def retention(call: TenantAdmin) -> Response:
    """How long the tenant keeps entries by kind, and recalls without an outcome."""
    return call.answer(call.memory.admin.retention())


@care.post("/retention", tags=["care"], response_model=RetentionPolicy)
def set_retention(call: TenantAdmin, body: bodies.PolicyBody) -> Response:
    """Set the policy."""
    return call.once(lambda: call.memory.admin.retention(body.policy()))


@care.post("/expire", tags=["care"], response_model=Expired)
def expire(call: TenantAdmin, body: bodies.ExpireBody) -> Response:
    """Forget what the policy no longer keeps; a dry run only counts it."""
    policy = None if body.policy is None else body.policy.policy()
    return call.once(lambda: call.memory.admin.expire(policy=policy, dry_run=body.dry_run), long=True)


@care.post("/erase", tags=["care"], response_model=SignedReceipt)
def erase(call: Admin) -> Response:
    """Erase the person (or other home layer) of the scope, with everything derived, and return a signed receipt.
    Whoever is erased must be named."""
    call.require_named()
    return call.once(lambda: call.memory.admin.erase(), long=True)


# -- keys --------------------------------------------------------------------------------------------------------------


@care.get("/keys", tags=["keys"], response_model=wire.KeyList)
def list_keys(call: TenantAdmin) -> Response:
    """The tenant's keys, newest first, without their secrets."""
    found = keys.list_keys(call.memory.engine.store, call.caller.tenant)
    return call.answer(wire.KeyList(keys=[_info(key) for key in found]))


@care.post("/keys", tags=["keys"], status_code=201, response_model=wire.NewKey)
def create_key(call: KeyAdmin, body: bodies.KeyBody) -> Response:
    """Make a key of the tenant. Its text is in the answer and nowhere else, so a request that is sent again makes
    another key."""
    key, text = keys.create_key(
        call.memory.engine.store,
        tenant=call.caller.tenant,
        role=body.role,
        now=call.memory.engine.clock(),
        name=body.name,
        layers=body.layers,
        expires_at=as_time("expires_at", body.expires_at),
    )
    call.access.id = key.id
    return call.answer(ServiceReply(value=wire.NewKey(key=text, info=_info(key)), status=201))


@care.post("/keys/{id}/rotate", tags=["keys"], status_code=201, response_model=wire.NewKey)
def rotate_key(call: KeyAdmin, id: str, body: bodies.RotateBody) -> Response:
    """Make a key in the place of another, which works until the grace is over."""
    grace = timedelta(seconds=body.grace_s)
    engine, tenant = call.memory.engine, call.caller.tenant
    key, text = keys.rotate_key(engine.store, id, now=engine.clock(), grace=grace, tenant=tenant)
    return call.answer(ServiceReply(value=wire.NewKey(key=text, info=_info(key)), status=201))


@care.delete("/keys/{id}", tags=["keys"], response_model=wire.KeyInfo)
def revoke_key(call: KeyAdmin, id: str) -> Response:
    """Refuse a key from now on."""
    engine, tenant = call.memory.engine, call.caller.tenant
    return call.answer(_info(keys.revoke_key(engine.store, id, now=engine.clock(), tenant=tenant)))


def _info(key: keys.ApiKey) -> wire.KeyInfo:
    """What may be told of a key: not its hash."""
    return wire.KeyInfo(**{field.name: getattr(key, field.name) for field in fields(wire.KeyInfo)})


# -- exports -----------------------------------------------------------------------------------------------------------


@care.get(
    "/export",
    tags=["care"],
    response_class=StreamingResponse,
    responses={200: {"description": "A lossless export", "content": {_LINES: {"schema": {"type": "string"}}}}},
)
def export(call: Admin, vectors: bool = True) -> StreamingResponse:
    """Everything that the scope sees, or of the whole tenant if no layer is named, as a file for `/v1/load`."""
    _refuse_encrypted(call, "export", "`wellworn admin export --plain`")
    engine = call.memory.engine
    file = cast("BinaryIO", TemporaryFile())  # noqa: SIM115  # `_Download` closes it
    try:
        with call.service.long(), explained("cannot write the export"):
            written = export_into(engine.store, file, scope=call.scope, vectors=vectors, now=engine.clock())
            call.access.count = written.entries
            return _Download(file, written)
    except BaseException:
        file.close()
        raise


class _Download(StreamingResponse):
    """A file that has no name, so that nobody finds it later, and that is gone when the answer is over, however it ends."""

    def __init__(self, file: BinaryIO, written: Written) -> None:
        self._file = file
        size = str(file.seek(0, os.SEEK_END))
        headers = {"x-wellworn-written": json.dumps(asdict(written)), "x-wellworn-bytes": size, "content-length": size}
        file.seek(0)
        super().__init__(iter(partial(file.read, _CHUNK), b""), media_type=_LINES, headers=headers)

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


@care.post(
    LOAD_PATH.removeprefix("/v1"),
    tags=["care"],
    response_model=Loaded,
    openapi_extra={"requestBody": {"required": True, "content": {_LINES: {"schema": {"type": "string"}}}}},
)
async def load(call: Loads, request: Request) -> Response:
    """Read an export back. Nothing is written outside the scope; what is there already is skipped."""
    _refuse_encrypted(call, "load", "`wellworn admin load`")
    with call.service.long(), scratch() as folder:
        file = Path(folder) / "export.jsonl"
        with file.open("wb") as opened:
            async for data in request.stream():
                await run_in_threadpool(opened.write, data)
        try:
            return call.answer(await run_in_threadpool(call.memory.admin.load, file))
        except TransferError as error:
            raise TransferError(str(error).replace(str(file), "the file")) from None


def _refuse_encrypted(call: Call, what: str, instead: str) -> None:
    if call.memory.engine.store.encrypted:
        raise AccessDenied(
            f"{what}: the store is encrypted, and the file would lie on the disk as it is (run {instead} beside it)"
        )

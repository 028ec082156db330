"""The routes of `/v1` for entries, recalls, sessions and tasks: each translates a request into one verb of `Memory`, and its
result into JSON. `care` has those for owners and operators.

Routes run on worker threads, so that no request holds up another. No rule of memory lives here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from threading import BoundedSemaphore
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import BeforeValidator
from starlette.background import BackgroundTask

from wellworn.core.citations import read_citation
from wellworn.core.errors import Conflict, InvalidInput, NotFound, ServiceFailed, WellwornError
from wellworn.core.locks import take_time
from wellworn.core.values import Entry, Job, Link, Reasoning, Recall, Receipt
from wellworn.core.wellformed import clean_text
from wellworn.ingest.validate import (
    MAX_K,
    MAX_QUERY_CHARS,
    WAIT_S,
    checked_count,
    checked_flag,
    checked_text,
    checked_wait,
)
from wellworn.integrations.loop import MAX_CHARS, TAG, memory_block, nothing_in, rule_of
from wellworn.search.filters import Filters
from wellworn.server import bodies, wire
from wellworn.server.guard import IMPORT_PATH, MOST_BODY, log_fault
from wellworn.server.service import Call, Needs, ServiceReply, etag_of, often_at_once, v1_routes
from wellworn.store.port import Tx
from wellworn.tasks import ReasoningBank

Reader = Annotated[Call, Depends(Needs("reader"))]
Writer = Annotated[Call, Depends(Needs("writer"))]
Limit = Annotated[int, Query(ge=1, le=1000)]
Cursor = Annotated[str | None, Query(max_length=300)]
Several = Annotated[
    list[str] | None, Query(max_length=64), BeforeValidator(lambda given: [] if given == [""] else given)
]
"""`kind=` is an empty list, which matches nothing."""
IfMatch = Annotated[str | None, Header(description="Change the entry only if this is still its ETag.")]
IfNoneMatch = Annotated[str | None, Header(description="Answer 304 if this is still the ETag.")]

MOST_LINES = 250_000
"""Of one import."""

v1 = v1_routes()


# -- the verb that is called most; routes are tried in order ---------------------------------------------------------


_RANKING = BoundedSemaphore(2)
"""Recalls that compute at once. More would wait for each other at every step: they share one interpreter."""


@v1.post("/recall", tags=["recall"], response_model=Recall)
@often_at_once
def recall(call: Reader, body: bodies.RecallBody) -> Response:
    """The entries that answer the query best, each with the reasons for its place."""
    engine = call.memory.engine
    if body.deadline_s is None:
        again = engine.router.again(
            body.query, scope=call.scope, k=body.k, filters=body.filters(), recursion=body.recursion
        )
        if again is not None:
            call.access.id = again["id"]
            return call.answer(again)
    take_time()
    with _RANKING if engine.searcher.bundled else nullcontext():  # others may wait for their embedder
        found = call.memory.recall(**body.given())
        call.access.id = found.id
        return call.answer(found)


# -- entries -----------------------------------------------------------------------------------------------------------


@v1.post("/entries", tags=["entries"], status_code=201, response_model=wire.EntryIds)
def create_entries(call: Writer, body: bodies.EntriesBody) -> Response:
    """Remember a text, or up to 1,000. A text that is there already is strengthened, not stored twice."""
    several = body.entries if isinstance(body, bodies.NewEntriesBody) else [body]

    def work() -> ServiceReply:
        ids = call.memory.remember_many([one.given() for one in several])
        return ServiceReply(value=wire.EntryIds(ids=ids), status=201)

    return call.once(work)


@v1.get("/entries", tags=["entries"], response_model=wire.EntryPage)
def list_entries(
    call: Reader,
    kind: Several = None,
    tag: Several = None,
    layer: Several = None,
    session_id: str | None = None,
    state: Several = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Entries that the scope sees, oldest first, a page at a time."""
    filters = Filters.of(kind=kind, tags=tag, layer=layer, session_id=session_id)
    partitions = [one for one in call.scope.partitions() if filters.layers is None or one.layer in filters.layers]
    selection = filters.selection(state)
    if cursor is not None and not (cursor.isdecimal() and cursor.isascii() and len(cursor) < 19):
        raise InvalidInput("cursor", f"{cursor!r:.40} is none", "give the `next` of the page before, or nothing")
    page = call.memory.engine.store.select(partitions, selection, after=int(cursor or 0), limit=limit + 1)
    more = str(page[limit - 1][0]) if len(page) > limit else None
    return call.answer(wire.EntryPage(entries=[entry for _, entry in page[:limit]], next=more))


@v1.get("/entries/{id}", tags=["entries"], response_model=Entry)
def get_entry(call: Reader, id: str, if_none_match: IfNoneMatch = None) -> Response:
    """One entry, whatever its state, with its ETag."""
    entry = call.memory.get(id)
    answer = call.answer(entry)
    if if_none_match is not None and _matches(if_none_match, etag_of(entry)):
        return Response(status_code=304, headers={"etag": etag_of(entry)})
    return answer


@v1.get("/entries/{id}/history", tags=["entries"], response_model=wire.VersionList)
def entry_history(call: Reader, id: str) -> Response:
    """Every state that the entry has had, oldest first."""
    return call.answer(wire.VersionList(versions=call.memory.history(id)))


@v1.get("/entries/{id}/links", tags=["entries"], response_model=wire.LinkList)
def entry_links(call: Reader, id: str) -> Response:
    """Links that start or end at the entry."""
    return call.answer(wire.LinkList(links=call.memory.links(id)))


@v1.patch("/entries/{id}", tags=["entries"], response_model=Entry)
def edit_entry(call: Writer, id: str, body: bodies.ChangeBody, if_match: IfMatch = None) -> Response:
    """Change fields of an entry; the former state stays in its history."""

    def work() -> Entry:
        expected = None
        if if_match is not None:
            expected = call.memory.get(id)
            if not _matches(if_match, etag_of(expected)):
                raise Conflict(f"entry {id!r} was changed meanwhile (read it again)", status=412)
        return call.memory.engine.changer.edit(id, scope=call.scope, changes=body.given(), expected=expected)

    return call.once(work)


@v1.delete("/entries/{id}", tags=["entries"], response_model=Receipt)
def delete_entry(call: Writer, id: str, turns: bool = False) -> Response:
    """Remove an entry for good, and what hangs on it; with `turns` also the raw turn it was said in."""
    return call.once(lambda: call.memory.forget([id], turns=turns))


@v1.post("/entries/{id}/supersede", tags=["entries"], response_model=Entry)
def supersede_entry(call: Writer, id: str, body: bodies.SupersedeBody) -> Response:
    """Record that another entry replaced this one; returns this one as it is now."""
    return call.once(lambda: call.memory.supersede(id, **body.given()))


@v1.post("/links", tags=["entries"], status_code=201, response_model=Link)
def create_link(call: Writer, body: bodies.LinkBody) -> Response:
    """Record that one entry stands in this relation to another."""
    return call.once(lambda: ServiceReply(value=call.memory.link(**body.given()), status=201))


@v1.delete("/links", tags=["entries"], response_model=wire.Done)
def delete_link(call: Writer, source: str, target: str, type: str) -> Response:
    """Remove a link."""
    return call.once(lambda: wire.Done(done=call.memory.unlink(source, target, type)))  # type: ignore[arg-type]


@v1.post(
    IMPORT_PATH.removeprefix("/v1"),
    tags=["entries"],
    response_class=StreamingResponse,
    responses={200: {"description": "Events `progress`, then `done` or `error`", "content": {"text/event-stream": {}}}},
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
    },
)
async def bulk_import(
    call: Annotated[Call, Depends(Needs("writer", once=False))], request: Request
) -> StreamingResponse:
    """Remember many texts: one JSON text or object a line, as in `/v1/entries`. All are checked before the first is
    stored. The import goes on when the connection breaks; sent again, nothing is stored twice."""
    with ExitStack() as long:
        long.enter_context(call.service.long())
        items = await _items(request)
        running = long.pop_all()
    call.access.count = len(items)
    events: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def put(kind: str, value: Any) -> None:  # any value of ours
        loop.call_soon_threadsafe(events.put_nowait, (kind, value))

    def tell(done: int, total: int) -> None:
        put("progress", [done, total])
        if done < total:
            call.service.gate.check(call.caller)

    def work() -> None:
        try:
            ids = call.memory.remember_many(items, progress=tell)
            put("done", wire.EntryIds(ids=ids))
        except WellwornError as error:
            log_fault(error)
            put("error", wire.problem_of(error))
        except BaseException:
            put("error", wire.problem(500, "the import failed; see the log of the server", "WellwornError"))
            raise

    async def stream() -> AsyncIterator[bytes]:
        kind = ""
        while kind not in ("done", "error"):
            kind, value = await events.get()
            data = {"done": value[0], "total": value[1]} if kind == "progress" else value
            yield f"event: {kind}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"

    async def load() -> None:
        with running:
            await run_in_threadpool(work)

    until_stored = BackgroundTask(asyncio.wait, {asyncio.create_task(load())})  # also when the caller leaves
    return StreamingResponse(stream(), media_type="text/event-stream", background=until_stored)


# -- recall ------------------------------------------------------------------------------------------------------------


@v1.post("/reason", tags=["recall"], response_model=Reasoning)
def reason(call: Reader, body: bodies.ReasonBody) -> Response:
    """The chain of entries that bears on a question, and what follows from them."""
    with call.service.long():
        found = call.memory.reason(**body.given())
    call.access.id = found.recall.id
    return call.answer(found)


@v1.post("/recalls/{id}/outcome", tags=["recall"], response_model=wire.Done)
def report_outcome(call: Writer, id: str, body: bodies.OutcomeBody) -> Response:
    """Report how a recall turned out: exactly one of the fields."""
    return call.once(lambda: wire.Done(done=call.memory.outcome(id, **body.given())))


@v1.post("/context", tags=["recall"], response_model=wire.PromptContext)
def prompt_context(call: Reader, body: bodies.ContextBody) -> Response:
    """What is remembered that bears on a message, as text to put before it in a prompt: data, fenced and escaped."""
    cites = checked_flag("citations", body.citations)
    query = checked_text("message", clean_text(body.message) if isinstance(body.message, str) else body.message)
    found = call.memory.recall(query[:MAX_QUERY_CHARS], k=body.k, min_confidence=body.min_confidence)
    now = call.memory.engine.clock()
    block_of = partial(memory_block, found.hits, format="structured", tag=TAG, max_chars=MAX_CHARS, now=now)
    block = block_of(numbered=cites)
    if cites and block.shown < len(found.hits):  # what is not shown cannot be cited, so silence would say nothing
        cites, block = False, block_of(numbered=False)
    text = f"{rule_of(TAG, citations=cites)}\n\n{block.text}" if block.shown else ""
    if found.searched and not found.hits and body.min_confidence:
        text = nothing_in(TAG)
    value = wire.PromptContext(recall_id=found.id, text=text, shown=block.shown if cites else 0)
    call.access.id = found.id
    return call.answer(value)


@v1.post("/recalls/{id}/answer", tags=["recall"], response_model=wire.ReadAnswer)
def read_answer(call: Writer, id: str, body: bodies.AnswerBody) -> Response:
    """Take the citations out of what a model answered after a `context`, and learn from them."""
    answer = clean_text(body.answer) if isinstance(body.answer, str) else body.answer
    read = read_citation(checked_text("answer", answer), checked_count("shown", body.shown, most=MAX_K))
    if read.places is not None:
        with suppress(NotFound):  # learning is off, or the recall was forgotten
            call.memory.outcome(id, cited=read.places)  # reported again, it changes nothing
    return call.answer(wire.ReadAnswer(text=read.text, cited=read.places))


# -- sessions ----------------------------------------------------------------------------------------------------------


@v1.get("/sessions", tags=["sessions"], response_model=wire.SessionPage)
def list_sessions(call: Reader, layer: str | None = None, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Ids of the sessions of the scope's home layer, oldest first."""
    ids = call.memory.sessions(layer=layer)  # type: ignore[arg-type]
    if cursor is not None and cursor not in ids:
        raise InvalidInput("cursor", f"there is no session {cursor!r:.80}", "begin again without it")
    first = 0 if cursor is None else ids.index(cursor) + 1
    page = ids[first : first + limit]
    return call.answer(wire.SessionPage(sessions=page, next=page[-1] if first + limit < len(ids) else None))


@v1.get("/sessions/{id:path}/turns", tags=["sessions"], response_model=wire.TurnList)
def list_turns(call: Reader, id: str) -> Response:
    """Every turn of a session, verbatim, in order."""
    return call.answer(wire.TurnList(turns=call.memory.session(id).turns()))


@v1.post("/sessions/{id:path}/turns", tags=["sessions"], status_code=201, response_model=wire.EntryList)
def add_turns(call: Writer, id: str, body: bodies.TurnsBody) -> Response:
    """Add turns in one durable write. A known id continues its session."""
    engine, session, request = call.memory.engine, call.memory.session(id), call.wanted

    def note(tx: Tx, entries: list[Entry]) -> None:
        if request is not None:
            stop = entries[-1].turn_refs[0] + 1
            call.service.requests.note(tx, request, {"stop": stop, "at": engine.clock().isoformat()})

    def work() -> ServiceReply:
        drafts = [session.writer.draft(**one.given()) for one in body.turns]
        return _turns_reply(session.writer.write(session.writer.ready(drafts), also=note))

    def again(noted: dict[str, Any]) -> ServiceReply:
        stop, at = int(noted["stop"]), datetime.fromisoformat(noted["at"])
        ids = [turn.entry_id or "" for turn in session.turns() if stop - len(body.turns) <= turn.number < stop]
        found = engine.store.get([call.scope.home()], ids)
        kept = [found[one] for one in ids if one in found and found[one].created_at <= at]
        if not kept:  # others may have their numbers now
            raise Conflict("Idempotency-Key: what this request said was forgotten (use a new one)", status=410)
        return _turns_reply(kept)

    return call.once(work, again)


@v1.post("/sessions/{id:path}/end", tags=["sessions"], response_model=wire.SessionEnd)
def end_session(call: Writer, id: str, body: bodies.EndBody | None = None) -> Response:
    """End a session: what was said becomes memories, in the background."""
    wait = min(checked_wait(body is not None and body.wait), WAIT_S)
    return call.once(lambda: wire.SessionEnd(job=_shown(call.memory.session(id).end(wait=wait))), long=bool(wait))


@v1.delete("/sessions/{id:path}", tags=["sessions"], response_model=Receipt)
def delete_session(call: Writer, id: str, layer: str | None = None) -> Response:
    """Remove a session for good: its turns, its entries and what was derived from them."""
    return call.once(
        lambda: call.memory.forget(session_id=id, layer=layer)  # type: ignore[arg-type]
    )


@v1.post("/reflect", tags=["sessions"], response_model=wire.ReflectionList)
def reflect(call: Writer, body: bodies.ReflectBody) -> Response:
    """Turn what was said into memories now."""

    def work() -> ServiceReply:
        made = call.memory.reflect(**body.given())
        names = tuple(memory.id for one in made for memory in one.memories)
        return ServiceReply(value=wire.ReflectionList(reflections=made), names=names)

    return call.once(work, long=True)


# -- tasks -------------------------------------------------------------------------------------------------------------


@v1.post("/tasks", tags=["tasks"], status_code=201, response_model=wire.TaskStart)
def begin_task(call: Writer, body: bodies.TaskBody) -> Response:
    """Begin a task and get what worked or failed in similar ones."""

    def work() -> ServiceReply:
        begun = ReasoningBank(call.memory).begin(**body.given())
        if not begun.stored:
            raise ServiceFailed("the task could not be stored (try again)")
        recall_id, names = begun.task.recall_id, tuple(hit.entry.id for hit in begun.hits)
        value = wire.TaskStart(id=begun.task.id, task_id=begun.task_id, recall_id=recall_id, hits=begun.hits)
        return ServiceReply(value=value, status=201, names=names)

    return call.once(work)


@v1.post("/tasks/{id:path}/finish", tags=["tasks"], response_model=wire.TaskEnd)
def finish_task(call: Writer, id: str, body: bodies.FinishBody) -> Response:
    """Finish a task: the work is judged, and what it teaches is kept for the next one."""

    def work() -> ServiceReply:
        out = ReasoningBank(call.memory).finish(id, **body.given())
        if out.fault:
            raise ServiceFailed(f"the work was not stored: {out.fault} (try again)")
        items = [call.memory.get(one) for one in out.entry_ids]
        value = wire.TaskEnd(id=out.id, task_id=out.task_id, outcome=out.verdict.outcome, items=items)
        return ServiceReply(value=value, names=tuple(out.entry_ids))

    return call.once(work, long=True)


@v1.get("/tasks", tags=["tasks"], response_model=wire.TaskList)
def list_tasks(call: Reader, state: str | None = None, limit: Limit = 100) -> Response:
    """Attempts at tasks, newest first."""
    return call.answer(wire.TaskList(tasks=ReasoningBank(call.memory).tasks(state=state, limit=limit)))


@v1.get("/items", tags=["tasks"], response_model=wire.ItemList)
def list_items(call: Reader, domain: str | None = None, kind: Several = None, limit: Limit = 20) -> Response:
    """Strategies and guardrails that tasks taught, the surest first."""
    return call.answer(wire.ItemList(items=ReasoningBank(call.memory).items(domain=domain, kind=kind, limit=limit)))


@v1.post("/items/search", tags=["tasks"], response_model=Recall)
def search_items(call: Reader, body: bodies.ItemsBody) -> Response:
    """The strategies and guardrails that help most with a task."""
    found = ReasoningBank(call.memory).retrieve(**body.given())
    call.access.id = found.id
    return call.answer(found)


def _turns_reply(entries: list[Entry]) -> ServiceReply:
    return ServiceReply(value=wire.EntryList(entries=entries), status=201)


def _shown(job: Job | None) -> Job | None:
    """A job without the name of the process that runs it."""
    return None if job is None else replace(job, worker=None)


def _matches(given: str, etag: str) -> bool:
    return given.strip() == "*" or etag in [one.strip() for one in given.split(",")]


async def _items(request: Request) -> list[Any]:
    """The text or object of each line of an import, up to the first line that is neither."""
    items: list[Any] = []
    seen, rest = 0, bytearray()
    async for part in request.stream():
        data = part or b"\n"  # the last is empty
        rest += data
        if b"\n" in data:
            *lines, rest = rest.split(b"\n")
            items += await run_in_threadpool(_parsed, lines, seen + 1)
            seen += len(lines)
        if len(rest) > MOST_BODY:
            raise InvalidInput(f"line {seen + 1}", f"is larger than {MOST_BODY:,} bytes", "split it")
        if len(items) > MOST_LINES:
            raise InvalidInput("body", f"has more than {MOST_LINES:,} lines", "send it in parts")
    return items


def _parsed(lines: list[bytearray], first: int) -> list[Any]:
    items = []
    for number, line in enumerate(lines, start=first):
        if line.strip():
            try:
                items.append(json.loads(line))
            except (ValueError, RecursionError):
                items.append(None)
            if not isinstance(items[-1], str | dict):
                raise InvalidInput(f"line {number}", "is not a JSON text or object", "write one a line")
    return items

"""The threads on which routes run, and that a plain request is answered as FastAPI answers any other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import httpx
import pytest

from wellworn.learning.records import LearningLog
from wellworn.server.service import Trail
from wellworn.server.workers import MOST_THREADS, Workers

from .conftest import WAIT_S, Running, serving

WHO: ContextVar[str] = ContextVar("who")


@pytest.fixture
def workers() -> Iterator[Workers]:
    made, before = Workers(), {*threading.enumerate()}
    yield made
    made.stop()
    for thread in {*threading.enumerate()} - before:
        thread.join(WAIT_S)
        assert not thread.is_alive()


def test_what_runs_sees_the_context_and_its_errors_come_back(workers: Workers) -> None:
    async def told(name: str) -> str:
        WHO.set(name)
        return await workers.run(lambda greeting: f"{greeting} {WHO.get()}", "hello")

    async def all_at_once() -> list[str]:
        return await asyncio.gather(*(told(name) for name in ("Ada", "Ben")))

    assert asyncio.run(all_at_once()) == ["hello Ada", "hello Ben"]
    with pytest.raises(ZeroDivisionError):
        asyncio.run(workers.run(lambda: 1 / 0))
    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(workers.run(lambda: next(iter(()))))


def test_one_after_the_other_need_one_thread(workers: Workers) -> None:
    async def three() -> set[int]:
        return {await workers.run(threading.get_ident) for _ in range(3)}

    assert len(asyncio.run(three())) == 1


def test_more_than_there_are_threads_wait_for_their_turn(workers: Workers) -> None:
    full = threading.Barrier(MOST_THREADS)

    async def flood() -> list[int]:
        return await asyncio.gather(*(workers.run(full.wait, WAIT_S) for _ in range(2 * MOST_THREADS)))

    assert sorted(asyncio.run(flood())) == sorted([*range(MOST_THREADS)] * 2)


def test_what_was_begun_goes_on_when_nobody_waits_for_it(workers: Workers) -> None:
    may_end, ended = threading.Event(), threading.Event()

    def work() -> None:
        may_end.wait(WAIT_S)
        ended.set()

    async def leave() -> str:
        waiting = asyncio.create_task(workers.run(work))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        may_end.set()
        return await workers.run(lambda: "another")

    assert asyncio.run(leave()) == "another"
    assert ended.wait(WAIT_S)


def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    begun, may_end, one = list[str](), threading.Event(), Workers(most=1)

    async def leave() -> None:
        first = asyncio.create_task(one.run(may_end.wait, WAIT_S))
        second, third = (asyncio.create_task(one.run(begun.append, name)) for name in ("second", "third"))
        await asyncio.sleep(0)
        second.cancel()
        may_end.set()
        await asyncio.gather(first, third)

    asyncio.run(leave())
    one.stop()
    assert begun == ["third"]


# -- plain requests ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serving(background=False) as running:
        yield running


JSON = {"content-type": "application/json"}
PLAIN = [
    ({"content": b'{"query": "tea"}', "headers": JSON}, 200, None),
    (
        {"content": b'{"query": "tea"}', "headers": {"content-type": "application/vnd.us+json; charset=utf-8"}},
        200,
        None,
    ),
    ({"content": b'{"query": "tea"}'}, 422, "body: is not sent as JSON"),
    ({"content": b'{"query": "tea"', "headers": JSON}, 422, "body: is not JSON"),
    ({"content": b"[" * 100_000, "headers": JSON}, 400, "There was an error parsing the body"),
    ({"content": b"", "headers": JSON}, 422, "body: field required"),
    ({"content": b"[]", "headers": JSON}, 422, "body: input should be"),
    ({"content": b'{"query": "tea", "limit": 5}', "headers": JSON}, 422, "limit: extra inputs are not permitted"),
    ({"content": b'{"query": "tea"}', "headers": JSON, "params": {"usr": "ada"}}, 422, "usr: is no parameter"),
    ({"content": b"nothing", "params": {"usr": "ada"}, "headers": JSON}, 422, "body: is not JSON"),
]


def test_what_is_known_needs_no_thread(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(query: str = "Where is the kettle?", **more: object) -> list[str]:
        answer = server.http().post("/v1/recall", json={"query": query, **more}).raise_for_status()
        return [hit["entry"]["text"] for hit in answer.json()["hits"]]

    threads, run = list[str](), server.service.workers.run
    for log in (LearningLog, Trail):  # what is logged is a commit, too: after it the answer is looked at once more
        monkeypatch.setattr(log, "flush", lambda _: None)

    async def counted(function: Any, *args: Any) -> Any:
        threads.append("one")
        return await run(function, *args)

    monkeypatch.setattr(server.service.workers, "run", counted)
    assert told() == []
    server.http().post("/v1/entries", json={"text": "The kettle is in the shed."}).raise_for_status()
    threads.clear()
    assert told() == told() == told() == ["The kettle is in the shed."]
    assert len(threads) == 1
    ids = [server.http().post("/v1/recall", json={"query": "Where is the kettle?"}).json()["id"] for _ in range(2)]
    assert len(threads) == 1
    for recall_id in ids:  # each was logged as a recall of its own
        server.http().post(f"/v1/recalls/{recall_id}/outcome", json={"cited": [0]}).raise_for_status()
    threads.clear()
    assert told(deadline_s=5.0) == told(recursion="always") == ["The kettle is in the shed."]
    assert len(threads) == 2
    assert server.http().post("/v1/recall", json={"query": "Where is the kettle?", "k": 0}).status_code == 422


@pytest.mark.parametrize(("given", "status", "detail"), PLAIN)
def test_a_body_that_is_not_plain_has_the_words_of_the_schema(
    server: Running, given: dict[str, object], status: int, detail: str | None
) -> None:
    answer: httpx.Response = server.http().post("/v1/recall", **given)  # type: ignore[arg-type]
    assert answer.status_code == status, answer.text
    assert detail is None or answer.json()["detail"].startswith(detail)


def test_a_body_that_comes_in_parts_is_read_whole(server: Running) -> None:
    parts = iter((b'{"que', b'ry": "', b'tea"}'))
    assert server.http().post("/v1/recall", content=parts, headers=JSON).json()["query"] == "tea"
    refused = server.http().post("/v1/recall", content=iter((b'{"que', b'ry": 5, "x": 1}')), headers=JSON)
    assert (refused.status_code, refused.json()["field"]) == (422, "x")

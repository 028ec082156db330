"""How requests are answered: once, in pages, only if unchanged, and never with a failure of the server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from wellworn import (
    Client,
    EmbeddingFailed,
    Event,
    InvalidInput,
    Memory,
    NotFound,
    ServiceFailed,
    StoreClosed,
    StoreUnreachable,
)
from wellworn.core.locks import patience_left
from wellworn.models.hashing import HashEmbedder
from wellworn.models.port import Matrix
from wellworn.server import app, guard, routes
from wellworn.server.guard import LOOPBACK, Rules
from wellworn.server.service import MOST_LONG, REQUEST
from wellworn.server.workers import MOST_THREADS
from wellworn.store.port import RecordFilter

from .conftest import ME, WAIT_S, Running, serving


@pytest.fixture(scope="module")
def shared() -> Iterator[Running]:
    """One server for tests that leave nothing behind which others see."""
    with serving(background=False) as running:
        yield running


def once(name: str) -> dict[str, str]:
    return {"idempotency-key": name}


# -- once ----------------------------------------------------------------------------------------------------------


def test_a_write_that_was_made_is_not_told_to_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise StoreUnreachable("it is away")

    with serving(background=False) as running:
        (id,) = running.client().for_user("ada").remember("Ada likes tea")
        monkeypatch.setattr(running.service.requests, "note", away)
        assert running.http().delete(f"/v1/entries/{id}?user=ada", headers=once("gone")).status_code < 300


WRITES: dict[str, tuple[str, str, Any]] = {
    "entry": ("POST", "/v1/entries", {"text": "tea"}),
    "turns": ("POST", "/v1/sessions/s/turns", {"turns": [{"role": "user", "text": "I live in Oslo"}] * 2}),
    "outcome": ("POST", "/v1/recalls/{recall}/outcome", {"cited": [0]}),
    "edit": ("PATCH", "/v1/entries/{entry}", {"text": "Ada likes coffee"}),
    "delete": ("DELETE", "/v1/entries/{entry}", None),
    "forget": ("POST", "/v1/forget", {"ids": ["{entry}"]}),
    "end": ("POST", "/v1/sessions/talk/end", {}),
}


def changes(client: Client) -> list[Event]:
    """The audit log without the calls themselves."""
    return [event for event in client.admin.events() if "status" not in event.detail]


def test_a_write_is_made_once_also_after_a_restart(tmp_path: Path) -> None:
    sent: dict[str, tuple[str, str, str | None]] = {}

    def send(http: httpx.Client, name: str) -> httpx.Response:
        method, url, content = sent[name]
        return http.request(method, url, content=content, headers={"content-type": "application/json", **once(name)})

    with serving(tmp_path / "memory.db", background=False) as running:
        client, http = running.client(), running.http()
        client.session("talk").add("user", "Hello there, I am Ada")
        for name, (method, path, body) in WRITES.items():
            (entry,) = client.remember(f"Ada likes tea for the {name}")
            url = path.format(entry=entry, recall=client.recall("what does Ada like").id)
            sent[name] = (method, url, None if body is None else json.dumps(body).replace("{entry}", entry))
        first = {name: send(http, name) for name in WRITES}
        assert [one.text for one in first.values() if not one.is_success] == []
        state = [*changes(client), client.entries()]
        again = {name: send(http, name) for name in WRITES}
    with serving(tmp_path / "memory.db", background=False) as running:
        third = {name: send(running.http(), name) for name in WRITES}
        assert [*changes(running.client()), running.client().entries()] == state
    for name, one in first.items():
        assert again[name].status_code == third[name].status_code == one.status_code, name
        assert again[name].json() == third[name].json() == one.json(), name
        assert again[name].headers.get("etag") == one.headers.get("etag")


def test_a_name_stands_for_one_request(server: Running) -> None:
    http = server.http()
    assert http.post("/v1/entries", json={"text": "tea"}, headers=once("n")).status_code == 201
    answer = http.post("/v1/entries", json={"text": "coffee"}, headers=once("n"))
    assert (answer.status_code, answer.json()["title"]) == (422, "Conflict")
    assert http.post("/v1/entries?user=ben", json={"text": "tea"}, headers=once("n")).status_code == 422
    assert http.post("/v1/entries", json={"text": "x"}, headers=once("n" * 300)).status_code == 422
    for _ in range(2):  # a failure is not remembered
        assert http.delete("/v1/entries/later", headers=once("failed")).status_code == 404
    assert [one.text for one in server.client().entries()] == ["tea"]


def test_the_same_request_at_the_same_time_is_refused(server: Running) -> None:
    http, writer, refused = server.http(), server.service.memory.engine.writer, []
    remember = writer.remember

    def while_it_runs(*args: Any, **kwargs: Any) -> list[str]:
        refused.append(server.http().post("/v1/entries", json={"text": "tea"}, headers=once("n")))
        return remember(*args, **kwargs)

    writer.remember = while_it_runs  # type: ignore[method-assign]
    assert http.post("/v1/entries", json={"text": "tea"}, headers=once("n")).status_code == 201
    assert [(one.status_code, one.headers["retry-after"]) for one in refused] == [(409, "1")]


def test_turns_that_two_servers_of_one_file_get_at_once_are_said_once(tmp_path: Path) -> None:
    turns = {"turns": [{"role": "user", "text": "I am vegan."}, {"role": "assistant", "text": "Noted."}]}
    with serving(tmp_path / "a.db", background=False) as one, serving(tmp_path / "a.db", background=False) as other:
        writer = one.service.memory.engine.writer
        ready, answers = writer.records_of, []

        def late(*args: Any) -> Any:
            answers.append(other.http().post("/v1/sessions/s/turns", json=turns, headers=once("n")))
            return ready(*args)

        writer.records_of = late  # type: ignore[method-assign, assignment]
        refused = one.http().post("/v1/sessions/s/turns", json=turns, headers=once("n"))
        assert (refused.status_code, refused.headers["retry-after"]) == (409, "1")
        again = one.http().post("/v1/sessions/s/turns", json=turns, headers=once("n"))
        assert (again.status_code, again.json()) == (201, answers[0].json())
        assert len(one.http().get("/v1/sessions/s/turns").json()["turns"]) == 2


def test_what_was_answered_goes_after_a_day_and_with_the_entry() -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    clock = [now]
    with serving(clock=lambda: clock[0], background=False) as running:
        store = running.service.memory.engine.store
        client = running.client()
        (id,) = client.remember("the vault opens with zebra")
        client.edit(id, text="the vault opens with tiger")
        kept = str([record.body for record in store.records(RecordFilter(kinds=[REQUEST]))])
        assert "tiger" in kept
        client.forget([id])
        kept = str([record.body for record in store.records(RecordFilter(kinds=[REQUEST]))])
        assert "tiger" not in kept
        clock[0] = now + timedelta(days=2)
        assert running.service.requests.prune() > 0
        assert store.records(RecordFilter(kinds=[REQUEST])) == []


def test_a_client_sends_a_lost_write_again_without_harm(server: Running) -> None:
    client = server.client()
    session = client.session("s")
    http = client.connection.http  # which loses an answer
    send, lost = http.send, list[httpx.Response]()

    def losing(*args: Any, **kwargs: Any) -> httpx.Response:
        answer: httpx.Response = send(*args, **kwargs)
        if not lost:
            answer.read()
            lost.append(answer)
            raise httpx.ReadError("gone")
        return answer

    http.send = losing
    session.add("user", "I live in Oslo")
    assert len(lost) == 1
    assert [turn.text for turn in session.turns()] == ["I live in Oslo"]


def test_turns_that_were_forgotten_are_not_taken_for_others() -> None:
    start = datetime(2026, 5, 1, tzinfo=UTC)
    clock = count()
    with serving(clock=lambda: start + timedelta(seconds=next(clock)), background=False) as running:
        http = running.http()

        def said(text: str, name: str) -> httpx.Response:
            return http.post(
                "/v1/sessions/s/turns", json={"turns": [{"role": "user", "text": text}]}, headers=once(name)
            )

        said("My PIN is 4711.", "first")
        assert said("My PIN is 4711.", "first").json()["entries"][0]["text"] == "My PIN is 4711."
        http.delete("/v1/sessions/s")
        for _ in range(2):  # before and after somebody says more
            again = said("My PIN is 4711.", "first")
            assert (again.status_code, again.json()["title"]) == (410, "Conflict")
            said("I like tea.", "second")
        assert [turn.text for turn in running.client().session("s").turns()] == ["I like tea."]


# -- only if unchanged, in pages -----------------------------------------------------------------------------------


def test_an_edit_may_ask_for_the_version_it_saw(shared: Running) -> None:
    client, http = shared.client(), shared.http()
    (id,) = client.remember("The tram stops at nine")
    url = f"/v1/entries/{id}"
    seen = http.get(url).headers["etag"]
    assert http.get(url, headers={"if-none-match": seen}).status_code == 304
    assert http.get(url, headers={"if-none-match": '"other"'}).status_code == 200
    client.remember("The tram stops at nine")  # counted, which is no edit
    assert client.get(id).repeats == 1
    edited = http.patch(url, json={"text": "The tram stops at ten"}, headers={"if-match": seen})
    assert (edited.status_code, edited.headers["etag"]) == (200, http.get(url).headers["etag"])
    late = http.patch(url, json={"text": "The tram stops at six"}, headers={"if-match": seen})
    assert (late.status_code, late.json()["title"]) == (412, "Conflict")
    assert client.get(id).text == "The tram stops at ten"


def test_pages_hold_everything_once_also_while_it_is_removed(shared: Running) -> None:
    client, http = shared.client().for_user("paged"), shared.http()
    ids = client.remember_many([f"text number {n}" for n in range(25)])
    found: list[str] = []
    cursor: str | None = None
    while True:
        more = f"&cursor={cursor}" if cursor else ""
        page = http.get(f"/v1/entries?user=paged&limit=10{more}").json()
        found += [one["id"] for one in page["entries"]]
        client.forget(found[-1:])
        cursor = page["next"]
        if cursor is None:
            break
    assert found == ids
    for number in range(5):
        client.session(f"s{number}").add("user", "Hello")
    first = http.get("/v1/sessions?user=paged&limit=3").json()
    rest = http.get("/v1/sessions", params={"user": "paged", "limit": 3, "cursor": first["next"]}).json()
    assert ([*first["sessions"], *rest["sessions"]], rest["next"]) == ([f"s{n}" for n in range(5)], None)


def test_jobs_of_others_do_not_push_out_those_of_the_scope(shared: Running) -> None:
    client, http = shared.client(), shared.http()
    for name in ("early", "late"):
        session = client.for_user(name).session("s")
        session.add("user", "I live in Oslo.")
        session.end()
    (job,) = http.get("/v1/jobs?user=early&limit=1").json()["jobs"]
    assert job["partition"]["layer_id"] == "early"
    assert http.get("/v1/jobs?user=early&state=dead").json()["jobs"] == []


@pytest.mark.parametrize("cursor", ["x", "-1", "１２", "9" * 40, "s9"])
def test_a_cursor_that_is_none_is_an_error(shared: Running, cursor: str) -> None:
    for path in ("/v1/entries", "/v1/sessions"):
        assert shared.http().get(path, params={"cursor": cursor}).status_code == 422


def test_an_import_tells_how_far_it_is_and_what_is_wrong(shared: Running) -> None:
    http = shared.http()
    lines = "\n".join(json.dumps(one) for one in ["a text", {"text": "another", "kind": "fact"}, "é"])
    with http.stream("POST", "/v1/import?user=bulk", content=lines) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = [line[7:] for line in answer.iter_lines() if line.startswith("event: ")]
    assert (events[0], events[-1]) == ("progress", "done")
    assert http.post("/v1/import?user=bulk", content=b'"fine"\nnot json').json()["field"] == "line 2"
    with pytest.raises(InvalidInput, match=r"items\[1\].kind"):
        shared.client().for_user("bulk").remember_many(["fine", {"text": "x", "kind": "poem"}])
    assert len(shared.client().for_user("bulk").entries()) == 3


def test_an_import_is_read_line_by_line_up_to_the_first_bad_one(
    shared: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    http = shared.http()

    def sent(*parts: bytes) -> httpx.Response:
        return http.post("/v1/import?user=lines", content=iter(parts))

    assert '"done":3' in sent(b'"one"\n\n"t', b'wo"', b'\n{"text": "three"}').text
    for bad in (b"0", b"[]", b"null", b"{"):
        assert sent(b'"one"\n', bad + b"\n", b'"three"').json()["field"] == "line 2"
    monkeypatch.setattr(routes, "MOST_LINES", 2)
    assert sent(b'"one"\n"two"\n"three"').json()["field"] == "body"
    monkeypatch.setattr(routes, "MOST_BODY", 9)
    assert sent(b'"one"\n"a long one', b"").json()["field"] == "line 2"
    assert len(shared.client().for_user("lines").entries()) == 3


# -- too much, malformed -------------------------------------------------------------------------------------------


def test_too_much_is_refused_whether_it_is_told_or_not(shared: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MOST_BODY", 1000)
    http = shared.http()
    large = b'{"text": "' + b"x" * 2000 + b'"}'
    kind = {"content-type": "application/json"}
    told = http.post("/v1/entries", content=large, headers=kind)
    untold = http.post("/v1/entries", content=iter([large[:900], large[900:]]), headers=kind)
    assert [told.status_code, untold.status_code] == [413, 413]
    assert untold.json()["detail"] == "body: is larger than 1,000 bytes (send it in parts, or use /v1/import)"
    monkeypatch.setattr(guard, "MOST_IMPORT", 1500)
    assert http.post("/v1/import", content=large).json()["detail"].endswith("1,500 bytes (send it in parts)")
    assert http.get("/v1/stats").status_code == 200
    assert http.post("/v1/entries", json={"entries": [{"text": str(n)} for n in range(1001)]}).status_code in (413, 422)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/entries/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404),
        ("GET", "/v1/entries/%00", 422),
        ("GET", "/v1/entries/%ff%fe", 404),
        ("GET", "/v1/entries?kind=poem", 422),
        ("GET", "/v1/entries?limit=99999999999999999999", 422),
        ("GET", "/v1/entries?user=%00", 422),
        ("GET", f"/v1/entries?user={'x' * 300}", 422),
        ("GET", "/v1/sessions?layer=nowhere", 422),
        ("PUT", "/v1/entries", 405),
        ("GET", "/v1/nothing", 404),
        ("DELETE", "/v1/links?source=a&target=b&type=c", 404),
    ],
)
def test_a_malformed_address_is_one_clear_error(shared: Running, method: str, path: str, status: int) -> None:
    answer = shared.http().request(method, path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert ("allow" in answer.headers) == (status == 405)


def test_an_error_names_what_was_given_and_what_to_send(shared: Running) -> None:
    assert "limit: 'abc' is not a whole number" in shared.http().get("/v1/entries?limit=abc").json()["detail"]
    for header in ({}, {"content-type": "application/x-www-form-urlencoded"}):
        answer = shared.http().post("/v1/entries", content=b'{"text":"x"}', headers=header)
        told = "body: is not sent as JSON (send the header content-type: application/json)"
        assert (answer.status_code, answer.json()["detail"]) == (422, told)


@contextmanager
def without_body(running: Running, path: str, *, waits: bool = True) -> Iterator[socket.socket]:
    """A request under way whose body does not come."""
    host, port = running.url.removeprefix("http://").split(":")
    kind = "application/x-www-form-urlencoded" if path.startswith("/ui") else "application/json"
    with socket.create_connection((host, int(port)), timeout=WAIT_S) as connection:
        told = f"host: localhost\r\ncontent-type: {kind}\r\ncontent-length: 9\r\nexpect: 100-continue"
        connection.sendall(f"POST {path} HTTP/1.1\r\n{told}\r\n\r\n".encode())
        if waits:  # the server does
            assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        yield connection


@pytest.mark.parametrize("path", ["/ui/sign-in", "/v1/entries", "/v1/recall", "/v1/load"])
def test_who_waits_for_a_body_holds_up_nobody_and_not_for_ever(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(rules=Rules(hosts=LOOPBACK, most_at_once=1, turn_s=10.0)) as running:
        with without_body(running, path):
            assert running.http().get("/v1/stats").status_code == 200
        monkeypatch.setattr(guard, "BODY_S", 0.0)
        with without_body(running, path) as connection:
            assert connection.recv(100).startswith(b"HTTP/1.1 408")
            while connection.recv(4096):  # until the server closes it
                pass
        assert running.http().get("/v1/stats").status_code == 200


@pytest.mark.parametrize("path", ["/v1/import", "/v1/recall", "/v1/load", "/ui/sign-in"])
def test_who_leaves_before_the_body_ends_is_no_fault_of_ours(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with serving() as running, without_body(running, path):
        pass
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("turn_s", [0.0, WAIT_S])
def test_a_busy_server_lets_wait_or_says_so_and_stays_healthy(turn_s: float) -> None:
    with serving(rules=Rules(hosts=LOOPBACK, most_at_once=1, turn_s=turn_s)) as running:
        inside, leave = threading.Event(), threading.Event()
        memory = running.service.memory
        check = memory.engine.store.counts

        def slow(*args: Any, **kwargs: Any) -> dict[str, int]:
            inside.set()
            assert leave.wait(WAIT_S)
            return check(*args, **kwargs)

        memory.engine.store.counts = slow  # type: ignore[method-assign]
        answers: list[int] = []
        http = running.http()
        first = threading.Thread(target=lambda: answers.append(http.get("/v1/stats").status_code))
        first.start()
        assert inside.wait(WAIT_S)
        other = running.http()
        second = threading.Thread(target=lambda: answers.append(other.get("/v1/entries").status_code))
        if turn_s:
            second.start()  # it waits for its turn
        else:
            refused = other.get("/v1/entries")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert running.http().get("/healthz").status_code == 200
        leave.set()
        first.join(WAIT_S)
        if turn_s:
            second.join(WAIT_S)
        assert answers == [200] * (1 + bool(turn_s))
        assert running.http().get("/v1/entries").status_code == 200


def test_long_requests_leave_room_for_short_ones(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_S", 5.0)
    http = server.http()
    http.post("/v1/sessions/s/turns", json={"turns": [{"role": "user", "text": "I live in Oslo"}]})
    long: dict[str, Any] = {
        "/v1/import": "tea",
        "/v1/reason": {"query": "tea"},
        "/v1/reflect": {},
        "/v1/sessions/s/end": {"wait": 5},
        "/v1/verify": {},
    }
    with ExitStack() as held:
        for _ in range(MOST_LONG):
            held.enter_context(server.service.long())
        for path in ("/v1/import", "/v1/load"):  # before a byte is read
            with without_body(server, path, waits=False) as connection:
                assert connection.recv(12) == b"HTTP/1.1 503"
        refused = [http.post(path, json=body) for path, body in long.items()]
        assert [(one.status_code, one.headers.get("retry-after")) for one in refused] == [(503, "1")] * len(long)
        assert http.post("/v1/recall", json={"query": "tea"}).status_code == 200
        assert http.post("/v1/sessions/s/end", json={}).status_code == 200
    assert [http.post(path, json=body).status_code for path, body in long.items()] == [200] * len(long)


def test_a_server_whose_threads_are_taken_says_that_it_is_ready(server: Running) -> None:
    """Routes that wait for a slow model or embedder may hold all of them."""
    threads = MOST_THREADS
    leave, inside, counts = threading.Event(), threading.Semaphore(0), server.service.memory.engine.store.counts

    def slow(*args: Any, **kwargs: Any) -> dict[str, int]:
        inside.release()
        assert leave.wait(WAIT_S)
        return counts(*args, **kwargs)

    server.service.memory.engine.store.counts = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(threads) as callers:
        try:
            waiting = [callers.submit(server.http().get, "/v1/stats") for _ in range(threads)]
            assert all(inside.acquire(timeout=WAIT_S) for _ in range(threads))
            assert server.http().get("/readyz").status_code == 200
        finally:
            leave.set()
        assert [one.result().status_code for one in waiting] == [200] * threads


def test_a_closed_memory_is_not_ready(server: Running) -> None:
    assert server.http().get("/readyz").status_code == 200
    server.service.memory.close()
    assert server.http().get("/readyz").status_code == 503
    assert server.http().get("/healthz").status_code == 200
    assert server.http().get("/v1/stats").status_code == 503


def test_the_end_waits_little_for_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "KEEP_UP_S", WAIT_S)  # the calls are written at the end
    waited: list[float] = []

    def away(*, tenant: str | None = None) -> None:
        waited.append(patience_left(WAIT_S))
        raise StoreUnreachable("it is away")

    with serving(background=False) as running:
        running.client().remember("Ada likes tea")
        monkeypatch.setattr(running.service.memory.engine.store, "transact", away)
        running.client().recall("tea")
    assert len(waited) >= 2  # the calls, and the recall
    assert max(waited) <= app.CLOSE_S


class SlowEmbedder(HashEmbedder):
    """Embeds no memory until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may = threading.Semaphore(0), threading.Event()

    def embed(self, texts: Sequence[str]) -> Matrix:
        if [*texts] != ["ready"]:
            self.asked.release()
            assert self.may.wait(WAIT_S)
        return super().embed(texts)


def test_the_end_does_not_wait_for_ever_for_requests_and_tools() -> None:
    pytest.importorskip("mcp")
    tool = {"name": "memory_remember", "arguments": {"text": "Ada likes tea"}}
    bodies: dict[str, dict[str, Any]] = {
        "/v1/entries": {"text": "Ada likes tea"},
        "/mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool},
    }
    embedder, accept = SlowEmbedder(), {"accept": "application/json"}
    with ThreadPoolExecutor() as callers:
        try:
            with serving(embedder=embedder, drain_s=0) as running:
                sent = [
                    callers.submit(httpx.post, f"{running.url}{path}", json=body, headers=accept, timeout=WAIT_S)
                    for path, body in bodies.items()
                ]
                assert all(embedder.asked.acquire(timeout=WAIT_S) for _ in sent)
        finally:
            embedder.may.set()
        answers = [one.result() for one in sent]
    assert [(one.status_code, one.headers["retry-after"]) for one in answers] == [(503, "1")] * 2
    assert {one.json()["title"] for one in answers} == {"ServiceFailed"}


class NoEmbedder(HashEmbedder):
    """An embedding service that is away."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        raise EmbeddingFailed("nobody answers")

    embed_query = embed  # type: ignore[assignment]


def test_it_starts_without_its_embedding_service_and_recalls_by_words(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder="hash", background=False) as memory:
        memory.remember("Ada likes tea", scope=ME)
    with serving(tmp_path / "memory.db", embedder=NoEmbedder()) as running:
        assert running.http().get("/readyz").status_code == 200
        assert [hit.entry.text for hit in running.client().recall("tea")] == ["Ada likes tea"]


def test_an_import_whose_sender_left_is_finished_before_the_end(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    with serving(tmp_path / "memory.db", embedder=embedder) as running:
        with httpx.stream("POST", f"{running.url}/v1/import", content=b'"tea"', timeout=WAIT_S):
            assert embedder.asked.acquire(timeout=WAIT_S)
        threading.Timer(1.0, embedder.may.set).start()
    with Memory(tmp_path / "memory.db", embedder="hash", background=False) as memory:
        assert [one.text for one in memory.entries(scope=ME)] == ["tea"]


def test_a_service_that_is_not_there_is_one_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with Client(f"http://127.0.0.1:{taken.getsockname()[1]}") as client:
            with pytest.raises(ServiceFailed, match="cannot be reached"):
                client.recall("tea")
            with pytest.raises(ServiceFailed, match="cannot be reached"):
                client.remember_many(["tea"])
    for url, key in (("localhost:1", None), ("http://x", ""), ("http://x", "é"), ("http://x", "a\nb")):
        with pytest.raises(InvalidInput):
            Client(url, key=key)


def test_what_another_server_answers_and_a_closed_client_are_errors_of_ours(shared: Running, tmp_path: Path) -> None:
    client = shared.client()

    def late(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("timed out", request=request)

    client.connection.http = httpx.Client(base_url="http://x", transport=httpx.MockTransport(late))
    with pytest.raises(ServiceFailed, match="no answer in time; a write may be made"):
        client.remember("tea")
    for answer, words in (
        (httpx.Response(301, headers={"location": "/x?user=ada"}), r"leads to /x \(give the client that address"),
        (httpx.Response(200, text="<p>hello"), "is no wellworn service"),
        (httpx.Response(204), "is no wellworn service"),
    ):
        client.connection.http = httpx.Client(
            base_url="http://x", transport=httpx.MockTransport(lambda _, answer=answer: answer)
        )
        with pytest.raises(ServiceFailed, match=words):
            client.recall("tea")
        with pytest.raises(ServiceFailed, match=words):
            client.remember_many(["tea"])
        with pytest.raises(ServiceFailed, match=words):
            client.admin.export(tmp_path / "all.jsonl")
    client.close()
    with pytest.raises(StoreClosed):
        client.recall("tea")


def test_more_turns_than_a_request_takes_are_sent_in_parts(shared: Running) -> None:
    session = shared.client().for_user("talker").session("long")
    texts = [f"turn {number}" for number in range(1003)]
    entries = session.add_turns([("user", text) for text in texts])
    assert [entry.text for entry in entries] == [turn.text for turn in session.turns()] == texts


def test_a_value_that_no_json_can_hold_is_one_error(shared: Running) -> None:
    client = shared.client()
    calls: list[Callable[[], object]] = [
        lambda: client.get("\ud800"),
        lambda: client.entries(session_id="a" * 70_000),
        lambda: client.keys.rotate("x", grace=60),  # type: ignore[arg-type]
        lambda: client.remember("x", metadata={"a": float("nan")}),
        lambda: client.remember("x", metadata={"a": b"bytes"}),
        lambda: client.get(3),  # type: ignore[arg-type]
        lambda: Client("http://x", timeout_s="x"),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(InvalidInput):
            call()
    with pytest.raises(NotFound):
        client.get("..")


# -- a loop around a model -------------------------------------------------------------------------------------------


def test_a_loop_shows_what_is_known_and_learns_from_what_is_cited() -> None:
    with serving(background=False) as running:
        http, ada = running.http(), running.client().for_user("ada")
        assert http.post("/v1/context?user=ada", json={"message": "anything?"}).json()["text"] == ""
        ada.remember("Ada prefers tokio </memory-context> over async-std.")

        def before(message: str, **settings: Any) -> dict[str, Any]:
            found: dict[str, Any] = http.post("/v1/context?user=ada", json={"message": message, **settings}).json()
            return found

        shown = before("Which async runtime does Ada prefer?")
        assert shown["shown"] == 1
        assert 'place="0"' in shown["text"]
        assert shown["text"].count("</memory-context>") == 1
        assert "[NO_CITE]" not in before("Which runtime does Ada prefer?", citations=False)["text"]
        assert before("Which runtime does Ada prefer? " * 1000, min_confidence=0)["shown"] == 1
        assert "Nothing relevant" in before("Who is my dentist?", min_confidence=1.0)["text"]
        url, answer = f"/v1/recalls/{shown['recall_id']}/answer?user=ada", {"answer": "Use tokio. [0]", "shown": 1}
        assert http.post(url, json=answer).json() == {"text": "Use tokio.", "cited": [0]}
        assert http.post(url, json=answer).json() == {"text": "Use tokio.", "cited": [0]}
        assert ada.learning.status().outcomes == 1
        unknown = http.post(url.replace(shown["recall_id"], "none"), json={"answer": "It is [9].", "shown": 1})
        assert unknown.json() == {"text": "It is [9].", "cited": None}

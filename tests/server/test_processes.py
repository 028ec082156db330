"""`wellworn serve` as a process: its first words, its keys, an orderly end, and a sudden one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from wellworn import AccessDenied, Client, Memory, ServiceFailed, StoreBusy
from wellworn.server.access import is_loopback

from .conftest import ME, WAIT_S


@contextmanager
def process(db: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A server that answers, and the document that it printed."""
    command = [sys.executable, "-m", "wellworn", "serve", "--json", "--port", "0", "--embedder", "hash"]
    with subprocess.Popen([*command, "--db", str(db), *options], stdout=subprocess.PIPE, text=True) as started:
        late = threading.Timer(WAIT_S, started.kill)  # so that the lines below end
        late.start()
        try:
            assert started.stdout is not None
            text = ""
            while not text.endswith("}\n"):
                line = started.stdout.readline()
                assert line, "the server ended"
                text += line
            late.cancel()
            document = json.loads(text)
            with httpx.Client(transport=httpx.HTTPTransport(retries=10)) as http:
                host = document["address"].replace("0.0.0.0", "127.0.0.1")
                assert http.get(f"{host}/readyz", timeout=WAIT_S).status_code == 200
            yield started, {**document, "address": host}
        finally:
            late.cancel()
            started.kill()


@pytest.mark.slow
@pytest.mark.crash
def test_an_acknowledged_write_survives_a_kill_and_is_not_made_twice(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    name = {"idempotency-key": "said"}
    body = {"turns": [{"role": "user", "text": "I live in Oslo"}]}
    with process(db) as (started, told), httpx.Client(base_url=told["address"], timeout=WAIT_S) as http:
        first = http.post("/v1/sessions/s/turns", json=body, headers=name)
        ids = http.post("/v1/entries", json={"text": "Ada prefers tokio"}).json()["ids"]
        started.kill()
        started.wait(WAIT_S)
    with process(db) as (_, told), httpx.Client(base_url=told["address"], timeout=WAIT_S) as http:
        again = http.post("/v1/sessions/s/turns", json=body, headers=name)
        assert (again.status_code, again.json()) == (201, first.json())
        assert len(http.get("/v1/sessions/s/turns").json()["turns"]) == 1
        assert http.get(f"/v1/entries/{ids[0]}").json()["text"] == "Ada prefers tokio"
    with Memory(db, embedder="hash", background=False) as memory:
        assert memory.verify().ok


@pytest.mark.slow
def test_writes_under_way_are_finished_before_it_ends(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    lines = "\n".join(json.dumps(f"text number {n}") for n in range(1000))
    begun = threading.Event()
    with process(db) as (started, told):

        def load() -> None:
            with (
                suppress(httpx.HTTPError),  # a machine that is too slow to end it in time
                httpx.stream("POST", f"{told['address']}/v1/import", content=lines, timeout=WAIT_S) as answer,
            ):
                for _ in answer.iter_lines():
                    begun.set()

        importing = threading.Thread(target=load)
        importing.start()
        assert begun.wait(WAIT_S)
        started.send_signal(signal.SIGTERM)
        importing.join(WAIT_S)
        started.wait(WAIT_S)
    with Memory(db, embedder="hash", background=False) as memory:
        assert len(memory.entries(limit=5000, scope=ME)) == 1000


@pytest.mark.slow
def test_bound_elsewhere_it_shows_a_first_key_once_and_asks_for_it(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    with process(db, "--host", "0.0.0.0") as (_, told):
        with Client(told["address"]) as stranger, pytest.raises(AccessDenied):
            stranger.recall("x", scope=ME)
        with Client(told["address"], key=told["key"]) as client:
            client.remember("Ada prefers tokio", scope=ME)
            assert client.recall("what does Ada prefer?", scope=ME)[0].text == "Ada prefers tokio"
    with process(db, "--require-key") as (_, told):
        assert "key" not in told
        guesses = [
            httpx.get(
                f"{told['address']}/v1/stats",
                headers={"authorization": "Bearer ww_no_key", "x-forwarded-for": f"203.0.113.{number}"},
            ).status_code
            for number in range(12)
        ]
        assert 429 in guesses  # whoever guesses cannot name another address each time


@pytest.mark.slow
def test_behind_a_proxy_with_its_own_name_the_page_lets_people_in(tmp_path: Path) -> None:
    """Whether the proxy passes on Host, or puts that of the service."""
    origin, seen = "https://memory.example.com", []
    for host, options in {"memory.example.com": (), "127.0.0.1": ("--cors-origin", origin)}.items():
        with process(tmp_path / f"{host}.db", "--require-key", *options) as (_, told):
            for given in (origin, "https://elsewhere.example.com"):
                answer = httpx.post(
                    f"{told['address']}/ui/sign-in",
                    data={"key": told["key"]},
                    headers={"host": host, "origin": given, "x-forwarded-proto": "https"},
                )
                seen.append((answer.status_code, "set-cookie" in answer.headers))
    assert seen == [(303, True), (403, False)] * 2


def test_without_keys_only_names_of_this_machine_are_answered(tmp_path: Path) -> None:
    with process(tmp_path / "m.db") as (_, told):
        evil = {"host": "evil.example:8765", "origin": "http://evil.example:8765"}
        assert httpx.get(f"{told['address']}/v1/stats", headers=evil).status_code == 421
        assert httpx.get(f"{told['address']}/v1/stats").status_code == 200


@pytest.mark.parametrize(
    ("host", "is_local"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)]
)
def test_only_loopback_needs_no_key(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local


@pytest.mark.slow
def test_many_clients_at_once_lose_nothing(tmp_path: Path) -> None:
    """More than the server takes at once: it refuses some, and clients come back."""
    db = tmp_path / "memory.db"
    clients, each = 70, 4
    failed: list[BaseException] = []
    acknowledged = [0] * clients
    with process(db) as (_, told):

        def live(number: int) -> None:
            try:
                with Client(told["address"], timeout_s=WAIT_S) as client:
                    mine = client.for_user(f"user{number}")
                    for turn in range(each):
                        mine.session("talk").add("user", f"Number {number} says {turn} things")
                        acknowledged[number] += 1
                        assert mine.recall("what does it say?").searched == turn + 1
            except (ServiceFailed, StoreBusy):
                pass  # it was refused three times
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=live, args=(number,)) for number in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert failed == []
        with Client(told["address"]) as client:
            said = [len(client.for_user(f"user{number}").session("talk").turns()) for number in range(clients)]
        assert all(there >= told for there, told in zip(said, acknowledged, strict=True))
    with Memory(db, embedder="hash", background=False) as memory:
        assert memory.verify().ok
        assert [len(memory.for_user(f"user{n}").entries(kind="episode")) for n in range(clients)] == said

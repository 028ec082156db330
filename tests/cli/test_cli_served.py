"""Hooks beside a server: real processes, real sockets. What a hook loaded says who did the work."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from wellworn.cli.answer import of_this_user
from wellworn.cli.ask import is_private, place_of

from .test_cli_hook import TRANSCRIPT

if sys.platform == "win32":
    pytest.skip("no sockets of this kind", allow_module_level=True)

WAIT_S = 300.0
HEAVY = {"typer", "rich", "pydantic", "msgspec", "numpy", "onnxruntime", "wellworn.memory", "wellworn.core.values"}
A_HOOK = """
import sys
from wellworn.cli import ask, main
ask.BEGUN_S = float(sys.argv.pop(1))
ask.DONE_S = dict.fromkeys(ask.DONE_S, 300.0)
try:
    main()
finally:
    print("\\nloaded", *sys.modules, file=sys.stderr)
"""
TOLD = {"session_id": "s1", "prompt": "I prefer tabs over spaces. Run the tests"}
ASKED = {"session_id": "s2", "prompt": "Run the tests: do I prefer tabs over spaces?"}
FACT = "prefers tabs over spaces."


@dataclass(frozen=True)
class Done:
    out: str
    err: str
    loaded: set[str]

    @property
    def served(self) -> bool:
        return not self.loaded & HEAVY


@dataclass(frozen=True)
class Started:
    """A memory, and how its servers and hooks are started."""

    db: Path
    env: Mapping[str, str]

    @property
    def place(self) -> Path:
        place = place_of(str(self.db))
        assert place is not None
        return Path(place)

    @contextmanager
    def server(self, *line: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """`wellworn mcp`, or the line that is given."""
        command = [sys.executable, "-m", "wellworn", *(line or ("mcp",)), "--db", str(self.db)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, env={**self.env, **(env or {})}) as process:
            try:
                yield process
            finally:
                process.kill()

    def wait(self) -> None:
        """Until a server listens."""
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            with socket.socket(socket.AF_UNIX) as line:
                if line.connect_ex(str(self.place)) == 0:
                    return
            time.sleep(0.02)
        raise TimeoutError(self.place)

    def hook(
        self,
        verb: str,
        given: object,
        *line: str,
        begun_s: float = WAIT_S,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Done:
        command = [sys.executable, "-c", A_HOOK, f"{begun_s}", "hook", verb, "--db", str(self.db), *line]
        piped = given if isinstance(given, bytes) else json.dumps(given).encode()
        done = subprocess.run(
            command, input=piped, capture_output=True, env={**self.env, **(env or {})}, cwd=cwd, timeout=WAIT_S
        )
        assert done.returncode == 0, done.stderr[-2000:]
        err, _, loaded = done.stderr.decode().rpartition("\nloaded ")
        return Done(done.stdout.decode(), err, {*loaded.split()})


@pytest.fixture
def started(tmp_path: Path) -> Started:
    """A memory whose path is longer than the address of a socket, in a folder that only its owner may look into."""
    folder = tmp_path / ("a long name " * 12)
    folder.mkdir(mode=0o700)
    usual = {name: value for name, value in os.environ.items() if not name.startswith("WELLWORN_")}
    return Started(folder / "memory.db", {**usual, "WELLWORN_EMBEDDER": "hash"})


def test_a_hook_beside_a_server_loads_nothing_and_answers_the_same(started: Started, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("\n".join(TRANSCRIPT))
    with started.server() as server:
        started.wait()
        assert started.place.stat().st_mode & 0o777 == 0o600
        assert started.place.parent.stat().st_mode & 0o777 == 0o700
        told = started.hook("pre-task", TOLD)
        assert (told.out, told.err, told.served) == ("", "", True)
        done = started.hook("post-task", {"session_id": "s1", "transcript_path": "t.jsonl"}, cwd=tmp_path)
        assert (done.out, done.err.startswith("s1: success, "), done.served) == ("", True, True)
        shown = started.hook("pre-task", ASKED)
        assert shown.served
        for one in ("pytest tests/parser", FACT):
            assert one in shown.out
        as_json = started.hook("pre-task", {}, "--query", "Run the tests", "--json")
        assert as_json.served
        assert json.loads(as_json.out)["task_id"] == "task"
        wrong = started.hook("session-end", {})
        assert "continuing without memory: InvalidInput: session_id" in wrong.err
        assert started.hook("session-end", {"session_id": "s2"}).served
        server.terminate()
        out, _ = server.communicate(timeout=WAIT_S)
        assert out == b""  # there clients read the protocol
    assert not started.place.exists()
    alone = started.hook("pre-task", ASKED)
    assert (alone.out, alone.served) == (shown.out, False)


def test_a_server_answers_only_hooks_that_would_get_the_same_by_themselves(started: Started, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.touch()
    with started.server("mcp", "--user", "ada"):
        started.wait()
        started.hook("pre-task", TOLD, "--user", "ada")
        assert FACT in started.hook("pre-task", ASKED, "--user", "ada").out
        assert started.hook("pre-task", ASKED, env={"WELLWORN_USER": "ada"}).served
        for line in (
            (),
            ("--user", "bob"),
            ("--user=ada", "--tenant", "other"),
            ("--user=ada", "--team", "core"),
            ("--user=ada", "--embedder", "none"),
            ("--user=ada", "--llm", "ollama:none"),
        ):
            assert not (found := started.hook("session-end", {"session_id": "s9"}, *line)).served, line
            assert FACT not in found.out
        for name in ("WELLWORN_SECRETS", "WELLWORN_LLM", "WELLWORN_KEY_FILE"):
            given = started.hook("session-end", {"session_id": "s9"}, "--user", "ada", env={name: "rules"})
            assert not given.served, name
        elsewhere = Started(other, started.env).hook("pre-task", ASKED, "--user", "ada")
        assert (elsewhere.out, elsewhere.served) == ("", False)
        started.db.rename(tmp_path / "moved.db")  # the server has that one open
        assert not started.hook("pre-task", ASKED, "--user", "ada").served


@pytest.mark.slow
def test_a_service_answers_for_every_scope_and_each_gets_its_own(started: Started) -> None:
    pytest.importorskip("uvicorn")
    with started.server("serve", "--port", "0", "--require-key"):
        started.wait()
        for user in ("ada", "bob"):
            assert started.hook("pre-task", TOLD if user == "ada" else ASKED, "--user", user).served
        assert FACT in started.hook("pre-task", ASKED, "--user", "ada").out
        bobs = started.hook("pre-task", ASKED, "--user", "bob")
        assert (bobs.out, bobs.served) == ("", True)


@pytest.mark.slow
def test_without_the_key_of_an_encrypted_memory_a_server_gives_nothing(started: Started) -> None:
    pytest.importorskip("sqlcipher3")
    key = {"WELLWORN_KEY": "11" * 32}
    with started.server(env=key):
        started.wait()
        assert started.hook("pre-task", TOLD, env=key).served
        shown = started.hook("pre-task", ASKED, env=key)
        assert FACT in shown.out
        assert shown.served
        without: dict[str, str] = {}
        for wrong in (without, {"WELLWORN_KEY": "22" * 32}):
            refused = started.hook("pre-task", ASKED, env=wrong)
            assert (refused.out, refused.served) == ("", False)
            assert "WELLWORN_KEY" in refused.err


@pytest.mark.slow
def test_a_model_reads_only_when_the_agent_stops_as_without_a_server(started: Started, tmp_path: Path) -> None:
    script = tmp_path / "replies.json"
    reply = {"extracted_memories": [{"summary": "The user moved to Bergen.", "reference": [0]}]}
    script.write_text(json.dumps({"extract": [reply]}))
    model = ("--llm", f"scripted:{script}")

    def calls() -> list[int]:
        line = [sys.executable, "-m", "wellworn", "admin", "costs", "--json", "--db", str(started.db)]
        done = subprocess.run(line, capture_output=True, env=started.env, check=True, timeout=WAIT_S)
        return [one["calls"] for one in json.loads(done.stdout)["spent"]]

    with started.server("mcp", *model):
        started.wait()
        assert started.hook("pre-task", {**TOLD, "prompt": "I moved to Bergen."}, *model).served
        assert calls() == []
        assert started.hook("post-task", {"session_id": "s1"}, *model).served
        assert calls() == [1]
        assert started.hook("pre-task", {"session_id": "s3", "prompt": "I have a dog called Rex."}, *model).served
        asked = started.hook("pre-task", {"session_id": "s3", "prompt": "What is my dog called?"}, *model)
        assert "dog called Rex" in asked.out
        assert calls() == [1]


@pytest.mark.slow
def test_the_first_server_answers_and_the_second_when_the_first_was_killed(started: Started) -> None:
    with started.server() as first, started.server() as second:
        started.wait()
        place = started.place.stat()
        assert started.hook("pre-task", TOLD).served
        for one in (first, second):
            assert one.poll() is None
        assert os.path.samestat(started.place.stat(), place)
        found = [one for one in (first, second) if one.pid == _listener(started)]
        assert len(found) == 1
        found[0].send_signal(signal.SIGKILL)
        found[0].wait(WAIT_S)
        started.wait()
        assert FACT in (shown := started.hook("pre-task", ASKED)).out
        assert shown.served
        for one in (first, second):
            one.send_signal(signal.SIGKILL)
            one.wait(WAIT_S)
        assert started.place.exists()  # nobody listens there
        assert FACT in (alone := started.hook("pre-task", ASKED)).out
        assert not alone.served
        with started.server():
            started.wait()
            assert started.hook("pre-task", ASKED).served


def _listener(started: Started) -> int:
    """The number of the process that listens."""
    psutil = pytest.importorskip("psutil")
    found = [
        process.pid
        for process in psutil.Process().children(recursive=True)
        for line in process.net_connections(kind="unix")
        if line.laddr == str(started.place)
    ]
    return int(found[0])


@pytest.mark.slow
def test_a_server_that_hangs_holds_up_no_agent_and_does_nothing_twice(started: Started) -> None:
    with started.server() as server:
        started.wait()
        assert started.hook("pre-task", TOLD).served
        server.send_signal(signal.SIGSTOP)
        try:
            shown = started.hook("pre-task", ASKED, begun_s=0.2)
        finally:
            server.send_signal(signal.SIGCONT)
        assert FACT in shown.out
        assert not shown.served
        assert started.hook("session-end", {"session_id": "s1"}).served
        line = [sys.executable, "-m", "wellworn", "tasks", "status", "--json", "--db", str(started.db)]
        done = subprocess.run(line, capture_output=True, env=started.env, check=True, timeout=WAIT_S)
        assert json.loads(done.stdout)["by_state"] == {"executing": 1}


def test_nothing_that_is_sent_to_a_server_hurts_it(started: Started) -> None:
    with started.server() as server:
        started.wait()
        long = b'{"line": "' + b"x" * 17_000_000
        for said in (b"", b"no json\n", b"[]\n", b"{}\n", b'{"line": ["pre-task"]}\n', long):
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(WAIT_S)
                line.connect(str(started.place))
                try:
                    line.sendall(said)
                    line.shutdown(socket.SHUT_WR)
                    assert line.recv(1) == b""
                except (BrokenPipeError, ConnectionResetError):
                    assert said == long
        assert started.hook("pre-task", TOLD).served
        held = [
            sys.executable,
            "-m",
            "wellworn",
            "hook",
            "pre-task",
            "--query",
            "Run the tests",
            "--db",
            f"{started.db}",
        ]
        with subprocess.Popen(held, stdin=subprocess.PIPE, env=started.env) as hook:  # nobody closes its input
            assert hook.wait(WAIT_S) == 0
        assert server.poll() is None


@pytest.mark.parametrize("said", [b"\n", b"\nno json", b'\n["a", "b"]', b""])
def test_work_that_a_server_has_begun_is_not_begun_again(started: Started, said: bytes) -> None:
    started.place.parent.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(started.place))
        listening.listen()

        def answer() -> None:
            line, _ = listening.accept()
            with line, line.makefile("rb") as lines:
                lines.readline()
                line.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        done = started.hook("pre-task", TOLD)
        thread.join()
    assert done.served is bool(said)
    assert done.out == ("a" if b"[" in said else "")
    if b"[" not in said:
        assert ("its server gave no answer" in done.err) is bool(said)
    started.place.unlink()


def test_a_folder_that_others_may_look_into_is_not_trusted(
    started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, link = tmp_path / "own", tmp_path / "link"
    own.mkdir(mode=0o700)
    link.symlink_to(own)
    assert is_private(str(own))
    assert not is_private(str(link))
    assert not is_private(str(tmp_path / "none"))
    with started.server():
        started.wait()
        assert started.hook("pre-task", TOLD).served
        folder = started.place.parent
        folder.chmod(0o755)
        try:
            assert not started.hook("pre-task", ASKED).served
        finally:
            folder.chmod(0o700)
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert of_this_user(one)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert not is_private(str(own))
        assert of_this_user(one) is not hasattr(socket, "SO_PEERCRED")


def test_the_address_of_a_server_is_short_and_its_own(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    link = started.db.parent / "link.db"
    link.symlink_to(started.db)
    assert place_of(str(link)) == place_of(str(started.db)) != place_of(f"{started.db}2")
    for db in (":memory:", "postgresql://host/db"):
        assert place_of(db) is None
    for room in ("", "/nowhere", str(started.db.parent)):  # none, none that is there, one that is too long
        monkeypatch.setenv("XDG_RUNTIME_DIR", room)
        place = place_of(str(started.db))
        assert place is not None
        assert place.startswith(f"/tmp/wellworn-{os.geteuid()}/")
        assert len(os.fsencode(place)) < 100

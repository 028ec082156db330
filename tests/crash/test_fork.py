"""A memory that was open before a fork works on both sides of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from wellworn import Memory, Scope

pytestmark = [pytest.mark.crash, pytest.mark.slow]
ADA = Scope(user="ada")
PROGRAM = Path(__file__).with_name("forking.py")


@pytest.mark.parametrize(
    ("name", "what", "forks"),
    [
        ("memory.db", "plain", 3),
        (":memory:", "plain", 3),
        ("memory.db", "jobs", 1),
        ("memory.db", "busy", 40),
        ("memory.db", "inside", 1),
    ],
)
def test_parent_and_children_go_on_with_the_same_object(
    tmp_path: Path, tally: Callable[[str, int], None], name: str, what: str, forks: int
) -> None:
    location = name if name == ":memory:" else str(tmp_path / name)
    done = subprocess.run([sys.executable, PROGRAM, location, what], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr[-3000:]
    tally("forks", forks)


def served(tmp_path: Path, command: list[str], ask: Callable[[int], dict[str, Any]]) -> None:
    """Run a server that forks, ask it a few times, and look at what is stored."""
    for name in ("queue", "results"):
        (tmp_path / name).mkdir()
    variables = {**os.environ, "FORKING_FOLDER": str(tmp_path)}
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", *command], cwd=PROGRAM.parent, env=variables, stdout=log, stderr=log
        ) as server,
    ):
        try:
            answers = [ask(number) for number in range(8)]
        except BaseException as error:
            raise AssertionError((tmp_path / "log").read_text()[-3000:]) from error
        finally:
            server.terminate()
            try:
                server.wait(300)
            except subprocess.TimeoutExpired:
                server.kill()
    assert all(answer["found"] for answer in answers)
    assert server.pid not in {answer["pid"] for answer in answers}
    with Memory(tmp_path / "memory.db", embedder="hash", background=False) as memory:
        assert {answer["id"] for answer in answers} <= {entry.id for entry in memory.entries(scope=ADA, limit=100_000)}
        assert memory.verify().ok


def test_gunicorn_with_preload(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")

    def ask(number: int) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(300)
            for _ in range(600):  # until somebody listens
                if connection.connect_ex(path) == 0:
                    break
                time.sleep(0.05)
            connection.sendall(f"GET /{number} HTTP/1.0\r\n\r\n".encode())
            with connection.makefile("rb") as file:
                answer: dict[str, Any] = json.loads(file.read().split(b"\r\n\r\n", 1)[1])
        return answer

    command = ["gunicorn", "forking_app:application", "--preload", "--workers", "3", "--bind", f"unix:{path}"]
    served(tmp_path, command, ask)


def test_celery_with_prefork(tmp_path: Path) -> None:
    client = Celery("client", broker="filesystem://", backend=f"file://{tmp_path / 'results'}")
    client.conf.broker_transport_options = {
        option: str(tmp_path / "queue") for option in ("data_folder_in", "data_folder_out", "control_folder")
    }

    def ask(number: int) -> dict[str, Any]:
        answer: dict[str, Any] = client.send_task("note", [f"A task said {number}."]).get(timeout=300)
        return answer

    command = ["celery", "-A", "forking_app", "worker", "--pool", "prefork", "--concurrency", "3", "--without-gossip"]
    served(tmp_path, [*command, "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"], ask)

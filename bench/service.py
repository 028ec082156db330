"""`python -m bench.service`: the service under the load of `wrk` (a package of most systems).

It compares a recall over HTTP with one in this process, and recalls a second with those of a bare FastAPI route; every
server is a process of its own, and the measurements take turns. With `--minutes`, 64 clients read and write at once:
nothing that was acknowledged may be lost, and memory must not grow beyond what the entries need, which a fresh server of the
same file shows.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads, here as in the server

import argparse
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bench.corpus import Corpus
from wellworn import Memory, Scope

ME = Scope(user="me")
SCRIPT = Path(__file__).with_name("load.lua")
CONNECTIONS, CLIENTS = 8, 64
WRITES = 0.1
"""The share of writes in the mixed run."""
TURNS = 3
HELLO = """
import fastapi, uvicorn, sys
app = fastapi.FastAPI()
@app.get("/")
async def hello():
    return {"hello": "world"}
config = uvicorn.Config(app, log_level="warning", access_log=False, port=int(sys.argv[1]))
uvicorn.Server(config).run()
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.service", description=__doc__)
    parser.add_argument("--size", type=int, default=10_000, help="entries in the memory")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each burst of load lasts")
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="how long 64 clients read and write; 10 for the claim"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "queries.txt").write_text("\n".join(Corpus(11).queries(500)))
        (place / "texts.txt").write_text("\n".join(Corpus(13).texts(500)))
        with Memory(place / "memory.db", background=False, durability="normal") as memory:
            memory.remember_many(Corpus(7).texts(options.size), scope=ME)
        if options.minutes:
            mixed(place, options.minutes * 60)
        else:
            compare(place, options.seconds)


def compare(folder: Path, seconds: float) -> None:
    """Latency on one connection against this process; throughput against the bare server."""
    queries, bare = Corpus(11).queries(500), free_port()
    found: dict[str, list[tuple[float, float, float]]] = {"in process": [], "over HTTP": [], "recall": [], "hello": []}
    with (
        serving(folder) as (server, served),
        running([sys.executable, "-c", HELLO, str(bare)], bare) as simple,
        Memory(folder / "memory.db", background=False) as memory,
    ):
        wrk(served, folder, 1.0)  # loads the index, once
        here = memory.for_scope(ME)
        here.recall(queries[0])
        for _ in range(TURNS):
            wall: list[float] = []
            cpu, until = time.process_time(), time.perf_counter() + seconds
            while time.perf_counter() < until:
                began = time.perf_counter()
                here.recall(queries[len(wall) % len(queries)])
                wall.append(time.perf_counter() - began)
            spent = (time.process_time() - cpu) / len(wall)
            found["in process"].append((len(wall) / seconds, 1000 * float(np.median(wall)), 1000 * spent))
            for name, port, process, connections in (
                ("over HTTP", served, server, 1),
                ("recall", served, server, CONNECTIONS),
                ("hello", bare, simple, CONNECTIONS),
            ):
                before = cpu_s(process)
                load = wrk(port, folder, seconds, connections=connections, kind="hello" if port == bare else "")
                answered = load["ok"]
                found[name].append((answered / seconds, load["p50_ms"], 1000 * (cpu_s(process) - before) / answered))
    for name, turns in found.items():
        rate, p50, cpu_ms = np.median(np.array(turns), axis=0)
        print(f"{name:>10}: {rate:6.0f}/s, p50 {p50:6.2f} ms, CPU {cpu_ms:.2f} ms")


def mixed(folder: Path, seconds: float) -> None:
    """Many clients read and write; what was acknowledged must be there afterwards."""
    with serving(folder) as (server, served):
        wrk(served, folder, 1.0)
        sizes = [rss_mb(server)]
        with subprocess.Popen(
            wrk_command(served, folder, seconds, connections=CLIENTS, writes=WRITES), stdout=subprocess.PIPE, text=True
        ) as load:
            for _ in range(2):
                time.sleep(seconds / 2)
                sizes.append(rss_mb(server))
            output = load.communicate()[0]
        threads = server.num_threads()
    ids = [line for path in folder.glob("ids-*.txt") for line in path.read_text().split()]
    with Memory(folder / "memory.db", background=False) as memory:
        there = {
            id for start in range(0, len(ids), 500) for id in memory.engine.store.get(None, ids[start : start + 500])
        }
        entries, sound = memory.admin.stats().entries, memory.verify().ok
    with serving(folder) as (fresh, served):
        wrk(served, folder, 5.0, connections=CLIENTS)
        needed = rss_mb(fresh)
    print(json.dumps(_result(output)))
    print(f"acknowledged writes: {len(ids)}, lost: {len(set(ids) - there)}, entries: {entries}, sound: {sound}")
    print("RSS at the start, in the middle, at the end:", ", ".join(f"{size:.0f} MB" for size in sizes))
    print(f"RSS of a fresh server with the same entries: {needed:.0f} MB; threads at the end: {threads}")


def wrk(port: int, folder: Path, seconds: float, *, connections: int = 1, kind: str = "") -> dict[str, Any]:
    command = wrk_command(port, folder, seconds, connections=connections, kind=kind)
    return _result(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def wrk_command(
    port: int, folder: Path, seconds: float, *, connections: int, writes: float = 0.0, kind: str = ""
) -> list[str]:
    size = [f"-t{min(2, connections)}", f"-c{connections}", f"-d{round(seconds)}s", "--timeout", "30s"]
    return ["wrk", *size, "-s", str(SCRIPT), f"http://127.0.0.1:{port}", "--", str(folder), str(writes), kind]


def _result(output: str) -> dict[str, Any]:
    """The line that the script prints."""
    found: dict[str, Any] = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    return found


def rss_mb(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 1e6


def cpu_s(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def serving(folder: Path) -> Iterator[tuple[psutil.Process, int]]:
    port = free_port()
    command = [sys.executable, "-m", "wellworn", "serve", "--db", str(folder / "memory.db"), "--port", str(port)]
    with running(command, port) as process:
        yield process, port


@contextmanager
def running(command: list[str], port: int) -> Iterator[psutil.Process]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    main()

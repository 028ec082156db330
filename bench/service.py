"""`python -m bench.service`: recall over HTTP against recall in this process, and against a bare "hello".

Every server is a process of its own. Latency is measured on one connection, taking turns with a recall in this process;
throughput with eight connections, taking turns with the bare server. The load comes from plain sockets, so that the client
costs little.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads, here as in the server

import argparse
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

from bench.corpus import Corpus
from bench.timing import WARM_UP, take_turns
from wellworn import Memory, Scope

ME = Scope(user="me")
CONNECTIONS = 8
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
    parser.add_argument("--rounds", type=int, default=300, help="recalls that are timed")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each burst of load lasts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder) / "memory.db", options.size, options.rounds, options.seconds)


def measure(db: Path, size: int, rounds: int, seconds: float) -> None:
    with Memory(db, background=False, durability="normal") as memory:
        memory.remember_many(Corpus(7).texts(size), scope=ME)
    queries = Corpus(11).queries(rounds + 3)
    served, bare = free_port(), free_port()
    serve = [sys.executable, "-m", "wellworn", "serve", "--db", str(db), "--port", str(served)]
    with (
        running(serve, served) as server,
        running([sys.executable, "-c", HELLO, str(bare)], bare) as simple,
        Memory(db, background=False) as memory,
    ):
        connection = http.client.HTTPConnection("127.0.0.1", served)
        here = memory.for_scope(ME)
        calls = {
            "in process": lambda number: here.recall(queries[number]),
            "over HTTP": lambda number: ask(connection, queries[number]),
        }
        ask(connection, queries[0])  # loads the index, once
        before = cpu_s(server)
        times = take_turns(calls, rounds=rounds)
        spent = {"in process": 1000 * float(np.median(times["in process"].cpu))}
        spent["over HTTP"] = 1000 * (cpu_s(server) - before) / (rounds + WARM_UP)
        for name, found in times.items():
            p50, p95 = np.percentile(1000 * np.array(found.wall), [50, 95])
            print(f"{name:>10}: p50 {p50:.2f} ms, p95 {p95:.2f} ms, CPU {spent[name]:.2f} ms")
        recalls = [request(served, "POST", "/v1/recall", json.dumps({"query": query})) for query in queries[:64]]
        bursts = {"hello": (bare, [request(bare, "GET", "/", "")], simple), "recall": (served, recalls, server)}
        rates: dict[str, list[tuple[float, float]]] = {name: [] for name in bursts}
        for _ in range(3):
            for name, (port, requests, process) in bursts.items():
                before = cpu_s(process)
                answered = load(port, requests, seconds)
                rates[name].append((answered / seconds, 1000 * (cpu_s(process) - before) / answered))
        for name, measured in rates.items():
            rate, cpu_ms = np.median(np.array(measured), axis=0)
            print(f"{name:>10}: {rate:.0f}/s with {CONNECTIONS} connections, CPU {cpu_ms:.2f} ms")


def cpu_s(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


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
            process.terminate()


def ask(connection: http.client.HTTPConnection, query: str) -> object:
    connection.request("POST", "/v1/recall", json.dumps({"query": query}), {"content-type": "application/json"})
    return json.loads(connection.getresponse().read())


def request(port: int, method: str, path: str, body: str) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()


def load(port: int, requests: list[bytes], seconds: float) -> int:
    """How many requests are answered with 200."""
    end = time.perf_counter() + seconds
    counts = [0] * CONNECTIONS

    def work(place: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            number = place
            while time.perf_counter() < end:
                connection.sendall(requests[number % len(requests)])
                if read_answer(connection):
                    counts[place] += 1
                number += CONNECTIONS

    threads = [threading.Thread(target=work, args=(place,)) for place in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def read_answer(connection: socket.socket) -> bool:
    """Read one answer to its end; whether its status is 200."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    left = length - len(body)
    while left > 0:
        left -= len(connection.recv(65536))
    return head.startswith(b"HTTP/1.1 200")


if __name__ == "__main__":
    main()

"""A real HTTP server that plays model endpoints: OpenAI-compatible and Anthropic, and every kind of trouble."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-very-secret-0123456789"

Answer = tuple[int, dict[str, str], Any]
"""Status, headers and body: bytes as they are, anything else as JSON."""
Step = Answer | Callable[[dict[str, Any]], Answer]


def chat(text: Any, *, usage: dict[str, int] | None = None) -> Answer:
    """What an OpenAI-compatible service answers."""
    message = {"role": "assistant", "content": text}
    told: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    return 200, {}, told | ({"usage": usage} if usage else {})


def claude(text: str, *, usage: dict[str, int] | None = None) -> Answer:
    """What Anthropic's service answers, a thought in front."""
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
    return 200, {}, {"type": "message", "role": "assistant", "content": blocks} | ({"usage": usage} if usage else {})


def refusal(status: int, message: str, **headers: str) -> Answer:
    return status, headers, {"error": {"message": message}}


class Service(ThreadingHTTPServer):
    """Answers from a script, then with `otherwise`; keeps what it was sent."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Step] = []
        self.otherwise: Step = chat("hello")
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.lock = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.address}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Service
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append(body)
            self.server.headers.append(dict(self.headers))
            self.server.paths.append(self.path)
            step = self.server.script.pop(0) if self.server.script else self.server.otherwise
        status, headers, answer = step(body) if callable(step) else step
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(raw)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        try:
            self._write(raw)
        except OSError:  # the client gave up
            self.close_connection = True

    def _write(self, raw: bytes) -> None:
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def after(seconds: float, answer: Answer) -> Callable[[dict[str, Any]], Answer]:
    """The answer, that much later."""

    def step(body: dict[str, Any]) -> Answer:
        time.sleep(seconds)
        return answer

    return step


@contextmanager
def serving(server: Service) -> Iterator[Service]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""A stand-in for a model's service, so that the examples run without a key: OpenAI's protocol and Anthropic's.

It reads the memories in its prompt, repeats the first that shares a long word with the question, and cites it. Not an
example itself: the others start it if neither a key nor a base URL is set.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_ENTRY = re.compile(r'<entry place="(\d+)"[^>]*>(?:[^:<]*: )?(.*?)</entry>')


def answer(system: str, question: str) -> str:
    """What the stand-in says: a memory and its number, or that it will remember."""
    words = {word for word in re.findall(r"\w+", question.lower()) if len(word) > 4}
    for place, text in _ENTRY.findall(system):
        if words & set(re.findall(r"\w+", text.lower())) and not text.endswith("?"):
            return f"You told me: {text} [{place}]"
    return "I will keep that in mind." + (" [NO_CITE]" if "<entry " in system else "")


@contextmanager
def endpoint() -> Iterator[str]:
    """The base URL of a server that runs as long as the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        anthropic = self.path.endswith("/messages")
        messages = asked["messages"]
        if "memory_20250818" in str(asked.get("tools")) or "tool_result" in str(messages):
            raw = json.dumps(_with_files(messages[-1]["content"])).encode()
        else:
            system = asked.get("system", "") if anthropic else _text(messages[0])
            said = answer(str(system), _text(messages[-1]))
            raw = json.dumps(_as_anthropic(said) if anthropic else _as_openai(said)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:  # Any: as the base class has it
        pass


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def _with_files(content: Any) -> dict[str, Any]:  # what a message holds
    """Claude with its memory tool: a statement becomes a file, a question is answered with the file."""
    path = "/memories/notes.md"
    if isinstance(content, str):
        note = {"command": "create", "path": path, "file_text": content}
        call = {"command": "view", "path": path} if content.endswith("?") else note
        used = {"type": "tool_use", "id": "call-1", "name": "memory", "input": call}
        return {**_as_anthropic(""), "stop_reason": "tool_use", "content": [used]}
    told = str(content[0]["content"])
    return _as_anthropic(f"You told me: {told.split(chr(9))[-1]}" if chr(9) in told else "I will keep that in mind.")


def _as_openai(said: str) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": "stand-in",
        "object": "chat.completion",
        "created": 0,
        "model": "stand-in",
        "choices": [choice],
        "usage": usage,
    }


def _as_anthropic(said: str) -> dict[str, Any]:
    return {
        "id": "stand-in",
        "type": "message",
        "role": "assistant",
        "model": "stand-in",
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "content": [{"type": "text", "text": said}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }

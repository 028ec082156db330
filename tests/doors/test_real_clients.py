"""Claude Code and Codex themselves, as `wellworn connect` sets them up, with a model that follows a script.

They talk to a server of this test that speaks both makers' streaming protocols; a proxy that does not exist keeps them
from the network. Each runs three sessions in an empty project. Skipped where the program is not installed:
`npm install @anthropic-ai/claude-code @openai/codex`, with its folder of programs on the path.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import wellworn

pytestmark = pytest.mark.slow

Json = dict[str, Any]  # as the protocols have them
Move = str | tuple[str, Json]
"""What the model does: say a text, or call a tool with arguments."""
TOOL = "mcp__wellworn"
WAIT = "sleep 0.2"
"""Agents may ask their model before our server is up; the model runs this until they offer its tools."""


class ScriptedModel(BaseHTTPRequestHandler):
    """Answers the n-th question of a session with the n-th move of a script."""

    server: ModelServer

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._send(b'{"data": [], "models": []}', "application/json")

    def do_HEAD(self) -> None:
        self._send(b"", "application/json")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(asked)
        answer = _openai if "input" in asked else _anthropic
        events = answer(asked, self.server.script, f"{len(self.server.asked)}")
        lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
        self._send("".join(lines).encode(), "text/event-stream")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class ModelServer(ThreadingHTTPServer):
    script: Sequence[Move] = ()
    asked: list[Json]


def _next(script: Sequence[Move], calls: Sequence[Json], tools: object) -> Move:
    """The move after these calls, whose arguments are given."""
    done = [given for given in calls if WAIT not in given.values()]
    move = script[min(len(done), len(script) - 1)]
    if isinstance(move, str) or move[0] == "Bash" or TOOL in str(tools):
        return move
    assert len(calls) - len(done) < 300, "the server of the memory never came up"
    return "Bash", {"command": WAIT}


def _anthropic(asked: Json, script: Sequence[Move], id: str) -> list[Json]:
    parts = [part for one in asked["messages"] if isinstance(one["content"], list) for part in one["content"]]
    calls = [part["input"] for part in parts if part["type"] == "tool_use"]
    move = _next(script, calls, asked["tools"]) if asked.get("tools") else "a title"
    if isinstance(move, str):
        block: Json = {"type": "text", "text": ""}
        delta, reason = {"type": "text_delta", "text": move}, "end_turn"
    else:
        name = move[0] if move[0] == "Bash" else f"{TOOL}__{move[0]}"
        block = {"type": "tool_use", "id": f"toolu_{id}", "name": name, "input": {}}
        delta, reason = {"type": "input_json_delta", "partial_json": json.dumps(move[1])}, "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{id}", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    ended = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": usage},
        {"type": "message_stop"},
    ]


def _openai(asked: Json, script: Sequence[Move], id: str) -> list[Json]:
    calls = [json.loads(item["arguments"]) for item in asked["input"] if item["type"] == "function_call"]
    move = _next(script, calls, asked["tools"])
    if isinstance(move, str):
        part = {"type": "output_text", "text": move, "annotations": []}
        item: Json = {"type": "message", "role": "assistant", "content": [part]}
    else:
        name, given = move
        runs = name == "Bash"
        item = {"type": "function_call", "call_id": f"call_{id}", "name": "exec_command" if runs else name}
        item |= {"arguments": json.dumps({"cmd": given["command"]} if runs else given)}
        item |= {} if runs else {"namespace": TOOL}
    item |= {"id": f"item_{id}", "status": "completed"}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": f"resp_{id}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    server = ModelServer(("127.0.0.1", 0), ScriptedModel)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(10)


class Desk:
    """An empty project, a home of its own, and an agent in it."""

    def __init__(self, place: Path, model: ModelServer, agent: str) -> None:
        self.model = model
        self.project = place / "project"
        self.home = place / "home"
        self.project.mkdir()
        self.home.mkdir()
        nowhere = "http://127.0.0.1:9"
        kept = {name: value for name in ("PATH", "LANG") if (value := os.environ.get(name))}
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), nowhere)
        own = {"HOME": str(self.home), "PYTHONPATH": str(Path(wellworn.__file__).parents[1])}
        self.env = {**kept, **proxies, **own, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        self.env |= self._claude() if agent == "claude" else self._codex()
        self.line = {
            "claude": ["claude", "--allowedTools", f"{TOOL},Bash", "-p"],
            "codex": ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"],
        }[agent]

    def _claude(self) -> Mapping[str, str]:
        # What the person allows when Claude Code asks for it at its first start.
        allowed = {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["wellworn"]}
        settings = self.home / "claude" / ".claude.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"hasCompletedOnboarding": True, "projects": {str(self.project): allowed}}))
        return {
            "CLAUDE_CONFIG_DIR": str(settings.parent),
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.model.server_port}",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def _codex(self) -> Mapping[str, str]:
        settings = self.home / "codex" / "config.toml"
        settings.parent.mkdir()
        settings.write_text(
            f"""
model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{self.model.server_port}/v1"
[projects."{self.project}"]
trust_level = "trusted"
"""
        )
        return {"CODEX_HOME": str(settings.parent)}

    def run(self, *line: str) -> str:
        done = subprocess.run(
            line, cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def wellworn(self, *line: str) -> str:
        return self.run(sys.executable, "-m", "wellworn", *line)

    def session(self, prompt: str, *script: Move) -> list[Json]:
        """Run one session; what the model was asked in it."""
        self.model.script, before = script, len(self.model.asked)
        self.run(*self.line, prompt)
        return [asked for asked in self.model.asked[before:] if asked.get("tools")]


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_coding_agent_remembers(tmp_path: Path, model: ModelServer, agent: str) -> None:
    if shutil.which(agent) is None:
        pytest.skip(f"{agent} is not installed")
    desk = Desk(tmp_path, model, agent)
    desk.wellworn("connect", {"claude": "claude-code"}.get(agent, agent))
    listed = desk.run(agent, "mcp", "list")
    assert "Connected" in listed if agent == "claude" else "enabled" in listed

    stored = {"text": "The tests run with make check."}
    first = desk.session("I prefer tabs over spaces.", ("memory_remember", stored), "Noted.")
    assert "<memories" not in str(first[0])  # nothing is known yet
    assert '"ids"' in str(first[-1]).replace("\\", "")

    second = desk.session("Tabs or spaces?", ("memory_search", {"query": "how do the tests run?"}), "Tabs.")
    assert "The user prefers tabs over spaces." in str(second[0])  # before the model said anything
    assert "make check" in str(second[-1])

    failed, worked = {"command": "cat tests/parse.txt"}, {"command": "mkdir tests && echo 12 passed"}
    task = "Run the tests of the parser and make them pass."
    desk.session(task, ("Bash", failed), ("Bash", worked), "They pass.")
    learned = desk.wellworn("tasks", "list", "--json")
    assert worked["command"] in learned
    assert failed["command"] in learned

    fourth = desk.session("Run the tests of the lexer and make them pass.", "I know how.")
    assert worked["command"] in str(fourth[0])

"""Every example runs as its page says, in a folder of its own; those that need a model get a server to talk to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.service import Service, chat, claude, refusal, serving

HELPERS = {"stand_in"}
EXAMPLES = sorted(path for path in (Path(__file__).parent.parent / "examples").glob("*.py") if path.stem not in HELPERS)
NEEDS = {
    "anthropic_loop": "anthropic",
    "langgraph_store": "langgraph",
    "openai_agents_loop": "agents",
    "openai_loop": "openai",
    "pydantic_ai_loop": "pydantic_ai",
    "recursive_repl": "pydantic_monty",
}
LOOPS = [name for name in NEEDS if name.endswith("_loop")]


def needed(name: str) -> None:
    """Skip what this place has no package for."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"examples/{name}.py needs a package that is not installed here")


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(Service()) as server:
        yield server


def run(name: str, folder: Path, service: Service | None = None, *, said: str = "") -> subprocess.CompletedProcess[str]:
    """The example, with our server as the only one there is."""
    needed(name)
    (path,) = [example for example in EXAMPLES if example.stem == name]
    environment = {key: value for key, value in os.environ.items() if not _leads_out(key)}
    if service is not None:
        environment |= {"OPENAI_BASE_URL": service.url, "OPENAI_API_KEY": "sk-test", "OLLAMA_HOST": service.address}
        environment |= {"ANTHROPIC_BASE_URL": service.address, "ANTHROPIC_API_KEY": "sk-test"}
    return subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=folder,
        env=environment,
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _leads_out(name: str) -> bool:
    """Whether a variable would send an example to another service than ours."""
    return name.upper().endswith("_PROXY") or name.startswith(("OPENAI_", "ANTHROPIC_", "WELLWORN_"))


@pytest.mark.parametrize("name", [example.stem for example in EXAMPLES])
def test_the_example_runs(name: str, tmp_path: Path, service: Service) -> None:
    service.otherwise = claude("I see.") if name == "anthropic_loop" else chat('{"facts": ["Ada walks"]}')
    done = run(name, tmp_path, service, said="hello\n")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout


def test_the_agent_loop_remembers_over_sessions(tmp_path: Path) -> None:
    monday, friday = run("agent_loop", tmp_path).stdout.splitlines()
    assert "nothing" in monday
    assert "green Brompton" in friday


def test_programs_compare_all_teams(tmp_path: Path) -> None:
    conclusion, rests, *_ = run("recursive_repl", tmp_path).stdout.splitlines()
    assert conclusion == "Team Boreas, Team Draco: fails at once; Team Atlas, Team Cygnus: retries twice"
    assert rests == "rests on 4 entries, confidence 0.8"


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_remembers_cites_and_learns_without_a_key(name: str, tmp_path: Path) -> None:
    done = run(name, tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "monday: My bicycle is a green Brompton. → I will keep that in mind.",
        "monday: I take my tea without milk. → I will keep that in mind.",
        "friday: Which bicycle do I have? → You told me: My bicycle is a green Brompton.",
        "(outcomes learned from: 2)",
    ]


def test_the_chat_remembers_what_was_said_before(tmp_path: Path, service: Service) -> None:
    service.otherwise = chat("I see.")
    run("ollama_chat", tmp_path, service, said="My bicycle is a green Brompton.\n\n")
    done = run("ollama_chat", tmp_path, service, said="Which bicycle do I have?\n")
    assert "I see." in done.stdout
    assert service.requests[0]["model"] == "llama3.2"
    assert "green Brompton" in service.requests[-1]["messages"][-1]["content"]


def test_the_chat_says_why_there_is_no_answer(tmp_path: Path, service: Service) -> None:
    service.otherwise = refusal(404, "model not found")
    done = run("ollama_chat", tmp_path, service, said="hi\n")
    assert done.returncode == 1
    assert "ollama pull llama3.2" in done.stderr


def test_facts_come_out_of_a_conversation_with_their_cost(tmp_path: Path, service: Service) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    service.otherwise = chat('Sure:\n```json\n{"facts": ["Ada lives in Bonn",]}\n```', usage=usage)
    done = run("openai_compatible", tmp_path, service)
    assert done.stdout.splitlines() == ["- Ada lives in Bonn", "(1 call, 100 + 20 tokens, $0.000027)"]
    assert service.requests[0]["response_format"] == {"type": "json_object"}


def test_an_answer_without_facts_is_told(tmp_path: Path, service: Service) -> None:
    service.otherwise = chat("I am sorry")
    done = run("openai_compatible", tmp_path, service)
    assert done.returncode == 1
    assert "holds no JSON: it begins 'I am sorry'" in done.stderr


def test_the_client_tunes_itself(tmp_path: Path) -> None:
    rounds = run("api_client", tmp_path).stdout.splitlines()
    assert rounds[0] == "round 1: users 3 attempts, analytics 3 attempts, media 2 attempts"
    assert rounds[2] == "round 3: users 1 attempt, analytics 1 attempt, media 1 attempt"


def test_reviewers_learn_what_to_look_for_and_hand_it_on(tmp_path: Path) -> None:
    first, *_, last, newcomer, item = run("code_review_agents", tmp_path).stdout.splitlines()
    assert int(first.split()[-4]) > 2
    assert last == "changes 37-48: 0 defects got through"
    assert newcomer == "the newcomer starts with 2 items of security-reviewer and misses 0"
    assert 'check(defect="sql from strings")' in item

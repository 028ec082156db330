"""Every example runs as its page says, in a folder of its own. Those that need a model get a server to talk to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.service import Service, chat, refusal, serving

FOLDER = Path(__file__).parents[1] / "examples"
LOOPS = {"anthropic_loop": "anthropic", "openai_agents_loop": "agents", "openai_loop": "openai"} | {
    "pydantic_ai_loop": "pydantic_ai"
}
"""Examples with an SDK that takes seconds to import, and its name."""


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(Service()) as server:
        yield server


def run(
    name: str, folder: Path, service: Service | None = None, *, said: str = "", warnings: str = "error"
) -> subprocess.CompletedProcess[str]:
    """Run an example with our server as the only one there is."""
    environment = {key: value for key, value in os.environ.items() if not _leads_out(key)}
    if service is not None:
        environment |= {"OPENAI_BASE_URL": service.url, "OPENAI_API_KEY": "sk-test", "OLLAMA_HOST": service.address}
    return subprocess.run(
        [sys.executable, "-W", warnings, str(FOLDER / f"{name}.py")],
        cwd=folder,
        env=environment,
        input=said,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _leads_out(name: str) -> bool:
    """Whether a variable would send an example to another service than ours."""
    return name.upper().endswith("_PROXY") or name.startswith(("OPENAI_", "ANTHROPIC_", "WELLWORN_"))


def lines(name: str, folder: Path, service: Service | None = None, *, said: str = "") -> list[str]:
    """What an example prints that succeeds without a warning."""
    done = run(name, folder, service, said=said)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_every_example_has_a_test() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    names = [path.stem for path in FOLDER.glob("*.py") if path.stem != "stand_in"]
    assert [name for name in names if f'"{name}"' not in here] == []


def test_the_agent_loop_remembers_over_sessions(tmp_path: Path) -> None:
    monday, friday = lines("agent_loop", tmp_path)
    assert "nothing" in monday
    assert "green Brompton" in friday


def test_the_langchain_agent_remembers_from_monday_to_friday(tmp_path: Path) -> None:
    pytest.importorskip("langchain")
    assert lines("langchain_agent", tmp_path) == [
        "monday: I will keep that in mind.",
        "friday: I remember: ada: My bicycle is a green Brompton and it squeaks.",
        "learned from 1 answer; faults: {}",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_remembers_cites_and_learns_without_a_key(name: str, tmp_path: Path) -> None:
    pytest.importorskip(LOOPS[name], reason=f"examples/{name}.py needs a package that is not installed here")
    assert lines(name, tmp_path) == [
        "monday: My bicycle is a green Brompton. → I will keep that in mind.",
        "monday: I take my tea without milk. → I will keep that in mind.",
        "friday: Which bicycle do I have? → You told me: My bicycle is a green Brompton.",
        "(outcomes learned from: 1)",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "package", "said"),
    [
        ("agent_framework_memory", "agent_framework", "Which bicycle do I have? → A green Brompton."),
        ("adk_memory", "google.adk", "friday: Which bicycle do I have? → A green Brompton."),
        ("llama_index_memory", "llama_index.core", "comes back: True"),
        ("crewai_memory", "crewai", "Where is the office? → The office is in Oslo."),
        ("langgraph_store", "langgraph", "ben, friday:  I remember: Mine is a red racing bicycle."),
        ("anthropic_memory_tool", "anthropic", "recall finds it too: notes.md"),
        ("openai_agents_session", "agents", "recalled: My bicycle is a green Brompton."),
    ],
)
def test_a_framework_remembers(name: str, package: str, said: str, tmp_path: Path) -> None:
    pytest.importorskip(package, reason=f"examples/{name}.py needs a package that is not installed here")
    done = run(name, tmp_path, warnings="default")  # large frameworks warn of themselves
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == said


@pytest.mark.slow
def test_programs_compare_all_teams(tmp_path: Path) -> None:
    pytest.importorskip("pydantic_monty")
    conclusion, rests, *_ = lines("recursive_repl", tmp_path)
    assert conclusion == "Team Boreas, Team Draco: fails at once; Team Atlas, Team Cygnus: retries twice"
    assert rests == "rests on 4 entries, confidence 0.8"


def test_the_chat_remembers_what_was_said_before(tmp_path: Path, service: Service) -> None:
    service.otherwise = chat("I see.")
    lines("ollama_chat", tmp_path, service, said="My bicycle is a green Brompton.\n\n")
    assert "> I see." in lines("ollama_chat", tmp_path, service, said="Which bicycle do I have?\n")
    assert service.requests[0]["model"] == "llama3.2"
    assert "green Brompton" in service.requests[-1]["messages"][-1]["content"]


def test_the_chat_says_why_there_is_no_answer(tmp_path: Path, service: Service) -> None:
    service.otherwise = refusal(404, "model not found")
    done = run("ollama_chat", tmp_path, service, said="hi\n")
    assert done.returncode == 1
    assert "ollama pull llama3.2" in done.stderr


@pytest.mark.slow
def test_facts_come_out_of_a_conversation_with_their_cost(tmp_path: Path, service: Service) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    service.otherwise = chat('Sure:\n```json\n{"facts": ["Ada lives in Bonn",]}\n```', usage=usage)
    found = lines("openai_compatible", tmp_path, service)
    assert found == ["- Ada lives in Bonn", "(1 call, 100 + 20 tokens, $0.000027)"]
    assert service.requests[0]["response_format"] == {"type": "json_object"}


@pytest.mark.slow
def test_the_client_tunes_itself(tmp_path: Path) -> None:
    rounds = lines("api_client", tmp_path)
    assert rounds[0] == "round 1: users 3 attempts, analytics 3 attempts, media 2 attempts"
    assert rounds[2] == "round 3: users 1 attempt, analytics 1 attempt, media 1 attempt"


@pytest.mark.slow
def test_reviewers_learn_what_to_look_for_and_hand_it_on(tmp_path: Path) -> None:
    first, *_, last, newcomer, item = lines("code_review_agents", tmp_path)
    assert int(first.split()[-4]) > 2
    assert last == "changes 37-48: 0 defects got through"
    assert newcomer == "the newcomer starts with 2 items of security-reviewer and misses 0"
    assert 'check(defect="sql from strings")' in item

"""A judge that reads shells: programs and sub-commands, exit codes, tests, and what only looks."""

from __future__ import annotations

from typing import Any

import pytest

from wellworn.tasks import trajectory_of
from wellworn.tasks.distill import distill
from wellworn.tasks.judge import judge
from wellworn.tasks.shell import looks, programs, read_output


def ran(command: str, code: int | None = None, output: str = "") -> dict[str, Any]:
    return {"tool": "Bash", "args": {"command": command}, "result": output, "exit_code": code}


EDIT = {"tool": "Edit", "args": {"path": "a.py"}, "result": "written"}


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("cd app && make test", [("make", "test")]),
        ("pytest -q tests/a.py | tail -5", [("pytest",)]),
        ("python3 -m pytest", [("pytest",)]),
        ("uv run pytest", [("pytest",)]),
        ("python3 run.py --fast", [("python3", "run.py")]),
        ("npm run build", [("npm", "run", "build")]),
        ("docker compose up -d", [("docker", "compose", "up")]),
        ("DEBUG=1 sudo make install", [("make", "install")]),
        ("git commit -m 'ls && rm'", [("git", "commit")]),
        ("bash -c 'npm test'", [("npm", "test")]),
        ("timeout 60 cargo build; ls", [("cargo", "build")]),
        ("ls -la", [("ls",)]),
    ],
)
def test_a_command_is_its_programs_and_sub_commands(command: str, meant: list[tuple[str, ...]]) -> None:
    assert list(programs(command)) == meant


@pytest.mark.parametrize("command", ["ls", "cat a | head", "git status", "docker ps", "grep -r x .", "sed -n 1,5p a"])
def test_looking_is_not_doing(command: str) -> None:
    assert all(looks(program) for program in programs(command))


@pytest.mark.parametrize("command", ["git push", "docker run x", "sed -i s/a/b/ f", "make", "rm a", "./deploy.sh"])
def test_doing_is_not_looking(command: str) -> None:
    assert not any(looks(program) for program in programs(command))


@pytest.mark.parametrize(
    "output",
    [
        "cp: cannot create regular file '/etc/a': Permission denied",
        "git@host: Permission denied (publickey).",
        "zsh: command not found: terraform\nzsh: terraform: command not found",
        "cat: notes.txt: No such file or directory",
        "fatal: not a git repository",
        "error: failed to push some refs",
    ],
)
def test_what_programs_print_when_they_fail(output: str) -> None:
    assert read_output(output) is False


FAILED = {
    "a build, then a look": [ran("make", 2), ran("ls", 0, "a b")],
    "tests, then a look": [ran("pytest", 1, "1 failed, 2 passed in 0.1s"), ran("cat a.py", 0, "x")],
    "an installation, then an echo": [ran("npm install", 1, "npm ERR! 404"), ran("echo done", 0, "done")],
    "no rights": [ran("./deploy.sh", 126, "bash: ./deploy.sh: Permission denied"), ran("cat deploy.sh", 0, "x")],
    "no rights and no exit codes": [ran("cp a /etc/", None, "cp: '/etc/a': Permission denied"), ran("ls", None, "a")],
    "a chain": [ran("make && ls", 2), ran("ls", 0)],
    "a pipe that hides the exit code": [ran("pytest | tail -3", 0, "1 failed, 3 passed in 0.2s")],
    "other work after a failed build": [
        ran("make", 2, "make: *** [all] Error 1"),
        ran("touch x", 0),
        ran("git add x", 0),
    ],
}
UNSURE = {
    "only looking": [ran("ls", 0), ran("cat x", 0)],
    "another sub-command": [ran("docker build .", 1), ran("docker pull x", 0)],
    "another script": [ran("python migrate.py", 1), ran("python hello.py", 0, "hi")],
    "another tool for it": [ran("pip install x", 1), ran("uv pip install x", 0)],
    "tests pass, the deployment does not": [ran("pytest", 0, "3 passed in 0.1s"), ran("fly deploy", 1), ran("ls", 0)],
}
WORKED = {
    "the same again": [ran("git push", 1), ran("git pull --rebase", 0), ran("git push", 0)],
    "tests after the change": [ran("pytest", 1, "1 failed in 0.1s"), EDIT, ran("pytest", 0, "3 passed in 0.1s")],
    "nothing found, then done": [ran("grep foo a", 1), ran("git commit -m x", 0)],
}


@pytest.mark.parametrize("steps", FAILED.values(), ids=FAILED)
def test_a_failed_session_is_a_failure_and_never_a_strategy(steps: list[dict[str, Any]]) -> None:
    work = trajectory_of({"query": "Get it done", "steps": steps})
    verdict = judge(work)
    assert verdict.outcome == "failure"
    assert all(item.kind == "guardrail" for item in distill([(work, verdict)]).items)


@pytest.mark.parametrize("steps", UNSURE.values(), ids=UNSURE)
def test_unsure_means_unsure(steps: list[dict[str, Any]]) -> None:
    work = trajectory_of({"query": "Get it done", "steps": steps})
    verdict = judge(work)
    assert (verdict.outcome, verdict.success) == ("unsure", False)
    assert distill([(work, verdict)]).items == []


@pytest.mark.parametrize("steps", WORKED.values(), ids=WORKED)
def test_what_failed_and_then_worked_is_a_success(steps: list[dict[str, Any]]) -> None:
    work = trajectory_of({"query": "Get it done", "steps": steps})
    verdict = judge(work)
    assert verdict.outcome == "success"
    assert not any(
        "ls" in call.args.get("command", "") for one in distill([(work, verdict)]).items for call in one.pattern.calls
    )

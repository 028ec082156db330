"""A failing check is information: it never becomes advice against the check. A call that cannot work does."""

from __future__ import annotations

from typing import Any

import pytest

from wellworn.tasks.calls import followed
from wellworn.tasks.distill import distill, read_items
from wellworn.tasks.items import NewItem
from wellworn.tasks.judge import Verdict, judge
from wellworn.tasks.trajectory import Trajectory, trajectory_of

from .test_shell import lines

CHECKS = {
    "pytest -q": ("F..\n1 failed, 2 passed in 0.12s", 1),
    "cd app && python -m pytest tests | tail -5": ("E   AssertionError\n2 failed in 1.02s", 1),
    "npm test": ("Tests: 1 failed, 4 passed, 5 total\nnpm ERR! Test failed.", 1),
    "npm run lint": ("/app/a.js\n  3:5  error  'x' is not defined  no-undef\n✖ 1 problem", 1),
    "uv run mypy src": ('a.py:3: error: Unexpected keyword argument "x" for "f"\nFound 1 error in 1 file', 1),
    "cargo build": ("error[E0308]: mismatched types\n --> src/main.rs:3:5\nerror: could not compile `app`", 101),
    "make": ("main.c:3:1: error: unknown type name 'in'\nmake: *** [Makefile:2: main.o] Error 1", 2),
    "make test": ("make: *** [Makefile:9: test] Error 1", 2),
    "go vet ./...": ("./main.go:5:2: undefined: x", 1),
    "black --check .": ("would reformat a.py\nOh no! 1 file would be reformatted.", 1),
    "mvn -q verify": ("Tests run: 4, Failures: 1, Errors: 0", 1),
    "docker build .": ("ERROR: process '/bin/sh -c make' did not complete successfully: exit code: 2", 1),
    "./check.sh": ("src/a.py:9:3: E225 missing whitespace", 1),
    "python -m pytest": ("FileNotFoundError: [Errno 2] No such file or directory: 'x'\n1 failed in 0.1s", 1),
}
WRONG = {
    "pip install requests": ("bash: pip: command not found", 127),
    "pytest --parallel 4": ("ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --parallel", 4),
    "ruff chek .": ("error: unrecognized subcommand 'chek'", 2),
    "npm run tset": ('npm ERR! Missing script: "tset"', 1),
    "make biuld": ("make: *** No rule to make target 'biuld'.  Stop.", 2),
    "python -m pytest -q": ("/usr/bin/python: No module named pytest", 1),
    "./build.sh": ("bash: ./build.sh: Permission denied", 126),
    "apt install jq": ("E: Could not open lock file - open (13: Permission denied)", 100),
}
EDIT = {"tool": "Edit", "args": {"file_path": "a.py", "new_string": "y"}, "result": "ok"}
WON, LOST = (Verdict(success=success, confidence=1.0, reasons=("wrong",)) for success in (True, False))


def bash(command: str, output: str, code: int, description: str = "") -> dict[str, Any]:
    args = {"command": command, **({"description": description} if description else {})}
    return {"tool": "Bash", "args": args, "error" if code else "result": output, "exit_code": code}


def work(*steps: dict[str, Any], verdict: bool | None = None) -> Trajectory:
    return trajectory_of({"query": "Mend the parser", "steps": list(steps), "verdict": verdict})


def taught(life: Trajectory) -> list[NewItem]:
    return distill([(life, judge(life))]).items


def against(items: list[NewItem], command: str) -> list[NewItem]:
    """Items that advise against a command."""
    return [item for item in items if any(call.args.get("command") == command for call in item.pattern.failed)]


@pytest.mark.parametrize("command", CHECKS)
@pytest.mark.parametrize("verdict", [None, True, False])
def test_what_a_check_found_is_never_held_against_it(command: str, verdict: bool | None) -> None:
    failing = bash(command, *CHECKS[command], description="Check it")
    passing = bash(command, "done", 0, description="Check it again")
    lives = [
        work(failing, EDIT, passing, verdict=verdict),
        work(EDIT, failing, EDIT, failing, verdict=verdict),
        work(failing, EDIT, bash("echo done", "done", 0), verdict=verdict),
    ]
    for life in lives:
        assert not against(taught(life), command)
        assert not [item for item in taught(life) if "rely on" in item.advice or "again when" in item.advice]
    assert not against(distill([(lives[0], WON), (lives[1], LOST), (lives[2], LOST)]).items, command)
    mended = taught(work(failing, EDIT, passing, verdict=True))
    assert [(item.kind, item.advice[:17]) for item in mended] == [("strategy", "This worked: Edit")]


@pytest.mark.parametrize(
    "edit",
    [
        "sed -i 's/a/b/' a.py",
        "grep -l a *.py | xargs sed -i 's/a/b/'",
        "cat > a.py <<EOF\nb\nEOF",
        "cat <<EOF > a.py\nb\nEOF",
    ],
)
def test_an_edit_by_a_command_is_no_part_of_a_recipe(edit: str) -> None:
    life = work(bash("pytest -q", *CHECKS["pytest -q"]), bash(edit, "", 0), bash("pytest -q", "3 passed in 0.1s", 0))
    assert [item.advice for item in taught(life)] == ['This worked: Bash(command="pytest -q").']
    dump = work(bash("pg_dump app > app.sql", "", 0), bash("make test", "3 passed in 0.1s", 0))
    assert "pg_dump" in taught(dump)[0].advice


@pytest.mark.parametrize("nothing", ["Ran 0 tests in 0.000s\n\nNO TESTS RAN", "no tests ran in 0.01s"])
def test_a_check_that_checked_nothing_is_no_part_of_a_recipe(nothing: str) -> None:
    refused = bash("pytest parsers", "bash: pytest: command not found", 127)
    life = work(refused, bash("python -m unittest", nothing, 0), bash("make test", "3 passed in 0.1s", 0))
    assert {call.args["command"] for item in taught(life) for call in item.pattern.calls} == {"make test"}


def test_a_test_run_that_said_nothing_is_not_the_right_one_where_a_later_one_says_that_it_holds() -> None:
    refused = bash("pytest parsers", "bash: pytest: command not found", 127)
    life = work(refused, bash("npm test", "", 0), bash("make test", "3 passed in 0.1s", 0))
    assert {call.args["command"] for item in taught(life) for call in item.pattern.calls} == {"make test"}
    assert judge(work(bash("npm test --if-present", "", 0))).outcome == "unsure"


@pytest.mark.parametrize(
    ("worked", "outcome"),
    [
        ("make test > 12 passed in 1.2s", "success"),
        ("tox -e py > OK", "success"),
        ("ruff check . > All good", "unsure"),
    ],
)
def test_a_run_that_failed_before_its_first_test_found_nothing(worked: str, outcome: str) -> None:
    said = "E   ModuleNotFoundError: No module named 'app'\n!!! Interrupted: 1 error during collection !!!\n1 error in 0.2s"
    command, _, output = worked.partition(" > ")
    assert judge(work(bash("pytest", said, 2), bash(command, output, 0))).outcome == outcome
    assert (
        judge(work(bash("pytest", "E  assert 1 == 2\n1 failed in 0.2s", 1), bash(command, output, 0))).outcome
        != "success"
    )


@pytest.mark.parametrize(
    "said",
    [
        "FAIL\tapp/db [build failed]\n--- FAIL: TestSum (0.00s)\nFAIL\tapp/sum\t0.01s",
        "E  assert 1 == 2\n!!! Interrupted: 1 error during collection !!!\n2 failed, 1 error in 0.2s",
        "Test suite failed to run\nTest Suites: 2 failed, 2 total\nTests:       1 failed, 4 passed, 5 total",
    ],
)
def test_a_run_of_which_some_tests_failed_has_found_something(said: str) -> None:
    assert judge(work(bash("npm test", said, 1), bash("make test", "OK", 0))).outcome != "success"


@pytest.mark.parametrize(
    "command",
    ["git commit -m \"$(cat <<'EOF'\nMend the parser\nEOF\n)\"", "kubectl apply -f - <<EOF\nkind: Namespace\nEOF"],
)
def test_a_document_that_goes_to_a_program_is_part_of_a_recipe(command: str) -> None:
    [item] = taught(work(bash(command, "done", 0)))
    assert [call.args["command"] for call in item.pattern.calls] == [command]


@pytest.mark.parametrize("command", WRONG)
def test_a_call_that_cannot_work_becomes_a_guardrail(command: str) -> None:
    for verdict, other in ((False, "true"), (True, "uv sync")):
        life = work(bash(command, *WRONG[command]), bash(other, "", 0), verdict=verdict)
        assert [item.kind for item in against(taught(life), command)] == ["guardrail"]


def test_make_checks_only_what_its_target_says() -> None:
    life = work(bash("make deploy", "make: *** [Makefile:7: deploy] Error 1", 2))
    assert [item.kind for item in against(taught(life), "make deploy")] == ["guardrail"]
    assert "check" not in judge(work(bash("make docs-upload", "Uploaded 42 files", 0))).reasons[0]


@pytest.mark.parametrize(
    "looked",
    lines("""
    grep -rn FIXME . >
    grep -rn FIXME . > Exit code 1
    git ls-files | grep -c FIXME > 0
    git grep FIXME >
    diff a b > < error: x
    git -C app diff --exit-code > -error: x
    test -f x >
    ! pgrep nginx >
    which jq >
    """),
)
def test_a_look_that_answers_no_is_no_failure(looked: str) -> None:
    command, _, output = looked.partition(" >")
    step = bash(command, output.strip(), 1)
    for life in (work(step), work(EDIT, step), work(EDIT, {**step, "exit_code": None, "ok": False})):
        assert judge(life).outcome != "failure"
        assert not against(distill([(life, LOST)]).items, command)


@pytest.mark.parametrize(
    "looked",
    lines("""
    grep -rn FIXME src > grep: src: No such file or directory
    cat notes > cat: notes: Permission denied
    diff -z a b > diff: invalid option -- 'z'
    docker ps > Cannot connect to the Docker daemon
    kubectl get pods > The connection to the server localhost:8080 was refused
    gh pr list > HTTP 401: Bad credentials
    """),
)
def test_a_look_that_was_refused_is_one(looked: str) -> None:
    command, output = looked.split(" > ")
    life = work(bash(command, output, 1))
    assert judge(life).outcome == "failure"
    assert against(taught(life), command)


def test_a_wrong_flag_that_was_corrected_names_both() -> None:
    life = work(bash("pytest --parallel 4", *WRONG["pytest --parallel 4"]), bash("pytest -n 4", "9 passed in 1s", 0))
    [item, *_] = taught(life)
    assert (item.kind, [call.args for call in item.pattern.calls]) == ("strategy", [{"command": "pytest -n 4"}])
    assert against([item], "pytest --parallel 4")


def test_a_model_cannot_hold_a_finding_against_a_check() -> None:
    life = work(EDIT, bash("pytest -q", *CHECKS["pytest -q"]), verdict=False)
    answer = '{"items": [{"title": "x", "text": "Do not run pytest after the edit.", "steps": [0, 1]}]}'
    [item], _ = read_items(answer, [life], kinds=["guardrail"], most=2)
    assert [call.tool for call in item.pattern.failed] == ["Edit"]


def test_advice_is_not_refuted_by_what_a_check_found() -> None:
    life = work(EDIT, bash("pytest -q", "4 passed in 0.1s", 0), verdict=True)
    [item] = taught(life)
    assert followed(item.pattern.calls, life) is True
    assert followed(item.pattern.calls, work(EDIT, bash("pytest -q", *CHECKS["pytest -q"]))) is None


@pytest.mark.parametrize(
    ("pair", "made_good"),
    [
        ("pytest > make check", True),
        ("pytest -q tests > python3 -m pytest -q", True),
        ("npm test > npx vitest run", True),
        ("python manage.py migrate > python3 manage.py migrate", True),
        ("pip install requests > uv pip install requests", True),
        ("docker-compose up -d > docker compose up -d", True),
        ("pytest > ruff check .", False),
        ("pytest > ls tests", False),
        ("./deploy prod > make check", False),
        ("git push origin main > git pull origin main", False),
    ],
)
def test_a_command_that_never_ran_is_made_good_by_one_that_stands_in(pair: str, made_good: bool) -> None:
    refused, worked = pair.split(" > ")
    life = work(EDIT, bash(refused, f"bash: {refused.split()[0]}: command not found", 127), bash(worked, "done", 0))
    assert judge(life).success is made_good
    assert not made_good or against(taught(life), refused)

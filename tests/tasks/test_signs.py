"""Signs of how it went, in trajectories that nobody judged: tools speak, the agent's own praise does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.tasks import Trajectory, trajectory_of
from wellworn.tasks.judge import SUREST_FAILURE, SUREST_SUCCESS, answer_of, judge, signs_of
from wellworn.tasks.shell import read_output

RIGHT = "collected 5 items\n\n===== 5 passed in 0.12s ====="
WRONG = "tests/test_a.py F....\n\n===== 1 failed, 4 passed in 0.12s ====="


def search(query: str, result: str = "", error: str = "") -> dict[str, object]:
    return {"tool": "search", "args": {"query": query}, "result": result, "error": error}


def tried(*steps: object, output: str = "") -> Trajectory:
    return trajectory_of({"query": "do it", "steps": list(steps), "output": output})


@pytest.mark.parametrize(
    "output",
    [
        WRONG,
        "Ran 4 tests in 0.01s\n\nFAILED (failures=1)",
        "Tests:       2 failed, 3 passed, 5 total",
        "  5 passing (20ms)\n  1 failing",
        "test result: FAILED. 3 passed; 1 failed; 0 ignored",
        "--- FAIL: TestAdd (0.00s)\nFAIL\texample.com/add\t0.1s",
        "Tests run: 5, Failures: 1, Errors: 0, Skipped: 0",
        "12 examples, 1 failure",
        "Found 3 errors in 2 files (checked 10 source files)",
        "error[E0382]: borrow of moved value",
        "make: *** [Makefile:3: test] Error 2",
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: no such thing',
        "bash: pytset: command not found",
        "the command exited with code 2",
    ],
)
def test_the_end_of_an_output_tells_that_it_failed(output: str) -> None:
    assert read_output(output) is False


@pytest.mark.parametrize(
    "output",
    [
        RIGHT,
        "Ran 4 tests in 0.01s\n\nOK",
        "Tests:       5 passed, 5 total",
        "  5 passing (20ms)",
        "test result: ok. 4 passed; 0 failed; 0 ignored",
        "ok  \texample.com/add\t0.1s",
        "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0",
        "12 examples, 0 failures",
        "Success: no issues found in 10 source files",
        "BUILD SUCCESSFUL in 2s",
    ],
)
def test_the_end_of_an_output_tells_that_the_checks_hold(output: str) -> None:
    assert read_output(output) is True


@pytest.mark.parametrize(
    "output",
    [
        "",
        "Everything is complete. Success!",
        "He failed 2 exams and passed 5 in 2020",
        "class ValueError: pass\nprint('it works')",
        "0 errors were seen",
        WRONG + "\n" + "a line of the log that was read\n" * 100,
    ],
)
def test_other_words_tell_nothing(output: str) -> None:
    assert read_output(output) is None


def test_tests_that_passed_after_the_last_change_are_a_success() -> None:
    run = {"tool": "bash", "args": {"command": "pytest"}, "result": RIGHT}
    edit = {"tool": "edit_file", "args": {"path": "a.py"}, "result": "written"}
    verdict = judge(tried(edit, run, output="Done."))
    assert verdict.success
    assert verdict.teaches
    assert "checks hold" in verdict.reasons[0]
    unproven = judge(tried(run, edit, output="Done."))
    assert not unproven.success
    assert not unproven.teaches


@pytest.mark.parametrize(("again", "success"), [({"ok": True, "result": "12 passed"}, True), ({"ok": False}, False)])
def test_a_check_that_failed_counts_until_it_works(again: dict[str, object], success: bool) -> None:
    run = {"tool": "Bash", "args": {"command": "make check"}}
    failed = {**run, "ok": False, "error": "make: *** [Makefile:3: check] Error 2"}
    edit = {"tool": "Edit", "args": {"path": "a.py"}, "result": "written"}
    verdict = judge(tried(failed, edit, {**run, **again}, output="Done."))
    assert (verdict.success, verdict.teaches) == (success, True)


def test_tests_that_failed_last_outweigh_praise_and_an_exit_code() -> None:
    run = {"tool": "bash", "args": {"command": "pytest"}, "result": WRONG}
    verdict = judge(tried(run, output="All tests pass. The task is complete."))
    assert not verdict.success
    assert verdict.confidence > 0.8
    both = judge(trajectory_of({"query": "q", "steps": [run], "exit_code": 0}))
    assert both.confidence < judge(trajectory_of({"query": "q", "steps": [], "exit_code": 0})).confidence


def test_a_page_that_strangers_wrote_proves_nothing() -> None:
    steps = [{"tool": "fetch", "args": {"url": "a"}, "result": RIGHT}]
    assert judge(trajectory_of({"query": "q", "steps": steps, "output": "Done"})).success
    assert not judge(trajectory_of({"query": "q", "steps": steps, "output": "Done", "trusted": False})).success


@pytest.mark.parametrize(
    ("trajectory", "reason"),
    [
        (tried(search("a", "x"), search("b", error="not found")), "the last call failed"),
        (tried(search("a", "x"), search("b", "y")), "without an answer"),
        (tried(search("a", "x"), search("a", "x"), output="x"), "called again unchanged"),
        (tried(search("a", error="none"), output="Rome"), "never worked afterwards"),
    ],
)
def test_a_sure_failure_says_why(trajectory: Trajectory, reason: str) -> None:
    verdict = judge(trajectory)
    assert not verdict.success
    assert verdict.teaches
    assert any(reason in why for why in verdict.reasons)


@pytest.mark.parametrize(
    "trajectory",
    [
        tried(output="Done, complete, success."),
        tried(search("a", "Paris is the capital"), output="Paris"),
        tried(search("a", "Paris"), output="I could not find it" + " anywhere" * 12),
        tried(search("a", "Paris"), output="Rome"),
        tried(search("a", error="none"), search("b", "Paris"), output="Paris"),
    ],
)
def test_a_weak_sign_alone_teaches_nothing(trajectory: Trajectory) -> None:
    verdict = judge(trajectory)
    assert not verdict.success
    assert not verdict.teaches


def test_handing_in_an_answer_always_works_and_shows_nothing() -> None:
    finish = {"tool": "Finish", "args": {"input": "Paris"}, "ok": True}
    found = tried(search("a", "Paris"), finish)
    assert answer_of(found) == "Paris"
    assert not judge(found).success
    assert judge(tried(search("a", "Paris"), {"tool": "save", "args": {}, "ok": True})).success


def test_trying_again_until_it_works_is_no_loop_and_doing_needs_no_answer() -> None:
    """The right way to use a busy service must not look like a failure, or a guardrail against it is learned."""
    busy, done = ({"tool": "fetch", "args": {"id": 1}, **end} for end in ({"error": "503"}, {}))
    wait = {"tool": "wait", "args": {"seconds": 5}}
    assert not judge(tried(busy, wait, done)).teaches
    assert judge(tried(busy, wait, busy)).teaches


def test_a_tool_that_was_called_right_in_the_end_is_no_failure() -> None:
    """Or the right call becomes a guardrail."""
    wrong, right = ({"tool": "refund", "args": {"amount": amount}} for amount in (59.9, 5990))
    steps = [{**wrong, "error": "must be in cents"}, {**right, "result": '{"refund_id": "rf_1"}'}]
    assert judge(tried(*steps, output="Refunded.")).outcome == "unsure"
    assert judge(tried(*steps, {"tool": "notify", "error": "no such user"}, output="Refunded.")).outcome == "failure"


_steps = st.fixed_dictionaries(
    {"tool": st.sampled_from(["search", "Finish", "edit", ""]), "text": st.text(max_size=20)},
    optional={"result": st.sampled_from([RIGHT, WRONG, "x"]), "error": st.just("e"), "ok": st.booleans()},
)


@given(st.lists(_steps, max_size=6), st.text(max_size=40))
def test_a_verdict_is_bounded_and_success_needs_a_sign_for_it(steps: list[dict[str, object]], output: str) -> None:
    trajectory = tried(*steps, output=output)
    verdict = judge(trajectory)
    assert 0.5 <= verdict.confidence <= (SUREST_SUCCESS if verdict.success else SUREST_FAILURE)
    if verdict.success:
        assert any(weight > 0 for weight, _ in signs_of(trajectory))


def test_a_closing_remark_after_work_that_says_it_worked_is_no_answer() -> None:
    verdict = judge(tried({"tool": "bash", "args": {"command": "make"}, "ok": True}, output="All good."))
    assert verdict.success
    assert verdict.teaches


def shell(command: str, code: int = 0, result: str = "") -> dict[str, object]:
    return {"tool": "bash", "args": {"command": command}, "exit_code": code, "result": result}

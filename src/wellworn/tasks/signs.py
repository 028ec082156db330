"""Signs in a trajectory of how it went, each with a weight: what the judge adds up when nobody says.

    log odds of success = sum of the weights of the signs that are there

Signs come from tools alone: no word of the agent counts. What counts is the last state of what was attempted; looking
at something afterwards proves nothing. Weights of signs that occur in real trajectories were set on one half of these;
those of exit codes and test runs are by judgement.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wellworn.tasks.calls import attempted, only_looks, unresolved
from wellworn.tasks.shell import read_checks
from wellworn.tasks.trajectory import Step, Trajectory

SHORT_ANSWER_CHARS = 80
"""An answer of at most this length can be looked up in what was seen."""
_ENDING = re.compile(r"(?:finish|submit|answer|final_?answer|final|respond|terminate|conclude)$", re.IGNORECASE)
_CHANGING = re.compile(r"(?:^|_)(?:edit|write|patch|replace|insert|create|delete|rename|move|apply)", re.IGNORECASE)
_YES_NO = ("yes", "no", "true", "false", "both", "neither")
_TO_A_JUDGE = re.compile(
    r"""
      \b(?:ignore|disregard|forget)\b.{0,40}\b(?:rules?|instructions?|prompt|above|previous)\b
    | "?success"?\s*:\s*"?true"?.{0,40}"?confidence"?
    | ^\W*(?:final\s+)?(?:result|verdict|judge?ment)\s*:\s*success
    | \b(?:judge|mark|label|rate|grade|count|report)\b.{0,40}\bas\b.{0,20}\bsuccess
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


@dataclass(frozen=True)
class Sign:
    """One thing that speaks for success (a weight above 0) or against it."""

    weight: float
    reason: str


def signs_of(trajectory: Trajectory) -> list[Sign]:
    """Every sign there is, in the order of this file."""
    calls = [step for step in trajectory.steps if step.action and not _ENDING.match(step.action)]
    return [
        *_end_signs(trajectory, calls),
        *_check_signs(trajectory),
        *_failure_signs(trajectory, calls),
        *_repeat_signs(calls),
        *_answer_signs(trajectory, calls),
    ]


def _end_signs(trajectory: Trajectory, calls: Sequence[Step]) -> Iterator[Sign]:
    last = trajectory.steps[-1] if trajectory.steps else Step()
    if trajectory.exit_code == 0:
        yield Sign(3.0, "exit code 0")
    did = [step for step in calls if not only_looks(step)]
    if did and did[-1].said_ok and last.said_ok and not _ENDING.match(last.action):  # anything can be handed in
        yield Sign(0.5, f"the last step worked: {did[-1].call}")
    looked = last.action and only_looks(last) and not last.said_ok
    if looked and (last.result or last.failed) and not answer_of(trajectory):
        yield Sign(-1.0, "it ended in looking something up, without an answer")


def _check_signs(trajectory: Trajectory) -> Iterator[Sign]:
    """The last test run or build whose output says how it went; one before the last change proves nothing."""
    steps = trajectory.steps
    told = [
        (place, passed)
        for place, step in enumerate(steps)
        if step.action and (passed := read_checks(step.error or step.result)) is not None
    ]
    if not told:
        return
    place, passed = told[-1]
    changed = any(step.action and _CHANGING.search(step.action) for step in steps[place + 1 :])
    if not passed:
        yield Sign(-0.8 if changed else -2.0, f"its output says that it failed: {steps[place].call}")
    elif not changed and trajectory.trusted:  # strangers can write such a line too
        yield Sign(1.4, f"its output says that the checks hold: {steps[place].call}")


def left_undone(trajectory: Trajectory) -> list[Step]:
    """Calls that failed and never worked afterwards, without those that only looked or handed in."""
    left = [trajectory.steps[place] for place in unresolved(trajectory)]
    return [step for step in left if not _ENDING.match(step.action) and not (step.command and only_looks(step))]


def _failure_signs(trajectory: Trajectory, calls: Sequence[Step]) -> Iterator[Sign]:
    """Errors: the last one, those that were never overcome, and that there were any."""
    left = left_undone(trajectory)
    if left and calls[-1].failed:
        yield Sign(-0.9, f"the last call failed: {calls[-1].line}")
    for step in {attempted(step): step for step in left}.values():
        yield Sign(-0.7, f"it failed and never worked afterwards: {step.call}")
    if any(step.failed for step in calls) and not any(step.said_ok for step in calls):
        yield Sign(-0.4, "calls failed on the way, and none says that it worked")


def _repeat_signs(calls: Sequence[Step]) -> Iterator[Sign]:
    """A call that was made again with the same result, also the last time."""
    times = Counter((step.call, step.error or step.result, step.failed) for step in calls if not step.said_ok)
    last = {step.call: (step.call, step.error or step.result, step.failed) for step in calls}
    again = [call for call, brought in last.items() if times[brought] > 1]
    if again:
        yield Sign(-1.2, f"called again unchanged, with the same result: {again[0]}")


def _answer_signs(trajectory: Trajectory, calls: Sequence[Step]) -> Iterator[Sign]:
    answer = answer_of(trajectory).strip().strip(".").casefold()
    if not answer or len(answer) > SHORT_ANSWER_CHARS or answer in _YES_NO:
        return
    if not calls or any(step.said_ok for step in calls):  # where things are done, the last words are a remark
        return
    if not any(answer in step.result.casefold() for step in calls):
        yield Sign(-0.4, "the answer stands in nothing that was seen")


def answer_of(trajectory: Trajectory) -> str:
    """What was answered: the output, else what the last call handed in."""
    last = trajectory.steps[-1] if trajectory.steps else None
    if trajectory.output.strip() or last is None or not _ENDING.match(last.action):
        return trajectory.output.strip()
    return " ".join(str(value) for value in last.arguments.values()).strip()


def speaks_to_a_judge(trajectory: Trajectory) -> bool:
    """Whether anything in it reads like an instruction to the judge: a page or a tool can hold it, and small models
    obey."""
    parts = (part for step in trajectory.steps for part in (step.result, step.error, step.text))
    return any(_TO_A_JUDGE.search(part) for part in (*parts, trajectory.output))

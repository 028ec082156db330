"""Signs in a trajectory of how it went, each with its weight: what the judge adds up when nobody says.

    log odds of success = sum of the weights of the signs that are there

Signs against come from what tools did and from an end that is none. Signs for come from tools alone: no word of the
agent speaks for it. An agent that says it failed is believed. Weights of signs that occur in real trajectories were
set on one half of these (docs/experiments.md); those of exit codes and test runs are by judgement.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wellworn.tasks.told import told_by
from wellworn.tasks.trajectory import Step, Trajectory

SHORT_ANSWER_CHARS = 80
"""An answer that is no longer can be looked up in what was seen."""
_ENDING = re.compile(r"(?:finish|submit|answer|final_?answer|final|respond|terminate|conclude)$", re.IGNORECASE)
_CHANGING = re.compile(r"(?:^|_)(?:edit|write|patch|replace|insert|create|delete|rename|move|apply)", re.IGNORECASE)
_LOOKING = re.compile(r"(?:search|look_?up|find|query|browse|grep|read|list|view)", re.IGNORECASE)
_GIVEN_UP = re.compile(
    r"\b(?:I(?:'m| am| was| have been)? (?:unable|not able)|I (?:could|can|did) ?not|I (?:couldn't|can't|didn't)|"
    r"I failed|I (?:have to )?give up|I do(?: not|n't) know)\b",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"\b(?:max(?:imum)?(?: number of)? (?:steps|iterations|turns)|(?:step|iteration|turn|token|recursion) limit|"
    r"timed out|out of (?:steps|turns|tokens|time))\b",
    re.IGNORECASE,
)
_YES_NO = ("yes", "no", "true", "false", "both", "neither")


@dataclass(frozen=True)
class Sign:
    """One thing that speaks for success (a weight above 0) or against it."""

    weight: float
    reason: str


def signs_of(trajectory: Trajectory) -> list[Sign]:
    """Every sign there is, in the order of this file."""
    calls = [step for step in trajectory.steps if step.action and not _ENDING.match(step.action)]
    return [
        *_of_the_end(trajectory),
        *_of_checks(trajectory),
        *_of_failures(calls),
        *_of_repeats(calls),
        *_of_the_answer(trajectory, calls),
    ]


def _of_the_end(trajectory: Trajectory) -> Iterator[Sign]:
    last = trajectory.steps[-1] if trajectory.steps else None
    if trajectory.exit_code == 0:
        yield Sign(3.0, "exit code 0")
    if last is not None and last.said_ok and not _ENDING.match(last.action):  # anything can be handed in
        yield Sign(0.5, f"the last step worked: {last.call}")
    said = trajectory.output or (last.text if last is not None and not last.action else "")
    if _LIMIT.search(said):
        yield Sign(-1.5, "it ran into a limit")
    if _GIVEN_UP.search(said):
        yield Sign(-0.4, "the agent says that it could not do it")
    looked = last is not None and _LOOKING.match(last.action) and not last.said_ok
    if last is not None and looked and (last.result or last.failed) and not answer_of(trajectory):
        yield Sign(-1.0, "it ended in looking something up, without an answer")


def _of_checks(trajectory: Trajectory) -> Iterator[Sign]:
    """The last test run or build whose output says how it went; one before the last change proves nothing."""
    steps = trajectory.steps
    told = [
        (place, said)
        for place, step in enumerate(steps)
        if step.action and (said := told_by(step.error or step.result)) is not None
    ]
    if not told:
        return
    place, held = told[-1]
    changed = any(step.action and _CHANGING.search(step.action) for step in steps[place + 1 :])
    if not held:
        yield Sign(-0.8 if changed else -2.0, f"its output says that it failed: {steps[place].call}")
    elif not changed and trajectory.trusted:  # strangers can write such a line too
        yield Sign(1.4, f"its output says that the checks hold: {steps[place].call}")


def _of_failures(calls: Sequence[Step]) -> Iterator[Sign]:
    """Errors: the last one, those that were never overcome, and that there were any."""
    left: dict[str, Step] = {}
    for step in calls:
        if step.failed:
            left[step.action] = step
        else:
            left.pop(step.action, None)
    if left and calls[-1].failed:
        yield Sign(-0.9, f"the last call failed: {calls[-1].line}")
    for step in left.values():
        yield Sign(-0.7, f"it failed and never worked afterwards: {step.call}")
    if any(step.failed for step in calls) and not any(step.said_ok for step in calls):
        yield Sign(-0.4, "calls failed on the way, and none says that it worked")


def _of_repeats(calls: Sequence[Step]) -> Iterator[Sign]:
    """A call that was made again and brought the same again, also the last time."""
    times = Counter((step.call, step.error or step.result, step.failed) for step in calls if not step.said_ok)
    last = {step.call: (step.call, step.error or step.result, step.failed) for step in calls}
    again = [call for call, brought in last.items() if times[brought] > 1]
    if again:
        yield Sign(-1.2, f"called again unchanged, with the same result: {again[0]}")


def _of_the_answer(trajectory: Trajectory, calls: Sequence[Step]) -> Iterator[Sign]:
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

"""Whether a task succeeded. When in doubt it did not: a false success teaches what does not work.

The caller's verdict is final. An uncaught exception, a failed check or an exit code other than 0 is a failure; checks
that all hold are a success. Else a model decides, and anything but its clear yes is a failure. Without a model the signs
in what tools said are added up. Nothing at all is a failure, as unsure as can be: it teaches nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import BudgetExceeded, ModelFailed, ReplyUnreadable
from wellworn.core.fence import escape
from wellworn.core.lazy import regex
from wellworn.core.wellformed import one_line
from wellworn.models.port import Model, Request, read_prompt
from wellworn.models.structured import fraction, read_json
from wellworn.tasks.calls import (
    answers_no,
    attempted,
    changes,
    holds,
    is_check,
    only_looks,
    same_attempt,
    turnarounds,
    unresolved,
)
from wellworn.tasks.shell import does_less, ran_nothing, read_checks, undoes, waits
from wellworn.tasks.trajectory import Step, Trajectory

JUDGE_TOKENS = 512
MAX_REASONS, MAX_REASON_CHARS = 5, 300
UNSURE = 0.5
"""How sure the rules are when nothing says how it went."""
SUREST_SUCCESS, SUREST_FAILURE = 0.8, 0.9
"""How sure signs can make the rules."""
TEACHES = 0.6
"""A verdict less sure than this is stored and reported, but teaches nothing."""
LEAST_SURE = 0.5
"""A model that says success less surely than this is unsure."""
SHORT_ANSWER_CHARS = 80
"""An answer of at most this length can be looked up in what was seen."""
_ENDING = regex(r"(?:finish|submit|answer|final_?answer|final|respond|terminate|conclude)$", re.IGNORECASE)
_YES_NO = ("yes", "no", "true", "false", "both", "neither")
_TO_A_JUDGE = regex(
    r"""
      \b(?:ignore|disregard|forget)\b.{0,40}\b(?:rules?|instructions?|prompt|above|previous)\b
    | "?success"?\s*:\s*"?true"?.{0,40}"?confidence"?
    | ^\W*(?:final\s+)?(?:result|verdict|judge?ment)\s*:\s*success
    | \b(?:judge|mark|label|rate|grade|count|report)\b.{0,40}\bas\b.{0,20}\bsuccess
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)

Sign = tuple[float, str]
"""One thing that speaks for success (a weight above 0) or against it, and why."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How a task went, how sure that is, why, and who says so (`user`, `rules` or a model's name)."""

    success: bool
    confidence: float
    reasons: tuple[str, ...] = ()
    by: str = "rules"
    fallback: str = ""
    """Why rules answered although there is a model."""

    @property
    def outcome(self) -> str:
        """`success`, `failure`, or `unsure` where it is not sure enough to learn from."""
        return ("success" if self.success else "failure") if self.teaches else "unsure"

    @property
    def teaches(self) -> bool:
        """Whether it is sure enough to learn from."""
        return self.confidence >= TEACHES


Judged = tuple[Trajectory, Verdict]


def judge(trajectory: Trajectory, model: Model | None = None) -> Verdict:
    """The verdict on a trajectory."""
    decided = _decided(trajectory)
    if decided is not None:
        return decided
    if model is None:
        return _by_signs(trajectory)
    try:
        return _by_model(trajectory, model)
    except (BudgetExceeded, ModelFailed, ReplyUnreadable) as error:
        return replace(_by_signs(trajectory), fallback=why_rules(error))


def why_rules(error: Exception) -> str:
    """Why rules answer instead of a model."""
    if isinstance(error, BudgetExceeded):
        return "over the budget"
    unreadable = isinstance(error, ReplyUnreadable)
    return "the model's answer could not be read" if unreadable else "the model could not answer"


def _decided(trajectory: Trajectory) -> Verdict | None:
    """What leaves no room for an opinion."""
    if trajectory.verdict is not None:
        return Verdict(success=trajectory.verdict, confidence=1.0, reasons=("the caller said so",), by="user")
    if trajectory.error:
        return _said(False, 0.95, [f"an exception was not caught: {trajectory.error}"])
    broken = [name for name, passed in trajectory.checks.items() if not passed]
    if broken:
        return _said(False, 0.95, [f"assertion failed: {name}" for name in broken])
    if trajectory.exit_code not in (None, 0):
        return _said(False, 0.9, [f"exit code {trajectory.exit_code}"])
    if trajectory.checks:
        return _said(True, 0.9, [f"assertion holds: {name}" for name in trajectory.checks])
    return None


def _by_signs(trajectory: Trajectory) -> Verdict:
    """What exit codes, tools and the way it ended add up to. What was attempted and never worked is no success."""
    signs = sorted(signs_of(trajectory))
    odds = sum(weight for weight, _ in signs)
    sure = round(1 / (1 + math.exp(-abs(odds))), 3)
    speak_for = [reason for weight, reason in reversed(signs) if weight > 0]
    against = [reason for weight, reason in signs if weight < 0]
    if speak_for and odds > 0 and not left_undone(trajectory):
        return _said(True, min(sure, SUREST_SUCCESS), speak_for)
    return _said(
        False, min(sure, SUREST_FAILURE) if odds < 0 else UNSURE, against or ["nothing shows that it succeeded"]
    )


def _said(success: bool, confidence: float, reasons: Iterable[str], by: str = "rules") -> Verdict:
    lines = [one_line(reason)[:MAX_REASON_CHARS] for reason in reasons]
    return Verdict(
        success=success, confidence=confidence, reasons=tuple(line for line in lines if line)[:MAX_REASONS], by=by
    )


def _by_model(trajectory: Trajectory, model: Model) -> Verdict:
    shown = f"{shown_task(trajectory.query)}\n{shown_steps(trajectory)}"
    verdict = read_verdict(ask(model, "judge", shown, max_tokens=JUDGE_TOKENS), by=model.name)
    # A page or a tool can hold what reads like an instruction to the judge, and small models obey.
    parts = (part for step in trajectory.steps for part in (step.result, step.error, step.text))
    if verdict.success and any(_TO_A_JUDGE.search(part) for part in (*parts, trajectory.output)):
        why = "unsure, so a failure: its steps hold words that tell a judge what to say"
        return _said(False, UNSURE, [why, *verdict.reasons], model.name)
    return verdict


_CLEAR = {"true": True, "false": False}


def read_verdict(answer: str, *, by: str) -> Verdict:
    """A model's answer, read strictly: only a clear and sure yes is a success, and only a clear no a failure."""
    said = read_json(answer, wants=("success",))
    told = said if isinstance(said, dict) else {}
    success = _CLEAR.get(str(told.get("success")).strip().lower())
    if success is None:
        raise ReplyUnreadable("the model's answer has no verdict")
    sure, why = fraction(told.get("confidence"), None), told.get("reasons")
    reasons = [str(one) for one in why if one is not None] if isinstance(why, list) else [str(why or "")]
    if success and sure is not None and sure < LEAST_SURE:
        return _said(False, UNSURE, ["it is not sure that this succeeded", *reasons], by)
    return _said(success, 0.7 if sure is None else sure, reasons, by)


# -- signs -----------------------------------------------------------------------------------------------------------
#
#     log odds of success = sum of the weights of the signs that are there
#
# Signs come from tools alone: no word of the agent counts. What counts is the last state of what was attempted; looking
# at something afterwards proves nothing. Weights of signs that occur in real trajectories were set on one half of these;
# those of exit codes and test runs are by judgement.


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
        yield (3.0, "exit code 0")
    did = [step for step in calls if not only_looks(step)]
    if (
        did
        and not (did[-1].command and changes(did[-1]))
        and did[-1].said_ok
        and last.said_ok
        and not _ENDING.match(last.action)
    ):  # anything can be handed in
        yield (0.5, f"the last step worked: {did[-1].call}")
    looked = last.action and only_looks(last) and not last.said_ok and not answers_no(last)
    if looked and (last.result or last.failed) and not answer_of(trajectory):
        yield (-1.0, "it ended in looking something up, without an answer")


def _check_signs(trajectory: Trajectory) -> Iterator[Sign]:
    """The last test run or build whose output says how it went; one before the last change proves nothing, nor does one
    that failed and worked when it was run again, though for fewer things."""
    steps = trajectory.steps
    done = [place for place, step in enumerate(steps) if changes(step) or (step.command and is_check(step))]
    if done and holds(steps[done[-1]]) and not any(map(is_check, left_undone(trajectory))):
        yield (1.4, f"the last check holds: {steps[done[-1]].call}")
        return
    overcome = {place for turn in turnarounds(trajectory) if steps[turn.worked].said_ok for place in turn.failed}
    partly = [(place, step) for place, step in enumerate(steps) if does_less(step.command, "") and holds(step)]
    overcome |= {
        place
        for place, step in enumerate(steps)
        for later, worked in partly
        if later > place and does_less(worked.command, step.command) and same_attempt(step, worked)
    }
    made = [(place, step) for place, step in enumerate(steps) if step.action and place not in overcome]
    made = [(place, step) for place, step in made if not ran_nothing(step.error or step.result)]
    told = [(place, passed) for place, step in made if (passed := read_checks(step.error or step.result)) is not None]
    if not told:
        return
    place, passed = told[-1]
    changed = any(map(changes, steps[place + 1 :]))
    if not passed:
        yield (-0.8 if changed else -2.0, f"its output says that it failed: {steps[place].call}")
    elif not changed and not steps[place].belied and trajectory.trusted:  # strangers can write such a line too
        yield (1.4, f"its output says that the checks hold: {steps[place].call}")


def does(trajectory: Trajectory) -> bool:
    """Whether there is anything to judge: something was done or said, or the caller says how it ended. What a coding
    agent only looked at is a question that was answered."""
    if _decided(trajectory) is not None or trajectory.exit_code == 0:
        return True
    return any(trajectory.trusted or not only_looks(step) for step in trajectory.steps)


def left_undone(trajectory: Trajectory) -> list[Step]:
    """Calls that failed and never worked afterwards, without those that handed in or, where commands are run, only looked:
    unless a command shows after the last one that did something that this did not work."""
    steps = trajectory.steps
    runs = any(step.command for step in steps)
    did = [place for place, step in enumerate(steps) if not only_looks(step) and not undoes(step.command)]
    return [
        steps[place]
        for place in unresolved(trajectory)
        if not _ENDING.match(steps[place].action)
        and not (runs and only_looks(steps[place]) and not (did and place > did[-1] and _shows_failure(steps[place])))
    ]


def _shows_failure(step: Step) -> bool:
    """Whether a command that waits for a state failed because of what there is: a deployment that never became ready."""
    return waits(step.command) and not answers_no(step) and not step.refused


def _failure_signs(trajectory: Trajectory, calls: Sequence[Step]) -> Iterator[Sign]:
    """Errors: the last one, those that were never overcome, and where things were only looked up that there were any."""
    left = left_undone(trajectory)
    if left and calls[-1].failed:
        yield (-0.9, f"the last call failed: {calls[-1].line}")
    for step in {attempted(step): step for step in left}.values():
        yield (-0.7, f"it failed and never worked afterwards: {step.call}")
    failed = calls if all(map(only_looks, calls)) else [trajectory.steps[place] for place in unresolved(trajectory)]
    if any(step.failed and not answers_no(step) for step in failed) and not any(step.said_ok for step in calls):
        yield (-0.4, "calls failed on the way, and none says that it worked")


def _repeat_signs(calls: Sequence[Step]) -> Iterator[Sign]:
    """A call that was made again with the same result, also the last time."""
    times = Counter((step.call, step.error or step.result, step.failed) for step in calls if not step.said_ok)
    last = {step.call: (step.call, step.error or step.result, step.failed) for step in calls}
    again = [call for call, brought in last.items() if times[brought] > 1]
    if again:
        yield (-1.2, f"called again unchanged, with the same result: {again[0]}")


def _answer_signs(trajectory: Trajectory, calls: Sequence[Step]) -> Iterator[Sign]:
    answer = answer_of(trajectory).strip().strip(".").casefold()
    if not answer or len(answer) > SHORT_ANSWER_CHARS or answer in _YES_NO:
        return
    if not calls or any(step.said_ok for step in calls):  # where things are done, the last words are a remark
        return
    if not any(answer in step.result.casefold() for step in calls):
        yield (-0.4, "the answer stands in nothing that was seen")


def answer_of(trajectory: Trajectory) -> str:
    """What was answered: the output, else what the last call handed in."""
    last = trajectory.steps[-1] if trajectory.steps else None
    if trajectory.output.strip() or last is None or not _ENDING.match(last.action):
        return trajectory.output.strip()
    return " ".join(str(value) for value in last.arguments.values()).strip()


# -- what models are asked ---------------------------------------------------------------------------------------------
#
# Constant instructions from files; trajectories as fenced and escaped data, within a budget.

MAX_LINE_CHARS = 1_200
MAX_SHOWN_CHARS = 24_000
"""Of all the steps that a model is shown at once; the middle of longer ones is left out."""


prompt = partial(read_prompt, __file__)


def ask(model: Model, name: str, shown: str, *, max_tokens: int) -> str:
    """The model's answer to a prompt with data."""
    purpose = "judge" if name == "judge" else "distill"
    return model.complete(
        Request.of(prompt(name), shown, purpose=purpose, max_output_tokens=max_tokens, json=True)
    ).text


def shown_task(query: str) -> str:
    return f"<task>{escape(query)}</task>"


def shown_steps(trajectory: Trajectory, *, prefix: str = "", room: int = MAX_SHOWN_CHARS) -> str:
    """The steps, one a line, and how it ended."""
    lines = [f"Step {prefix}{number} | {_cut(escape(step.line))}" for number, step in enumerate(trajectory.steps)]
    lines = _within(lines, room)
    lines += [f"Said at the end | {_cut(escape(trajectory.output))}"] if trajectory.output else []
    lines += [f"Exception | {_cut(escape(trajectory.error))}"] if trajectory.error else []
    lines += [f"Exit code | {trajectory.exit_code}"] if trajectory.exit_code is not None else []
    return "\n".join(["<trajectory>", *lines, "</trajectory>"])


def shown_attempts(attempts: Sequence[Judged]) -> str:
    """Several attempts, each with its verdict, numbered from 1."""
    room = MAX_SHOWN_CHARS // max(1, len(attempts))
    return "\n".join(
        f"Attempt {number} | {'success' if verdict.success else 'failure'}\n"
        f"{shown_steps(trajectory, prefix=f'{number}.', room=room)}"
        for number, (trajectory, verdict) in enumerate(attempts, start=1)
    )


def _within(lines: list[str], room: int) -> list[str]:
    """The first and the last lines that fit."""
    kept = list(lines)
    while kept and sum(map(len, kept)) > room:
        kept.pop(len(kept) // 2)
    middle, left = (len(kept) + 1) // 2, len(lines) - len(kept)
    return [*kept[:middle], f"… {left} steps left out …", *kept[middle:]] if left else kept


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LINE_CHARS else text[:MAX_LINE_CHARS] + " […]"

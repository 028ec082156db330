"""Whether a task succeeded. When in doubt it did not: a false success teaches what does not work.

| who says it                                        | what it says                                                   |
|----------------------------------------------------|----------------------------------------------------------------|
| the caller's verdict                               | final; nobody is asked further                                 |
| an uncaught exception, a failed check, exit code ≠ 0 | failure                                                      |
| the caller's checks, when all hold                 | success                                                        |
| a model, if there is one                           | its verdict; anything but a clear yes is a failure             |
| the signs (`signs`)                                | success where more speaks for it than against it, else failure |
| nothing                                            | failure, as unsure as can be: it teaches nothing               |
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from wellworn.core.errors import BudgetExceeded, ModelFailed, ReplyUnreadable
from wellworn.models.port import Model
from wellworn.models.structured import read_json
from wellworn.tasks.prompting import ask, shown_steps, shown_task
from wellworn.tasks.signs import left_undone, signs_of, speaks_to_a_judge
from wellworn.tasks.trajectory import Trajectory, one_line

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
    signs = sorted(signs_of(trajectory), key=lambda sign: sign.weight)
    odds = sum(sign.weight for sign in signs)
    sure = round(1 / (1 + math.exp(-abs(odds))), 3)
    speak_for = [sign.reason for sign in reversed(signs) if sign.weight > 0]
    against = [sign.reason for sign in signs if sign.weight < 0]
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
    if verdict.success and speaks_to_a_judge(trajectory):
        why = "unsure, so a failure: its steps hold words that tell a judge what to say"
        return _said(False, UNSURE, [why, *verdict.reasons], model.name)
    return verdict


def read_verdict(answer: str, *, by: str) -> Verdict:
    """A model's answer, read strictly: only a clear and sure yes is a success."""
    said = read_json(answer, wants=("success",))
    if not isinstance(said, dict) or "success" not in said:
        raise ReplyUnreadable("the model's answer has no verdict")
    sure = _fraction(said.get("confidence"))
    success = said["success"] is True or (isinstance(said["success"], str) and said["success"].lower() == "true")
    told = said.get("reasons")
    reasons = [str(one) for one in told if one is not None] if isinstance(told, list) else [str(told or "")]
    if success and sure is not None and sure < LEAST_SURE:
        return _said(False, round(1 - sure, 6), ["unsure, so a failure", *reasons], by)
    return _said(success, 0.7 if sure is None else sure, reasons, by)


def _fraction(value: Any) -> float | None:  # whatever the model wrote
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(min(max(value, 0.0), 1.0))

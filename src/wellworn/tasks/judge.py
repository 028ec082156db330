"""Whether a task succeeded. When in doubt it did not: a false success teaches what does not work.

| who                     | says                                                                                      |
|-------------------------|-------------------------------------------------------------------------------------------|
| the caller's verdict    | what it says; nobody is asked further                                                     |
| an uncaught exception, a failed assertion, an exit code other than 0 | failure                                      |
| the caller's assertions, all of them holding | success                                                              |
| a model, if there is one | its verdict, at temperature 0; anything but a clear yes is a failure                     |
| the [signs](signs.py): an exit code of 0, a last step that said it worked, test runs, errors, loops, no answer |    |
|                         | success where more speaks for it than against it, else failure; how sure, by how much     |
| nothing                 | failure, as unsure as can be: it teaches nothing                                          |

No word that the agent wrote speaks for it: "complete" is what failing agents say too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wellworn.core.errors import BudgetExceeded, ModelFailed, ReplyUnreadable
from wellworn.models.port import Message, Model, Request
from wellworn.models.structured import read_json
from wellworn.reflection.parse import clean_line
from wellworn.tasks.asking import asked
from wellworn.tasks.prompts import prompt
from wellworn.tasks.shown import shown_steps, shown_task
from wellworn.tasks.signs import signs_of
from wellworn.tasks.swayed import speaks_to_a_judge
from wellworn.tasks.trajectory import Trajectory, bounded
from wellworn.tasks.trajectory import said as text_of

JUDGE_TOKENS = 512
MAX_REASONS, MAX_REASON_CHARS = 5, 300
UNSURE = 0.5
"""How sure the rules are when nothing says how it went."""
SUREST_SUCCESS, SUREST_FAILURE = 0.8, 0.9
"""How sure signs can make the rules: less than what leaves no room for an opinion."""
TEACHES = 0.6
"""A verdict less sure than this is kept and told, but teaches nothing: no items, nothing surer or less sure."""
LEAST_SURE = 0.5
"""A model that says success less surely than this is unsure."""

Verify = Callable[[Trajectory], "bool | Mapping[str, bool] | None"]
"""The caller's own look at a trajectory: a verdict, assertions by name, or None for no opinion."""


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
        return "success" if self.success else "failure"

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
        return _by_signals(trajectory)
    try:
        return _by_model(trajectory, model)
    except BudgetExceeded:
        return replace(_by_signals(trajectory), fallback="over the budget")
    except ReplyUnreadable:
        return replace(_by_signals(trajectory), fallback="the model's answer could not be read")
    except ModelFailed:
        return replace(_by_signals(trajectory), fallback="the model could not answer")


def verified(trajectory: Trajectory, verify: Verify | None) -> Trajectory:
    """The trajectory with what the caller's own check says of it; a check that raises has failed."""
    if verify is None:
        return trajectory
    name = getattr(verify, "__name__", "check")
    try:
        said = verify(trajectory)
    except Exception as error:  # whatever an assertion raises, it did not hold
        said = {f"{name}: {type(error).__name__} {text_of(error)}".strip(): False}
    if said is None:
        return trajectory
    if isinstance(said, Mapping):
        checks = {**trajectory.checks, **{str(key): bool(value) for key, value in said.items()}}
        return bounded(replace(trajectory, checks=checks))
    return replace(trajectory, verdict=bool(said))


def _decided(trajectory: Trajectory) -> Verdict | None:
    """What leaves no room for an opinion."""
    if trajectory.verdict is not None:
        return Verdict(success=trajectory.verdict, confidence=1.0, reasons=("the caller said so",), by="user")
    if trajectory.error:
        return _failure(0.95, f"an exception was not caught: {trajectory.error}")
    broken = [name for name, held in trajectory.checks.items() if not held]
    if broken:
        return _failure(0.95, *(f"assertion failed: {name}" for name in broken))
    if trajectory.exit_code not in (None, 0):
        return _failure(0.9, f"exit code {trajectory.exit_code}")
    if trajectory.checks:
        return _success(0.9, *(f"assertion holds: {name}" for name in trajectory.checks))
    return None


def _by_signals(trajectory: Trajectory) -> Verdict:
    """What exit codes, tools and the way it ended add up to, when nobody else says anything."""
    signs = sorted(signs_of(trajectory), key=lambda sign: sign.weight)
    odds = sum(sign.weight for sign in signs)
    speak_for = [sign.reason for sign in reversed(signs) if sign.weight > 0]
    against = [sign.reason for sign in signs if sign.weight < 0]
    if speak_for and odds > 0:
        return _success(min(_sure(odds), SUREST_SUCCESS), *speak_for)
    return _failure(max(UNSURE, min(_sure(-odds), SUREST_FAILURE)), *(against or ["nothing shows that it succeeded"]))


def _sure(odds: float) -> float:
    return round(1 / (1 + math.exp(-odds)), 3)


def _success(confidence: float, *reasons: str) -> Verdict:
    return Verdict(success=True, confidence=confidence, reasons=_reasons(reasons))


def _failure(confidence: float, *reasons: str) -> Verdict:
    return Verdict(success=False, confidence=confidence, reasons=_reasons(reasons))


def _by_model(trajectory: Trajectory, model: Model) -> Verdict:
    def request(room: int) -> Request:
        shown = f"{shown_task(trajectory.query)}\n{shown_steps(trajectory, room=room)}"
        return Request(
            messages=(Message(role="system", text=prompt("judge")), Message(role="user", text=shown)),
            purpose="judge",
            max_output_tokens=JUDGE_TOKENS,
            temperature=0.0,
            json=True,
        )

    verdict = read_verdict(asked(model, request), by=model.name)
    if verdict.success and speaks_to_a_judge(trajectory):
        reasons = _reasons(
            ["unsure, so a failure: its steps hold words that tell a judge what to say", *verdict.reasons]
        )
        return replace(verdict, success=False, confidence=UNSURE, reasons=reasons)
    return verdict


def read_verdict(answer: str, *, by: str) -> Verdict:
    """A model's answer, read strictly: only a clear and sure yes is a success."""
    said = read_json(answer, wants=("success",))
    if not isinstance(said, dict) or "success" not in said:
        raise ReplyUnreadable("the model's answer has no verdict")
    sure = _number(said.get("confidence"))
    success = said["success"] is True or (isinstance(said["success"], str) and said["success"].lower() == "true")
    told = said.get("reasons")
    reasons = [str(one) for one in told if one is not None] if isinstance(told, list) else [str(told or "")]
    if success and sure is not None and sure < LEAST_SURE:
        return Verdict(
            success=False, confidence=round(1 - sure, 6), reasons=_reasons(["unsure, so a failure", *reasons]), by=by
        )
    return Verdict(success=success, confidence=0.7 if sure is None else sure, reasons=_reasons(reasons), by=by)


def _number(value: Any) -> float | None:  # whatever the model wrote
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(min(max(value, 0.0), 1.0))


def _reasons(said: Any) -> tuple[str, ...]:  # any texts
    lines = [clean_line(str(one))[:MAX_REASON_CHARS] for one in said]
    return tuple(line for line in lines if line)[:MAX_REASONS]

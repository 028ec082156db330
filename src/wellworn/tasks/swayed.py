"""Words in a trajectory that tell a judge what to say: a page or a tool can hold them, and small models obey."""

from __future__ import annotations

import re

from wellworn.tasks.trajectory import Trajectory

_SPEAKS = re.compile(
    r"""
      \b(?:ignore|disregard|forget)\b.{0,40}\b(?:rules?|instructions?|prompt|above|previous)\b
    | "?success"?\s*:\s*"?true"?.{0,40}"?confidence"?
    | ^\W*(?:final\s+)?(?:result|verdict|judge?ment)\s*:\s*success
    | \b(?:judge|mark|label|rate|grade|count|report)\b.{0,40}\bas\b.{0,20}\bsuccess
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def speaks_to_a_judge(trajectory: Trajectory) -> bool:
    """Whether anything that was seen or said in it reads like an instruction to whoever judges it."""
    parts = (part for step in trajectory.steps for part in (step.result, step.error, step.text))
    return any(_SPEAKS.search(part) for part in (*parts, trajectory.output))

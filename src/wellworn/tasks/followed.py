"""Whether an agent did what an item says, and what came of it: read off the calls, whatever became of the task.

A task can succeed although the advice it was given failed, because the agent found another way. Reads the words that
`patterns` writes; of words in any other form it has no opinion.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from wellworn.tasks.calls import called, put, put_at
from wellworn.tasks.trajectory import Trajectory

_LIKE = re.compile(r"^For tasks like “.*?”: ")
_AGAINST = re.compile(
    r"\. \S+ failed with .*: “|: before that it failed with|: attempts with it succeeded|: it worked at"
)
_ADVICE = re.compile(r"^(?:First|Call|This worked:|Try) ")
_CALL = re.compile(r"[\w.-]+\((?=[\w)])")


def refuted(text: str, trajectory: Trajectory) -> bool:
    """Whether the trajectory did what an item says to do, in that order, and it failed each time."""
    advice = _LIKE.sub("", text)
    if not _ADVICE.match(advice):
        return False
    against = _AGAINST.search(advice)
    advice = advice[: against.start()] if against else advice
    places = called(trajectory)
    calls = [put_at(trajectory, place) for place in places]
    literal = [put(trajectory.steps[place], "") for place in places]
    ends = [end for end in range(len(calls)) if _says(advice, calls[: end + 1], literal[: end + 1])]
    return bool(ends) and all(trajectory.steps[places[end]].failed for end in ends)


def _says(advice: str, calls: Sequence[str], literal: Sequence[str]) -> bool:
    """Whether the advice is just the last calls, each as it stands or with the task's values left open."""
    number = len(_CALL.findall(advice))
    if not 0 < number <= len(calls):
        return False
    at = 0
    for call, exact in zip(calls[-number:], literal[-number:], strict=True):
        found = [(place, len(one)) for one in (call, exact) if (place := advice.find(one, at)) >= 0]
        if not found:
            return False
        place, length = min(found)
        at = place + length
    return True

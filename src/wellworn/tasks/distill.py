"""What is worth keeping of a judged trajectory: by a model if there is one, else by comparing calls.

Evidence or reject: an item stays only if the steps it names say it. Knows no store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import BudgetExceeded, ModelFailed, ReplyUnreadable
from wellworn.core.fence import escape
from wellworn.core.lazy import regex
from wellworn.core.wellformed import one_line, shortened
from wellworn.ingest.terms import terms
from wellworn.models.port import Model
from wellworn.models.structured import read_json
from wellworn.tasks.calls import is_finding, opened
from wellworn.tasks.items import (
    ITEM_KINDS,
    MOST_CONTRASTS,
    MOST_GUARDRAILS,
    MOST_STRATEGIES,
    ItemKind,
    NewItem,
    pattern_for,
)
from wellworn.tasks.judge import Verdict, why_rules
from wellworn.tasks.patterns import LINE_CHARS, from_contrast, from_failure, from_success
from wellworn.tasks.prompting import ask, shown_attempts, shown_steps, shown_task
from wellworn.tasks.trajectory import Step, Trajectory

DISTILL_TOKENS = 1_200
LEAST_CHARS, MOST_CHARS = 20, 1_500
"""A text shorter or longer than this is no item."""
TITLE_CHARS = 120
MIN_SHARE = 0.15
"""Share of an item's words that must stand in the steps it names, or in the task."""
_REFERENCE = regex(r"(?:(?P<attempt>\d{1,3})\s*\.\s*)?(?P<step>\d{1,4})")
_NUMBER = regex(r"\d+")

Judged = tuple[Trajectory, Verdict]


@dataclass(frozen=True, kw_only=True)
class Distilled:
    """The items found, who found them, and what was dropped by reason."""

    items: list[NewItem]
    by: str = "rules"
    dropped: Counter[str] = field(default_factory=Counter)
    fallback: str = ""
    """Why rules answered although there is a model."""


def distill(attempts: Sequence[Judged], model: Model | None = None) -> Distilled:
    """The items of attempts at one task, compared where there are several. A verdict too unsure to teach is left out."""
    sure = [attempt for attempt in attempts if attempt[1].teaches]
    if not sure:
        return Distilled(items=[], dropped=Counter({"unsure verdict": len(attempts)}))
    if model is None:
        return Distilled(items=_by_rules(sure, alone=len(attempts) == 1))
    trajectories, (trajectory, verdict) = [trajectory for trajectory, _ in sure], sure[0]
    name, kinds, most = (
        ("contrast", ITEM_KINDS, MOST_CONTRASTS)
        if len(attempts) > 1
        else ("distill_success", ITEM_KINDS[:1], MOST_STRATEGIES)
        if verdict.success
        else ("distill_failure", ITEM_KINDS[1:], MOST_GUARDRAILS)
    )
    told = f"<verdict>{verdict.outcome}: {escape('; '.join(verdict.reasons))}</verdict>"
    work = (
        shown_attempts([(one, verdict.success) for one, verdict in sure])
        if len(attempts) > 1
        else f"{shown_steps(trajectory)}\n{told}"
    )
    try:
        answer = ask(model, name, f"{shown_task(trajectory.query)}\n{work}", max_tokens=DISTILL_TOKENS)
        items, dropped = read_items(answer, trajectories, kinds=kinds, most=most)
    except (BudgetExceeded, ModelFailed, ReplyUnreadable) as error:
        return Distilled(items=_by_rules(sure, alone=len(attempts) == 1), fallback=why_rules(error))
    return Distilled(items=items, by=model.name, dropped=dropped)


def _by_rules(attempts: Sequence[Judged], *, alone: bool) -> list[NewItem]:
    trajectory, verdict = attempts[0]
    if alone:
        return from_success(trajectory) if verdict.success else from_failure(trajectory, verdict.reasons)
    won = [trajectory for trajectory, verdict in attempts if verdict.success]
    return from_contrast(won, [trajectory for trajectory, verdict in attempts if not verdict.success])


# -- a model's answer ------------------------------------------------------------------------------------------------


def read_items(
    answer: str, trajectories: Sequence[Trajectory], *, kinds: Sequence[str], most: int
) -> tuple[list[NewItem], Counter[str]]:
    """The items of an answer that the steps support, and what was dropped by reason.

    With several `kinds` each item says which it is. `ReplyUnreadable` when there is no list of items at all.
    """
    dropped: Counter[str] = Counter()
    found: dict[str, NewItem] = {}
    for value in _values(answer):
        item = _read(value, trajectories, kinds)
        if isinstance(item, str):
            dropped[item] += 1
        elif item.text in found:
            dropped["said twice"] += 1
        elif len(found) >= most:
            dropped["too many"] += 1
        else:
            found[item.text] = item
    return [*found.values()], dropped


def _values(answer: str) -> list[Any]:
    value: Any = read_json(answer, wants=("items",))
    if isinstance(value, Mapping):
        value = value.get("items", value.get("memories", [value] if "text" in value else None))
    if isinstance(value, list):
        return value
    raise ReplyUnreadable("the model's answer has no list of items")


def _read(value: object, trajectories: Sequence[Trajectory], kinds: Sequence[str]) -> NewItem | str:
    """The item, or why it is none."""
    if not isinstance(value, Mapping) or not isinstance(value.get("text"), str):
        return "no text"
    said = kinds[0] if len(kinds) == 1 else str(value.get("kind")).lower()
    kind: ItemKind | None = next((each for each in ITEM_KINDS if each == said), None)
    if kind is None:
        return "no kind"
    title, when = (one_line(str(value.get(name) or "")) for name in ("title", "when"))
    body = one_line(value["text"])
    text = f"{when.rstrip('.')}: {body}" if when else body
    if len(body) < LEAST_CHARS or len(text) > MOST_CHARS:
        return "too short or too long"
    places = [*_places(value.get("steps"), trajectories)]
    steps = [trajectories[attempt].steps[place] for attempt, place in places]
    if why_not := rejection(f"{title}. {text}", steps, trajectories):
        return why_not
    made = [(step, opened(trajectories[attempt], place)) for (attempt, place), step in zip(places, steps, strict=True)]
    worked = [call for step, call in made if step.action and not step.failed and kind == "strategy"]
    wrong = [(step, call) for step, call in made if step.action and not is_finding(step)]
    failed = [call for step, call in wrong if step.failed or kind == "guardrail"]
    return NewItem(
        kind=kind,
        title=shortened(title, TITLE_CHARS) or shortened(body, 60),
        advice=body,
        when=when.rstrip("."),
        evidence="\n".join(step.line[:LINE_CHARS] for step in steps),
        pattern=pattern_for(trajectories[0], worked, failed),
    )


def rejection(text: str, steps: Sequence[Step], trajectories: Sequence[Trajectory]) -> str:
    """Why an item is not believed; empty when it is. It may use its own words, but rests on what happened."""
    said = "\n".join(step.line for step in steps)
    if not said.strip():
        return "no evidence"
    own = set(terms(text))
    known = set(terms(said)) | {term for one in trajectories for term in terms(one.query)}
    if not own or len(own & known) < MIN_SHARE * len(own):
        return "not in the evidence"
    everything = "\n".join(one.text for one in trajectories)
    return "" if set(_NUMBER.findall(text)) <= set(_NUMBER.findall(everything)) else "invented number"


def _places(value: object, trajectories: Sequence[Trajectory]) -> list[tuple[int, int]]:
    """The steps that an item names: 2, "2", "1.2" for step 2 of the first attempt; unknown ones are left out."""
    found: list[tuple[int, int]] = []
    for one in (value if isinstance(value, list) else [value])[:50]:
        match = _REFERENCE.search(str(one)) if not isinstance(one, bool) else None
        if match is not None:
            attempt, step = int(match["attempt"] or 1) - 1, int(match["step"])
            if 0 <= attempt < len(trajectories) and step < len(trajectories[attempt].steps):
                found.append((attempt, step))
    return [*dict.fromkeys(found)]

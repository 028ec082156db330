"""What is worth keeping of a judged trajectory: by a model if there is one, else by comparing calls.

Evidence or reject: an item stays only if the steps it names say it. Knows no store.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wellworn.core.errors import BudgetExceeded, ModelFailed, ReplyUnreadable
from wellworn.ingest.terms import terms
from wellworn.models.port import Message, Model, Request
from wellworn.models.structured import read_json
from wellworn.reflection.parse import clean_line
from wellworn.tasks.asking import asked
from wellworn.tasks.items import MOST_CONTRASTS, MOST_GUARDRAILS, MOST_STRATEGIES, Item, ItemKind
from wellworn.tasks.judge import Verdict
from wellworn.tasks.patterns import LINE_CHARS, from_contrast, from_failure, from_success
from wellworn.tasks.prompts import prompt
from wellworn.tasks.shown import shown_attempts, shown_steps, shown_task
from wellworn.tasks.trajectory import Step, Trajectory

DISTILL_TOKENS = 1_200
TEXT_CHARS = (20, 1_500)
"""An item's text shorter or longer than this is none."""
TITLE_CHARS = 120
MIN_SHARE = 0.15
"""Of an item's words that must stand in the steps it names, or in the task."""
_REFERENCE = re.compile(r"(?:(?P<attempt>\d{1,3})\s*\.\s*)?(?P<step>\d{1,4})")
_NUMBER = re.compile(r"\d+")

UNSURE_VERDICT = "unsure verdict"

Judged = tuple[Trajectory, Verdict]


@dataclass(frozen=True, kw_only=True)
class Distilled:
    """What was found, who found it, and what was dropped by reason."""

    items: list[Item]
    by: str = "rules"
    dropped: Counter[str] = field(default_factory=Counter)
    fallback: str = ""
    """Why rules answered although there is a model."""


def distill(
    trajectory: Trajectory, verdict: Verdict, model: Model | None = None, *, earlier: Sequence[Judged] = ()
) -> Distilled:
    """The items of one attempt. `earlier` are other attempts at the same task, for comparing without a model.

    None where the verdict is too unsure to teach.
    """
    if not verdict.teaches:
        return Distilled(items=[], dropped=Counter({UNSURE_VERDICT: 1}))
    if model is not None:
        name = "distill_success" if verdict.success else "distill_failure"

        def shown(room: int) -> str:
            steps = shown_steps(trajectory, room=room)
            return f"{shown_task(trajectory.query)}\n{steps}\n{_shown_verdict(verdict)}"

        kind: ItemKind = "strategy" if verdict.success else "guardrail"
        most = MOST_STRATEGIES if verdict.success else MOST_GUARDRAILS
        return _asked(
            model, name, shown, [trajectory], lambda: _by_rules(trajectory, verdict, earlier), kind=kind, most=most
        )
    return Distilled(items=_by_rules(trajectory, verdict, earlier))


def distill_attempts(attempts: Sequence[Judged], model: Model | None = None) -> Distilled:
    """The items of several attempts at one task, side by side; one with a verdict too unsure to teach is left out."""
    unsure = sum(not verdict.teaches for _, verdict in attempts)
    attempts = [attempt for attempt in attempts if attempt[1].teaches]
    if not attempts:
        return Distilled(items=[], dropped=Counter({UNSURE_VERDICT: unsure}))
    won = [trajectory for trajectory, verdict in attempts if verdict.success]
    lost = [trajectory for trajectory, verdict in attempts if not verdict.success]
    if model is None:
        return Distilled(items=from_contrast(won, lost))

    def shown(room: int) -> str:
        told = [(trajectory, verdict.success) for trajectory, verdict in attempts]
        return f"{shown_task(attempts[0][0].query)}\n{shown_attempts(told, room=room)}"

    return _asked(
        model,
        "contrast",
        shown,
        [trajectory for trajectory, _ in attempts],
        lambda: from_contrast(won, lost),
        kind=None,
        most=MOST_CONTRASTS,
    )


def _by_rules(trajectory: Trajectory, verdict: Verdict, earlier: Sequence[Judged]) -> list[Item]:
    """Of this attempt, or of what differs from earlier ones that went the other way; within the same limits."""
    if not verdict.success:
        return from_failure(trajectory, verdict.reasons)
    earlier = [(other, judged) for other, judged in earlier if judged.teaches]
    lost = [other for other, judged in earlier if not judged.success]
    won = [other for other, judged in earlier if judged.success]
    if lost:
        return [item for item in from_contrast([trajectory, *won], lost) if item.kind == "strategy"][:MOST_STRATEGIES]
    return from_success(trajectory)


def _asked(
    model: Model,
    name: str,
    shown: Callable[[int], str],
    trajectories: Sequence[Trajectory],
    rules: Callable[[], list[Item]],
    *,
    kind: ItemKind | None,
    most: int,
) -> Distilled:
    def request(room: int) -> Request:
        return Request(
            messages=(Message(role="system", text=prompt(name)), Message(role="user", text=shown(room))),
            purpose="distill",
            max_output_tokens=DISTILL_TOKENS,
            json=True,
        )

    try:
        answer = asked(model, request)
        items, dropped = read_items(answer, trajectories, kind=kind, most=most)
    except BudgetExceeded:
        return Distilled(items=rules(), fallback="over the budget")
    except ReplyUnreadable:
        return Distilled(items=rules(), fallback="the model's answer could not be read")
    except ModelFailed:
        return Distilled(items=rules(), fallback="the model could not answer")
    return Distilled(items=items, by=model.name, dropped=dropped)


def read_items(
    answer: str, trajectories: Sequence[Trajectory], *, kind: ItemKind | None, most: int
) -> tuple[list[Item], Counter[str]]:
    """The items of an answer that the steps bear out, and what was dropped by reason.

    `kind` is what they all are; without it each says so. `ReplyUnreadable` when there is no list of items at all.
    """
    dropped: Counter[str] = Counter()
    found: dict[str, Item] = {}
    for value in _values(answer):
        item = _read(value, trajectories, kind, dropped)
        if item is None:
            continue
        if item.text in found:
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


def _read(
    value: object, trajectories: Sequence[Trajectory], kind: ItemKind | None, dropped: Counter[str]
) -> Item | None:
    if not isinstance(value, Mapping) or not isinstance(value.get("text"), str):
        dropped["no text"] += 1
        return None
    title, when = (clean_line(str(value.get(name) or "")) for name in ("title", "when"))
    body = clean_line(value["text"])
    text = f"{when.rstrip('.')}: {body}" if when else body
    chosen = kind or _kind(value.get("kind"))
    if chosen is None or not TEXT_CHARS[0] <= len(body) or len(text) > TEXT_CHARS[1]:
        dropped["no kind" if chosen is None else "too short or too long"] += 1
        return None
    steps = [*_steps(value.get("steps"), trajectories)]
    reason = rejection(f"{title}. {text}", steps, trajectories)
    if reason is not None:
        dropped[reason] += 1
        return None
    evidence = "\n".join(step.line[:LINE_CHARS] for step in steps)
    return Item(kind=chosen, title=title[:TITLE_CHARS] or body[:60], text=text, evidence=evidence)


def rejection(text: str, steps: Sequence[Step], trajectories: Sequence[Trajectory]) -> str | None:
    """Why an item is not believed, or None when it is: it may put things its own way, but rests on what happened."""
    said = "\n".join(step.line for step in steps)
    if not said.strip():
        return "no evidence"
    own = set(terms(text))
    known = set(terms(said)) | {term for one in trajectories for term in terms(one.query)}
    if not own or len(own & known) < MIN_SHARE * len(own):
        return "not in the evidence"
    everything = "\n".join(one.text for one in trajectories)
    if not set(_NUMBER.findall(text)) <= set(_NUMBER.findall(everything)):
        return "invented number"
    return None


def _kind(value: object) -> ItemKind | None:
    word = str(value).lower()
    return "strategy" if word == "strategy" else "guardrail" if word == "guardrail" else None


def _steps(value: object, trajectories: Sequence[Trajectory]) -> Iterator[Step]:
    """The steps that an item names: 2, "2", "1.2" for step 2 of the first attempt; what is not there is left out."""
    named = value if isinstance(value, list) else [value]
    seen: set[tuple[int, int]] = set()
    for one in named[:50]:
        match = _REFERENCE.search(str(one)) if not isinstance(one, bool) else None
        if match is None:
            continue
        attempt, step = int(match["attempt"] or 1) - 1, int(match["step"])
        there = 0 <= attempt < len(trajectories) and step < len(trajectories[attempt].steps)
        if there and (attempt, step) not in seen:
            seen.add((attempt, step))
            yield trajectories[attempt].steps[step]


def _shown_verdict(verdict: Verdict) -> str:
    from wellworn.core.fence import escape

    return f"<verdict>{verdict.outcome}: {escape('; '.join(verdict.reasons))}</verdict>"

"""What is worth keeping of a judged trajectory: by a model if there is one, else by comparing calls.

Evidence or reject: an item stays only if the steps it names say it. Knows no store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import BudgetExceeded, ModelFailed, ReplyUnreadable
from wellworn.core.fence import escape
from wellworn.core.lazy import regex
from wellworn.core.wellformed import one_line, shortened
from wellworn.ingest.terms import terms
from wellworn.models.port import Model
from wellworn.models.structured import read_json
from wellworn.tasks.calls import (
    ERROR_CHARS,
    ToolCall,
    Turnaround,
    called,
    changed,
    error_of,
    is_check,
    opened,
    prepared,
    put_argument,
    recipe,
    same_attempt,
    turnarounds,
    unresolved,
)
from wellworn.tasks.items import (
    ITEM_KINDS,
    MOST_CONTRASTS,
    MOST_GUARDRAILS,
    MOST_STRATEGIES,
    START_CONFIDENCE,
    ItemKind,
    NewItem,
    pattern_for,
)
from wellworn.tasks.judge import Judged, ask, shown_attempts, shown_steps, shown_task, why_rules
from wellworn.tasks.shell import programs
from wellworn.tasks.trajectory import Step, Trajectory

DISTILL_TOKENS = 1_200
LEAST_CHARS, MOST_CHARS = 20, 1_500
"""A text shorter or longer than this is no item."""
TITLE_CHARS = 120
MIN_SHARE = 0.15
"""Share of an item's words, without those of the task, that must stand in the steps it names."""
_REFERENCE = regex(r"(?:(?P<attempt>\d{1,3})\s*\.\s*)?(?P<step>\d{1,4})")
_NUMBER = regex(r"\d+")


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
    told = f"<verdict>{verdict.outcome}: {escape('; '.join(verdict.reasons))}</verdict>"
    work = f"{shown_steps(trajectory)}\n{told}"
    if len(attempts) > 1:
        name, kinds, most = "contrast", ITEM_KINDS, MOST_CONTRASTS
        work = shown_attempts(sure)
    elif verdict.success:
        name, kinds, most = "distill_success", ITEM_KINDS[:1], MOST_STRATEGIES
    else:
        name, kinds, most = "distill_failure", ITEM_KINDS[1:], MOST_GUARDRAILS
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
    wrong = [(step, call) for step, call in made if step.action and not step.found]
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
    """Why an item is not believed; empty when it is. It may use its own words, but rests on what happened: the words of the
    task, which every item has, prove nothing, unless it has no others."""
    said = "\n".join(step.line for step in steps)
    if not said.strip():
        return "no evidence"
    every = set(terms(text))
    own = every - {term for one in trajectories for term in terms(one.query)} or every
    shared = own & {*terms(said), *terms("failed" * any(step.failed for step in steps))}
    if not shared or len(shared) < MIN_SHARE * len(own):
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


# -- without a model ---------------------------------------------------------------------------------------------------
#
# Deterministic, and only as clever as it can prove: every item names calls that were made and quotes them as evidence.
#
# | seen                                                              | item                                             |
# |-------------------------------------------------------------------|--------------------------------------------------|
# | a call failed, and worked with other arguments                    | strategy: these arguments, not those             |
# | a call failed, and the same call worked later                     | strategy: try again, after what was done between |
# | calls worked one after the other to a success                     | strategy: the recipe                             |
# | a call failed whatever was done before it                         | guardrail: not the last two ways                 |
# | the attempt ended in a failing call, or in a wrong result         | guardrail: not this call, not this way           |
# | a test, linter, compiler, grep or diff failed with what it found  | nothing against it: that is information          |
# | a call failed in one attempt, and worked in another               | strategy, as if one agent had done both          |

RULE_TITLE_CHARS = 90
RECIPE_STEPS = 8
LINE_CHARS = 600
DOUBTFUL = 0.35
"""How sure a guardrail against calls is that worked, as their tools say."""


def from_success(trajectory: Trajectory) -> list[NewItem]:
    """At most three strategies from an attempt that succeeded; no recipe where its last call failed for good. A command
    that could not be called at all is a guardrail, too."""
    # As far as calls were wrong: what a check found is nothing against them.
    wrong = [(turn, tuple(p for p in turn.failed if not trajectory.steps[p].found)) for turn in turnarounds(trajectory)]
    found = [_turned(trajectory, replace(turn, failed=failed)) for turn, failed in wrong if failed]
    calls, left = called(trajectory), unresolved(trajectory)
    whole = [] if calls and calls[-1] in left else _recipe(trajectory)
    refused = [_failed_call(trajectory, place) for place in left if trajectory.steps[place].refused]
    return [*_distinct([*found[: MOST_STRATEGIES - 1], *whole, *found])[:MOST_STRATEGIES], *refused[-1:]]


def from_failure(trajectory: Trajectory, reasons: Sequence[str] = ()) -> list[NewItem]:
    """At most two guardrails from an attempt that failed; `reasons` are the judge's."""
    left = [place for place in unresolved(trajectory) if not trajectory.steps[place].found]
    found = _ways(trajectory, left[-1]) or [_failed_call(trajectory, left[-1])] if left else []
    refused = [place for place in called(trajectory) if trajectory.steps[place].refused]
    found = found or _wrong_way(trajectory, reasons) or [_failed_call(trajectory, place) for place in refused[-1:]]
    return _distinct(found)[:MOST_GUARDRAILS]


def from_contrast(successes: Sequence[Trajectory], failures: Sequence[Trajectory]) -> list[NewItem]:
    """At most five items from several attempts at one task: what failed in one and worked in another, as if one agent
    had done both."""
    both = [replace(won, steps=(*_wrong(lost, won), *won.steps)) for won in successes[:1] for lost in failures]
    found = [item for one in [*both, *successes] for item in from_success(one)]
    return _distinct(found or [item for one in failures for item in from_failure(one)])[:MOST_CONTRASTS]


def _wrong(lost: Trajectory, won: Trajectory) -> list[Step]:
    """The calls that only the attempt that failed has made: they failed, whatever their tools say."""
    right = {step.call for step in won.steps if not step.failed}
    wrong = [step for step in lost.steps if step.action and step.call not in right]
    return [step if step.failed else replace(step, ok=False, error="the attempt failed") for step in wrong]


# -- one attempt -----------------------------------------------------------------------------------------------------


def _turned(trajectory: Trajectory, turn: Turnaround) -> NewItem:
    """A call that failed and then worked."""
    last, worked = trajectory.steps[turn.failed[-1]], trajectory.steps[turn.worked]
    different = changed(last, worked)
    before = [opened(trajectory, place) for place in turn.between]
    call = opened(trajectory, turn.worked, literal=different)
    failed = [opened(trajectory, place, literal=different) for place in turn.failed[-2:]]
    between = [one.text for one in before]
    first = f"First {', then '.join(between)}; then" if between else ""
    if different:
        now, then = (", ".join(put_argument(name, pair[side]) for name, pair in different.items()) for side in (1, 0))
        advice = f"{first or 'Call'} {call.text}. {worked.action} failed with {then}: {_error(last)}."
        title = f"{worked.action}: {now}, not {then}"
    elif between:
        advice = f"{first} call {call.text}: before that it failed with {_error(last)}."
        title = f"{worked.action}: first {', then '.join(between)}"
        failed = []
    else:
        advice = f"Try {call.text} again when it fails with {_error(last)}: it worked at try {len(turn.failed) + 1}."
        title = f"{worked.action}: try again, it worked at try {len(turn.failed) + 1}"
        failed = []
    places = (*turn.failed, *turn.between, turn.worked)
    return _item("strategy", title, advice, trajectory, places, [*before, call], failed)


def _recipe(trajectory: Trajectory) -> list[NewItem]:
    """The calls that worked, in order; of an attempt without calls, what it did in its own words."""
    places = recipe(trajectory)[-RECIPE_STEPS:]
    calls = [opened(trajectory, place) for place in places]
    if places:
        title, told = _names(trajectory, places), [call.text for call in calls]
    else:
        places, told = _own_words(trajectory) if not called(trajectory) else ([], [])
        title = told[0] if told else ""
    advice = f"This worked: {' → '.join(told)}."
    return [_item("strategy", title, advice, trajectory, places, calls)] if places else []


def _own_words(trajectory: Trajectory) -> tuple[list[int], list[str]]:
    places = [place for place, step in enumerate(trajectory.steps) if step.text and not step.failed][-RECIPE_STEPS:]
    return places, [shortened(trajectory.steps[place].text, 120).rstrip(".") for place in places]


def _ways(trajectory: Trajectory, last: int) -> list[NewItem]:
    """A call that failed whatever was done before it: the last ways that were tried, where there were several."""
    steps = trajectory.steps
    tried = [place for place in called(trajectory) if steps[place].failed and same_attempt(steps[place], steps[last])]
    before = {place: prepared(trajectory, place) for place in reversed(tried)}
    if len({tuple(steps[one].call for one in made) for made in before.values()}) < 2:  # it was tried again unchanged
        return []
    ways = [(*made, place) for place, made in before.items() if made]
    return [_way(trajectory, way, f"It failed with {_error(steps[way[-1]])}.") for way in ways]


def _failed_call(trajectory: Trajectory, place: int) -> NewItem:
    step, call = trajectory.steps[place], opened(trajectory, place)
    advice = f"Do not rely on {call.text}: it failed with {_error(step)}."
    title = f"{step.action}: failed with {_error(step, 50)}"
    return _item("guardrail", title, advice, trajectory, [place], failed=[call])


def _wrong_way(trajectory: Trajectory, reasons: Sequence[str]) -> list[NewItem]:
    """No call failed, and yet the result was wrong: the way itself, with why it was judged so."""
    why = shortened("; ".join(reasons) or trajectory.error, ERROR_CHARS)
    done = [place for place in recipe(trajectory) if not is_check(trajectory.steps[place])]
    if why and (places := done[-RECIPE_STEPS:]):
        ok = all(trajectory.steps[place].said_ok for place in places)  # the tools say that it worked
        return [replace(_way(trajectory, places, why), confidence=DOUBTFUL if ok else START_CONFIDENCE)]
    if why and trajectory.error:
        failed = _item("guardrail", f"Failed: {why}", f"This did not succeed. {why}", trajectory, [])
        return [replace(failed, evidence=trajectory.error)]
    places, told = _own_words(trajectory)
    advice = f"This way did not succeed: {' → '.join(told)}. {why}"
    return [_item("guardrail", f"Not enough: {told[0]}", advice, trajectory, places)] if why and told else []


def _way(trajectory: Trajectory, places: Sequence[int], why: str) -> NewItem:
    failed = [opened(trajectory, place) for place in places]
    title = f"Not enough: {_names(trajectory, places)}"
    advice = f"This way did not succeed: {' → '.join(call.text for call in failed)}. {why}"
    return _item("guardrail", title, advice, trajectory, places, failed=failed)


# -- in words --------------------------------------------------------------------------------------------------------


def _names(trajectory: Trajectory, places: Sequence[int]) -> str:
    """The tools that were called; of commands their programs."""
    steps = [trajectory.steps[place] for place in places]
    names = [" ".join(programs(step.command)[-1]) if step.command else step.action for step in steps]
    return " → ".join(dict.fromkeys(names))


def _error(step: Step, chars: int = ERROR_CHARS) -> str:
    return f"“{shortened(error_of(step), chars).rstrip('.')}”"


def _item(
    kind: ItemKind,
    title: str,
    advice: str,
    trajectory: Trajectory,
    places: Sequence[int],
    calls: Sequence[ToolCall] = (),
    failed: Sequence[ToolCall] = (),
) -> NewItem:
    """An item for the sort of task it was, with the steps it rests on."""
    evidence = "\n".join(trajectory.steps[place].line[:LINE_CHARS] for place in places)
    pattern = pattern_for(trajectory, calls, failed)
    return NewItem(
        kind=kind, title=shortened(title, RULE_TITLE_CHARS), advice=advice, evidence=evidence, pattern=pattern
    )


def _distinct(items: Sequence[NewItem]) -> list[NewItem]:
    """Each once, in order, by its calls; one without evidence is left out."""
    found: dict[str, NewItem] = {}
    for item in items:
        if item.evidence:
            found.setdefault(item.pattern.key(item.kind) or item.text, item)
    return [*found.values()]

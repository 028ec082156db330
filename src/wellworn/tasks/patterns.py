"""Distilling without a model: what differed between failing and succeeding, and which calls recur.

Deterministic, and only as clever as it can prove: every item names calls that were made and quotes them as evidence.

| seen                                                              | kept                                             |
|-------------------------------------------------------------------|--------------------------------------------------|
| a call failed, and worked with other arguments                    | strategy: these arguments, not those             |
| a call failed, and the same call worked later                     | strategy: try again, after what was done between |
| calls worked one after the other to a success                     | strategy: the recipe                             |
| the same call failed again and again                              | guardrail: not unchanged                         |
| a call failed whatever was done before it                         | guardrail: not the last two ways                 |
| the attempt ended in a failing call, or in a wrong result         | guardrail: not this call, not this way           |
| arguments or tools that all successes have and no failure has     | strategy; the other way round, guardrail         |
"""

from __future__ import annotations

from collections.abc import Sequence

from wellworn.ingest.terms import TASK_END, TASK_LEAD
from wellworn.reflection.parse import clean_line
from wellworn.tasks.calls import (
    Turnaround,
    actions,
    called,
    changed,
    gist,
    prepared,
    put,
    put_at,
    put_key,
    recipe,
    repeated,
    settled,
    turnarounds,
    uses,
)
from wellworn.tasks.items import MOST_CONTRASTS, MOST_GUARDRAILS, MOST_STRATEGIES, Item, ItemKind
from wellworn.tasks.trajectory import Step, Trajectory

GIST_CHARS = 160
ERROR_CHARS = 160
TITLE_CHARS = 90
RECIPE_STEPS = 8
LINE_CHARS = 600


def from_success(trajectory: Trajectory) -> list[Item]:
    """At most three strategies out of an attempt that succeeded."""
    found = [item for turn in turnarounds(trajectory) if (item := _turned(trajectory, turn)) is not None]
    whole = _recipe(trajectory)
    return _distinct([*found[: MOST_STRATEGIES - 1], *([whole] if whole else []), *found])[:MOST_STRATEGIES]


def from_failure(trajectory: Trajectory, reasons: Sequence[str] = ()) -> list[Item]:
    """At most two guardrails out of an attempt that failed; `reasons` are the judge's."""
    again = [places for places in repeated(trajectory) if not _varied(trajectory, places)]
    found = [_unchanged(trajectory, places) for places in again]
    open_ = _unresolved(trajectory)
    if open_ is not None and (ways := _ways(trajectory, open_)):
        found = [*ways, *found]
    elif open_ is not None and not any(open_ in places for places in again):
        found.append(_failed_call(trajectory, open_))
    elif not found and (way := _wrong_way(trajectory, reasons)):
        found.append(way)
    return _distinct(found)[:MOST_GUARDRAILS]


def from_contrast(successes: Sequence[Trajectory], failures: Sequence[Trajectory]) -> list[Item]:
    """At most five items out of several attempts at one task."""
    if not failures or not successes:
        alone = [item for one in successes for item in from_success(one)]
        alone += [item for one in failures for item in from_failure(one)]
        return _distinct(alone)[:MOST_CONTRASTS]
    found = [*_arguments(successes, failures), *_tools(successes, failures)]
    found += [item for one in successes for item in from_success(one)]
    return _distinct(found)[:MOST_CONTRASTS]


def _turned(trajectory: Trajectory, turn: Turnaround) -> Item | None:
    """A call that failed and then worked."""
    steps = trajectory.steps
    last, worked = steps[turn.failed[-1]], steps[turn.worked]
    different = changed(last, worked)
    between = [put_at(trajectory, place) for place in turn.between]
    first = f"First {', then '.join(between)}; then" if between else ""
    if different:
        now = ", ".join(_put_argument(name, pair[1]) for name, pair in different.items())
        then = ", ".join(_put_argument(name, pair[0]) for name, pair in different.items())
        call = put_at(trajectory, turn.worked, literal=different)
        advice = f"{first or 'Call'} {call}. {worked.action} failed with {then}: {_error(last)}."
        title = f"{worked.action}: {now}, not {then}"
    elif between:
        advice = f"{first} call {put_at(trajectory, turn.worked)}: before that it failed with {_error(last)}."
        title = f"{worked.action}: first {', then '.join(between)}"
    else:
        tries = len(turn.failed) + 1
        advice = (
            f"Try {put_at(trajectory, turn.worked)} again when it fails with {_error(last)}: it worked at try {tries}."
        )
        title = f"{worked.action}: try again, it worked at try {tries}"
    return _item("strategy", title, advice, trajectory, (*turn.failed, *turn.between, turn.worked))


def _recipe(trajectory: Trajectory) -> Item | None:
    """The calls that worked, in order; of an attempt without calls, what it did in its own words."""
    places = recipe(trajectory)[-RECIPE_STEPS:]
    if places:
        lessons = settled(trajectory)
        calls = [put_at(trajectory, place, literal=lessons.get(trajectory.steps[place].action, ())) for place in places]
        names = list(dict.fromkeys(trajectory.steps[place].action for place in places))
        return _item("strategy", " → ".join(names), f"This worked: {' → '.join(calls)}.", trajectory, places)
    places = [place for place, step in enumerate(trajectory.steps) if step.text and not step.failed][-RECIPE_STEPS:]
    if not places:
        return None
    said = [clean_line(trajectory.steps[place].text)[:120].rstrip(".") for place in places]
    return _item("strategy", said[0], f"This worked: {' → '.join(said)}.", trajectory, places)


def _unchanged(trajectory: Trajectory, places: tuple[int, ...]) -> Item:
    step = trajectory.steps[places[-1]]
    call = put_at(trajectory, places[-1])
    advice = f"Do not repeat {call} unchanged: it failed {len(places)} times with {_error(step)}."
    return _item("guardrail", f"{step.action}: do not repeat it unchanged", advice, trajectory, places)


def _varied(trajectory: Trajectory, places: Sequence[int]) -> bool:
    """Whether other things were done before each of these calls: then it was not tried again unchanged."""
    before = [[trajectory.steps[one].call for one in prepared(trajectory, place)] for place in places]
    return any(calls != before[0] for calls in before)


def _ways(trajectory: Trajectory, last: int) -> list[Item]:
    """A call that failed whatever was done before it: the last ways that were tried, where there were several."""
    step = trajectory.steps[last]
    tried = [
        place
        for place in called(trajectory)
        if trajectory.steps[place].failed and trajectory.steps[place].action == step.action
    ]
    if not _varied(trajectory, tried):
        return []
    found = []
    for place in reversed(tried):
        before = prepared(trajectory, place)
        if before:
            calls = [put_at(trajectory, one) for one in (*before, place)]
            names = dict.fromkeys(trajectory.steps[one].action for one in (*before, place))
            advice = f"This way did not succeed: {' → '.join(calls)}. It failed with {_error(trajectory.steps[place])}."
            found.append(_item("guardrail", f"Not enough: {' → '.join(names)}", advice, trajectory, [*before, place]))
    return found


def _unresolved(trajectory: Trajectory) -> int | None:
    """The last call, if it failed, else the last failing call of a tool that never worked afterwards."""
    worked = {turn.failed for turn in turnarounds(trajectory)}
    overcome = {place for places in worked for place in places}
    failing = [place for place in called(trajectory) if trajectory.steps[place].failed and place not in overcome]
    return failing[-1] if failing else None


def _failed_call(trajectory: Trajectory, place: int) -> Item:
    step = trajectory.steps[place]
    advice = f"Do not rely on {put_at(trajectory, place)}: it failed with {_error(step)}."
    return _item("guardrail", f"{step.action}: failed with {_error(step, 50)}", advice, trajectory, [place])


def _wrong_way(trajectory: Trajectory, reasons: Sequence[str]) -> Item | None:
    """No call failed, and yet the result was wrong: the way itself, with why it was judged so."""
    places = recipe(trajectory)[-RECIPE_STEPS:]
    why = clean_line("; ".join(reasons))[:ERROR_CHARS] or clean_line(trajectory.error)[:ERROR_CHARS]
    if not why or not (places or trajectory.error):
        return None
    calls = " → ".join(put_at(trajectory, place) for place in places)
    way = f"This way did not succeed: {calls}." if calls else "This did not succeed."
    title = f"Not enough: {' → '.join(actions(trajectory, working=True))}" if calls else f"Failed: {why}"
    return _item("guardrail", title, f"{way} {why}", trajectory, places, fallback=trajectory.error)


def _arguments(successes: Sequence[Trajectory], failures: Sequence[Trajectory]) -> list[Item]:
    """Arguments that every success gave a tool and no failure did, where failures called that tool too."""
    won = [{(use.action, use.name, use.value): use for use in uses(one, working=True)} for one in successes]
    lost = {
        (use.action, use.name, use.value): (number, use)
        for number, one in enumerate(failures)
        for use in uses(one, working=False)
    }
    tried = {action for one in failures for action in actions(one, working=False)}
    found = []
    for key, use in won[0].items():
        if key in lost or use.action not in tried or not all(key in other for other in won):
            continue
        other_values = [
            (number, value) for (action, name, _), (number, value) in lost.items() if (action, name) == key[:2]
        ]
        right = f"{use.name}={put_key(use.value)}"
        if other_values:
            number, wrong = other_values[0]
            shown = f"{wrong.name}={put_key(wrong.value)}"
            evidence = [failures[number].steps[wrong.step]]
        else:
            shown, evidence = f"without {use.name}", []
        advice = f"Call {use.action} with {right}: attempts with it succeeded, those {_with(shown)} failed."
        step = successes[0].steps[use.step]
        found.append(_quoted("strategy", f"{use.action}: {right}", advice, successes[0], [step, *evidence]))
    return found


def _tools(successes: Sequence[Trajectory], failures: Sequence[Trajectory]) -> list[Item]:
    """Tools that all attempts of one sort called, and none of the other."""
    won = [actions(one, working=True) for one in successes]
    lost = [actions(one, working=False) for one in failures]
    found = []
    for name in won[0]:
        if all(name in other for other in won) and not any(name in other for other in lost):
            step = next(s for s in successes[0].steps if s.action == name and not s.failed)
            after = won[0][won[0].index(name) + 1 :]
            before = f" before {after[0]}" if after else ""
            advice = f"Call {put(step, successes[0].query)}{before}: attempts with it succeeded, those without failed."
            found.append(_quoted("strategy", f"{name}{before}", advice, successes[0], [step]))
    for name in lost[0]:
        if all(name in other for other in lost) and not any(name in other for other in won):
            step = next(s for s in failures[0].steps if s.action == name)
            advice = f"Do without {put(step, failures[0].query)}: attempts with it failed, those without succeeded."
            found.append(_quoted("guardrail", f"Not {name}", advice, failures[0], [step]))
    return found


def _put_argument(name: str, value: str | None) -> str:
    return f"no {name}" if value is None else f"{name}={put_key(value)}"


def _with(shown: str) -> str:
    return shown if shown.startswith("without") else f"with {shown}"


def _error(step: Step, chars: int = ERROR_CHARS) -> str:
    said = clean_line(step.error or step.result) or (f"exit code {step.exit_code}" if step.exit_code else "an error")
    return f"“{said[:chars].rstrip('.')}”"


def _item(
    kind: ItemKind, title: str, advice: str, trajectory: Trajectory, places: Sequence[int], *, fallback: str = ""
) -> Item:
    steps = [trajectory.steps[place] for place in places]
    return _quoted(kind, title, advice, trajectory, steps, fallback=fallback)


def _quoted(
    kind: ItemKind, title: str, advice: str, trajectory: Trajectory, steps: Sequence[Step], *, fallback: str = ""
) -> Item:
    """An item that begins with the sort of task it is for and quotes the steps it rests on."""
    like = clean_line(gist(trajectory))
    like = like if len(like) <= GIST_CHARS else like[: GIST_CHARS - 1].rstrip() + "…"
    text = f"{TASK_LEAD}{like}{TASK_END}{advice}" if like else advice
    title = clean_line(title)
    title = title if len(title) <= TITLE_CHARS else title[: TITLE_CHARS - 1] + "…"
    evidence = "\n".join(step.line[:LINE_CHARS] for step in steps) or fallback
    return Item(kind=kind, title=title, text=clean_line(text), evidence=evidence)


def _distinct(items: Sequence[Item]) -> list[Item]:
    """Each once, in order; one without evidence is none."""
    return list({item.text: item for item in items if item.evidence}.values())

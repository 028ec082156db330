"""A conclusion by a model from a chain of evidence, believed only as far as it cites the chain.

Citations outside the chain are dropped, and so are those of entries that share no word with the conclusion. With none
left, the evidence speaks for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wellworn.core.errors import ReplyUnreadable
from wellworn.core.fence import escape
from wellworn.core.values import Entry, Reasoning, ReasoningStep
from wellworn.ingest.terms import record_of, terms
from wellworn.models.ledger import Meter as Metered
from wellworn.models.port import Message, Request
from wellworn.models.structured import read_json
from wellworn.search.steps.calls import Calls
from wellworn.search.steps.limits import LimitMet
from wellworn.search.steps.prompts import prompt

MAX_OUTPUT_TOKENS = 600
PURPOSE = "reason"
SHOWN_CHARS = 2_000
"""Of one entry."""
_LONGEST_PLACE = 4


def concluded(found: Reasoning, model: Metered, calls: Calls) -> Reasoning:
    """The reasoning with a model's conclusion; with why there is none, where there is none."""
    steps = evidence_of(found)
    if not steps:
        return found
    try:
        answer = read_json(calls.ask(model, request_for(found.question, steps)), wants=["conclusion", "cites"])
        said = answer if isinstance(answer, dict) else {}
        conclusion = str(said.get("conclusion") or "").strip()
        if not conclusion:
            return replace(found, problem=f"{model.name} says that the entries do not answer it")
        cited = _cited(said.get("cites"), conclusion, [step.entry for step in steps])
    except LimitMet as limit:
        return replace(found, problem=f"stopped at the limit of {limit}")
    except Exception as error:  # a model is anybody's code, and the chain is an answer already
        return replace(found, problem=f"failed: {type(error).__name__}")
    reasoning = str(said.get("reasoning") or "").strip() or f"{len(cited)} entries together"
    return with_conclusion(
        found, conclusion, cited, by=model.name, reasoning=reasoning, sure=_share(said.get("confidence"))
    )


def with_conclusion(
    found: Reasoning, conclusion: str, cited: Sequence[Entry], *, by: str, reasoning: str, sure: float
) -> Reasoning:
    """The reasoning with a conclusion that rests on these entries; no surer than the least sure of them."""
    last = ReasoningStep(entry=cited[-1], operation="synthesize", reasoning=reasoning)
    return replace(
        found,
        conclusion=conclusion,
        path=(*evidence_of(found), last),
        cited=tuple(entry.id for entry in cited),
        confidence=min(sure, *(entry.confidence for entry in cited)),
        model=by,
        problem="",
    )


def evidence_of(found: Reasoning) -> tuple[ReasoningStep, ...]:
    """The steps of a path that stand for an entry each."""
    return tuple(step for step in found.path if step.operation != "synthesize")


def request_for(question: str, steps: Sequence[ReasoningStep]) -> Request:
    """What a concluding model is sent."""
    lines = [
        f"[{number}] ({step.operation}: {escape(step.reasoning)}) {_line(step.entry)}"
        for number, step in enumerate(steps)
    ]
    told = "\n".join([f"<question>{escape(question)}</question>", "<entries>", *lines, "</entries>"])
    messages = (Message(role="system", text=prompt("conclude")), Message(role="user", text=told))
    return Request(messages=messages, purpose=PURPOSE, max_output_tokens=MAX_OUTPUT_TOKENS, json=True)


def _line(entry: Entry) -> str:
    marks = [entry.kind, entry.at.date().isoformat(), *(["untrusted source"] if entry.trust != "trusted" else [])]
    title = f"{escape(entry.title)}: " if entry.title else ""
    return f"({', '.join(marks)}) {title}{escape(entry.text[:SHOWN_CHARS])}"


def _cited(cites: Any, conclusion: str, entries: Sequence[Entry]) -> list[Entry]:  # Any: as a model wrote it
    """The cited entries of the chain that have a word of the conclusion."""
    given = cites if isinstance(cites, list) else [cites]
    said = [str(one).strip("[] ") for one in given if not isinstance(one, bool)]
    places = [int(one) for one in said if one.isdecimal() and len(one) <= _LONGEST_PLACE]
    words = set(terms(conclusion))
    found = [entries[place] for place in dict.fromkeys(places) if place < len(entries)]
    found = [entry for entry in found if words & set(record_of(entry).terms.tolist())]
    if not found:
        raise ReplyUnreadable("the model's conclusion cites nothing of the chain that has a word of it")
    return found


def _share(value: object) -> float:
    """A confidence as a model gives it; a half where it gives none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return 0.5
    return min(max(float(value), 0.0), 1.0)

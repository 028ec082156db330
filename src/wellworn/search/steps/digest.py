"""What an `Aggregate` makes of the hits of a recall, as text: a table for `compare`, a summary for `summarize`.

A summary is a model's if there is one and each of its sentences has a word of a hit; otherwise it is the hits' own
sentences, the one of each hit that has most of the question's words. `combine` returns the hits themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from wellworn.core.fence import escape
from wellworn.core.values import Entry, Recall
from wellworn.ingest.terms import read_question, record_of, terms
from wellworn.models.ledger import Meter as MeteredModel
from wellworn.search.steps.actions import Strategy
from wellworn.search.steps.bridges import subject_of
from wellworn.search.steps.limits import Calls, messages_of, request

MAX_OUTPUT_TOKENS = 400
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def digest_of(
    found: Recall, strategy: Strategy, sides: Mapping[str, Sequence[str]], model: MeteredModel | None, calls: Calls
) -> str:
    """The text of a strategy; `sides` are the sub-questions with the ids of their best entries."""
    entries = [hit.entry for hit in found.hits]
    if not entries or strategy == "combine":
        return ""
    if strategy == "compare":
        return _table(found.query, entries, sides)
    written = "" if model is None else _by_model(found.query, entries, model, calls)
    return written or "\n".join(dict.fromkeys(sentence_of(found.query, entry) for entry in entries))


def sentence_of(question: str, entry: Entry) -> str:
    """The sentence of an entry that has most of a question's words; the first of equals."""
    wanted = set(read_question(question).terms)
    sentences = [one.strip() for one in _SENTENCE.split(entry.text) if one.strip()]
    return max(sentences or [entry.text], key=lambda one: len(wanted & set(terms(one))))


def _table(question: str, entries: Sequence[Entry], sides: Mapping[str, Sequence[str]]) -> str:
    """A Markdown table: one row for each side, or for each thing that the entries are about."""
    known = {entry.id: entry for entry in entries}
    groups: dict[str, list[Entry]] = {side: [known[id] for id in ids if id in known] for side, ids in sides.items()}
    if not any(groups.values()):
        groups = {}
        for entry in entries:
            groups.setdefault(subject_of(entry) or entry.partition.layer_id, []).append(entry)
    rows = [
        (side, " ".join(dict.fromkeys(sentence_of(f"{question} {side}", entry) for entry in group)) or "nothing found")
        for side, group in groups.items()
    ]
    cells = [" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) for row in rows]
    return "\n".join(["| side | what is known |", "|---|---|", *(f"| {one} |" for one in cells)])


def _by_model(question: str, entries: Sequence[Entry], model: MeteredModel, calls: Calls) -> str:
    """A model's summary; empty if it fails, or if a sentence of it has no word of an entry."""
    lines = [f"[{number}] {escape(entry.text)}" for number, entry in enumerate(entries)]
    told = "\n".join([f"<question>{escape(question)}</question>", "<entries>", *lines, "</entries>"])
    try:
        summary = calls.ask(model, request("summarize", messages_of("summarize", told), MAX_OUTPUT_TOKENS)).strip()
    except Exception:  # a model may raise anything, and the sentences are an answer already
        return ""
    known = {term for entry in entries for term in record_of(entry).terms.tolist()}
    sentences = [one for one in _SENTENCE.split(summary) if one.strip()]
    return summary if sentences and all(known.intersection(terms(one)) for one in sentences) else ""

"""What the found entries say: the chain that bears on a question with a conclusion, a comparison, or a summary.

Without a model, the chain begins with the best hits, follows what they name and what they are linked to by hand, and
the conclusion is what these entries say. A model's conclusion is believed only as far as it cites entries of the chain
that share a word with it; with none left, the evidence speaks for itself. Everything passes one scope and one time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import WellwornError
from wellworn.core.fence import NOTHING, escape
from wellworn.core.lazy import regex
from wellworn.core.values import Entry, Hit, Link, Reasoning, ReasoningStep, Recall, Scope
from wellworn.ingest.terms import read_question, record_of, terms
from wellworn.models.ledger import Meter as MeteredModel
from wellworn.models.port import Request
from wellworn.models.structured import fraction, read_json
from wellworn.search.filters import Filters
from wellworn.search.pipeline import Searcher
from wellworn.search.steps.actions import Strategy
from wellworn.search.steps.limits import Calls, LimitMet, prompt
from wellworn.search.truth import asks_past
from wellworn.store.port import Selection, Store

if TYPE_CHECKING:
    from wellworn.search.steps.repl import ReplLimits

MAX_HOPS = 3
LONGEST = 8
"""Steps of a path at most."""
LEADS = 3
"""Best hits that are read for themselves."""
MOST_TAGGED = 5_000
CONCLUSION_TOKENS, SUMMARY_TOKENS = 600, 400
SHOWN_CHARS = 2_000
"""Of one entry."""
_UNFOLLOWED = ("contradicts", "supersedes")
_PLACE = regex(r"\[?\s*(\d{1,4})\s*\]?")
_SENTENCE = regex(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, kw_only=True, eq=False)
class Library:
    """The entries that one question may see: of its scope, valid at its moment. Nothing is logged for learning."""

    searcher: Searcher
    """One that does not learn."""
    store: Store
    scope: Scope
    moment: datetime

    def search(self, query: str, k: int) -> Recall:
        """The k best entries by plain search."""
        found = self.searcher.recall(query, scope=self.scope, k=k, filters=Filters(as_of=self.moment))
        past = asks_past(query)
        return replace(found, hits=[hit for hit in found.hits if self._admits(hit.entry, past=past)])

    def read(self, id: str) -> Entry | None:
        """One entry, if it may be seen."""
        entry = self.store.get(self.scope.partitions(), [id]).get(id)
        return entry if entry is not None and self._admits(entry) else None

    def tagged(self, tag: str, limit: int) -> list[Entry]:
        """Entries with a tag, oldest first."""
        found = self.store.select(self.scope.partitions(), Selection(tags=[tag]), limit=MOST_TAGGED)
        return [entry for _, entry in found if self._admits(entry)][:limit]

    def linked(self, id: str) -> list[tuple[Entry, Link]]:
        """The links of an entry, each with the entry at its other end."""
        if self.read(id) is None:
            return []
        ends = [(self.read(link.target if link.source == id else link.source), link) for link in self.store.links([id])]
        return [(entry, link) for entry, link in ends if entry is not None]

    def _admits(self, entry: Entry, *, past: bool = False) -> bool:
        ended = entry.valid_to is not None and entry.valid_to <= self.moment
        valid = entry.valid_from <= self.moment and (past or not ended)
        return valid and entry.state != "pruned"


# -- the chain -------------------------------------------------------------------------------------------------------


def reasoned(recall: Recall, via: Mapping[str, tuple[str, str]], library: Library) -> Reasoning:
    """The path through what a recall found and what is linked to it; `via` says which entry led to which, and how."""
    hits = {hit.entry.id: hit for hit in recall.hits}
    path: dict[str, ReasoningStep] = {}
    for number, hit in enumerate(recall.hits):
        leader, how = via.get(hit.entry.id, ("", ""))
        if leader in path or (leader in hits and number >= LEADS):
            name = hits[leader].entry.title or leader
            why = f"linked to {name}" if how == "link" else f"{name} leads to it: they name the same"
            path[hit.entry.id] = ReasoningStep(entry=hit.entry, operation=how, reasoning=why)
        elif number < LEADS:
            path[hit.entry.id] = _read(hit, number)
    sure = _walk(path, library)
    steps = tuple(path.values())[:LONGEST]
    marks = _marks(recall)
    covered, said = _coverage(recall.query, steps, marks)
    if len(said) > 1:
        why = f"{len(said)} entries together have {covered:.0%} of the question's words"
        steps = (*steps, ReasoningStep(entry=said[-1], operation="synthesize", reasoning=why))
    belief = min((entry.confidence for entry in said), default=0.0)
    return Reasoning(
        question=recall.query,
        conclusion="\n".join(marks.get(entry.id, "") + entry.text for entry in said) or NOTHING,
        path=steps,
        confidence=covered * belief * sure if said else 0.0,
        recall=recall,
    )


def _read(hit: Hit, number: int) -> ReasoningStep:
    best = sorted(hit.explanation, key=lambda factor: -factor.contribution)[:2]
    why = ", ".join(f"{factor.name} {factor.contribution:+.1f}" for factor in best)
    place = "best hit" if number == 0 else f"hit {number}"
    return ReasoningStep(entry=hit.entry, operation="read", reasoning=f"{place} for the question ({why})")


def _walk(path: dict[str, ReasoningStep], library: Library) -> float:
    """Add what hand-made links lead to, hop by hop; returns the confidence of the least sure link taken.

    A hit that a better one is linked to counts as led to.
    """
    sure, edge = 1.0, [*path]
    behind = {id: {*edge[place + 1 :]} for place, id in enumerate(edge)}
    for hop in range(1, MAX_HOPS + 1):
        found: list[str] = []
        for id in edge:
            for entry, link in library.linked(id) if len(path) < LONGEST else []:
                if link.automatic or link.type in _UNFOLLOWED or len(path) >= LONGEST:
                    continue
                known = entry.id in path
                if known and not (entry.id in behind.get(id, ()) and path[entry.id].operation == "read"):
                    continue
                towards = f"{link.type} it" if link.source == entry.id else f"it {link.type} this"
                why = f"hop {hop} from {id}: {towards}"
                path[entry.id] = ReasoningStep(entry=entry, operation="link", reasoning=why)
                sure = min(sure, link.confidence)
                found += [] if known else [entry.id]
        edge = found
    return sure


def _marks(recall: Recall) -> dict[str, str]:
    """By id of an outdated hit, what stands before its text."""
    return {hit.entry.id: f"(outdated since {hit.entry.valid_to:%Y-%m-%d}) " for hit in recall.hits if hit.outdated}


def _coverage(question: str, steps: Sequence[ReasoningStep], outdated: Mapping[str, str]) -> tuple[float, list[Entry]]:
    """The share of the question's terms that the entries have, and those that say something about it: the best hit, what
    adds a term, and what a link or bridge brought in. Other hits are strangers, and so is what is outdated, unless the
    question asks for the past."""
    wanted, past = set(read_question(question).terms), asks_past(question)
    left, said = set(wanted), list[Entry]()
    for step in steps:
        if not past and step.entry.id in outdated:
            continue
        own = set(record_of(step.entry).terms.tolist())
        if not said or left & own or (step.operation != "read" and not own & wanted):
            said.append(step.entry)
        left -= own
    return (1 - len(left) / len(wanted) if wanted else 0.0), said


# -- a model's conclusion --------------------------------------------------------------------------------------------


def concluded(found: Reasoning, model: MeteredModel, calls: Calls) -> Reasoning:
    """The reasoning with a model's conclusion, or with why there is none."""
    steps = _evidence(found)
    if not steps:
        return found
    try:
        answer = read_json(
            calls.ask(model, request_for(found.question, steps, _marks(found.recall))), wants=["conclusion", "cites"]
        )
        said = answer if isinstance(answer, dict) else {}
        conclusion = str(said.get("conclusion") or "").strip()
        cited = _cited(said.get("cites"), conclusion, [step.entry for step in steps])
        if not conclusion:
            return replace(found, problem=f"{model.name} says that the entries do not answer it")
        if not cited:
            why = f"the conclusion of {model.name} cites nothing of the chain that has a word of it"
            return replace(found, problem=why)
    except LimitMet as limit:
        return replace(found, problem=f"stopped at the limit of {limit}")
    except Exception as error:  # a model may raise anything, and the chain is an answer already
        why = str(error) if isinstance(error, WellwornError) else type(error).__name__  # others may quote a key
        return replace(found, problem=f"failed: {why}")
    reasoning = str(said.get("reasoning") or "").strip() or f"{len(cited)} entries together"
    sure = fraction(said.get("confidence"), 0.5)
    return _with_conclusion(found, conclusion, cited, by=model.name, reasoning=reasoning, sure=sure)


def explored(
    chain: Reasoning, library: Library, root: MeteredModel, sub: MeteredModel, limits: ReplLimits
) -> Reasoning:
    """The chain with what programs found; the conclusion is theirs if it rests on entries that may be seen."""
    from wellworn.search.steps.repl import Repl

    repl = Repl(library, root, sub, limits)
    result = repl.recall(chain.question)
    chain = replace(chain, explored=result, recall=replace(chain.recall, cost=repl.calls.added_to(chain.recall.cost)))
    entries = [entry for id in result.chunk_ids if (entry := library.read(id)) is not None]
    if result.problem or result.content is None or not entries:
        return replace(chain, problem=result.problem or "the programs' answer rests on no entry")
    known = {step.entry.id for step in chain.path}
    new = [entry for entry in entries if entry.id not in known]
    read = [ReasoningStep(entry=entry, operation="read", reasoning="by a program") for entry in new]
    chain = replace(chain, path=(*chain.path, *read))
    why = f"by programs, in {result.iterations_used} rounds"
    return _with_conclusion(chain, result.content, entries, by=root.name, reasoning=why, sure=result.confidence)


def _with_conclusion(
    found: Reasoning, conclusion: str, cited: Sequence[Entry], *, by: str, reasoning: str, sure: float
) -> Reasoning:
    """The reasoning with a conclusion that rests on these entries; no surer than the least sure of them."""
    last = ReasoningStep(entry=cited[-1], operation="synthesize", reasoning=reasoning)
    return replace(
        found,
        conclusion=conclusion,
        path=(*_evidence(found), last),
        cited=tuple(entry.id for entry in cited),
        confidence=min(sure, *(entry.confidence for entry in cited)),
        model=by,
        problem="",
    )


def _evidence(found: Reasoning) -> tuple[ReasoningStep, ...]:
    """The steps of a path that stand for one entry each."""
    return tuple(step for step in found.path if step.operation != "synthesize")


def request_for(question: str, steps: Sequence[ReasoningStep], marks: Mapping[str, str]) -> Request:
    """What a concluding model is sent; `marks` are those of outdated entries."""
    lines = [
        f"[{number}] ({step.operation}: {escape(step.reasoning)}) {marks.get(step.entry.id, '')}{_line(step.entry)}"
        for number, step in enumerate(steps)
    ]
    told = "\n".join([f"<question>{escape(question)}</question>", "<entries>", *lines, "</entries>"])
    return Request.of(prompt("conclude"), told, purpose="reason", max_output_tokens=CONCLUSION_TOKENS, json=True)


def _line(entry: Entry) -> str:
    marks = [entry.kind, entry.at.date().isoformat(), *(["untrusted source"] if entry.trust != "trusted" else [])]
    title = f"{escape(entry.title)}: " if entry.title else ""
    return f"({', '.join(marks)}) {title}{escape(entry.text[:SHOWN_CHARS])}"


def _cited(cites: Any, conclusion: str, entries: Sequence[Entry]) -> list[Entry]:  # Any: as a model wrote it
    """The cited entries of the chain that share a word with the conclusion."""
    given = cites if isinstance(cites, list) else [cites]
    places = dict.fromkeys(int(found[1]) for one in given if (found := _PLACE.fullmatch(str(one))))
    return worded(conclusion, [entries[place] for place in places if place < len(entries)])


def worded(conclusion: str, entries: Sequence[Entry]) -> list[Entry]:
    """The entries that share a word with a conclusion."""
    words = set(terms(conclusion))
    return [entry for entry in entries if words & set(record_of(entry).terms.tolist())]


# -- comparisons and summaries ---------------------------------------------------------------------------------------


def digest_of(
    found: Recall, strategy: Strategy, sides: Mapping[str, Entry], model: MeteredModel | None, calls: Calls
) -> str:
    """What `compare` (a table) or `summarize` makes of hits; `sides` are the sub-questions with their best entries.

    A summary is a model's if each of its sentences has a word of a hit; otherwise it is the hits' own sentences.
    """
    marks, past = _marks(found), asks_past(found.query)
    entries = [hit.entry for hit in found.hits if past or not hit.outdated]
    if not entries:
        return ""
    if strategy == "compare":
        known = sides or {entry.title or entry.partition.layer_id: entry for entry in reversed(entries)}
        rows = [
            (side, marks.get(entry.id, "") + _sentence(f"{found.query} {side}", entry)) for side, entry in known.items()
        ]
        cells = [" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) for row in rows]
        return "\n".join(["| side | what is known |", "|---|---|", *(f"| {one} |" for one in cells)])
    written = "" if model is None else _summary(found.query, entries, marks, model, calls)
    own = (marks.get(entry.id, "") + _sentence(found.query, entry) for entry in entries)
    return written or "\n".join(dict.fromkeys(own))


def _sentence(question: str, entry: Entry) -> str:
    """The sentence of an entry that has most of a question's words; the first of equals."""
    wanted = set(read_question(question).terms)
    sentences = [one.strip() for one in _SENTENCE.split(entry.text) if one.strip()]
    return max(sentences or [entry.text], key=lambda one: len(wanted & set(terms(one))))


def _summary(
    question: str, entries: Sequence[Entry], marks: Mapping[str, str], model: MeteredModel, calls: Calls
) -> str:
    """A model's summary; empty if it fails, or if a sentence of it has no word of an entry."""
    lines = [f"[{number}] {marks.get(entry.id, '')}{escape(entry.text)}" for number, entry in enumerate(entries)]
    told = "\n".join([f"<question>{escape(question)}</question>", "<entries>", *lines, "</entries>"])
    request = Request.of(prompt("summarize"), told, purpose="summarize", max_output_tokens=SUMMARY_TOKENS)
    try:
        summary = calls.ask(model, request).strip()
    except Exception:  # a model may raise anything, and the sentences are an answer already
        return ""
    sentences = [one for one in _SENTENCE.split(summary) if one.strip()]
    return summary if sentences and all(worded(one, entries) for one in sentences) else ""

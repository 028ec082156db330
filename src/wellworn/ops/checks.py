"""What must be true of a store, as functions over values that yield flaws. None reads a store.

| check          | holds when                                                                        | repaired |
|----------------|-----------------------------------------------------------------------------------|----------|
| `id`           | the id is a UUID in its usual spelling                                            | no       |
| `required`     | text and partition are not empty                                                      | no       |
| `lists`        | tags are distinct texts, turn references are numbers, counters are not negative   | no       |
| `times`        | created ≤ updated, valid_from < valid_to, all with a zone                         | no       |
| `confidence`   | a number from 0 to 1                                                              | no       |
| `vocabulary`   | kind, state, trust and layer are words we know                                    | no       |
| `superseded`   | a superseded entry has an end of validity                                         | no       |
| `token_count`  | the count is that of the text                                                     | yes      |
| `content_hash` | the hash is that of the text                                                      | yes      |
| `index`        | the stored index record is the one the text gives                                 | yes      |
| `vector`       | there is one when the store has a model: of its width, finite, of length one or 0 | yes (*)  |
| `link`         | both ends exist in one tenant, are not the same, and the type is one we know      | no       |
| `link_views`   | a link is listed at both of its ends                                              | no       |
| `cycle`        | following `supersedes`, or `derived_from`, never leads back                       | no       |
| `turns`        | the numbers of a session's turns ascend                                           | no       |
| `episode`      | an entry made from a turn says, or once said, what the turn says                  | no       |
| `session`      | no turn counts as reflected on that was never said                                | yes      |
| `job`          | its state is one we know; running, and only then, with a worker and a lease       | yes (+)  |

(*) with the embedder that the store's vectors come from. (+) queued again, unless the state is no known one. What the
engine itself can see (pages, references, side tables) is the store's own `check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise

import numpy as np

from wellworn.core.errors import InvalidInput
from wellworn.core.tokens import count_tokens
from wellworn.core.values import JOB_STATES, KINDS, LAYERS, LINK_TYPES, STATES, Entry, Job, Link, Turn
from wellworn.ingest.hashing import content_hash
from wellworn.ingest.terms import record_of
from wellworn.jobs.queue import job_problem
from wellworn.ops.lines import checked_id, is_unit_or_zero
from wellworn.store.port import EmbeddingModel, Flaw, IndexRecord, SessionHead, Vector

ACYCLIC_TYPES = ("supersedes", "derived_from")
_TRUSTS = ("trusted", "untrusted")

Found = Iterator[Flaw]
LinkKey = tuple[str, str, str]


def _flaw(check: str, subject: str, problem: str, *, repairable: bool = False) -> Flaw:
    return Flaw(check=check, subject=subject, problem=problem, repairable=repairable)


# -- an entry by itself ------------------------------------------------------------------------------------------------


def check_entry(entry: Entry) -> Found:
    """Everything that an entry's own fields can tell."""
    try:
        checked_id(entry.id)
    except InvalidInput:
        yield _flaw("id", str(entry.id), "the id is not a UUID in its usual spelling")
    for check, problem in _entry_problems(entry):
        yield _flaw(check, entry.id, problem)
    counted = count_tokens(entry.text)
    if entry.token_count != counted:
        yield _flaw("token_count", entry.id, f"says {entry.token_count}, the text has {counted}", repairable=True)
    if entry.content_hash != content_hash(entry):
        yield _flaw("content_hash", entry.id, "the hash is not that of the text", repairable=True)


def _entry_problems(entry: Entry) -> Iterator[tuple[str, str]]:
    """What no repair can mend."""
    named = entry.partition.tenant and entry.partition.layer_id
    numbers = all(isinstance(number, int) and number >= 0 for number in entry.turn_refs)
    counters = (entry.repeats, entry.usage_count, entry.success_count, entry.failure_count)
    sure = isinstance(entry.confidence, int | float) and 0 <= entry.confidence <= 1
    moments = (entry.at, entry.created_at, entry.updated_at, entry.valid_from, entry.valid_to)
    zoned = all(moment is None or moment.tzinfo is not None for moment in moments)
    ends = entry.valid_to is None or not zoned or entry.valid_to > entry.valid_from
    vocabulary = {"kind": KINDS, "state": STATES, "trust": _TRUSTS, "layer": LAYERS}
    rules = [
        ("required", entry.text.strip(), "the text is empty"),
        ("required", named, "the tenant or the id of its layer is empty"),
        ("lists", well_formed_tags(entry), "the tags are not distinct texts"),
        ("lists", numbers, "the turn references are not turn numbers"),
        ("lists", min(counters) >= 0, "a counter is negative"),
        ("times", zoned, "a time has no zone"),
        ("times", not zoned or entry.created_at <= entry.updated_at, "it was updated before it was created"),
        ("times", ends, "its validity ends before it begins"),
        ("confidence", sure, f"the confidence {entry.confidence!r} is not from 0 to 1"),
        *(
            ("vocabulary", getattr(entry, name) in known, f"{getattr(entry, name)!r} is not a {name}")
            for name, known in vocabulary.items()
        ),
        ("superseded", entry.state != "superseded" or entry.valid_to, "it is superseded and has no end of validity"),
    ]
    yield from ((check, problem) for check, holds, problem in rules if not holds)


def well_formed_tags(entry: Entry) -> bool:
    tags = entry.tags
    return isinstance(tags, list) and all(isinstance(tag, str) for tag in tags) and len(set(tags)) == len(tags)


# -- an entry and what is stored beside it -----------------------------------------------------------------------


def check_index(entry: Entry, stored: IndexRecord | None) -> Found:
    if not well_formed_tags(entry):
        return  # said already; there is no record to compare with
    if stored is None:
        yield _flaw("index", entry.id, "it has no index record, so words do not find it", repairable=True)
    elif not same_record(stored, record_of(entry)):
        yield _flaw("index", entry.id, "the index record is not the one its text gives", repairable=True)


def same_record(a: IndexRecord, b: IndexRecord) -> bool:
    return all(np.array_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))


def check_vector(entry: Entry, vector: Vector | None, model: EmbeddingModel | None, *, repairable: bool) -> Found:
    problem = vector_problem(vector, model)
    if problem is not None:
        yield _flaw("vector", entry.id, problem, repairable=repairable)


def vector_problem(vector: Vector | None, model: EmbeddingModel | None) -> str | None:
    """What is wrong with a stored vector, if anything."""
    if model is None:
        return None
    if vector is None:
        return f"it has no vector of {model.name}"
    if vector.shape != (model.width,):
        return f"its vector has {vector.size} numbers, {model.name} makes {model.width}"
    return None if is_unit_or_zero(vector) else "its vector is not finite or not of length one"


# -- links -------------------------------------------------------------------------------------------------------


def check_link(link: Link, tenants: Mapping[str, str]) -> Found:
    """`tenants`: the tenant of every entry that exists among the ends."""
    subject = f"{link.source} {link.type} {link.target}"
    if link.source == link.target:
        yield _flaw("link", subject, "it joins an entry to itself")
    if link.type not in LINK_TYPES:
        yield _flaw("link", subject, f"{link.type!r} is not a link type")
    missing = [end for end in (link.source, link.target) if end not in tenants]
    if missing:
        yield _flaw("link", subject, f"there is no entry {missing[0]}")
    elif tenants[link.source] != tenants[link.target]:
        yield _flaw("link", subject, "it leads from one tenant to another")


def check_link_views(link: Link, at_source: frozenset[LinkKey], at_target: frozenset[LinkKey]) -> Found:
    key = (link.source, link.target, link.type)
    for end, view in ((link.source, at_source), (link.target, at_target)):
        if key not in view:
            yield _flaw("link_views", " ".join((link.source, link.type, link.target)), f"it is not listed at {end}")


def check_cycles(edges: Sequence[tuple[str, str]], type_: str) -> Found:
    """One flaw for each edge that closes a circle, found by depth-first search with three colours."""
    follows: dict[str, list[str]] = {}
    for source, target in edges:
        follows.setdefault(source, []).append(target)
    finished: set[str] = set()
    for start in follows:
        path = {} if start in finished else {start: list(follows[start])}  # entry → where it still leads
        while path:
            name, targets = next(reversed(path.items()))
            if not targets:
                del path[name]
                finished.add(name)
            elif (target := targets.pop()) in path:
                yield _flaw("cycle", name, f"following {type_!r} from {target} leads back to it")
            elif target not in finished:
                path[target] = list(follows.get(target, ()))


# -- turns -------------------------------------------------------------------------------------------------------


def check_turns(turns: Sequence[Turn]) -> Found:
    for before, turn in pairwise(turns):
        if turn.number <= before.number:
            yield _flaw("turns", turn.session_id, f"turn {turn.number} comes after turn {before.number}")


def check_episode(turn: Turn, entry: Entry, older: Callable[[str], Sequence[Entry]]) -> Found:
    """`older` gives an entry's former states, and is asked only when the present one differs from the turn."""
    if entry.session_id != turn.session_id or turn.number not in entry.turn_refs:
        yield _flaw("episode", entry.id, f"turn {turn.number} of {turn.session_id!r} names it, it names another")
    elif turn.text not in (entry.text, entry.evidence) and not any(
        turn.text in (state.text, state.evidence) for state in older(entry.id)
    ):
        yield _flaw("episode", entry.id, f"it never said what turn {turn.number} of {turn.session_id!r} says")


# -- sessions and jobs -------------------------------------------------------------------------------------------


def check_session(head: SessionHead, turns: Sequence[Turn]) -> Found:
    said = max((turn.number for turn in turns), default=-1) + 1
    if not 0 <= head.reflected <= said:
        problem = f"{head.reflected} turns count as reflected on, {said} were said"
        yield _flaw("session", head.id, problem, repairable=True)


def check_job(job: Job) -> Found:
    problem = job_problem(job)
    if problem is not None:
        yield _flaw("job", job.id, f"it {problem}", repairable=job.state in JOB_STATES)

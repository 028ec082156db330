"""What a ranking makes of what holds now, and of what a model wrote down.

What replaced a relevant candidate takes over its place and stands above it; asked about the past, what held last comes first. What
was replaced stays, marked. What replaces what is found in `replaced`, when it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from wellworn.core.clock import to_micros
from wellworn.core.lazy import regex
from wellworn.core.values import READ_BY_MODEL, Entry
from wellworn.ingest.replaces import SURE, leaves
from wellworn.ingest.statement import about_another, read
from wellworn.ingest.terms import read_question, words
from wellworn.ingest.topics import topics
from wellworn.ingest.utterance import asks_assistant, only_asks
from wellworn.learning.past import source_code
from wellworn.search.bank import Bank
from wellworn.search.context import SearchContext
from wellworn.search.partition import NONE, SUPERSEDED
from wellworn.search.score import Ranked
from wellworn.search.together import NAME as TOGETHER

LEADS, RELEVANT = 0.8, 0.4
"""What replaced a candidate takes over its place if the replaced one has the first share of the best score, or itself the
second. Else it has nothing to do with the question."""
NEAR, SURER = 0.6, 1.5
"""A newer candidate that may contradict an older one is put above it if it has `NEAR` of its score, or less the likelier
it is: minus `SURER` times the chance."""
IN_PART = -1.0
"""The same where the newer one replaced a part of the older: hardly any score is too low."""
NOTED = 1.0
"""The share of its score that an entry gains which a model wrote down when it read a session: it says in plain words what is
said there among other things."""
ANSWERS_LESS = 4.0
"""By how much of a logit less the newer one may answer the question, where the reader has read both together with it."""
ONLY_OLD = 3
"""Words of a question that only the older of two has: then the newer is not put above it on a mere suspicion."""
ANOTHERS, NOT_SO = 0.75, 0.65
"""The share of its score that a short statement loses which is about somebody else than the question; and which says what was or
may be, where the question asks what is."""
TOLD_LATER = 0.4
"""The share that an entry loses which was told after the time that a question asks about."""
SHORT_STATEMENT = 160
"""Characters of a statement that says one thing. In longer messages this lost (docs/measurements.md)."""
LONGEST_LINE = 64
"""Replacements of replacements that are followed."""
READ_ROWS = 8
"""Best candidates whose texts are read, and compared with each other: a text tells more than its vector."""
LAYER_ROWS, SAME_TOPIC, SAME_TOPIC_SHARE, CLOSE_SHARE = 15, 0.4, 0.5, 0.85
"""Best candidates whose layers are compared. Entries this alike are about the same thing. Then an entry of a more specific
layer needs half the other's score to stand above it, else nearly all of it."""
SAME_TIME = 12 * 3_600_000_000
"""Microseconds between two things that are told at one time."""
LIKELY = 0.5
"""The probability from which on a question asks for something of which one has one at a time."""
TIE = 1e-3
_WAS = frozenset({"did", "was", "were", "had", "ever", "once", "first"})
_HELD = regex(
    r"\b(?:was|were) (?:my|our|i|we)\b|\b(?:did|had) (?:i|we) (?:live|work|have|own|use|drive|rent|eat|drink|study|earn"
    r"|weigh|prefer|like|attend|stay|belong|train|bank|play)\b",
    re.I,
)
"""Asks what was so, not what was done."""
_BY_MODEL = source_code(READ_BY_MODEL)


def weighed(ranked: Ranked, context: SearchContext) -> Ranked:
    """The ranking with what a model wrote down, what is more specific, and what holds now further up."""
    if not context.bounds.profile.margin:
        return ranked
    for step in (noted_first, held_then, own_first, specific_first):
        ranked = step(ranked, context)
    settled = newer_first(settle(ranked, context), context)
    return settled if settled is ranked else settle(settled, context)


def settle(ranked: Ranked, context: SearchContext) -> Ranked:
    """The ranking with what holds now above what it replaced; asked about the past, with what held last above both."""
    bank, margin, moment = context.bank, context.bounds.profile.margin, to_micros(context.bounds.moment)
    over = (bank.state[ranked.rows] == SUPERSEDED) & (bank.valid_to[ranked.rows] <= moment)
    if not over.any() or not margin:
        return ranked
    lines = _lines(context, bank.no[ranked.rows[over]].tolist(), moment)
    every = sorted({row for now, before in lines.items() for row in (now, *before)})
    ranked = context.with_rows(ranked, np.array(every, dtype=np.intp))
    place = {row: number for number, row in enumerate(ranked.rows.tolist())}
    scores, ends = ranked.scores, bank.valid_to[ranked.rows]
    leads, relevant = LEADS * scores.max(), RELEVANT * scores.max()
    lift, entries = np.zeros(len(scores)), context.read(np.array(every, dtype=np.intp))
    for row, replaced in lines.items():
        before = [place[one] for one in replaced if one in place]
        if (new := place.get(row)) is None or not before:
            continue
        if context.view.question.about_past:
            last = max(before, key=lambda where: (ends[where], scores[where]))
            above = max(scores[where] for where in (new, *before) if where != last)
            if scores[last] >= leads:
                above = scores.max()
            lift[last] = max(lift[last], above + margin - scores[last])
            continue
        for old in sorted(before, key=lambda where: -scores[where]):
            above, ended = scores[old] + margin - scores[new], int(ranked.rows[old])
            raises = scores[old] >= leads or scores[new] >= relevant
            changed, by = (new, above) if raises else (old, -above)
            if raises != (by > lift[changed]) or by == lift[changed]:
                continue  # it stands so already: what follows reads both texts
            if not (_asks_for(context, ended, row) or _leaves(context, entries, ended, row)):
                lift[changed] = by
    return ranked.with_factor("holds", lift, 1.0)


def newer_first(ranked: Ranked, context: SearchContext) -> Ranked:
    """Of two good candidates that may contradict each other, the newer above the older; asked about the past, the last but
    one above the last."""
    margin, question = context.bounds.profile.margin, context.view.question
    if question.dates:
        return ranked
    bank = context.bank
    best = ranked.order[:READ_ROWS].tolist()
    rows = ranked.rows[best]
    nos, held = bank.no[rows].tolist(), bank.state[rows] != SUPERSEDED
    in_part = {no for no, whole in zip(nos, held.tolist(), strict=True) if whole}  # `settle` treats the others
    edges = [
        (new, old, NEAR - SURER * min(chance, SURE) if type_ == "contradicts" else IN_PART)
        for new, old, type_, chance, _ in context.edges(rows, ("contradicts", "supersedes"))
        if type_ == "contradicts" or old in in_part
    ]
    if not edges:
        return ranked
    further = bank.rows_of(sorted({new for new, _, share in edges if share == IN_PART}.difference(nos)))
    ranked = context.with_rows(ranked, np.array(further, dtype=np.intp))
    scores, at = ranked.scores, bank.at[ranked.rows]
    place = dict(zip(nos, best, strict=True))
    if further:
        places = zip(bank.no[ranked.rows].tolist(), ranked.rows.tolist(), strict=True)
        place |= {no: where for where, (no, row) in enumerate(places) if row in further}
    lift = np.zeros(len(scores))
    found = [
        (*sorted((place[one], place[other]), key=lambda where: -at[where]), share)
        for one, other, share in edges
        if one in place and other in place
    ]
    if question.about_past:
        replaced = {old for _, old, _ in found}
        last = {new: (old, new, share) for new, old, share in sorted(found, key=lambda pair: at[pair[1]])}
        found = [pair for new, pair in last.items() if new not in replaced]
    pairs = sorted({where for pair in found for where in pair[:2]})
    entries = context.read(ranked.rows[pairs]) if pairs else {}
    unlifted, answers = scores - ranked.part("holds"), ranked.values_of(TOGETHER)
    for upper, lower, share in found:
        if answers[upper] < answers[lower] - ANSWERS_LESS:  # the newer one is of something else
            continue
        near = share * scores[lower] <= unlifted[upper] and scores[upper] < scores[lower] - lift[upper]
        old, new = ranked.rows[[lower, upper]].tolist()
        if not near or _asks_for(context, old, new) or len(_only_first(context, old, new, _asked(context))) >= ONLY_OLD:
            continue
        if share != IN_PART and (_are_apart(context, old, new) or _asks_for_one(context, old, new)):
            continue
        if _leaves(context, entries, old, new):
            continue
        lift[upper] = scores[lower] + margin - scores[upper]
    return ranked.with_factor("holds", lift, 1.0) if lift.any() else ranked


def asks_past(query: str) -> bool:
    """Whether a question asks for what was."""
    return read_question(query).about_past or not _WAS.isdisjoint(words(query))


def moment_asked(query: str) -> datetime | None:
    """The end of the month or day that a question about oneself names, where it asks what held then: "Where did I live in May
    2024?". What one did then may have been told later."""
    dates = read_question(query).dates
    if len(dates) != 1 or (year := dates[0].year) is None or not _HELD.search(query):
        return None
    asked = read(query.rstrip("?"))
    if not asked.of_speaker or asked.others or float(asked.topics @ topics().single) < LIKELY:
        return None
    month, day, _ = dates[0]
    last = datetime(year, month, 1, tzinfo=UTC) + timedelta(days=31)
    return last.replace(day=1) if day is None else datetime(year, month, 1, tzinfo=UTC) + timedelta(days=day)


def held_then(ranked: Ranked, context: SearchContext) -> Ranked:
    """The ranking of a question for what held at a time, with what was told later further down: it mostly tells what was
    so later."""
    if (then := moment_asked(context.query)) is None:
        return ranked
    later = context.bank.at[ranked.rows] >= to_micros(min(then, context.bounds.moment))
    return ranked.with_factor("later", np.where(later, -TOLD_LATER * np.maximum(ranked.scores, 0.0), 0.0), 1.0)


def own_first(ranked: Ranked, context: SearchContext) -> Ranked:
    """The ranking of a question about oneself, or about one's own people, with short statements about others far down, and what
    was or may be below what is."""
    if not only_asks(context.query):
        return ranked
    asked = read(context.query.rstrip("?"))
    if not asked.of_speaker:
        return ranked
    what_is = asked.is_so and not asks_past(context.query)
    best = ranked.order[:READ_ROWS]
    best = best[(context.bank.chars[ranked.rows[best]] <= SHORT_STATEMENT) & (ranked.scores[best] > 0)]
    entries = context.read(ranked.rows[best])
    whose, direct = np.zeros(len(ranked.scores)), np.zeros(len(ranked.scores))
    for place in best.tolist():
        entry = entries.get(int(ranked.rows[place]))
        if entry is not None and about_another(context.query, entry.text):
            whose[place] = -ANOTHERS * ranked.scores[place]
        elif entry is not None and what_is and not read(entry.text).is_so:
            direct[place] = -NOT_SO * ranked.scores[place]
    ranked = ranked.with_factor("whose", whose, 1.0) if whose.any() else ranked
    return ranked.with_factor("direct", direct, 1.0) if direct.any() else ranked


def noted_first(ranked: Ranked, context: SearchContext) -> Ranked:
    """The ranking with what a model wrote down of a session above what was said there."""
    noted = context.bank.source[ranked.rows] == _BY_MODEL
    if not noted.any() or asks_assistant(context.query):
        return ranked
    return ranked.with_factor("noted", np.where(noted, NOTED, 0.0) * np.maximum(ranked.scores, 0.0), 1.0)


def specific_first(ranked: Ranked, context: SearchContext) -> Ranked:
    """Of two good candidates about the same thing, the one of the more specific layer above the other. One that lacks
    words of the question is mostly about something else: "mailer is hosted in X", asked where search is hosted."""
    bank, margin = context.bank, context.bounds.profile.margin
    if len(bank.filled) < 2:
        return ranked
    scores = ranked.scores
    best, asked = ranked.order[:LAYER_ROWS], _asked(context)
    owner, vectors = bank.owner(ranked.rows[best]), bank.vectors(ranked.rows[best])
    alike = vectors @ vectors.T
    lift = np.zeros(len(scores))
    for general, theirs in enumerate(best.tolist()):
        for special, own in enumerate(best.tolist()):
            if owner[special] >= owner[general] or scores[theirs] <= 0:
                continue
            one, other = ranked.rows[[theirs, own]].tolist()
            same = alike[special, general] >= SAME_TOPIC
            share = SAME_TOPIC_SHARE if same else CLOSE_SHARE
            if not share * scores[theirs] <= scores[own] < scores[theirs] - TIE:
                continue
            lacking, more = (_only_first(context, *pair, asked) for pair in ((one, other), (other, one)))
            if not lacking or (same and more):
                lift[own] = max(lift[own], scores[theirs] + margin - scores[own])
    return ranked.with_factor("layer", lift, 1.0) if lift.any() else ranked


def _lines(context: SearchContext, nos: Sequence[int], moment: int) -> dict[int, set[int]]:
    """For each row that holds at a moment the rows of what it replaced by then, directly or through others."""
    bank = context.bank
    lines: dict[int, set[int]] = {}
    reached = {no: {no} for no in nos}  # from here, which of them led here
    ahead = set(nos)
    for _ in range(LONGEST_LINE):
        if not ahead:
            break
        further: set[int] = set()
        for new, old, *_ in context.edges(np.array(bank.rows_of(sorted(ahead)), dtype=np.intp), ["supersedes"]):
            if old not in ahead:
                continue
            for row in bank.rows_of([new]):
                begin, end = (int(bank.column(name, slice(row, row + 1))[0]) for name in ("valid_from", "valid_to"))
                if begin <= moment < end:
                    lines.setdefault(row, set()).update(bank.rows_of(sorted(reached[old])))
                elif begin <= moment and not reached[old] <= (led := reached.setdefault(new, {new})):
                    led |= reached[old]  # a ring, which a damaged file may have, adds nothing new in the end
                    further.add(new)
        ahead = further
    return lines


def _leaves(context: SearchContext, entries: Mapping[int, Entry], old: int, new: int) -> bool:
    """Whether the question asks for a part of one entry that a newer one leaves as it is."""
    return old in entries and new in entries and leaves(entries[old].text, entries[new].text, context.query)


def _asks_for(context: SearchContext, old: int, new: int) -> bool:
    """Whether the question names something that only the older entry names: then it asks for that one."""
    return bool(_only_first(context, old, new, context.view.question.named))


def _asked(context: SearchContext) -> set[int]:
    """The words of the question."""
    return {*context.view.question.named, *context.view.question.terms}


def _only_first(context: SearchContext, one: int, other: int, asked: Iterable[int]) -> list[int]:
    """Those of these words that only the first of two entries has."""
    return [term for term in asked if _has(context.bank, term, one) and not _has(context.bank, term, other)]


def _asks_for_one(context: SearchContext, old: int, new: int) -> bool:
    """Whether the question says which one of a kind it asks for, and the older entry tells of that, the newer of another: "the
    lint step", "the build step"."""
    entries = context.read(np.array([old, new]))
    if len(entries) < 2 or not (one := {named[1:] for named in read(context.query.rstrip("?")).qualified}):
        return False
    before, after = ({named[1:] for named in read(entries[row].text).qualified} for row in (old, new))
    return any(kind in {other for _, other in after} for _, kind in (one & before) - after)


def _are_apart(context: SearchContext, old: int, new: int) -> bool:
    """Whether two entries that are not alike tell different things: both were said in one session within hours, when
    people tell one thing after another, or each has words of the question that the other lacks."""
    bank, both = context.bank, np.array([old, new])
    one, other = bank.vectors(both)
    if one @ other >= SAME_TOPIC:
        return False
    said, then = bank.at[both].tolist()
    first, second = bank.thread[both].tolist()
    if first == second != NONE and abs(then - said) <= SAME_TIME:
        return True
    words_asked = _asked(context)
    return bool(_only_first(context, old, new, words_asked) and _only_first(context, new, old, words_asked))


def _has(bank: Bank, term: int, row: int) -> bool:
    return any(0 <= row - start < len(part) and part.postings.has(term, row - start) for part, start in bank.filled)

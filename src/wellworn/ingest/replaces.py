"""Does a statement replace an earlier one? "I moved to Bergen" replaces "I live in Oslo".

Three rules come first. Both statements are about the same owner: the speaker, or the same other person. The new one says
what is so, not what nearly, perhaps, once or also is. Both are about the same matter. Then a small logistic model weighs how
close they are in meaning and in topic, how long they are, and whether the new one tells of a change. Its weights were fitted
on the tuning files of `evals/lives` and on labelled pairs from real chats; docs/truth.md has the figures on others. It uses
the bundled vectors, so that it judges alike whatever embedder a store has, and beside them how close the vectors of a store
are whose model it was fitted for.

It knows one language's words for kinship and doubt. In other languages a statement replaces only one that says the same but for
a value, and only where it tells of a change.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import takewhile

from wellworn.core.cache import text_cache
from wellworn.core.lazy import regex
from wellworn.ingest import word_lists as lists
from wellworn.ingest.over import over
from wellworn.ingest.statement import ACTOR, HAS_TOPIC, PRONOUNS, Statement, agreement, of_its_own, read
from wellworn.ingest.terms import stem, words
from wellworn.ingest.topics import likeness, topics
from wellworn.language.reader import bundled

LONGEST_CHARS = 300
"""Longer texts say many things: no single one replaces them."""
SURE = 0.4
"""From here on a statement is taken to replace the other."""
MAYBE = 0.02
"""From here on it may: nothing is marked, but where a question finds both, the newer one comes first."""
_UNSURE = SURE - 0.01
_HOLDS_ON = SURE / 2
"""Below this, one of two things that a text says still holds where the other was replaced."""
_OTHER_THING = SURE / 2
"""The most where both are about a thing, and not about the same one."""
_CLEARLY = 0.1
"""How much nearer to a question the part is that it asks for."""
_SAME = 0.999
"""Statements this close say the same."""
_SAME_THING = 0.3
"""Names of things this close in meaning, as "boss" and "manager", are of the same thing."""
_SAME_USE = 0.6
"""What things are for, of or with is the same from here on: of Monday and Tuesday it is not."""
_WEIGHTS = {
    (False, False): (-6.7, 0.0, 9.2, 5.9, 2.6, 0.8, 1.2, 0.0, 0.0),
    (False, True): (3.5, 0.0, 0.0, 1.8, 3.0, 1.1, 1.2, 1.8, -0.8),
    (True, False): (-8.2, 12.4, 3.3, 2.3, 0.0, 0.0, 0.6, 0.0, 0.0),
    (True, True): (2.3, 5.2, 0.0, 0.0, 1.9, 1.0, 1.0, 1.7, -0.9),
}
"""By whether a fitted model says how near they are and whether they are English: bias, near by that model, near, near without
names, ends an old name, tells a change, both have names or none, and the logarithms of the chance of one topic and of how many
telling words each has. Those for English were fitted on lives and on real chats, in which nearly all that is near replaces nothing."""
_OF_NOTES, _IN_COMMON, _ALIKE_SO_FAR = (-5.7, 0.0, 2.5, 1.5, 0.7, 0.85, 0.65, 0.3, 0.0), 3.9, 1.4
"""The same for notes about somebody, for the share of their words that both have, and for beginning alike. Who takes notes takes
many on one matter: "The user has a Volvo" and "The user's Volvo needs tyres". Fitted on the notes of a language model on eighteen lives."""
_FILLERS = frozenset({"a", "an", "the", "now", "currently", "also", "new", "no", "longer"})
_NO_TOPIC = 0.01  # the least chance of one topic that is looked at
_SAME_TOPIC, _OTHER_TOPICS = 0.25, 0.005
"""From this chance of one topic on, two statements are about the same thing whatever its name; below that, about others."""
_DIED = 2.0  # of who is named: there were few to fit on
FITTED_FOR = "minilm:"
"""Names of embedders whose vectors it also takes begin so."""

_MUCH, _HALF = 0.4, 0.5
"""The share of its words that a statement has in common with one that it replaces."""
_TELLING_CHARS, _MANY_WORDS = 6, 4
"""Shorter words, or fewer, that two statements share may be mere form words in languages whose form words it does not know."""
_ALLERGY = regex(r"all?[eé]rg|аллерг|过敏|過敏|アレルギー|حساسية", re.I)
"""Of these one may get more: a new one ends none."""
_HAN = regex(r"[\u4e00-\u9fff]{2}")


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two names may be of one thing: "manager" and "boss", "call" and "weekly call"; not "deploy key" and "API key"."""
    here, there = ({*map(stem, thing)} for thing in (one, other))
    return (here <= there or there <= here) if here & there else _nearness(one, other) >= _SAME_THING


def _of_one_kind(before: Statement, after: Statement) -> bool:
    """Whether both name a thing, with a word in common: "deploy key" and "API key"."""
    return any(not one.isdisjoint(other) for one in before.thing_stems for other in after.thing_stems)


def _begin_alike(before: Statement, after: Statement) -> bool:
    """Whether two statements have the same words up to a verb: "The rent is …", "I live in …"."""
    both = ([word for word in words(one.result) if word not in _FILLERS] for one in (before, after))
    alike = [one for one, other in takewhile(lambda pair: pair[0] == pair[1], zip(*both, strict=False))]
    return not lists.BE_OR_HAVE.isdisjoint(alike) or (len(alike) > 1 and alike[0] in ACTOR)


def _begins_with(before: Statement, after: Statement) -> bool:
    """Whether what the old statement tells of first is in the new one, too: "The API returns …", "Our API now returns …"."""
    first = next((word for word in map(stem, words(before.said)) if word in before.content), None)
    return first in after.content


def _elsewhere(before: Statement, after: Statement) -> bool:
    """Whether it says something else of another part of one's programs ("tabs in Go files", "spaces in YAML files"), or of one
    of several things that were named together."""
    if before.where and after.where - before.where and before.content - before.where != after.content - after.where:
        return True
    return before.lists and not after.lists and not _begin_alike(before, after)


def _another_case(before: Statement, after: Statement) -> bool:
    """Whether it tells of another time or use, and says something else of that: "I swim on Mondays", "On Fridays I climb"; or of
    something else than what somebody does not do: "I don't eat meat", "I eat fish"."""
    if after.tells_change and not after.tells_only_now:
        return False
    if before.denies and not after.denies and not before.content <= after.content:
        return True
    apart = after.case and after.case.isdisjoint(before.content) and before.times.isdisjoint(after.content)
    if not (apart or _apart(before.use, after.use)):
        return False
    return not (before.of_case <= after.of_case or after.of_case <= before.of_case)


def _another_of_its_kind(before: Statement, after: Statement) -> bool:
    """Whether each names one of a kind, and not the same: "my work laptop" and "a private laptop", or just "my laptop"."""
    if "now" in words(after.said) or _begin_alike(before, after):
        return False
    plain = before.owns - {kind for _, _, kind in before.qualified}
    if not after.tells_change and any(mine and kind in plain for mine, _, kind in after.qualified):
        return True
    return any(
        kind == other_kind and which != other_which and (mine or other_mine)
        for mine, which, kind in before.qualified
        for other_mine, other_which, other_kind in after.qualified
    )


def _apart(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether both name something, and nothing that is the same."""
    return bool(one and other and one.isdisjoint(other)) and _nearness(one, other) < _SAME_USE


@text_cache(2048)
def _nearness(one: frozenset[str], other: frozenset[str]) -> float:
    return likeness(*bundled().gist([" ".join(sorted(some)) for some in (one, other)]))


def _calls_off(before: Statement, after: Statement) -> bool:
    """Whether nothing comes of a plan, as a later statement says that names little else."""
    return before.plans and 2 * len(after.called_off & before.content) > len(after.called_off)


def _ends(before: Statement, after: Statement) -> float:
    """How likely the new statement just tells that what the old one says is over."""
    matter = after.content - before.others - after.others  # who it is about is not what is over
    theirs = bool(before.others) != bool(after.others)  # "My sister gave up the cello"
    if theirs or matter.isdisjoint(before.content) or not _english(before, after):
        return 0.0
    near = likeness(before.vectors[0], after.vectors[0])
    if near > _SAME or before.over > 0:  # said again; or what is over already
        return 0.0
    return over().probability(after.over, before.content, matter, near)


def _same_owner(before: Statement, after: Statement) -> bool:
    """Whether both are about the speaker, or about the same other: my brother Sam is not my brother Theo."""
    who, whom = (one.others & {*map(stem, one.names)} for one in (before, after))
    if who and whom and not who & whom:
        return False
    for one, two in ((before, after), (after, before)):
        named = one.others - PRONOUNS
        meant = two.others and (not named or two.others & PRONOUNS)  # "my sister", then "she"
        if one.others and not (meant or (named | one.definite) & two.content):
            return False
    return True


def may_follow(old: Statement, new: Statement) -> bool:
    """Whether a new statement says what is so, and may be about the same owner as an old one."""
    return new.states and _is_news(new, old) and _same_owner(old, new) and not _apart(old.of_what, new.of_what)


def _is_news(after: Statement, before: Statement | None = None) -> bool:
    """Whether it says what is so, and not that the old statement, if there is one, holds on."""
    stays = before is not None and bool(after.stays) and _stays(before, after)
    ends = bool(after.called_off) if before is None else _calls_off(before, after)  # "not … after all"
    return after.is_so and (ends or not after.besides) and not stays


def _stays(before: Statement, after: Statement) -> bool:
    """Whether the new statement says that all the old one names holds on, or where that names nothing, some of its words."""
    names = {*map(stem, before.names)}
    return names <= after.stays if names else not after.stays.isdisjoint(before.content)


def _told_by_subject(old: Statement, new: Statement) -> tuple[Statement, Statement]:
    """Two statements about one person as that person would tell them. Then the name, which both have, says nothing of
    whether they are about the same thing: "Kim's cat is called Momo" and "Kim moved to York" are not."""
    before, after = old.told, new.told
    return (old, new) if before is None or after is None or before[0] != after[0] else (before[1], after[1])


def _share_a_word(before: Statement, after: Statement) -> bool:
    """Whether two statements in another language share a long word besides what is somebody's, two pairs of Chinese signs, or
    many words."""
    shared = before.frame_abroad & after.frame_abroad
    telling = any(len(word) >= _TELLING_CHARS for word in shared - after.owned_abroad)
    return telling or len(shared) >= _MANY_WORDS or sum(bool(_HAN.fullmatch(word)) for word in shared) > 1


def _differ_in_value(before: Statement, after: Statement) -> bool:
    """Whether two statements in another language are the same but for one value and words that tell of a change: "Ich arbeite bei
    Siemens", "Ich arbeite jetzt bei Bosch"; or the new one says that what the old one names is at another time."""
    old, new = before.frame_abroad, after.frame_abroad
    shared, signs = old & new, sum(bool(_HAN.fullmatch(word)) for word in old & new)
    shifted = after.shifts_abroad and _share(old, new) >= _MUCH
    if signs:  # pairs of signs overlap
        return shifted or len(shared) >= _HALF * max(len(old), len(new))
    here, there = before.words_abroad, after.words_abroad
    start = _in_common(here, there)
    if shifted:
        return start > 0 and len("".join(there[start : start + 1])) < _TELLING_CHARS
    end = _in_common(here[start:][::-1], there[start:][::-1])
    return start > 0 and len(here) == len(there) == start + 1 + end


def _in_common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words two lists begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _most_abroad(before: Statement, after: Statement) -> float:
    """The same for what is not English: nothing is surely replaced without a word for it, nor by what is said of another one's."""
    if after.owned_abroad and not any(thing in word for thing in after.owned_abroad for word in before.frame_abroad):
        return 0.0
    if not (shared := _share_a_word(before, after)) or not _differ_in_value(before, after):
        most = _UNSURE if shared else MAYBE
        return most if after.tells_change else 0.0
    return 1.0 if after.tells_change and not _ALLERGY.search(after.said) else _UNSURE


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of the words of the shorter statement that the other has too."""
    return len(one & other) / max(1, min(len(one), len(other)))


def _most(before: Statement, after: Statement) -> float:
    """The highest probability that a pair can have. What is said for, of or with different things has nothing to do with each
    other. Nothing is surely replaced by a statement about another thing, or about one that the old statement does not mention; nor
    what was or may be; nor where both merely tell what happened, or of things of which one has many: there the newer may come first."""
    if not (english := _english(before, after)) and (most := _most_abroad(before, after)) < 1:
        return most
    if _apart(before.of_what, after.of_what):
        return 0.0
    if before.component and after.component and before.component != after.component:
        return 0.0
    on_topic, several = _on_one_topic(before, after)
    ends, same = before.named & after.ended, agreement(before, after)
    unrelated = same < _OTHER_TOPICS and min(before.topics.sum(), after.topics.sum()) > HAS_TOPIC
    if unrelated and english and not ends:
        return _UNSURE
    if not on_topic and not after.tells_change and _apart(before.definite, after.definite):
        return _UNSURE
    if after.momentary or any(differ(before, after) for differ in (_elsewhere, _another_case, _another_of_its_kind)):
        return _UNSURE
    if after.amount_of and not before.amount_of <= after.content:
        return _UNSURE
    named_alike = any(_alike(a, b) for a in before.things for b in after.things)
    alike = named_alike or (on_topic and not _of_one_kind(before, after))
    shared = before.content & after.content - (before.does & after.definite) - (before.definite & after.does)
    within = any(stems <= shared for one in (before, after) for stems in one.thing_stems)
    moved = after.tells_change and any(name[0].isalpha() for name in before.names & after.names)
    if before.things and after.things and not (alike or within or moved):
        return _OTHER_THING
    one_matter = (
        alike or ends or same >= _SAME_TOPIC or _share(before.result_words, after.result_words) >= _HALF or not english
    )
    told = after.tells_change and not (after.tells_only_now and not named_alike and shared <= before.does)
    many = not told and (several or ((before.many or after.many) and not on_topic))
    many |= not named_alike and any(a[0] == b[0] and a[1] != b[1] for a in before.labels for b in after.labels)
    tells_of = after.told is not None and after.told[0] in before.names - after.ended and not after.names - before.names
    return 1.0 if one_matter and before.is_so and not many and not tells_of else _UNSURE


def _on_one_topic(one: Statement, other: Statement) -> tuple[bool, bool]:
    """Whether two statements are about one topic: one of which there is one at a time, or one of which there are several."""
    subject = one.of_speaker or other.of_speaker or words(one.said)[:1] != words(other.said)[:1]  # "Alpha hosts …"
    if not subject or not _have_topics(one, other) or (both := agreement(one, other)) < _SAME_TOPIC:
        return False, False
    single = float(one.topics @ (other.topics * topics().single)) >= both / 2
    return single, not single


def _english(one: Statement, other: Statement) -> bool:
    return (one.english or other.english) and not (one.foreign or other.foreign)


def _have_topics(one: Statement, other: Statement) -> bool:
    """Whether both have a topic, of what one tells of oneself."""
    return (one.english or other.english) and not (one.others or other.others) and one.has_topic and other.has_topic


def leaves(old: str, new: str, question: str) -> bool:
    """Whether a question asks for a part of an old text that the new one leaves as it is: "I live in Leeds. I work at
    Acme.", then "I moved to York.", and "Where do I work?"."""
    before, after = read(old), read(new)
    parts = before.parts_of(before.named & after.named)
    if len(parts) < 2:
        return False
    gone = max(parts, key=lambda part: _probability(part, after, False, True))
    words_asked = read(question.rstrip("?")).content
    asked_for = [part for part in parts if words_asked & part.content and _holds_on(part, after)]
    if asked_for and not words_asked & (gone.content | after.content):
        return True
    asked, *vectors = bundled().gist([question, *(part.text for part in parts)])
    near = sorted(((likeness(vector, asked), place) for place, vector in enumerate(vectors)), reverse=True)
    return near[0][0] - near[1][0] >= _CLEARLY and _holds_on(parts[near[0][1]], after)


def may_replace(new: str, *, spoken: bool) -> bool:
    """Whether a new text may replace any other at all: what `probability` asks of it alone."""
    after = read(new)
    forms = [after, *after.apart] if after.told is None else [after, after.told[1], *after.apart, *after.told[1].apart]
    forms += [part.told[1] for part in after.apart if part.told is not None]
    return any(_is_news(one) and (spoken or (one.asserts and one.states)) for one in forms)


def probability(
    old: str,
    new: str,
    *,
    stated: bool = False,
    spoken: bool = False,
    noted: bool = False,
    nearness: float | None = None,
) -> float:
    """How likely it is that the new statement replaces the old one, 0 … 1. `nearness` is the cosine of both by a model that
    it was fitted for.

    `noted` when both are notes about somebody. `stated` when both are memories, which are statements; long ones and those that speak to somebody are never surely replaced. Of `spoken` turns those that do not read like one may be
    replaced, but never surely; of other texts not even that. What it replaces may be a part of the old one: see `says_more`.
    """
    if max(len(old), len(new)) > LONGEST_CHARS:
        return 0.0
    before, after = read(old), read(new)
    news = [after, *after.apart]
    return max(_probability(before, one, stated, spoken, nearness if one is after else None, noted) for one in news)


def says_more(old: str, new: str) -> bool:
    """Whether an old text says something that still holds after the new one: "I live in Leeds. I work at Acme." after "I
    moved to York.", "My sister Ida lives in Porto. She is a nurse." after "Ida moved to Lisbon."."""
    before, after = read(old), read(new)
    parts = before.parts_of(before.named & after.named)
    return len(parts) > 1 and any(_holds_on(part, after) for part in parts)


def _holds_on(part: Statement, after: Statement) -> bool:
    if part.only_ends or not of_its_own(part):
        return False
    return all(_probability(part, one, False, True) < _HOLDS_ON for one in (after, *after.apart))


def _probability(
    old: Statement, new: Statement, stated: bool, spoken: bool, nearness: float | None = None, noted: bool = False
) -> float:
    before, after = _told_by_subject(old, new)
    states = after.states and (spoken or before.states or (after.tells_change and _begins_with(before, after)))
    states = states or stated or (spoken and _on_one_topic(before, after)[0])
    asserts = after.asserts and before.asserts and states
    if asserts and after.is_so and _calls_off(before, after):
        return float(_same_owner(before, after))
    # What costs least comes first: most pairs have nothing to do with each other.
    if not (asserts or stated or spoken) or not (_is_news(after, before) and _same_owner(before, after)):
        return 0.0
    sure, ends_it = 1.0 if asserts else _UNSURE, _ends(before, after)
    news = after.tells_change or not after.names or bool(after.names - before.names)
    if not news or not (most := _most(before, after)):
        return min(sure, ends_it)
    near, without_names = (likeness(one, two) for one, two in zip(before.vectors, after.vectors, strict=True))
    if near > _SAME:
        return 0.0
    both_have_names = bool(before.names) == bool(after.names)
    ends, topic = bool(before.named & after.ended), math.log(agreement(before, after) + _NO_TOPIC)
    length = math.log1p(len(before.content)) + math.log1p(len(after.content))
    looks = (1.0, nearness or 0.0, near, without_names, ends, after.tells_change, both_have_names, topic, length)
    english = _english(before, after)
    notes = english and noted
    weights = _OF_NOTES if notes else _WEIGHTS[nearness is not None, english]
    score = sum(weight * value for weight, value in zip(weights, looks, strict=True))
    if notes:
        shared, either = before.result_words & after.result_words, before.result_words | after.result_words
        score += _IN_COMMON * len(shared) / max(1, len(either)) + _ALIKE_SO_FAR * _begin_alike(before, after)
    if before.named & after.ended and "died" in words(after.said):
        score += _DIED
    return min(sure, max(ends_it, min(most, 1 / (1 + math.exp(-score)))))

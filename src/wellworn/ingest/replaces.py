"""Does a statement replace an earlier one? "I moved to Bergen" replaces "I live in Oslo".

Three rules come first. Both statements are about the same owner: the speaker, or the same other person. The new one says
what is so, not what nearly, perhaps, once or also is. Both are about the same thing. Then a small logistic model weighs how
close they are in meaning and whether the new one tells of a change. Its weights were fitted on the tuning files of
`evals/lives`; docs/truth.md has the figures on the others. It uses the bundled vectors, so that it judges alike whatever
embedder a store has, and beside them how close the vectors of a store are whose model it was fitted for.

It knows one language's words for change, kinship and doubt. In other languages a statement replaces only what it shares a
telling word with.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cached_property, lru_cache

from wellworn.core.lazy import regex
from wellworn.ingest import word_lists as lists
from wellworn.ingest.terms import names_in, stem, words
from wellworn.ingest.topics import embedder, topics
from wellworn.ingest.utterance import TIME_NAME, TITLE, stated_in, telling_words
from wellworn.models.port import Matrix

LONGEST_CHARS = 300
"""Longer texts say many things: no single one replaces them."""
SURE = 0.4
"""From here on a statement is taken to replace the other."""
MAYBE = 0.04
"""From here on it may: nothing is marked, but where a question finds both, the newer one comes first."""
_UNSURE = SURE - 0.01
_HOLDS_ON = SURE / 2
"""Below this, one of two things that a text says still holds where the other was replaced."""
_CLEARLY = 0.1
"""How much nearer to a question the part is that it asks for."""
_SAME = 0.999
"""Statements this close say the same."""
_SAME_THING = 0.3
"""Names of things this close in meaning, as "boss" and "manager", are of the same thing."""
_SAME_USE = 0.6
"""What things are for, of or with is the same from here on: of Monday and Tuesday it is not."""
_BEFORE, _AFTER = 4, 2
"""Words around a name in which its end is told."""
_MOST_SENTENCES, _MOST_CHARS = 3, 160
_WEIGHTS = {
    (False, False): (-6.7, 0.0, 9.2, 5.9, 2.6, 0.8, 1.2, 0.0),
    (False, True): (1.8, 0.0, 0.0, 4.9, 4.6, 1.2, 0.1, 2.3),
    (True, False): (-8.2, 12.4, 3.3, 2.3, 0.0, 0.0, 0.6, 0.0),
    (True, True): (-3.1, 9.1, -1.7, 3.1, 1.5, 1.7, 0.9, 1.3),
}
"""By whether a fitted model says how near they are and whether both have a topic: bias, near by that model, near, near without
names, ends an old name, tells a change, both have names or none, and the logarithm of the chance of one topic."""
_NO_TOPIC, _HAS_TOPIC = 0.01, 0.4  # the least chance that is looked at, and that from which on a statement has a topic
_SAME_TOPIC, _OTHER_TOPICS = 0.25, 0.005
"""From this chance of one topic on, two statements are about the same thing whatever its name; below that, about others."""
_DIED = 2.0  # of who is named: there were few to fit on
FITTED_FOR = "minilm:"
"""Names of embedders whose vectors it also takes begin so."""

_RESULTS = [
    (regex(rf"\b(?:moved|relocated|moving) (?:back |over |out )?to (?=[A-Z])(?!{TIME_NAME})"), "live in "),
    (regex(rf"^(i|we)(?:['’]ve| have)? moved to (?!an? |the |my |our |{TIME_NAME.lower()})(?=[a-z])"), r"\1 live in "),
    (regex(r"\b(?:joined|started at|signed with|hired by) (?=[A-Z])"), "work at "),
    (regex(r"\b(?:took|takes|taking) over as "), "is "),
    (regex(r"\b(?:switched|migrated) (?:over )?to "), "use "),
    (regex(r"\b(?:work(?:ing)? as|(?:have |['’]ve )?(?:become|became)) (?=an? )"), "am "),
]
"""What holds after a change whose verb says nothing of it: static vectors hold "moved to" and "live in" apart."""
PERSON = (
    r"(?:aunt|boyfriend|brother|child(?:ren)?|colleague|cousin|co-?worker|dad|daughter|father|(?:flat|room|house)mate|friend"
    r"|girlfriend|grand(?:father|mother|ma|pa|parent)|husband|kid|mom|mother|mum|neighbou?r|nephew|niece|parent|partner"
    r"|sister|son|uncle|wife)s?\b"
)
_OTHERS = regex(
    rf"(?:^|[.!?;,:]\s+|\b(?:and|but|so|that)\s+)(?:(?!(?:for|with|of|by|to|from)\b)\w+\s+){{0,3}}?({PERSON})(?!\W*$)"
    r"(?-i:\s+([A-Z][^\W\d_]+))?|(?-i:\b([A-Z][^\W\d_]+))\s+(?:has\s+|just\s+|recently\s+)?"
    r"(?:moved|relocated|lives|works|quit|left|joined|resigned|retired|bought|sold|married|studies|drives)\b"
    r"|\b(he|she|his|her)\b|\b(?!(?:it|that|what|let|there|here|today|who|where|how)\b)([^\W\d_]+)"
    r"['’]s\s+(?!(?:a|an|the|not|been|going|gonna|now|so|just|in|on|at|my|our|always|called)\b)[^\W_]",
    re.I,
)
"""Who else a statement is about: kin and friends before a verb, by name too, who moved, lives somewhere or quit, "she", whose
thing it is."""
PRONOUNS = frozenset({"he", "she", "his", "her"})
_OF_SPEAKER = regex(
    rf"\b(?:(?:i|im|ive|we|me|us)\b|(?:my|our)\s+(?:new\s+)?(?:(?!{PERSON})(?![\w-]+['’]s)"
    r"|\w+(?-i:\s+(?:is|are|was)\s+(?:now\s+)?(?:called\s+|named\s+)?[A-Z])))",
    re.I,
)
"""The speaker acts, or has something: "I", "my car", "my wife is Ada"; but not "my wife", "my wife's car"."""
ACTOR = frozenset({"i", "im", "ive", "we", "me", "us"})
SPEAKER = ACTOR | {"my", "our", "mine"}

_NOT_SO = regex(
    r"\b(?:used to|früher|damals|antes|autrefois|as a (?:kid|child|student)|back (?:then|when|at)|when i was|years ago|before that"  # it was
    r"|might|(?:i|we) (?:may|could)|would|maybe|perhaps|imagine|if (?:i|we)|i['’]d (?:love|like)|(?:some|one|some )day"
    r"|nearly|almost|about to|close to|plan(?:ned|ning)? to|(?:i|we) (?:plan(?! on \w+day)|hope|want|wish|intend)|hoping to"  # it may be
    r"|consider(?:ing)?|appl(?:y|ied|ying)|mind to|thinking (?:about|of)|decid\w+ against)\b",
    re.I,
)
"""What was or may be does not replace what is, and is not replaced."""
_BESIDES = regex(r"\b(?:still|also|too(?=\W*$|[.,;!])|as well|besides|in addition|another|a second)\b", re.I)
"""The old one holds too."""
_NOT = regex(
    r"(?:\b(?:not|never)|n['’]t)\s+(?:yet |even |really |actually )?([a-z]+)(?!.*\b(?:anymore|longer|instead)\b)", re.I
)
_MANY = regex(
    r"\b(?:i|we)(?:['’]ve)?\s+(?:just |really |recently )?(?:[a-z]+ed|met|went|saw|read|bought|had|was|were|did|made|came|ate"
    r"|found|ran|gave|told|heard|felt|wrote|won|lost|spent|flew|drove|slept|sang|swam|built|sent|paid|set|put|cut"
    r"|have|like|love|know|speak|play|can|enjoy|need|want|think|hope|feel|got|been|hate|own)\b",
    re.I,
)
_SUBJECT = regex(r"([A-Z][^\W\d_]*)(?:(['’]s)|(:)|(?=\s+([a-z]+)))\s+")
"""Who opens a statement: "Kim's cat …", "Kim: …", "Kim moved …"."""
_LABEL = regex(
    r"\b((?!(?:in|at|from|for|by|to|of|on|is|are|was|were|and|or|about|until|till|only|now)\b)[a-z]+)\s+(?:no\.?\s+|number\s+|#)?(\d+)\b"
)
"""A number that names one of many: "ticket 12", "shop 3"."""
_ACTS = regex(r"lives|works|drives|rents|studies|[a-z]{2,}ed|bought|got|also|always|never|still|just|recently")
"""What a person does with one thing at a time, or did. Who "keeps bees" may keep hens."""
_VERBS = {"is": "am", "has": "have", "does": "do"}
_TO_SOMEONE = regex(r"\b(?:you|your|yours|yourself|y'all|ya|u|let's)\b", re.I)
_STATE = regex(r"\b(?:is|are|was|has|have|will)\b|['’]s\b|[:=] ?\w", re.I)
_SENTENCE_ENDS = regex(r"[.!?]+(?:\s|$)")
_DEFINITE = regex(r"\bthe\s+([^\W_]+)", re.I)
_MUCH = 0.4
"""The share of its words that a statement in another language has in common with one that it replaces."""
_SAYS_I = regex(r"\bI\b|^i\b")
_TELLING_CHARS = 6
"""Shorter words that two statements share may be mere form words in languages whose form words it does not know."""
_HAN = regex(r"[\u4e00-\u9fff]{2}")
_OF_WHAT = regex(
    r"(?:^|[.!?;,:]\s+|\b(?:and|but|so)\s+)(?:the|my|our)\s+(?:[\w-]+\s+){1,3}?(?:for|of|to|with|from|in|at|on)\s+"
    r"(?:the\s+|my\s+|our\s+|an?\s+)?((?:[\w-]+\s+){1,3}?)(?:is|are|was|were|has|have|will|got|gets)\b",
    re.I,
)
"""What the subject is for, of or with: "the budget for the kitchen is …"."""
_DOES = regex(r"\b(?:i|we)\s+(?:(?:now|always|usually|often|just|still|do|will)\s+)?([^\W_]+)", re.I)
_HEADING = regex(r"\s*([^.!?;:,\n]{1,60}):\s")
_CLAUSE = regex(r"[.!?;:,]+\s+")
_PARTS = regex(
    r"[.!?;]+\s+|,\s+(?:and|but)\s+|(?:\s+(?:and|but)|,)\s+(?=(?:i|we|my|our|the\s+\w+\s+(?:is|are))\b)", re.I
)
_WHO = regex(r"\b([Mm]y [a-z]+|[Oo]ur [a-z]+) ([A-Z][^\W\d_]+)\b")
"""Said in passing: "with my wife Ana"."""
_WITH_WHOM = regex(rf"\bwith {_WHO.pattern}")
_AND_DO = regex(
    r"^(\W*(?:i|we)\s.+?),?\s+and\s+((?:live|work|drive|rent|own|use|have|play|study|teach|speak)\s.+)", re.I | re.S
)
"""Two statements with one subject: "I live in Leeds and work at Acme"."""
_FULL = 3
"""Telling words of a part that says something whatever its verb is: "tests run with tox"."""
_HE_OR_SHE = regex(r"^\W*(?:he|she)\b", re.I)
_NOUNS = regex(r"[^\W_](?:[\w'’-]*[^\W_])?")
_OWN = ("my", "our")


class Statement:
    """What the judge looks at in one text, each found when it is first asked for. Words are stems."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.said = stated_in(text)
        self._words = frozenset(words(self.said))

    @cached_property
    def vectors(self) -> tuple[Matrix, Matrix]:
        """Of what holds after it, and of that without names."""
        nameless = " ".join(word for word in words(self.result) if word not in self.names)
        return embedder().embed_query(self.result), embedder().embed_query(nameless)

    @cached_property
    def result(self) -> str:
        """What holds after it."""
        result = self.said
        for change, holds in _RESULTS:
            result = change.sub(holds, result)
        return result

    @cached_property
    def names(self) -> frozenset[str]:
        lower = self.english and self.text == self.text.lower()
        names = topics().unknown(self.said) if lower else names_in(self.said)
        return frozenset(part for name in names for part in words(name))

    @cached_property
    def named(self) -> frozenset[str]:
        """Its names, also one with which it begins."""
        return self.names if self.told is None else self.names | {self.told[0]}

    @cached_property
    def content(self) -> frozenset[str]:
        """Words that are no stop words and tell of no change."""
        return frozenset(map(stem, self._words - lists.STOP_WORDS)) - lists.CHANGE_WORDS

    @cached_property
    def definite(self) -> frozenset[str]:
        """Words after "the"."""
        return frozenset(stem(word.lower()) for word in _DEFINITE.findall(self.said))

    @cached_property
    def topics(self) -> Matrix:
        """What it is about, as probabilities of topics."""
        return topics().of_text(_WITH_WHOM.sub("", self.result))

    @cached_property
    def has_topic(self) -> bool:
        """Whether it is clear what it is about; the model knows English."""
        return not self.foreign and float(self.topics.max()) >= _HAS_TOPIC

    @cached_property
    def english(self) -> bool:
        own = len(lists.ENGLISH_WORDS & self._words) + bool(_SAYS_I.search(self.said))
        own += _changes(self._words - lists.ELSEWHERE)
        return own >= max(1, len(lists.FOREIGN_WORDS & self._words))

    @cached_property
    def foreign(self) -> bool:
        return not (self.english or lists.FOREIGN_WORDS.isdisjoint(self._words))

    @cached_property
    def of_what(self) -> frozenset[str]:
        """What its subject is for, of or with; these are whole words."""
        return frozenset(words(" ".join(_OF_WHAT.findall(self.said)))) - lists.STOP_WORDS

    @cached_property
    def does(self) -> frozenset[str]:
        """What the speaker does: "I report to …" has no report."""
        return frozenset(stem(word.lower()) for word in _DOES.findall(self.said))

    @cached_property
    def labels(self) -> frozenset[tuple[str, str]]:
        """Its things with a number, as ("ticket", "12")."""
        return frozenset(_LABEL.findall(self.said))

    @cached_property
    def others(self) -> frozenset[str]:
        """Whom it is about, if not the speaker."""
        if _OF_SPEAKER.search(self.said):
            return frozenset()
        return frozenset(stem(word.lower()) for found in _OTHERS.findall(self.said) for word in found if word)

    @cached_property
    def things(self) -> tuple[frozenset[str], ...]:
        """What it says something of, as in "my dentist appointment is …"; these are whole words."""
        return tuple(filter(None, _things(self.said, self.of_speaker)))

    @cached_property
    def thing_stems(self) -> list[set[str]]:
        return [{*map(stem, thing)} for thing in self.things]

    @cached_property
    def tells_change(self) -> bool:
        return self.english and _changes(self._words)

    @cached_property
    def only_ends(self) -> bool:
        """It tells what is over: "I no longer work at Acme"."""
        return not lists.END_WORDS.isdisjoint(map(stem, self._words))

    @cached_property
    def of_speaker(self) -> bool:
        return not SPEAKER.isdisjoint(self._words)

    @cached_property
    def asserts(self) -> bool:
        """It is short, asks nothing and speaks to nobody: it may be a statement of fact."""
        short = len(self.said) <= _MOST_CHARS and len(_SENTENCE_ENDS.findall(self.said)) <= _MOST_SENTENCES
        return short and "?" not in self.text and not _TO_SOMEONE.search(self.said)

    @cached_property
    def states(self) -> bool:
        """It has a speaker, a change or a verb of state."""
        return self.of_speaker or self.tells_change or bool(_STATE.search(self.said))

    @cached_property
    def many(self) -> bool:
        """It tells what happened, or something of which one has many."""
        return bool(_MANY.search(self.said))

    @cached_property
    def ended(self) -> frozenset[str]:
        """Words of whose end it tells: "I left Acme", "Tom instead of Priya", "Lopes retired"; not "Rex goes to …". In
        other languages, which it does not read, all names."""
        return frozenset(
            word
            for said in map(words, _CLAUSE.split(self.said))
            for place, word in enumerate(said)
            if _tells_end({*said[max(0, place - _BEFORE) : place]}) or _goes({*said[place + 1 : place + 1 + _AFTER]})
        ) | (frozenset() if self.english else self.names)

    @cached_property
    def is_so(self) -> bool:
        """It says what is, not what was or may be."""
        return not _NOT_SO.search(self.said)

    @cached_property
    def besides(self) -> bool:
        """It leaves what was said before as it is."""
        return bool(_BESIDES.search(self.said)) or any(_changes([word]) for word in _NOT.findall(self.said))

    @cached_property
    def told(self) -> tuple[str, Statement] | None:
        """The person whom it is about by name, and the statement as that person would make it."""
        found = _SUBJECT.match(self.text)
        if found is None or found[1].lower() in lists.STOP_WORDS:
            return None
        own = told_by(found[1], self.text)
        return None if own == self.text else (found[1].lower(), Statement(own))

    @cached_property
    def parts(self) -> list[str]:
        """The statements of a text, each with its subject."""
        found = []
        for part in _PARTS.split(TITLE.sub("", self.text)):
            both = _AND_DO.match(part)
            found += [both[1], f"{part.split()[0]} {both[2]}"] if both else [part]
        return [part for part in found if part.strip()]

    @cached_property
    def apart(self) -> list[Statement]:
        """Its parts that say something apart from the rest; none where it is a single statement."""
        return [one for part in self.parts if _of_its_own(one := read(part))] if len(self.parts) > 1 else []

    def parts_of(self, names: frozenset[str]) -> list[Statement]:
        """Its parts. Where it is about one person of that name, "she" is that person: "Ida lives in Porto. She is a nurse." """
        name = min(names).title() if len(names) == 1 else None
        who = [f"{one} is {called}" for one, called in _WHO.findall(self.text)]
        return [read(_HE_OR_SHE.sub(name, part) if name else part) for part in (*self.parts, *who)]


@lru_cache(maxsize=2048)
def read(text: str) -> Statement:
    """The statement in a text."""
    return Statement(text)


def forget_statements() -> None:
    """Empty the caches, which hold texts."""
    read.cache_clear()
    _nearness.cache_clear()


def _tells_end(around: set[str]) -> bool:
    return _changes(around - {"now"}) or not lists.NEGATES.isdisjoint(around)


def _goes(after: set[str]) -> bool:
    """Whether what stands before these words is over: "… retired", "… was sold", "… is no longer"; not "… sold the car"."""
    return not lists.END_WORDS.isdisjoint(map(stem, after)) or (
        _tells_end(after) and not lists.BE_OR_HAVE.isdisjoint(after)
    )


def _changes(found: Iterable[str]) -> bool:
    return not lists.CHANGE_WORDS.isdisjoint(map(stem, found))


def _things(text: str, speaker: bool) -> Iterable[frozenset[str]]:
    """What a text says something of: its heading ("Owner of Atlas: …"), the subject of a clause ("the launch has …"), or
    what the speaker has ("my rent")."""
    heading = None if speaker else _HEADING.match(text)
    if heading:
        yield frozenset(noun for noun in words(heading[1]) if noun not in lists.STOP_WORDS and not _changes([noun]))
    for clause in _CLAUSE.split(text):
        said = _NOUNS.findall(clause)
        low = [re.split("['’]", word)[0].lower() for word in said]
        for place, word in enumerate(low):
            named = word in (*_OWN, "the")
            if (place and (word not in _OWN or low[place - 1] in lists.PREPOSITIONS)) or (speaker and not named):
                continue  # "Tofu is our dog" names a value, not a thing
            begin = end = place + named
            while (
                end < len(low)
                and low[end] not in lists.STOP_WORDS
                and (low[end] in lists.NEW_WORDS or not _changes([low[end]]))
            ):
                end += 1
            after = low[end] if end < len(low) else ""
            if after in lists.BE_OR_HAVE or _changes([after]) or (place and (not after or after in lists.PREPOSITIONS)):
                while named and end > begin and said[end - 1][0].isupper():
                    end -= 1  # "my boss Tom"
                if not (named and said[begin : begin + 1] and said[begin].istitle()):
                    yield frozenset(noun for noun in low[begin:end] if not _changes([noun]))


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two names may be of one thing: "manager" and "boss", "call" and "weekly call"; not "deploy key" and "API key"."""
    here, there = ({*map(stem, thing)} for thing in (one, other))
    return (here <= there or there <= here) if here & there else _nearness(one, other) >= _SAME_THING


def _of_one_kind(before: Statement, after: Statement) -> bool:
    """Whether both name a thing, with a word in common: "deploy key" and "API key"."""
    return any(not one.isdisjoint(other) for one in before.thing_stems for other in after.thing_stems)


def _apart(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether both name something, and nothing that is the same."""
    return bool(one and other and one.isdisjoint(other)) and _nearness(one, other) < _SAME_USE


@lru_cache(maxsize=2048)
def _nearness(one: frozenset[str], other: frozenset[str]) -> float:
    first, second = (embedder().embed_query(" ".join(sorted(some))) for some in (one, other))
    return float(first @ second)


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


def may_follow(old: str, new: str) -> bool:
    """Whether a new text says what is so, and may be about the same owner instead of an old one."""
    after = read(new)
    return after.asserts and after.states and _may_follow(read(old), after)


def _may_follow(before: Statement, after: Statement) -> bool:
    return _is_news(after) and _same_owner(before, after)


def _is_news(after: Statement) -> bool:
    return after.is_so and not after.besides


def _told_by_subject(old: Statement, new: Statement) -> tuple[Statement, Statement]:
    """Two statements about one person as that person would tell them. Then the name, which both have, says nothing of
    whether they are about the same thing: "Kim's cat is called Momo" and "Kim moved to York" are not."""
    before, after = old.told, new.told
    return (old, new) if before is None or after is None or before[0] != after[0] else (before[1], after[1])


def told_by(name: str, text: str) -> str:
    """A statement about a person as that person would tell it; any other text as it is."""
    found = _SUBJECT.match(text)
    if found is None or found[1].lower() != name.lower():
        return text
    verb, rest = found[4] or "", text[found.end() :]
    if verb and verb not in lists.BE_OR_HAVE and not _changes([verb]) and not _ACTS.fullmatch(verb):
        return text
    plain = _VERBS.get(verb) or (verb[:-1] if verb.endswith("s") else verb)
    return f"My {rest}" if found[2] else rest if found[3] else f"I {plain}{rest[len(verb) :]}"


def _share_words(before: Statement, after: Statement) -> bool:
    """Whether two statements are about a thing of one name, or share many of their words, a long one or two pairs of Chinese
    signs among them: in languages whose form words it does not know, all statements are close in meaning."""
    shared = before.content & after.content
    many = len(shared) >= _MUCH * min(len(before.content), len(after.content))
    telling = any(len(word) >= _TELLING_CHARS for word in shared)
    if (many and telling) or sum(bool(_HAN.fullmatch(word)) for word in shared) > 1:
        return True
    return any(one <= other or other <= one for one in before.things for other in after.things)


def _most(before: Statement, after: Statement) -> float:
    """The highest probability that a pair can have. What is said for, of or with different things has nothing to do with each
    other. Nothing is surely replaced by a statement about another thing, or about one that the old statement does not mention; nor
    what was or may be; nor where both merely tell what happened, or of things of which one has many: there the newer may come first."""
    if (before.foreign or after.foreign or not (before.english or after.english)) and not _share_words(before, after):
        return MAYBE
    if _apart(before.of_what, after.of_what):
        return 0.0
    on_topic, several = _on_one_topic(before, after)
    english = (before.english or after.english) and not (before.foreign or after.foreign or before.names & after.ended)
    clear = english and min(before.topics.sum(), after.topics.sum()) > _HAS_TOPIC
    unrelated = clear and agreement(before, after) < _OTHER_TOPICS
    if unrelated or (not on_topic and not after.tells_change and _apart(before.definite, after.definite)):
        return _UNSURE
    named_alike = any(_alike(a, b) for a in before.things for b in after.things)
    alike = named_alike or (on_topic and not _of_one_kind(before, after))
    shared = before.content & after.content - (before.does & after.definite) - (before.definite & after.does)
    within = any(stems <= shared for one in (before, after) for stems in one.thing_stems)
    if before.things and after.things and not alike and not within:
        if not after.tells_change:
            return _UNSURE
        shared = before.names & after.names
    elsewhere = bool(after.things or after.definite) or not after.of_speaker
    many = not after.tells_change and (several or ((before.many or after.many) and not on_topic))
    many |= not named_alike and any(a[0] == b[0] and a[1] != b[1] for a in before.labels for b in after.labels)
    tells_of = after.told is not None and after.told[0] in before.names - after.ended and not after.names - before.names
    return _UNSURE if many or tells_of or not before.is_so or (elsewhere and not alike and not shared) else 1.0


def agreement(one: Statement, other: Statement) -> float:
    """The probability that two statements are about one topic."""
    return float(one.topics @ other.topics)


def _on_one_topic(one: Statement, other: Statement) -> tuple[bool, bool]:
    """Whether two statements are about one topic: one of which there is one at a time, or one of which there are several."""
    subject = one.of_speaker or other.of_speaker or words(one.said)[:1] != words(other.said)[:1]  # "Alpha hosts …"
    if not subject or not _have_topics(one, other) or (both := agreement(one, other)) < _SAME_TOPIC:
        return False, False
    single = float(one.topics @ (other.topics * topics().single)) >= both / 2
    return single, not single


def _have_topics(one: Statement, other: Statement) -> bool:
    """Whether both have a topic, of what one tells of oneself."""
    return (one.english or other.english) and not (one.others or other.others) and one.has_topic and other.has_topic


def _of_its_own(said: Statement) -> bool:
    """Whether a part of a text says something apart from the rest: of the speaker or of somebody named, and it refers to
    nothing before it."""
    own = words(said.text)
    tells = telling_words([word for word in own if word not in lists.STOP_WORDS])
    states = said.states and bool(said.of_speaker or said.named) and bool(tells)
    return (states or len(tells) >= _FULL) and lists.REFERS.isdisjoint(own)


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
    asked, *vectors = embedder().embed([question, *(part.text for part in parts)])
    near = sorted(((float(vector @ asked), place) for place, vector in enumerate(vectors)), reverse=True)
    return near[0][0] - near[1][0] >= _CLEARLY and _holds_on(parts[near[0][1]], after)


def may_replace(new: str, *, spoken: bool) -> bool:
    """Whether a new text may replace any other at all: what `probability` asks of it alone."""
    after = read(new)
    forms = [after, *after.apart] if after.told is None else [after, after.told[1], *after.apart, *after.told[1].apart]
    forms += [part.told[1] for part in after.apart if part.told is not None]
    return any(_is_news(one) and (spoken or (one.asserts and one.states)) for one in forms)


def probability(
    old: str, new: str, *, stated: bool = False, spoken: bool = False, nearness: float | None = None
) -> float:
    """How likely it is that the new statement replaces the old one, 0 … 1. `nearness` is the cosine of both by a model that
    it was fitted for.

    `stated` when both are memories, which are statements. Of `spoken` turns those that do not read like one may be
    replaced, but never surely; of other texts not even that. What it replaces may be a part of the old one: see `says_more`.
    """
    if max(len(old), len(new)) > LONGEST_CHARS:
        return 0.0
    before, after = read(old), read(new)
    news = [after, *after.apart]
    return max(_probability(before, one, stated, spoken, nearness if one is after else None) for one in news)


def says_more(old: str, new: str) -> bool:
    """Whether an old text says something that still holds after the new one: "I live in Leeds. I work at Acme." after "I
    moved to York.", "My sister Ida lives in Porto. She is a nurse." after "Ida moved to Lisbon."."""
    before, after = read(old), read(new)
    parts = before.parts_of(before.named & after.named)
    return len(parts) > 1 and any(_holds_on(part, after) for part in parts)


def _holds_on(part: Statement, after: Statement) -> bool:
    if part.only_ends or not _of_its_own(part):
        return False
    return all(_probability(part, one, False, True) < _HOLDS_ON for one in (after, *after.apart))


def _probability(old: Statement, new: Statement, stated: bool, spoken: bool, nearness: float | None = None) -> float:
    before, after = _told_by_subject(old, new)
    asserts = after.asserts and before.asserts and (after.states or (spoken and _on_one_topic(before, after)[0]))
    asserts = stated or (asserts and (spoken or before.states))
    # What costs least comes first: most pairs have nothing to do with each other.
    if not (asserts or spoken) or not _may_follow(before, after):
        return 0.0
    news = after.tells_change or not after.names or bool(after.names - before.names)
    if not news or not (most := _most(before, after)):
        return 0.0
    near, without_names = (float(one @ two) for one, two in zip(before.vectors, after.vectors, strict=True))
    if near > _SAME:
        return 0.0
    both_have_names = bool(before.names) == bool(after.names)
    ends, topic = bool(before.names & after.ended), math.log(agreement(before, after) + _NO_TOPIC)
    looks = (1.0, nearness or 0.0, near, without_names, ends, after.tells_change, both_have_names, topic)
    weights = _WEIGHTS[nearness is not None, _have_topics(before, after)]
    score = sum(weight * value for weight, value in zip(weights, looks, strict=True))
    if before.names & after.ended and "died" in words(after.said):
        score += _DIED
    return min(most, 1.0 if asserts else _UNSURE, 1 / (1 + math.exp(-score)))

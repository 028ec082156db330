"""What one statement says: of whom, of what, whether it tells of a change, and its parts.

It reads English with rules: words for change, kinship, doubt and ends. Of other languages it takes words and names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from wellworn.core.cache import text_cache
from wellworn.core.lazy import cached_property, regex
from wellworn.ingest import word_lists as lists
from wellworn.ingest.over import over
from wellworn.ingest.terms import names_in, stem, words
from wellworn.ingest.topics import topics
from wellworn.ingest.utterance import TIME_NAME, TITLE, stated_in, telling_words, tells, wants_work, without_opening
from wellworn.language.reader import bundled
from wellworn.models.port import Matrix

_BEFORE, _AFTER = 4, 2
"""Words around a name in which its end is told."""
_MOST_SENTENCES, _MOST_CHARS = 3, 160
HAS_TOPIC = 0.4
"""From this probability of its topic on, a statement has one."""

_RESULTS = [
    (regex(rf"\b(?:moved|relocated|moving) (?:back |over |out )?to (?=[A-Z])(?!{TIME_NAME})"), "live in "),
    (regex(rf"^(i|we)(?:['’]ve| have)? moved to (?!an? |the |my |our |{TIME_NAME.lower()})(?=[a-z])"), r"\1 live in "),
    (regex(r"\b(?:joined|started at|signed with|hired by) (?=[A-Z])"), "work at "),
    (regex(r"\b(?:took|takes|taking) over as "), "is "),
    (regex(r"\b(?:switched|migrated) (?:over )?to "), "use "),
    (regex(r"\b(?:work(?:ing)? as|(?:have |['’]ve )?(?:become|became)) (?=an? )"), "am "),
]
"""What holds after a change whose verb says nothing of it: words alone hold "moved to" and "live in" apart."""
PERSON = (
    r"(?:aunt|boyfriend|brother|child(?:ren)?|colleague|cousin|co-?worker|dad|daughter|father|(?:flat|room|house)mate|friend"
    r"|girlfriend|grand(?:father|mother|ma|pa|parent)|husband|kid|mom|mother|mum|neighbou?r|nephew|niece|parent|partner"
    r"|sister|son|uncle|wife)s?\b"
)
_PEOPLE_DO = (
    r"(?:has\s+|just\s+|recently\s+)*"
    r"(?:moved(?!\s+to\s+(?:\w+days?\b|\d))|relocated|lives|works|quit|left|joined|resigned|retired|bought|sold|married|studies|drives)\b"
)
_OTHERS = regex(
    rf"(?:^|[.!?;,:]\s+|\b(?:and|but|so|that)\s+)(?:(?!(?:for|with|of|by|to|from)\b)\w+\s+){{0,3}}?({PERSON})(?!\W*$)"
    rf"(?-i:\s+([A-Z][^\W\d_]+))?|(?:(?-i:\b([A-Z][^\W\d_]+))|\b(?:my|our)\s+(?:[\w-]+\s+){{0,2}}?([^\W\d_]+))\s+{_PEOPLE_DO}"
    r"|\b(he|she|his|her)\b|\b(?!(?:it|that|what|let|there|here|today|who|where|how)\b)([^\W\d_]+)"
    r"['’]s\s+(?!(?:a|an|the|not|been|going|gonna|now|so|just|in|on|at|my|our|always|called)\b)[^\W_]",
    re.I,
)
"""Who else a statement is about: kin and friends before a verb, by name too, who moved, lives somewhere or quit, "she", whose
thing it is."""
PRONOUNS = frozenset({"he", "she", "his", "her"})
_OF_SPEAKER = regex(
    rf"\b(?:(?:i|im|ive|we|me|us)\b|(?:my|our)\s+(?:new\s+)?(?:(?!(?:[\w-]+\s+)?{PERSON})(?![\w-]+['’]s)(?!(?:[\w-]+\s+){{1,3}}?{_PEOPLE_DO})"
    r"|\w+(?-i:\s+(?:is|are|was)\s+(?:now\s+)?(?:called\s+|named\s+)?[A-Z])))",
    re.I,
)
"""The speaker acts, or has something: "I", "my car", "my wife is Ada"; but not "my wife", "my wife's car"."""
ACTOR = frozenset({"i", "im", "ive", "we", "me", "us"})
SPEAKER = ACTOR | {"my", "our", "mine"}

_NOT_SO = regex(
    r"\b(?:used to|früher|damals|antes|autrefois|as a (?:kid|child|student)|back (?:then|when|at)|when i was|years ago|before that"  # it was
    r"|might|(?:i|we) (?:may|could)|would(?! you)|(?:says?|said|thinks?|thought) (?:that )?(?:i|we) should|maybe|perhaps|imagine|if (?:i|we)|i['’]d (?:love|like)|(?:some|one|some )day"
    r"|nearly|almost|about to|close to|plan(?:ned|ning)? to|(?:i|we) (?:plan(?! on \w+day)|hope|want|wish|intend)|hoping to"  # it may be
    r"|(?:was|were) going to|role-?play|pretend|dream(?:t|ed)"
    r"|consider(?:ing)?|appl(?:y|ied|ying)|mind to|thinking (?:about|of)|decid\w+ against)\b",
    re.I,
)
"""What was or may be does not replace what is, and is not replaced."""
_BESIDES = regex(
    r"\b(?:(?<!, )still|still(?=\W*$)|also|too(?=\W*$|[.,;!])|as well|besides|in addition|another|a second"
    r"|alongside|on the side|on top of"
    r"|auch|aussi|también|também|anche|ook|też|także|тоже|также)\b|也|还",
    re.I,
)
"""The old one holds too."""
_STAYS = regex(r", still\b([^.!?;]*)", re.I)
_OF_TODAY = regex(
    r"^(?!.*\b(?:got|turned|became|born|laid off)\b).*(?<!from )(?<!of )(?<!since )(?<!starting )(?<!is )(?<!are )"
    r"\b(?:today|tonight|tomorrow|last night|this (?:week|weekend|month|morning|afternoon|evening|\w+day))\b",
    re.I | re.S,
)
"""What is so for a day or a week; not what becomes so, and not when something is: "the deadline is tomorrow"."""
_NOT = regex(
    r"(?:\b(?:not|never)|n['’]t)\s+(?:yet |even |really |actually )?([a-z]+)(?!.*\b(?:anymore|longer|instead)\b)", re.I
)
_MANY = regex(
    r"\b(?:i|we)(?:['’]ve)?\s+(?:just |really |recently )?(?:[a-z]+ed|met|went|saw|read|bought|had|was|were|did|made|came|ate"
    r"|found|ran|gave|told|heard|felt|wrote|won|lost|spent|flew|drove|slept|sang|swam|built|sent|paid|set|put|cut"
    r"|have|like|love|know|speak|play|can|enjoy|need|want|think|hope|feel|got|been|hate|own)\b",
    re.I,
)
_SUBJECT = regex(r"(The user|[A-Z][^\W\d_]*)(?:(['’]s)|(:)|(?=\s+([a-z]+)))\s+")
"""Who opens a statement: "Kim's cat …", "Kim: …", "Kim moved …"."""
_LABEL = regex(
    r"(?<!\b[Ii] )(?<!\b[Ww]e )\b((?!(?:in|at|from|for|by|to|of|on|is|are|was|were|and|or|about|until|till|only|now|within|after|before|every|around|over|under|than)\b)[a-z]+)\s+(?:no\.?\s+|number\s+|#)?(\d+)\b"
)
"""A number that names one of many: "ticket 12", "shop 3"."""
_CALLED = regex(r"\ba (?:[a-z]+ )??([a-z]+),? (?:called|named) (?=[A-Z])")
_AMOUNT = regex(r"\b(?:i|we) (?!am\b|turned\b)[a-z]+ \d", re.I)
_ACTS = regex(r"lives|works|drives|rents|studies|[a-z]{2,}ed|bought|got|also|always|never|still|just|recently")
"""What a person does with one thing at a time, or did. Who "keeps bees" may keep hens."""
_VERBS = {"is": "am", "has": "have", "does": "do"}
_TO_SOMEONE = regex(r"\b(?:you|your|yours|yourself|y'all|ya|u|let's)\b", re.I)
_STATE = regex(r"\b(?:is|are|was|has|have|will)\b|['’]s\b|[:=] ?\w", re.I)
_PLANS = regex(
    r"\b(?:going to|will|about to|plan(?:s|ned)?|booked|signed up|(?:am|are|is)(?: \w+){0,2}? \w+ing)\b"
    r"|['’](?:ll|(?:m|re|s)(?: \w+){0,2}? \w+ing)\b",
    re.I,
)
_CALLS_OFF = regex(
    r"(?:\b(?:is|are|was|were)|['’]s) off(?= ?[,.!;]|$)|\bcancell?ed\b|\b(?:scrapped|shelved)\b|\bcall(?:ed|ing) (?:[\w'’-]+ )*?off\b"
    r"|\bf(?:e|a)ll(?:en)? through\b|\bwithdr[ae]wn?\b|\b(?:backed|pulled|dropped) out of\b"
    r"|\bturned down (?:[\w'’-]+ )??(?:job|offer|place|role)\b|(?:\bnot|n['’]t) (?:\w+ ){0,2}?(?:happen(?:ing)?\b|going ahead\b)"
    r"|(?:\bnot|n['’]t) \w+ing\b.* after all\b|\bwon['’]t (?!be\b).* after all\b",
    re.I,
)
_OF_ANY_PLAN = frozenset(map(stem, lists.OF_ANY_PLAN))
_SENTENCE_ENDS = regex(r"[.!?]+(?:\s|$)")
_DEFINITE = regex(r"\bthe\s+([^\W_]+)", re.I)
_SAYS_I = regex(r"\bI\b|^i\b")
_WHERE = regex(
    r"\bin (?:the |our |my )?([\w.-]+(?: files?| code| folders?| projects?)|[\w.-]*/[\w./-]*|production|staging|development|tests?|ci)(?!\w)",
    re.I,
)
_COMPONENT = regex(
    r"(?:[Tt]he |[Oo]ur )?([a-z]+(?:[-_][a-z]+)+) "
    r"(?:now |still )?(?:v?\d+\.|(?:runs|uses|stores|listens|needs|talks|reads|writes|has|deploys|shipped)\b|is (?:on|at|in|owned|live)\b)"
)
_CALENDAR = "|".join(
    [*lists.WEEKDAYS, *lists.MONTHS, "weekend", "morning", "afternoon", "evening", "night", "summer", "winter"]
)
_CASE = regex(
    rf"^(?:on|at|in|during|for|with|when) ([^,.;!?]{{2,40}}?),? (?=(?:i|we|my|our)\b)|(?<!\bis )(?<!\bare )(?<!\bdue )\b(?:on|at|in)\s+(?:the\s+)?((?:\w+\s+)?(?:{_CALENDAR})s?)\b",
    re.I,
)
_FRONT = regex(r"((?:^|[.!?] )(?:on|at|in|during|for|with|when) [^,.;!?]{2,40}),(?= (?:i|we|my|our)\b)", re.I)
_TIMES = regex(rf"\b(?:{_CALENDAR})s?\b", re.I)
_USE = regex(r"\bfor (?:the |my |our |an? )?([\w-]+(?: [\w-]+)?)\W*$", re.I)
_DENIES = regex(r"\b(?:(?:do|does)(?:n['’]?t| not)|never)\s", re.I)
_QUALIFIED = regex(r"\b(my |our |the |an? )(?:new |old |own )?([a-z-]+) (?=([a-z]+)\b)")
_OWNS = regex(r"\b(?:my|our) (?:new |old |own )?([a-z-]+)\b")
_NO_KIND = lists.NEW_WORDS | {"old", "former", "first", "second", "next", "last", "best", "whole"}
_LIST = regex(r"\w, [^,.;:]{1,30}?,? and \w")
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
_FURTHER = regex(r"^\W*(?:also|oh|and|so|but|btw)\b\W*", re.I)
"""How a further part of a message begins."""
_HE_OR_SHE = regex(r"^\W*(?:he|she)\b", re.I)
_CHANGES_ABROAD = regex(lists.CHANGES_ABROAD)
_SHIFTS_ABROAD = regex(lists.SHIFTS_ABROAD, re.I)
_OWNED_ABROAD = regex(
    r"\b(?:(?:mein|unser)(?:e[nmrs]?)?|mon|ma|mes|notre|nos|mis?|nuestr[oa]s?|mi[oae]|miei|meus?|minhas?|mijn|onze?|m[oó]j(?:a|ą|e|ego|ej)?"
    rf"|мо(?:й|я|ё|е|ю|и|его|ей))\s+(?:(?:{lists.NEW_ABROAD})\s+)?(\w+)|我们?的新?(\w)|我([姐妹哥弟妈爸妻]|丈夫|女儿|儿子)|私の(\w)",
    re.I,
)
"""What somebody has, or whom, in the languages of `word_lists.CHANGES_ABROAD`."""
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
        both = bundled().gist([self.result, nameless])
        return both[0], both[1]

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
    def result_words(self) -> frozenset[str]:
        """The same words of what holds after it."""
        return frozenset(map(stem, {*words(self.result)} - lists.STOP_WORDS)) - lists.CHANGE_WORDS

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
        return not self.foreign and float(self.topics.max()) >= HAS_TOPIC

    @cached_property
    def english(self) -> bool:
        own = len(lists.ENGLISH_WORDS & self._words) + bool(_SAYS_I.search(self.said))
        own += changes(self._words - lists.ELSEWHERE)
        return own >= max(1, len(lists.FOREIGN_WORDS & self._words))

    @cached_property
    def foreign(self) -> bool:
        return not (self.english or lists.FOREIGN_WORDS.isdisjoint(self._words))

    @cached_property
    def of_what(self) -> frozenset[str]:
        """What its subject is for, of or with; these are whole words."""
        return frozenset(words(" ".join(_OF_WHAT.findall(self.said)))) - lists.STOP_WORDS

    @cached_property
    def where(self) -> frozenset[str]:
        """The part of one's programs where it holds: "in production", "in Go files", "in api/"."""
        return frozenset(words(" ".join(_WHERE.findall(self.said))))

    @cached_property
    def case(self) -> frozenset[str]:
        """When it holds, or of what it is said first: "on Mondays", "at home I …"."""
        return frozenset(map(stem, words(" ".join(map(" ".join, _CASE.findall(self.said)))))) - lists.STOP_WORDS

    @cached_property
    def of_case(self) -> frozenset[str]:
        """What it says beside that, and beside its use."""
        rest = map(stem, {*words(_USE.sub(" ", _CASE.sub(" ", self.said)))} - lists.STOP_WORDS)
        return frozenset(word for word in rest if word.isalpha()) - lists.CHANGE_WORDS

    @cached_property
    def times(self) -> frozenset[str]:
        """Days, months and parts of the day that it names."""
        return frozenset(map(stem, words(" ".join(_TIMES.findall(self.said)))))

    @cached_property
    def use(self) -> frozenset[str]:
        """What the thing is for of which it tells: "I use Vim for Rust"; these are whole words."""
        return frozenset(words(" ".join(_USE.findall(self.said)))) - lists.STOP_WORDS

    @cached_property
    def denies(self) -> bool:
        """It says what somebody does not do."""
        return bool(_DENIES.search(self.said))

    @cached_property
    def qualified(self) -> list[tuple[bool, str, str]]:
        """What it names with a word that says which one it is, and whether that is somebody's: "my work laptop"."""
        found = []
        for mine, which, kind in _QUALIFIED.findall(self.said.lower()):
            if lists.STOP_WORDS.isdisjoint((which, kind)) and which not in _NO_KIND and not changes([which]):
                found.append((mine.strip() in ("my", "our"), stem(which), stem(kind)))
        return found

    @cached_property
    def owns(self) -> frozenset[str]:
        """What the speaker calls "my", without a word that says which."""
        return frozenset(map(stem, _OWNS.findall(self.said.lower())))

    @cached_property
    def component(self) -> str | None:
        """The component of a system that it is about: "billing-api runs …"."""
        found = _COMPONENT.match(self.said)
        return found and found[1]

    @cached_property
    def amount_of(self) -> frozenset[str]:
        """Of what it tells how much it is: "I take 50 mg of iron"; nothing if it does not."""
        return frozenset(word for word in self.content if word.isalpha()) if _AMOUNT.search(self.said) else frozenset()

    @cached_property
    def lists(self) -> bool:
        """It names several things at once: "Python, FastAPI and Postgres"."""
        return _LIST.search(self.said) is not None

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
        return changes(self._words) if self.english else bool(_CHANGES_ABROAD.search(self.said))

    @cached_property
    def tells_only_now(self) -> bool:
        """Nothing but "now" tells of a change: who learns the piano now may still play the violin."""
        return self.english and self.tells_change and not changes(self._words - {"now"})

    @cached_property
    def owned_abroad(self) -> frozenset[str]:
        """What the speaker calls "my" in another language than English."""
        return frozenset(word for found in _OWNED_ABROAD.findall(self.said) for one in found for word in words(one))

    @cached_property
    def shifts_abroad(self) -> bool:
        """It says in another language that something is at another time."""
        return _SHIFTS_ABROAD.search(self.said) is not None

    @cached_property
    def frame_abroad(self) -> frozenset[str]:
        """Its words without those that tell of a change in another language."""
        return frozenset(self.words_abroad)

    @cached_property
    def words_abroad(self) -> list[str]:
        """The same in their order."""
        return words(_CHANGES_ABROAD.sub(" ", self.said))

    @cached_property
    def only_ends(self) -> bool:
        """It tells what is over: "I no longer work at Acme"."""
        return not lists.END_WORDS.isdisjoint(map(stem, self._words))

    @cached_property
    def plans(self) -> bool:
        """It tells of something to come."""
        return bool(_PLANS.search(self.said))

    @cached_property
    def called_off(self) -> frozenset[str]:
        """Words of a plan of which it says that nothing comes of it: "Shetland is off", "the flat fell through"."""
        clause = next(filter(_CALLS_OFF.search, _CLAUSE.split(self.said)), "")
        return frozenset(map(stem, {*words(clause)} - lists.STOP_WORDS)) - lists.CHANGE_WORDS - _OF_ANY_PLAN

    @cached_property
    def over(self) -> float:
        """The logarithm of the odds that it tells of an end."""
        return over().told_by(self.said)

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
        return self.of_speaker or self.tells_change or bool(self.called_off) or bool(_STATE.search(self.said))

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
        return bool(_BESIDES.search(self.said)) or any(changes([word]) for word in _NOT.findall(self.said))

    @cached_property
    def stays(self) -> frozenset[str]:
        """What it says to hold on beside its news: "I started at Aker, still as a cook"."""
        return frozenset(map(stem, words(" ".join(_STAYS.findall(self.said)))))

    @cached_property
    def momentary(self) -> bool:
        """It is so for a day or a week, and tells no change."""
        return not self.tells_change and _OF_TODAY.match(self.said) is not None

    @cached_property
    def told(self) -> tuple[str, Statement] | None:
        """The person whom it is about by name, and the statement as that person would make it."""
        found = _SUBJECT.match(self.text)
        if found is None or found[1].lower() in lists.STOP_WORDS:
            return None
        own = told_by(found[1], self.text)
        return None if own == self.text else (found[1].lower().removeprefix("the "), Statement(own))

    @cached_property
    def speaks_of_itself(self) -> bool:
        """It says "I" or "my"; "The user lives in Oslo" and "Kim's cat …" do not."""
        return not SPEAKER.isdisjoint(words(self.text))

    @cached_property
    def parts(self) -> list[str]:
        """The statements of a text, each with its subject."""
        found = []
        for part in _PARTS.split(_FRONT.sub(r"\1", TITLE.sub("", self.text))):
            both = _AND_DO.match(part)
            found += [both[1], f"{part.split()[0]} {both[2]}"] if both else [part]
        return [part for part in found if part.strip()]

    @cached_property
    def apart(self) -> list[Statement]:
        """Its parts that say something apart from the rest; none where it is a single statement."""
        return [one for part in self.parts if of_its_own(one := read(part))] if len(self.parts) > 1 else []

    @cached_property
    def telling(self) -> list[Statement]:
        """Its parts that tell something, without what it asks or wants; the whole where none does. Only a last part that has no
        full stop may be a question without its sign."""
        parts = [_FURTHER.sub("", part) for part in read(self.said).parts if words(part)]
        whole = self.said.rstrip().endswith((".", "!"))
        told = [part for n, part in enumerate(parts, 1) if n < len(parts) or whole or tells(without_opening(part))]
        return [read(part) for part in told if not wants_work(part)] or [self]

    def parts_of(self, names: frozenset[str]) -> list[Statement]:
        """Its parts. Where it is about one person of that name, "she" is that person: "Ida lives in Porto. She is a nurse." """
        name = min(names).title() if len(names) == 1 else None
        who = [f"{one} is {called}" for one, called in _WHO.findall(self.text) if called.lower() not in names]
        return [read(_HE_OR_SHE.sub(name, part) if name else part) for part in (*self.parts, *who)]


@text_cache(4096)
def read(text: str) -> Statement:
    """The statement in a text."""
    return Statement(text)


def _tells_end(around: set[str]) -> bool:
    return changes(around - {"now"}) or not lists.NEGATES.isdisjoint(around)


def _goes(after: set[str]) -> bool:
    """Whether what stands before these words is over: "… retired", "… was sold", "… is no longer"; not "… sold the car"."""
    return not lists.END_WORDS.isdisjoint(map(stem, after)) or (
        _tells_end(after) and not lists.BE_OR_HAVE.isdisjoint(after)
    )


def changes(found: Iterable[str]) -> bool:
    return not lists.CHANGE_WORDS.isdisjoint(stem(word) for word in found if not word.endswith(("ment", "ments")))


def _things(text: str, speaker: bool) -> Iterable[frozenset[str]]:
    """What a text says something of: its heading ("Owner of Atlas: …"), the subject of a clause ("the launch has …"), or
    what the speaker has ("my rent", "a cat called Mia")."""
    yield from (frozenset({noun.lower()}) for noun in _CALLED.findall(text))
    heading = None if speaker else _HEADING.match(text)
    if heading:
        yield frozenset(noun for noun in words(heading[1]) if noun not in lists.STOP_WORDS and not changes([noun]))
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
                and (low[end] in lists.NEW_WORDS or not changes([low[end]]))
            ):
                end += 1
            after = low[end] if end < len(low) else ""
            if after in lists.BE_OR_HAVE or changes([after]) or (place and (not after or after in lists.PREPOSITIONS)):
                while named and end > begin and said[end - 1][0].isupper():
                    end -= 1  # "my boss Tom"
                if not (named and said[begin : begin + 1] and said[begin].istitle()):
                    yield frozenset(noun for noun in low[begin:end] if not changes([noun]))


def told_by(name: str, text: str) -> str:
    """A statement about a person, or about "the user", as that person would tell it; any other text as it is."""
    found = _SUBJECT.match(text)
    if found is None or found[1].lower() not in (name.lower(), "user", "the user"):
        return text
    verb, rest = found[4] or "", text[found.end() :]
    if verb and verb not in lists.BE_OR_HAVE and not changes([verb]) and not _ACTS.fullmatch(verb):
        return text
    plain = _VERBS.get(verb) or (verb[:-1] if verb.endswith("s") else verb)
    return f"My {rest}" if found[2] else rest if found[3] else f"I {plain}{rest[len(verb) :]}"


def agreement(one: Statement, other: Statement) -> float:
    """The probability that two statements are about one topic."""
    return float(one.topics @ other.topics)


def of_its_own(said: Statement) -> bool:
    """Whether a part of a text says something apart from the rest: of the speaker or of somebody named, and it refers to
    nothing before it."""
    own = words(said.text)
    tells = telling_words([word for word in own if word not in lists.STOP_WORDS])
    states = said.states and bool(said.of_speaker or said.named) and bool(tells)
    return (states or len(tells) >= _FULL) and lists.REFERS.isdisjoint(own)


# -- is a text about somebody else than a question? --------------------------------------------------------------------

_ANY_PERSON = regex(rf"\b{PERSON}", re.I)
_ANOTHERS = regex(rf"(?:my|our)\s+(?:\w+\s+)?(?:{PERSON}|\w+(?=(?:\s+is|['’]s)\s+(?:called|named?)\b))", re.I)
"""How a text begins that is about somebody else: "My sister lives …", "My dog is called …". A name may be the speaker's own."""
_ASKS_OF_ANOTHER = regex(
    rf"\b(?:do|does|did|is|are|was|were|has|have|will|can|can['’]t|should)\s+(?:my|our)\s+(?:\w+\s+)?({PERSON})\s+\w",
    re.I,
)
_WHO_IS_MY = regex(r"\bwho(?:['’]?s| is| was| are| were) (?:my|our)\b", re.I)
_ASKS_FURTHER = frozenset({"who", "whom", "whose", "should", "could", "can", "shall", "would", "must"})
"""Words of questions that others may answer: "Who can help me?", "What should I cook?"."""


def about_another(question: str, text: str) -> bool:
    """Whether a text is about somebody else than a question of which the speaker is a part: "My sister lives in Porto." for
    "Where do I live?", "I live in Leeds." for "Where does my brother live?"."""
    statement = read(text)
    asked, said = frozenset(words(question)), frozenset(words(statement.said))
    if other := _ASKS_OF_ANOTHER.search(question):
        of_them = _ANY_PERSON.search(statement.said) or said & (PRONOUNS | _told_as([other[1].lower()]))
        return not of_them and statement.of_speaker and statement.names.isdisjoint(asked)
    further = not _ASKS_FURTHER.isdisjoint(asked) and not _WHO_IS_MY.search(question)
    if SPEAKER.isdisjoint(asked) or further or _ANY_PERSON.search(question):
        return False
    begins = _ANOTHERS.match(statement.said)
    who = frozenset(words(begins[0])) - SPEAKER if begins else frozenset[str]()
    return bool(who) and who.isdisjoint(asked | _told_as(asked)) and said.isdisjoint(ACTOR)


def _told_as(asked: Iterable[str]) -> frozenset[str]:
    """The words that tell what these words ask for."""
    return frozenset(word for one in asked for word in lists.RELATED.get(one, ()))

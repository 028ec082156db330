"""English verb forms: which word is a verb after "I", and what it becomes after a name.

Lists, not grammar: common verbs and irregular pasts. An unknown word is taken for a present tense.
"""

from __future__ import annotations

from wellworn.reflection.rules.lists import words

MODALS = words(
    """
    will would can could should shall must might may ought can't cannot couldn't won't wouldn't shouldn't mustn't
    mightn't
    """
)
ADVERBS = words(
    """
    also always almost already actually absolutely barely basically constantly currently certainly clearly
    definitely either even eventually ever fairly finally first fully generally genuinely gradually hardly honestly
    hopefully immediately just kinda largely lately mainly maybe merely mostly naturally nearly never normally not
    now occasionally often only originally perhaps personally possibly practically probably purposely quickly quite
    rarely rather readily really recently regularly seldom seriously simply slowly sometimes soon sorely still
    strictly strongly suddenly sure surely then though thoroughly today too totally truly typically ultimately
    usually too very
    """
)
_IRREGULAR_PASTS = words(
    """
    was were had did went got came became began bent bit blew bought broke brought built burnt caught chose cut
    dealt dreamt drank drew drove ate fell fed felt fought flew found forgot forgave froze gave grew heard hid hit
    held hurt kept knew laid led learnt left lent let lit lost made meant met paid put quit ran rang read rode rose
    said sang sat saw sent set shook shone shot shut slept sold spent split spoke spread stole stood stuck struck
    swam swore taught thought threw told took tore understood upset woke won wore wrote bet cost shown withdrew
    rewrote undid overcame undertook foresaw misread outgrew redid retold sped wound hung spun swept wept sank
    rebuilt been gone done
    """
)
_NOT_PAST = words("need feed speed seed bleed exceed proceed succeed breed embed shed heed weed")
BASE = words(
    """
    accept add admire adopt adore agree aim apply appreciate arrange ask attend avoid bake be become begin believe
    belong bike bring build buy call camp care carry celebrate change check choose clean climb code collect commute
    complete compose consider continue contribute cook coach count cover crave create cut cycle dance deal decide
    dedicate depend deserve design despise develop dislike dive do donate doubt draw dream drink drive earn eat edit
    employ end enjoy enroll exercise expect explain explore face fancy farm fear feed feel find finish fish fix fly
    focus follow foster garden get give go grow handle hate have head hear help hike hire hope host hunt imagine
    improve include insist intend invest invite join jog journal keep knit know lack lead learn leave lend like list
    listen live loathe look lose love maintain make manage mean measure meditate meet mentor mind miss move need
    notice offer open order organize own paint participate pay perform photograph pick plan plant play post practice
    practise prefer prepare print promise protect provide publish purchase push put raise read receive recommend
    record refuse regret rely remember rent repair report require research respect rest ride run sail save say
    schedule see seek sell send serve set sew share shop sing sit skate skateboard ski skip sleep smoke speak spend
    stand start stay stop stream struggle study suffer suggest support surf suspect swim take talk teach tell tend
    test think track train translate travel treat trust try turn understand use value view visit volunteer vote wait
    wake walk want watch wear weigh wish wonder work worry write
    """
)


def is_past(word: str) -> bool:
    """Whether the form reads as a past tense: it stays as it is after a name."""
    return word in _IRREGULAR_PASTS or (word.endswith("ed") and len(word) > 3 and word not in _NOT_PAST)


def is_verb(word: str) -> bool:
    """Whether the word, in any form a first person uses, is known as a verb."""
    return (
        word in BASE
        or (word.endswith("s") and (word[:-1] in BASE or word[:-2] in BASE))
        or word in MODALS
        or is_past(word)
        or word in {"am", "have", "do", "don't", "didn't", "haven't", "hadn't", "wasn't", "weren't"}
    )


def third_person(word: str) -> str:
    """The form after a name: go → goes, have → has, am → is; a past or a modal stays."""
    lower = word.lower()
    if lower in _SPECIAL:
        return _SPECIAL[lower]
    if lower in MODALS or is_past(lower) or not lower.isalpha():
        return word
    if lower.endswith(("s", "sh", "ch", "x", "z", "o")):
        return word + "es"
    if lower.endswith("y") and lower[-2:-1] not in set("aeiou"):
        return word[:-1] + "ies"
    return word + "s"


_SPECIAL = {
    "am": "is",
    "are": "is",
    "have": "has",
    "do": "does",
    "don't": "doesn't",
    "haven't": "hasn't",
    "were": "was",
    "aren't": "isn't",
    "weren't": "wasn't",
    "ain't": "isn't",
    "be": "is",
}

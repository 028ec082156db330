"""English words as the comparison of memories sees them: which mean the same, which say little, which steer.

Tables only. A word that is not in them is compared by its stem; another language's words are compared as they stand.
"""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _groups(text: str) -> dict[str, str]:
    """One group a line, the first word stands for the others."""
    found: dict[str, str] = {}
    for line in text.strip().splitlines():
        first, *others = line.split()
        found.update(dict.fromkeys((first, *others), first))
    return found


SYNONYMS = _groups(
    """
    like likes liked liking enjoy enjoys enjoyed enjoying love loves loved loving adore adores adored adoring
    buy buys bought buying purchase purchases purchased purchasing
    finish finishes finished finishing complete completes completed completing
    begin begins began begun beginning start starts started starting commence commenced
    live lives lived living reside resides resided residing dwell dwells dwelt
    move moves moved moving relocate relocates relocated relocating
    visit visits visited visiting
    need needs needed needing require requires required requiring
    want wants wanted wanting wish wishes wished
    help helps helped helping assist assists assisted assisting
    child children kid kids
    mother mom mum mama mommy mummy
    father dad papa daddy
    grandmother grandma granny
    grandfather grandpa granddad
    film films movie movies
    car cars automobile automobiles
    bicycle bicycles bike bikes
    flat flats apartment apartments
    holiday holidays vacation vacations
    doctor doctors physician physicians
    photo photos photograph photographs picture pictures
    tv television
    sofa couch
    ill sick
    big large
    small little
    afraid scared
    fast quick
    attorney lawyer lawyers
    programmer programmers coder coders
    developer developers dev devs
    email emails mail
    phone phones telephone telephones
    allergy allergies allergic
    marathon marathons
    km kilometre kilometres kilometer kilometers kms
    m metre metres meter meters
    kg kilo kilos kilogram kilograms kgs
    g gram grams
    lb lbs pound-weight
    hour hours hr hrs h
    minute minutes min mins
    usd dollar dollars $
    eur euro euros €
    gbp pound pounds sterling £
    jpy yen ¥
    percent % percentage
    every each
    per
    name named names call called
    dislike dislikes disliked disliking hate hates hated hating detest detests detested detesting loathe loathes
    reschedule reschedules rescheduled postpone postpones postponed
    maths math mathematics
    cv resume resumes résumé
    boss bosses
    football soccer
    wife wives
    husband husbands
    programming coding
    tongue tongues
    """
)

IRREGULAR = {
    past: base
    for line in """
    be was were been
    have had
    do did done
    go went gone
    get got gotten
    make made
    take took taken
    see saw seen
    come came
    give gave given
    find found
    think thought
    tell told
    become became
    leave left
    feel felt
    bring brought
    buy bought
    keep kept
    write wrote written
    lose lost
    pay paid
    meet met
    run ran
    sell sold
    send sent
    speak spoke spoken
    spend spent
    teach taught
    win won
    break broke broken
    drive drove driven
    eat ate eaten
    fly flew flown
    grow grew grown
    outgrow outgrew outgrown
    know knew known
    say said
    sleep slept
    swim swam swum
    drink drank drunk
    wear wore worn
    begin began begun
    choose chose chosen
    fall fell fallen
    forget forgot forgotten
    hold held
    learn learnt
    ride rode ridden
    sing sang sung
    build built
    catch caught
    stand stood
    understand understood
    quit quitted
    """.strip().splitlines()
    for base, *pasts in [line.split()]
    for past in pasts
}

SPELLING = {
    "colour": "color",
    "colours": "colors",
    "favourite": "favorite",
    "favourites": "favorites",
    "centre": "center",
    "theatre": "theater",
    "neighbour": "neighbor",
    "neighbours": "neighbors",
    "behaviour": "behavior",
    "practise": "practice",
    "practises": "practices",
    "practised": "practiced",
    "practising": "practicing",
    "organisation": "organization",
    "organisations": "organizations",
    "programme": "program",
    "grey": "gray",
    "travelling": "traveling",
    "travelled": "traveled",
    "cancelled": "canceled",
    "licence": "license",
    "jewellery": "jewelry",
    "tyre": "tire",
    "aeroplane": "airplane",
    "pyjamas": "pajamas",
    "mum": "mom",
    "learnt": "learned",
    "honour": "honor",
    "flavour": "flavor",
    "humour": "humor",
    "labour": "labor",
    "analyse": "analyze",
    "organise": "organize",
    "organises": "organizes",
    "realise": "realize",
    "tumour": "tumor",
}

PHRASES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("fond", "of"): ("like",),
    ("keen", "on"): ("like",),
    ("fan", "of"): ("like",),
    ("huge", "fan", "of"): ("like",),
    ("big", "fan", "of"): ("like",),
    ("cannot", "stand"): ("dislike",),
    ("can", "not", "stand"): ("dislike",),
    ("would", "like", "to"): ("want",),
    ("would", "love", "to"): ("want",),
    ("wants", "to"): ("want",),
    ("want", "to"): ("want",),
    ("plans", "to"): ("plan",),
    ("plan", "to"): ("plan",),
    ("planning", "to"): ("plan",),
    ("planned", "to"): ("planned",),
    ("intends", "to"): ("plan",),
    ("intend", "to"): ("plan",),
    ("hopes", "to"): ("hope",),
    ("would", "rather"): ("prefer",),
    ("employed", "by"): ("work", "at"),
    ("employed", "at"): ("work", "at"),
    ("employed", "with"): ("work", "at"),
    ("employed", "as"): ("work", "as"),
    ("hired", "by"): ("started", "at"),
    ("based", "in"): ("live", "in"),
    ("located", "in"): ("live", "in"),
    ("gave", "up"): ("quit",),
    ("given", "up"): ("quit",),
    ("giving", "up"): ("quit",),
    ("no", "longer"): ("not", "anymore"),
    ("not", "any", "longer"): ("not", "anymore"),
    ("any", "more"): ("anymore",),
    ("any", "longer"): ("anymore",),
    ("e", "mail"): ("email",),
    ("email", "address"): ("email",),
    ("e", "mail", "address"): ("email",),
    ("phone", "number"): ("phone",),
    ("telephone", "number"): ("phone",),
    ("mother", "tongue"): ("native", "language"),
    ("first", "language"): ("native", "language"),
    ("goes", "by"): ("named",),
    ("broke", "up", "with"): ("ex",),
    ("split", "up", "with"): ("ex",),
    ("broken", "up", "with"): ("ex",),
    ("got", "rid", "of"): ("sold",),
    ("lots", "of"): (),
    ("a", "lot", "of"): (),
    ("play", "the"): ("play",),
    ("learn", "to", "play"): ("learn",),
    ("learns", "to", "play"): ("learns",),
    ("learning", "to", "play"): ("learning",),
    ("learned", "to", "play"): ("learned",),
    ("due", "date"): ("deadline",),
    ("takes", "place"): ("be",),
    ("take", "place"): ("be",),
    ("scheduled", "for"): ("on",),
    ("rescheduled", "to"): ("on",),
    ("rescheduled", "for"): ("on",),
    ("moved", "back", "to"): ("moved", "to"),
    ("went", "to"): ("visited",),
    ("been", "to"): ("visited",),
    ("got", "married"): ("married",),
    ("got", "divorced"): ("divorced",),
    ("got", "engaged"): ("engaged",),
}

DETERMINERS = word_set("a an the this that these those some any my your his her its our their")
PRONOUNS = word_set("he she it they we i me him them us you myself himself herself themselves")
SPANS = word_set("second minute hour day night week month quarter year")
REFLEXIVE = word_set("myself himself herself themselves")
BE = word_set("be is are am was were been being")
HAVE = word_set("have has had having own owns owned owning possess possesses possessed")
DO = word_set("do does did")
PREPOSITIONS = word_set(
    """in at on to from for with without by of about over than under above below before after until since during
    near between against as into through across around among within via per towards toward behind beside"""
)
CONJUNCTIONS = word_set("and or but because although though while whereas who which that where when if so")
LIGHT_ADVERBS = word_set(
    """now nowadays currently just really very actually already still recently finally presently so quite truly
    definitely simply basically always usually generally then there here please much even own"""
)
"""Said or left out, they do not make another fact."""
ADJOINING = word_set("also too")
RESTRICTING = word_set(
    """if unless only except rarely seldom hardly barely almost nearly maybe plan want consider think hope ask wonder
    believe whether sometimes never should must can pretend dream not try former ex previous formerly
    previously before instead rather paus reschedule cancel suspend pend doubt claim say suggest recommend offer when"""
)
"""A fact with one of these does not imply the one without it."""
MODALS = {
    "might": "maybe",
    "may": "maybe",
    "could": "maybe",
    "perhaps": "maybe",
    "possibly": "maybe",
    "probably": "maybe",
    "should": "should",
    "must": "must",
    "will": "plan",
    "would": "would",
    "can": "can",
    "shall": "plan",
}
MODAL_KEYS = frozenset(MODALS.values()) | {"want", "hope", "try"}
MANNER = word_set(
    """every each including twice once daily weekly monthly together alone abroad online soon again upstairs outside
    there too"""
)
"""Words that follow a phrase without belonging to it, beside those in -ly."""
GENERAL = word_set("like prefer eat drink want need read watch collect play cook")
"""Verbs of general habits: who likes green tea has not said that of all tea."""
PLAIN_ROLES = frozenset({"", "in", "on", "at", "to", "for", "of", "as", "with", "per"})
"""Prepositions that may be left out, "" being none: every Monday, on Mondays; a peanut allergy, allergic to peanuts."""
ALIKE_ROLES = frozenset(
    frozenset(pair) for pair in (("in", "at"), ("for", "at"), ("for", "to"), ("during", "in"), ("over", "than"))
)
"""Prepositions of which one may stand for the other; any other pair makes another fact."""
TITLES = word_set("dr mr mrs ms miss prof professor doctor sir madam uncle aunt coach captain judge")
ALIASES = {
    alias: meant
    for line in """
    nyc = new york city = new york = ny
    us = usa = united states = united states of america = america
    uk = united kingdom = great britain
    eu = european union
    un = united nations
    uae = united arab emirates
    la = los angeles
    sf = san francisco
    dc = washington dc = washington d c
    who = world health organization
    ussr = soviet union
    hr = human resources
    pr = public relations
    qa = quality assurance
    ai = artificial intelligence
    ml = machine learning
    nlp = natural language processing
    ux = user experience
    vscode = vs code = visual studio code
    js = javascript
    ts = typescript
    k8s = kubernetes
    postgres = postgresql
    db = database
    aws = amazon web services
    gcp = google cloud = google cloud platform
    sci-fi = scifi = sci fi = science fiction
    phd = doctorate
    mba = master of business administration
    ceo = chief executive officer
    cto = chief technology officer
    cfo = chief financial officer
    gp = general practitioner
    adhd = attention deficit hyperactivity disorder
    ptsd = post traumatic stress disorder
    bp = blood pressure
    diy = do it yourself
    tv = television
    pt = physical therapy
    fb = facebook
    ig = instagram
    yt = youtube
    munich = münchen
    cologne = köln
    """.strip().splitlines()
    for meant, *others in [[part.strip() for part in line.split("=")]]
    for alias in (meant, *others)
}
"""Lower-case names and phrases, and what stands for all that mean the same."""
ALIAS_STARTS = frozenset(alias.split()[0] for alias in ALIASES if " " in alias)
UPPER_ONLY = word_set("us la sf dc un eu ai ml db pr ts bp pt who ny ig")
"""Aliases that are words when written small."""
OPPOSITES = frozenset(
    frozenset(pair)
    for pair in (
        ("window", "aisl"),
        ("morn", "even"),
        ("dark", "light"),
        ("red", "white"),
        ("hot", "cold"),
        ("remot", "offic"),
        ("short", "long"),
        ("brief", "detail"),
        ("concis", "detail"),
        ("formal", "inform"),
        ("metric", "imperi"),
    )
)
"""Stems of which a person prefers one at a time, of the same thing."""
FOREIGN = word_set(
    """ist nicht kein keine keinen und der das ein eine einen mag mit für sie ich wir auch aber von zu den dem
    le les est une des du je il elle nous vous avec pas dans pour qui mais sur très
    el los las es una que con por pero muy mi su yo en como para tiene vive
    il lo gli è non che per mia suo sono ha nella di anche
    não uma com ele ela em mora gosta het een niet van ik maar ook wordt heeft"""
)
"""Function words of other languages that are no English words: texts with several are compared by their wording."""


AFTER_OBJECTS = PREPOSITIONS | CONJUNCTIONS | BE | LIGHT_ADVERBS | {"too", "also", "again"}
"""What can follow an object, so that "her" before it is a person."""
_PLAIN = frozenset().union(
    DETERMINERS,
    PRONOUNS,
    PREPOSITIONS,
    CONJUNCTIONS,
    BE,
    HAVE,
    DO,
    LIGHT_ADVERBS,
    MODALS,
    SYNONYMS,
    IRREGULAR,
    word_set("not no never also there another one new next old last this every"),
)


def is_plain(word: str) -> bool:
    """Whether a lower-case word is known to be no name: at the beginning of a sentence a capital does not tell."""
    return word in _PLAIN

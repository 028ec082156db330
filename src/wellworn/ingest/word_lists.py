"""Words that carry no topic, of English and of other languages, stems of words that tell of a change, and words that tell what
other words ask for."""

from __future__ import annotations

MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
STOP_WORDS = frozenset(
    """
    a about above after again against ain all also am an and any are aren as at be because been before being below
    between both but by can cannot could couldn d did didn do does doesn doing don down during each few for from
    further had hadn has hasn have haven having he her here hers herself him himself his how i if im in into is
    isn it its itself just let ll m may me might more most must my myself no nor not now o of off on once only or
    other our ours ourselves out over own re s same shall she should shouldn so some such t than that the their
    theirs them themselves then there these they this those through to too under until up us ve very was wasn we
    were what when where which while who whom whose why will with won would wouldn you your yours yourself
    yourselves
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
)
"""English words that carry no topic: they are left out of the text index and of queries."""
ELSEWHERE = frozenset(
    """
    a all am an as at be d die do final for hand had her here him i im in is it land m me no o of off on or over re s so t to
    under up us ve was we were will
    """.split()  # noqa: SIM905
)
"""English words that other languages have too."""
ENGLISH_WORDS = (STOP_WORDS - ELSEWHERE) | {"always", "every", "keep", "never", "please", "remind", "use", "without"}
FOREIGN_WORDS = frozenset(
    """
    auf bei das dem der ein eine einen für hab habe ich ist jetzt mein meine mich mir mit nicht und von wir zu zum
    con el en es los las mi mis para por que se soy tengo un una vivo
    avec dans des est et je les ma mes nous pour qui suis une
    che di gli il mia mio sono een het ik mijn niet voor eu meu minha não uma och jag inte jeg ikke
    """.split()  # noqa: SIM905
)
"""Form words of other languages that English hardly has."""
CHANGE_WORDS = frozenset(
    """
    abandon adopt anymor appoint becam becom bought broke bump bye cancel chang convert current cut dead delay die ditch drop end extend
    final finish fire forget gave gone goodby grew hand hire increas inherit instead join land latest leav left longer lower
    migrat move new newer newest now nowaday offici over pass pick postpon promot push quit rais reassign recent reduc reloc
    renam replac reschedul retir sell settl shift sign slip sold start stop swap switch took trade transfer uninstal updat
    upgrad went
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
)
"""Stems of words that tell of a change."""
NEW_ABROAD = r"neue[rsnm]?|nouve(?:au|lle)|nuev[oa]|nov[oa]|nuov[oa]|nieuwe?|now[yaeą]|нов(?:ый|ая|ое|ую)|yeni"
SHIFTS_ABROAD = (
    r"\b(?:verschoben|verlegt|report[ée]|décal[ée]|cambiad[oa]|aplazad[oa]|adiad[oa]|spostat[oa]|rinviat[oa]|verzet|verschoven|przełożon"
    r"|przeniesion|перен[её]с|ertelendi)|改[成到为在]|変わり|変更"
)
CHANGES_ABROAD = (
    r"(?i:\b(?:jetzt|nun|inzwischen|mittlerweile|nicht mehr|maintenant|désormais|finalement|n(?:e |['’])\w+ plus|ahora|ya no"
    r"|agora|já não|não \w+ mais|adesso|ora|ormai|non \w+ più|nu|niet meer|teraz|już nie|теперь|больше не|artık|الآن|لم أعد)\b"
    r"|\b(?:an)?statt \w|umgezogen|déménagé|mudado|mud[éó]\b|mudei|trasferit[oa]\b|verhuisd|przeprowadził|переехал|taşındı"
    r"|\b(?:abgesagt|annul[éla]|cancelad|geannuleerd|odwołan|отмен|iptal\b)"
    rf"|{SHIFTS_ABROAD})|\b(?:{NEW_ABROAD})\b"  # not "Nueva York"
    r"|现在|不再|换[成了]|(?<=的)新|搬[到家]|取消|今は|今、|もう(?!すぐ)|新しい|引っ越|キャンセル"
)
"""How a change is told in German, French, Spanish, Portuguese, Italian, Dutch, Polish, Russian, Turkish, Arabic, Chinese and Japanese:
what is new, is at another time, holds now, or is over."""
END_WORDS = frozenset("dead die end gone leav left longer out quit resign retir".split())  # noqa: SIM905
"""Stems of words with which somebody or something is over, without an object."""
OF_ANY_PLAN = """
    ahead back called deal fallen fell go going got happen happening holiday idea job journey move offer off plan pulled
    scrapped shelved thing through trip turned vacation visit withdrawn withdrew
    """.split()  # noqa: SIM905
"""What may be said of any plan that is called off."""
NEW_WORDS = frozenset({"current", "final", "latest", "new", "newer", "newest", "official", "recent"})
"""Those of them that stand before a thing: "my new manager" is a manager."""
NEGATES = frozenset({"no", "not", "never", "from", "t"})
BE_OR_HAVE = frozenset({"is", "are", "was", "were", "has", "have", "got", "will", "isn", "aren"})
PREPOSITIONS = frozenset({"in", "at", "with", "from", "near", "for", "by", "to", "of", "on", "into"})
REFERS = frozenset({"it", "its", "that", "this", "there", "here", "them", "they", "he", "she", "him", "her", "his"})
_TOLD_BY = """
    account: bank; address: street live; age: old turned aged; allergic: allergy; allergy: allergic; animal: dog cat
    puppy kitten; apartment: flat; appointment: checkup; bank: account; bike: bicycle cycle; birthday: born turned;
    born: birthday; boss: manager supervisor report; budget: spend; called: name named; car: drive vehicle; career: work
    job employed; cat: kitten; child: daughter son; children: kids daughter son; city: live moved; coffee: espresso;
    come: origin; commute: ride train bus bike cycle drive; company: work joined employer hired; computer: laptop
    desktop; condition: diagnosed diabetic diabetes asthma; cost: price pay; country: live moved; dad: father; database:
    db data; daughter: girl; deadline: due; deploy: hosting server; desk: office sit; diet: eat vegetarian vegan
    pescatarian flexitarian keto paleo kosher halal; dietary: eat diet vegetarian vegan pescatarian flexitarian keto
    paleo kosher halal; disease: diagnosed diabetic diabetes asthma; dislike: hate like; doctor: gp physician dr; dog:
    puppy; drive: car vehicle; drug: medication pills dose; due: deadline; earn: salary pay; eat: diet vegetarian vegan
    pescatarian flexitarian keto paleo kosher halal; editor: ide; email: mail; employer: work joined hired job;
    exercise: gym train; family: wife husband kids; father: dad; flat: apartment; fly: flight; food: eat cook dish;
    grow: origin; gym: train workout; hate: dislike; health: diagnosed diabetic diabetes asthma; height: tall; hobby:
    play enjoy; holiday: vacation trip; home: live moved; host: hosting server cloud; husband: married; instrument:
    play; job: work joined employer promoted employed teach; kids: children daughter son; language: speak; laptop:
    computer machine; launch: release ship; learn: study lessons course; like: love enjoy favourite; live: moved
    relocated settled based flat apartment house; love: like enjoy favourite; mail: email; manager: boss supervisor
    report; married: wife husband wedding; medication: medicine pills tablets dose; medicine: medication pills tablets
    dose; meeting: meet call; mobile: phone; mom: mother mum; mother: mum mom; mum: mother mom; name: called named;
    nationality: passport citizen born; novel: book reading; number: phone; occupation: work job employed; office: desk;
    old: aged turned; origin: born; partner: wife husband girlfriend boyfriend married; password: login; pay: price
    costs; pet: dog cat puppy kitten; phone: mobile smartphone; practice: train; price: cost pay; profession: work job
    employed teach; read: book novel; release: launch ship version; religion: jewish muslim christian catholic hindu
    buddhist atheist church; rent: pay landlord; report: boss manager; role: title promoted employed; salary: pay earn;
    school: class; sibling: brother sister; son: boy; speak: language; sport: play train; spouse: wife husband married;
    study: learning course degree; suite: tests; tall: height; team: group; tests: suite; title: job promoted role;
    town: live moved; travel: trip flight; trip: holiday vacation travel fly flight; use: switched; vacation: holiday
    trip; vehicle: car drive; visit: trip; wake: get alarm; weigh: kilos kg; weight: weigh kilos kg; wife: married;
    work: joined hired employer job employed teach; wohne: umgezogen; wohnen: umgezogen; lebe: umgezogen; habite: demenage
    emmenage; vis: demenage; vivo: mudado mude trasferito trasferita; moro: mudei mudado; abito: trasferito trasferita; woon:
    verhuisd; mieszkam: przeprowadzilem przeprowadzilam; живу: переехал переехала; oturuyorum: tasindim; yasiyorum: tasindim;
    اسكن: انتقلت; 住在: 搬到 搬家; 我住: 搬到 搬家
"""
"""A word of questions, then the words that tell what it asks for: "Where do I live?" asks for "I moved to Bergen". The bundled
vectors hold such words apart, and an index of words knows none of it. A word that is not in the list loses nothing."""
_VERB_FORMS = """
    become became; begin began begun; bite bit bitten; blow blew blown; break broke broken; bring brought; build built; buy
    bought; catch caught; choose chose chosen; come came; deal dealt; draw drew drawn; dream dreamt; drink drank drunk; drive
    drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; fly flew flown; forget
    forgot forgotten; freeze froze frozen; get got gotten; give gave given; go went gone; grow grew grown; hang hung; hear
    heard; hide hid hidden; hold held; keep kept; know knew known; lead led; learn learnt; leave left; lend lent; lose lost;
    make made; mean meant; meet met; pay paid; ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw
    seen; seek sought; sell sold; send sent; shake shook shaken; shoot shot; sing sang sung; sink sank sunk; sit sat; sleep
    slept; speak spoke spoken; spend spent; stand stood; steal stole stolen; stick stuck; swim swam swum; take took taken;
    teach taught; tear tore torn; tell told; think thought; throw threw thrown; understand understood; wake woke woken; wear
    wore worn; win won; write wrote written
"""
"""Verbs whose forms have no common stem."""


def _related() -> dict[str, list[str]]:
    found = {}
    for line in _TOLD_BY.split(";"):
        asked, _, told = line.partition(":")
        found[asked.strip()] = told.split()
    for forms in map(str.split, _VERB_FORMS.split(";")):
        for form in forms:
            found[form] = [*found.get(form, []), *(other for other in forms if other != form)]
    return found


RELATED = _related()
"""For a word of a question the words that tell what it asks for."""

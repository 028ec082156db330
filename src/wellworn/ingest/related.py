"""Words with which people tell what they are later asked for by another: "Where do I live?" asks for "I moved to Bergen".

The bundled vectors hold such words apart, and an index of words knows none of it. Each entry of the list has a word of
questions, then the words that tell what it asks for. The list is English, of everyday life and work; a word that is not
in it loses nothing.
"""

from __future__ import annotations

_LINES = """
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
    work: joined hired employer job employed teach
"""
_FORMS = """
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
    for line in _LINES.split(";"):
        asked, _, told = line.partition(":")
        found[asked.strip()] = told.split()
    for forms in map(str.split, _FORMS.split(";")):
        for form in forms:
            found[form] = [*found.get(form, []), *(other for other in forms if other != form)]
    return found


RELATED = _related()
"""For a word of a question the words that tell what it asks for."""

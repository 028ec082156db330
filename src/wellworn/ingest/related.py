"""Words with which people tell what they are later asked for by another: "Where do I live?" asks for "I moved to Bergen".

The bundled vectors hold such words apart, and an index of words knows none of it. Each line of the list has a word of
questions, then the words that tell what it asks for. The list is English, of everyday life and work; a word that is not
in it loses nothing.
"""

from __future__ import annotations

_LINES = """
    account: bank
    address: street
    allergic: allergy
    allergy: allergic
    animal: dog cat puppy kitten
    apartment: flat
    appointment: checkup
    bank: account
    bike: bicycle cycle
    birthday: born turned
    boss: manager supervisor report
    budget: spend
    buy: bought
    called: name named
    car: drive vehicle
    cat: kitten
    child: daughter son
    children: kids daughter son
    city: live moved
    coffee: espresso
    company: work joined employer hired
    computer: laptop desktop
    cost: price pay
    country: live moved
    database: db data
    daughter: girl
    deadline: due
    deploy: hosting server
    desk: office sit
    diet: eat vegetarian vegan
    doctor: gp physician dr
    dog: puppy
    drive: car vehicle
    drug: medication pills dose
    due: deadline
    earn: salary pay
    eat: diet vegetarian vegan
    editor: ide
    employer: work joined hired job
    exercise: gym train
    family: wife husband kids
    flat: apartment
    gym: train workout
    hobby: play
    holiday: vacation trip
    home: live moved
    host: hosting server cloud
    husband: married
    instrument: play
    job: work joined employer promoted
    kids: children daughter son
    language: speak
    laptop: computer machine
    launch: release ship
    learn: study lessons course
    live: moved relocated settled
    manager: boss supervisor report
    married: wife husband wedding
    medication: medicine pills tablets dose
    medicine: medication pills tablets dose
    meeting: meet call
    mobile: phone
    name: called named
    novel: book reading
    office: desk
    partner: wife husband girlfriend boyfriend married
    password: login
    pay: price costs
    pet: dog cat puppy kitten
    phone: mobile smartphone
    practice: train
    price: cost pay
    read: book novel
    release: launch ship version
    rent: pay landlord
    role: title promoted
    salary: pay earn
    school: class
    sibling: brother sister
    son: boy
    speak: language
    sport: play train
    spouse: wife husband married
    study: learning course degree
    suite: tests
    team: group
    tests: suite
    title: job promoted role
    town: live moved
    travel: trip flight
    trip: holiday vacation travel
    use: switched
    vacation: holiday trip
    vehicle: car drive
    visit: trip
    wife: married
    work: joined hired employer job
"""
RELATED = {
    asked.strip(): told.split() for asked, _, told in (line.partition(":") for line in _LINES.strip().split("\n"))
}
"""For a word of a question the words that tell what it asks for."""

"""Small worlds of notes in which an answer needs two or three of them, and worlds in which it needs one.

A chain is a row of facts, each of which names the next thing; a name in the middle is in exactly two notes. Every fact
has look-alikes: the same sentence about others. Subjects, sentences, questions and the syllables of names are split into
*tune*, which weights may look at, and *check*, which makes the claims. `recall` uses the public facade only.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from evals.recall import scope_for
from evals.report import Report, Steps, Table, interval
from wellworn import Memory
from wellworn.core.values import Progress

Part = Literal["tune", "check"]
K = 5
OTHERS = 300
"""Notes that are about something else."""


@dataclass(frozen=True, kw_only=True)
class Domain:
    """The facts of a chain over the names {0}, {1} …, and the questions that need so many of them."""

    firsts: str
    """What {0} may be, separated by commas; empty: made-up names."""
    facts: tuple[tuple[str, ...], ...]
    questions: dict[int, tuple[str, ...]]


KIN = "sister,brother,aunt,uncle,cousin,niece,nephew,grandmother,grandfather,neighbour,landlord,flatmate"
ROLES = "trainer,tutor,accountant,dentist,lawyer,barber,gardener,plumber,mechanic,tailor,vet,florist"
CLUBS = "chess,rowing,sewing,cycling,film,choir,yoga,hiking,dance,poetry,model railway,fencing"
DOMAINS: dict[Part, tuple[Domain, ...]] = {
    "tune": (
        Domain(
            firsts=KIN,
            facts=(
                ("My {0} is called {1}.", "{1} is my {0}."),
                ("{1}'s doctor is Dr. {2}.", "{1} has been seeing a doctor, {2}, since spring."),
                ("Dr. {2}'s practice is in {3}.", "The practice of {2} moved to {3} last year."),
            ),
            questions={
                2: ("Who is the doctor of my {0}?", "What is the name of my {0}'s doctor?"),
                3: ("Where is the practice of my {0}'s doctor?", "In which place is my {0}'s doctor's practice?"),
            },
        ),
        Domain(
            firsts="",
            facts=(
                ("The project {0} is led by {1}.", "{1} took over {0} and leads it now."),
                ("{1} lives in {2} with two dogs.", "{1} has moved to {2}, where the rents are low."),
                ("{2} lies on the river {3}.", "The river that flows through {2} is the {3}."),
            ),
            questions={
                2: (
                    "Where does the person who leads {0} live?",
                    "In which town does the leader of the project {0} live?",
                ),
                3: ("Which river flows through the town where the leader of {0} lives?",),
            },
        ),
        Domain(
            firsts="",
            facts=(
                ("The novel {0} was written by {1}.", "{1} wrote {0} in a single winter."),
                ("{1} studied at the college of {2}.", "{1} is a graduate of {2}."),
                ("{2} was founded by {3}.", "{3} founded {2} with money from the railway."),
            ),
            questions={
                2: ("Where did the author of {0} study?", "At which college did the woman who wrote {0} study?"),
                3: ("Who founded the college where the author of {0} studied?",),
            },
        ),
        Domain(
            firsts=ROLES,
            facts=(
                ("Our {0} is {1}.", "We found a new {0}: {1}."),
                ("{1} bought a van from {2}.", "The van that {1} drives came from {2}."),
                ("{2} has a garage on {3}.", "You find {2}'s garage at {3}."),
            ),
            questions={
                2: (
                    "Who sold our {0} the van?",
                    "From whom did our {0} get the van?",
                    "Who is the seller of our {0}'s van?",
                ),
                3: ("Where is the garage of the man our {0} bought a van from?",),
            },
        ),
        Domain(
            firsts="",
            facts=(
                ("The service {0} runs on the host {1}.", "{0} was deployed to {1} in May."),
                ("{1} stands in rack {2}.", "We put {1} into rack {2} on Monday."),
                ("Rack {2} is cooled by the unit {3}.", "The cooling of {2} comes from {3}."),
            ),
            questions={
                2: ("In which rack is the host of {0}?", "Which rack holds the machine that {0} runs on?"),
                3: ("Which unit cools the rack in which the host of {0} stands?",),
            },
        ),
        Domain(
            firsts="",
            facts=(
                ("{0} plays the drums in {1}.", "The drummer of {1} is {0}."),
                ("{1} rehearse in the cellar of {2}.", "Every Friday {1} practise at {2}."),
                ("The caretaker of {2} is {3}.", "{3} has the keys to {2}."),
            ),
            questions={
                2: ("Where does the band that {0} plays in rehearse?", "Where does {0}'s band rehearse?"),
                3: ("Who is the caretaker of the place where {0}'s band rehearses?",),
            },
        ),
        Domain(
            firsts="",
            facts=(
                ("{0} goes to the school {1}.", "{0} is a pupil of {1}."),
                ("The head of {1} is {2}.", "{2} runs {1} strictly."),
                ("{2} was born in {3}.", "The birthplace of {2} is {3}."),
            ),
            questions={
                2: ("Who is the head of the school that {0} goes to?", "Who runs {0}'s school?"),
                3: (
                    "Where was the head of the school that {0} goes to born?",
                    "What is the birthplace of the head of {0}'s school?",
                ),
            },
        ),
    ),
    "check": (
        Domain(
            firsts=CLUBS,
            facts=(
                ("The {0} club meets in the hall of {1}.", "{1} is where the {0} club comes together."),
                ("{1} is owned by {2}.", "Since June {1} has belonged to {2}."),
                ("{2} can be reached at the number {3}.", "Call {3} if you need {2}."),
            ),
            questions={
                2: ("Who owns the place where the {0} club meets?", "Who is the owner of the {0} club's hall?"),
                3: ("What is the number of the owner of the {0} club's hall?",),
            },
        ),
        Domain(
            firsts="",
            facts=(
                ("{0} bakes the bread for the café {1}.", "The bread at {1} comes from {0}."),
                ("{1} opened on {2} square.", "You find {1} on {2}."),
                ("{2} is named after the painter {3}.", "It was the painter {3} who gave {2} its name."),
            ),
            questions={
                2: ("Where is the café that {0} bakes for?", "On which square is the café with {0}'s bread?"),
                3: ("After whom is the square named on which the café with {0}'s bread is?",),
            },
        ),
        Domain(
            firsts="",
            facts=(
                ("{0} has been married to {1} for years.", "{1} is the wife of {0}."),
                ("{1} works for the company {2}.", "{1} has a desk at {2}."),
                ("{2} builds {3} engines.", "The engines of {2} are called {3}."),
            ),
            questions={
                2: ("Where does {0}'s wife work?", "Which company does the woman {0} is married to work for?"),
                3: ("Which engines does the company that {0}'s wife works for build?",),
            },
        ),
    ),
}
SYLLABLES: dict[Part, tuple[str, str]] = {
    "tune": ("ka mo ri ve du lo ne sha tor pel bri quin", "ra lin dek mus va nor tis gan bel rik"),
    "check": ("ai cu dom es gil ho kel lu mar ost pra ul", "bor cen dil fe gri hun jas les mek zan"),
}
OTHER: dict[Part, tuple[str, ...]] = {
    "tune": (
        "The meeting about the {0} was moved to {1}.",
        "{1} borrowed the {0} and never brought it back.",
        "I like the {0} that {1} made.",
    ),
    "check": (
        "{1} spilled coffee over the {0}.",
        "We ordered another {0} from {1}.",
        "The {0} was too expensive, says {1}.",
    ),
}
THINGS = "budget,ladder,printer,carpet,kettle,roof,logo,fence,piano,lamp,bicycle,boat,table,contract"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question and the notes that answer it together."""

    hops: int
    text: str
    right: frozenset[str]


def names(part: Part, draw: random.Random) -> Iterator[str]:
    """Made-up names, none twice."""
    first, last = (text.split() for text in SYLLABLES[part])
    given: set[str] = set()
    while True:
        made = [
            "".join([draw.choice(first), *(draw.choice(last) for _ in range(draw.choice((1, 2))))]).capitalize()
            for _ in range(draw.choice((1, 2)))
        ]
        if given.isdisjoint(made):
            given.update(made)
            yield " ".join(made)


def chains(part: Part, domain: Domain, seed: int, titled: bool) -> tuple[list[dict[str, str]], list[Asked]]:
    """The notes of one world, and what is asked."""
    draw = random.Random(seed)
    name = names(part, draw)
    notes: list[dict[str, str]] = []
    asked: list[Asked] = []
    firsts = domain.firsts.split(",") if domain.firsts else [next(name) for _ in range(40)]
    for first in firsts:
        things = [first, *(next(name) for _ in domain.facts)]
        facts = [draw.choice(wordings).format(*things) for wordings in domain.facts]
        notes += [{"text": text, "title": things[place] if titled else ""} for place, text in enumerate(facts)]
        asked += [
            Asked(hops=hops, text=wording.format(*things), right=frozenset(facts[:hops]))
            for hops, wordings in domain.questions.items()
            for wording in wordings
        ]
    for _ in range(OTHERS):
        notes.append({"text": draw.choice(OTHER[part]).format(draw.choice(THINGS.split(",")), next(name)), "title": ""})
    draw.shuffle(notes)
    return notes, asked


def all_found(memory: Memory, asked: Asked, recursion: str) -> bool:
    hits = memory.recall(asked.text, scope=scope_for("hops"), k=K, recursion=recursion).hits  # type: ignore[arg-type]
    return asked.right <= {hit.entry.text for hit in hits}


def run(*, part: Part = "check", seed: int = 1, embedder: str = "reader", progress: Progress | None = None) -> Report:
    """All notes that a question needs in the first five, by one search and by several steps."""
    worlds = [(domain, titled) for titled in (False, True) for domain in DOMAINS[part]]
    steps = Steps(total=len(worlds), progress=progress)
    found: dict[str, list[tuple[bool, bool]]] = {}
    for domain, titled in worlds:
        notes, asked = chains(part, domain, seed, titled)
        with Memory.open(":memory:", embedder=embedder) as memory:
            memory.remember_many(notes, scope=scope_for("hops"))
            for one in asked:
                label = f"{one.hops} notes, {'titled' if titled else 'untitled'}"
                pair = all_found(memory, one, "off"), all_found(memory, one, "on")
                found.setdefault(label, []).append(pair)
        steps.advance()
    rows = [
        [label, len(pairs), *(interval(enumerate(100.0 * pair[way] for pair in pairs)) for way in (0, 1))]
        for label, pairs in sorted(found.items())
    ]
    table = Table(
        title=f"All notes in the first {K} ({part})",
        columns=("", "questions", "one search", "several steps"),
        rows=rows,
    )
    return Report(name="hops", about={"part": part, "seed": seed, "embedder": embedder}, tables=[table])

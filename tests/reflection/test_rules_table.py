"""What single sentences become: the table of the rules. Said by Ada, to an assistant, on Wednesday 2024-05-01."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from wellworn.reflection.rules import extract

from .dialogue import dialogue

FACTS = [
    ("My name is Ada Byron.", "Ada's name is Ada Byron."),
    ("Call me Addie.", "Ada asks: call them Addie."),
    ("I'm allergic to peanuts.", "Ada is allergic to peanuts."),
    ("I am vegetarian.", "Ada is vegetarian."),
    ("I live in Oslo with two flatmates.", "Ada lives in Oslo with two flatmates."),
    ("I moved to Porto in 2019.", "Ada moved to Porto in 2019."),
    ("I grew up on a farm near Cork.", "Ada grew up on a farm near Cork."),
    ("I'm from Ghana originally.", "Ada is from Ghana originally."),
    ("I work as a nurse at St. Mary's hospital.", "Ada works as a nurse at St. Mary's hospital."),
    ("I study marine biology.", "Ada studies marine biology."),
    ("I teach maths and coach the football team.", "Ada teaches maths and coaches the football team."),
    ("I run a small bakery in Leeds.", "Ada runs a small bakery in Leeds."),
    ("My sister lives in Madrid.", "Ada's sister lives in Madrid."),
    ("My dog Biscuit is three years old.", "Ada's dog Biscuit is three years old."),
    ("I have two cats named Pixel and Byte.", "Ada has two cats named Pixel and Byte."),
    (
        "My wife and I adopted a puppy last week.",
        "Ada's wife and Ada adopted a puppy last week (2024-04-22 to 2024-04-28).",
    ),
    ("Our daughter starts school in September.", "Ada's daughter starts school in September (2024-09)."),
    ("My boss is called Marta.", "Ada's boss is called Marta."),
    ("I bought a red bicycle yesterday.", "Ada bought a red bicycle yesterday (2024-04-30)."),
    ("I sold my old guitar last month.", "Ada sold their old guitar last month (2024-04)."),
    ("I own a 1998 Volvo.", "Ada owns a 1998 Volvo."),
    ("I've got a flat near the harbour.", "Ada has got a flat near the harbour."),
    ("My birthday is on June 5.", "Ada's birthday is on June 5."),
    ("My dentist appointment is next Tuesday.", "Ada's dentist appointment is next Tuesday (2024-05-07)."),
    ("I have an exam on Friday.", "Ada has an exam on Friday (2024-05-03)."),
    ("Our flight to Lima leaves tomorrow.", "Ada's flight to Lima leaves tomorrow (2024-05-02)."),
    ("I'm flying to Tokyo next month.", "Ada is flying to Tokyo next month (2024-06)."),
    ("I am going to run a marathon in October.", "Ada is going to run a marathon in October (2024-10)."),
    ("I plan to learn Norwegian this year.", "Ada plans to learn Norwegian this year (2024)."),
    ("We're planning a trip to Iceland next summer.", "Ada and others are planning a trip to Iceland next summer."),
    ("I want to write a novel about lighthouses.", "Ada wants to write a novel about lighthouses."),
    ("My goal is to save 5000 euros by December.", "Ada's goal is to save 5000 euros by December (2024-12)."),
    ("My budget is 800 euros per month.", "Ada's budget is 800 euros per month."),
    (
        "I need to finish the grant proposal before Monday.",
        "Ada needs to finish the grant proposal before Monday (2024-05-06).",
    ),
    ("I decided to quit smoking.", "Ada decided to quit smoking."),
    ("We agreed on the blue design.", "Ada and others agreed on the blue design."),
    ("I'll take the evening course.", "Ada will take the evening course."),
    ("Let's go with the second option for the kitchen.", "Ada wants to go with the second option for the kitchen."),
    ("I can only train twice a week.", "Ada can only train twice a week."),
    ("I don't eat meat on weekdays.", "Ada doesn't eat meat on weekdays."),
    ("I never drink coffee after noon.", "Ada never drinks coffee after noon."),
    (
        "Actually, my flight leaves on Thursday, not Friday.",
        "Ada's flight leaves on Thursday (2024-05-02), not Friday (2024-05-03).",
    ),
    ("I changed my mind about the red curtains.", "Ada changed their mind about the red curtains."),
    ("I went to the dentist two days ago.", "Ada went to the dentist two days ago (2024-04-29)."),
    ("I finished my thesis last year.", "Ada finished their thesis last year (2023)."),
    ("I ran the charity race on Saturday.", "Ada ran the charity race on Saturday (2024-04-27)."),
    ("I was born in 1984.", "Ada was born in 1984."),
    ("I've lived here since 2015.", "Ada has lived here since 2015."),
    ("I'm on parental leave until August.", "Ada is on parental leave until August (2024-08)."),
    ("I will be in Berlin for the next two weeks.", "Ada will be in Berlin for the next two weeks."),
    ("I broke my wrist three weeks ago.", "Ada broke their wrist three weeks ago (2024-04-08 to 2024-04-14)."),
    ("I lost my job in January.", "Ada lost their job in January (2024-01)."),
    ("I started a new job at Siemens this morning.", "Ada started a new job at Siemens this morning (2024-05-01)."),
    ("I got promoted to team lead today.", "Ada got promoted to team lead today (2024-05-01)."),
    ("We just moved into our new house.", "Ada and others just moved into their new house."),
    ("Just got back from a week in Wales.", "Ada just got back from a week in Wales."),
    ("Finally finished the garden shed.", "Ada finally finished the garden shed."),
    ("Been learning the banjo since last summer.", "Ada has been learning the banjo since last summer."),
    ("I feel exhausted after the night shifts.", "Ada feels exhausted after the night shifts."),
    ("I think remote work suits our family best.", "Ada thinks remote work suits their family best."),
    ("I struggle with spreadsheets.", "Ada struggles with spreadsheets."),
    ("I speak Portuguese and some Dutch.", "Ada speaks Portuguese and some Dutch."),
    ("I drive a delivery van at night.", "Ada drives a delivery van at night."),
    ("I usually wake up at five.", "Ada usually wakes up at five."),
    ("I do yoga every morning.", "Ada does yoga every morning."),
    ("I carry an epinephrine pen.", "Ada carries an epinephrine pen."),
    ("I watch documentaries and go climbing.", "Ada watches documentaries and goes climbing."),
    ("I misplaced my keys, so I was late for work.", "Ada misplaced their keys, so they were late for work."),
    ("When I was a child I spent summers in Nairobi.", "When Ada was a child they spent summers in Nairobi."),
    ("My grandmother taught me to knit.", "Ada's grandmother taught them to knit."),
    ("My colleagues gave me a gold watch.", "Ada's colleagues gave them a gold watch."),
    ("I told my manager that I need a quieter context.", "Ada told their manager that they need a quieter context."),
    (
        "I've never been to Japan, but I want to visit Kyoto.",
        "Ada has never been to Japan, but they want to visit Kyoto.",
    ),
    ("I haven't finished the report for my client.", "Ada hasn't finished the report for their client."),
    ("I wasn't invited to the conference in Lyon.", "Ada wasn't invited to the conference in Lyon."),
    ("I'm saving for a telescope.", "Ada is saving for a telescope."),
    (
        "I'm training for a triathlon and I swim every Tuesday.",
        "Ada is training for a triathlon and they swim every Tuesday.",
    ),
    ("My car broke down on Monday.", "Ada's car broke down on Monday (2024-04-29)."),
    ("My company makes wind turbines.", "Ada's company makes wind turbines."),
    (
        "My mother is visiting us next weekend.",
        "Ada's mother is visiting them next weekend (2024-05-11 to 2024-05-12).",
    ),
    ('I named my boat "My Fair Lady".', 'Ada named their boat "My Fair Lady".'),
    ("I coach my son's team and I referee on Sundays.", "Ada coaches their son's team and they referee on Sundays."),
    ("I have diabetes, so I avoid sugar.", "Ada has diabetes, so they avoid sugar."),
    ("We usually eat dinner at seven.", "Ada and others usually eat dinner at seven."),
    ("My brother and I own a vineyard.", "Ada's brother and Ada own a vineyard."),
    ("I joined a choir in Bristol on 3 March.", "Ada joined a choir in Bristol on 3 March (2024-03-03)."),
    ("I met my husband in 2010.", "Ada met their husband in 2010."),
    ("My internship runs from July to September.", "Ada's internship runs from July (2024-07) to September (2024-09)."),
    ("My landlord raised the rent by 10 percent.", "Ada's landlord raised the rent by 10 percent."),
    ("I’m moving to Zürich in two months.", "Ada is moving to Zürich in two months (2024-07)."),
    (
        "I quit my job at the café the day before yesterday.",
        "Ada quit their job at the café the day before yesterday (2024-04-29).",
    ),
    (
        "I signed up for a pottery class starting next Monday.",
        "Ada signed up for a pottery class starting next Monday (2024-05-06).",
    ),
    ("My therapist said I should journal daily.", "Ada's therapist said they should journal daily."),
    ("I'm a retired firefighter.", "Ada is a retired firefighter."),
    ("I'm 34 years old.", "Ada is 34 years old."),
    ("We named our baby Freya.", "Ada and others named their baby Freya."),
    ("I'd like to open a bookshop someday.", "Ada would like to open a bookshop someday."),
]
PREFERENCES = [
    ("I love hiking in the rain.", "Ada loves hiking in the rain."),
    ("I hate coriander.", "Ada hates coriander."),
    ("I prefer tea to coffee.", "Ada prefers tea to coffee."),
    ("My favourite composer is Sibelius.", "Ada's favourite composer is Sibelius."),
    ("I can't stand crowded trains.", "Ada can't stand crowded trains."),
    ("I'm really into pottery.", "Ada is really into pottery."),
    ("I'd rather work from home.", "Ada would rather work from home."),
    ("I enjoy baking sourdough and play the cello.", "Ada enjoys baking sourdough and plays the cello."),
    ("From now on, answer me in German.", "Ada asks: from now on, answer them in German."),
    ("Please never call me before nine.", "Ada asks: please never call them before nine."),
    ("Always use metric units.", "Ada asks: always use metric units."),
    ('My favourite book is "I, Claudius".', 'Ada\'s favourite book is "I, Claudius".'),
    ("I myself prefer paper maps.", "Ada themselves prefers paper maps."),
    ("i like trains and i live in york", "Ada likes trains and they live in york."),
]
NOTES = [
    ("Remind me to call the plumber tomorrow.", "Ada asks: remind them to call the plumber tomorrow (2024-05-02)."),
    (
        "Remember that my passport expires in March 2026.",
        "Ada asks: remember that their passport expires in March 2026.",
    ),
]


@pytest.mark.parametrize(
    ("said", "summary", "kind"),
    [
        *[(said, summary, "fact") for said, summary in FACTS],
        *[(said, summary, "preference") for said, summary in PREFERENCES],
        *[(said, summary, "note") for said, summary in NOTES],
    ],
)
def test_a_sentence_becomes_a_memory_that_stands_alone(said: str, summary: str, kind: str) -> None:
    (memory,) = extract(dialogue(("user", said)), user="Ada")
    assert (memory.summary, memory.kind, memory.turns, memory.speaker) == (summary, kind, (0,), "Ada")


def day(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "valid_from", "valid_to"),
    [
        ("From now on, answer me in German.", "2024-05-01", None),
        ("I've lived here since 2015.", "2015-01-01", None),
        ("I'm on parental leave until August.", None, "2024-08-01"),
        ("I will be in Berlin for the next two weeks.", "2024-05-01", "2024-05-15"),
        ("My internship runs from July to September.", "2024-07-01", "2024-10-01"),
        ("I signed up for a pottery class starting next Monday.", "2024-05-06", None),
        ("I bought a red bicycle yesterday.", None, None),
    ],
)
def test_a_memory_holds_from_and_to_when_it_says_so(said: str, valid_from: str | None, valid_to: str | None) -> None:
    (memory,) = extract(dialogue(("user", said)), user="Ada")
    assert (memory.valid_from, memory.valid_to) == (day(valid_from), day(valid_to))


def test_a_person_without_a_name_is_the_user() -> None:
    (memory,) = extract(dialogue(("user", "I keep bees and my brother sells the honey.")))
    assert memory.summary == "The user keeps bees and their brother sells the honey."
    (memory,) = extract(dialogue(("user", "I keep bees on the roof.")), user="u-4711")
    assert memory.summary == "The user keeps bees on the roof."

"""What the rules keep of a session, how they word it, and why they skip a turn."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from evals import extraction
from hypothesis import given
from hypothesis import strategies as st

from wellworn.core.values import Turn
from wellworn.ingest.terms import STOP_WORDS, words
from wellworn.reflection.labels import about_speaker
from wellworn.reflection.rules import MOST_PER_TURN, extract, role

WEDNESDAY = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
"""When everything is said."""


def dialogue(*said: tuple[str, str]) -> list[Turn]:
    """Turns numbered from 0. A role that is a name is a person who talks under that name."""
    return [
        Turn(session_id="s", number=n, role=role, text=text, at=WEDNESDAY, speaker=role if role.istitle() else None)
        for n, (role, text) in enumerate(said)
    ]


def memories(*said: tuple[str, str], user: str | None = "Ada") -> list[str]:
    return [one.summary for one in extract(dialogue(*said), user=user)[0]]


def why(*said: tuple[str, str]) -> dict[int, str]:
    return extract(dialogue(*said), user="Ada")[1]


@pytest.mark.parametrize(
    ("said", "memory"),
    [
        # Certain: the sentence is about the speaker by name.
        ("I live in Oslo with two flatmates.", "Ada lives in Oslo with two flatmates."),
        ("I no longer eat meat.", "Ada no longer eats meat."),
        ("I'm allergic to penicillin.", "Ada is allergic to penicillin."),
        ("My uncle taught me to sail.", "Ada's uncle taught Ada to sail."),
        ("I carry my inhaler and keep a spare one at work.", "Ada: I carry my inhaler and keep a spare one at work."),
        ("Oh, by the way, I use fish, not bash.", "Ada uses fish, not bash."),
        ("I ran the charity race on Saturday.", "Ada ran the charity race on Saturday (2024-04-27)."),
        # About the world of the speaker: as it stands.
        ("The deploy key is in 1Password.", "The deploy key is in 1Password."),
        # Not certain: the speaker is quoted.
        ("We deploy on Thursdays now.", "Ada: We deploy on Thursdays now."),
        ("My wife and I own a vineyard.", "Ada: My wife and I own a vineyard."),
        ("Moved to Bergen last week.", "Ada: Moved to Bergen last week (2024-04-22 to 2024-04-28)."),
        ("Me and my brother no longer work together.", "Ada: Me and my brother no longer work together."),
        # Standing instructions.
        ("Use uv instead of pip please.", "Ada: Use uv instead of pip please."),
        ("Remind me to water the ferns tomorrow.", "Ada: Remind me to water the ferns tomorrow (2024-05-02)."),
        ("Whenever I paste a stack trace, explain it first.", "Ada: Whenever I paste a stack trace, explain it first."),
        # Where things are, and what others do.
        ("They promoted me to staff engineer.", "They promoted Ada to staff engineer."),
        # Never a broken sentence.
        ("Me no longer work there.", "Ada: Me no longer work there."),
        ("Sam and I live in Oslo.", "Ada: Sam and I live in Oslo."),
        ("i live in oslo btw", "Ada lives in oslo btw."),
        # What is meant counts, not the lead.
        ("I think I'm allergic to nuts.", "Ada: I think I'm allergic to nuts."),
        ("I'm Dewi, nice to meet you.", "Ada: I'm Dewi, nice to meet you."),
        # Other languages: as they stand.
        ("Je déteste les olives.", "Ada: Je déteste les olives."),
        ("Я живу в Казани.", "Ada: Я живу в Казани."),
        ("我住在北京，我有两只猫。", "Ada: 我住在北京，我有两只猫。"),
        ("Ich bin am 3. Mai 1990 geboren.", "Ada: Ich bin am 3. Mai 1990 geboren."),
        ("Ich wohne in der Goethestr. 12 in Graz.", "Ada: Ich wohne in der Goethestr. 12 in Graz."),
    ],
)
def test_a_sentence_becomes_a_memory(said: str, memory: str) -> None:
    assert memories(("user", said)) == [memory]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Hi there, good morning!", "small talk"),
        ("I am ada", "nothing new"),
        ("I'm ready for the next step.", "small talk"),
        ("Let's start with the packing list.", "about the talk itself"),
        ("That's what my cousin suggested.", "says nothing without what it points to"),
        ("¿Qué tiempo hace hoy?", "question"),
        ("What should I cook tonight?", "question"),
        ("how do i revert a commit", "question"),
        ("If I were rich, I would buy an island.", "hypothetical"),
        ("I want you to translate my CV.", "part of a task"),
        ("Fix the bug in foo.py where the loop never ends.", "part of a task"),
        ("```python\nhome = 'I live in Oslo'\n```", "nothing said in sentences"),
        ("> I live in Oslo with my cat.", "nothing said in sentences"),
        ("My story. " + "The forest was dark and the king was old. " * 40, "pasted text"),
    ],
)
def test_a_turn_that_gives_nothing_has_a_reason(said: str, reason: str) -> None:
    assert memories(("user", said)) == []
    assert why(("user", said)) == {0: reason}


@pytest.mark.parametrize(
    "said",
    """
    Wie heißt meine Schwester | Welches Rad habe ich | Sag mir wo ich wohne | Comment s'appelle ma sœur | Où j'habite
    cómo se llama mi hermana | Dime qué bici tengo | Che bici ho | Onde eu moro | Welke fiets heb ik | Gdzie mieszkam
    Как зовут мою сестру | 我住在哪里 | 私の自転車は何ですか | @src/app.py what does this do | in utils.py what does foo() do
    wondering if we need redis here | the tests pass on CI but not here, why | kannst du die Tests starten
    My tests are failing.
    wogegen bin ich allergisch | à quoi je suis allergique | na co mam alergię | wanneer is mijn verjaardag | neye alerjim var
    Cześć, dzień dobry! | Jajaja, qué bueno. | Merci beaucoup, à demain !
    The staging server is down. | the ci is red | der Build ist kaputt | I get this error: | here's my code
    """.replace("\n", "|").split("|"),
)
def test_what_asks_orders_or_passes_is_no_memory_in_any_language(said: str) -> None:
    assert memories(("user", said.strip()), user=None) == []


@pytest.mark.parametrize(
    "said",
    """
    Meine Schwester heißt Anna | Seit Mai habe ich einen Hund | Vivo en Madrid con mi pareja | Todos los días corro mucho
    Uso el editor Vim | J'habite à Lyon depuis mars | Dans la maison il y a un chat | Ho un gatto nero | Moro em Lisboa desde maio
    Ik woon in Utrecht met mijn vriend | Мою сестру зовут Анна | 我住在上海 | Kim lives in Oslo. | Nutze immer einfache Zeichen
    You may commit directly to main now. | You don't need to run the linter anymore. | Before you push, run make lint.
    When you add a migration, run make schema afterwards. | For tests use vitest. | The tests fail on Windows because of paths.
    Wo ich wohne ist es sehr laut | 我什么都吃 | 私はいつも歩いて会社に行きます | Comment on pull requests in English.
    Marie enseigne le français à Lyon | Juan arregla el coche los sábados | Como verduras todos los días | Users must log in with SSO.
    Our app crashes are handled by Sentry. | The page for broken links is at /404. | Anything with nuts makes me ill.
    na co dzień jem owsiankę | Donde vivo hace mucho frío | Kiedy pada gram w szachy
    Helen's in Durham now | they've put me on nights again for july | marek's going on parental leave from march
    """.replace("\n", "|").split("|"),
)
def test_what_lasts_is_a_memory_in_any_language(said: str) -> None:
    assert len(memories(("user", said.strip()), user=None)) == (1 if said.strip() else 0)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("My flight is at 9:40. No sorry, 10:40.", ["9:40", "10:40"]),
        ("My doctor is Anna Weiss, phone 0341 555.", ["0341 555"]),
        ("I moved my rates up: 0.14 for agencies, 0.18 direct.", ["0.14", "0.18"]),
    ],
)
def test_what_corrects_or_completes_a_statement_stays_with_it(said: str, kept: list[str]) -> None:
    found = " ".join(memories(("user", said)))
    assert all(part in found for part in kept), found


@pytest.mark.parametrize(
    ("said", "about"),
    [
        ("I usually wake up at five", "Ben usually wakes up at five"),
        ("I'll call my sister", "Ben will call their sister"),
        ("My boss gave me a raise", "Ben's boss gave Ben a raise"),
        ("I paid them and they fixed my roof", "Ben paid them and they fixed Ben's roof"),
        ("The key is in the drawer", "The key is in the drawer"),
    ],
)
def test_certain_sentences_are_about_the_speaker_by_name(said: str, about: str) -> None:
    assert about_speaker(said, "Ben") == about


@pytest.mark.parametrize("said", ["I work at Acme Inc.", "I'm a nurse at St Mary's.", "My flight is at 9 p.m."])
def test_a_sentence_that_ends_in_an_abbreviation_has_one_full_stop(said: str) -> None:
    (memory,) = memories(("user", said))
    assert memory.endswith(".")
    assert not memory.endswith("..")


@pytest.mark.parametrize(
    "said",
    """
    I put it there | I was late, so I took a taxi | I do yoga and go climbing | I'd that feeling | My wife and I live here
    I told you so | We moved | That car is mine | I myself agree | I wanna go | I said "no" | I love tall and slim trees
    I want to eat and sleep | I paint, sing and dance | I finished the podcast 'How I Built This' | My friend, this works
    So do I | I | Neither he nor I
    """.replace("\n", "|")
    .strip(" |")
    .split("|"),
)
def test_uncertain_sentences_are_left_alone(said: str) -> None:
    assert about_speaker(said.strip(), "Ben") is None


@pytest.mark.parametrize(("part", "fewest"), [pytest.param("tune", 97.0, marks=pytest.mark.slow), ("check", 90.0)])
def test_the_sessions_of_the_evals_are_read_as_expected(part: str, fewest: float) -> None:
    report = extraction.own(extraction.OWN / f"{part}.txt")
    rows = {str(row[0]): int(str(row[1])) for row in report.tables[0].rows}
    assert {*rows} == {*extraction.EXPECTED.values()}
    missed = [line for line in report.lines if not line.startswith("outdated")]
    expected = sum(count for name, count in rows.items() if name != "outdated")
    assert expected > 150
    assert 100.0 * (1 - len(missed) / expected) >= fewest, missed


def test_an_assistant_is_never_heard() -> None:
    assert memories(("assistant", "I live in your phone.")) == []
    assert why(("assistant", "I live in your phone.")) == {0: "said by the assistant"}


def test_two_people_are_both_heard_under_their_names() -> None:
    said = [("Ben", "I play the cello in a quartet."), ("Mona", "Lovely, Ben! I repair old radios.")]
    assert memories(*said) == ["Ben plays the cello in a quartet.", "Mona repairs old radios."]


def test_a_reply_that_says_nothing_alone_is_kept_with_its_question() -> None:
    found, skipped = extract(
        dialogue(
            ("user", "I ran the charity race on Saturday."),
            ("assistant", "Well done! How far did you run?"),
            ("user", "Ten kilometres, in the rain."),
        ),
        user="Ada",
    )
    first, second = found
    assert first.turns == (0,)
    assert second.summary == 'Asked "How far did you run?", Ada said: "Ten kilometres, in the rain."'
    assert second.turns == (1, 2)
    assert skipped == {}


def test_yes_to_a_proposal_keeps_what_was_proposed() -> None:
    said = [
        ("user", "I need to get fitter and my knees are weak."),
        ("assistant", "Here is a plan:\n1. Swim: twice a week\n2. Cycle: on Sundays\n3. Stretch: daily"),
        ("user", "Sounds good, I'll start on Monday."),
    ]
    plan = 'The assistant proposed to Ada: Swim; Cycle; Stretch. Ada said: "Sounds good, I\'ll start on Monday."'
    assert plan in memories(*said)


def test_a_sentence_that_points_back_goes_with_the_one_before_it() -> None:
    assert memories(("user", "I built a canoe out of cedar. It took me a year.")) == [
        "Ada built a canoe out of cedar. It took Ada a year."
    ]
    assert memories(("user", "It took me a year.")) == []


def test_facts_beside_a_question_or_a_task_are_kept() -> None:
    assert memories(("user", "I live in Oslo. Where can I rent skis?")) == ["Ada lives in Oslo."]
    assert memories(
        ("user", "Fix this: `for i in x`"), ("assistant", "Done."), ("user", "I'm on Python 3.9 at work.")
    ) == ["Ada is on Python 3.9 at work."]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("The tests run with make check. Please fix the parser.", ["The tests run with make check."]),
        ("Every table has an owner in owners.toml. Drop the old ones.", ["Every table has an owner in owners.toml."]),
        ("This repo uses bun, so please update the lockfile.", ["This repo uses bun."]),
        ("The parser test fails again, fix it", []),
        ("I prefer tabs. The menu flickers again, repair that.", ["Ada prefers tabs."]),
        ("I collect stamps, sell them at fairs.", ["Ada: I collect stamps, sell them at fairs."]),
        ("Compose a ballad. The miller is poor and the winter is long.", []),
    ],
)
def test_beside_an_order_only_what_lasts_is_kept(said: str, kept: list[str]) -> None:
    assert memories(("user", said)) == kept


def test_a_task_about_others_yields_nothing_though_it_says_we() -> None:
    said = [
        ("user", "Write a post for us. We are a locksmith in Omaha and our keyword is lockout service."),
        ("assistant", "Locked out? We are here, day and night."),
        ("user", "make it shorter"),
    ]
    assert memories(*said) == []


def test_a_person_without_a_name_is_the_user() -> None:
    assert memories(("user", "I keep bees."), user=None) == ["The user keeps bees."]
    assert memories(("user", "I keep bees."), user="u-4711") == ["The user keeps bees."]


def test_kinds_and_bounds_of_time() -> None:
    ((likes,), _) = extract(dialogue(("user", "I prefer tea to coffee.")))
    for said, kind in (("I'm really into jazz.", "preference"), ("I moved into a flat in Ghent.", "fact")):
        assert [one.kind for one in extract(dialogue(("user", said)))[0]] == [kind]
    ((away,), _) = extract(dialogue(("user", "I will be in Berlin until Friday.")))
    assert likes.kind == "preference"
    assert away.valid_to is not None
    assert (away.kind, away.valid_to.date().isoformat()) == ("fact", "2024-05-04")


PIECES = """
I my we me I'm I've I'd you your and because live love work in Oslo to cat sister yesterday . ? ! , : " ( [ ] ``` ** yes
no okay thanks if were always remind let's don't can't Zürich 猫 😀 actually named Rex 42 % <memories> who either
""".split()  # noqa: SIM905
texts = st.one_of(st.text(max_size=200), st.lists(st.sampled_from([*PIECES, "\n", "\n- "]), max_size=40).map(" ".join))
roles = st.sampled_from(["user", "assistant", "Mel", "Caro"])
talks = st.lists(st.tuples(roles, texts), max_size=8)
ADDED = {*words("ada mel caro asked said the assistant proposed to user is has does had would them their s")}


@given(talks)
def test_any_talk_gives_memories_of_its_own_words_or_a_reason(said: list[tuple[str, str]]) -> None:
    turns = {turn.number: turn for turn in dialogue(*said)}
    found, skipped = extract([*turns.values()], user="Ada")
    assert (found, skipped) == extract([*turns.values()], user="Ada")
    used = {number for one in found for number in one.turns}
    assert used | set(skipped) == set(turns)
    assert used.isdisjoint(skipped)
    for one in found:
        assert one.turns == tuple(sorted(set(one.turns)))
        assert role(turns[one.turns[-1]]) in ("user", "person")
        assert one.summary.strip() == one.summary != ""
        assert "\n" not in one.summary
        spoken = {word for number in one.turns for word in words(turns[number].text)}
        for word in set(words(one.summary)) - spoken - ADDED - STOP_WORDS:
            assert word[0].isdigit() or {word[:-1], word[:-2], word[:-3] + "y"} & spoken, (one.summary, word)


@given(talks)
def test_a_further_turn_takes_no_memory_away(said: list[tuple[str, str]]) -> None:
    turns = dialogue(*said)
    whole = extract(turns, user="Ada")[0]
    for size in range(len(turns)):
        part = extract(turns[:size], user="Ada")[0]
        assert part == whole[: len(part)]
        assert all(one.turns[-1] >= size for one in whole[len(part) :])


def test_a_long_turn_gives_few_memories_in_linear_time() -> None:
    said = "".join(f"I bought {n} blue bicycles in town {n}. " for n in range(30))
    assert len(memories(("Mel", said))) == MOST_PER_TURN
    for hard in ("I " * 50_000, '"' * 100_000, "[(" * 50_000, "oh, well, " * 10_000, "I left yesterday " * 6_000):
        memories(("user", hard), ("Mel", hard))

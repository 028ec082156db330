"""What the rules keep of a session, how they word it, and why they skip a turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.ingest.terms import STOP_WORDS, words
from wellworn.reflection.labels import sentences
from wellworn.reflection.rules import MOST_PER_TURN, extract, role

from .dialogue import dialogue


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
        ("I don't drink alcohol any more.", "Ada doesn't drink alcohol any more."),
        ("I'm allergic to penicillin.", "Ada is allergic to penicillin."),
        ("I've never been to Peru, but I want to see Lima.", "Ada: I've never been to Peru, but I want to see Lima."),
        ("My landlord raised the rent by ten percent.", "Ada's landlord raised the rent by ten percent."),
        ("My uncle taught me to sail.", "Ada's uncle taught Ada to sail."),
        ("I carry my inhaler and keep a spare one at work.", "Ada: I carry my inhaler and keep a spare one at work."),
        ("In 2019 I sold my bakery.", "In 2019 Ada sold their bakery."),
        ("Oh, by the way, I use fish, not bash.", "Ada uses fish, not bash."),
        ("i'd like to open a bookshop", "Ada would like to open a bookshop."),
        ("I ran the charity race on Saturday.", "Ada ran the charity race on Saturday (2024-04-27)."),
        # About the world of the speaker: as it stands.
        ("The deploy key is in 1Password.", "The deploy key is in 1Password."),
        ("Mia is allergic to hazelnuts.", "Mia is allergic to hazelnuts."),
        # Not certain: the speaker is quoted.
        ("We deploy on Thursdays now.", "Ada: We deploy on Thursdays now."),
        ("My wife and I own a vineyard.", "Ada: My wife and I own a vineyard."),
        ("I cook, sing and dance every weekend.", "Ada: I cook, sing and dance every weekend."),
        ("I like people who listen and laugh.", "Ada: I like people who listen and laugh."),
        ("I read two novels a week.", "Ada: I read two novels a week."),
        ("Moved to Bergen last week.", "Ada: Moved to Bergen last week (2024-04-22 to 2024-04-28)."),
        ("Me and my brother no longer work together.", "Ada: Me and my brother no longer work together."),
        # Standing instructions.
        ("Use uv instead of pip please.", "Ada: Use uv instead of pip please."),
        ("From now on, answer me in German.", "Ada: From now on, answer me in German."),
        ("Never book flights before nine.", "Ada: Never book flights before nine."),
        ("Remind me to water the ferns tomorrow.", "Ada: Remind me to water the ferns tomorrow (2024-05-02)."),
        ("Answer in French, please.", "Ada: Answer in French, please."),
        ("Make sure that you always run ruff first.", "Ada: Make sure that you always run ruff first."),
        ("Keep your replies brief.", "Ada: Keep your replies brief."),
        ("Whenever I paste a stack trace, explain it first.", "Ada: Whenever I paste a stack trace, explain it first."),
        ("No more small talk.", "Ada: No more small talk."),
        # Where things are, and what others do.
        ("Passwords live in Bitwarden.", "Passwords live in Bitwarden."),
        ("There's a ladder in the shed.", "There's a ladder in the shed."),
        ("Marta from accounting handles the invoices.", "Marta from accounting handles the invoices."),
        ("They promoted me to staff engineer.", "They promoted Ada to staff engineer."),
        # Never a broken sentence.
        ("Me no longer work there.", "Ada: Me no longer work there."),
        ("Sam and I live in Oslo.", "Ada: Sam and I live in Oslo."),
        ("I hope the tenants pay and don't ruin me.", "Ada: I hope the tenants pay and don't ruin me."),
        ("i live in oslo btw", "Ada lives in oslo btw."),
        # What is meant counts, not the lead.
        ("I think I'm allergic to nuts.", "Ada: I think I'm allergic to nuts."),
        ("Sorry, I was wrong: my birthday is on 5 May.", "Ada was wrong: their birthday is on 5 May."),
        ("I'm Dewi, nice to meet you.", "Ada: I'm Dewi, nice to meet you."),
        # Other languages: as they stand.
        ("Je déteste les olives.", "Ada: Je déteste les olives."),
        ("Mi hermana vive en Sevilla.", "Ada: Mi hermana vive en Sevilla."),
        ("Hytta vår ligger på Geilo.", "Ada: Hytta vår ligger på Geilo."),
        ("Abito a Torino con mio marito.", "Ada: Abito a Torino con mio marito."),
        ("Im Sommer bin ich in Kiel.", "Ada: Im Sommer bin ich in Kiel."),
        ("Я живу в Казани.", "Ada: Я живу в Казани."),
        ("저는 서울에 살아요.", "Ada: 저는 서울에 살아요."),
        ("Ninaishi Nairobi na nina watoto wawili.", "Ada: Ninaishi Nairobi na nina watoto wawili."),
        ("Ich wohne in Graz und habe zwei Hunde.", "Ada: Ich wohne in Graz und habe zwei Hunde."),
        ("Me gusta el té con limón.", "Ada: Me gusta el té con limón."),
        ("我住在北京，我有两只猫。", "Ada: 我住在北京，我有两只猫。"),
        ("Ich bin am 3. Mai 1990 geboren.", "Ada: Ich bin am 3. Mai 1990 geboren."),
        ("Ich wohne in der Goethestr. 12 in Graz.", "Ada: Ich wohne in der Goethestr. 12 in Graz."),
        ("Mi médica es la Dra. López.", "Ada: Mi médica es la Dra. López."),
        ("Si me tocara algo, viviría en Nueva York.", "Ada: Si me tocara algo, viviría en Nueva York."),
    ],
)
def test_a_sentence_becomes_a_memory(said: str, memory: str) -> None:
    assert memories(("user", said)) == [memory]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Hi there, good morning!", "small talk"),
        ("Hi! I'm Ada.", "small talk"),
        ("I am ada", "nothing new"),
        ("Thanks a lot, that helps!", "small talk"),
        ("I see.", "small talk"),
        ("I'm ready for the next step.", "small talk"),
        ("I'm ready to look at the slides.", "about the talk itself"),
        ("Let's start with the packing list.", "about the talk itself"),
        ("I've read your suggestions and tried two of them.", "about the talk itself"),
        ("That's what my cousin suggested.", "says nothing without what it points to"),
        ("¿Qué tiempo hace hoy?", "question"),
        ("What should I cook tonight?", "question"),
        ("is my flight on friday", "question"),
        ("how do i revert a commit", "question"),
        ("If I were rich, I would buy an island.", "hypothetical"),
        ("I want you to translate my CV.", "part of a task"),
        ("Write a poem in which I sail to Mars.", "part of a task"),
        ("Fix the bug in foo.py where the loop never ends.", "part of a task"),
        ("Refactor the part of the parser that always fails on empty lines.", "fragment"),
        ("Act as a pirate. I am the captain of your ship.", "part of a task"),
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
    Füge einen Knopf hinzu | arregla el parser | corrige les tests | bitte den Parser reparieren | My tests are failing.
    wogegen bin ich allergisch | à quoi je suis allergique | na co mam alergię | wanneer is mijn verjaardag | neye alerjim var
    Cześć, dzień dobry! | Jajaja, qué bueno. | Merci beaucoup, à demain ! | Escríbeme un poema corto sobre el mar.
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


def test_names_of_files_keep_their_letters() -> None:
    assert memories(("user", "pytest.ini is in the folder tests.")) == ["pytest.ini is in the folder tests."]


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


def test_what_was_said_already_is_not_kept_again() -> None:
    said = ("user", "I keep bees on the roof of my school in Leeds.")
    assert len(memories(said, ("assistant", "Nice."), said)) == 1


def test_facts_beside_a_question_or_a_task_are_kept() -> None:
    assert memories(("user", "I live in Oslo. Where can I rent skis?")) == ["Ada lives in Oslo."]
    assert memories(
        ("user", "Fix this: `for i in x`"), ("assistant", "Done."), ("user", "I'm on Python 3.9 at work.")
    ) == ["Ada is on Python 3.9 at work."]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("The tests run with make check. Please fix the parser.", ["The tests run with make check."]),
        ("Rework the exporter. Exports are written to out/csv.", ["Exports are written to out/csv."]),
        ("Every table has an owner in owners.toml. Drop the old ones.", ["Every table has an owner in owners.toml."]),
        ("This repo uses bun, so please update the lockfile.", ["This repo uses bun."]),
        ("The parser test fails again, fix it", []),
        ("The chart is upside down. Turn it around.", []),
        ("The queue is full; empty it.", []),
        ("The worker runs out of disk, raise the quota.", []),
        ("The deploy broke. Roll back the last change.", []),
        ("Scale the workers to six.", []),
        ("I prefer tabs. The menu flickers again, repair that.", ["Ada prefers tabs."]),
        ("Sam plays the cello, loves it.", ["Sam plays the cello, loves it."]),
        ("I collect stamps, sell them at fairs.", ["Ada: I collect stamps, sell them at fairs."]),
        ("Compose a ballad. The miller is poor and the winter is long.", []),
    ],
)
def test_beside_an_order_only_what_lasts_is_kept(said: str, kept: list[str]) -> None:
    assert memories(("user", said)) == kept


def test_a_fact_is_kept_in_the_midst_of_tasks() -> None:
    said = [("user", "Fix the failing test."), ("assistant", "Done."), ("user", "The bucket is called media-eu.")]
    assert memories(*said) == ["The bucket is called media-eu."]


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


@given(st.lists(texts.map(lambda text: text.replace("?", "") + "?"), max_size=4))
def test_no_memory_comes_from_a_single_question(asked: list[str]) -> None:
    for text in asked:
        if [one.end for one in sentences(text)] == ["?"]:
            assert memories(("user", text)) == []


def test_a_long_turn_gives_few_memories_in_linear_time() -> None:
    said = "".join(f"I bought {n} blue bicycles in town {n}. " for n in range(30))
    assert len(memories(("Mel", said))) == MOST_PER_TURN
    for hard in ("I " * 50_000, '"' * 100_000, "[(" * 50_000, "oh, well, " * 10_000, "I left yesterday " * 6_000):
        memories(("user", hard), ("Mel", hard))

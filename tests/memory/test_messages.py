"""Messages as people write them: several facts at once, a request beside, and an assistant that answers at length."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from evals import chats

from memory.world import ADA
from wellworn import Memory, Recall
from wellworn.ingest.statement import read
from wellworn.ingest.utterance import asks_assistant, only_asks

SAID_ASIDE = "Sounds good. Tell me if you want anything else."
LETTER = (
    "Dear Mr Brandt, I have paid the rent for the flat in your house for three years, and I work for my living at home. I ask you to "
    "repair the window of the room where I work now, which is cold. How much of the rent I pay I leave to you until then."
)


def chatted(mem: Memory, *exchanges: tuple[str, str]) -> None:
    """Each exchange in a session of its own, a month apart."""
    for number, (said, answer) in enumerate(exchanges):
        session, at = (
            mem.session(f"s{number}", scope=ADA),
            datetime(2026, 1, 5, tzinfo=UTC) + timedelta(days=30 * number),
        )
        session.add("user", said, at=at)
        session.add("assistant", answer, at=at + timedelta(minutes=1))
        session.end(wait=10)


def asked(question: str, *said: str, answer: str = SAID_ASIDE) -> Recall:
    with Memory(":memory:", learning="off") as mem:
        chatted(mem, *((one, answer) for one in said))
        return mem.recall(question, scope=ADA, k=5)


@pytest.mark.parametrize(
    ("old", "new", "question", "now"),
    [
        (
            "The bike is at the shop until May. My way to the office is tram 4, half an hour. What could I listen to?",
            "Mia is three now! I cycle to work along the canal these days, 20 minutes. Any gift for a girl of three?",
            "How do I get to the office?",
            "canal",
        ),
        (
            "Rent for the flat is 640, and the boiler is broken again. Could you word a mail to the landlord?",
            "We had a party on Friday. The flat is 710 a month since June. How do I split that with two people?",
            "How much is my rent?",
            "710",
        ),
        (
            "My dentist is Dr Weiss and she is strict. Give me a plan for a toothache?",
            "The trip was lovely. Dr Weiss retired, so I had my teeth done by Dr Okafor. What should I ask him?",
            "Who is my dentist?",
            "Okafor",
        ),
        (
            "i use trello for my todos, its ok. can you draft a note to the team?",
            "long day. i moved all my todos to notion. what should i cook tonight?",
            "which app do i use for my todos",
            "notion",
        ),
        (
            "I take metformin, 500 mg, for my sugar. The dog is fine. What can I eat for breakfast?",
            "The choir was lovely. My doctor put me on empagliflozin instead. Which songs suit a small choir?",
            "Which medicine do I take?",
            "empagliflozin",
        ),
    ],
)
def test_of_several_facts_in_a_message_the_one_asked_for_is_compared(
    old: str, new: str, question: str, now: str
) -> None:
    assert now in asked(question, old, new)[0].text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Where do I work?", "Write a letter to my landlord. I work for the museum in Graz."),
        ("How much rent do I pay?", "Write a letter to my landlord about the window. He gets 640 from me each month."),
        ("what do i do for a living", "Write a letter to my landlord. I'm a nurse, so nights are short."),
    ],
)
def test_a_letter_that_the_assistant_wrote_does_not_tell_of_oneself(question: str, said: str) -> None:
    assert asked(question, said, answer=LETTER)[0].text == said


@pytest.mark.parametrize(
    "question",
    [
        "What did you suggest for the soup?",
        "which herb did u say goes into the soup",
        "What was your idea for the soup?",
    ],
)
def test_asked_for_what_the_assistant_said_its_answer_comes_first(question: str) -> None:
    answer = "Put lovage and a little lemon into it, and let it simmer for twenty minutes."
    with Memory(":memory:", learning="off") as mem:
        chatted(
            mem, ("I'm making potato soup again, the soup of my aunt.", answer), ("My soup was a success.", SAID_ASIDE)
        )
        assert "lovage" in mem.recall(question, scope=ADA)[0].text


def test_asked_for_what_the_assistant_said_that_comes_first() -> None:
    with Memory(":memory:", learning="off") as mem:
        chatted(mem, ("Why were the labels printed twice?", "The watchdog reset the hub."), ("I see.", SAID_ASIDE))
        assert "watchdog" in mem.recall("What did you find out about the labels?", scope=ADA)[0].text


@pytest.mark.parametrize(
    ("question", "of_assistant"),
    [
        *((one, True) for one in ("What did you recommend for my back?", "the wine you named last time")),
        *((one, True) for one in ("how long did u say the rice needs", "What was your advice about the loan?")),
        *(
            (one, True)
            for one in ("Welche Säge hast du empfohlen?", "¿Qué vino recomendaste?", "Quel vin as-tu conseillé ?")
        ),
        *((one, False) for one in ("Hast du gesehen, wo ich wohne?", "¿Dónde vivo?", "Was habe ich dir gesagt?")),
        *((one, False) for one in ("Do you know where I live?", "Do you remember what I told you about my knee?")),
        *((one, False) for one in ("Have I told you who my dentist is?", "What have I said about your prices?")),
        *((one, False) for one in ("what have you stored about my diet", "Did you already know my job?")),
        *((one, False) for one in ("Did you know that I moved?", "Where did you and I meet?")),
    ],
)
def test_what_the_assistant_said_is_asked_for_by_name(question: str, of_assistant: bool) -> None:
    assert asks_assistant(question) is of_assistant


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        *((one, True) for one in ("what hours does Julie work", "who on the team does the servers")),
        *((one, True) for one in ("wheres mum working at the moment", "how many of us are in the choir")),
        *((one, True) for one in ("what can Simone not eat", "what food is bad for my old flatmate")),
        *((one, True) for one in ("on which days do I work from home", "whats devons last name")),
        *((one, False) for one in ("what I can do is wait", "whats more I moved to Rome", "For which I am the lead")),
        *((one, False) for one in ("When Anna does yoga I go for a run", "How much Tom earns is 4000")),
        *((one, False) for one in ("What the doctor did was put me on insulin", "what matters to me is quiet")),
        *((one, False) for one in ("Who would have thought, I got the job", "in which case we will move to Graz")),
    ],
)
def test_a_question_is_one_without_its_sign(said: str, asks: bool) -> None:
    assert only_asks(said) is asks


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("I sold the car. Which bike should I buy?", ["I sold the car"]),
        (
            "thanks! i live in york now, and my rent is 600. write me a poem",
            ["thanks", "i live in york now", "my rent is 600"],
        ),
        ("Where do I live?", ["Where do I live?"]),
        ("What matters is quiet. Also we moved.", ["What matters is quiet", "we moved."]),
        ("I live in Graz.", ["I live in Graz."]),
    ],
)
def test_the_parts_that_tell_something(message: str, told: list[str]) -> None:
    assert [part.text for part in read(message).telling] == told


def test_a_newer_message_about_something_else_does_not_come_first() -> None:
    found = asked(
        "What is the budget for the wedding?",
        "The budget for the wedding is 30,000, my parents pay half. Which month is best?",
        "The budget for the kitchen is 9,000 euros. Where could I find cheap tiles?",
    )
    assert "wedding" in found[0].text


@pytest.mark.slow
@pytest.mark.parametrize(("read_by_model", "least"), [(False, (38, 73, 21.5)), (True, (57, 83, 8.5))])
def test_chats_as_people_type_them(read_by_model: bool, least: tuple[float, float, float]) -> None:
    """Before parts were compared and it counted who said it: 34, 67 and 23; and 48, 79 and 14 of those that a model read."""
    rows = {row[0]: row[1:] for row in chats.run("tune", embedder="reader", read=read_by_model).tables[0].rows}
    first, five, outdated, _ = (figure.mean for figure in rows["all"])
    assert (first >= least[0], five >= least[1], outdated <= least[2]) == (True, True, True)

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


@pytest.mark.parametrize(
    ("question", "of_assistant"),
    [
        ("What did you recommend for my back?", True),
        ("the wine you named last time", True),
        ("how long did u say the rice needs", True),
        ("What was your advice about the loan?", True),
        ("Which caves have you listed?", True),
        ("Do you know where I live?", False),
        ("Can you tell me my boss's name?", False),
        ("Do you remember what I told you about my knee?", False),
        ("Have I told you who my dentist is?", False),
        ("Did you know that I moved?", False),
        ("What have I said about your prices?", False),
        ("Who is your favourite of my cats?", False),
        ("what have you stored about my diet", False),
        ("Did you already know my job?", False),
        ("Where did you and I meet?", False),
    ],
)
def test_what_the_assistant_said_is_asked_for_by_name(question: str, of_assistant: bool) -> None:
    assert asks_assistant(question) is of_assistant


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ("what hours does Julie work", True),
        ("who on the team does the servers", True),
        ("whats devons last name", True),
        ("wheres mum working at the moment", True),
        ("how many of us are in the choir", True),
        ("what can Simone not eat", True),
        ("what food is bad for my old flatmate", True),
        ("on which days do I work from home", True),
        ("what I can do is wait", False),
        ("whats more I moved to Rome", False),
        ("When Anna does yoga I go for a run", False),
        ("What the doctor did was put me on insulin", False),
        ("How much Tom earns is 4000", False),
        ("Who would have thought, I got the job", False),
        ("what matters to me is quiet", False),
        ("For which I am the lead", False),
        ("whatever works for Julie works for me", False),
        ("in which case we will move to Graz", False),
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
def test_chats_as_people_type_them() -> None:
    """Before parts were compared and it counted who said it: 34, 67 and 23."""
    rows = {row[0]: row[1:] for row in chats.run("tune", embedder="static").tables[0].rows}
    first, five, outdated, _ = (figure.mean for figure in rows["all"])
    assert (first >= 38, five >= 73, outdated <= 21.5) == (True, True, True)


@pytest.mark.slow
def test_chats_that_a_model_has_read() -> None:
    """Before what it wrote down came first, and with the prompts of then: 48, 79 and 14."""
    rows = {row[0]: row[1:] for row in chats.run("tune", embedder="static", read=True).tables[0].rows}
    first, five, outdated, _ = (figure.mean for figure in rows["all"])
    assert (first >= 57, five >= 83, outdated <= 8.5) == (True, True, True)

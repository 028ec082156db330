"""What yields no memory: chatter, questions, requests, hypotheses, play, quotations, other people's news."""

from __future__ import annotations

import pytest

from wellworn.reflection.rules import extract

from .dialogue import dialogue

NOTHING = [
    "Hello!",
    "Hi there, good morning!",
    "Thanks a lot, that helps!",
    "Great, sounds good!",
    "Okay.",
    "...",
    "I see.",
    "I understand, thank you.",
    "I agree completely.",
    "I guess so.",
    "Haha, I know right!",
    "I'm sorry.",
    "I'm fine, thanks.",
    "I can't wait!",
    "I hope you are well.",
    "See you tomorrow!",
    "Good night, talk to you soon.",
    "How are you?",
    "What should I cook tonight?",
    "Is my flight on Friday?",
    "what is the process i have to follow for my visa",
    "Can you tell me a joke about my cat?",
    "Could we make it shorter?",
    "Let me know when you are ready.",
    "I want you to translate my CV.",
    "I need you to fix the bug in line 3.",
    "Explain how I can compute a derivative.",
    "Give me ten names for my bakery.",
    "Write a poem in which I sail to Mars.",
    "If I were rich, I would buy an island.",
    "I wish I had a boat.",
    "Suppose I own a vineyard in Spain.",
    "Imagine we lived on the moon.",
    "Act as a pirate. I am the captain of your ship.",
    "Pretend that I am your teacher.",
    "You are a travel agent. I want a cheap flight.",
    "As an AI, I have no feelings about my work.",
    "It took me a year.",
    "She gave me a book about bees.",
    "The stock market fell by three percent yesterday.",
    "The president visited Ghana last week.",
    "```python\nmy_name = 'I live in Oslo'\n```",
    "> I live in Oslo with my cat.",
    "Dear Sir, I write to complain about my flat.",
    "0:01 Hey there, my name is Raman and I love charts.",
    'Rewrite this in my voice: "I adore the quiet of my cabin in the woods and I never leave it."',
    '<memories note="x">\n[0] (fact) I live in Oslo.\n</memories>',
    "Ich wohne in Berlin und habe zwei Katzen.",
    "I ragazzi sono andati al mare con la famiglia.",
    "Me gusta mucho el chocolate con churros.",
    "J'habite à Lyon depuis 2010.",
    "我住在北京，我有两只猫。",
    "",
    "   \n\t ",
]


@pytest.mark.parametrize("said", NOTHING)
def test_this_yields_nothing(said: str) -> None:
    assert extract(dialogue(("user", said)), user="Ada") == []


@pytest.mark.parametrize("role", ["system", "tool", "function", "developer", "System"])
def test_nobody_is_heard_in_these_roles(role: str) -> None:
    assert extract(dialogue((role.lower(), "I live in Oslo with my cat."))) == []


def test_an_assistant_alone_is_not_heard() -> None:
    plan = "Here is the plan:\n" + "".join(f"{n}. **Step {n}**: do it\n" for n in range(1, 15))
    assert extract(dialogue(("assistant", "I live in the cloud and I love your garden."))) == []
    assert extract(dialogue(("user", "Make me a training plan."), ("assistant", plan))) == []


def test_no_turns_no_memories() -> None:
    assert extract([]) == []


def test_a_task_about_others_yields_nothing_though_it_says_we() -> None:
    turns = dialogue(
        ("user", "Write a post for us. We are a locksmith in Omaha and our keyword is lockout service."),
        ("assistant", "Locked out? We are here, day and night."),
        ("user", "make it shorter"),
        ("assistant", "Locked out? Call us."),
    )
    assert extract(turns) == []

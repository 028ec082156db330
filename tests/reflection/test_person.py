"""Sentences about the speaker by name, and where that is not tried."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.reflection.labels import about_speaker


@pytest.mark.parametrize(
    ("said", "about"),
    [
        ("I study marine biology", "Ben studies marine biology"),
        ("I usually wake up at five", "Ben usually wakes up at five"),
        ("I have a cat and a dog", "Ben has a cat and a dog"),
        ("I can swim and dive", "Ben can swim and dive"),
        ("I'll call my sister", "Ben will call their sister"),
        ("I'd rather walk", "Ben would rather walk"),
        ("My boss gave me a raise", "Ben's boss gave Ben a raise"),
        ("I paid them and they fixed my roof", "Ben paid them and they fixed Ben's roof"),
        ("The dog bit me", "The dog bit Ben"),
        ("The key is in the drawer", "The key is in the drawer"),
    ],
)
def test_certain_sentences_are_rewritten(said: str, about: str) -> None:
    assert about_speaker(said, "Ben") == about


@pytest.mark.parametrize(
    "said",
    [
        "I put it there",
        "I was late, so I took a taxi",
        "I do yoga and go climbing",
        "I hope the agents understand and don't leave me",
        "I'd that feeling",
        "My wife and I live here",
        "I told you so",
        "We moved",
        "That car is mine",
        "I myself agree",
        "I wanna go",
        'I said "no"',
        "I love tall and slim trees",
        "I want to eat and sleep",
        "I paint, sing and dance",
        "I finished the podcast 'How I Built This'",
        "My friend, this works",
        "So do I",
        "I",
        "Neither he nor I",
    ],
)
def test_uncertain_sentences_are_left_alone(said: str) -> None:
    assert about_speaker(said, "Ben") is None


@given(st.text(max_size=200))
def test_any_text_is_rewritten_or_left_alone(text: str) -> None:
    about = about_speaker(text, "Ben")
    assert about is None or isinstance(about, str)

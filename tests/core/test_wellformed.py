from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wellworn.core.wellformed import well_formed


@given(st.text())  # without surrogates
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert well_formed(text) == text


@given(st.text(st.characters(categories=["L", "Cs"])))
def test_the_result_can_always_be_encoded(text: str) -> None:
    well_formed(text).encode()


def test_pairs_are_joined_and_lone_halves_replaced() -> None:
    assert well_formed("a\ud83d\ude00b") == "a😀b"
    assert well_formed("a\ud83db") == "a�b"

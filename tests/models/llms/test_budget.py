from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellworn.core.errors import BudgetExceeded, InvalidInput
from wellworn.models.llms.budget import SPANS, Budget, Cost, Span
from wellworn.models.llms.count import input_tokens, most_input_tokens
from wellworn.testing.models import make_request

NOTHING = Cost(tokens=0, usd=0.0)


def spent(**given: Cost) -> Any:
    def tell(span: Span) -> Cost:
        return given.get(span, NOTHING)

    return tell


def test_without_caps_everything_is_allowed_and_nothing_is_added_up() -> None:
    def unwilling(span: Span) -> Cost:
        raise AssertionError(f"asked for {span}")

    Budget().check(Cost(tokens=10**9, usd=1e6), unwilling)
    Budget(per_call_usd=1.0).check(Cost(tokens=10**9, usd=1.0), unwilling)


@pytest.mark.parametrize("name", [field.name for field in fields(Budget)])
def test_every_cap_holds_and_says_so(name: str) -> None:
    span = name.split("_")[1]
    budget = Budget(**{name: 100})
    already = {} if span == "call" else {span: Cost(tokens=40, usd=40.0)}
    most = 100 if span == "call" else 60
    budget.check(Cost(tokens=most, usd=float(most)), spent(**already))
    with pytest.raises(BudgetExceeded) as caught:
        budget.check(Cost(tokens=most + 1, usd=most + 1.0), spent(**already))
    error = caught.value
    assert (error.cap, error.limit, error.spent, error.wanted) == (name, 100, 100 - most, most + 1)
    assert name in str(error)
    assert "100" in str(error)
    assert "raise the cap" in str(error)
    other = {other: Cost(tokens=10**9, usd=1e9) for other in SPANS if other != span}
    budget.check(Cost(tokens=most, usd=float(most)), spent(**already, **other))


def test_a_cap_of_nothing_lets_free_models_through() -> None:
    budget = Budget(per_day_usd=0)
    budget.check(Cost(tokens=1000, usd=0.0), spent())
    with pytest.raises(BudgetExceeded):
        budget.check(Cost(tokens=1, usd=1e-9), spent())


@pytest.mark.parametrize("cap", [-1, -0.5, float("nan"), "5", True])
def test_a_cap_that_is_none_is_refused(cap: Any) -> None:
    with pytest.raises(InvalidInput, match="per_day_usd"):
        Budget(per_day_usd=cap)


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), max_size=20), st.integers(0, 200))
def test_what_is_let_through_never_passes_the_cap(wants: list[int], cap: int) -> None:
    budget, total = Budget(per_tenant_tokens=cap), 0
    for want in wants:
        try:
            budget.check(Cost(tokens=want, usd=0.0), spent(tenant=Cost(tokens=total, usd=0.0)))
        except BudgetExceeded:
            assert total + want > cap
        else:
            total += want
        assert total <= cap


def test_the_prompt_is_counted_with_a_margin_and_its_schema() -> None:
    request = make_request("four words are here")
    assert input_tokens(request) == 8
    assert most_input_tokens(request) == 12
    assert input_tokens(make_request("four words are here", schema={"type": "object"})) > 8

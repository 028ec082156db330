"""How strategies are kept: domains as tags, origins as metadata, partitions by scope."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn import Entry, InvalidInput, Scope
from wellworn.core.values import Partition
from wellworn.ingest.validate import check
from wellworn.tasks.items import (
    NewItem,
    Origin,
    bank_partition,
    checked_domain,
    domain_of,
    domain_tags,
    draft_of,
    kinds_of,
    stage_of,
    wanted_tags,
)


def within(domain: str, pattern: str | None) -> bool:
    wanted = wanted_tags(pattern)
    return not wanted or wanted[0] in domain_tags(domain)


NOW = datetime(2026, 5, 1, tzinfo=UTC)
PARTS = st.lists(st.text("abcdef0-_", min_size=1, max_size=5), min_size=1, max_size=8)


def an_entry(**fields: object) -> Entry:
    partition = Partition(tenant="acme", layer="agent", layer_id="a1")
    values = {"kind": "strategy", "text": "x", "at": NOW, "created_at": NOW, "updated_at": NOW, "valid_from": NOW}
    return Entry(id="e1", partition=partition, **{**values, **fields})  # type: ignore[arg-type]  # any field of it


@given(PARTS)
def test_a_domain_is_found_by_itself_and_by_each_of_its_prefixes(parts: list[str]) -> None:
    domain = ".".join(parts)
    for n in range(1, len(parts) + 1):
        assert within(domain, ".".join(parts[:n]) + ".*")
        assert within(domain, ".".join(parts[:n])) == (n == len(parts))
    assert within(domain, None)
    assert domain_of(domain_tags(domain)) == domain


def test_a_prefix_ends_at_a_dot() -> None:
    assert not within("webshop.admin", "web.*")
    assert within("web", "web.*")
    assert not within("web", "web.admin.*")


def test_domains_are_in_lower_case_and_may_be_empty() -> None:
    assert checked_domain(" Web.Admin ") == "web.admin"
    assert domain_tags("") == []
    assert wanted_tags("*") == wanted_tags("") == wanted_tags(None) == []


@pytest.mark.parametrize("bad", ["web..admin", "web.", "a b", "web.*", "x" * 200, ".".join("abcdefghi")])
def test_what_is_not_a_domain_is_refused_with_a_remedy(bad: str) -> None:
    with pytest.raises(InvalidInput, match=r"web\.admin"):
        checked_domain(bad)


def test_what_is_not_text_is_no_domain() -> None:
    with pytest.raises(InvalidInput, match="must be text"):
        wanted_tags(7)  # type: ignore[arg-type]


def test_items_live_with_the_agent_else_at_home() -> None:
    assert bank_partition(Scope(tenant="acme", agent="a1", user="ada")).layer == "agent"
    assert bank_partition(Scope(tenant="acme", user="ada", team="t")).layer == "user"


def test_an_item_becomes_an_entry_that_tells_its_origin() -> None:
    item = NewItem(kind="guardrail", title="No retries", advice="Do not retry.", evidence="429")
    origin = Origin(task="t1", agent="a1", outcome="failure", by="rules")
    draft = draft_of(item, origin, domain="web.admin", layer="agent", trusted=True)
    checked = check(draft, Scope(tenant="acme", agent="a1"), NOW)
    assert checked.metadata["origin"] == {"task": "t1", "agent": "a1", "outcome": "failure", "by": "rules"}
    assert (checked.confidence, checked.evidence, checked.source) == (0.5, "429", "task")
    assert checked.tags == ["domain:web.admin", "domain:web.admin.*", "domain:web.*"]


def test_kinds_of_items() -> None:
    assert kinds_of(None) == ["strategy", "guardrail"]
    assert kinds_of("guardrail") == ["guardrail"]


def test_an_item_goes_through_its_stages() -> None:
    assert stage_of(an_entry()) == "stored"
    assert stage_of(an_entry(usage_count=1)) == "retrieved"
    assert stage_of(an_entry(usage_count=1, failure_count=1)) == "reinforced"
    assert stage_of(an_entry(state="pruned")) == "pruned"

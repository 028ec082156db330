"""Whose a recall, a job and what was learned are: nobody reaches a neighbour's, and nobody learns that it exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.world import ADA, BEN, FOREIGN_ADA, OpenMemory
from wellworn import Memory, NotFound, Scope, ScopeError

TEAM = Scope(tenant="acme", team="core")
ADA_AND_TEAM = Scope(tenant="acme", user="ada", team="core")


def recalled(mem: Memory, scope: Scope) -> str:
    mem.remember("Tea is in the left cupboard.", scope=scope)
    return mem.recall("Where is the tea?", scope=scope).id


def not_found(mem: Memory, recall_id: str, scope: Scope | None = None) -> str:
    """What the refusal says, with the id left out."""
    with pytest.raises(NotFound) as error:
        mem.outcome(recall_id, cited=[0], scope=scope)
    return str(error.value).replace(recall_id, "ID")


@pytest.mark.parametrize("stranger", [BEN, FOREIGN_ADA, TEAM], ids=["another user", "another tenant", "the team"])
def test_a_neighbours_recall_is_refused_as_if_it_did_not_exist(mem: Memory, stranger: Scope) -> None:
    recall_id = recalled(mem, ADA)
    missing = "00000000-0000-7000-8000-000000000000"
    assert not_found(mem, recall_id, stranger) == not_found(mem, missing, stranger)
    bound = mem.for_scope(stranger)
    assert not_found(bound, recall_id) == not_found(bound, missing)
    (entry,) = mem.entries(scope=ADA)
    assert entry.usage_count == 0
    assert mem.outcome(recall_id, cited=[0], scope=ADA)


def test_a_recall_of_a_layer_that_the_scope_sees_may_be_reported(mem: Memory) -> None:
    assert mem.outcome(recalled(mem, TEAM), cited=[0], scope=ADA_AND_TEAM)
    assert mem.for_scope(ADA_AND_TEAM).outcome(mem.recall("tea", scope=ADA).id, ignored=True)


def test_without_a_scope_only_tenants_that_were_recalled_for_are_reached(opened: OpenMemory, path: Path) -> None:
    ours, theirs = opened(path), opened(path)
    recall_id, foreign_id = recalled(ours, ADA), recalled(theirs, FOREIGN_ADA)
    theirs.engine.learner.log.flush()
    missing = "00000000-0000-7000-8000-000000000000"
    assert not_found(ours, foreign_id) == not_found(ours, missing)
    assert ours.outcome(recall_id, cited=[0])


def test_without_a_scope_and_recalls_only_the_one_tenant_is_meant(opened: OpenMemory, path: Path) -> None:
    first = opened(path)
    recall_id = recalled(first, ADA)
    first.engine.learner.log.flush()
    assert opened(path).outcome(recall_id, cited=[0])
    first.remember("A second tenant.", scope=FOREIGN_ADA)
    for given in (recall_id, "no-such-recall"):
        with pytest.raises(ScopeError, match=r"several tenants .*scope="):
            opened(path).outcome(given, ignored=True)


def test_jobs_of_another_tenant_are_neither_listed_nor_retried(opened: OpenMemory) -> None:
    mem = opened(background=False)
    session = mem.session("monday", scope=ADA)
    session.add("user", "I moved to Lisbon.")
    session.end()
    (job,) = mem.jobs.list(scope=ADA)
    assert mem.jobs.list(scope=FOREIGN_ADA) == []
    assert mem.jobs.retry(scope=FOREIGN_ADA) == 0
    said = []
    for given in (job.id, "no-such-job"):
        with pytest.raises(NotFound) as error:
            mem.jobs.retry(given, scope=FOREIGN_ADA)
        said.append(str(error.value).replace(given, "ID"))
    assert said[0] == said[1]
    assert mem.jobs.run(scope=FOREIGN_ADA) == 0
    assert [one.state for one in mem.jobs.list(scope=ADA)] == ["queued"]
    assert mem.for_scope(ADA).jobs.run() == 1


def test_a_reset_is_of_the_tenant_and_needs_a_scope(mem: Memory) -> None:
    for scope in (ADA, FOREIGN_ADA):
        mem.remember_many([f"Note {n} about tea." for n in range(8)], scope=scope)
        mem.outcome(mem.recall("tea", scope=scope).id, cited=[1], scope=scope)
    with pytest.raises(ScopeError, match="scope"):
        mem.learning.reset()
    with pytest.raises(ScopeError, match="bound"):
        mem.for_scope(ADA).learning.reset(scope=FOREIGN_ADA)
    theirs = mem.learning.export(scope=FOREIGN_ADA)
    assert mem.learning.reset(scope=ADA) > 0
    assert mem.learning.status(scope=ADA).outcomes == 0
    assert mem.learning.export(scope=FOREIGN_ADA) == theirs

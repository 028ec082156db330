"""Both halves of learning as one: which entries are worth showing (`learning`), and how to find them (`searches`).

An outcome teaches both in one transaction, so neither can be ahead of the other, and both are saved as one state.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from wellworn.core.clock import Clock
from wellworn.core.errors import InvalidInput
from wellworn.core.values import LearningStatus, Partition
from wellworn.learning.learner import Labelled, Learner
from wellworn.learning.outcome import OutcomeInput
from wellworn.search.steps.searches import Searches
from wellworn.search.steps.teaching import Teacher
from wellworn.search.steps.trainer import PROFILE, dumps, loads
from wellworn.store.port import Store


class CombinedMemoryTrainer:
    """Tells outcomes to both, saves and loads both."""

    def __init__(self, store: Store, learner: Learner, searches: Searches | None, *, clock: Clock) -> None:
        """Without `searches` only entries are learned about."""
        self._store = store
        self._learner = learner
        self._searches = searches
        self._teacher = Teacher(store, clock=clock) if searches is None else searches.teacher

    def outcome(self, recall_id: str, told: OutcomeInput, *, tenant: str | None) -> bool:
        """Append an outcome to the log and learn from it; False when one of this kind was told before."""
        query = self._learner.prepare(recall_id, told)
        with self._store.transact() as tx:
            counts, written = self._learner.outcome_in(tx, recall_id, told, tenant=tenant, query=query)
            if counts and self._searches is not None:
                self._searches.told(tx, recall_id, told)
        written()
        return counts

    def relearn(self, tenant: str, labelled: Labelled | None = None, *, whole: bool = False) -> None:
        """Learn the tenant's log anew, both halves; see `Learner.relearn`."""
        self._learner.relearn(tenant, labelled, whole=whole)
        self._teacher.relearn(tenant)

    def share(self, tenant: str, on: bool) -> None:
        """Switch whether a tenant's people learn from each other; both halves are learned anew with it."""
        self._learner.share(tenant, on)
        self._teacher.relearn(tenant)

    def status(self, home: Partition, threshold: float) -> LearningStatus:
        """How far both have come; `threshold` is that of the settings."""
        found = self._learner.status(home)
        searches = () if self._searches is None else self._teacher.status(home, threshold)
        return replace(found, searches=searches)

    def save(self, home: Partition) -> dict[str, Any]:
        """What was learned for a tenant and a home, as JSON: numbers and names of plans, no text."""
        of_all, own = self._store.policies(home, profile=PROFILE)
        found = own or of_all
        return {**self._learner.export(home), "searches": None if found is None else json.loads(found)}

    def load(self, home: Partition, state: dict[str, Any]) -> None:
        """Put a saved state in the place of what was learned; parts that it does not have stay as they are."""
        searches = state.get("searches")
        policy = loads(json.dumps(searches), seed=-1) if searches is not None else None
        if policy is not None and policy.seed == -1:
            raise InvalidInput("state", "its searches cannot be read", "give what `export_learning` returned")
        with self._store.transact() as tx:
            self._learner.load_in(tx, home, state)
            if policy is not None:
                here = replace(policy, practised_after=0)  # outcomes are counted otherwise here
                tx.put_policy(home.tenant, None, dumps(here), profile=PROFILE)

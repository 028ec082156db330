"""Both halves of learning as one: which entries are worth showing (`learning`), and how to find them (`searches`).

An outcome teaches both in one transaction, so neither can be ahead of the other, and both are saved as one state.
"""

from __future__ import annotations

import json
from typing import Any

from recollect.errors import InvalidInput
from recollect.learning.learner import Learner
from recollect.learning.told import Told
from recollect.recursive.searches import Searches
from recollect.recursive.trainer import PROFILE, dumps, loads
from recollect.stores.base import Store
from recollect.types import Shelf


class CombinedMemoryTrainer:
    """Tells outcomes to both, saves and loads both."""

    def __init__(self, store: Store, learner: Learner, searches: Searches | None) -> None:
        """Without `searches` only entries are learned about."""
        self._store = store
        self._learner = learner
        self._searches = searches

    def outcome(self, recall_id: str, told: Told, *, tenant: str | None) -> bool:
        """Append an outcome to the log and learn from it; False when one of this kind was told before."""
        with self._learner.ready(recall_id, told), self._store.transact() as tx:
            counts, written = self._learner.outcome_in(tx, recall_id, told, tenant=tenant)
            if counts and self._searches is not None:
                self._searches.told(tx, recall_id, told)
        written()
        return counts

    def save(self, home: Shelf) -> dict[str, Any]:
        """What was learned for a tenant and a home, as JSON: numbers and names of plans, no text."""
        of_all, own = self._store.policies(home, profile=PROFILE)
        found = own or of_all
        return {**self._learner.export(home), "searches": None if found is None else json.loads(found)}

    def load(self, home: Shelf, state: dict[str, Any]) -> None:
        """Put a saved state in the place of what was learned; parts that it does not have stay as they are."""
        searches = state.get("searches")
        policy = loads(json.dumps(searches), seed=-1) if searches is not None else None
        if policy is not None and policy.seed == -1:
            raise InvalidInput("state", "its searches cannot be read", "give what `export_learning` returned")
        with self._store.transact() as tx:
            self._learner.load_in(tx, home, state)
            if policy is not None:
                tx.put_policy(home.tenant, None, dumps(policy), profile=PROFILE)

"""What learning keeps in a store, and has at hand: states by tenant and partition, settings, the log of recalls.

Knows how states are read and where they begin. Does not know how they are learned or what they serve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from wellworn.core.clock import Clock, aware
from wellworn.core.values import Partition
from wellworn.learning.echoes import Echoes
from wellworn.learning.example import Example, example_of
from wellworn.learning.log import RecallLog
from wellworn.learning.policy import Person, Prior
from wellworn.learning.serving import Serving
from wellworn.learning.state import loads_person, loads_prior
from wellworn.learning.tenant import PROFILE as SETTLED
from wellworn.learning.tenant import Tenant, dumps_tenant, loads_tenant
from wellworn.learning.tune import Tuner
from wellworn.store.port import LoggedOutcome, LoggedRecall, Store, Tx

TEACHES = ("cited", "ignored", "refined")
"""Kinds of outcome that say which of the shown were useful; asking anew says that none was. `used` does not say which:
credited to all that was shown, it rewards being shown (measured: Recall@5 23.1 to 16.3 with `reasoningbank`)."""
PAGE = 500
"""Outcomes read at a time, and states of a kind kept at hand."""

K = TypeVar("K")
V = TypeVar("V")


class States:
    """The states of one profile in a store. `names` are the features that recalls are logged with."""

    teaches: tuple[str, ...] = TEACHES

    def __init__(
        self,
        store: Store,
        *,
        mode: str,
        names: Sequence[str],
        clock: Clock,
        profile: str = "default",
        start: Prior | None = None,
        log: RecallLog | None = None,
        tuner: Tuner | None = None,
    ) -> None:
        """`start` is the prior of tenants who have none of their own yet; `log` is one to share with another learner
        of the same store, so that either is told of the recalls of both; `tuner` needs an embedder."""
        self._tuner = tuner
        self._tuned = f"{profile}/residual"
        self._start = start or Prior()
        self._profile = profile
        self._store = store
        self._mode = mode
        self._names = list(names)
        self._clock = aware(clock)
        self._log = log or RecallLog(store)
        # What states were read last, each with its text: most are read again as they were.
        self._priors: dict[str, tuple[str | None, Prior]] = {}
        self._people: dict[Partition, tuple[str | None, Person | None]] = {}
        self._serving: dict[Partition, tuple[Prior, Person | None, Serving]] = {}
        self._echoes: dict[Partition, tuple[Person, Echoes]] = {}

    @property
    def mode(self) -> str:
        return self._mode

    @property
    def log(self) -> RecallLog:
        return self._log

    @property
    def names(self) -> list[str]:
        return self._names

    def close(self) -> None:
        self._log.close()

    # -- the log -------------------------------------------------------------------------------------------------

    def record(self, recall: LoggedRecall, *, new: bool) -> None:
        """Log a recall; it reaches the store in the background. `new`: its partition was not there when it was made."""
        self._log.add(recall, new=new)

    def forget(self, nos: Iterable[int]) -> None:
        """Rows are gone: what is on its way to the log must not name them, nor is any question about them kept."""
        self._echoes.clear()
        self._serving.clear()
        self._log.forget(nos)

    def write_pending(self, tx: Tx) -> Callable[[], None]:
        """Put logged recalls that are still on their way into a transaction; see `RecallLog.write`."""
        return self._log.write(tx)

    def _told(self, tenant: str, partition: Partition | None = None, after: int = 0) -> Iterator[LoggedOutcome]:
        """Every outcome that teaches, in order."""
        while page := self._store.outcomes(tenant, partition=partition, after=after, limit=PAGE):
            after = page[-1].no
            yield from (one for one in page if one.kind in self.teaches)

    def _logged(
        self, tenant: str, partition: Partition | None = None, after: int = 0
    ) -> Iterator[tuple[LoggedOutcome, Example]]:
        """Every outcome with what it teaches today: forgotten entries are left out."""
        for one in self._told(tenant, partition, after):
            alive = self._store.alive(one.recall.nos)
            example = self._example(one.recall, set(one.value.get("nos", ())), alive)
            if example is not None:
                yield one, example

    def _past(self, partition: Partition, since: int) -> Iterator[Example]:
        """A person's examples as committed: without the one that is being told."""
        return (example for _, example in self._logged(partition.tenant, partition, since))

    def _example(self, recall: LoggedRecall, cited: set[int], alive: set[int]) -> Example | None:
        """What a recall teaches; None when another profile or other features ranked it, or nothing of it is left."""
        return example_of(recall, cited, alive) if self._ours(recall) else None

    def _ours(self, recall: LoggedRecall) -> bool:
        return recall.profile == self._profile and recall.names == self._names

    # -- states --------------------------------------------------------------------------------------------------

    def _prior(self, tenant: str) -> Prior:
        return self._prior_in(tenant, self._store.policy(tenant, None, profile=self._profile))

    def _prior_in(self, tenant: str, text: str | None) -> Prior:
        """The prior kept in this text, or the one to start with."""
        held = self._priors.get(tenant)
        if held is None or held[0] != text:
            fresh = text is None and self._start.ranker is not None
            held = (text, self._begin(self._settled(tenant)) if fresh else loads_prior(text, self._names))
            keep(self._priors, tenant, held)
        return held[1]

    def _settled(self, tenant: str) -> Tenant:
        return loads_tenant(self._store.policy(tenant, None, profile=SETTLED))

    def _begin(self, settled: Tenant) -> Prior:
        """Where a tenant's learning begins: as pretrained, or at the prior to start with unless it shares nothing."""
        start = settled.start(self._profile, self._names) or (self._start if settled.shares else Prior())
        return replace(start, shares=settled.shares)

    def _person(self, partition: Partition) -> Person | None:
        return self._person_in(partition, self._store.policy(partition.tenant, partition, profile=self._profile))

    def _person_in(self, partition: Partition, text: str | None) -> Person | None:
        """The person kept in this text."""
        held = self._people.get(partition)
        if held is None or held[0] != text:
            held = (text, loads_person(text, self._names))
            keep(self._people, partition, held)
        return held[1]

    def _settle(self, tx: Tx, tenant: str, settled: Tenant) -> None:
        """Keep settings; the usual ones need no row."""
        if settled != loads_tenant(tx.policy(tenant, None, profile=SETTLED)):
            tx.put_policy(tenant, None, dumps_tenant(settled), profile=SETTLED)


def keep(held: dict[K, V], key: K, value: V) -> None:
    """Into a cache of at most `PAGE` of a kind."""
    if len(held) >= PAGE:
        held.clear()
    held[key] = value

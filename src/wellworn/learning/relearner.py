"""Learning a log anew: from the start, with labelled pairs before it, or without what was reset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wellworn.core.values import Partition
from wellworn.learning.lowrank import LowRank
from wellworn.learning.policy import Prior
from wellworn.learning.ranker import Ranker
from wellworn.learning.replay import Replay
from wellworn.learning.state import dumps_person, dumps_prior
from wellworn.learning.states import States
from wellworn.learning.tenant import PROFILE as SETTLED
from wellworn.learning.tenant import Tenant, loads_tenant
from wellworn.learning.tune import Chunks, served
from wellworn.store.port import Event, LoggedRecall

Labelled = Sequence[tuple[LoggedRecall | None, Sequence[str]]]
"""Recalls with the ids of the right entries."""


class Relearner(States):
    """Replays a tenant's log: the same steps over the same numbers as when they were told."""

    def replay(self, tenant: str, settled: Tenant | None = None) -> Replay:
        """A tenant's log since its last reset, to be learned from the start."""
        settled = settled or self._settled(tenant)
        return Replay(
            prior=self._begin(settled), last=settled.since, log=lambda after: self._logged(tenant, after=after)
        )

    def relearn(self, tenant: str, labelled: Labelled | None = None, *, whole: bool = False) -> None:
        """Learn the log since the last reset anew, or with `whole` all of it, which takes the reset back.

        Labelled recalls are learned before it, into the prior. They take the place of those that were learned before;
        None leaves these as they are.
        """
        self._log.flush()
        before = self._settled(tenant)
        settled = self._resettled(before, labelled, whole)
        replay = self.replay(tenant, settled)
        tuned = self._followed(replay)
        with self._store.transact() as tx:
            now = loads_tenant(tx.policy(tenant, None, profile=SETTLED))
            if now != before:  # reset, or shared otherwise, while this was learned
                settled = self._resettled(now, labelled, whole)
                replay, tuned = self.replay(tenant, settled), {}
            for _ in replay.steps():  # what was told while the rest was learned
                pass
            for profile in (self._profile, self._tuned):
                tx.drop_policies(tenant, profile=profile)
            self._settle(tx, tenant, settled)
            tx.put_policy(tenant, None, dumps_prior(replay.prior, self._names), profile=self._profile)
            for partition, person in replay.people.items():
                tx.put_policy(tenant, partition, dumps_person(person, self._names), profile=self._profile)
            for partition, state in tuned.items():
                tx.put_policy(tenant, partition, state.dumps(), profile=self._tuned)
            tx.audit(Event(at=self._clock(), tenant=tenant, action="relearn", detail={"people": len(replay.people)}))

    def _followed(self, replay: Replay) -> dict[Partition, LowRank]:
        """Take the steps of a replay, chunk by chunk with the residual; its states."""
        chunks = None if self._tuner is None else Chunks(self._tuner)
        for step in replay.steps():
            state = None if chunks is None else chunks.add(step.told, step.after.person)
            if state is not None:
                replay.people[step.partition] = replace(step.after.person, residual=served(state, state.dumps()))
        return {} if chunks is None else chunks.states

    def _resettled(self, settled: Tenant, labelled: Labelled | None, whole: bool) -> Tenant:
        """The settings that a replay begins with."""
        if whole:
            settled = replace(settled, since=0)
        if labelled is None:
            return settled
        bare = settled.with_start(self._profile, None, self._names)
        start = self._pretrained(self._begin(bare), labelled)
        return bare if start is None else bare.with_start(self._profile, start, self._names)

    def _pretrained(self, prior: Prior, labelled: Labelled) -> Prior | None:
        """The prior after pairs of a query and its right entries; None when they teach nothing."""
        ranker = first = prior.ranker or Ranker.fresh(len(self._names))
        for recall, ids in labelled:
            if recall is None:
                continue
            ids_of = {no: entry.id for no, entry in self._store.read(recall.nos).items()}
            right = {no for no, entry_id in ids_of.items() if entry_id in set(ids)}
            example = self._example(_shown_first(recall, right), right, set(ids_of))
            if example is not None:
                ranker = ranker.updated(example)
        return None if ranker is first else replace(prior, ranker=ranker)


def _shown_first(recall: LoggedRecall, right: set[int]) -> LoggedRecall:
    """The recall as if the right rows had been shown as well: a label says more than what was shown."""
    shown = [place for place, no in enumerate(recall.nos) if place < recall.shown or no in right]
    rest = [place for place in range(len(recall.nos)) if place not in set(shown)]
    order = shown + rest
    return replace(
        recall,
        nos=[recall.nos[place] for place in order],
        shown=len(shown),
        base=recall.base[order],
        features=recall.features[order],
    )

"""A person's low-rank residual beside their states: learned from every chunk of outcomes, served while it is proven."""

from __future__ import annotations

from dataclasses import replace

from wellworn.core.values import Partition
from wellworn.learning.lowrank import CHUNK, LowRank
from wellworn.learning.policy import Person
from wellworn.learning.relearner import Relearner
from wellworn.learning.state import dumps_person
from wellworn.learning.tune import Chunks, Tuner, served
from wellworn.store.port import Event, Tx

REBUILT = 1000
"""Outcomes in a log that is replayed for a missing chunk of the residual, some half a second; beyond, it starts afresh,
and `relearn` rebuilds it."""


class Tuned(Relearner):
    """Keeps the residual in rows of its own, under the profile's name and `/residual`."""

    def _residual(self, partition: Partition, person: Person | None) -> LowRank | None:
        if self._tuner is None or person is None:
            return None
        return self._tuner.serving(person, lambda: self._store.policy(partition.tenant, partition, profile=self._tuned))

    def _tune(self, tuner: Tuner, partition: Partition, person: Person, number: int) -> None:
        """Learn the chunk that ended with outcome `number`, outside of its transaction: queries are embedded for it."""
        before = self._store.policy(partition.tenant, partition, profile=self._tuned)
        state = tuner.loads(before)
        if (state.chunks + 1) * CHUNK == person.outcomes:
            since = max(state.last, self._settled(partition.tenant).since)
            told = (one for one in self._told(partition.tenant, partition, since) if one.no <= number)
            state = tuner.after(state, person, [one for one in told if self._ours(one.recall)])
        else:  # a chunk is missing, or vectors are of another model now
            state = self._rebuilt(tuner, partition, number) if number <= REBUILT else tuner.fresh()
            state = replace(state, chunks=person.outcomes // CHUNK, last=number)
        with self._store.transact() as tx:
            own = self._person_in(partition, tx.policy(partition.tenant, partition, profile=self._profile))
            if own is None or tx.policy(partition.tenant, partition, profile=self._tuned) != before:
                return  # reset, or learned by another process
            self._put_residual(tx, partition, own, state)

    def _rebuilt(self, tuner: Tuner, partition: Partition, number: int) -> LowRank:
        """A person's matrices after outcome `number`, from the log."""
        chunks = Chunks(tuner)
        for step in self.replay(partition.tenant).steps():
            if step.partition == partition and step.told.no <= number:
                chunks.add(step.told, step.after.person)
        return chunks.states.get(partition) or tuner.fresh()

    def _put_residual(self, tx: Tx, partition: Partition, person: Person, state: LowRank) -> None:
        """Keep matrices, and say in the person's state whether they serve. Every switch is an event."""
        text = state.dumps() if self._tuner is None else self._tuner.dumps(state)
        tx.put_policy(partition.tenant, partition, text, profile=self._tuned)
        serves = served(state, text)
        if serves != person.residual:
            kept = dumps_person(replace(person, residual=serves), self._names)
            tx.put_policy(partition.tenant, partition, kept, profile=self._profile)
        if bool(serves) != bool(person.residual):
            gain = state.gain
            tx.audit(
                Event(
                    at=self._clock(),
                    tenant=partition.tenant,
                    action="learn",
                    detail={
                        "from": "linear" if serves else "residual",
                        "to": "residual" if serves else "linear",
                        "why": f"the order with the low-rank residual against the linear one: gain {gain}",
                        "outcomes": person.outcomes,
                        "gain": round(gain.mean, 4),
                    },
                )
            )

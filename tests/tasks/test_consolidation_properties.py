"""Whatever a bank holds: what a consolidation never does to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contract.builders import make_entry
from memory.world import NOON
from tasks.consolidation_world import AGENT, PARTITION, Clock, ReasoningBank, TableEmbedder, opened, standing
from wellworn import Memory
from wellworn.core.values import Entry, Kind
from wellworn.ingest.terms import record_of
from wellworn.store.port import NewEntry, Selection
from wellworn.tasks.items import domain_tags

SENTENCES = (
    "retry the request after a refusal",
    "never retry the request after a refusal",
    "wait 2 seconds before a request",
    "wait 9 seconds before a request",
    "enable the cache for the import",
    "disable the cache for the import",
    "open the cart, then apply the code",
    "sort the list by price",
    "avoid the search field of the shop",
)


@st.composite
def drawn_entry(draw: st.DrawFn, number: int) -> tuple[Entry, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    place = draw(st.integers(0, len(SENTENCES) - 1))
    kind: Kind = draw(st.sampled_from(["strategy", "guardrail"]))
    nudge = draw(st.integers(0, 3))
    vector = np.zeros(16, dtype=np.float32)
    vector[place // 2], vector[8 + nudge] = 1.0, 0.1 * nudge  # two of a pair of sentences are alike; so are nudges
    sure, used = draw(st.sampled_from([0.2, 0.5, 0.6, 0.75, 0.9])), draw(st.sampled_from([0, 1, 7, 60]))
    created = NOON - timedelta(days=draw(st.sampled_from([0, 40, 200])))
    entry = make_entry(
        str(UUID(int=number + 1)),
        partition=PARTITION,
        kind=kind,
        text=f"{SENTENCES[place]}{'.' * number}",
        tags=domain_tags(draw(st.sampled_from(["web", "web.shop"]))),
        evidence=f"evidence {number}",
        confidence=sure,
        usage_count=used,
        success_count=min(used, draw(st.integers(0, 5))),
        failure_count=draw(st.integers(0, 3)),
        at=created,
        content_hash=f"{number:032x}",
    )
    return entry, np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


@st.composite
def banks(draw: st.DrawFn) -> list[tuple[Entry, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]]:
    return [draw(drawn_entry(number)) for number in range(draw(st.integers(0, 14)))]


Bank = Sequence[tuple[Entry, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]]


def filled(bank: Bank) -> Memory:
    mem = opened(embedder=TableEmbedder({}), clock=Clock(NOON))
    with mem.engine.store.transact() as tx:
        for entry, vector in bank:
            tx.add(NewEntry(entry=entry, index=record_of(entry), vector=vector))
    return mem


def totals(mem: Memory) -> list[int]:
    """What the entries that still count, and those that lost a contradiction or were pruned, were used in all."""
    entries = [entry for _, entry in mem.engine.store.select([PARTITION], Selection(), limit=1000)]
    folded = {id for entry in entries for id in entry.metadata.get("merged", [])}
    counted = [entry for entry in entries if entry.id not in folded]
    return [
        sum(getattr(entry, name) for entry in counted) for name in ("usage_count", "success_count", "failure_count")
    ]


@given(bank=banks(), seed=st.integers(0, 1000))
def test_whatever_a_bank_holds(bank: Bank, seed: int) -> None:
    """A second run finds nothing, counts are conserved, evidence is kept, and the order of entries does not matter."""
    shuffled = [bank[place] for place in np.random.default_rng(seed).permutation(len(bank))]
    with filled(bank) as mem, filled(shuffled) as other:
        before = totals(mem)
        run = ReasoningBank(mem, scope=AGENT).consolidate()
        assert totals(mem) == before
        entries = {entry.id: entry for _, entry in mem.engine.store.select([PARTITION], Selection(), limit=1000)}
        for entry in entries.values():
            for id in entry.metadata.get("merged", []):
                assert set(entries[id].evidence.split("\n")) <= set(entry.evidence.split("\n"))
        after = standing(mem)
        assert ReasoningBank(mem, scope=AGENT).consolidate().steps == []
        assert standing(mem) == after
        assert ReasoningBank(other, scope=AGENT).consolidate().counts == run.counts
        assert standing(other) == after

"""`python -m bench.sizing`: how many servers many people need, by simulating whose index is in memory.

People come back by chance, some a hundred times as often as others. A visit is a few recalls. The first one of a person who
is not in memory reads that person's index (cold); the others find it there (warm). Servers are sticky: one person, one
server. What a recall costs was measured (`docs/scaling.md`), and can be given.
"""

from __future__ import annotations

import argparse
from collections import OrderedDict

import numpy as np

SECONDS_A_DAY = 86_400
PEAK = 3.0
"""The busiest moment against the mean."""
LARGEST_SIMULATED = 200_000
"""People of one simulated server: each server sees its own share of all people, so one stands for all."""


def cold_share(people: int, held: int, visits: int, seed: int = 1) -> float:
    """The share of visits that find a person not in memory, on a server for so many people that holds some of them."""
    rng = np.random.default_rng(seed)
    eager = rng.lognormal(sigma=1.2, size=people)
    order = rng.choice(people, size=visits, p=eager / eager.sum())
    memory: OrderedDict[int, None] = OrderedDict()
    cold = 0
    for number, person in enumerate(order.tolist()):
        if person in memory:
            memory.move_to_end(person)
            continue
        memory[person] = None
        cold += number >= visits // 2  # the first half only fills the memory
        if len(memory) > held:
            memory.popitem(last=False)
    return cold / (visits - visits // 2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sizing", description=__doc__)
    parser.add_argument("--people", type=int, default=10_000_000)
    parser.add_argument("--entries", type=int, default=1_000, help="of a person")
    parser.add_argument("--visits", type=float, default=2.0, help="of a person, a day")
    parser.add_argument("--recalls", type=int, default=5, help="of a visit")
    parser.add_argument("--warm-ms", type=float, default=2.9)
    parser.add_argument("--cold-ms", type=float, default=32.0, help="for 1,000 entries; grows with them")
    parser.add_argument("--ram-gb", type=float, default=16.0, help="of a server, for indexes")
    parser.add_argument("--cores", type=int, default=8, help="of a server")
    asked = parser.parse_args()
    held = int(asked.ram_gb * 1e9 / (asked.entries * 1_400))
    visits_s = PEAK * asked.people * asked.visits / SECONDS_A_DAY
    print(f"{asked.people * asked.entries * 2_000 / 1e12:.1f} TB on disk; {visits_s:,.0f} visits a second at the peak")
    for servers in (2**n for n in range(14)):
        own = -(-asked.people // servers)
        scale = min(1.0, LARGEST_SIMULATED / own)
        cold = cold_share(int(own * scale), max(1, int(held * scale)), visits=int(6 * own * scale))
        cpu_ms = cold * asked.cold_ms * asked.entries / 1000 + (asked.recalls - cold) * asked.warm_ms
        load = visits_s / servers * cpu_ms / 1000 / asked.cores
        print(
            f"{servers:>5} servers: {cold:4.0%} of visits cold, {cpu_ms:6.1f} ms a visit, {load:6.1%} busy at the peak"
        )
        if load < 0.5:
            return


if __name__ == "__main__":
    main()

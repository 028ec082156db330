"""`wellworn bank benchmark`: does an agent with the bank succeed more often, and what of real work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wellworn.cli import render
from wellworn.cli.guard import guarded
from wellworn.cli.target import JsonFlag

verbs = typer.Typer()


@verbs.command("benchmark", epilog="Example: wellworn bank benchmark --tasks 200 --seeds 3")
@guarded
def benchmark(
    tasks: Annotated[int, typer.Option("--tasks", metavar="N", min=1, help="Tasks in each world.")] = 200,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="Worlds with rules of their own.")] = 1,
    way: Annotated[
        list[str] | None, typer.Option("--way", metavar="NAME", help="Only this way, beside without; repeat it.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Measure real trajectories instead; none are shipped.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Measure an agent with and without the bank in a world with hidden rules: no key, no network, nothing is kept.

    About 2.5 s of computing for 200 tasks in one world lived in one way. With --data: how right the judge is on
    labelled trajectories of tau-bench and Reflexion, and whether what a task taught is found from its siblings.
    """
    if data is not None:
        _real(data, as_json=json)
        return
    from evals import bank

    chosen = tuple(bank.WAYS) if not way else bank.with_alone(way)
    settings = bank.Settings(tasks=tasks, seeds=seeds, ways=chosen)
    with render.progress_bar("living") as progress:
        report = bank.run(settings, progress=progress)
    if json:
        render.print_json(report.as_json())
        return
    for table in report.tables():
        render.console().print(table)
    render.say(
        f"{tasks} tasks in each of {seeds} worlds, 18 kinds; intervals of 95 % by bootstrap over kinds in worlds; "
        "gain: over the same tasks without a bank"
    )


def _real(folder: Path, *, as_json: bool) -> None:
    from evals import bank_real

    with render.progress_bar("measuring") as progress:
        reports = bank_real.run(folder, progress=progress)
    if as_json:
        render.print_json(bank_real.document(reports))
        return
    for table in bank_real.tables(reports):
        render.console().print(table)
    render.say("intervals of 95 % by bootstrap over tasks; the label is what the data says, not what a person checked")

"""`wellworn learning`: what recalls have learned from outcomes. Look at it, rebuild it, share it, reset it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wellworn.cli import options, render
from wellworn.cli.edge import confirm, json_lines, read_stdin
from wellworn.cli.options import command
from wellworn.cli.target import Target
from wellworn.core.errors import InvalidInput
from wellworn.core.values import LearningStatus

app = typer.Typer(no_args_is_help=True, help="What was learned from outcomes: look at it, rebuild it, reset it.")


@command(app, "status", "learning status --user ada")
def status(target: Target) -> None:
    """Show which ranking serves the user, why, and its weights."""
    with target.open() as memory:
        found = memory.learning.status()
    target.answer(found, *_status(found, target))


@command(app, "replay", "learning replay --pairs labelled.jsonl")
def replay(
    target: Target,
    pairs: Annotated[
        str | None,
        typer.Option("--pairs", metavar="PATH", help='Labelled queries to learn from first; "-" reads standard input.'),
    ] = None,
) -> None:
    """Learn again from the tenant's log, and show where it leads; the same log gives the same weights.

    Pairs are JSON, one object per line: {"query": …, "ids": [ids of the entries that answer it]}. They replace earlier
    pairs.
    """
    given = None if pairs is None else _pairs(pairs)
    with target.open() as memory:
        found = memory.learning.relearn(pairs=given)
    target.answer(found, *_status(found, target))


@command(app, "share", "learning share --off --tenant acme")
def share(
    target: Target,
    on: Annotated[bool, typer.Option("--on/--off", help="Whether the tenant's users learn from each other.")],
) -> None:
    """Choose whether a new user starts from what the tenant's other users taught."""
    with target.open() as memory:
        memory.learning.share(on)
    target.answer({"tenant": target.scope.tenant, "shares": on})
    target.say(f"Users of tenant {target.scope.tenant} {'learn' if on else 'do not learn'} from each other.")


@command(app, "reset", "learning reset --tenant acme --yes")
def reset(target: Target, yes: options.Yes = False) -> None:
    """Drop what the tenant's users taught; earlier outcomes no longer count.

    Asks first on a terminal; elsewhere --yes is needed.
    """
    tenant = f"tenant {target.scope.tenant} in {target.place}"
    confirm("learning reset", f"Drop all that was learned for {tenant}?", no="Nothing was dropped.", yes=yes)
    with target.open() as memory:
        dropped = memory.learning.reset()
    target.answer({"dropped": dropped})
    target.say(f"Dropped {render.count(dropped, 'learned state')} of {tenant}.")


def _pairs(path: str) -> list[tuple[str, list[str]]]:
    text = read_stdin() if path == "-" else Path(path).read_text(encoding="utf-8")
    found: list[tuple[str, list[str]]] = []
    for number, line in json_lines(text):
        query, ids = line.get("query"), line.get("ids")
        if not isinstance(query, str) or not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
            raise InvalidInput(f"line {number}", "is not a pair", 'as in {"query": "…", "ids": ["…"]}')
        found.append((query, ids))
    return found


def _status(found: LearningStatus, target: Target) -> list[object]:
    values = {name.replace("_", " "): value for name, value in vars(found).items() if name != "weights"}
    return [
        render.pairs({"for": str(target), **values}),
        render.table(("weight", "value"), [(name, f"{value:+.3f}") for name, value in found.weights.items()]),
    ]

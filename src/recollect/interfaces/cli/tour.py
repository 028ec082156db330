"""`recollect demo`: the tour that ships with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.errors import InvalidInput
from recollect.interfaces.cli import render
from recollect.interfaces.cli.guard import guarded
from recollect.interfaces.cli.target import JsonFlag

app = typer.Typer()


@app.command("demo", epilog="Example: recollect demo --keep demo.db")
@guarded
def demo(
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="PATH", help="Keep the demo's memory in this new file.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Remember three people's conversations, recall with reasons, forget one of them, and prove it.

    Needs no key, no server and no download; leaves nothing behind unless told to.
    """
    from rich.console import Console

    from recollect.interfaces.demo import tell

    if keep is not None and keep.exists():
        raise InvalidInput("--keep", f"{str(keep)!r} is there already", "name a new file")
    shown = tell(Console(quiet=True) if json else render.console(), keep=keep)
    if json:
        render.print_json(shown)

"""`wellworn demo`: the tour that ships with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wellworn.cli import render
from wellworn.cli.guard import guarded
from wellworn.cli.target import JsonFlag
from wellworn.core.errors import InvalidInput

app = typer.Typer()


@app.command("demo", epilog="Example: wellworn demo --keep demo.db")
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

    from wellworn.cli.demo import tell

    if keep is not None and keep.exists():
        raise InvalidInput("--keep", f"{str(keep)!r} is there already", "name a new file")
    shown = tell(Console(quiet=True) if json else render.console(), keep=keep)
    if json:
        render.print_json(shown)

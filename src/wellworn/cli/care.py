"""Verbs that look after a store: export, import, doctor, reembed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wellworn.cli import render
from wellworn.cli.guard import FAILED
from wellworn.cli.target import Target, with_target
from wellworn.core.errors import ScopeError

if TYPE_CHECKING:
    from wellworn.ops.doctor import Report

Place = Annotated[Path, typer.Argument(metavar="PATH", help="A .jsonl file, or a folder of Markdown files.")]
Format = Annotated[
    str | None, typer.Option("--format", metavar="FORMAT", help="jsonl or markdown; told from PATH by default.")
]


app = typer.Typer()


@app.command("export", epilog="Example: wellworn export backup.jsonl")
@with_target
def export(
    target: Target,
    path: Place,
    format: Format = None,
    no_vectors: Annotated[bool, typer.Option("--no-vectors", help="Leave the vectors out; import makes them.")] = False,
) -> None:
    """Write the memory to a file or folder.

    Writes the whole store; when a tenant or a layer is named (by option or environment), only what that scope sees.
    """
    scope = target.scope if target.scope_named else None
    with target.open() as memory, render.progress_bar("exporting") as progress:
        written = memory.admin.export(path, format=format, scope=scope, vectors=not no_vectors, progress=progress)
    if target.json:
        render.print_json(written)
    else:
        render.console().print(render.pair_table({**vars(written), "of": target if scope else "the whole store"}))


@app.command("import", epilog="Example: wellworn import backup.jsonl --db restored.db")
@with_target
def import_(target: Target, path: Place, format: Format = None) -> None:
    """Read an export back, or a folder of Markdown notes; what is there already is skipped.

    Entries return to where they came from, notes go to the default user.

    When a tenant or a layer is named (by option or environment), nothing is written outside of that scope.
    """
    scope = target.scope if target.scope_named else None
    with target.open(new=True) as memory, render.progress_bar("importing") as progress:
        try:
            loaded = memory.admin.load(path, format=format, scope=scope, progress=progress)
        except ScopeError:  # notes among the files, and nobody said whose: nothing was changed yet
            if scope is not None:
                raise
            loaded = memory.admin.load(path, format=format, scope=target.scope, progress=progress)
    if target.json:
        render.print_json(loaded)
    else:
        render.console().print(render.pair_table(vars(loaded)))


@app.command("doctor", epilog="Example: wellworn doctor --repair")
@with_target
def doctor(
    target: Target, repair: Annotated[bool, typer.Option("--repair", help="Rebuild what can be rebuilt.")] = False
) -> None:
    """Check the whole store and list its flaws; leaves with 1 when flaws remain."""
    with target.open() as memory, render.progress_bar("repairing" if repair else "checking") as progress:
        report = memory.admin.repair(progress=progress) if repair else memory.verify(progress=progress)
    if target.json:
        render.print_json(report)
    else:
        _print_findings(report)
    if report.flaws:
        raise typer.Exit(FAILED)


@app.command("reembed", epilog="Example: wellworn reembed --embedder openai:text-embedding-3-small")
@with_target
def reembed(target: Target) -> None:
    """Give every entry a vector of the embedder named by --embedder; can be stopped and resumed.

    Until it is done, recall serves the vectors there were; no text is touched.
    """
    with target.open(reembedding=True) as memory, render.progress_bar("embedding") as progress:
        done = memory.admin.reembed(progress=progress)
    if target.json:
        render.print_json(done)
    else:
        render.console().print(render.pair_table(vars(done)))


def _print_findings(report: Report) -> None:
    remedies = [(flaw, "repairable" if flaw.repairable else "by hand") for flaw in report.flaws]
    remedies += [(flaw, "mended") for flaw in report.mended]
    rows = [(flaw.check, flaw.subject, flaw.problem, remedy) for flaw, remedy in remedies]
    if rows:
        render.console().print(render.row_table(("check", "where", "problem", "remedy"), rows))
    render.say(str(report).partition("\n")[0])

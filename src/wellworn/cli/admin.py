"""`wellworn doctor`, and `wellworn admin`: export, load, reembed, repair, stats, costs, events."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wellworn.cli import options, render
from wellworn.cli.edge import FAILED
from wellworn.cli.read import EVERYDAY
from wellworn.cli.target import Target, command
from wellworn.core.errors import ScopeError

if TYPE_CHECKING:
    from wellworn.ops.doctor import Report

app = typer.Typer(no_args_is_help=True, help="The store: export, load, repair, re-embed, counts, costs, audit log.")
verbs = typer.Typer()

Place = Annotated[Path, typer.Argument(metavar="PATH", help="A .jsonl file, or a folder of Markdown files.")]


@command(verbs, "doctor", "doctor", panel=EVERYDAY)
def doctor(target: Target) -> None:
    """Check the whole store; exits 1 if problems are found."""
    with target.open(whole=True) as memory, render.progress_bar("checking") as progress:
        report = memory.verify(progress=progress)
    _answer_report(report, target)


@command(app, "repair", "admin repair")
def repair(target: Target) -> None:
    """Repair what `wellworn doctor` finds; exits 1 if problems remain."""
    with target.open(whole=True) as memory, render.progress_bar("repairing") as progress:
        report = memory.admin.repair(progress=progress)
    _answer_report(report, target)


def _answer_report(report: Report, target: Target) -> None:
    remedies = [(flaw, "wellworn admin repair" if flaw.repairable else "by hand") for flaw in report.flaws]
    remedies += [(flaw, "repaired") for flaw in report.mended]
    rows = [(flaw.check, flaw.subject, flaw.problem, remedy) for flaw, remedy in remedies]
    target.answer(report, render.table(("check", "where", "problem", "remedy"), rows))
    target.say(str(report).partition("\n")[0])
    if report.flaws:
        raise typer.Exit(FAILED)


@command(app, "export", "admin export backup.jsonl")
def export(target: Target, path: Place) -> None:
    """Write the memory to a file or folder.

    Writes the whole store, or only what the scope sees if a tenant or a layer is named.
    """
    scope = target.scope if target.scope_named else None
    with target.open(whole=True) as memory, render.progress_bar("exporting") as progress:
        written = memory.admin.export(path, scope=scope, progress=progress)
    target.answer(written, render.pairs({**vars(written), "of": str(target) if scope else "the whole store"}))


@command(app, "load", "admin load backup.jsonl --db restored.db")
def load(target: Target, path: Place) -> None:
    """Read an export back, or a folder of Markdown notes; what is there already is skipped.

    Entries return to where they came from; notes go to the user. If a tenant or a layer is named, nothing is written
    outside of that scope.
    """
    scope = target.scope if target.scope_named else None
    with target.open(new=True, whole=True) as memory, render.progress_bar("loading") as progress:
        try:
            loaded = memory.admin.load(path, scope=scope, progress=progress)
        except ScopeError:  # notes among the files, and nobody said whose: nothing was changed yet
            if scope is not None:
                raise
            loaded = memory.admin.load(path, scope=target.scope, progress=progress)
    counts = {name: value for name, value in vars(loaded).items() if name != "problems"}
    target.answer(loaded, render.pairs(counts | ({"not read": "\n".join(loaded.problems)} if loaded.problems else {})))


@command(app, "reembed", "admin reembed --embedder openai:text-embedding-3-small")
def reembed(target: Target) -> None:
    """Move the store to the embedder named by --embedder; can be stopped and resumed.

    Until it is done, recall uses the earlier vectors. No text is changed.
    """
    with target.open(whole=True, reembedding=True) as memory, render.progress_bar("embedding") as progress:
        done = memory.admin.reembed(progress=progress)
    target.answer(done, render.pairs(vars(done)))


@command(app, "stats", "admin stats --json")
def stats(target: Target) -> None:
    """Count what the scope holds."""
    with target.open() as memory:
        found = memory.admin.stats()
    target.answer(found, render.pairs({name.replace("_", " "): value for name, value in vars(found).items()}))


@command(app, "costs", "admin costs --by day --since 2026-05-01")
def costs(
    target: Target,
    by: Annotated[
        list[str] | None, typer.Option("--by", metavar="WHAT", help="tenant, purpose, model or day; may be repeated.")
    ] = None,
    since: options.Since = None,
) -> None:
    """Show what language models were asked for, and what it cost."""
    groups = by or ["purpose", "model"]
    with target.open() as memory:
        found = memory.admin.costs(since=since, by=groups)
    columns = (*groups, "calls", "failed", "tokens in", "tokens out", "USD", "seconds")
    rows = [
        (*one.key, one.calls, one.failed, one.input_tokens, one.output_tokens, f"{one.usd:.4f}", f"{one.seconds:.1f}")
        for one in found
    ]
    target.answer({"by": groups, "spent": found}, render.table(columns, rows))
    if not found:
        target.say(f"No model was asked for tenant {target.scope.tenant}.")


@command(app, "events", "admin events --limit 20")
def events(target: Target, limit: options.Limit = 50) -> None:
    """Show the tenant's audit log, newest first: what was done to which entry and when, never its text."""
    with target.open() as memory:
        found = memory.admin.events(limit=limit)
    rows = [(event.at, event.action, event.entry_id, event.detail) for event in found]
    target.answer({"events": found}, render.table(("when", "action", "entry", "detail"), rows))

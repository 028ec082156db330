"""`wellworn doctor`, `wellworn backup`, and `wellworn admin`: export, load, rekey, reembed, stats, costs, events."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wellworn.cli import options, render
from wellworn.cli.edge import FAILED
from wellworn.cli.read import EVERYDAY
from wellworn.cli.target import Target, command
from wellworn.core.errors import InvalidInput, ScopeError, StoreCorrupt

if TYPE_CHECKING:
    from wellworn.memory import Memory
    from wellworn.ops.doctor import Report

app = typer.Typer(no_args_is_help=True, help="The store: export, load, encrypt, re-embed, counts, costs, audit log.")
backup_app = typer.Typer(no_args_is_help=True, help="Backups: create, list, verify, restore.")
verbs = typer.Typer()

Place = Annotated[Path, typer.Argument(metavar="PATH", help="A .jsonl file, or a folder of Markdown files.")]


@command(verbs, "doctor", "doctor --repair", panel=EVERYDAY)
def doctor(
    target: Target, repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired.")] = False
) -> None:
    """Check the whole store; exits 1 if problems are found, or remain.

    A file with broken pages is copied row by row; the damaged one is kept as FILE.damaged.
    """
    from wellworn.ops.doctor import Report, rescue
    from wellworn.store.choose import key_in_environment
    from wellworn.store.port import Flaw

    def look() -> Report:
        try:
            with target.open(whole=True) as memory, render.progress_bar("checking") as progress:
                return memory.admin.repair(progress=progress) if repair else memory.verify(progress=progress)
        except StoreCorrupt as error:
            return Report(flaws=[Flaw(check="pages", subject="file", problem=str(error), repairable=False)])

    report = look()
    if repair and target.db != ":memory:" and any(flaw.check == "pages" for flaw in report.flaws):
        with render.progress_bar("salvaging") as progress:
            salvaged, kept = rescue(target.db, key_in_environment(), progress=progress)
        lost = sum(salvaged.lost.values())
        target.say(
            f"Copied {salvaged.rows['entries']:,} entries; {lost:,} places could not be read. The damaged file is {kept}."
        )
        report = look()
    _answer_report(report, target)


def _answer_report(report: Report, target: Target) -> None:
    remedies = [(flaw, "wellworn doctor --repair" if flaw.repairable else "by hand") for flaw in report.flaws]
    remedies += [(flaw, "repaired") for flaw in report.mended]
    rows = [(flaw.check, flaw.subject, flaw.problem, remedy) for flaw, remedy in remedies]
    target.answer(report, render.table(("check", "where", "problem", "remedy"), rows))
    target.say(str(report).partition("\n")[0])
    if report.flaws:
        raise typer.Exit(FAILED)


@command(app, "export", "admin export memory.jsonl")
def export(
    target: Target,
    path: Place,
    plain: Annotated[bool, typer.Option("--plain", help="Write an encrypted store to a plain file.")] = False,
) -> None:
    """Write the memory to a file or folder.

    Writes the whole store, or only what the scope sees if a tenant or a layer is named. Of a damaged file everything
    that can be read is written.
    """
    scope = target.scope if target.scope_named else None
    with ExitStack() as stack, render.progress_bar("exporting") as progress:
        try:
            memory = stack.enter_context(target.open(whole=True))
        except StoreCorrupt:
            memory = stack.enter_context(_readable_copy(target))
        written = memory.admin.export(path, plain=plain, scope=scope, progress=progress)
    target.answer(written, render.pairs({**vars(written), "of": str(target) if scope else "the whole store"}))


@contextmanager
def _readable_copy(target: Target) -> Iterator[Memory]:
    """A memory on what can be read of a file that cannot be opened."""
    from wellworn.store.choose import key_in_environment
    from wellworn.store.sqlite.driver import key_of
    from wellworn.store.sqlite.salvage import salvage

    with tempfile.TemporaryDirectory(prefix="wellworn-") as folder:
        copy = Path(folder) / "salvaged.db"
        salvage(Path(target.db), copy, secret=key_of(key_in_environment()))
        with replace(target, db=str(copy)).open(whole=True) as memory:
            yield memory


@command(app, "rekey", "admin rekey --new-key-file new.key")
def rekey(
    target: Target,
    new_key_file: Annotated[Path, typer.Option("--new-key-file", metavar="PATH", help="A file with the new key.")],
) -> None:
    """Encrypt the file with another key, or a plain file for the first time; close every other program on it first."""
    from wellworn.store.choose import key_in_environment
    from wellworn.store.sqlite import SqliteStore
    from wellworn.store.sqlite.driver import encrypt_file, key_of

    secret = key_of(new_key_file)
    with target.open(whole=True) as memory:
        store = memory.engine.store
        encrypted = store.encrypted
        if isinstance(store, SqliteStore) and encrypted:
            store.rekey(new_key_file)
    if not encrypted and secret is not None:
        encrypt_file(Path(target.db), secret)
    SqliteStore(target.db, key=new_key_file).close()  # it opens
    target.answer({"rekeyed": target.db}, f"{target.db} is encrypted with the key in {new_key_file}.")
    if key_in_environment() is not None:
        target.say("Change WELLWORN_KEY or WELLWORN_KEY_FILE before the next command.")


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


@command(app, "expire", "admin expire --keep episode=90 --tenant acme")
def expire(
    target: Target,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="KIND=DAYS", help="Set how long a kind is kept; may be repeated. Stays set."),
    ] = None,
) -> None:
    """Forget what the tenant's retention policy no longer keeps; run it from a schedule."""
    from wellworn.ops.retention import RetentionPolicy

    kinds: dict[str, float] = {}
    for one in keep or ():
        kind, _, days = one.partition("=")
        try:
            kinds[kind] = float(days)
        except ValueError:
            raise InvalidInput("--keep", f"{one!r} is not KIND=DAYS", "as in --keep episode=90") from None
    with target.open() as memory, render.progress_bar("expiring"):
        if kinds:
            before = memory.admin.retention()
            memory.admin.retention(RetentionPolicy(kinds={**before.kinds, **kinds}, recalls=before.recalls))
        done = memory.admin.expire()
    target.answer(done, render.pairs(vars(done)))


@command(app, "erase", "admin erase --user ada --yes")
def erase(target: Target, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Erase a person with everything derived, and print a signed receipt. Older backups go with the next backup."""
    if not yes:
        typer.confirm(f"Erase everything of {target}?", abort=True, err=True)
    with target.open() as memory, render.progress_bar("erasing"):
        signed = memory.admin.erase()
    target.answer(signed, render.pairs({**signed.receipt, "signature": signed.signature}))


# -- backups -----------------------------------------------------------------------------------------------------

Folder = Annotated[
    Path | None, typer.Option("--folder", metavar="PATH", help="Where backups lie; FILE.backups by default.")
]
File = Annotated[Path, typer.Argument(metavar="BACKUP", help="A backup file.")]


@command(backup_app, "create", "backup create --keep 7")
def backup_create(
    target: Target,
    folder: Folder = None,
    keep: Annotated[int | None, typer.Option("--keep", metavar="N", help="Keep only the newest N.")] = None,
    every: Annotated[
        float | None, typer.Option("--every", metavar="HOURS", help="Do nothing while the last one is younger.")
    ] = None,
) -> None:
    """Write a compressed backup of the whole store, in use or not, and check it by restoring it."""
    interval = None if every is None else timedelta(hours=every)
    with target.open(whole=True) as memory, render.progress_bar("backing up"):
        done = memory.admin.backup(folder, keep=keep, every=interval)
    shown = {} if done.made is None else vars(done.made)
    target.answer(done, render.pairs({**shown, "removed": len(done.removed), "kept": done.kept}))
    if done.made is None:
        target.say("The last backup is young enough; nothing was done.")


@command(backup_app, "list", "backup list")
def backup_list(target: Target, folder: Folder = None) -> None:
    """List the backups of the memory's file, newest first."""
    from wellworn.ops.backup import folder_of, list_backups

    found = list_backups(folder or folder_of(target.db), Path(target.db).stem)
    rows = [(one.created_at, one.entries, one.bytes, "yes" if one.encrypted else "no", one.path) for one in found]
    target.answer({"backups": found}, render.table(("made", "entries", "bytes", "encrypted", "file"), rows))
    if not found:
        target.say("No backups. Make one with `wellworn backup create`.")


@command(backup_app, "verify", "backup verify memory.db.backups/FILE")
def backup_verify(target: Target, path: File) -> None:
    """Check a backup by restoring it into a temporary file; exits 2 if it is damaged."""
    from wellworn.ops.backup import check
    from wellworn.store.choose import key_in_environment
    from wellworn.store.sqlite import SqliteStore

    found = check(path, open_store=lambda file: SqliteStore(file, key=key_in_environment()))
    target.answer(found, render.pairs({**vars(found), "verified": "yes"}))


@command(backup_app, "restore", "backup restore memory.db.backups/FILE --db restored.db")
def backup_restore(
    target: Target,
    path: File,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file; it is kept as FILE.before-restore.")
    ] = False,
) -> None:
    """Restore a backup to the file named by --db; close every program on that file first."""
    from wellworn.ops.backup import restore

    found = restore(path, Path(target.db), force=force)
    target.answer(found, render.pairs({"restored to": target.db, "entries": found.entries, "made": found.created_at}))

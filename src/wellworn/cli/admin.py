"""`wellworn doctor`, `wellworn backup`, and `wellworn admin`: export, load, rekey, reembed, stats, costs, events.

One rule says whose data an admin command touches: the whole store if nobody is named, a whole tenant with --tenant, and
with a layer, as --user, only what is there. Each command says it. Who is erased must be named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wellworn.cli import options, render
from wellworn.cli.edge import FAILED, confirm
from wellworn.cli.options import EVERYDAY, argument, command, flag, option
from wellworn.cli.target import Target, embedder_for, pasteable
from wellworn.core.errors import InvalidInput, OtherFile, StoreCorrupt
from wellworn.core.values import Scope

if TYPE_CHECKING:
    from wellworn.memory import Memory
    from wellworn.ops.doctor import Report
    from wellworn.ops.retention import RetentionPolicy

app = typer.Typer(
    no_args_is_help=True, help="The store: exports, encryption (rekey), embedder, counts, costs, audit log (events)."
)
backup_app = typer.Typer(no_args_is_help=True, help="Backups: create, list, verify, restore.")
verbs = typer.Typer()

ALWAYS, RECALLS, CALLS = "always", "recalls", "calls"
"""What --keep takes beside kinds and days."""
KEEP = (
    "Set how long the tenant keeps a kind, recalls, which nobody reported on, or calls of the service; "
    f"{ALWAYS} for all time. May be repeated. Stays set."
)
SOURCES = "chatgpt, claude, mem0, letta, zep, graphiti, langgraph, langmem, obsidian or basic-memory."
Place = Annotated[Path, argument("PATH", "A .jsonl file, or a folder of Markdown files.")]


@command(verbs, "doctor", "doctor --repair", panel=EVERYDAY)
def doctor(target: Target, repair: Annotated[bool, flag("--repair", "Repair what can be repaired.")] = False) -> None:
    """Check the whole store; exits 1 if problems are found, or remain.

    A file with broken pages is copied row by row; the damaged one is kept as FILE.damaged.
    """
    from wellworn.ops.doctor import Report, rescue
    from wellworn.store import key_in_environment
    from wellworn.store.port import Flaw

    def look() -> Report:
        try:
            with target.open(whole=True) as memory, render.progress_bar("checking") as progress:
                return memory.admin.repair(progress=progress) if repair else memory.verify(progress=progress)
        except OtherFile:
            raise
        except StoreCorrupt as error:
            return Report(flaws=[Flaw(check="pages", subject="file", problem=str(error), repairable=False)])

    report = look()
    if repair and target.db != ":memory:" and any(flaw.check == "pages" for flaw in report.flaws):
        with render.progress_bar("salvaging") as progress:
            salvaged, kept = rescue(target.file, key_in_environment(), progress=progress)
        lost, copied = sum(salvaged.lost.values()), salvaged.rows["entries"]
        target.say(f"Copied {copied:,} entries; {lost:,} places could not be read. The damaged file is {kept}.")
        report = look()
        if not copied:
            problem = f"no entry could be salvaged; the damaged file is {kept}: restore a backup"
            nothing = Flaw(check="salvage", subject="file", problem=problem, repairable=False)
            report = replace(report, flaws=[*report.flaws, nothing])
    _answer_report(report, target)


def _answer_report(report: Report, target: Target) -> None:
    repair = pasteable("`wellworn doctor --repair`", target.options)
    remedies = [(flaw, repair if flaw.repairable or flaw.check == "pages" else "by hand") for flaw in report.flaws]
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
    plain: Annotated[bool, flag("--plain", "Write an encrypted store to a plain file.")] = False,
) -> None:
    """Write the memory to a file or folder.

    Writes the whole store, or only a tenant or a layer that is named. Of a damaged file everything that can be read is
    written.
    """
    with ExitStack() as stack, render.progress_bar("exporting") as progress:
        try:
            memory = stack.enter_context(target.open(whole=True))
        except OtherFile:
            raise
        except StoreCorrupt:
            memory = stack.enter_context(_readable_copy(target))
        written = memory.admin.export(path, plain=plain, scope=target.owner, progress=progress)
    _answer(target, vars(written))


def _answer(target: Target, document: dict[str, Any], *shown: object, of: str = "") -> None:
    """The answer of an admin command: it says whose data it is about."""
    values = {"of": of or target.whose, **document}
    target.answer(values, *(shown or [render.pairs(render.spoken(values))]))
    if shown:
        target.say(f"Of {values['of']} in {target.place}.")


def _tenant(target: Target) -> str:
    """Whose data a command is about that knows tenants only."""
    return "the whole store" if target.owner is None else f"tenant {target.owner.tenant}"


@contextmanager
def _readable_copy(target: Target) -> Iterator[Memory]:
    """A memory on what can be read of a file that cannot be opened."""
    from wellworn.ops.files import scratch
    from wellworn.store import key_in_environment
    from wellworn.store.sqlite.driver import key_of
    from wellworn.store.sqlite.salvage import salvage

    with scratch() as folder:
        copy = Path(folder) / "salvaged.db"
        salvage(target.file, copy, secret=key_of(key_in_environment()))
        with replace(target, db=str(copy)).open(whole=True) as memory:
            yield memory


@command(app, "rekey", "admin rekey --new-key-file new.key")
def rekey(
    target: Target, new_key_file: Annotated[Path, option("--new-key-file", "PATH", "A file with the new key.")]
) -> None:
    """Encrypt the file with another key, or a plain file for the first time; close every other program on it first.

    Of an encrypted memory in Postgres only its data key is sealed anew.
    """
    from wellworn.search.mapped import IndexFiles
    from wellworn.store import key_in_environment
    from wellworn.store.sqlite import SqliteStore
    from wellworn.store.sqlite.driver import encrypt_file, key_of

    secret, in_file = key_of(new_key_file), "://" not in target.db
    with target.open(whole=True) as memory:
        store: Any = memory.engine.store  # of either engine
        plain_file = in_file and not store.encrypted
        if not plain_file:
            store.rekey(new_key_file)
    if plain_file and secret is not None:
        encrypt_file(target.file, secret)
    if in_file:
        rekeyed = SqliteStore(target.file, key=new_key_file)  # it opens
        IndexFiles(rekeyed)  # removes those that have its words in plain
        rekeyed.close()
    did = f"{target.place} {'is encrypted with' if in_file else 'has'} the key in {new_key_file}."
    _answer(target, {"rekeyed": target.place}, did, of="the whole store")
    if in_file and key_in_environment() is not None:
        target.say("Change WELLWORN_KEY or WELLWORN_KEY_FILE before the next command.")


@command(verbs, "move", "move memory.db postgresql://wellworn@db.example/agents", panel="More")
def move(
    target: Target,
    source: Annotated[str, argument("FROM", "A file, or postgresql://….")],
    to: Annotated[str, argument("TO", "A new file, or postgresql://….")],
    new_key_file: Annotated[
        Path | None, option("--new-key-file", "PATH", "A file with the key of the new store.")
    ] = None,
    plain: Annotated[bool, flag("--plain", "Let an encrypted store pass through a plain file.")] = False,
) -> None:
    """Copy a whole memory to another engine and prove by a hash that all of it arrived; run again if it was cut short.

    Stop whoever writes to the source first. The source stays as it is.
    """
    from wellworn.ops.transfer import move

    old, new = (replace(target, db=place.removeprefix("sqlite:")) for place in (source, to))
    with old.open(whole=True) as before, ExitStack() as stack:
        model = before.engine.store.model()
        new = new if model is None else replace(new, embedder=embedder_for(new.embedder, model.name))
        parts = stack.enter_context(new.open(whole=True, new=True, key=new_key_file)).engine
        progress = stack.enter_context(render.progress_bar("moving"))
        moved = move(
            before.engine.store,
            parts.store,
            parts.writer,
            relearn=parts.learner.relearn,
            clock=parts.clock,
            plain=plain,
            progress=progress,
        )
    target.answer(moved, render.pairs(vars(moved)))


@command(app, "load", "admin load backup.jsonl --db restored.db")
def load(target: Target, path: Place) -> None:
    """Read an export back; what is there already is skipped.

    Entries return to where they came from. If a tenant or a layer is named, only entries of that scope are loaded. If
    there are none, those of one other owner go to the scope, and those of several are refused.
    """
    scope = None if target.owner is None else target.scope
    with target.open(new=True, whole=True) as memory, render.progress_bar("loading") as progress:
        loaded = memory.admin.load(path, scope=scope, progress=progress)
    counts = {name: value for name, value in vars(loaded).items() if name != "problems"}
    shown = counts | ({"left out": "\n".join(loaded.problems)} if loaded.problems else {})
    _answer(target, vars(loaded), render.pairs(shown), of="the whole store" if scope is None else str(target))


@command(verbs, "import", "import chatgpt export.zip --user ada --dry-run", panel="More")
def import_(
    target: Target,
    source: Annotated[str, argument("SOURCE", SOURCES)],
    path: Annotated[Path, argument("PATH", "The export: a file, a ZIP archive or a folder.")],
    owner: Annotated[
        str | None, option("--owner", "ID", "Of an export of several users, groups or namespaces: this one.")
    ] = None,
    dry_run: options.DryRun = False,
) -> None:
    """Take over what another system remembers, for one user.

    What is here already is skipped, so an import can be stopped and run again, and a newer export adds what is new.
    """
    new = dry_run and "://" not in target.db and not Path(target.db).exists()
    place = replace(target, db=":memory:") if new else target  # a dry run makes no file
    with place.open(new=True) as memory, render.progress_bar("importing") as progress:
        done = memory.admin.import_from(source, path, owner=owner, dry_run=dry_run, progress=progress)
    counts = {name: value for name, value in vars(done).items() if name not in ("skipped", "problems", "dry_run")}
    skipped = "\n".join(f"{number} × {why}" for why, number in done.skipped.items())
    target.answer(done, render.pairs({**counts, "skipped": skipped, "first skipped": "\n".join(done.problems)}))
    if done.dry_run:
        target.say("Nothing was written (--dry-run).")
    elif done.turns:
        target.say("The dialogues can be recalled now; `wellworn jobs run` makes memories of them.")


@command(app, "reembed", "admin reembed --embedder openai:text-embedding-3-small")
def reembed(target: Target) -> None:
    """Move the store to the embedder named by --embedder; can be stopped and resumed.

    Until it is done, recall uses the earlier vectors. No text is changed.
    """
    with target.open(whole=True, reembedding=True) as memory, render.progress_bar("embedding") as progress:
        done = memory.admin.reembed(progress=progress)
    shown = render.pairs({**vars(done), "model": done.model.name})
    _answer(target, vars(done), shown, of="the whole store")


@command(app, "stats", "admin stats --json")
def stats(target: Target) -> None:
    """Count what there is: in the whole store, or of a tenant or a layer that is named."""
    with target.open(whole=True) as memory:
        found = memory.admin.stats(scope=target.owner)
    _answer(target, vars(found))


@command(app, "costs", "admin costs --by day --since 2026-05-01")
def costs(
    target: Target,
    by: Annotated[list[str] | None, option("--by", "WHAT", "tenant, purpose, model or day; may be repeated.")] = None,
    since: options.Since = None,
) -> None:
    """Show what language models were asked for, and what it cost: in the whole store, or for a tenant."""
    groups = by or ["purpose", "model"]
    with target.open(whole=True) as memory:
        found = memory.admin.costs(since=since, by=groups, scope=target.owner)
    columns = (*groups, "calls", "failed", "tokens in", "tokens out", "USD", "seconds")
    rows = [
        (*one.key, one.calls, one.failed, one.input_tokens, one.output_tokens, f"{one.usd:.4f}", f"{one.seconds:.1f}")
        for one in found
    ]
    _answer(target, {"by": groups, "spent": found}, render.table(columns, rows), of=_tenant(target))
    if not found:
        target.say("No model was asked.")


@command(app, "events", "admin events --limit 20")
def events(target: Target, limit: options.Limit = 50) -> None:
    """Show the audit log of the whole store, or of a tenant, newest first.

    It says what was done to which entry and when, and who called the service for what, never a text.
    """
    with target.open(whole=True) as memory:
        found = memory.admin.events(limit=limit, scope=target.owner)
    several = len({event.tenant for event in found}) > 1
    rows = []
    for event in found:
        detail = {name: value for name, value in event.detail.items() if name != "actor"}
        tenant, who = event.tenant if several else None, event.detail.get("actor")
        rows.append((event.at, tenant, who, event.action, event.entry_id, detail))
    shown = render.table(("when", "tenant", "who", "action", "entry", "detail"), rows)
    _answer(target, {"events": found}, shown, of=_tenant(target))


@command(app, "expire", "admin expire --keep episode=90 --tenant acme")
def expire(
    target: Target,
    keep: Annotated[list[str] | None, option("--keep", "KIND=DAYS", KEEP)] = None,
    dry_run: options.DryRun = False,
) -> None:
    """Forget what retention policies no longer keep, and show them; run it from a schedule.

    Every tenant has a policy of its own; without one everything is kept.
    """
    kept = [_kept_for(one) for one in keep or ()]
    with target.open(whole=True) as memory, render.progress_bar("expiring"):
        changed = _changed_policy(memory, Scope(tenant=target.scope.tenant), kept) if kept else None
        tenant = target.scope.tenant if kept or target.owner is not None else None
        scope = None if tenant is None else Scope(tenant=tenant)
        if changed is not None and not dry_run:
            memory.admin.retention(changed, scope=scope)
        done = memory.admin.expire(policy=changed, dry_run=dry_run, scope=scope)
        tenants = {one.tenant for one in memory.engine.store.covered(scope)} if tenant is None else {tenant}
        policies = {one: changed or memory.admin.retention(scope=Scope(tenant=one)) for one in sorted(tenants)}
    rows = [(one, _policy_told(policy)) for one, policy in policies.items()]
    counts = {"entries": done.entries, RECALLS: done.recalls, **({CALLS: done.calls} if done.calls else {})}
    _answer(
        target,
        {**vars(done), "dry_run": dry_run, "policies": policies},
        render.table(("tenant", "keeps"), rows),
        render.pairs({f"{name} {'to remove' if dry_run else 'removed'}": str(n) for name, n in counts.items()}),
        of="the whole store" if tenant is None else f"tenant {tenant}",
    )
    if done.counted_from is not None:
        target.say(
            f"Ages were counted from {done.counted_from:%Y-%m-%d}: the clock has moved on by more than a day since it was "
            "last seen. Run this again tomorrow."
        )


def _kept_for(text: str) -> tuple[str, float | None]:
    """A kind and its days; None for all time."""
    kind, _, days = text.partition("=")
    try:
        return kind, None if days == ALWAYS else float(days)
    except ValueError:
        raise InvalidInput("--keep", f"{text!r} is not KIND=DAYS", f"as in episode=90 or episode={ALWAYS}") from None


def _changed_policy(memory: Memory, scope: Scope, kept: Sequence[tuple[str, float | None]]) -> RetentionPolicy:
    before = memory.admin.retention(scope=scope)
    days = {**before.kinds, RECALLS: before.recalls, CALLS: before.calls, **dict(kept)}
    recalls, calls = days.pop(RECALLS), days.pop(CALLS)
    kinds = {kind: one for kind, one in days.items() if one is not None}
    return replace(before, kinds=kinds, recalls=recalls, calls=calls)


def _policy_told(policy: RetentionPolicy) -> str:
    days = {**policy.kinds, RECALLS: policy.recalls, CALLS: policy.calls}
    return ", ".join(f"{kind} {one:g} days" for kind, one in days.items() if one is not None) or "everything"


@command(app, "erase", "admin erase --user ada --yes")
def erase(target: Target, yes: options.Yes = False) -> None:
    """Erase a person with everything derived, and print a signed receipt. Older backups go with the next backup.

    Asks first on a terminal; elsewhere --yes is needed.
    """
    from wellworn.ops.files import kept_copies

    scope, whose = target.named, f"{target.whose} in {target.place}"
    with target.open(whole=True) as memory:
        confirm("erase", f"Erase everything of {whose} for good?", no="Nothing was erased.", yes=yes)
        with render.progress_bar("erasing"):
            signed = memory.admin.erase(scope=scope)
    target.answer(signed, render.pairs({**signed.receipt, "signature": signed.signature}))
    for path in kept_copies(Path(target.db)):
        target.say(f"{path} was kept by a restore or a repair and may still hold {whose}: delete it.")


# -- backups -----------------------------------------------------------------------------------------------------

Folder = Annotated[
    Path | None, option("--folder", "PATH", "Where backups lie; FILE.backups by default. A database needs one.")
]
File = Annotated[Path, argument("BACKUP", "A backup file.")]


@command(backup_app, "create", "backup create --keep 7")
def backup_create(
    target: Target,
    folder: Folder = None,
    keep: Annotated[int | None, option("--keep", "N", "Keep only the newest N.")] = None,
    every: Annotated[float | None, option("--every", "HOURS", "Do nothing while the last one is younger.")] = None,
) -> None:
    """Write a compressed backup of the whole store, in use or not, and check it by restoring it."""
    interval = None if every is None else timedelta(hours=every)
    with target.open(whole=True) as memory, render.progress_bar("backing up"):
        done = memory.admin.backup(folder, keep=keep, every=interval)
    shown = {} if done.made is None else vars(done.made)
    target.answer(done, render.pairs({**shown, "removed": len(done.removed), "kept": done.kept}))
    if done.made is None:
        target.say("The last backup is young enough; nothing was done.")
    for path in done.unsure:
        target.say(f"{path} is older than the last erasure and stays: it may be of another file. If not, delete it.")


@command(backup_app, "list", "backup list")
def backup_list(target: Target, folder: Folder = None) -> None:
    """List the backups of the memory, newest first."""
    from wellworn.ops.backup import folder_of, list_backups

    found = list_backups(folder or folder_of(target.place), target.place)
    rows = [(one.created_at, one.entries, one.bytes, "yes" if one.encrypted else "no", one.path) for one in found]
    shown = render.table(("made", "entries", "bytes", "encrypted", "file"), rows)
    target.answer({"backups": found}, shown, nothing="No backups. Make one with `wellworn backup create`.")


@command(backup_app, "verify", "backup verify memory.db.backups/FILE")
def backup_verify(target: Target, path: File) -> None:
    """Check a backup by restoring it into a temporary file; exits 2 if it is damaged."""
    from wellworn.ops.backup import check
    from wellworn.store import key_in_environment
    from wellworn.store.sqlite import SqliteStore

    found = check(path, open_store=lambda file: SqliteStore(file, key=key_in_environment()))
    target.answer(found, render.pairs({**vars(found), "verified": "yes"}))


@command(backup_app, "restore", "backup restore memory.db.backups/FILE --db restored.db")
def backup_restore(
    target: Target,
    path: File,
    force: Annotated[bool, flag("--force", "Replace the file; it is kept as FILE.before-restore.")] = False,
) -> None:
    """Restore a backup to the file named by --db; close every program on that file first."""
    from wellworn.ops.backup import restore

    found, kept = restore(path, target.file, force=force)
    shown = {"restored to": target.db, "entries": found.entries, "made": found.created_at}
    target.answer(found, render.pairs({**shown, **({} if kept is None else {"the file before": kept})}))

"""`wellworn outcome`, `practise` and `learn`: tell what became of a recall, and look after what was learned from it.

Verbs of the group: status, plot, replay, export, share, reset.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from wellworn.cli import learn_plot, options, render
from wellworn.cli.ask import confirm
from wellworn.cli.stdin import json_lines, read_stdin
from wellworn.cli.target import Target, with_target
from wellworn.core.errors import InvalidInput
from wellworn.core.values import LearningStatus

verbs = typer.Typer()
app = typer.Typer(no_args_is_help=True, help="What recall has learned from use: look at it, rebuild it, reset it.")

Pairs = tuple[str, list[str]]


@verbs.command("outcome", epilog="Example: wellworn outcome 0198c0de-… --cited 0,2")
@with_target
def outcome(
    target: Target,
    recall_id: Annotated[str, typer.Argument(metavar="RECALL_ID", help="The recall's id, which `recall` prints.")],
    cited: Annotated[
        str | None, typer.Option("--cited", metavar="N,N,…", help="Places of the useful hits, from 0.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="No hit was useful.")] = False,
    used: Annotated[float | None, typer.Option("--used", metavar="0..1", help="How useful the hits were.")] = None,
    ignored: Annotated[bool, typer.Option("--ignored", help="The hits were not looked at.")] = False,
    refined: Annotated[
        str | None, typer.Option("--refined", metavar="TEXT", help="The query that was asked instead.")
    ] = None,
    success: Annotated[
        bool | None, typer.Option("--success/--failure", help="How the task ended that the hits were used for.")
    ] = None,
    profile: options.ProfileName = "default",
) -> None:
    """Tell what became of a recall, so that recall can learn from it: one of the options.

    An outcome told twice counts once; of an entry that was forgotten since it teaches nothing.
    """
    if none and cited is not None:
        raise InvalidInput("outcome", "--none and --cited were given", "give one of them")
    places = [] if none else _places(cited)
    with target.open(profile=profile) as memory:
        counted = memory.outcome(
            recall_id, cited=places, used=used, ignored=ignored, refined=refined, success=success, scope=target.scope
        )
    if target.json:
        render.print_json({"recall_id": recall_id, "counted": counted})
    else:
        render.say("counted" if counted else "was counted already")


@verbs.command("practise", epilog="Example: wellworn practise --user ada --tasks 30")
@with_target
def practise(
    target: Target, tasks: Annotated[int, typer.Option("--tasks", metavar="N", help="Questions at most.")] = 60
) -> None:
    """Try every way to search on questions made from the scope's own entries, so that learning does not begin blind.

    Once for a tenant. Nothing is logged, and nothing served changes before outcomes say so.
    """
    with target.open(background=False) as memory:
        done = memory.learning.practise(scope=target.scope, tasks=tasks)
    if target.json:
        render.print_json({"tasks": done})
    elif done:
        render.say(f"practised on {done} {'question' if done == 1 else 'questions'} of {target}")
    else:
        render.say(
            f"nothing to practise for {target}: it was done before, or no two entries name each other or share a tag"
        )


@app.command("status", epilog="Example: wellworn learn status --user ada")
@with_target
def status(target: Target, profile: options.ProfileName = "default") -> None:
    """Print what serves the scope's recalls, why, and the weights it has learned."""
    with target.open(profile=profile) as memory:
        found = memory.learning.status(scope=target.scope)
    _print_status(found, target)


@app.command("plot", epilog="Example: wellworn learn plot --png learning.png")
@with_target
def plot(
    target: Target,
    png: Annotated[Path | None, typer.Option("--png", metavar="PATH", help="Draw it into this file instead.")] = None,
) -> None:
    """Draw how often hits were cited, the gain over the untrained ranking and the weights, over time.

    Replayed from the log. A PNG file needs matplotlib (the extra "plot").
    """
    with target.open() as memory:
        curve = memory.learning.curve(scope=target.scope)
    if png is not None:
        learn_plot.save_png(curve, png)
    if target.json:
        render.print_json({"curve": curve})
    elif not curve:
        render.say(f"nothing to draw: no outcome yet for {target} in {target.db}")
    elif png is None:
        render.print_lines(learn_plot.drawing(curve))
    else:
        render.say(f"drew {len(curve)} outcomes into {png}")


@app.command("replay", epilog="Example: wellworn learn replay --pairs labelled.jsonl")
@with_target
def replay(
    target: Target,
    pairs: Annotated[
        str | None,
        typer.Option("--pairs", metavar="PATH", help='Labelled queries to learn from first; "-" reads standard input.'),
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Also what came before a reset, which is taken back.")] = False,
    profile: options.ProfileName = "default",
) -> None:
    """Learn the tenant's log since its last reset anew and print where it leads; the same log gives the same weights.

    Pairs are JSON, one object a line: {"query": …, "ids": [ids of the entries that answer it]}. They take the place of
    earlier ones, which stay without the option.
    """
    given = None if pairs is None else _pairs(pairs)
    with target.open(profile=profile) as memory:
        found = memory.learning.relearn(scope=target.scope, pairs=given, whole=whole)
    _print_status(found, target)


@app.command("export", epilog="Example: wellworn learn export weights.json")
@with_target
def export(
    target: Target,
    path: Annotated[
        Path | None, typer.Argument(metavar="PATH", help="The file to write; standard output without it.")
    ] = None,
) -> None:
    """Write what was learned as JSON: numbers only, no text."""
    with target.open() as memory:
        found = memory.learning.export(scope=target.scope)
    if path is not None:
        path.write_text(json.dumps(render.document(found), indent=2) + "\n", encoding="utf-8")
        render.say(f"wrote {path}")
    if path is None or target.json:
        render.print_json(found)


@app.command("share", epilog="Example: wellworn learn share --off --tenant acme")
@with_target
def share(
    target: Target,
    on: Annotated[bool, typer.Option("--on/--off", help="Whether the tenant's users learn from each other.")],
) -> None:
    """Say whether a new user starts from what the tenant's other users taught."""
    with target.open() as memory:
        memory.learning.share(on, scope=target.scope)
    if target.json:
        render.print_json({"tenant": target.scope.tenant, "shares": on})
    else:
        render.say(f"users of tenant {target.scope.tenant} {'learn' if on else 'do not learn'} from each other")


@app.command("reset", epilog="Example: wellworn learn reset --tenant acme --yes")
@with_target
def reset(target: Target, yes: options.Yes = False) -> None:
    """Drop what the tenant's users taught; recall is then as untrained, and what was told so far teaches no more.

    Asks first on a terminal; elsewhere --yes is needed.
    """
    tenant = f"tenant {target.scope.tenant} in {target.db}"
    confirm("learn reset", f"Drop all that was learned for {tenant}?", no="nothing was dropped", yes=yes)
    with target.open() as memory:
        dropped = memory.learning.reset(scope=target.scope)
    if target.json:
        render.print_json({"dropped": dropped})
    else:
        render.say(f"dropped {dropped} learned {'state' if dropped == 1 else 'states'} of {tenant}")


def _places(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput("--cited", f"{text!r} is not a list of places", "as in 0,2; --none when none was") from None


def _pairs(path: str) -> list[Pairs]:
    text = read_stdin() if path == "-" else Path(path).read_text(encoding="utf-8")
    found: list[Pairs] = []
    for number, line in json_lines(text):
        query, ids = line.get("query"), line.get("ids")
        if not isinstance(query, str) or not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
            raise InvalidInput(f"line {number}", "is not a pair", 'as in {"query": "…", "ids": ["…"]}')
        found.append((query, ids))
    return found


def _print_status(found: LearningStatus, target: Target) -> None:
    if target.json:
        render.print_json(found)
        return
    tables = ("weights", "searches")
    pairs = {name.replace("_", " "): value for name, value in vars(found).items() if name not in tables}
    rounded = {name: f"{value:+.3f}" if isinstance(value, float) else value for name, value in pairs.items()}
    out = render.console()
    out.print(render.pair_table({"for": target, **rounded}))
    if found.weights:
        out.print(render.row_table(("weight", "value"), [(n, f"{w:+.3f}") for n, w in found.weights.items()]))
    if found.searches:
        rows = [
            (
                one.shape,
                str(one.outcomes),
                one.serves,
                ", ".join(f"{way} {reward:+.2f}" for way, reward in one.rewards.items()),
            )
            for one in found.searches
        ]
        out.print(render.row_table(("questions", "outcomes", "searched by", "mean rewards"), rows))

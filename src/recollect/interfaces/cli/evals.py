"""`recollect eval`: measure recall on public sets. Verbs: locomo, realmem, multihop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from recollect.errors import InvalidInput
from recollect.interfaces.cli import render
from recollect.interfaces.cli.guard import guarded
from recollect.interfaces.cli.target import SHARED, JsonFlag

if TYPE_CHECKING:
    from recollect.evals.report import Report
    from recollect.evals.run import Progress, Settings


class Runner(Protocol):
    """How each set is run."""

    def __call__(self, folder: Path, settings: Settings, *, progress: Progress | None = None) -> Report: ...


app = typer.Typer(no_args_is_help=True, help="Measure recall on public data sets, on the real product.")

Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="The folder with the set's files; no set is shipped.")
]
Cutoffs = Annotated[str, typer.Option("--k", metavar="N,N,…", help="The cut-offs to report.")]
EmbedderName = Annotated[
    str | None, typer.Option("--embedder", metavar="NAME", help=SHARED["embedder"].sentence, show_default=False)
]
ProfileName = Annotated[str, typer.Option("--profile", metavar="NAME", help="The scoring profile to measure.")]


@app.command("locomo", epilog="Example: recollect eval locomo --data ./locomo --k 5,10,20")
@guarded
def locomo(ctx: typer.Context, data: Data = None, k: Cutoffs = "5,10,20", embedder: EmbedderName = None,
           profile: ProfileName = "default", json: JsonFlag = False) -> None:  # fmt: skip
    """Two people chat over months; evidence turns are ground truth, overall and by category.

    Dataset not shipped: get it from the public repository snap-research/locomo.
    """
    from recollect.evals import locomo

    _measure(locomo.run, "locomo", data, _settings(ctx, k, embedder, profile), as_json=_wants_json(ctx, json))


@app.command("realmem", epilog="Example: recollect eval realmem --data ./realmem --k 10")
@guarded
def realmem(ctx: typer.Context, data: Data = None, k: Cutoffs = "5,10,20", embedder: EmbedderName = None,
            profile: ProfileName = "default", json: JsonFlag = False) -> None:  # fmt: skip
    """A person and an assistant over many sessions; each query sees earlier sessions only.

    Dataset not shipped: get it from the public repository zhiyuan5986/RealMemBench.
    """
    from recollect.evals import realmem

    _measure(realmem.run, "realmem", data, _settings(ctx, k, embedder, profile), as_json=_wants_json(ctx, json))


@app.command("multihop", epilog="Example: recollect eval multihop --data ./multihop --k 2,5,10")
@guarded
def multihop(ctx: typer.Context, data: Data = None, k: Cutoffs = "5,10,20", embedder: EmbedderName = None,
             profile: ProfileName = "default", json: JsonFlag = False) -> None:  # fmt: skip
    """Questions that need several passages (MuSiQue, HotpotQA); all@k asks for every one of them.

    Dataset not shipped: get it from the public repository OSU-NLP-Group/HippoRAG.
    """
    from recollect.evals import multihop

    _measure(multihop.run, "multihop", data, _settings(ctx, k, embedder, profile), as_json=_wants_json(ctx, json))


def _measure(run: Runner, dataset: str, data: Path | None, settings: Settings, *, as_json: bool) -> None:
    from recollect.evals.files import hint
    from recollect.evals.report import summary

    if data is None:
        raise InvalidInput("--data", "is missing", hint(dataset))
    with render.progress_bar("measuring") as progress:
        report = run(data, settings, progress=progress)
    if as_json:
        render.print_json(report.as_json())
        return
    out = render.console()
    for table in report.tables():
        out.print(table)
    render.say(summary(report))


def _settings(ctx: typer.Context, k: str, embedder: str | None, profile: str) -> Settings:
    """An embedder after the verb counts, else one before it or in the environment, else the default."""
    from recollect.evals.run import Settings, parse_ks

    chosen = embedder or ctx.find_root().obj.get("embedder") or SHARED["embedder"].default
    return Settings(ks=parse_ks(k), embedder=str(chosen), profile=profile)


def _wants_json(ctx: typer.Context, json: bool) -> bool:
    return json or bool(ctx.find_root().obj.get("json"))

"""`wellworn eval`: measure recall on public sets, and learning in a world of its own.

Verbs: locomo, realmem, multihop, learn, extraction, router, policy.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from wellworn.cli import chart, render
from wellworn.cli.guard import guarded
from wellworn.cli.options import LlmName
from wellworn.cli.target import SHARED, JsonFlag
from wellworn.core.errors import InvalidInput

if TYPE_CHECKING:
    from evals.learn_report import LearnReport
    from evals.report import Report
    from evals.run import Settings

    from wellworn.core.values import Progress


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
RecursionMode = Annotated[
    str, typer.Option("--recursion", metavar="MODE", help="on (the router decides), off (always plain) or always.")
]
ProfileName = Annotated[str, typer.Option("--profile", metavar="NAME", help="The scoring profile to measure.")]


@app.command("locomo", epilog="Example: wellworn eval locomo --data ./locomo --k 5,10,20")
@guarded
def locomo(
    ctx: typer.Context,
    data: Data = None,
    k: Cutoffs = "5,10,20",
    embedder: EmbedderName = None,
    profile: ProfileName = "default",
    recursion: RecursionMode = "on",
    with_memories: Annotated[
        bool, typer.Option("--with-memories", help="Reflect on every session first: memories beside the turns.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Two people chat over months; evidence turns are ground truth, overall and by category.

    Dataset not shipped: get it from the public repository snap-research/locomo.
    """
    from evals import locomo

    run = partial(locomo.run, reflected=with_memories)
    _measure(run, "locomo", data, _settings(ctx, k, embedder, profile, recursion), as_json=_wants_json(ctx, json))


@app.command("realmem", epilog="Example: wellworn eval realmem --data ./realmem --k 10")
@guarded
def realmem(
    ctx: typer.Context,
    data: Data = None,
    k: Cutoffs = "5,10,20",
    embedder: EmbedderName = None,
    profile: ProfileName = "default",
    recursion: RecursionMode = "on",
    json: JsonFlag = False,
) -> None:
    """A person and an assistant over many sessions; each query sees earlier sessions only.

    Dataset not shipped: get it from the public repository zhiyuan5986/RealMemBench.
    """
    from evals import realmem

    settings = _settings(ctx, k, embedder, profile, recursion)
    _measure(realmem.run, "realmem", data, settings, as_json=_wants_json(ctx, json))


@app.command("multihop", epilog="Example: wellworn eval multihop --data ./multihop --k 2,5,10")
@guarded
def multihop(
    ctx: typer.Context,
    data: Data = None,
    k: Cutoffs = "5,10,20",
    embedder: EmbedderName = None,
    profile: ProfileName = "default",
    recursion: RecursionMode = "on",
    json: JsonFlag = False,
) -> None:
    """Questions that need several passages (MuSiQue, HotpotQA); all@k asks for every one of them.

    Dataset not shipped: get it from the public repository OSU-NLP-Group/HippoRAG.
    """
    from evals import multihop

    settings = _settings(ctx, k, embedder, profile, recursion)
    _measure(multihop.run, "multihop", data, settings, as_json=_wants_json(ctx, json))


@app.command("learn", epilog="Example: wellworn eval learn --data ./locomo --noise 0.09,0.05 --seeds 3")
@guarded
def learn(
    ctx: typer.Context,
    data: Data = None,
    noise: Annotated[
        str,
        typer.Option("--noise", metavar="MISS,FALSE", help="Shares of citations missed and made up; 9,5 is percent."),
    ] = "0,0",
    feedback: Annotated[
        str, typer.Option("--feedback", metavar="KIND", help="honest, random, inverted, first, first-two or last.")
    ] = "honest",
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Random orders of the questions.")] = 1,
    conversations: Annotated[
        int | None, typer.Option("--conversations", metavar="N", min=2, help="Only the first N of them.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="PATH", help="Draw the curve into an SVG file.")
    ] = None,
    embedder: EmbedderName = None,
    profile: ProfileName = "default",
    json: JsonFlag = False,
) -> None:
    """Does learning from citations help a new user? LoCoMo, each conversation a user, one left out in turn.

    Citations are simulated from the evidence among the five shown. Dataset as for locomo, not shipped.
    """
    from evals import learn
    from evals.citing import Citing, parse_noise

    miss, false = parse_noise(noise)
    settings = learn.Settings(
        citing=Citing(feedback=feedback, miss=miss, false=false),
        seeds=seeds,
        conversations=conversations,
        embedder=_embedder(ctx, embedder),
        profile=profile,
    )
    with render.progress_bar("living") as progress:
        report = learn.run(_there("locomo", data), settings, progress=progress)
    if plot is not None:
        plot.write_text(chart.svg(_curves(report), title=f"Citations: {report.citing}", **_AXES), encoding="utf-8")
    if _wants_json(ctx, json):
        render.print_json(report.as_json())
    else:
        _print_learned(report)


@app.command("extraction", epilog="Example: wellworn eval extraction --data ./realmem --examples 5")
@guarded
def extraction(
    ctx: typer.Context,
    data: Data = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Only the first N sessions of each persona.")
    ] = None,
    examples: Annotated[
        int, typer.Option("--examples", metavar="N", min=0, help="Show N memories missed and N that are junk.")
    ] = 0,
    llm: LlmName = None,
    json: JsonFlag = False,
) -> None:
    """Which memories are found in a session? RealMem, whose gold memories name their source turn.

    Coverage of gold source turns, precision of what is found, junk in sessions that hold nothing to remember.
    Dataset as for realmem, not shipped.
    """
    from evals import extraction
    from evals.extracting import ModelExtractor
    from evals.extraction_report import summary

    from wellworn.models import choose_model

    folder, model = _there("realmem", data), choose_model(llm)
    extract = extraction.by_rules if model is None else ModelExtractor(model)
    with render.progress_bar("reading") as progress:
        report = extraction.run(
            folder, extract, name="rules" if model is None else model.name, limit=limit, progress=progress
        )
    if _wants_json(ctx, json):
        render.print_json(report.as_json() | ({"examples": report.examples(examples)} if examples else {}))
        return
    render.console().print(report.table())
    render.print_lines(report.examples(examples))
    render.say(summary(report))


_AXES = {"x": "questions asked, percent", "y": "points of Recall@5 over untrained"}


def _curves(report: LearnReport) -> dict[str, chart.Points]:
    """Gain over time of every way that learns, the fullest first: it is drawn on top."""
    ways = [way for way in reversed(report.answers) if way != "untrained"]
    return {way: [(asked, gain.mean) for asked, gain in report.curve(way)] for way in ways}


def _print_learned(report: LearnReport) -> None:
    from evals.learn_report import summary

    out = render.console()
    for table in report.tables():
        out.print(table)
    render.print_lines([_AXES["y"], *chart.text(_curves(report), x=_AXES["x"], form="{:+.1f}"), ""])
    render.say(summary(report))


@app.command("router", epilog="Example: wellworn eval router --data ./multihop")
@guarded
def router(
    ctx: typer.Context,
    data: Data = None,
    k: Cutoffs = "5",
    threshold: Annotated[
        float, typer.Option("--threshold", metavar="SCORE", help="From which score on a question is recursive.")
    ] = 0.3,
    embedder: EmbedderName = None,
    json: JsonFlag = False,
) -> None:
    """Which questions are sent on the recursive route: precision and recall on labelled ones that are shipped.

    With --data (multihop or locomo), also recall when always plain, as routed, always recursive, and the best of both.
    """
    from evals import router

    settings = _settings(ctx, k, embedder, "default", "on")
    with render.progress_bar("measuring") as progress:
        report = router.run(data, settings, threshold=threshold, progress=progress)
    if _wants_json(ctx, json):
        render.print_json(report.as_json())
        return
    render.say(
        f"{report.right + report.missed + report.needless + report.spared} labelled questions, threshold {threshold}: "
        f"precision {report.precision:.3f}, recall {report.recall:.3f}, {report.route_ms:.3f} ms a question"
    )
    if report.habits:
        categories = [*report.habits[0].by_category]
        rows = [
            (one.name, f"{one.overall:.1f}", *[f"{one.by_category[name]:.1f}" for name in categories])
            for one in report.habits
        ]
        render.console().print(render.row_table((report.metric, "overall", *categories), rows))


@app.command("policy", epilog="Example: wellworn eval policy --seeds 5 --feedback inverted")
@guarded
def policy(
    ctx: typer.Context,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="Lives, each in a world of its own.")] = 5,
    outcomes: Annotated[int, typer.Option("--outcomes", metavar="N", min=1, help="Outcomes of each life.")] = 300,
    feedback: Annotated[str, typer.Option("--feedback", metavar="KIND", help="honest, random or inverted.")] = "honest",
    json: JsonFlag = False,
) -> None:
    """Does the memory learn how to search? Four families of questions, of each of which another way is best.

    Real memories, recalls and outcomes; the world is made from a seed, so no data is needed.
    """
    from evals import policy

    with render.progress_bar("living") as progress:
        report = policy.run(seeds=seeds, outcomes=outcomes, feedback=feedback, progress=progress)
    if _wants_json(ctx, json):
        render.print_json(report.as_json())
    else:
        render.console().print(
            render.row_table(("percent of the best way of each family", "mean (95 %)"), report.rows())
        )
        render.say(f"{seeds} lives of {outcomes} outcomes, {feedback} feedback")


def _measure(run: Runner, dataset: str, data: Path | None, settings: Settings, *, as_json: bool) -> None:
    from evals.report import summary

    with render.progress_bar("measuring") as progress:
        report = run(_there(dataset, data), settings, progress=progress)
    if as_json:
        render.print_json(report.as_json())
        return
    out = render.console()
    for table in report.tables():
        out.print(table)
    render.say(summary(report))


def _settings(ctx: typer.Context, k: str, embedder: str | None, profile: str, recursion: str) -> Settings:
    from evals.run import Settings, parse_ks

    return Settings(ks=parse_ks(k), embedder=_embedder(ctx, embedder), profile=profile, recursion=recursion)


def _embedder(ctx: typer.Context, embedder: str | None) -> str:
    """The one after the verb counts, else one before it or in the environment, else the default."""
    return str(embedder or ctx.find_root().obj.get("embedder") or SHARED["embedder"].default)


def _there(dataset: str, data: Path | None) -> Path:
    from evals.files import hint

    if data is None:
        raise InvalidInput("--data", "is missing", hint(dataset))
    return data


def _wants_json(ctx: typer.Context, json: bool) -> bool:
    return json or bool(ctx.find_root().obj.get("json"))

"""`python -m evals NAME`: measure one thing and print its tables, or one JSON document with `--json`."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress as Bar

from evals import chats as chats_eval
from evals import documents as documents_eval
from evals import extraction as extraction_eval
from evals import hops as hops_eval
from evals import judge as judge_eval
from evals import languages as languages_eval
from evals import learn as learn_eval
from evals import life as life_eval
from evals import over as over_eval
from evals import preferences as preferences_eval
from evals import recall as recall_eval
from evals import tasks as tasks_eval
from evals import topics as topics_eval
from evals.report import Report
from wellworn.core.errors import WellwornError
from wellworn.core.values import Progress

DATA = Path("../shared/data")

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Measure quality. Data sets are not shipped.")

Data = Annotated[Path, typer.Option("--data", metavar="DIR", help="The folder that holds one folder per data set.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Embedder = Annotated[str, typer.Option("--embedder", metavar="NAME", help="static, hash, openai:MODEL …")]
Profile = Annotated[str, typer.Option("--profile", metavar="NAME", help="The scoring profile.")]


RECALL = {
    "locomo": "Two people chat over months: are the turns that answer a question found?",
    "realmem": "A person and an assistant over many sessions: are the sessions that an answer draws on found?",
    "multihop": "Questions that need several passages: are all of them found?",
}


def recall(
    ctx: typer.Context,
    data: Data = DATA,
    k: Annotated[str, typer.Option("--k", metavar="N,N,…", help="The cut-offs to report.")] = "5,10,20",
    embedder: Embedder = "reader",
    profile: Profile = "default",
    recursion: Annotated[str, typer.Option("--recursion", metavar="MODE", help="on, off or always.")] = "on",
    reflected: Annotated[
        bool, typer.Option("--reflected", help="LoCoMo: turn every session into memories first.")
    ] = False,
    json: Json = False,
) -> None:
    name = str(ctx.info_name)
    ks = tuple(sorted({max(1, int(part)) for part in k.split(",")}))
    settings = recall_eval.Settings(ks=ks, embedder=embedder, profile=profile, recursion=recursion, reflected=reflected)
    with _bar() as progress:
        report = getattr(recall_eval, name)(data / name, settings, progress=progress)
    _print(report, json)


for name, text in RECALL.items():
    app.command(name, help=text)(recall)


@app.command()
def learn(
    data: Data = DATA,
    feedback: Annotated[str, typer.Option("--feedback", help="honest, random, inverted, first or last.")] = "honest",
    miss: Annotated[float, typer.Option("--miss", help="Share of evidence that is not cited.")] = 0.0,
    false: Annotated[float, typer.Option("--false", help="Share of the rest that is cited.")] = 0.0,
    seeds: Annotated[int, typer.Option("--seeds", help="Random orders of the questions.")] = 1,
    conversations: Annotated[int | None, typer.Option("--conversations", help="Only the first N.")] = None,
    embedder: Embedder = "reader",
    profile: Profile = "default",
    json: Json = False,
) -> None:
    """Does learning from citations help a new user? LoCoMo, each conversation left out in turn."""
    citing = learn_eval.Citing(feedback=feedback, miss=miss, false=false)
    settings = learn_eval.Settings(
        citing=citing, seeds=seeds, conversations=conversations, embedder=embedder, profile=profile
    )
    with _bar() as progress:
        report = learn_eval.run(data / "locomo", settings, progress=progress)
    _print(report, json)


@app.command()
def prior(
    out: Annotated[Path, typer.Argument(metavar="PATH", help="Where to write it.")],
    data: Data = DATA,
    tune: Annotated[str, typer.Option("--tune", metavar="NAME,…", help="Conversations to learn from.")] = "26,41,43",
) -> None:
    """Learn a prior from labelled LoCoMo conversations, as `Memory(prior=…)` reads it."""
    out.write_text(jsonlib.dumps(learn_eval.pretrain(data / "locomo", tune.split(","))) + "\n")


@app.command()
def preferences(
    name: Annotated[list[str] | None, typer.Option("--name", help="Only this preference; repeat it.")] = None,
    feedback: Annotated[str, typer.Option("--feedback", help="honest, random, inverted, first or last.")] = "honest",
    miss: Annotated[float, typer.Option("--miss", help="Share of answers that is not cited.")] = 0.0,
    false: Annotated[float, typer.Option("--false", help="Share of the rest that is cited.")] = 0.0,
    seeds: Annotated[int, typer.Option("--seeds", help="Worlds for each preference.")] = 1,
    embedder: Embedder = "reader",
    json: Json = False,
) -> None:
    """Does learning help where the untrained ranking is wrong? A made-up world; needs no data."""
    citing = learn_eval.Citing(feedback=feedback, miss=miss, false=false)
    with _bar() as progress:
        report = preferences_eval.run(name or (), citing=citing, seeds=seeds, embedder=embedder, progress=progress)
    _print(report, json)


@app.command()
def extraction(
    data: Data = DATA,
    llm: Annotated[str | None, typer.Option("--llm", help="A model, as in ollama:llama3.2; rules without.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N sessions of each persona.")] = None,
    examples: Annotated[int, typer.Option("--examples", help="Show N memories missed and N that are junk.")] = 0,
    json: Json = False,
) -> None:
    """Which memories are found in a session? RealMem's gold memories name their source turn."""
    with _bar() as progress:
        report = extraction_eval.run(data / "realmem", llm=llm, limit=limit, examples=examples, progress=progress)
    _print(report, json)


@app.command()
def sessions(part: Annotated[str, typer.Option("--part", help="tune or check.")] = "check", json: Json = False) -> None:
    """What is kept, left out and outdated in sessions of our own; needs no data."""
    _print(extraction_eval.own(extraction_eval.OWN / f"{part}.txt"), json)


@app.command()
def tasks(
    way: Annotated[list[str] | None, typer.Option("--way", help="Only this way to live; repeat it.")] = None,
    count: Annotated[int, typer.Option("--tasks", help="Tasks in each world.")] = 200,
    seeds: Annotated[int, typer.Option("--seeds", help="Worlds, each with rules of its own.")] = 1,
    words: Annotated[str, typer.Option("--words", help="check, or tune: what was looked at.")] = "check",
    embedder: Embedder = "reader",
    json: Json = False,
) -> None:
    """Does an agent that learns from its tasks succeed more often? A made-up world; needs no data."""
    with _bar() as progress:
        report = tasks_eval.run(way or (), count=count, seeds=seeds, embedder=embedder, words=words, progress=progress)
    _print(report, json)


@app.command()
def documents(embedder: Embedder = "reader", json: Json = False) -> None:
    """Is the page that answers a question found first in a folder of documentation? Beside FTS5; needs no data."""
    _print(documents_eval.run(embedder=embedder), json)


@app.command()
def hops(
    part: Annotated[str, typer.Option("--part", help="tune or check.")] = "check",
    seed: Annotated[int, typer.Option("--seed", help="Other names.")] = 1,
    embedder: Embedder = "reader",
    json: Json = False,
) -> None:
    """Are all notes found that a question needs? Made-up notes with look-alikes; needs no data."""
    if part not in hops_eval.DOMAINS:
        raise ValueError(f"--part {part!r} is neither tune nor check")
    with _bar() as progress:
        report = hops_eval.run(part=part, seed=seed, embedder=embedder, progress=progress)
    _print(report, json)


@app.command()
def judge(data: Data = DATA, embedder: Embedder = "reader", json: Json = False) -> None:
    """Is the judge right about labelled trajectories of tau-bench and Reflexion, and is what they taught found?"""
    with _bar() as progress:
        report = judge_eval.run(data, embedder=embedder, progress=progress)
    _print(report, json)


@app.command()
def life(
    part: Annotated[str, typer.Option("--part", help="tune or check.")] = "check",
    people: Annotated[int, typer.Option("--people", help="Lives in the world.")] = 12,
    seed: Annotated[int, typer.Option("--seed")] = 7,
    embedder: Embedder = "reader",
    json: Json = False,
) -> None:
    """An assistant used for months: does what holds now come first? A made-up world; needs no data."""
    _print(life_eval.run(part, people=people, seed=seed, embedder=embedder), json)


@app.command()
def chats(
    part: Annotated[str, typer.Option("--part", help="tune, check or unseen.")] = "check",
    read: Annotated[bool, typer.Option("--read", help="As if a language model had read each session.")] = False,
    embedder: Embedder = "reader",
    json: Json = False,
) -> None:
    """Chats as people type them: is the turn found that answers, and what holds now first?"""
    _print(chats_eval.run(part, embedder=embedder, read=read), json)


@app.command()
def languages(embedder: Embedder = "reader", json: Json = False) -> None:
    """Six languages beside English: is a message found by a question in its own language, and in another?"""
    _print(languages_eval.run(embedder=embedder), json)


@app.command()
def topics(
    write: Annotated[bool, typer.Option("--write", help="Train on all sentences and replace the model.")] = False,
    json: Json = False,
) -> None:
    """Is the topic of a sentence named right? Trains the model that ships; needs no data."""
    _train(topics_eval.run, write, json)


@app.command()
def over(
    write: Annotated[bool, typer.Option("--write", help="Train on all sentences and replace the model.")] = False,
    json: Json = False,
) -> None:
    """Is it seen when a statement tells that something is over? Trains the model that ships; needs no data."""
    _train(over_eval.run, write, json)


def _train(run: Callable[..., Report], write: bool, json: bool) -> None:
    with _bar() as progress:
        report = run(write=write, progress=progress)
    _print(report, json)


@contextmanager
def _bar() -> Iterator[Progress]:
    console = Console(stderr=True)
    with Bar(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("measuring", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print(report: Report, json: bool) -> None:
    if json:
        print(jsonlib.dumps(report.as_json(), ensure_ascii=False, indent=2))
    else:
        report.print(Console(width=None if sys.stdout.isatty() else 160))


if __name__ == "__main__":
    try:
        app(prog_name="python -m evals")
    except (ValueError, WellwornError) as error:
        sys.exit(f"evals: {error}")

"""The demo's steps on the real product: conversations in, memories of them, questions later, one person forgotten."""

from __future__ import annotations

import json
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from wellworn.core.values import Hit, Receipt, Scope
from wellworn.memory import Memory

REASONS = {
    "terms": "shares its words",
    "meaning": "close in meaning",
    "answers": "answers a question",
    "speaker": "said by the one asked about",
    "recency": "recent",
    "date": "of the date asked about",
    "unsure": "not quite sure",
    "length": "says enough",
    "question": "is itself a question",
    "linked": "linked to a hit",
}


def tell(console: Console, *, keep: Path | None = None) -> dict[str, Any]:
    """Run the demo and return what it showed; `keep` is where the file stays, else it goes with a temporary folder."""
    world = json.loads(files(__package__).joinpath("conversations.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        path = keep or Path(folder) / "memory.db"
        with Memory.open(path) as mem:
            _remember(console, mem, world)
            written = _reflect(console, mem, world)
        with Memory.open(path) as mem:  # a later session: nothing is carried over but the file
            answers = _ask(console, mem, world)
            receipt = _forget(console, mem, world, path)
    return {"written": written, "answers": answers, "forgotten": world["forget"], "receipt": receipt}


def _scope(world: dict[str, Any], person: str) -> Scope:
    return Scope(tenant=world["tenant"], user=person, team="platform")


def _remember(console: Console, mem: Memory, world: dict[str, Any]) -> None:
    console.rule("[bold]1  Remember[/]")
    for person, sessions in world["people"].items():
        turns = 0
        for dialogue in sessions:
            session = mem.session(scope=_scope(world, person), session_id=dialogue["id"])
            for role, text in dialogue["turns"]:
                session.add(role, text, at=dialogue["at"])
                turns += 1
        console.print(f"  {person}: {turns} turns in {len(sessions)} sessions")
    team = Scope(tenant=world["tenant"], team="platform")
    mem.remember_many(world["shared"], scope=team)
    console.print(f"  the team: {len(world['shared'])} shared entries, seen by all three")


def _reflect(console: Console, mem: Memory, world: dict[str, Any]) -> dict[str, list[str]]:
    """End every session; what was said becomes memories, without a model."""
    console.rule("[bold]2  End the sessions: what was said becomes memories[/]")
    written: dict[str, list[str]] = {}
    for person, sessions in world["people"].items():
        for dialogue in sessions:
            mem.session(scope=_scope(world, person), session_id=dialogue["id"]).end(wait=30)
        kept = mem.entries(scope=_scope(world, person), kind=["fact", "preference", "pattern", "note"], layer="user")
        written[person] = [entry.text for entry in kept]
        console.print(f"  [bold cyan]{person}[/]")
        for entry in kept:
            turns = ", ".join(str(number) for number in entry.turn_refs)
            console.print(f"    {entry.text} [dim]— {entry.session_id}, turn {turns}[/]")
    console.print('  [dim]by rules; with a model: Memory.open(..., llm="ollama:llama3.2")[/]')
    return written


def _ask(console: Console, mem: Memory, world: dict[str, Any]) -> list[dict[str, Any]]:
    console.rule("[bold]3  Recall, in a later session[/]")
    answers = []
    for person, question in world["questions"]:
        recall = mem.recall(question, scope=_scope(world, person), k=3)
        console.print(
            f"\n[bold cyan]{person}[/] asks: [bold]{question}[/]  [dim]({recall.cost.seconds * 1000:.1f} ms)[/]"
        )
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(justify="right", style="green")
        table.add_column(ratio=3)
        table.add_column(ratio=2, style="dim")
        for hit in recall.hits:
            table.add_row(f"{hit.score:.1f}", _said(hit), _why(hit))
        console.print(table)
        answers.append({"user": person, "question": question, "hits": recall.hits})
    recall = mem.recall(world["questions"][0][1], scope=_scope(world, "ada"), k=3)
    console.print("\nWhat a model would be given, fenced as data:")
    console.print(recall.context(max_tokens=160), markup=False, highlight=False, style="dim")
    return answers


def _said(hit: Hit) -> str:
    where = hit.entry.session_id or f"{hit.entry.layer} memory"
    return f"{hit.entry.text} [dim]— {where}[/]"


def _why(hit: Hit) -> str:
    """The factors that speak for the hit, largest first."""
    helpful = sorted(hit.factors.items(), key=lambda item: -item[1])
    return ", ".join(f"{REASONS.get(name, name)} {value:+.1f}" for name, value in helpful if value >= 0.2)


def _forget(console: Console, mem: Memory, world: dict[str, Any], path: Path) -> Receipt:
    person = world["forget"]
    console.rule(f"[bold]4  Forget {person}[/]")
    receipt = mem.forget(everything=True, scope=_scope(world, person))
    console.print(
        f"  removed {receipt.entries} entries, {receipt.index_records} index records, {receipt.vectors} vectors, "
        f"{receipt.links} links, {receipt.turns} raw turns in {receipt.sessions} sessions"
    )
    console.print(f"  kept on purpose: {dict(receipt.kept)} (what the team shares)")
    hits = mem.recall("What can Bruno not eat?", scope=_scope(world, person), k=5).hits
    console.print(
        f"  asked again: {sum(hit.entry.layer == 'user' for hit in hits)} of {person}'s own memories recalled"
    )
    left = _marks_in_files(path, world["marks_of_the_forgotten"])
    console.print(f"  words of {person} left in the file's bytes: {left or 'none'}")
    report = mem.verify()
    console.print(f"  verify: {report}")
    if left or not report.ok or any(hit.entry.layer == "user" for hit in hits):
        raise SystemExit("the demo found something that should be gone; please report this")
    return receipt


def _marks_in_files(path: Path, marks: list[str]) -> list[str]:
    """Which of the words can still be read in the store's files."""
    content = b"".join(file.read_bytes() for file in path.parent.glob(path.name + "*")).lower()
    return [mark for mark in marks if mark.lower().encode() in content]

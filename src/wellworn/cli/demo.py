"""`wellworn demo`: remember two people's conversations, recall with reasons, learn, forget one of them, prove it.

Runs on the real product in a temporary file, and stops if something is not as it says. Its clock stands still, so that
the recording is the same on every machine.
"""

from __future__ import annotations

import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wellworn.cli import render
from wellworn.cli.edge import reported
from wellworn.cli.options import EVERYDAY, JsonFlag, option
from wellworn.core.values import Hit, Receipt, Scope
from wellworn.core.wellformed import counted

if TYPE_CHECKING:
    from rich.console import Console

    from wellworn.memory import Memory

app = typer.Typer()

NOW = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
TALKS: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "ada": {
        "2026-03-02": (
            ("user", "Morning! I'm rewriting our ingest service in Rust this quarter."),
            ("assistant", "Nice. Which async runtime are you leaning towards?"),
            ("user", "Tokio. I tried async-std last year and the ecosystem just was not there for us."),
            ("user", "Also please keep answers short, I usually read them on my phone in the tram."),
        ),
        "2026-04-07": (
            ("user", "The staging database fell over again this morning."),
            ("assistant", "Oh no. Is it up again?"),
            ("user", "Yes. Raising the connection pool to sixty fixed the database on staging."),
            ("user", "My sister Ingrid is visiting in May, so no deploys between the 12th and the 16th."),
        ),
    },
    "bruno": {
        "2026-03-05": (
            ("user", "I am allergic to walnuts, so please never suggest the bakery on Kai Street."),
            ("assistant", "Understood, no walnuts and no Kai Street bakery."),
            ("user", "We are moving to a flat near the lighthouse at the end of June."),
        )
    },
}
TEAM_NOTE = "Deploys to production happen on Wednesdays and need two approvals."
QUESTIONS = (
    ("ada", "Which async runtime does Ada like?"),
    ("ada", "What fixed the database on staging?"),
    ("ada", "When do we deploy to production?"),
    ("bruno", "What can Bruno not eat?"),
)
WORDS_OF_BRUNO = ("bruno", "walnut", "lighthouse")


@app.command("demo", epilog="Example: wellworn demo", rich_help_panel=EVERYDAY)
def demo(
    svg: Annotated[Path | None, option("--svg", "PATH", "Record the demo as a picture.")] = None, json: JsonFlag = False
) -> None:
    """See it work in seconds: remember, recall, learn, forget. No key, no server, no download."""
    from rich.console import Console

    with reported(as_json=json):
        page = Console(width=100, record=True, highlight=False) if svg else render.console()
        receipt = tell(Console(quiet=True) if json else page)
        if svg is not None:
            svg.write_text(drawn(page), encoding="utf-8")
        if json:
            render.print_json({"receipt": receipt})


def tell(page: Console) -> Receipt:
    """Run the demo and return the receipt of its forget; nothing is left behind."""
    from wellworn.memory import Memory

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Memory.open(path, clock=lambda: NOW, background=False) as memory:
            _remember(page, memory)
        with Memory.open(path, clock=lambda: NOW, background=False) as memory:
            _recall(page, memory)
            return _forget(page, memory, path)


def drawn(page: Console) -> str:
    """What the console printed, as an SVG that fetches nothing: the terminal's own font instead of a web font."""
    picture = page.export_svg(title="wellworn demo", unique_id="demo")
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)


def _scope(person: str) -> Scope:
    return Scope(tenant="demo", user=person, team="platform")


def _remember(page: Console, memory: Memory) -> None:
    page.print("[bold]1. Remember conversations.[/] When one ends, what was said becomes memories:")
    for person, talks in TALKS.items():
        for day, turns in talks.items():
            session = memory.session(scope=_scope(person), session_id=f"{person}-{day}")
            for role, text in turns:
                session.add(role, text, at=f"{day}T09:00")
            session.end()
        memory.reflect(scope=_scope(person))
        kept = memory.entries(scope=_scope(person), kind=["fact", "preference", "pattern", "note"], layer="user")
        for entry in kept[:2]:
            page.print(f"   [cyan]{person:<5}[/]  {entry.text}", overflow="ellipsis", no_wrap=True)
    memory.remember(TEAM_NOTE, scope=Scope(tenant="demo", team="platform"))
    page.print(f"   [cyan]team [/]  {TEAM_NOTE} [dim](shared by both)[/]")


def _recall(page: Console, memory: Memory) -> None:
    page.print("\n[bold]2. Recall later,[/] from the file alone, with the reasons for each hit:")
    for person, question in QUESTIONS:
        recall = memory.recall(question, scope=_scope(person), k=3)
        best = recall.hits[0]
        page.print(f"   [cyan]{person}[/] asks: [bold]{question}[/]")
        page.print(f"     [green]{best.entry.text}[/]")
        page.print(f"     [dim]score {best.score:.1f}: {_why(best)}[/]")
        memory.outcome(recall.id, cited=[0], scope=_scope(person))
    learned = memory.learning.status(scope=_scope("ada")).outcomes
    page.print(
        f"\n[bold]3. Learn.[/] The answers were reported as useful: {learned} outcomes of ada. A learned ranking serves\n"
        "   only once it is proven better than the untrained one."
    )


def _why(hit: Hit) -> str:
    """The two factors that speak most for the hit."""
    helpful = [factor for factor in hit.explanation if factor.contribution >= 0.2]
    helpful.sort(key=lambda factor: -factor.contribution)
    return ", ".join(f"{factor.words} {factor.contribution:+.1f}" for factor in helpful[:2])


def _forget(page: Console, memory: Memory, path: Path) -> Receipt:
    receipt = memory.forget(everything=True, scope=_scope("bruno"))
    content = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*")).lower()
    left = [word for word in WORDS_OF_BRUNO if word.encode() in content]
    report = memory.verify()
    page.print(
        f"\n[bold]4. Forget bruno, with proof.[/] Removed {counted(receipt.entries, 'entries')}, {counted(receipt.vectors, 'vectors')}, "
        f"{counted(receipt.links, 'links')}, {counted(receipt.turns, 'turns')}.\n"
        f"   Words of bruno left in the file: {', '.join(left) or 'none'}. The store is "
        f"{'sound' if report.ok else 'damaged'}."
    )
    if left or not report.ok:
        raise SystemExit("the demo found something that should be gone; please report this")
    page.print('\n[dim]Your turn:  wellworn remember "I prefer tea."   wellworn recall "what do I drink?"[/]')
    return receipt

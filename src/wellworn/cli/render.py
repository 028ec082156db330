"""Values as people and programs read them: tables on a terminal, one JSON document with `--json`.

Stored text is data: control characters are made visible and no markup in it is obeyed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from wellworn.core.fence import EVEN_ODDS
from wellworn.core.values import Entry, Factor, Hit, Link, Progress, SearchStep, Version
from wellworn.core.wellformed import visible, visible_json

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text


PIPED_WIDTH = 120
"""Columns if nobody says how wide: rich would take 80 and fold ids."""
_LIKELY = 0.8


def console() -> Console:
    """Standard output, for results."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPED_WIDTH
    return Console(width=width, highlight=False, soft_wrap=False)


def show(*parts: object) -> None:
    """Print results: a text as its plain lines, a table drawn, None not at all."""
    for part in parts:
        if isinstance(part, str):
            sys.stdout.write(f"{visible(part)}\n")
        elif part is not None:
            console().print(part)


def say(message: str) -> None:
    """A remark on standard error."""
    if not sys.stderr.isatty():
        print(visible(message), file=sys.stderr)
        return
    from rich.console import Console

    Console(stderr=True, highlight=False).print(plain(message), style="dim", soft_wrap=True)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json_text(value))


def json_text(value: object) -> str:
    """One JSON document; characters that nobody sees are escaped in it."""
    from wellworn.core.plain import to_plain

    return visible_json(json.dumps(to_plain(value), ensure_ascii=False, indent=2)) + "\n"


def plain(value: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(visible(value), style)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, header: bool = True) -> RenderableType | None:
    """A table of values without its empty columns; numbers are set to the right. None if there is no row."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    cells = [[None if value is None or value == "" else value for value in row] for row in rows]
    if not cells:
        return None
    used = [n for n in range(len(columns)) if any(row[n] is not None for row in cells)]
    drawn = Table(box=SIMPLE_HEAD, header_style="bold", show_header=header)
    for n in used:
        numbers = all(isinstance(row[n], int | float | None) for row in cells)
        drawn.add_column(columns[n], justify="right" if numbers else "left", overflow="fold")
    for row in cells:
        drawn.add_row(*[value if isinstance(value := row[n], Text) else plain(_shown(value)) for n in used])
    return drawn


def spoken(values: Mapping[str, object]) -> dict[str, object]:
    """The values under names with spaces, as people read them."""
    return {name.replace("_", " "): value for name, value in values.items()}


def pairs(values: Mapping[str, object]) -> RenderableType | None:
    """Names and values, one pair per row; empty values are left out."""
    filled = {name: value for name, value in values.items() if value not in (None, "", [], {}, ())}
    return table(("", ""), [(name, _shown(value)) for name, value in filled.items()], header=False)


def hit_table(
    hits: Sequence[Hit], *, newer: Mapping[str, Sequence[Entry]] | None = None, explain: bool = False
) -> RenderableType | None:
    """Place (from 0, as prompts number them and `outcome --cited` takes them), score and entry of each hit.

    `newer` has what replaced one, or a part of one.
    """
    from rich.text import Text

    rows = []
    for place, hit in enumerate(hits):
        lines = [_factor_line(factor) for factor in hit.explanation if explain and factor.contribution]
        mark = _outdated_line(hit, (newer or {}).get(hit.entry.id, ()))
        rows.append(
            (
                place,
                plain(f"{hit.score:.3f}"),
                Text("\n").join([_entry_cell(hit.entry, hit.sentence or (0, 0)), *mark, *lines]),
            )
        )
    return table(("#", "score", "memory"), rows)


def likelihood(confidence: float) -> str:
    """How likely it is that the answer is among the hits, in words."""
    if confidence < EVEN_ODDS:
        return "the answer is probably not among them"
    return "the answer may be among them" if confidence < _LIKELY else "the answer is probably among them"


def step_table(steps: Iterable[SearchStep]) -> RenderableType | None:
    """The steps of a recall in several steps, deeper ones indented."""
    rows = [
        ("  " * step.depth + step.action, step.problem or step.detail, step.found, f"{1000 * step.seconds:.2f}")
        for step in steps
    ]
    return table(("step", "with", "found", "ms"), rows)


def entry_table(entries: Iterable[Entry]) -> RenderableType | None:
    """One row per entry, with its state if it is not active."""
    about = [(entry.state if entry.state != "active" else "", entry.valid_to, entry) for entry in entries]
    rows = [(state, until and f"{until:%Y-%m-%d}", _entry_cell(entry)) for state, until, entry in about]
    return table(("state", "until", "memory"), rows)


def link_table(links: Iterable[Link]) -> RenderableType | None:
    rows = [
        (link.source, link.type, link.target, f"{link.confidence:.2f}", "automatic" if link.automatic else "")
        for link in links
    ]
    return table(("source", "type", "target", "confidence", ""), rows)


def version_table(versions: Iterable[Version]) -> RenderableType | None:
    rows = [(version.number, version.changed_at, version.change, version.text) for version in versions]
    return table(("version", "when", "change", "text"), rows)


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """A bar on standard error that a `progress(done, total)` callback moves; nothing if it is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    errors = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M UTC")  # as `--at` and `--since` take them
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _entry_cell(entry: Entry, sentence: tuple[int, int] = (0, 0)) -> Text:
    """The text, one sentence of it bold, then a dim line with what identifies it."""
    from rich.text import Text

    said = f"{entry.speaker}: " if entry.speaker else ""
    title = f"{entry.title}: " if entry.title else ""
    marks = [entry.id, entry.kind, _shown(entry.at), f"{entry.layer} {entry.partition.layer_id}"]
    marks += [f"session {entry.session_id}"] if entry.session_id else []
    marks += [" ".join(f"#{tag}" for tag in entry.tags)] if entry.tags else []
    marks += ["untrusted"] if entry.trust == "untrusted" else []
    return Text.assemble(
        (visible(title), "bold"),
        (visible(said), "cyan"),
        visible(entry.text[: sentence[0]]),
        (visible(entry.text[slice(*sentence)]), "bold"),
        visible(entry.text[sentence[1] :]),
        "\n",
        (visible(" · ".join(marks)), "dim"),
    )


def _outdated_line(hit: Hit, newer: Sequence[Entry]) -> list[Text]:
    if not hit.outdated and not newer:
        return []
    since = f"outdated since {hit.entry.valid_to:%Y-%m-%d}" if hit.outdated else "part of this no longer holds"
    by = "".join(f", replaced by {one.id}: {' '.join(one.text.split())}" for one in newer)
    return [plain(since + by, "yellow")]


def _factor_line(factor: Factor) -> Text:
    line = f"  {factor.name:<22} {factor.value:>9.4f} × {factor.weight:>7.3f} = {factor.contribution:>+9.4f}"
    return plain(line, "green" if factor.contribution > 0 else "dim")

"""Values as people and programs read them: tables on a terminal, one JSON document with `--json`.

Stored text is data: control characters are made visible and no markup in it is obeyed.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wellworn.core.values import Entry, Factor, Hit, Link, Progress, SearchStep, Version

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


PIPED_WIDTH = 120
"""Columns when nobody says how wide: rich would take 80 and fold ids."""

# C0 and C1 without tab and line feed: a stored escape sequence must not reach the terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def console() -> Console:
    """Standard output, for results."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPED_WIDTH
    return Console(width=width, highlight=False, soft_wrap=False)


def say(message: str) -> None:
    """A remark on standard error."""
    from rich.console import Console

    Console(stderr=True, highlight=False).print(_text(message), style="dim", soft_wrap=True)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(document(value), ensure_ascii=False, indent=2) + "\n")


def print_lines(lines: Iterable[str]) -> None:
    """Plain lines on standard output, such as ids for the next command."""
    sys.stdout.writelines(f"{line}\n" for line in lines)


def document(value: object) -> Any:  # any JSON value
    """The value as JSON: fields by name, times in ISO 8601; a hit and its factors show what adds up."""
    if isinstance(value, Hit):
        return {"score": value.score, "entry": document(value.entry), "factors": document(value.explanation)}
    if isinstance(value, Factor):
        return {"name": value.name, "value": value.value, "weight": value.weight, "contribution": value.contribution}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: document(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): document(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [document(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value


def visible(text: str) -> str:
    """The text with control characters shown as `\\x1b`, so that none of them acts."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def hit_table(hits: Sequence[Hit], *, explain: bool) -> Table:
    """Place (from 0, as a prompt numbers them and `outcome --cited` takes them), score and entry of each hit; with
    `explain` every factor as value × weight = contribution."""
    from rich.text import Text

    table = _table("#", "score", "memory", right=("#", "score"))
    for place, hit in enumerate(hits):
        cell = _entry_cell(hit.entry)
        if explain:
            cell = Text("\n").join([cell, *(_factor_line(factor) for factor in hit.explanation)])
        table.add_row(str(place), f"{hit.score:.3f}", cell, end_section=explain)
    return table


def step_table(steps: Iterable[SearchStep]) -> Table:
    """The steps of a recursive route, deeper ones indented."""
    table = _table("step", "with", "found", "ms", right=("found", "ms"))
    for step in steps:
        name = "  " * step.depth + step.action
        table.add_row(name, _text(step.problem or step.detail), str(step.found), f"{1000 * step.seconds:.2f}")
    return table


def entry_table(entries: Iterable[Entry]) -> Table:
    """One row an entry, its state when it is not active."""
    table = _table("state", "memory")
    for entry in entries:
        table.add_row(entry.state if entry.state != "active" else "", _entry_cell(entry))
    return table


def link_table(links: Iterable[Link]) -> Table:
    table = _table("source", "type", "target", "confidence", right=("confidence",))
    for link in links:
        origin = " (automatic)" if link.automatic else ""
        table.add_row(link.source, link.type + origin, link.target, f"{link.confidence:.2f}")
    return table


def version_table(versions: Iterable[Version]) -> Table:
    table = _table("version", "when", "change", "text", right=("version",))
    for version in versions:
        table.add_row(str(version.number), _when(version.changed_at), _text(version.change), _text(version.text))
    return table


def pair_table(pairs: Mapping[str, object]) -> Table:
    """Names and values, one pair a row."""
    table = _table("", "")
    table.show_header = False
    for name, value in pairs.items():
        shown = _when(value) if isinstance(value, datetime) else value
        table.add_row(_text(name), _text("" if shown is None else str(shown)))
    return table


def row_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A plain table of values."""
    table = _table(*columns)
    for row in rows:
        table.add_row(*[_text(str(value)) for value in row])
    return table


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """A bar on standard error that a `progress(done, total)` callback moves; nothing where nobody looks."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    errors = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _table(*columns: str, right: Sequence[str] = ()) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def _entry_cell(entry: Entry) -> Text:
    """The text, then a dim line with what identifies it."""
    from rich.text import Text

    said = f"{entry.speaker}: " if entry.speaker else ""
    title = f"{entry.title}: " if entry.title else ""
    marks = [entry.kind, _when(entry.at), f"{entry.layer} {entry.partition.layer_id}"]
    marks += [f"session {entry.session_id}"] if entry.session_id else []
    marks += [" ".join(f"#{tag}" for tag in entry.tags)] if entry.tags else []
    marks += ["untrusted"] if entry.trust == "untrusted" else []
    return Text.assemble(
        (visible(title), "bold"),
        (visible(said), "cyan"),
        visible(entry.text),
        "\n",
        (visible(f"{entry.id} · {' · '.join(marks)}"), "dim"),
    )


def _factor_line(factor: Factor) -> Text:
    from rich.text import Text

    line = f"  {factor.name:<22} {factor.value:>9.4f} × {factor.weight:>7.3f} = {factor.contribution:>+9.4f}"
    return Text(visible(line), style="green" if factor.contribution > 0 else "dim")


def _when(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M")


def _text(value: str) -> Text:
    from rich.text import Text

    return Text(visible(value))

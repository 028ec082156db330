"""Writes docs/reference.md from the code: signatures, docstrings, fields, commands, settings, errors.

python docs/build_reference.py          write the page (make reference)
python docs/build_reference.py --check  exit 1 if the page is not what the code says
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["COLUMNS"] = "100"

import typer.main

import wellworn
from wellworn import engine, views
from wellworn.aio import AsyncMemory
from wellworn.cli import app
from wellworn.cli.target import SHARED
from wellworn.core import errors, values
from wellworn.ingest import session, validate
from wellworn.memory import Memory
from wellworn.search import filters

PAGE = Path(__file__).parent / "reference.md"
VALUES = (
    "Scope",
    "Entry",
    "Recall",
    "Hit",
    "Factor",
    "Link",
    "Turn",
    "Version",
    "Receipt",
    "Reasoning",
    "LearningStatus",
    "Stats",
)


def docstring(thing: Any) -> str:
    return " ".join(inspect.cleandoc(thing.__doc__ or "").split())


def paragraphs(thing: Any) -> str:
    text = inspect.cleandoc(thing.__doc__ or "")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


class Raw:
    """An annotation that shows as it was written."""

    def __init__(self, text: object) -> None:
        self.text = re.sub(r"Unpack\[(\w+)\]", r"\1", str(text))

    def __repr__(self) -> str:
        return self.text


def signature(method: Any) -> str:
    """The call as a reader writes it, without `self`."""
    shown = inspect.signature(method)
    parts = [p.replace(annotation=Raw(p.annotation)) for p in shown.parameters.values() if p.name != "self"]
    return str(shown.replace(parameters=parts, return_annotation=Raw(shown.return_annotation)))


def fields_of(cls: type) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and docstring of each field, as the source gives them."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            told = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            default = "" if node.value is None else ast.unparse(node.value)
            yield node.target.id, ast.unparse(node.annotation), default, " ".join(str(told).split())


def table(cls: type) -> str:
    rows = ["| name | type | meaning |", "|---|---|---|"]
    for name, type_, default, told in fields_of(cls):
        if name.startswith("_"):
            continue
        value = "" if not default or default.startswith(("field(", "None")) else f" = {default}"
        shown = type_.replace("|", "\\|")
        rows.append(f"| `{name}` | `{shown}{value}` | {told.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def methods(cls: type, prefix: str) -> Iterator[str]:
    for name, method in vars(cls).items():
        if name.startswith("_") or not callable(getattr(cls, name)) or isinstance(method, property):
            continue
        yield f"### {prefix}{name}\n\n```text\n{prefix}{name}{signature(getattr(cls, name))}\n```\n\n{paragraphs(method)}"


def defaults_of_settings() -> str:
    shown = inspect.signature(engine.Engine.__init__).parameters
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for name, _, _, told in fields_of(engine.Settings):
        default = shown[name].default
        value = (
            default
            if isinstance(default, str | int | float | bool) or default is None
            else getattr(default, "__name__", default)
        )
        rows.append(f"| `{name}` | `{value!r}` | {told.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def commands(group: Any, name: str = "wellworn") -> Iterator[tuple[str, Any]]:
    for part in sorted(getattr(group, "commands", {})):
        command = group.commands[part]
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {part}")
        else:
            yield f"{name} {part}", command


def command_text(name: str, command: Any) -> str:
    lines = [f"### {name}\n", " ".join(inspect.cleandoc(command.help or "").split()), ""]
    rows = []
    for option in command.params:
        if getattr(option, "hidden", False) or option.name in ("help", "json", *SHARED):
            continue
        shown = (
            ", ".join(f"`{one}`" for one in (*option.opts, *option.secondary_opts))
            if option.param_type_name == "option"
            else f"`{(option.metavar or option.name).upper()}`"
        )
        rows.append(f"| {shown} | {' '.join((getattr(option, 'help', None) or '').split())} |".replace("||", "|"))
    if rows:
        lines += ["| option | meaning |", "|---|---|", *rows]
    return "\n".join(lines)


def shared_options() -> str:
    rows = ["| option | variable | meaning |", "|---|---|---|"]
    rows += [f"| `--{name}` | {f'`{one.env}`' if one.env else ''} | {one.help} |" for name, one in SHARED.items()]
    return "\n".join(rows)


def page() -> str:
    words = {"kinds": values.KINDS, "states": values.STATES, "layers": values.LAYERS, "link types": values.LINK_TYPES}
    tree = errors.__doc__ or ""
    parts = [
        "# Reference",
        "`make reference` writes this page from the code. Everything below can be imported from `wellworn`.",
        "## Memory(location, …)",
        paragraphs(Memory.__init__) + " `Memory.open` is the same. Every setting is a keyword:",
        defaults_of_settings(),
        "## The verbs",
        "`scope` can be left out on a memory from `for_user` or `for_scope`.",
        *methods(Memory, "memory."),
        "### Details of remember",
        table(validate.Details),
        "### Filters of recall and assemble",
        table(filters.FilterOptions),
        "## memory.learning",
        *methods(views.LearningView, "memory.learning."),
        "## memory.jobs",
        *methods(views.JobsView, "memory.jobs."),
        "## memory.admin",
        *methods(views.AdminView, "memory.admin."),
        "## Session",
        docstring(session.Session),
        *methods(session.Session, "session."),
        "## AsyncMemory",
        docstring(AsyncMemory) + " It has the verbs and groups of `Memory`; each is awaited.",
        "## Values",
        *(f"### {name}\n\n{docstring(getattr(values, name))}\n\n{table(getattr(values, name))}" for name in VALUES),
        "## Words",
        "\n".join(f"- {name}: " + ", ".join(f"`{word}`" for word in found) for name, found in words.items()),
        "## Errors",
        "```text\n" + inspect.cleandoc(tree).split("\n\n")[1] + "\n```",
        "## Exported names",
        ", ".join(f"`{name}`" for name in sorted(wellworn.__all__)),
        "## Commands",
        "Every command takes these options. `--json` prints JSON, errors included.",
        shared_options(),
        *(command_text(name, command) for name, command in commands(typer.main.get_command(app))),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def main() -> int:
    text = page()
    if "--check" in sys.argv:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The documentation against the product: every code block runs, every command and setting is described, links resolve.

How a page is run: its Python and console blocks in order, in one empty folder, the Python blocks sharing their names.

    <!-- no-run: why -->     above a block: it is not run
    <!-- output -->          above a ```text block: what the Python block before it prints, exactly

Of a ```console or ```bash block the lines after `$ ` run in one shell if one of them calls `wellworn`; others (pip,
make) are for people. What else stands in a console block is not compared.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer.main

import wellworn
from wellworn import AsyncMemory, Memory, Session
from wellworn.aio import AsyncSession
from wellworn.cli import app
from wellworn.cli.target import SHARED
from wellworn.core.values import KINDS, LAYERS, LINK_TYPES, MAX_NAME_CHARS, STATES
from wellworn.ingest import validate
from wellworn.integrations.loop import create_memory_middleware
from wellworn.search.profiles import PROFILES
from wellworn.store.sqlite import SqliteStore

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]

_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\[[^\]\n]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block, with the comment above it."""

    language: str
    code: str
    line: int
    mark: str

    @property
    def runs(self) -> bool:
        return not self.mark.startswith("no-run:")


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            language=found["language"],
            code=found["code"],
            mark=found["mark"] or "",
            line=text.count("\n", 0, found.start("code")) + 1,
        )
        for found in _BLOCK.finditer(text)
    ]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def section(page: str, heading: str) -> str:
    """The text under a heading, up to the next one of its level or above."""
    text = (DOCS / page).read_text(encoding="utf-8")
    level = heading.split(" ")[0]
    found = re.search(rf"^{re.escape(heading)}$(.*?)(?=^#{{1,{len(level)}}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"docs/{page} has no heading {heading!r}"
    return found[1]


def first_cells(text: str) -> dict[str, list[str]]:
    """The rows of the tables in a text whose first cell has names in backquotes: each name → the other cells."""
    rows = re.findall(r"^\| (`[^|]+`) \|(.*)\|$", text, re.MULTILINE)
    return {
        name.partition("(")[0]: [cell.strip() for cell in cells.split(" | ")]
        for names, cells in rows
        for name in names.strip("`").split("`, `")
    }


# -- every block runs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in PAGES if page.exists()], ids=name_of)
def test_every_block_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("WELLWORN_", "OPENAI_", "ANTHROPIC_", "OLLAMA_"))]:
        monkeypatch.delenv(name)
    # A module, not a dict: dataclasses and type hints in a block look their names up there.
    module = ModuleType("__page__")
    monkeypatch.setitem(sys.modules, "__page__", module)
    printed = ""
    for block in blocks_of(page):
        where = f"{name_of(page)}:{block.line}"
        if block.language == "python" and block.runs:
            printed = run_python(block, where, module)
        elif block.language in ("console", "bash") and block.runs:
            run_console(block, where, tmp_path)
        elif block.mark == "output":
            assert block.code == printed, f"{where}: the block before it prints\n{printed}"


def run_python(block: Block, where: str, module: ModuleType) -> str:
    """Run a block and give back what it printed; an error shows the page's own line."""
    code = compile("\n" * (block.line - 1) + block.code, where.rpartition(":")[0], "exec")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, module.__dict__)
    return out.getvalue()


def run_console(block: Block, where: str, folder: Path) -> None:
    commands = re.findall(r"^\$ (.*(?:\n> .*)*)", block.code, re.MULTILINE)
    script = "\n".join(command.replace("\n> ", "\n") for command in commands)
    if not re.search(r"\bwellworn [a-z-]", script):
        return
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-euc", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONWARNINGS": "error"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{where}: exit code {done.returncode}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.exists()], ids=name_of)
def test_every_mark_above_a_block_is_one_we_know(page: Path) -> None:
    for block in blocks_of(page):
        assert block.mark in ("", "output") or re.fullmatch(r"no-run: .+", block.mark), block.mark


# -- links and files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in PAGES if page.exists()], ids=name_of)
def test_relative_links_resolve(page: Path) -> None:
    prose = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    for found in _LINK.finditer(prose):
        target, _, anchor = found["target"].partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{name_of(page)} links to {target}, which is not there"
        if anchor and file.suffix == ".md":
            assert anchor in anchors_of(file), f"{name_of(page)} links to {found['target']}: no such heading"


def anchors_of(page: Path) -> set[str]:
    """Headings as links name them: lower case, words joined by dashes, other signs left out."""
    headings = re.findall(r"^#+ (.+)$", _BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_decisions_are_numbered_without_gaps() -> None:
    names = sorted(path.name for path in (DOCS / "decisions").glob("*.md"))
    assert all(re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name) for name in names), names
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


@pytest.mark.parametrize("path", sorted((DOCS / "decisions").glob("*.md")), ids=lambda path: path.stem)
def test_a_decision_says_context_choice_and_price(path: Path) -> None:
    headings = re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == ["Context", "Choice", "What we gave up"]


# -- the command line --------------------------------------------------------------------------------------------


# Any: typer brings a copy of click under a private name, so the types of commands cannot be named.
def commands(group: Any, name: str = "wellworn") -> Iterator[tuple[str, Any]]:
    yield name, group
    for word, command in getattr(group, "commands", {}).items():
        yield from commands(command, f"{name} {word}")


COMMANDS = dict(commands(typer.main.get_command(app)))


def test_the_reference_has_a_heading_for_every_command_and_no_other() -> None:
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (wellworn.*)$", text, re.MULTILINE)) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_names_every_option_of_a_command(name: str) -> None:
    text = section("reference.md", f"## {name}")
    shared = {f"--{option}" for option in (*SHARED, "json", "help")} if name != "wellworn" else {"--help"}
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "argument":
            assert f"`{parameter.metavar or parameter.name.upper()}" in text, parameter.name
        else:
            words = [word for word in (*parameter.opts, *parameter.secondary_opts) if word.startswith("--")]
            assert all(f"`{word}" in text or word in shared for word in words), (name, words)


# -- the library -------------------------------------------------------------------------------------------------

FACES: list[tuple[type, str]] = [
    (face, name)
    for face in (Memory, Session)
    for name, value in vars(face).items()
    if not name.startswith("_") and callable(getattr(value, "__func__", value))
]


@pytest.mark.parametrize(("face", "name"), FACES, ids=[f"{face.__name__}.{name}" for face, name in FACES])
def test_the_reference_describes_every_parameter_of_a_method(face: type, name: str) -> None:
    text = section("reference.md", f"### {face.__name__}.{name}")
    parameters = [p for p in inspect.signature(getattr(face, name)).parameters.values() if p.name != "self"]
    rows = first_cells(text)
    for parameter in parameters:
        prefix = "**" if parameter.kind is inspect.Parameter.VAR_KEYWORD else ""
        described = rows.pop(prefix + parameter.name, None)
        assert described is not None, f"{parameter.name} has no row"
        assert described[0].strip("`") == default_of(parameter), f"{parameter.name}: {described[0]}"
    assert not rows, f"no such parameters: {sorted(rows)}"


def test_the_page_on_loops_describes_every_setting_of_the_middleware() -> None:
    rows = first_cells(section("middleware.md", "## create_memory_middleware"))
    expected = {name: default_of(one) for name, one in inspect.signature(create_memory_middleware).parameters.items()}
    assert {name: cells[0].strip("`") for name, cells in rows.items()} == expected


def default_of(parameter: inspect.Parameter) -> str:
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return "none"
    if parameter.default is inspect.Parameter.empty:
        return "required"
    return getattr(parameter.default, "__name__", repr(parameter.default).replace("'", '"'))


def test_the_async_twins_have_the_methods_that_are_described() -> None:
    assert public(AsyncMemory) == public(Memory)
    assert public(AsyncSession) == public(Session)
    section("reference.md", "## AsyncMemory")


def public(face: type) -> set[str]:
    return {name for name in vars(face) if not name.startswith("_")}


def test_the_reference_names_everything_that_is_exported() -> None:
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert [name for name in wellworn.__all__ if f"`{name}`" not in text and f"## {name}" not in text] == []


def test_the_reference_names_every_field_of_the_values_it_describes() -> None:
    for face in (
        wellworn.Entry,
        wellworn.Hit,
        wellworn.Recall,
        wellworn.Receipt,
        wellworn.Stats,
        wellworn.Turn,
        wellworn.Version,
        wellworn.Link,
        wellworn.Scope,
    ):
        rows = first_cells(section("reference.md", f"### {face.__name__}"))
        expected = set(getattr(face, "__dataclass_fields__"))  # noqa: B009  a dataclass, which mypy cannot see here
        assert set(rows) >= expected, (face.__name__, sorted(expected - set(rows)))


def test_the_reference_states_the_limits_and_the_vocabulary() -> None:
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    limits: list[Any] = [
        validate.MAX_TEXT_BYTES,
        validate.MAX_QUERY_CHARS,
        validate.MAX_METADATA_BYTES,
        validate.MAX_K,
        validate.MAX_TAGS,
        MAX_NAME_CHARS,
    ]
    assert [limit for limit in limits if f"{limit:,}" not in section("reference.md", "## Limits")] == []
    assert [word for word in (*KINDS, *LAYERS, *LINK_TYPES, *STATES) if f"`{word}`" not in text] == []


def test_the_reference_names_every_environment_variable() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    used = set(re.findall(r"""["']((?:WELLWORN|OPENAI|ANTHROPIC|OLLAMA)_[A-Z_]+)["']""", sources))
    assert used <= set(first_cells(section("reference.md", "## Environment variables")))


def test_the_reference_draws_every_error() -> None:
    text = section("reference.md", "## Errors")
    errors = [name for name, value in vars(wellworn.core.errors).items() if isinstance(value, type)]
    assert [name for name in errors if name not in text] == []


# -- equations and bytes -----------------------------------------------------------------------------------------


def test_the_page_on_recall_states_every_weight_and_constant() -> None:
    weights = first_cells(section("recall.md", "## Factors and weights"))
    default = PROFILES["default"]
    assert {name: float(cells[0]) for name, cells in weights.items()} == dict(default.weights)
    constants = first_cells(section("recall.md", "## Constants"))
    for name in set(default.__dataclass_fields__) - {"name", "weights"}:
        for column, profile in enumerate(PROFILES.values()):
            assert constants[name][column] == str(getattr(profile, name)), (name, profile.name)


def test_the_page_on_storage_describes_every_table_and_column(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "memory.db").close()
    with contextlib.closing(sqlite3.connect(tmp_path / "memory.db")) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            if table.startswith("sqlite_"):
                continue
            columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
            assert set(first_cells(section("storage.md", f"### {table}"))) == columns, table

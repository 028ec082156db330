"""The documentation against the product: every code block runs, links resolve, the reference is what the code says.

How a page is run: its Python and console blocks in order, in one empty folder, the Python blocks sharing their names.

    <!-- no-run: why -->     above a block: it is not run
    <!-- output -->          above a ```text block: what the Python block before it prints, exactly

Of a ```console or ```bash block the lines after `$ ` run if one of them calls `wellworn`, in one shell if they need one; `pip` and `make`
lines are for people. What else stands in a console block is not compared.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from wellworn.cli.program import command_word, program
from wellworn.search.profiles import PROFILES
from wellworn.store.sqlite import SqliteStore

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]

SLOW = {"frameworks.md", "import.md", "tasks.md", "mcp.md"}

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


# -- every block runs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.name in SLOW else ()) for page in PAGES if page.exists()],
    ids=name_of,
)
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
        assert block.mark in ("", "output") or re.fullmatch(r"no-run: .+", block.mark), f"{where}: {block.mark}"
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
    commands = [command.replace("\n> ", "\n") for command in commands if not command.startswith(("pip ", "make "))]
    script = "\n".join(commands)
    if not re.search(r"\bwellworn [a-z-]", script):
        return
    if all(command.startswith("wellworn ") and not re.search(r"[|<>&;$`*~\n]", command) for command in commands):
        for command in commands:  # no shell is needed: the same program, without a process for each line
            arguments = shlex.split(command, comments=True)[1:]
            answer = CliRunner().invoke(program(command_word(arguments)), arguments)
            assert answer.exit_code == 0, f"{where}: {command}: exit code {answer.exit_code}\n{answer.output}"
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


def test_decisions_are_numbered_without_gaps_and_say_context_choice_and_price() -> None:
    pages = sorted((DOCS / "decisions").glob("*.md"))
    assert [page.name[:5] for page in pages] == [f"{number:04}-" for number in range(1, len(pages) + 1)]
    for page in pages:
        headings = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert headings == ["Context", "Choice", "What we gave up"], page.name


# -- the pages and the product -------------------------------------------------------------------------------------


def test_the_reference_is_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCS / "build_reference.py"), "--check"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert done.returncode == 0, f"run `make docs`\n{done.stderr[-2000:]}"


def test_a_page_shows_its_first_code_on_the_first_screen() -> None:
    for page in sorted(DOCS.glob("*.md")):
        if page.name in ("reference.md", "measurements.md", "rmm-requirements.md"):
            continue
        lines = page.read_text(encoding="utf-8").split("\n")
        assert any(line.startswith("```") for line in lines[:40]), f"{name_of(page)} begins with too much prose"


def test_the_documentation_stays_short() -> None:
    written = [page for page in PAGES if page.name != "reference.md"]  # which the code writes
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in written)
    assert words < 30_000
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) < 900


def test_the_page_on_storage_names_every_table(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "memory.db").close()
    page = (DOCS / "storage.md").read_text(encoding="utf-8")
    with contextlib.closing(sqlite3.connect(tmp_path / "memory.db")) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert [name for name in tables if not name.startswith("sqlite_") and f"`{name}`" not in page] == []


def test_the_page_on_recall_states_every_weight() -> None:
    page = (DOCS / "recall.md").read_text(encoding="utf-8")
    profile = PROFILES["default"]
    several = (profile.in_chats, profile.among_people, profile.remembered, profile.weights)
    for name in {name for weights in several for name in weights}:
        stated = " \\| ".join(re.escape(str(weights[name])) if name in weights else "" for weights in several)
        assert re.search(rf"^\| `{name}` \| {stated} \|".replace("|  ", "| "), page, re.MULTILINE), name

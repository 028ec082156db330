"""Rules of the house that no linter knows: private attributes, unique class names, file sizes, formatting, layers."""

import ast
import gc
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "wellworn"
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST = 600
MOST_LAYERS = 10


def relative(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    """CPython 3.11 counts the depth of a tree in one place for all threads (python/cpython#106905): a collection of
    garbage while it builds the tree may log a traceback, which parses as well, and then the count is wrong."""
    gc.disable()
    try:
        return ast.parse(path.read_text())
    finally:
        gc.enable()


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def own_names(tree: ast.AST) -> set[str]:
    """The private names that the classes of one module define: attributes set on self or cls, fields and methods."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    names.add(part.name)
                elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    names.add(part.target.id)
                elif isinstance(part, ast.Assign):
                    names.update(target.id for target in part.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and of_oneself(node):
            names.add(node.attr)
    return names


def of_oneself(node: ast.Attribute) -> bool:
    value = node.value
    if isinstance(value, ast.Call):  # super()._x
        return isinstance(value.func, ast.Name) and value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def foreign_reads(tree: ast.AST) -> Iterator[str]:
    own = own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not of_oneself(node) and node.attr not in own:
            if ast.unparse(node) == "os._exit":  # public in spite of its name
                continue
            yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom):
            yield from (f"line {node.lineno}: import {name.name}" for name in node.names if is_private(name.name))


def test_nobody_reads_the_private_attributes_of_another_object() -> None:
    found = {relative(path): list(foreign_reads(parsed(path))) for path in FILES}
    assert {path: reads for path, reads in found.items() if reads} == {}


def test_a_public_class_name_is_used_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(relative(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_file_is_longer_than_a_reader_can_finish() -> None:
    lengths = {relative(path): len(path.read_text().splitlines()) for path in FILES}
    assert {path: length for path, length in lengths.items() if length > LONGEST} == {}


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported."""
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield part
            yield from at_import(part)


def test_no_import_compiles_a_regular_expression() -> None:
    """`core.lazy.regex` compiles on first use: hundreds at every start of a hook took a fifth of its time."""
    calls = {relative(path): [ast.unparse(node) for node in at_import(parsed(path))] for path in FILES}
    assert {path for path, parts in calls.items() if "re.compile" in parts} == set()


def test_the_formatter_decides() -> None:
    marks = ("fmt: " + "skip", "fmt: " + "off")
    every = [path for room in ("src", "tests", "evals", "bench", "examples") for path in (ROOT / room).rglob("*.py")]
    assert [path for path in every if any(mark in path.read_text() for mark in marks)] == []


def test_there_are_few_layers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    longest = max(len(contract["layers"]) for contract in settings["contracts"] if contract["type"] == "layers")
    assert longest <= MOST_LAYERS

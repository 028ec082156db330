"""The public face: what it exports, its async API, and what merely importing it must not do."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import wellworn
from wellworn import AsyncMemory, Scope
from wellworn.views import AdminView, JobsView, LearningView

ADA = Scope(tenant="acme", user="ada")


def run(code: str, *flags: str) -> str:
    done = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


# -- exports -----------------------------------------------------------------------------------------------------


def test_every_exported_name_is_there_and_listed_once() -> None:
    assert len(set(wellworn.__all__)) == len(wellworn.__all__)
    assert sorted(wellworn.__all__) == sorted(wellworn.__dir__())
    for name in wellworn.__all__:
        assert getattr(wellworn, name) is not None
        assert getattr(wellworn, name) is getattr(importlib.import_module("wellworn"), name)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Nonsense"):
        wellworn.Nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_every_error_a_caller_is_told_to_catch_can_be_imported_from_the_face() -> None:
    from wellworn.core import errors

    raised = {
        name for name, value in vars(errors).items() if inspect.isclass(value) and value.__module__ == errors.__name__
    }
    assert raised <= set(wellworn.__all__)


BUILT_BY_MEMORY = (
    "Session",
    "AsyncSession",
    "AsyncMemory",
    "CachedEmbedder",
    "ClientSession",
    "AsyncClientSession",
    "AdminView",
    "JobsView",
    "LearningView",
)
"""Classes of which callers only get objects: how they are made is nobody's business."""
PORTS = ("Store", "Model", "Embedder")
"""What a store, a model or an embedder must do is said in `wellworn.store.port` and `wellworn.models.port`."""


def signatures() -> Iterator[tuple[str, str, object]]:
    """Where, in which module, and what: every annotation that a caller of the public names sees."""
    views = [AdminView, JobsView, LearningView]
    for public in [*(getattr(wellworn, name) for name in wellworn.__all__), *views]:
        name = getattr(public, "__name__", "")
        if inspect.isfunction(public):
            yield from ((name, public.__module__, one) for one in public.__annotations__.values())
        if not inspect.isclass(public) or name in PORTS:
            continue
        own = vars(public)
        yield from ((name, public.__module__, one) for one in own.get("__annotations__", {}).values())
        for verb, value in own.items():
            made = verb == "__init__" and name not in BUILT_BY_MEMORY
            function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
            if inspect.isfunction(function) and (made or not verb.startswith("_")):
                function = inspect.unwrap(function)
                notes = function.__annotations__.values()
                yield from ((f"{name}.{verb}", function.__module__, one) for one in notes)


@cache
def own_names(module: str) -> set[str]:
    """The names that a module takes from the package, or defines."""
    tree = ast.parse(Path(importlib.import_module(module).__file__ or "").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    taken = {one.name for node in imports if (node.module or "").startswith("wellworn") for one in node.names}
    set_here = [
        node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None) for node in tree.body
    ]
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    return taken | defined | {one.id for one in set_here if isinstance(one, ast.Name)}


def test_every_type_that_a_public_signature_names_can_be_imported_from_the_face() -> None:
    missing = []
    for where, module, annotation in signatures():
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", "None")
        names = [node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)]
        named = [name for name in names if len(name) > 1 and name not in wellworn.__all__]  # T is any type
        missing += [f"{where}: {name}" for name in named if name in own_names(module)]
    assert not missing, ", ".join(missing)


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert wellworn.__version__ == version("wellworn")


# -- the async API ------------------------------------------------------------------------------------------


def test_the_async_api_does_the_same_things(tmp_path: Path) -> None:
    async def live() -> None:
        async with await AsyncMemory.open(tmp_path / "memory.db", embedder="hash") as mem:
            (a,) = await mem.remember("Ada likes tea", scope=ADA, tags=["x"])
            (b,) = await mem.remember_many(["Ben likes rain"], scope=ADA, kind="fact")
            session = mem.session(scope=ADA, session_id="s")
            turn = await session.add("user", "hello there")
            assert [t.entry_id for t in await session.turns()] == [turn]
            assert await mem.sessions(scope=ADA) == ["s"]
            ada = mem.for_scope(ADA)
            found = await ada.recall("tea", k=1)
            assert found[0].entry.id == a
            assert await ada.outcome(found.id, cited=[0])
            assert (await ada.learning.status()).outcomes == 1
            assert (await mem.get(b, scope=ADA)).kind == "fact"
            assert len(await mem.entries(scope=ADA)) == 3
            assert (await mem.edit(a, scope=ADA, text="Ada likes coffee")).text == "Ada likes coffee"
            assert len(await mem.history(a, scope=ADA)) == 2
            await mem.link(a, b, "supports", scope=ADA)
            assert await mem.unlink(a, b, "supports", scope=ADA)
            assert await mem.links(a, scope=ADA)
            await mem.supersede(a, b, scope=ADA)
            assert (await mem.admin.stats(scope=ADA)).entries == 3
            assert await mem.admin.events(scope=ADA)
            assert (await mem.verify()).ok
            assert (await mem.admin.repair()).ok
            await mem.admin.reembed()
            await mem.admin.export(tmp_path / "out.jsonl")
            await mem.forget(everything=True, scope=ADA)
            await mem.admin.load(tmp_path / "out.jsonl")
            assert (await mem.admin.stats(scope=ADA)).entries == 3
        with pytest.raises(wellworn.StoreError, match="closed"):
            await mem.admin.stats(scope=ADA)

    asyncio.run(live())


def test_the_event_loop_is_not_held_up() -> None:
    entered, let_go = threading.Event(), threading.Event()

    def embed(batch: list[str]) -> list[list[float]]:
        if batch != ["width"]:
            entered.set()
            assert let_go.wait(300), "the loop never got its turn"
        return [[1.0, 0.0]] * len(batch)

    async def live() -> None:
        async with await AsyncMemory.open(":memory:", embedder=embed) as mem:
            for call in (
                lambda: mem.remember("slow", scope=ADA),
                lambda: mem.recall("slow?", scope=ADA),
                lambda: mem.session(scope=ADA, session_id="s").add("user", "slow turn"),
            ):
                entered.clear()
                let_go.clear()
                waiting = asyncio.create_task(call())
                deadline = time.monotonic() + 300
                while not entered.is_set():  # the loop turns while the call is stuck in its thread
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0)
                assert not waiting.done()
                let_go.set()
                await waiting

    asyncio.run(live())


# -- importing ---------------------------------------------------------------------------------------------------

FRAMEWORKS = "langchain_core langchain httpx typer rich torch sentence_transformers wordllama requests"
HEAVY = f"{FRAMEWORKS} numpy yaml tokenizers safetensors Stemmer asyncio sqlite3"


def test_importing_and_using_a_memory_loads_nothing_that_it_does_not_need() -> None:
    code = f"""
import sys, wellworn
assert not {{*{HEAVY.split()}}} & sys.modules.keys()
mem = wellworn.Memory.open(":memory:").for_user("ada")
mem.remember("Ada prefers tokio over async-std.")
assert mem.recall("which async runtime does Ada like?").hits
assert not {{*{FRAMEWORKS.split()}}} & sys.modules.keys()
"""
    run(code)


def test_remembering_and_recalling_never_goes_to_the_network(tmp_path: Path) -> None:
    code = f"""
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append((event, args)) if event.startswith("socket.") else None)
import wellworn
[getattr(wellworn, name) for name in wellworn.__all__]
from wellworn import Memory, Scope
scope = Scope(tenant="acme", user="ada")
with Memory.open({str(tmp_path / "memory.db")!r}) as mem:
    mem.remember("Ada prefers tokio over async-std.", scope=scope, kind="preference", tags=["rust"])
    mem.remember_many([f"fact {{n}}" for n in range(600)], scope=scope)
    mem.session(scope=scope, session_id="s").add("user", "I ran the charity race on Saturday")
    assert mem.recall("which async runtime does Ada like?", scope=scope).hits[0].entry.text.startswith("Ada prefers")
    assert mem.verify().ok
    mem.admin.export({str(tmp_path / "out.jsonl")!r})
    mem.forget(everything=True, scope=scope)
assert not opened, opened
print("done")
"""
    assert run(code, "-W", "error").strip() == "done"


def test_the_example_of_the_docstring_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line[4:] for line in (wellworn.__doc__ or "").splitlines() if line.startswith("    ")]
    names: dict[str, object] = {}
    exec("\n".join(lines), names)
    assert capsys.readouterr().out == "Ada prefers tokio over async-std.\n"
    names["mem"].close()  # type: ignore[attr-defined]

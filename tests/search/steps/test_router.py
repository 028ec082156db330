"""Which questions are searched in several steps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wellworn.search.steps.router import THRESHOLD, complexity, shape_of


def labelled() -> list[tuple[str, bool]]:
    """Our own questions, and whether each names a thing by another one."""
    lines = Path(__file__).with_name("router_questions.txt").read_text(encoding="utf-8").splitlines()
    return [(line[2:], line[0] == "+") for line in lines if line[:2] in ("+ ", "- ")]


@pytest.mark.parametrize(
    ("query", "steps"),
    [
        ("what is the login endpoint", False),
        ("What database does the API team use?", False),
        ("Show me recent authentication decisions", False),
        ("compare patterns across teams", True),
        ("trace evolution of auth since last quarter", True),
        ("Compare error handling patterns across all Platform Engineering teams", True),
    ],
)
def test_the_examples_of_the_design_are_routed_as_it_says(query: str, steps: bool) -> None:
    assert (complexity(query) >= THRESHOLD) is steps


def test_labelled_questions_are_routed_as_they_should_be() -> None:
    pairs = [(complexity(query) >= THRESHOLD, needs) for query, needs in labelled()]
    assert len(pairs) >= 120
    right = pairs.count((True, True))
    assert right / sum(taken for taken, _ in pairs) >= 0.6, "a question for one entry keeps its plain answer"
    assert right / sum(needs for _, needs in pairs) >= 0.99


@pytest.mark.parametrize(
    ("query", "shape"),
    [
        ("Who directed the film that was shot in Leland?", "bridge"),
        ("Where is the practice of my sister's doctor?", "bridge"),
        ("Where does Mia's doctor practise?", "bridge"),
        ("Who's my sister's doctor?", "bridge"),
        ("what's my cat called?", "plain"),
        ("When’s my appointment?", "plain"),
        ("who's on call", "plain"),
        ("From whom did our tailor buy the van?", "bridge"),
        ("What books has Ada borrowed?", "plain"),
        ("What is the wifi password?", "plain"),
        ("", "plain"),
        ("ねこは何匹いますか？", "plain"),
    ],
)
def test_the_shape_of_a_question(query: str, shape: str) -> None:
    assert shape_of(query) == shape


@pytest.mark.parametrize("query", ["what has " * 3000, "A or " * 5000, "the of " * 5000, "?" * 20000, "Aa " * 9000])
def test_any_query_can_be_routed(query: str) -> None:
    assert 0 <= complexity(query) <= 1


def test_a_plain_recall_and_its_outcome_import_the_router_only() -> None:
    code = """
import sys
from wellworn import Memory, Scope
with Memory.open(":memory:") as memory:
    scope = Scope(tenant="acme", user="ada")
    memory.remember("The bakery opens at six.", scope=scope)
    memory.outcome(memory.recall("When does the bakery open?", scope=scope).id, cited=[0])
print(*(name for name in sys.modules if name.startswith("wellworn.search.steps.")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["wellworn.search.steps.router"]

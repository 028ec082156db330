"""The instructions that are put before a model, as files: constant text, into which nothing is ever spliced."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def prompt(name: str) -> str:
    """The text of `NAME.md` beside this module."""
    return files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()

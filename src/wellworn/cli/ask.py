"""A question before something is gone for good."""

from __future__ import annotations

import sys

import typer

from wellworn.cli import render
from wellworn.cli.guard import FAILED
from wellworn.core.errors import InvalidInput


def confirm(command: str, question: str, *, no: str, yes: bool) -> None:
    """Go on when `yes` was given or the person agrees; `no` is the remark when they do not, and the program leaves."""
    if yes:
        return
    if not can_ask():
        raise InvalidInput(command, "needs a confirmation and nobody can be asked", "add --yes")
    if not typer.confirm(question, err=True):
        render.say(no)
        raise typer.Exit(FAILED)


def can_ask() -> bool:
    """Whether a person sits at the other end."""
    return sys.stdin.isatty()

"""Which models a recursive recall may ask, and how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from wellworn.core.errors import InvalidInput
from wellworn.core.values import Partition
from wellworn.models.choose import ModelSpec, choose_model
from wellworn.models.ledger import Meter
from wellworn.models.port import Model
from wellworn.search.steps.repl import ReplLimits
from wellworn.search.steps.sandbox import check_installed

Metered = Callable[[Model, Partition], Meter]
"""A model as it may be asked for a partition: scrubbed, counted, under the memory's budget."""


@dataclass(frozen=True, kw_only=True)
class Models:
    """The models of a recursive recall; each as `llm` of `Memory.open`. They are asked for nothing else."""

    root: ModelSpec
    """Plans the question, draws the conclusion of `reason`, and writes the programs of the sandbox."""
    sub: ModelSpec = None
    """Plans sub-questions and answers queries of programs: a cheaper one. By default the root's."""
    calls: int = 8
    """Calls for one recall at most; those of the sandbox have a limit of their own."""
    call_timeout_s: float = 30.0
    timeout_s: float = 60.0
    """For all calls of one recall together; the search has its own time, `Limits.timeout_s`."""
    repl: ReplLimits | None = None
    """Let `reason` work by programs that the root model writes, within these limits. Off by default."""
    for_root: Model = field(init=False, repr=False)
    for_sub: Model = field(init=False, repr=False)

    def __post_init__(self) -> None:
        root, sub = choose_model(self.root), choose_model(self.sub)
        if root is None:
            raise InvalidInput("models.root", f"{self.root!r} is no model", "leave `models` out to plan by rules")
        for name in ("calls", "call_timeout_s", "timeout_s"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise InvalidInput(f"models.{name}", f"{value!r} is not a number of at least 0")
        if self.repl is not None:
            check_installed()
        object.__setattr__(self, "for_root", root)  # chosen once, here, so that a wrong name is told before anything
        object.__setattr__(self, "for_sub", sub or root)

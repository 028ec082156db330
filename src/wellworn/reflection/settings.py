"""When sessions become memories, and within which limits."""

from __future__ import annotations

from dataclasses import dataclass, fields

from wellworn.core.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class ReflectionSettings:
    """Every number that reflection goes by."""

    every_turns: int | None = None
    """Reflect in the middle of a session, whenever this many turns are new; None waits for its end."""
    idle_minutes: float | None = 30.0
    """A session without an end is reflected on after this long without a turn; None leaves it."""
    window_turns: int = 40
    """Turns that are read at once; a longer session is read window by window."""
    window_tokens: int = 6_000
    context_turns: int = 4
    """Turns before a window that are shown with it, for reference only."""
    similar: int = 5
    """Existing memories that a new one is compared with (the paper's K)."""
    max_memories: int = 24
    """Memories from one window at most; what comes beyond is dropped and counted."""
    summarize_above: int = 30
    """Turns of a session without a summary beyond which a summariser, if there is one, writes one."""
    keep_jobs_days: float | None = 7.0
    """Jobs that are done are dropped after this long; None keeps them."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None and each.name in ("every_turns", "idle_minutes", "keep_jobs_days"):
                continue
            least = 0 if each.name in ("context_turns", "idle_minutes", "keep_jobs_days") else 1
            number = int | float if each.name in ("idle_minutes", "keep_jobs_days") else int
            if isinstance(value, bool) or not isinstance(value, number) or not value >= least:
                raise InvalidInput(f"reflection.{each.name}", f"{value!r} is not a number of at least {least}")

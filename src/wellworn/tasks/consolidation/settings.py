"""Every number that consolidation goes by."""

from __future__ import annotations

from dataclasses import dataclass, fields

from wellworn.core.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class ConsolidationSettings:
    """When entries are one, contradict each other, have had their time, or have proved themselves."""

    duplicate: float = 0.95
    """Cosine from which two entries that take the same stance are one (single linkage)."""
    related: float = 0.7
    """Cosine from which two entries are read for a contradiction."""
    gap: float = 0.15
    """The surer of two that contradict each other stays if it is surer by more than this; else people decide."""
    prune_confidence: float = 0.3
    """Pruned: never used, less sure than this …"""
    prune_days: float = 180.0
    """… and older than this."""
    promote_usage: int = 50
    """Promoted: used more often than this …"""
    promote_confidence: float = 0.85
    """… and surer than this."""
    ask_usage: int = 5
    """Put up for a verdict: used more often than this …"""
    ask_confidence: float = 0.6
    """… and less sure than this."""
    decay_days: float = 30.0
    """Each whole span of this length without use or change …"""
    decay_rate: float = 0.95
    """… leaves this share of the confidence; 1 for no decay …"""
    decay_floor: float = 0.1
    """… but never less than this."""
    every: int = 20
    """New strategies and guardrails after which a partition is consolidated by itself."""
    batch: int = 500
    """Entries decided on in one transaction, about."""
    keep_runs: int = 50
    """Runs that can be undone; older ones are forgotten."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            whole = each.type == "int"
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
                raise InvalidInput(
                    f"consolidation.{each.name}", f"{value!r} is not a {'whole ' if whole else ''}number"
                )
            most = None if whole or each.name.endswith("_days") else 1.0
            least = 1 if each.name in ("every", "batch", "keep_runs") else 0
            if not value >= least or (most is not None and value > most):
                allowed = f"at least {least}" if most is None else f"from {least} to {most:g}"
                raise InvalidInput(f"consolidation.{each.name}", f"{value!r} is not {allowed}")
        if self.decay_days == 0:
            raise InvalidInput("consolidation.decay_days", "is 0", "set decay_rate to 1 for no decay")

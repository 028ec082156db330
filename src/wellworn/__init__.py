"""wellworn: memory for AI agents that learns from being used.

    from wellworn import Memory, Scope

    mem = Memory.open("memory.db")
    scope = Scope(tenant="acme", user="ada")
    mem.remember("Ada prefers tokio over async-std.", scope=scope, kind="preference", tags=["rust"])
    mem.recall("which async runtime does Ada like?", scope=scope).hits[0].entry.text

This module is the only public face. Names load on first use, so `import wellworn` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wellworn.aio import AsyncMemory
    from wellworn.core.errors import (
        BudgetExceeded,
        EmbedderMismatch,
        EmbeddingFailed,
        InvalidInput,
        LeaseLost,
        MissingExtra,
        ModelFailed,
        NotFound,
        PersonalData,
        ReplyUnreadable,
        ScopeError,
        StoreBusy,
        StoreClosed,
        StoreCorrupt,
        StoreError,
        TransferError,
        UnknownKind,
        WellwornError,
    )
    from wellworn.core.values import (
        Entry,
        Hit,
        Link,
        Reasoning,
        ReasoningStep,
        Recall,
        RecallResult,
        Receipt,
        Scope,
        Stats,
        Step,
        Turn,
        Version,
    )
    from wellworn.ingest.pii.mask import scrub_text
    from wellworn.ingest.pii.scrubbing import Scrub
    from wellworn.ingest.session import Session
    from wellworn.ingest.validate import Draft
    from wellworn.memory import Memory
    from wellworn.models.choose import cached_embedder
    from wellworn.models.costs import Budget
    from wellworn.ops.doctor import Report
    from wellworn.reflection.report import Reflection
    from wellworn.reflection.settings import ReflectionSettings
    from wellworn.search.assemble import Assembled, LeftOut
    from wellworn.search.profiles import Profile
    from wellworn.search.steps.actions import (
        Aggregate,
        DrillDown,
        FilterByRecency,
        FilterByRelevance,
        RecursiveCall,
        SearchLayer,
    )
    from wellworn.search.steps.limits import Limits
    from wellworn.search.steps.models import Models
    from wellworn.search.steps.plans import Planner
    from wellworn.search.steps.recall import Recursion
    from wellworn.search.steps.repl import ReplLimits

__version__ = "0.1.0"

_HOME = {
    "Aggregate": "wellworn.search.steps.actions",
    "Assembled": "wellworn.search.assemble",
    "AsyncMemory": "wellworn.aio",
    "Budget": "wellworn.models.costs",
    "BudgetExceeded": "wellworn.core.errors",
    "Draft": "wellworn.ingest.validate",
    "DrillDown": "wellworn.search.steps.actions",
    "EmbedderMismatch": "wellworn.core.errors",
    "EmbeddingFailed": "wellworn.core.errors",
    "Entry": "wellworn.core.values",
    "FilterByRecency": "wellworn.search.steps.actions",
    "FilterByRelevance": "wellworn.search.steps.actions",
    "Hit": "wellworn.core.values",
    "InvalidInput": "wellworn.core.errors",
    "LeaseLost": "wellworn.core.errors",
    "LeftOut": "wellworn.search.assemble",
    "Limits": "wellworn.search.steps.limits",
    "Link": "wellworn.core.values",
    "Memory": "wellworn.memory",
    "MissingExtra": "wellworn.core.errors",
    "ModelFailed": "wellworn.core.errors",
    "Models": "wellworn.search.steps.models",
    "NotFound": "wellworn.core.errors",
    "PersonalData": "wellworn.core.errors",
    "Planner": "wellworn.search.steps.plans",
    "Profile": "wellworn.search.profiles",
    "Reasoning": "wellworn.core.values",
    "ReasoningStep": "wellworn.core.values",
    "Recall": "wellworn.core.values",
    "RecallResult": "wellworn.core.values",
    "Receipt": "wellworn.core.values",
    "WellwornError": "wellworn.core.errors",
    "Recursion": "wellworn.search.steps.recall",
    "RecursiveCall": "wellworn.search.steps.actions",
    "Reflection": "wellworn.reflection.report",
    "ReflectionSettings": "wellworn.reflection.settings",
    "ReplLimits": "wellworn.search.steps.repl",
    "ReplyUnreadable": "wellworn.core.errors",
    "Report": "wellworn.ops.doctor",
    "Scope": "wellworn.core.values",
    "ScopeError": "wellworn.core.errors",
    "Scrub": "wellworn.ingest.pii.scrubbing",
    "SearchLayer": "wellworn.search.steps.actions",
    "Session": "wellworn.ingest.session",
    "Stats": "wellworn.core.values",
    "Step": "wellworn.core.values",
    "StoreBusy": "wellworn.core.errors",
    "StoreClosed": "wellworn.core.errors",
    "StoreCorrupt": "wellworn.core.errors",
    "StoreError": "wellworn.core.errors",
    "TransferError": "wellworn.core.errors",
    "Turn": "wellworn.core.values",
    "UnknownKind": "wellworn.core.errors",
    "Version": "wellworn.core.values",
    "cached_embedder": "wellworn.models.choose",
    "scrub_text": "wellworn.ingest.pii.mask",
}

__all__ = [
    "Aggregate",
    "Assembled",
    "AsyncMemory",
    "Budget",
    "BudgetExceeded",
    "Draft",
    "DrillDown",
    "EmbedderMismatch",
    "EmbeddingFailed",
    "Entry",
    "FilterByRecency",
    "FilterByRelevance",
    "Hit",
    "InvalidInput",
    "LeaseLost",
    "LeftOut",
    "Limits",
    "Link",
    "Memory",
    "MissingExtra",
    "ModelFailed",
    "Models",
    "NotFound",
    "PersonalData",
    "Planner",
    "Profile",
    "Reasoning",
    "ReasoningStep",
    "Recall",
    "RecallResult",
    "Receipt",
    "Recursion",
    "RecursiveCall",
    "Reflection",
    "ReflectionSettings",
    "ReplLimits",
    "ReplyUnreadable",
    "Report",
    "Scope",
    "ScopeError",
    "Scrub",
    "SearchLayer",
    "Session",
    "Stats",
    "Step",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreError",
    "TransferError",
    "Turn",
    "UnknownKind",
    "Version",
    "WellwornError",
    "__version__",
    "cached_embedder",
    "scrub_text",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'wellworn' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

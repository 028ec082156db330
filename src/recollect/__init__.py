"""recollect: memory for AI agents that learns from being used.

    from recollect import Memory, Scope

    mem = Memory.open("memory.db")
    scope = Scope(tenant="acme", user="ada")
    mem.remember("Ada prefers tokio over async-std.", scope=scope, kind="preference", tags=["rust"])
    mem.recall("which async runtime does Ada like?", scope=scope).hits[0].entry.text

This module is the only public face. Names load on first use, so `import recollect` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.aio import AsyncMemory
    from recollect.context.assemble import Assembled, LeftOut
    from recollect.embeddings.choose import cached_embedder
    from recollect.errors import (
        BudgetExceeded,
        EmbedderMismatch,
        EmbeddingFailed,
        InvalidInput,
        LeaseLost,
        MissingExtra,
        ModelFailed,
        NotFound,
        PersonalData,
        RecollectError,
        ReplyUnreadable,
        ScopeError,
        StoreBusy,
        StoreClosed,
        StoreCorrupt,
        StoreError,
        TransferError,
        UnknownKind,
    )
    from recollect.ingest.pii.mask import scrub_text
    from recollect.ingest.pii.scrubbing import Scrub
    from recollect.ingest.session import Session
    from recollect.ingest.validate import Draft
    from recollect.llm.budget import Budget
    from recollect.memory import Memory
    from recollect.ops.doctor import Report
    from recollect.recursive.actions import (
        Aggregate,
        DrillDown,
        FilterByRecency,
        FilterByRelevance,
        RecursiveCall,
        SearchLayer,
    )
    from recollect.recursive.limits import Limits
    from recollect.recursive.models import Models
    from recollect.recursive.plans import Planner
    from recollect.recursive.recall import Recursion
    from recollect.recursive.repl import ReplLimits
    from recollect.reflection.report import Reflection
    from recollect.reflection.settings import ReflectionSettings
    from recollect.retrieval.profiles import Profile
    from recollect.types import (
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

__version__ = "0.1.0"

_HOME = {
    "Aggregate": "recollect.recursive.actions",
    "Assembled": "recollect.context.assemble",
    "AsyncMemory": "recollect.aio",
    "Budget": "recollect.llm.budget",
    "BudgetExceeded": "recollect.errors",
    "Draft": "recollect.ingest.validate",
    "DrillDown": "recollect.recursive.actions",
    "EmbedderMismatch": "recollect.errors",
    "EmbeddingFailed": "recollect.errors",
    "Entry": "recollect.types",
    "FilterByRecency": "recollect.recursive.actions",
    "FilterByRelevance": "recollect.recursive.actions",
    "Hit": "recollect.types",
    "InvalidInput": "recollect.errors",
    "LeaseLost": "recollect.errors",
    "LeftOut": "recollect.context.assemble",
    "Limits": "recollect.recursive.limits",
    "Link": "recollect.types",
    "Memory": "recollect.memory",
    "MissingExtra": "recollect.errors",
    "ModelFailed": "recollect.errors",
    "Models": "recollect.recursive.models",
    "NotFound": "recollect.errors",
    "PersonalData": "recollect.errors",
    "Planner": "recollect.recursive.plans",
    "Profile": "recollect.retrieval.profiles",
    "Reasoning": "recollect.types",
    "ReasoningStep": "recollect.types",
    "Recall": "recollect.types",
    "RecallResult": "recollect.types",
    "Receipt": "recollect.types",
    "RecollectError": "recollect.errors",
    "Recursion": "recollect.recursive.recall",
    "RecursiveCall": "recollect.recursive.actions",
    "Reflection": "recollect.reflection.report",
    "ReflectionSettings": "recollect.reflection.settings",
    "ReplLimits": "recollect.recursive.repl",
    "ReplyUnreadable": "recollect.errors",
    "Report": "recollect.ops.doctor",
    "Scope": "recollect.types",
    "ScopeError": "recollect.errors",
    "Scrub": "recollect.ingest.pii.scrubbing",
    "SearchLayer": "recollect.recursive.actions",
    "Session": "recollect.ingest.session",
    "Stats": "recollect.types",
    "Step": "recollect.types",
    "StoreBusy": "recollect.errors",
    "StoreClosed": "recollect.errors",
    "StoreCorrupt": "recollect.errors",
    "StoreError": "recollect.errors",
    "TransferError": "recollect.errors",
    "Turn": "recollect.types",
    "UnknownKind": "recollect.errors",
    "Version": "recollect.types",
    "cached_embedder": "recollect.embeddings.choose",
    "scrub_text": "recollect.ingest.pii.mask",
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
    "RecollectError",
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
    "__version__",
    "cached_embedder",
    "scrub_text",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

"""wellworn: memory for AI agents that gets better with use.

    from wellworn import Memory

    mem = Memory("memory.db")
    ada = mem.for_user("ada")
    ada.remember("Ada prefers tokio over async-std.", kind="preference")
    print(ada.recall("which async runtime does Ada like?")[0].text)

This module holds the public names. They load on first use, so `import wellworn` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wellworn.core.lazy import lazy

if TYPE_CHECKING:
    from wellworn.aio import AsyncMemory as AsyncMemory
    from wellworn.aio import AsyncSession as AsyncSession
    from wellworn.core.citations import Citation as Citation
    from wellworn.core.clock import Clock as Clock
    from wellworn.core.clock import NewId as NewId
    from wellworn.core.errors import AccessDenied as AccessDenied
    from wellworn.core.errors import BudgetExceeded as BudgetExceeded
    from wellworn.core.errors import Conflict as Conflict
    from wellworn.core.errors import EmbedderMismatch as EmbedderMismatch
    from wellworn.core.errors import EmbeddingFailed as EmbeddingFailed
    from wellworn.core.errors import InvalidInput as InvalidInput
    from wellworn.core.errors import LeaseLost as LeaseLost
    from wellworn.core.errors import MissingExtra as MissingExtra
    from wellworn.core.errors import ModelFailed as ModelFailed
    from wellworn.core.errors import NotFound as NotFound
    from wellworn.core.errors import PersonalData as PersonalData
    from wellworn.core.errors import ReplyUnreadable as ReplyUnreadable
    from wellworn.core.errors import ScopeError as ScopeError
    from wellworn.core.errors import ServiceFailed as ServiceFailed
    from wellworn.core.errors import StoreBusy as StoreBusy
    from wellworn.core.errors import StoreClosed as StoreClosed
    from wellworn.core.errors import StoreCorrupt as StoreCorrupt
    from wellworn.core.errors import StoreError as StoreError
    from wellworn.core.errors import TransferError as TransferError
    from wellworn.core.errors import UnknownKind as UnknownKind
    from wellworn.core.errors import WellwornError as WellwornError
    from wellworn.core.errors import WrongKey as WrongKey
    from wellworn.core.values import CacheLevel as CacheLevel
    from wellworn.core.values import Cost as Cost
    from wellworn.core.values import Durability as Durability
    from wellworn.core.values import Entry as Entry
    from wellworn.core.values import Factor as Factor
    from wellworn.core.values import Hit as Hit
    from wellworn.core.values import Job as Job
    from wellworn.core.values import JobState as JobState
    from wellworn.core.values import Kind as Kind
    from wellworn.core.values import Layer as Layer
    from wellworn.core.values import LearningMode as LearningMode
    from wellworn.core.values import LearningStatus as LearningStatus
    from wellworn.core.values import Link as Link
    from wellworn.core.values import LinkType as LinkType
    from wellworn.core.values import Partition as Partition
    from wellworn.core.values import Progress as Progress
    from wellworn.core.values import Reasoning as Reasoning
    from wellworn.core.values import ReasoningStep as ReasoningStep
    from wellworn.core.values import Recall as Recall
    from wellworn.core.values import RecallResult as RecallResult
    from wellworn.core.values import Receipt as Receipt
    from wellworn.core.values import RecursionMode as RecursionMode
    from wellworn.core.values import Scope as Scope
    from wellworn.core.values import SearchStep as SearchStep
    from wellworn.core.values import State as State
    from wellworn.core.values import Stats as Stats
    from wellworn.core.values import Trust as Trust
    from wellworn.core.values import Turn as Turn
    from wellworn.core.values import Version as Version
    from wellworn.engine import Settings as Settings
    from wellworn.ingest.pii.mask import Scrubbed as Scrubbed
    from wellworn.ingest.pii.mask import scrub_text as scrub_text
    from wellworn.ingest.scrub import ScrubberSpec as ScrubberSpec
    from wellworn.ingest.session import Session as Session
    from wellworn.ingest.validate import Details as Details
    from wellworn.ingest.validate import Draft as Draft
    from wellworn.ingest.validate import TimeLike as TimeLike
    from wellworn.integrations.loop import Format as Format
    from wellworn.integrations.loop import MemoryMiddleware as MemoryMiddleware
    from wellworn.integrations.loop import MiddlewareContext as MiddlewareContext
    from wellworn.integrations.loop import create_memory_middleware as create_memory_middleware
    from wellworn.integrations.loop import format_memory_context as format_memory_context
    from wellworn.memory import Memory as Memory
    from wellworn.models.cache import CachedEmbedder as CachedEmbedder
    from wellworn.models.choose import EmbedderSpec as EmbedderSpec
    from wellworn.models.choose import ModelSpec as ModelSpec
    from wellworn.models.choose import cached_embedder as cached_embedder
    from wellworn.models.ledger import Budget as Budget
    from wellworn.models.ledger import CallCost as CallCost
    from wellworn.models.ledger import Span as Span
    from wellworn.models.ledger import Spent as Spent
    from wellworn.models.port import Embedder as Embedder
    from wellworn.models.port import Matrix as Matrix
    from wellworn.models.port import Model as Model
    from wellworn.ops.backup import BackedUp as BackedUp
    from wellworn.ops.backup import Backup as Backup
    from wellworn.ops.doctor import Report as Report
    from wellworn.ops.imports import Imported as Imported
    from wellworn.ops.reembed import Reembedded as Reembedded
    from wellworn.ops.retention import Expired as Expired
    from wellworn.ops.retention import RetentionPolicy as RetentionPolicy
    from wellworn.ops.retention import SignedReceipt as SignedReceipt
    from wellworn.ops.transfer import Loaded as Loaded
    from wellworn.ops.transfer import Written as Written
    from wellworn.reflection.values import ReflectedMemory as ReflectedMemory
    from wellworn.reflection.values import Reflection as Reflection
    from wellworn.reflection.values import ReflectionSettings as ReflectionSettings
    from wellworn.search.assemble import Assembled as Assembled
    from wellworn.search.assemble import LeftOut as LeftOut
    from wellworn.search.filters import FilterOptions as FilterOptions
    from wellworn.search.profiles import Profile as Profile
    from wellworn.search.steps.actions import Aggregate as Aggregate
    from wellworn.search.steps.actions import DrillDown as DrillDown
    from wellworn.search.steps.actions import FilterByRecency as FilterByRecency
    from wellworn.search.steps.actions import FilterByRelevance as FilterByRelevance
    from wellworn.search.steps.actions import Plan as Plan
    from wellworn.search.steps.actions import Planner as Planner
    from wellworn.search.steps.actions import RecursiveCall as RecursiveCall
    from wellworn.search.steps.actions import SearchLayer as SearchLayer
    from wellworn.search.steps.actions import Strategy as Strategy
    from wellworn.search.steps.limits import Models as Models
    from wellworn.search.steps.repl import ReplLimits as ReplLimits
    from wellworn.search.steps.router import Limits as Limits
    from wellworn.search.steps.router import Recursion as Recursion
    from wellworn.search.steps.router import Shape as Shape
    from wellworn.server.client import AsyncClient as AsyncClient
    from wellworn.server.client import AsyncClientSession as AsyncClientSession
    from wellworn.server.client import Client as Client
    from wellworn.server.client import ClientSession as ClientSession
    from wellworn.store.events import Event as Event
    from wellworn.store.port import EmbeddingModel as EmbeddingModel
    from wellworn.store.port import Flaw as Flaw
    from wellworn.store.port import Store as Store
    from wellworn.store.sqlite.driver import Key as Key

__version__ = "0.2.0"

_NAMES = {
    "aio": "AsyncMemory AsyncSession",
    "core.citations": "Citation",
    "core.clock": "Clock NewId",
    "core.errors": "AccessDenied BudgetExceeded Conflict EmbedderMismatch EmbeddingFailed InvalidInput LeaseLost MissingExtra ModelFailed NotFound PersonalData ReplyUnreadable ScopeError ServiceFailed StoreBusy StoreClosed StoreCorrupt StoreError TransferError UnknownKind WellwornError WrongKey",
    "core.values": "CacheLevel Cost Durability Entry Factor Hit Job JobState Kind Layer LearningMode LearningStatus Link LinkType Partition Progress Reasoning ReasoningStep Recall RecallResult Receipt RecursionMode Scope SearchStep State Stats Trust Turn Version",
    "engine": "Settings",
    "ingest.pii.mask": "Scrubbed scrub_text",
    "ingest.scrub": "ScrubberSpec",
    "ingest.session": "Session",
    "ingest.validate": "Details Draft TimeLike",
    "integrations.loop": "Format MemoryMiddleware MiddlewareContext create_memory_middleware format_memory_context",
    "memory": "Memory",
    "models.cache": "CachedEmbedder",
    "models.choose": "EmbedderSpec ModelSpec cached_embedder",
    "models.ledger": "Budget CallCost Span Spent",
    "models.port": "Embedder Matrix Model",
    "ops.backup": "BackedUp Backup",
    "ops.doctor": "Report",
    "ops.imports": "Imported",
    "ops.reembed": "Reembedded",
    "ops.retention": "Expired RetentionPolicy SignedReceipt",
    "ops.transfer": "Loaded Written",
    "reflection.values": "ReflectedMemory Reflection ReflectionSettings",
    "search.assemble": "Assembled LeftOut",
    "search.filters": "FilterOptions",
    "search.profiles": "Profile",
    "search.steps.actions": "Aggregate DrillDown FilterByRecency FilterByRelevance Plan Planner RecursiveCall SearchLayer Strategy",
    "search.steps.limits": "Models",
    "search.steps.repl": "ReplLimits",
    "search.steps.router": "Limits Recursion Shape",
    "server.client": "AsyncClient AsyncClientSession Client ClientSession",
    "store.events": "Event",
    "store.port": "EmbeddingModel Flaw Store",
    "store.sqlite.driver": "Key",
}
__all__, __getattr__, __dir__ = lazy("wellworn", _NAMES)
__all__ += ["__version__"]

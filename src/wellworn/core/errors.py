"""Every error wellworn raises on purpose, in one tree.

    WellwornError
    ├── InvalidInput          a value from outside is not usable; nothing was changed
    │   ├── UnknownKind       not one of the entry kinds
    │   ├── ScopeError        the scope names no layer, or not the one asked for
    │   └── PersonalData      the text holds personal data or secrets, and the memory refuses them
    ├── NotFound              no such entry, session or recall in this scope
    ├── EmbedderMismatch      the store's vectors come from another model or width
    ├── MissingExtra          an optional package is not installed
    ├── EmbeddingFailed       the embedding provider answered with an error
    ├── LeaseLost             a job is no longer this worker's
    ├── ModelFailed           the language model could not answer
    │   └── ReplyUnreadable   it answered, but with no JSON in it
    ├── BudgetExceeded        the call would cost more than a cap allows; it was not made
    ├── TransferError         an export or import file is damaged or unsafe
    ├── Conflict              it was changed meanwhile, or the same request is under way
    ├── AccessDenied          the service does not know the key, or the key does not allow this
    ├── ServiceFailed         the service cannot be reached, or has too much to do
    └── StoreError            the storage engine failed
        ├── StoreBusy         another writer held the file for longer than the time-out
        ├── StoreUnreachable  the database does not answer, or the connection was lost; nothing was written
        ├── StoreCorrupt      the file is not a readable wellworn store
        │   └── OtherFile     it is whole, but another program made it, or a newer wellworn
        ├── WrongKey          the file is encrypted with another key, or not encrypted
        └── StoreClosed       the memory was closed

A message names the value and the remedy. Driver errors never escape a store: they arrive as `StoreError`.
"""

from __future__ import annotations

from collections.abc import Mapping

MOST_MESSAGE_CHARS = 900


def _cut(message: str) -> str:
    """A message without its middle, when it quotes something long: the end names the remedy."""
    if len(message) <= MOST_MESSAGE_CHARS:
        return message
    return f"{message[: MOST_MESSAGE_CHARS - 300]} … {message[-290:]}"


class WellwornError(Exception):
    """Base of every error this package raises on purpose. Its message is cut to a length that a person reads."""

    def __init__(self, message: str = "", *more: object) -> None:
        super().__init__(_cut(message), *more)


class InvalidInput(WellwornError, ValueError):
    """A value from outside is not usable. `field` says which; nothing was changed."""

    def __init__(self, field: str, problem: str, remedy: str = "") -> None:
        self.field = field
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{field}: {problem}" + (f" ({remedy})" if remedy else ""))


class UnknownKind(InvalidInput):
    """The kind is not one of the entry kinds."""


class ScopeError(InvalidInput):
    """The scope cannot serve this call."""


class PersonalData(InvalidInput):
    """The text holds personal data or secrets, and the memory was opened to refuse them."""


class NotFound(WellwornError, LookupError):
    """Nothing of that id in this scope."""

    def __init__(self, what: str, name: str, remedy: str = "") -> None:
        self.what = what
        self.name = name
        self.remedy = remedy
        super().__init__(f"no {what} {name!r} in this scope" + (f" ({remedy})" if remedy else ""))

    def told(self, remedies: Mapping[str, str]) -> NotFound:
        """The same in the words of a door (REST, MCP): its remedies by what is missing."""
        return NotFound(self.what, self.name, remedies.get(self.what, self.remedy))


class EmbedderMismatch(WellwornError):
    """The stored vectors were made by another embedding model."""

    def __init__(self, stored: str, stored_width: int, given: str, given_width: int) -> None:
        self.stored, self.stored_width = stored, stored_width
        self.given, self.given_width = given, given_width
        kind = stored.partition(":")[0]
        name = kind if kind in ("reader", "static", "minilm") else stored
        own = f"`--embedder {name}`, WELLWORN_EMBEDDER, or embedder={name!r}"
        if kind == "function":
            own = "pass the same function as embedder"
        super().__init__(
            f"this store holds vectors of {stored!r} (width {stored_width}), but the embedder is {given!r} "
            f"(width {given_width}). Open it with its own ({own}), or "
            f"move it to the new one with `wellworn admin reembed`; no text is lost either way"
        )


class MissingExtra(WellwornError, ImportError):
    """An optional package is needed for this."""

    def __init__(self, feature: str, extra: str) -> None:
        self.feature, self.extra = feature, extra
        super().__init__(f"{feature} needs an optional package: pip install 'wellworn[{extra}]'")


class EmbeddingFailed(WellwornError):
    """The embedding provider could not answer; nothing was stored."""


class LeaseLost(WellwornError):
    """A job is no longer held by the claim that began it: another worker has it, or it is gone. Its effects must not
    be written."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(f"job {job_id} is no longer held by this worker; what it did is rolled back")


class ModelFailed(WellwornError):
    """The language model could not answer. `retryable` says whether the same call may succeed later."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        self.retryable = retryable
        super().__init__(message)


class ReplyUnreadable(ModelFailed):
    """The language model answered, but not with the JSON it was asked for."""


class BudgetExceeded(WellwornError):
    """A model call was not made, because it might pass a cap. Spent, wanted and limit are in the cap's unit."""

    def __init__(self, cap: str, *, limit: float, spent: float, wanted: float, remedy: str) -> None:
        self.cap, self.limit, self.spent, self.wanted = cap, limit, spent, wanted
        super().__init__(
            f"{cap} is {limit:g}: {spent:g} spent, and this call may take {wanted:g} more; it was not made ({remedy})"
        )


class TransferError(WellwornError):
    """An export or import file is damaged, unsafe or of an unknown version; nothing was changed."""


class Conflict(WellwornError):
    """What was to be changed is not as the caller saw it; nothing was changed. `retry_after_s` says when to try again, if
    it helps."""

    def __init__(self, message: str, *, status: int = 409, retry_after_s: float | None = None) -> None:
        self.status, self.retry_after_s = status, retry_after_s
        super().__init__(message)


class AccessDenied(WellwornError):
    """The service does not know who calls (`status` 401), or does not allow this to them (403)."""

    def __init__(self, message: str, *, status: int = 403) -> None:
        self.status = status
        super().__init__(message)


class ServiceFailed(WellwornError):
    """The service cannot be reached, or has too much to do. `retry_after_s` says when to try again, if it helps."""

    def __init__(self, message: str, *, status: int = 503, retry_after_s: float | None = None) -> None:
        self.status, self.retry_after_s = status, retry_after_s
        super().__init__(message)


class StoreError(WellwornError):
    """The storage engine failed. What had been acknowledged before is still there."""


class StoreBusy(StoreError):
    """Another writer held the store for longer than the time-out."""


class StoreUnreachable(StoreError):
    """The database cannot be reached, or the connection to it was lost; nothing was written."""


class StoreCorrupt(StoreError):
    """The file is not a readable wellworn store."""


class OtherFile(StoreCorrupt):
    """The file is whole, but another program made it, or a newer wellworn."""


class WrongKey(StoreError):
    """The key does not open the file."""


class StoreClosed(StoreError):
    """The memory was closed; open it again."""

"""What every backend must do, as suites to inherit from.

A backend's test file holds a class and two methods:

    class TestMyStore(StoreContract):
        durable = True

        def make_store(self) -> Store: ...
        def reopen(self, store: Store) -> Store: ...

`make_store` gives a new, empty store at each call. Where `durable` is set, `reopen` closes a store and opens the same
data again. pytest is needed; the rest of the package never imports it.
"""

from wellworn.testing.store.calls import CallsContract
from wellworn.testing.store.changes import ChangesContract
from wellworn.testing.store.engine import EngineContract
from wellworn.testing.store.entries import EntriesContract
from wellworn.testing.store.jobs import JobsContract
from wellworn.testing.store.learning_log import LearningLogContract
from wellworn.testing.store.links import LinksContract
from wellworn.testing.store.models import ModelsContract
from wellworn.testing.store.neighbours import NeighboursContract
from wellworn.testing.store.records import RecordsContract
from wellworn.testing.store.removal import RemovalContract
from wellworn.testing.store.sessions import SessionsContract
from wellworn.testing.store.turns import TurnsContract

__all__ = ["StoreContract"]


class StoreContract(
    EntriesContract,
    NeighboursContract,
    ChangesContract,
    RemovalContract,
    LinksContract,
    TurnsContract,
    ModelsContract,
    LearningLogContract,
    CallsContract,
    JobsContract,
    RecordsContract,
    SessionsContract,
    EngineContract,
):
    """The whole port of `stores.base`; the in-memory store is the reference for what it leaves open."""

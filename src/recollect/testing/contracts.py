"""What every backend must do, as suites to inherit from.

A backend's test file holds a class and two methods:

    class TestMyStore(StoreContract):
        durable = True

        def make_store(self) -> Store: ...
        def reopen(self, store: Store) -> Store: ...

`make_store` gives a new, empty store at each call. Where `durable` is set, `reopen` closes a store and opens the same
data again. pytest is needed; the rest of the package never imports it.
"""

from recollect.testing.store.calls import CallsContract
from recollect.testing.store.changes import ChangesContract
from recollect.testing.store.dossiers import DossiersContract
from recollect.testing.store.engine import EngineContract
from recollect.testing.store.entries import EntriesContract
from recollect.testing.store.jobs import JobsContract
from recollect.testing.store.learning_log import LearningLogContract
from recollect.testing.store.links import LinksContract
from recollect.testing.store.models import ModelsContract
from recollect.testing.store.neighbours import NeighboursContract
from recollect.testing.store.removal import RemovalContract
from recollect.testing.store.sessions import SessionsContract
from recollect.testing.store.turns import TurnsContract

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
    DossiersContract,
    SessionsContract,
    EngineContract,
):
    """The whole port of `stores.base`; the in-memory store is the reference for what it leaves open."""

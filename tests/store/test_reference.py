"""The reference keeps the contract too, so that what it is compared with is right."""

from __future__ import annotations

from contract.stores import StoreContract
from store.reference import ReferenceStore
from wellworn.store.port import Store


class TestReference(StoreContract):
    def make_store(self) -> Store:
        return ReferenceStore()

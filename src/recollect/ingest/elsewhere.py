"""Dossiers that tell of a session of another shelf: an agent's task in a user's session.

A dossier goes with a session of its own shelf. One that lies elsewhere leaves a pointer beside the session, which says
where it lies, so that it goes too.
"""

from __future__ import annotations

from recollect.stores.base import Dossier, Removed, Store, Tx
from recollect.types import LAYERS, Shelf

ELSEWHERE = "elsewhere"
_MANY = 1_000_000


def point_at(tx: Tx, home: Shelf, dossier: Dossier) -> None:
    """Write down beside a session that a dossier of another shelf tells of it."""
    body = {"layer": dossier.shelf.layer, "layer_id": dossier.shelf.layer_id, "kind": dossier.kind, "key": dossier.key}
    tx.put_dossier(Dossier(
        shelf=home, kind=ELSEWHERE, key=f"{dossier.kind}:{dossier.key}", body=body, session=dossier.session,
        created_at=dossier.created_at, updated_at=dossier.updated_at,
    ))  # fmt: skip


def drop_elsewhere(tx: Tx, store: Store, home: Shelf, session_id: str | None) -> Removed:
    """Drop what tells of a session, or of any of the shelf, on other shelves of the tenant."""
    dropped = 0
    for pointer in store.dossiers(shelf=home, kinds=[ELSEWHERE], limit=_MANY):
        if session_id in (None, pointer.session):
            layer = next(one for one in LAYERS if one == pointer.body["layer"])
            shelf = Shelf(tenant=home.tenant, layer=layer, layer_id=pointer.body["layer_id"])
            dropped += tx.drop_dossier(shelf, pointer.body["kind"], pointer.body["key"])
    return Removed(dossiers=dropped)

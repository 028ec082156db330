"""Records that tell of a session of another partition: an agent's task in a user's session.

A record goes with a session of its own partition. One that lies elsewhere leaves a pointer beside the session, which says
where it lies, so that it goes too.
"""

from __future__ import annotations

from wellworn.core.values import LAYERS, Partition
from wellworn.store.port import Record, Removed, Store, Tx

ELSEWHERE = "elsewhere"
_MANY = 1_000_000


def point_at(tx: Tx, home: Partition, record: Record) -> None:
    """Write down beside a session that a record of another partition tells of it."""
    body = {
        "layer": record.partition.layer,
        "layer_id": record.partition.layer_id,
        "kind": record.kind,
        "key": record.key,
    }
    tx.put_record(
        Record(
            partition=home,
            kind=ELSEWHERE,
            key=f"{record.kind}:{record.key}",
            body=body,
            session=record.session,
            created_at=record.created_at,
            updated_at=record.updated_at,
        )
    )


def drop_elsewhere(tx: Tx, store: Store, home: Partition, session_id: str | None) -> Removed:
    """Drop what tells of a session, or of any of the partition, on other partitions of the tenant."""
    dropped = 0
    for pointer in store.records(partition=home, kinds=[ELSEWHERE], limit=_MANY):
        if session_id in (None, pointer.session):
            layer = next(one for one in LAYERS if one == pointer.body["layer"])
            partition = Partition(tenant=home.tenant, layer=layer, layer_id=pointer.body["layer_id"])
            dropped += tx.drop_record(partition, pointer.body["kind"], pointer.body["key"])
    return Removed(records=dropped)

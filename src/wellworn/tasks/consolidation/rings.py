"""Links that say what came before what must not lead back."""

from __future__ import annotations

from wellworn.store.port import Store


def leads_to(store: Store, start: str, goal: str, type_: str) -> bool:
    """Whether following links of a type from one entry comes to another."""
    seen, ahead = {start}, [start]
    while ahead:
        further = [link.target for link in store.links(ahead, types=[type_]) if link.source in seen]
        ahead = [id for id in dict.fromkeys(further) if id not in seen]
        if goal in ahead:
            return True
        seen.update(ahead)
    return False

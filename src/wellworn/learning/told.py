"""An outcome as a caller words it, checked: exactly one kind, with its value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from wellworn.core.errors import InvalidInput
from wellworn.ingest.validate import checked_flag, checked_fraction, checked_query
from wellworn.store.port import LoggedRecall


@dataclass(frozen=True, kw_only=True)
class Told:
    """One kind of outcome; `places` of `cited`, and of a `verdict` that is about some of the shown only."""

    kind: str
    value: dict[str, Any]
    places: tuple[int, ...] | None = None

    def rows(self, recall: LoggedRecall) -> list[int]:
        """Row numbers of the entries it is about: those at its places, without places all that were shown."""
        if self.places is None:
            return list(recall.nos[: recall.shown])
        for place in self.places:
            if place >= recall.shown:
                raise InvalidInput(self.kind, f"{place} is past the {recall.shown} hits of this recall", "count from 0")
        return [recall.nos[place] for place in self.places]

    def logged(self, recall: LoggedRecall) -> dict[str, Any]:
        """The value as the log keeps it: cited places become row numbers."""
        return {"nos": self.rows(recall)} if self.kind == "cited" else self.value


def told_of(
    *, cited: Sequence[int] | None, used: float | None, ignored: bool, refined: str | None, success: bool | None
) -> Told:
    """The one outcome given; none or several are an error."""
    given: list[Told] = []
    if cited is not None:
        given.append(Told(kind="cited", value={}, places=_checked_places(cited)))
    if used is not None:
        given.append(Told(kind="used", value={"quality": checked_fraction("used", used)}))
    if checked_flag("ignored", ignored):
        given.append(Told(kind="ignored", value={}))
    if refined is not None:
        given.append(Told(kind="refined", value={"query": checked_query(refined)}))
    if success is not None:
        given.append(Told(kind="verdict", value={"success": checked_flag("success", success)}))
    if len(given) != 1:
        raise InvalidInput("outcome", f"{len(given)} were given", "give one of cited, used, ignored, refined, success")
    return given[0]


def _checked_places(cited: object) -> tuple[int, ...]:
    if isinstance(cited, str) or not isinstance(cited, Iterable):
        raise InvalidInput("cited", f"{cited!r} is not a list of places", "as in cited=[0, 2]")
    places = tuple(cited)
    for place in places:
        if isinstance(place, bool) or not isinstance(place, int) or place < 0:
            raise InvalidInput("cited", f"{place!r} is not a place in the hits", "count from 0")
    return tuple(dict.fromkeys(places))

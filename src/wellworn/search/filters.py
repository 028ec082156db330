"""What a recall may return, beyond what its scope sees."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypedDict

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, ScopeError
from wellworn.core.values import LAYERS, Kind, Layer
from wellworn.ingest import validate
from wellworn.ingest.validate import TimeLike
from wellworn.store.port import Selection


class FilterOptions(TypedDict, total=False):
    """What a caller can narrow a recall by; every condition given must hold."""

    kind: Kind | Sequence[Kind] | None
    tags: str | Sequence[str] | None
    """An entry must have all of them."""
    layer: Layer | Sequence[Layer] | None
    session_id: str | None
    except_session: str | None
    """Leaves out a dialogue that the caller still has before it."""
    since: TimeLike
    until: TimeLike
    """These two bound when it happened."""
    as_of: TimeLike
    """Sees what was valid then."""
    min_score: float | None
    min_confidence: float | None
    """No hits at all when it is less likely than this that an answer is among them."""


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Conditions that must all hold; None leaves a condition out."""

    kinds: list[str] | None = None
    tags: list[str] | None = None
    layers: list[str] | None = None
    session_id: str | None = None
    except_session: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    min_score: float | None = None
    min_confidence: float | None = None
    """Of the recall as a whole."""
    min_entry_confidence: float | None = None

    @classmethod
    def of(
        cls,
        *,
        kind: str | Sequence[str] | None = None,
        tags: str | Sequence[str] | None = None,
        layer: str | Sequence[str] | None = None,
        session_id: str | None = None,
        except_session: str | None = None,
        since: TimeLike = None,
        until: TimeLike = None,
        as_of: TimeLike = None,
        min_score: float | None = None,
        min_confidence: float | None = None,
    ) -> Filters:
        """The filters as a caller words them: one value or several, times in any readable form."""
        if min_score is not None and not (isinstance(min_score, int | float) and _is_float(min_score)):
            raise InvalidInput("min_score", f"{validate.shown(min_score)} is not a number")
        return cls(
            kinds=_several("kind", kind, validate.checked_kind),
            tags=None if tags is None else validate.checked_tags([tags] if isinstance(tags, str) else tags) or None,
            layers=_several("layer", layer, _checked_layer),
            session_id=None if session_id is None else validate.checked_session_id(session_id),
            except_session=None if except_session is None else validate.checked_session_id(except_session),
            since=validate.as_time("since", since),
            until=validate.as_time("until", until),
            as_of=validate.as_time("as_of", as_of),
            min_score=min_score,
            min_confidence=None
            if min_confidence is None
            else validate.checked_fraction("min_confidence", min_confidence),
        )

    @property
    def narrow(self) -> bool:
        """Whether any condition on entries is given."""
        others = ("as_of", "min_score", "min_confidence")
        return any(value is not None for name, value in self.__dict__.items() if name not in others)

    def selection(self, state: str | Sequence[str] | None = None) -> Selection:
        """The same conditions for listing entries."""
        states = _several("state", state, validate.checked_state)
        return Selection(kinds=self.kinds, tags=self.tags, session_id=self.session_id, states=states)


NO_FILTERS = Filters()


def _is_float(number: float) -> bool:
    """Whether it is not NaN, nor an integer that no float can hold."""
    return abs(number) <= sys.float_info.max or abs(number) == math.inf


def _several(name: str, value: str | Sequence[str] | None, check: Callable[[object], str]) -> list[str] | None:
    if value is None:
        return None
    if not isinstance(value, str | Sequence):
        raise InvalidInput(name, f"{validate.shown(value)} is neither a text nor a list of texts")
    return [check(one) for one in ([value] if isinstance(value, str) else value)]


def _checked_layer(layer: object) -> str:
    if not isinstance(layer, str) or layer not in LAYERS:
        raise ScopeError("layer", f"{validate.shown(layer)} is not a layer", f"use one of {', '.join(LAYERS)}")
    return layer

"""Our `dataclass` behaves as the standard one."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from wellworn import Scope
from wellworn.core.dataclass import altered, dataclass


def plain() -> type:
    class Plain:
        """Fields of all sorts."""

        first: int
        second: str = "two"
        third: list[int] = dataclasses.field(default_factory=list)
        hidden: int = dataclasses.field(default=0, repr=False, compare=False)

    return Plain


def own() -> type:
    class Own:
        """Methods of its own, and a check of itself."""

        first: int
        second: int = 2

        def __post_init__(self) -> None:
            if self.first < 0:
                raise ValueError("negative")

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __repr__(self) -> str:
            return "own"

    return Own


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return repr(call())
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("new_class", [plain, own])
@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"frozen": True, "kw_only": True}, {"eq": False}])
@pytest.mark.parametrize(
    "call",
    [
        lambda cls: cls(first=1),
        lambda cls: cls(1, 2),
        lambda cls: cls(1, first=2),
        lambda cls: cls(*range(9)),
        lambda cls: cls(),
        lambda cls: cls(first=-1),
        lambda cls: cls(first=1, nobody=2),
        lambda cls: cls(first=1, second="x", third=[1], hidden=5),
        lambda cls: cls(first=1) == cls(first=1),
        lambda cls: cls(first=1) == 1,
        lambda cls: len({hash(one) for one in [cls(first=1), cls(first=1)]}),
        lambda cls: setattr(cls(first=1), "first", 2),
        lambda cls: delattr(cls(first=1), "first"),
        lambda cls: dataclasses.replace(cls(first=1), first=2),
        lambda cls: dataclasses.asdict(cls(first=1)),
        lambda cls: [field.name for field in dataclasses.fields(cls)],
        lambda cls: vars(copy.copy(cls(first=1))),
        lambda cls: [(p.name, p.kind) for p in inspect.signature(cls).parameters.values()],
        lambda cls: cls(first=1).__match_args__,
    ],
)
def test_it_behaves_as_the_standard_one(
    new_class: Callable[[], type], options: dict[str, Any], call: Callable[[Any], Any]
) -> None:
    ours: Any = dataclass(**options)(new_class())
    standard: Any = dataclasses.dataclass(**options)(new_class())
    assert outcome(lambda: call(ours)) == outcome(lambda: call(standard))


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A value that is pickled."""

    first: int
    others: list[int] = dataclasses.field(default_factory=list)


def test_values_share_no_defaults_and_can_be_pickled() -> None:
    one, other = Kept(first=1), Kept(first=1)
    one.others.append(1)
    assert other.others == []
    assert pickle.loads(pickle.dumps(one)) == one


def test_what_a_value_worked_out_stays_behind_when_it_is_altered() -> None:
    ada = Scope(user="ada")
    assert [one.layer_id for one in ada.partitions()] == ["ada"]
    assert [one.layer_id for one in altered(ada, user="bo").partitions()] == ["bo"]
    assert altered(ada, user="bo") == dataclasses.replace(ada, user="bo")

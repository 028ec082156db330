"""`dataclass` as in the standard library, for classes that load at every start.

The standard one writes and compiles the source of six methods for each class, which takes a millisecond; a hook of a
coding agent loads a hundred classes. These methods are closures instead. `fields`, `replace`, `asdict` and
`inspect.signature` work as usual; `order` and `slots` are not supported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from inspect import Signature
else:

    def dataclass(cls=None, /, *, frozen=False, kw_only=False, eq=True):
        """Make a class a dataclass."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, kw_only=kw_only, eq=eq)
        doc, cls.__doc__ = cls.__doc__, "none"  # else it looks for a signature to make one of
        dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        cls.__doc__ = doc
        methods = {"__init__": _init(cls), "__signature__": _SignatureOnDemand(), "__repr__": _repr}
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
        if eq:
            methods |= _comparing(cls, hashable=frozen)
        for name, method in methods.items():
            if cls.__dict__.get(name) is None:  # a class with its own `__eq__` has None as its `__hash__`
                setattr(cls, name, method)
        return cls


def filled(cls: type[T], /, **fields: Any) -> T:  # any field of it
    """A frozen value of which every field is given, made in a fifth of the time.

    `__init__` of a frozen class assigns each field by a call of its own; that was a tenth of a recall.
    """
    made = object.__new__(cls)
    made.__dict__.update(fields)
    return made


def filled_each(cls: type[T], rows: Iterable[Mapping[str, Any]]) -> list[T]:
    """`filled` for each of these."""
    made = []
    for fields in rows:
        made.append(one := object.__new__(cls))
        one.__dict__.update(fields)
    return made


def altered(value: T, /, **fields: Any) -> T:  # any field of it
    """`dataclasses.replace` in less time, for frozen values that check nothing. What a value keeps beside its fields stays behind:
    it was worked out of the old ones."""
    made, known = object.__new__(type(value)), type(value).__dataclass_fields__  # type: ignore[attr-defined]
    made.__dict__.update((name, one) for name, one in value.__dict__.items() if name in known)
    made.__dict__.update(fields)
    return made


def _init(cls: Any) -> Any:
    fields = [field for field in dataclasses.fields(cls) if field.init]
    defaults = {field.name: field.default for field in fields}
    made = [(f.name, f.default_factory) for f in fields if f.default_factory is not dataclasses.MISSING]
    needed = {f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING}
    positional = [field.name for field in fields if not field.kw_only]
    checked = hasattr(cls, "__post_init__")

    def init(self: Any, *args: Any, **given: Any) -> None:
        if args:
            named = dict(zip(positional, args, strict=False))
            if len(named) != len(args) or named.keys() & given.keys():
                type(self).__signature__.bind(*args, **given)  # raises what does not fit
            given |= named
        values = self.__dict__
        values.update(defaults)
        for name, factory in made:
            if name not in given:
                values[name] = factory()
        values.update(given)
        if len(values) != len(defaults) or not needed <= given.keys():
            type(self).__signature__.bind(**given)
        if checked:
            self.__post_init__()

    return init


class _SignatureOnDemand:
    """What `inspect.signature` asks a class for."""

    def __get__(self, value: object, cls: Any) -> Signature:
        from inspect import Parameter, Signature

        def default(field: dataclasses.Field[Any]) -> Any:
            if field.default_factory is not dataclasses.MISSING:
                return field.default_factory()
            return Parameter.empty if field.default is dataclasses.MISSING else field.default

        fields = sorted(
            (field for field in dataclasses.fields(cls) if field.init), key=lambda field: bool(field.kw_only)
        )
        kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        return Signature(
            [Parameter(f.name, kinds[bool(f.kw_only)], default=default(f), annotation=f.type) for f in fields]
        )


def _comparing(cls: Any, *, hashable: bool) -> dict[str, Any]:
    values = attrgetter(*names) if (names := [f.name for f in dataclasses.fields(cls) if f.compare]) else bool

    def equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": equal, "__hash__": hashed if hashable else None}


def _repr(self: Any) -> str:
    shown = [f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(_self: Any, name: str, *_: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

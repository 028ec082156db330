"""What is worked out on first use: the names of a package, regular expressions, properties."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, cast, overload

T = TypeVar("T")


def lazy(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package: the names that its stub, `__init__.pyi`, imports."""
    spec: Any = sys.modules[package].__spec__  # its loader also reads from archives
    lines = spec.loader.get_data(f"{spec.origin}i").decode().splitlines()
    home = {words[3]: words[1] for words in map(str.split, lines) if words[:1] == ["from"]}
    public = sorted(home)

    def get(name: str) -> Any:  # whatever the module has under this name
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return public, get, lambda: public


class cached_property(Generic[T]):  # noqa: N801 - stands for the one of functools
    """As that of functools, without its lock: before Python 3.12 all objects share it, and a fork may carry it along held, for
    ever. Two threads may work a value out at once; both are the same."""

    def __init__(self, work_out: Callable[[Any], T]) -> None:  # Any: the object it is a property of
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._work_out(instance)
        return value


def regex(form: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, but compiled when it is first used: a run uses few of the hundreds that there are."""
    return cast("re.Pattern[str]", _Regex(form, flags))


class _Regex:
    _NAMES = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split", "groupindex", "groups")

    def __init__(self, form: str, flags: int) -> None:
        self.pattern = form
        self.flags = flags

    def __getattr__(self, name: str) -> Any:  # called once: what it sets is found without it
        if name not in self._NAMES:
            raise AttributeError(f"a regular expression has no attribute {name!r} here")
        compiled = re.compile(self.pattern, self.flags)
        self.__dict__.update({each: getattr(compiled, each) for each in self._NAMES})
        return getattr(compiled, name)

"""Names of a package that load on first use, so that importing the package stays quick."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any


def lazy(package: str, names: dict[str, str]) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package; `names` maps a module of it to its public names."""
    home = {name: f"{package}.{module}" for module, listed in names.items() for name in listed.split()}
    public = sorted(home)

    def get(name: str) -> Any:  # whatever the module has under this name
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return public, get, lambda: public

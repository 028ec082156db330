"""The store contract, one file per part of the port. Use it through `wellworn.testing.contracts`."""

import pytest

_PARTS = (
    "calls",
    "case",
    "changes",
    "records",
    "engine",
    "entries",
    "jobs",
    "learning_log",
    "links",
    "models",
    "neighbours",
    "removal",
    "sessions",
    "turns",
)
# Outside test files pytest explains a failed assert only where it is asked to, before the module is loaded.
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _PARTS))

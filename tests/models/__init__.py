import pytest

# Outside test files pytest explains a failed assert only where it is asked to, before the module is loaded.
pytest.register_assert_rewrite("contract.models")

"""Settings for the whole suite: how hard the property tests try.

`make test` uses the profile `light`, `make test-all` uses `heavy` (`pytest --hypothesis-profile=heavy`): few and many
examples, the same ones on every run. To look for new ones, `pytest --hypothesis-profile=default`. Leave `max_examples`
out of a test's own settings unless it needs a number of its own.
"""

from hypothesis import HealthCheck, settings

QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile(
    "light",
    max_examples=15,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=QUIET,
)
settings.register_profile(
    "heavy",
    max_examples=150,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=QUIET,
)
settings.load_profile("light")

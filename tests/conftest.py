"""For all tests: properties are held to what they say, never to how long a busy machine takes to try them; and what
a module set in the environment goes with it, or another module's commands would do something else after it."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("untimed")

_AT_FIRST = dict(os.environ)


@pytest.fixture(autouse=True, scope="module")
def _environment_as_at_first() -> Iterator[None]:
    yield
    now = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    assert now == {n: v for n, v in _AT_FIRST.items() if n != "PYTEST_CURRENT_TEST"}, (
        "a test or a fixture wider than its module left this behind"
    )

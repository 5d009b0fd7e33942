"""What all tests share: how hard hypothesis searches.

`ci` is the default: the same examples on every run, so that a test fails for everybody or for nobody. To search on,
`pytest tests/properties --hypothesis-profile=thorough`; what it finds becomes a test of its own.
"""

import pytest
from hypothesis import HealthCheck, settings

from mooring.engine.action import Cycle

# Deadlines off: a first example pays for imports and caches, and a busy machine is no fault of the code.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=60,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")


@pytest.fixture(autouse=True)
def _what_raises_fails_the_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler outlives what raises in somebody's turn; tests shall see it, but those that are about just that."""
    if request.node.get_closest_marker("faults") is None:

        def fail(cycle: Cycle, turns: object, error: Exception) -> None:
            raise error

        monkeypatch.setattr(Cycle, "fail", fail)

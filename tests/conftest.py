"""What all tests share: how hard hypothesis searches, which tests are slow, and that faults fail a test.

`ci` is the default profile: the same examples on every run, so that a test fails always or never. To search on,
`pytest tests/properties --hypothesis-profile=thorough`; what it finds becomes a test of its own.

`--quick` (`make test`) takes a sixth of the examples, and of each file that starts processes its first test;
`make test SLOW=1` (`.ci/run`) runs everything.
"""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from mooring.cli.main import collect_less_often
from mooring.testing.faults import raise_faults

SLOW = (
    "live",
    "pages",
    "cli/test_bench_command.py",
    "cli/test_up_command.py",
    "kubeapi/test_demo.py",
    "kubeapi/test_devices_that_fail.py",
    "kubeapi/test_examples_with_kubectl.py",
    "kubeapi/test_fuzz_of_a_server.py",
    "kubeapi/test_kubectl.py",
    "kubeapi/test_limits.py",
    "kubeapi/test_many_watches.py",
    "kubeapi/test_resizing_in_place.py",
    "kubeapi/test_scheduler_process.py",
    "kubeapi/test_survival.py",
    "kubeapi/test_unauthenticated_limits.py",
    "unit/kubeapi/controllers/test_missing_fields.py",
)
"""Folders and files whose tests start processes or take seconds each: `--quick` runs the first test of a file."""

TESTS = Path(__file__).parent

# Deadlines off: a first example pays for imports and caches, and a busy machine is no fault of the code.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=60,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.register_profile("thorough", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="fewer examples, and one test of each slow file")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        settings.load_profile("quick")


@pytest.hookimpl(trylast=True)  # after -m has left out what is not asked for
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--quick"):
        return
    slow = tuple(TESTS / place for place in SLOW)
    seen: set[Path] = set()
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        is_slow = any(item.path == place or place in item.path.parents for place in slow)
        (left_out if is_slow and item.path in seen else kept).append(item)
        seen.add(item.path)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


@pytest.fixture(autouse=True)
def _faults_fail_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """A scheduler outlives what a plugin or an action raises; a test must not, unless it is about just that."""
    if request.node.get_closest_marker("faults") is not None:
        yield
        return
    with raise_faults():
        yield


@pytest.fixture(autouse=True)
def _collector_runs() -> Iterator[None]:
    """Collect garbage as a command does: `mooring run` turns the collector off until it has read all."""
    collect_less_often()
    yield
    gc.unfreeze()
    gc.enable()

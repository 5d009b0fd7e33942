"""Quota windows must speak of quotas that there are: a name that is misspelt would be a window that never opens."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooring.assembly import Assembly
    from mooring.model.loading.manifests import Manifests


def check_window_targets(assembly: "Assembly", config: Path | None, pictures: Iterable["Manifests"]) -> None:
    """Refuse a window for a quota that no queue has at any time; manifests without queues have no use for windows."""
    if not assembly.tenants.quota_windows:
        return
    from mooring.actions.admit.windows.windows import QuotaSchedule
    from mooring.config.scheduler import suggestion
    from mooring.errors import ConfigError
    from mooring.model.api.kueue import ClusterQueue

    queues = [queue for picture in pictures for queue in picture.of(ClusterQueue)]
    if not queues:
        return
    schedule = QuotaSchedule(assembly.tenants.quota_windows)
    for problem in schedule.unknown(queues):
        expected = problem.expected + suggestion(problem.name, problem.known)
        field = f"quotaWindows[{problem.window}].{problem.field}"
        raise ConfigError(str(config), field, expected=expected, found=f'"{problem.name}"')

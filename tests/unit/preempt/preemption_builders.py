"""What the tests of preemption share."""

from collections.abc import Mapping
from typing import Any

from mooring.actions.preempt.search import Found, InVain, Search, refusals
from mooring.assembly import assemble
from mooring.model.meta import ObjectMeta
from mooring.model.pods import Pod
from mooring.model.policies import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from mooring.state.cluster import Cluster
from mooring.testing.builders import make_pod, make_selector


def make_running(name: str, node: str, *, priority: int = 0, started: str | None = None, **given: Any) -> Pod:
    """A pod that runs, since `started` (an hour of the first of January, as HH:MM) if that is given."""
    pod = make_pod(name, node=node, priority=priority, **given)
    pod.status.start_time = f"2026-01-01T{started}:00Z" if started else None
    return pod


def make_budget(
    name: str,
    *,
    labels: Mapping[str, str] | None,
    allowed: int | None = None,
    min_available: int | str | None = None,
    max_unavailable: int | str | None = None,
    namespace: str = "default",
    disrupted: tuple[str, ...] = (),
) -> PodDisruptionBudget:
    """A budget; with a status only if `allowed` is given."""
    status = None
    if allowed is not None:
        gone = dict.fromkeys(disrupted, "2026-01-01T00:00:00Z") or None
        status = PodDisruptionBudgetStatus(disruptions_allowed=allowed, disrupted_pods=gone)
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(
            min_available=min_available,
            max_unavailable=max_unavailable,
            selector=None if labels is None else make_selector(labels),
        ),
        status=status,
    )


def search(cluster: Cluster, pod: Pod, using: Search | None = None) -> Found | InVain:
    """Look for room for a pod with the default profile."""
    answer = refusals(assemble().default_profile, cluster, cluster.shape_for(pod))
    return (using or Search(cluster)).find(answer, pod)


def chosen(found: Found | InVain) -> tuple[str, list[str]]:
    """The node, and the names of the victims, the most important first."""
    assert isinstance(found, Found), found
    return found.node, [victim.pod.metadata.name for victim in found.victims]

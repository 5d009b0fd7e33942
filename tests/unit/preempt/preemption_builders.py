"""What the tests of preemption share."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from mooring.actions.preempt.pods.search import Found, InVain, VictimSearch, refusals
from mooring.assembly import assemble
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.engine.cycle import Scheduler
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from mooring.model.events import GangSeen
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import GANG_NAME, PLAIN_KIND
from mooring.state.cluster import Cluster
from mooring.testing.builders import make_cluster, make_pod, make_scheduler, make_selector


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


def make_gang(name: str, minimum: int, **given: Any) -> Gang:
    return Gang(gang_key(PLAIN_KIND, "default", name), f"default/{name}", minimum, **given)


def make_member(name: str, gang: str, **given: Any) -> Pod:
    """A pod that waits, or runs on a node, as one of a gang."""
    return make_pod(name, annotations={GANG_NAME: gang} | given.pop("annotations", {}), **given)


def gang_cluster(*, nodes: Iterable[Node], pods: Iterable[Pod], gangs: Iterable[Gang], **given: Any) -> Cluster:
    cluster = make_cluster(nodes=nodes, pods=pods, **given)
    cluster.observe(*(GangSeen(gang) for gang in gangs))
    return cluster


def gang_scheduler(
    *, nodes: Iterable[Node], pods: Iterable[Pod], gangs: Iterable[Gang], profile: Any = None
) -> Scheduler:
    scheduler = make_scheduler(nodes=nodes, pods=pods, profile=profile)
    scheduler.handle(*(GangSeen(gang) for gang in gangs))
    return scheduler


def seconds(clock: str) -> float:
    """The moment of a time HH:MM of the first of January."""
    return datetime.fromisoformat(f"2026-01-01T{clock}:00Z").timestamp()


def search(
    cluster: Cluster,
    pod: Pod,
    using: VictimSearch | None = None,
    *,
    at: str = "00:00",
    costs: PreemptionCostArgs | None = None,
) -> Found | InVain:
    """Look for room for a pod with the default profile."""
    answer = refusals(assemble().default_profile, cluster, cluster.shape_for(pod))
    return (using or VictimSearch(cluster, with_costs=costs is not None)).find(answer, pod, seconds(at), costs)


def chosen(found: Found | InVain) -> tuple[str, list[str]]:
    """The node, and the names of the victims, the most important first."""
    assert isinstance(found, Found), found
    return found.node, [victim.pod.metadata.name for victim in found.victims]

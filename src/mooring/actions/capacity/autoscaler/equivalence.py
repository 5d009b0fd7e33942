"""Pods that are alike, as far as the autoscaler can tell: what holds for one of them holds for all."""

from collections.abc import Iterable
from dataclasses import dataclass

from mooring.actions.capacity.autoscaler.situation import Likeness, controller_of, is_daemon
from mooring.model.api.pods import Pod
from mooring.model.values.quantity import to_millis, to_units
from mooring.model.values.requests import CPU, MEMORY, pod_requests
from mooring.state.cluster import Cluster
from mooring.state.shapes import Shape

MOST_GROUPS_OF_A_CONTROLLER = 10
"""Pods of a controller that makes more kinds of pods than that are looked at one by one."""


@dataclass(frozen=True, eq=False)
class PodGroup:
    """Pods of one controller with the same labels and spec, or one pod alone."""

    pods: tuple[Pod, ...]
    shape: Shape
    requests: dict[str, int]
    """Of each pod, in nano-units."""

    @property
    def sample(self) -> Pod:
        return self.pods[0]

    @property
    def cpu_millis(self) -> int:
        return to_millis(self.requests.get(CPU, 0))

    @property
    def memory_bytes(self) -> int:
        return to_units(self.requests.get(MEMORY, 0))


def equivalence_groups(cluster: Cluster, pods: Iterable[Pod]) -> list[PodGroup]:
    """Group pods that wait, in the order in which the first of each group comes."""
    likeness = Likeness()
    groups: list[list[Pod]] = []
    of_controller: dict[str, dict[object, list[Pod]]] = {}
    for pod in pods:
        controller = controller_of(pod)
        if controller is None or is_daemon(pod):
            groups.append([pod])
            continue
        known = of_controller.setdefault(controller.uid, {})
        like = likeness.of(pod)
        found = known.get(like)
        if found is not None:
            found.append(pod)
            continue
        groups.append(alone := [pod])
        if len(known) < MOST_GROUPS_OF_A_CONTROLLER:
            known[like] = alone
    records = cluster.pods.records
    return [PodGroup(tuple(found), records[found[0].key].shape, dict(pod_requests(found[0]))) for found in groups]

"""Pods are held by a scheduling gate until their work is admitted, and resume with what admission adds to them.

Pods of one template share their spec, and what is done to one spec is done once for all pods that share it.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from mooring.model.api.kueue import ResourceFlavor
from mooring.model.api.kueue_labels import ADMISSION_GATE, QUEUE_GATES
from mooring.model.api.pods import Pod, PodSpec, SchedulingGate, Toleration


class ResumeError(ValueError):
    """A pod selects other nodes than those that it was given quota on."""


def hold_pods(pods: Iterable[Pod]) -> None:
    """Put the gate on pods that wait for admission, in place; those that have it stay as they are."""
    held: dict[int, tuple[PodSpec, PodSpec]] = {}  # with the spec itself: its id is only good while it is there
    for pod in pods:
        spec = pod.spec
        gates = spec.scheduling_gates or []
        if any(gate.name == ADMISSION_GATE for gate in gates):
            continue
        if id(spec) not in held:
            held[id(spec)] = spec, replace(spec, scheduling_gates=[*gates, SchedulingGate(name=ADMISSION_GATE)])
        pod.spec = held[id(spec)][1]


def resume(pod: Pod, node_selector: Mapping[str, str], tolerations: Sequence[Toleration]) -> Pod:
    """Return the pod without the gate, on the nodes and with the tolerations that its flavors give it.

    Raise ResumeError if it selects other nodes itself.
    """
    return resume_pods([pod], node_selector, tolerations)[0]


def resume_pods(pods: Iterable[Pod], node_selector: Mapping[str, str], tolerations: Sequence[Toleration]) -> list[Pod]:
    """Resume many pods at once; those that share a spec share the new one."""
    resumed: dict[int, tuple[PodSpec, PodSpec]] = {}
    found = []
    for pod in pods:
        spec = pod.spec
        if id(spec) not in resumed:
            resumed[id(spec)] = spec, _resume_spec(spec, node_selector, tolerations)
        found.append(replace(pod, spec=resumed[id(spec)][1]))
    return found


def _resume_spec(spec: PodSpec, node_selector: Mapping[str, str], tolerations: Sequence[Toleration]) -> PodSpec:
    own = spec.tolerations or []
    return replace(
        spec,
        scheduling_gates=[gate for gate in spec.scheduling_gates or () if gate.name not in QUEUE_GATES] or None,
        node_selector=merge_selectors(spec.node_selector or {}, node_selector) or None,
        tolerations=[*own, *(found for found in tolerations if found not in own)] or None,
    )


def merge_selectors(own: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    for key, value in more.items():
        if own.get(key, value) != value:
            raise ResumeError(f"node selector {key}={own[key]} contradicts {key}={value}")
    return {**own, **more}


def flavor_terms(
    flavors: Mapping[str, ResourceFlavor], names: Iterable[str]
) -> tuple[dict[str, str], list[Toleration]]:
    """What the flavors that a pod set was given add to its pods: node labels to select, and tolerations.

    A flavor that is not there adds nothing. Raise ResumeError if two of them are never on one node.
    """
    node_selector: dict[str, str] = {}
    tolerations: list[Toleration] = []
    for name in dict.fromkeys(names):
        flavor = flavors.get(name)
        if flavor is None:
            continue
        node_selector = merge_selectors(node_selector, flavor.spec.node_labels or {})
        tolerations += [found for found in flavor.spec.tolerations or () if found not in tolerations]
    return node_selector, tolerations

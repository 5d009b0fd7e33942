"""Checks of a pod's spec, whether a pod's own or a template's."""

from collections.abc import Iterable

from mooring.model.api.meta import Resources
from mooring.model.api.pods import (
    Affinity,
    Container,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from mooring.model.places import show
from mooring.model.validation.terms import (
    Subject,
    check_choice,
    check_label_selector,
    check_node_selector,
    check_node_term,
    check_resources,
    check_tolerations,
)
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import CPU, MEMORY, is_extended

PROTOCOLS = ("TCP", "UDP", "SCTP")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
NODE_POLICIES = ("Honor", "Ignore")
RESTART_POLICIES = ("Always", "OnFailure", "Never")
HIGHEST_PORT = 65535


def check_pod_spec(subject: Subject, path: str, spec: PodSpec) -> None:
    """Check everything of a pod that scheduling reads."""
    if not spec.containers:
        subject.refuse(f"{path}.containers", expected="at least one container", found="none")
    names: set[str] = set()
    for index, container in enumerate(spec.containers):
        _check_container(subject, f"{path}.containers[{index}]", container, names, spec.host_network)
    for index, container in enumerate(spec.init_containers or ()):
        _check_container(subject, f"{path}.initContainers[{index}]", container, names, spec.host_network)
    if spec.resources is not None:
        _check_pod_level(subject, f"{path}.resources", spec.resources)
    check_resources(subject, f"{path}.overhead", spec.overhead)
    if spec.tolerations:
        check_tolerations(subject, f"{path}.tolerations", spec.tolerations)
    if spec.affinity is not None:
        _check_affinity(subject, f"{path}.affinity", spec.affinity)
    if spec.topology_spread_constraints:
        _check_spread(subject, f"{path}.topologySpreadConstraints", spec.topology_spread_constraints)
    if spec.preemption_policy is not None:
        check_choice(subject, f"{path}.preemptionPolicy", spec.preemption_policy, PREEMPTION_POLICIES)
    if spec.restart_policy:
        check_choice(subject, f"{path}.restartPolicy", spec.restart_policy, RESTART_POLICIES)


def _check_container(subject: Subject, path: str, container: Container, names: set[str], host_network: bool) -> None:
    name = container.name
    if not name:
        subject.refuse(f"{path}.name", expected="a name", found="none")
    if name in names:
        subject.refuse(f"{path}.name", expected="a name that no other container has", found=show(name))
    names.add(name)
    if container.resources is not None:
        _check_requirements(subject, f"{path}.resources", container.resources)
    if container.ports:
        _check_ports(subject, path, container, host_network)


def _check_ports(subject: Subject, path: str, container: Container, host_network: bool) -> None:
    for index, port in enumerate(container.ports or ()):
        if not 0 < port.container_port <= HIGHEST_PORT:
            expected, found = f"a port from 1 to {HIGHEST_PORT}", show(port.container_port or None)
            here = f"{path}.ports[{index}].containerPort"
            subject.refuse(here, expected=expected, found="none" if found == "null" else found)
        if not 0 <= port.host_port <= HIGHEST_PORT:
            expected = f"a port from 0 to {HIGHEST_PORT}"
            subject.refuse(f"{path}.ports[{index}].hostPort", expected=expected, found=show(port.host_port))
        if host_network and port.host_port not in (0, port.container_port):
            expected = f"{port.container_port}, the containerPort, as hostNetwork is true"
            subject.refuse(f"{path}.ports[{index}].hostPort", expected=expected, found=show(port.host_port))
        if port.protocol:
            check_choice(subject, f"{path}.ports[{index}].protocol", port.protocol, PROTOCOLS)


def _check_requirements(subject: Subject, path: str, resources: ResourceRequirements) -> None:
    requests, limits = resources.requests, resources.limits
    if requests:
        check_resources(subject, f"{path}.requests", requests)
        _check_whole(subject, path, requests, limits or {})
    if limits:
        check_resources(subject, f"{path}.limits", limits)
        if requests:
            _check_within(subject, f"{path}.requests", requests, limits)


def _check_whole(subject: Subject, path: str, requests: Resources, limits: Resources) -> None:
    """Devices, other extended resources and huge pages are never overcommitted: what is requested is the limit."""
    for name, text in requests.items():
        if "/" not in name and not name.startswith("hugepages-"):
            continue
        if name.startswith("hugepages-") or is_extended(name):
            limit = limits.get(name)
            if limit is None:
                subject.refuse_unless_limited(f"{path}.limits.{name}", expected=f"{text}, as requested", found="none")
            elif text != limit and parse_quantity(text) != parse_quantity(limit):
                subject.refuse(f"{path}.requests.{name}", expected=f"{limit}, the limit", found=show(text))


def _check_within(subject: Subject, path: str, requests: Resources, limits: Resources) -> None:
    for name, text in requests.items():
        limit = limits.get(name)
        if limit is not None and text != limit and parse_quantity(text) > parse_quantity(limit):
            subject.refuse(f"{path}.{name}", expected=f"at most the limit, {limit}", found=show(text))


def _check_pod_level(subject: Subject, path: str, resources: ResourceRequirements) -> None:
    _check_requirements(subject, path, resources)
    for field, amounts in (("requests", resources.requests), ("limits", resources.limits)):
        for name in amounts or ():
            if name not in (CPU, MEMORY) and not name.startswith("hugepages-"):
                expected = "only cpu, memory and hugepages for a whole pod"
                subject.refuse(f"{path}.{field}", expected=expected, found=show(name))


def _check_affinity(subject: Subject, path: str, affinity: Affinity) -> None:
    if affinity.node_affinity is not None:
        _check_node_affinity(subject, f"{path}.nodeAffinity", affinity.node_affinity)
    if affinity.pod_affinity is not None:
        _check_pod_affinity(subject, f"{path}.podAffinity", affinity.pod_affinity)
    if affinity.pod_anti_affinity is not None:
        _check_pod_affinity(subject, f"{path}.podAntiAffinity", affinity.pod_anti_affinity)


def _check_node_affinity(subject: Subject, path: str, affinity: NodeAffinity) -> None:
    if affinity.required is not None:
        check_node_selector(subject, f"{path}.requiredDuringSchedulingIgnoredDuringExecution", affinity.required)
    for index, preferred in enumerate(affinity.preferred or ()):
        here = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        _check_weight(subject, here, preferred.weight)
        check_node_term(subject, f"{here}.preference", preferred.preference)


def _check_pod_affinity(subject: Subject, path: str, affinity: PodAffinity) -> None:
    for index, term in enumerate(affinity.required or ()):
        _check_pod_term(subject, f"{path}.requiredDuringSchedulingIgnoredDuringExecution[{index}]", term)
    for index, preferred in enumerate(affinity.preferred or ()):
        here = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        _check_weight(subject, here, preferred.weight)
        _check_pod_term(subject, f"{here}.podAffinityTerm", preferred.pod_affinity_term)


def _check_weight(subject: Subject, path: str, weight: int) -> None:
    if not 1 <= weight <= 100:
        subject.refuse(f"{path}.weight", expected="a weight from 1 to 100", found=show(weight))


def _check_pod_term(subject: Subject, path: str, term: PodAffinityTerm) -> None:
    if not term.topology_key:
        subject.refuse(f"{path}.topologyKey", expected="a label key", found="none")
    check_label_selector(subject, f"{path}.labelSelector", term.label_selector)
    check_label_selector(subject, f"{path}.namespaceSelector", term.namespace_selector)
    if term.label_selector is None:
        _refuse_keys(subject, f"{path}.matchLabelKeys", term.match_label_keys)
        _refuse_keys(subject, f"{path}.mismatchLabelKeys", term.mismatch_label_keys)


def _refuse_keys(subject: Subject, path: str, keys: Iterable[str] | None) -> None:
    if keys:
        subject.refuse(path, expected="no keys, as there is no labelSelector", found=", ".join(map(show, keys)))


def _check_spread(subject: Subject, path: str, constraints: list[TopologySpreadConstraint]) -> None:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        if constraint.max_skew <= 0:
            subject.refuse(f"{here}.maxSkew", expected="a number greater than 0", found=show(constraint.max_skew))
        if not constraint.topology_key:
            subject.refuse(f"{here}.topologyKey", expected="a label key", found="none")
        check_choice(subject, f"{here}.whenUnsatisfiable", constraint.when_unsatisfiable, UNSATISFIABLE)
        key = (constraint.topology_key, constraint.when_unsatisfiable)
        if key in seen:
            expected = "no second constraint of this topologyKey and whenUnsatisfiable"
            subject.refuse(here, expected=expected, found=" ".join(key))
        seen.add(key)
        _check_domains(subject, here, constraint)
        for field, policy in (
            ("nodeAffinityPolicy", constraint.node_affinity_policy),
            ("nodeTaintsPolicy", constraint.node_taints_policy),
        ):
            if policy is not None:
                check_choice(subject, f"{here}.{field}", policy, NODE_POLICIES)
        check_label_selector(subject, f"{here}.labelSelector", constraint.label_selector)
        if constraint.label_selector is None:
            _refuse_keys(subject, f"{here}.matchLabelKeys", constraint.match_label_keys)


def _check_domains(subject: Subject, path: str, constraint: TopologySpreadConstraint) -> None:
    if constraint.min_domains is None:
        return
    if constraint.min_domains <= 0:
        expected = "a number greater than 0"
        subject.refuse(f"{path}.minDomains", expected=expected, found=show(constraint.min_domains))
    if constraint.when_unsatisfiable != "DoNotSchedule":
        expected = "no minDomains unless whenUnsatisfiable is DoNotSchedule"
        subject.refuse(f"{path}.minDomains", expected=expected, found=show(constraint.min_domains))

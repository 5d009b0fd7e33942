"""Which pods and containers each VerticalPodAutoscaler is about."""

from dataclasses import dataclass
from typing import Any

from mooring.model.api.autoscaling import VerticalPodAutoscaler
from mooring.model.api.meta import LabelSelector
from mooring.model.api.pods import Pod
from mooring.model.api.workloads import CronJob
from mooring.model.jobs.expansion import controller_of, template_of
from mooring.model.loading.manifests import Manifests
from mooring.model.rightsizing.recommendations import ALL_CONTAINERS
from mooring.model.values.selectors import NOTHING, Selector, compile_equality, compile_label_selector
from mooring.report.names import Workload, Workloads


@dataclass(frozen=True, slots=True)
class Autoscaled:
    """An autoscaler, its target, and the pods of that."""

    vpa: VerticalPodAutoscaler
    target: Workload
    pods: list[Pod]
    """Those that are not over."""
    containers: list[str]
    """The names of containers, sorted: those of the target's template and of its pods."""
    selector: Selector
    """By which pods of the target are known that are gone; matches nothing where the target is not known."""

    @property
    def namespace(self) -> str:
        return self.vpa.metadata.namespace

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.vpa.metadata.name}"


def find_autoscaled(manifests: Manifests) -> list[Autoscaled]:
    """All autoscalers in the order of their names. Of several for the same pods, the oldest has them."""
    workloads = Workloads(manifests)
    owned: dict[Workload, list[Pod]] = {}
    for pod in manifests.pods:
        if not pod.is_terminal:
            for owner in _owners(pod, workloads):
                owned.setdefault(owner, []).append(pod)
    taken = set[str]()
    found = []
    for vpa in sorted(manifests.of(VerticalPodAutoscaler), key=_age):
        assert vpa.spec.target_ref is not None  # refused when it was read
        target = Workload(vpa.metadata.namespace, vpa.spec.target_ref.kind, vpa.spec.target_ref.name)
        pods = [pod for pod in owned.get(target, ()) if pod.key not in taken]
        taken.update(pod.key for pod in pods)
        controller = _controller(manifests, target)
        template = template_of(controller) if controller is not None else None
        names = {container.name for pod in pods for container in pod.spec.containers}
        names |= {container.name for container in template.spec.containers} if template is not None else set()
        found.append(Autoscaled(vpa, target, pods, sorted(names), _selector(controller)))
    return sorted(found, key=lambda one: one.key)


def unknown_container(found: Autoscaled) -> tuple[int, str] | None:
    """The first policy, by index, that names a container which is not there; None if the containers are not known."""
    policy = found.vpa.spec.resource_policy
    known = {ALL_CONTAINERS, *found.containers}
    for index, one in enumerate((policy.container_policies if policy is not None else None) or ()):
        if found.containers and one.container_name not in known:
            return index, one.container_name
    return None


def _age(vpa: VerticalPodAutoscaler) -> tuple[str, str, str]:
    return vpa.metadata.creation_timestamp or "", vpa.metadata.namespace, vpa.metadata.name


def _owners(pod: Pod, workloads: Workloads) -> list[Workload]:
    """Who may be named as the target for a pod: its own controller, and the outermost one."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return []
    direct = Workload(pod.metadata.namespace, owner.kind, owner.name)
    outermost = workloads.owner_of(pod)
    return [direct] if outermost is None or outermost == direct else [direct, outermost]


def _controller(manifests: Manifests, target: Workload) -> Any | None:
    lists: tuple[list[Any], ...] = (
        manifests.deployments,
        manifests.stateful_sets,
        manifests.daemon_sets,
        manifests.replica_sets,
        manifests.replication_controllers,
        manifests.jobs,
        manifests.cron_jobs,
        *manifests.others.values(),
    )
    for objects in lists:
        for one in objects:
            metadata = one.metadata
            if (one.kind, metadata.namespace, metadata.name) == (target.kind, target.namespace, target.name):
                return one
    return None


def _selector(controller: Any | None) -> Selector:
    """The labels by which a controller knows its pods; those of its template where it has no selector."""
    selector = getattr(getattr(controller, "spec", None), "selector", None)
    if isinstance(selector, LabelSelector):
        return compile_label_selector(selector)
    if isinstance(selector, dict) and selector:
        return compile_equality(selector)
    template = template_of(controller) if controller is not None else None
    labels = (template.metadata.labels if template is not None else None) or {}
    return compile_equality(labels) if labels and isinstance(controller, CronJob) else NOTHING

"""SparkApplication of `sparkoperator.k8s.io`: a driver and its executors, with Spark's own way to write amounts."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec
from msgspec.structs import replace

from mooring.model.api.kueue_labels import queue_name
from mooring.model.api.meta import KubeObject, ObjectMeta, Resources
from mooring.model.api.pods import (
    Affinity,
    Container,
    Pod,
    PodTemplateSpec,
    ResourceRequirements,
    Toleration,
    Volume,
)
from mooring.model.jobs.expansion import Owned, Stamp, owner_key
from mooring.model.jobs.pod_sets import PodFinder, PodSetPlan, by_label, label

GROUP = "sparkoperator.k8s.io"
ROLE = "spark-role"
APP_NAME, APP_SELECTOR = "spark-app-name", "spark-app-selector"
DRIVER, EXECUTOR = "driver", "executor"
OVER = frozenset({"COMPLETED", "FAILED"})
_MIB = 1 << 20
_LEAST_OVERHEAD = 384 * _MIB
_OVERHEAD_FACTOR = 0.1
_UNITS = {"": _MIB, "b": 1, "k": 1 << 10, "m": _MIB, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_JAVA_AMOUNT = re.compile(r"(\d+)([bkmgtp]?)(?:i?b)?", re.ASCII | re.IGNORECASE)


class GpuSpec(KubeObject):
    name: str = ""
    quantity: int = 0


class VolumeMount(KubeObject):
    name: str = ""


class SparkPodSpec(KubeObject):
    """What driver and executor have in common."""

    cores: int | float | None = None
    """Parts of one are possible in v1beta1."""
    core_request: str | None = None
    memory: str | None = None
    memory_overhead: str | None = None
    gpu: GpuSpec | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    scheduler_name: str = ""
    priority_class_name: str = ""
    host_network: bool = False
    sidecars: list[Container] | None = None
    init_containers: list[Container] | None = None
    volume_mounts: list[VolumeMount] | None = None
    template: PodTemplateSpec | None = None
    instances: int | None = None


class DynamicAllocation(KubeObject):
    enabled: bool = False
    initial_executors: int | None = None
    min_executors: int | None = None


class SparkApplicationSpec(KubeObject):
    driver: SparkPodSpec = msgspec.field(default_factory=SparkPodSpec)
    executor: SparkPodSpec = msgspec.field(default_factory=SparkPodSpec)
    dynamic_allocation: DynamicAllocation | None = None
    memory_overhead_factor: str | None = None
    node_selector: dict[str, str] | None = None
    volumes: list[Volume] | None = None
    image: str = ""
    suspend: bool = False


class ApplicationState(KubeObject):
    state: str = ""


class SparkApplicationStatus(KubeObject):
    application_state: ApplicationState = msgspec.field(default_factory=ApplicationState)


class SparkApplication(KubeObject):
    spec: SparkApplicationSpec
    api_version: str = f"{GROUP}/v1beta2"
    kind: str = "SparkApplication"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: SparkApplicationStatus = msgspec.field(default_factory=SparkApplicationStatus)


def java_bytes(text: str) -> int | None:
    """Read an amount as Java writes it, `512m` or `2g`, in mebibytes if it has no unit; None if it is none.

    >>> java_bytes("2g") == 2 << 30
    True
    """
    found = _JAVA_AMOUNT.fullmatch(text.strip())
    return None if found is None else int(found[1]) * _UNITS[found[2].lower()]


def default_spark(owner: SparkApplication) -> None:
    """Give driver and executors the templates of their pods, as Spark makes them."""
    for part in (owner.spec.driver, owner.spec.executor):
        part.template = _template(owner, part)


def _template(owner: SparkApplication, part: SparkPodSpec) -> PodTemplateSpec:
    given = part.template or PodTemplateSpec()
    spec = given.spec
    main, *others = spec.containers or [Container(name="spark-kubernetes", image=owner.spec.image)]
    main = replace(main, resources=_resources(owner.spec, part))
    mounted = {mount.name for mount in part.volume_mounts or ()}
    volumes = [volume for volume in owner.spec.volumes or () if volume.name in mounted]
    return PodTemplateSpec(
        metadata=replace(
            given.metadata,
            labels={**(given.metadata.labels or {}), **(part.labels or {})} or None,
            annotations={**(given.metadata.annotations or {}), **(part.annotations or {})} or None,
        ),
        spec=replace(
            spec,
            containers=[main, *others, *(part.sidecars or ())],
            init_containers=[*(spec.init_containers or ()), *(part.init_containers or ())] or None,
            node_selector={
                **(spec.node_selector or {}),
                **(owner.spec.node_selector or {}),
                **(part.node_selector or {}),
            }
            or None,
            affinity=part.affinity or spec.affinity,
            tolerations=[*(spec.tolerations or ()), *(part.tolerations or ())] or None,
            volumes=[*(spec.volumes or ()), *volumes] or None,
            scheduler_name=part.scheduler_name or spec.scheduler_name,
            priority_class_name=part.priority_class_name or spec.priority_class_name,
            host_network=part.host_network or spec.host_network,
            restart_policy="Never",
        ),
    )


def _resources(spec: SparkApplicationSpec, part: SparkPodSpec) -> ResourceRequirements:
    """One core and a gibibyte unless it says otherwise, and a part more memory for what is not Java's."""
    memory = java_bytes(part.memory or "1g") or 0
    factor = _OVERHEAD_FACTOR if spec.memory_overhead_factor is None else float(spec.memory_overhead_factor)
    overhead = java_bytes(part.memory_overhead) if part.memory_overhead else None
    if overhead is None:
        overhead = max(int(memory * factor), _LEAST_OVERHEAD) if factor else 0
    cpu = part.core_request or str(1 if part.cores is None else part.cores)
    amounts: Resources = {"cpu": cpu, "memory": str(memory + overhead)}
    if part.gpu is not None and part.gpu.name and part.gpu.quantity > 0:
        amounts[part.gpu.name] = str(part.gpu.quantity)
    limits = {name: amount for name, amount in amounts.items() if name != "cpu"}
    return ResourceRequirements(requests=amounts, limits=limits)


def executor_count(owner: SparkApplication) -> int:
    """As many as it begins with."""
    dynamic = owner.spec.dynamic_allocation
    if dynamic is not None and dynamic.enabled:
        counts = (dynamic.initial_executors, owner.spec.executor.instances, dynamic.min_executors, 0)
        return next(count for count in counts if count is not None)
    return 1 if owner.spec.executor.instances is None else owner.spec.executor.instances


def spark_templates(owner: SparkApplication) -> Iterator[tuple[str, PodTemplateSpec]]:
    for name, part in ((DRIVER, owner.spec.driver), (EXECUTOR, owner.spec.executor)):
        if part.template is not None:
            yield f"spec.{name}.template", part.template


def is_spark_over(owner: SparkApplication) -> bool:
    return owner.status.application_state.state in OVER


def spark_pod_sets(owner: SparkApplication) -> list[PodSetPlan]:
    counts = ((DRIVER, 1), (EXECUTOR, executor_count(owner)))
    return [
        PodSetPlan(name, template, count, path)
        for (name, count), (path, template) in zip(counts, spark_templates(owner), strict=True)
    ]


def spark_members(owner: SparkApplication, pods: PodFinder) -> Mapping[str, list[Pod]]:
    return by_label(pods.labelled(owner.metadata.namespace, APP_NAME, owner.metadata.name), ROLE)


def expand_spark(owner: SparkApplication, owned: Owned) -> list[Pod]:
    """Create the driver, and the executors that it would ask for, as far as there were none; none is made twice."""
    if is_spark_over(owner) or (owner.spec.suspend and not queue_name(owner.metadata)):
        return []
    name = owner.metadata.name
    # Executors belong to the driver's pod in a cluster, and to the application where it is made here.
    owners = (owner_key(owner), ("Pod", owner.metadata.namespace, f"{name}-driver"))
    given = [pod for key in owners for pod in owned.get(key, ()) if isinstance(pod, Pod)]
    pods: list[Pod] = []
    for plan in spark_pod_sets(owner):
        stamp = Stamp(owner, plan.template, {ROLE: plan.name, APP_NAME: name, APP_SELECTOR: f"spark-{name}"})
        present = {pod.metadata.name for pod in given if label(pod, ROLE) == plan.name}
        base = f"{name}-driver" if plan.name == DRIVER else f"{name}-exec"
        names = (base if plan.name == DRIVER else f"{base}-{index + 1}" for index in range(plan.count + len(present)))
        free = (found for found in names if found not in present)
        pods += [stamp.pod(found) for found in islice(free, max(0, plan.count - len(present)))]
    return pods

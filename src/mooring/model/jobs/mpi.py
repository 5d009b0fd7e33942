"""MPIJob of `kubeflow.org`: one launcher and its workers, in the forms of v1 and of v2beta1.

In v1 the launcher is a pod of the MPIJob; since v2 it is the pod of a Job that the MPIJob makes.
"""

from collections.abc import Iterator, Mapping

import msgspec

from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import Pod, PodTemplateSpec
from mooring.model.api.workloads import Job, JobSpec
from mooring.model.jobs.expansion import JOB_NAMES, Owned, Stamp, controller_of, is_job_over, owner_key
from mooring.model.jobs.kubeflow import (
    GROUP,
    JOB_NAME,
    JOB_ROLE,
    OPERATOR_NAME,
    REPLICA_INDEX,
    REPLICA_TYPE,
    WORKER,
    ReplicaSpec,
    TrainingJob,
    TrainingSpec,
    is_kept_back,
    ordered_replicas,
    replica_count,
    replica_pod_sets,
    replica_templates,
    with_gang,
)
from mooring.model.jobs.pod_sets import PodFinder, PodSetPlan, label

MPI_FIELD = "mpiReplicaSpecs"
LAUNCHER = "Launcher"
MPI_TYPES = (LAUNCHER, WORKER)


class MpiJobSpec(TrainingSpec, kw_only=True):
    replica_specs: dict[str, ReplicaSpec] = msgspec.field(name=MPI_FIELD)
    run_launcher_as_worker: bool = False
    launcher_creation_policy: str = ""


class MpiJob(TrainingJob, kw_only=True):
    spec: MpiJobSpec
    kind: str = "MPIJob"

    @property
    def has_launcher_job(self) -> bool:
        return self.api_version != f"{GROUP}/v1"


def mpi_templates(owner: MpiJob) -> Iterator[tuple[str, PodTemplateSpec]]:
    return replica_templates(owner, MPI_FIELD, MPI_TYPES)


def mpi_pod_sets(owner: MpiJob) -> list[PodSetPlan]:
    return replica_pod_sets(owner, MPI_FIELD, MPI_TYPES)


def mpi_members(owner: MpiJob, pods: PodFinder) -> Mapping[str, list[Pod]]:
    """Pods by role; of v2 the launcher belongs to a Job, so that labels say whose pods are whose."""
    members: dict[str, list[Pod]] = {}
    for pod in pods.labelled(owner.metadata.namespace, JOB_NAME, owner.metadata.name):
        controller = controller_of(pod.metadata)
        if controller is not None and (controller.kind, controller.name) in (
            ("MPIJob", owner.metadata.name),
            ("Job", _launcher_name(owner)),
        ):
            members.setdefault(label(pod, JOB_ROLE) or label(pod, REPLICA_TYPE), []).append(pod)
    return members


def _launcher_name(owner: MpiJob) -> str:
    return f"{owner.metadata.name}-launcher"


def expand_mpi_job(owner: MpiJob, owned: Owned) -> list[Pod]:
    """Create the launcher and the workers that are missing."""
    if is_kept_back(owner):
        return []
    replicas = {name: spec for name, _, spec in ordered_replicas(owner, MPI_TYPES)}
    total = sum(replica_count(spec) for spec in replicas.values())
    # A launcher's Job that is suspended with the MPIJob has no pod yet; one that runs was given its pod as any Job.
    present = {
        found.metadata.name
        for found in owned.get(owner_key(owner), ())
        if not (isinstance(found, Job) and found.spec.suspend and not is_job_over(found))
    }
    pods: list[Pod] = []
    launcher = replicas.get(LAUNCHER)
    if launcher is not None and _launcher_name(owner) not in present:
        pods.append(_make_launcher(owner, with_gang(owner, launcher.template, "launcher", total)))
    worker = replicas.get(WORKER)
    if worker is not None:
        stamp = Stamp(owner, with_gang(owner, worker.template, "worker", total), _labels(owner, "worker"))
        first = 1 if owner.spec.run_launcher_as_worker else 0
        for index in range(replica_count(worker)):
            name = f"{owner.metadata.name}-worker-{index}"
            if name not in present:
                pods.append(stamp.pod(name, {REPLICA_INDEX: str(first + index)}))
    return pods


def _make_launcher(owner: MpiJob, template: PodTemplateSpec) -> Pod:
    name, labels = _launcher_name(owner), _labels(owner, "launcher")
    if not owner.has_launcher_job:
        return Stamp(owner, template, labels).pod(name)
    job = Job(metadata=ObjectMeta(name=name, namespace=owner.metadata.namespace), spec=JobSpec(template=template))
    index = {REPLICA_INDEX: "0"} if owner.spec.run_launcher_as_worker else {}
    return Stamp(job, template, {**labels, **index, **dict.fromkeys(JOB_NAMES, name)}).pod(f"{name}-0")


def _labels(owner: MpiJob, role: str) -> dict[str, str]:
    if owner.has_launcher_job:
        return {JOB_NAME: owner.metadata.name, OPERATOR_NAME: "mpi-operator", JOB_ROLE: role}
    return {JOB_NAME: owner.metadata.name, OPERATOR_NAME: "mpijob-controller", REPLICA_TYPE: role, JOB_ROLE: role}

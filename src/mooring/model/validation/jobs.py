"""Checks of the kinds of jobs that other controllers run, like the webhooks that guard them."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from mooring.model.gangs.checks import check_pods
from mooring.model.jobs.expansion import job_pod_count
from mooring.model.jobs.jobset import JobSet
from mooring.model.jobs.kubeflow import (
    TRAINING_KINDS,
    ElasticPolicy,
    RunPolicy,
    TrainingKind,
    ordered_replicas,
    replica_count,
)
from mooring.model.jobs.mpi import LAUNCHER, MPI_FIELD, MPI_TYPES, MpiJob
from mooring.model.jobs.ray import HEAD, RayCluster, RayClusterSpec, RayJob, RayService
from mooring.model.jobs.spark import DRIVER, EXECUTOR, SparkApplication, java_bytes
from mooring.model.jobs.train_job import CLUSTER_RUNTIME, RUNTIME, TrainJob
from mooring.model.places import show
from mooring.model.validation.pods import check_pod_spec
from mooring.model.validation.templates import check_job_spec, check_replicas
from mooring.model.validation.terms import Subject, check_choice, check_resources
from mooring.model.validation.versions import check_version

SUBMISSION_MODES = ("K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode")
JOB_SET_RESTART_POLICY = "OnFailure"
"""What a JobSet's webhook writes into templates that say nothing."""
_MPI_KIND = TrainingKind(MPI_FIELD, MPI_TYPES, (LAUNCHER,), (LAUNCHER,))


def _check_names(subject: Subject, path: str, field: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if not name:
            subject.refuse(f"{path}[{index}].{field}", expected="a name", found="none")
        if name in seen:
            subject.refuse(f"{path}[{index}].{field}", expected="a name that is not taken", found=show(name))
        seen.add(name)


def _check_job_set(subject: Subject, owner: JobSet) -> None:
    path = "spec.replicatedJobs"
    _check_names(subject, path, "name", (replicated.name for replicated in owner.spec.replicated_jobs))
    for index, replicated in enumerate(owner.spec.replicated_jobs):
        check_replicas(subject, f"{path}[{index}].replicas", replicated.replicas)
        check_job_spec(
            subject, f"{path}[{index}].template.spec", replicated.template.spec, restart_policy=JOB_SET_RESTART_POLICY
        )
    counts = ((found.replicas, job_pod_count(found.template.spec)) for found in owner.spec.replicated_jobs)
    check_pods(subject, path, sum(jobs * pods for jobs, pods in counts))


def _check_training_job(subject: Subject, owner: Any) -> None:
    kind = TRAINING_KINDS[type(owner)]
    _check_replicas(subject, owner, kind)
    _check_elastic(subject, getattr(owner.spec, "elastic_policy", None))


def _check_mpi_job(subject: Subject, owner: MpiJob) -> None:
    _check_replicas(subject, owner, _MPI_KIND)


def _check_replicas(subject: Subject, owner: Any, kind: TrainingKind) -> None:
    path = f"spec.{kind.field}"
    specs = owner.spec.replica_specs
    if not specs:
        subject.refuse(path, expected=f"at least one of {', '.join(kind.types)}", found="none")
    spelled = {name.lower(): name for name in kind.types}
    seen: dict[str, str] = {}
    for key, spec in specs.items():
        name = spelled.get(key.lower())
        if name is None:
            subject.refuse(path, expected=f"only {', '.join(kind.types)}", found=show(key))
        if name in seen:
            subject.refuse(f"{path}.{key}", expected="each type once", found=f"{seen[name]} as well")
        seen[name] = key
        check_replicas(subject, f"{path}.{key}.replicas", spec.replicas)
        if name in kind.single and replica_count(spec) != 1:
            subject.refuse(f"{path}.{key}.replicas", expected=f"1, as there is one {name}", found=show(spec.replicas))
        check_pod_spec(subject, f"{path}.{key}.template.spec", spec.template.spec)
    for name in kind.required:
        if name not in seen:
            subject.refuse(path, expected=f"a {name}", found=", ".join(specs))
    total = sum(replica_count(spec) for _, _, spec in ordered_replicas(owner, kind.types))
    _check_policy(subject, owner.spec.run_policy, total)


def _check_policy(subject: Subject, policy: RunPolicy, total: int) -> None:
    minimum = policy.scheduling_policy.min_available if policy.scheduling_policy is not None else None
    if minimum is not None and not 1 <= minimum <= total:
        expected = f"1 to {total}, the number of replicas"
        subject.refuse("spec.runPolicy.schedulingPolicy.minAvailable", expected=expected, found=show(minimum))


def _check_elastic(subject: Subject, policy: ElasticPolicy | None) -> None:
    if policy is None:
        return
    least, most = policy.min_replicas, policy.max_replicas
    for field, value in (("minReplicas", least), ("maxReplicas", most)):
        if value is not None and value < 1:
            subject.refuse(f"spec.elasticPolicy.{field}", expected="a number of at least 1", found=show(value))
    if least is not None and most is not None and least > most:
        subject.refuse("spec.elasticPolicy.minReplicas", expected=f"at most maxReplicas, {most}", found=show(least))


def _check_ray_cluster(subject: Subject, owner: RayCluster) -> None:
    _check_cluster_spec(subject, "spec", owner.spec)


def _check_ray_job(subject: Subject, owner: RayJob) -> None:
    spec = owner.spec
    check_choice(subject, "spec.submissionMode", spec.submission_mode, SUBMISSION_MODES)
    if spec.ray_cluster_spec is None and not spec.cluster_selector:
        subject.refuse("spec.rayClusterSpec", expected="a cluster, as there is no clusterSelector", found="none")
    if spec.ray_cluster_spec is not None:
        _check_cluster_spec(subject, "spec.rayClusterSpec", spec.ray_cluster_spec)
    if spec.submitter_pod_template is not None:
        check_pod_spec(subject, "spec.submitterPodTemplate.spec", spec.submitter_pod_template.spec)


def _check_cluster_spec(subject: Subject, path: str, spec: RayClusterSpec) -> None:
    check_pod_spec(subject, f"{path}.headGroupSpec.template.spec", spec.head_group_spec.template.spec)
    groups = spec.worker_group_specs or []
    _check_names(subject, f"{path}.workerGroupSpecs", "groupName", (group.group_name for group in groups))
    for index, group in enumerate(groups):
        here = f"{path}.workerGroupSpecs[{index}]"
        if group.group_name.lower() == HEAD:
            subject.refuse(f"{here}.groupName", expected="a name other than the head's", found=show(group.group_name))
        for field, count in (
            ("replicas", group.replicas),
            ("minReplicas", group.min_replicas),
            ("maxReplicas", group.max_replicas),
        ):
            check_replicas(subject, f"{here}.{field}", count)
        if group.num_of_hosts < 1:
            subject.refuse(f"{here}.numOfHosts", expected="a number of at least 1", found=show(group.num_of_hosts))
        least, most = group.min_replicas, group.max_replicas
        if least is not None and most is not None and least > most:
            subject.refuse(f"{here}.minReplicas", expected=f"at most maxReplicas, {most}", found=show(least))
        check_pod_spec(subject, f"{here}.template.spec", group.template.spec)


def _check_ray_service(subject: Subject, owner: RayService) -> None:
    _check_cluster_spec(subject, "spec.rayClusterConfig", owner.spec.ray_cluster_spec)


def _check_spark(subject: Subject, owner: SparkApplication) -> None:
    spec = owner.spec
    for name, part in ((DRIVER, spec.driver), (EXECUTOR, spec.executor)):
        path = f"spec.{name}"
        check_replicas(subject, f"{path}.instances", part.instances)
        if part.cores is not None and part.cores <= 0:
            subject.refuse(f"{path}.cores", expected="more than 0", found=show(part.cores))
        if part.core_request is not None:
            check_resources(subject, path, {"coreRequest": part.core_request})
        for field, text in (("memory", part.memory), ("memoryOverhead", part.memory_overhead)):
            if text is not None and java_bytes(text) is None:
                expected = "an amount as Java writes it, such as 512m or 2g"
                subject.refuse(f"{path}.{field}", expected=expected, found=show(text))
    factor = spec.memory_overhead_factor
    if factor is not None and not re.fullmatch(r"\d+(\.\d*)?|\.\d+", factor, re.ASCII):
        subject.refuse("spec.memoryOverheadFactor", expected="a number such as 0.1", found=show(factor))


def _check_train_job(subject: Subject, owner: TrainJob) -> None:
    reference, trainer = owner.spec.runtime_ref, owner.spec.trainer
    check_choice(subject, "spec.runtimeRef.kind", reference.kind, (CLUSTER_RUNTIME, RUNTIME))
    if not reference.name:
        subject.refuse("spec.runtimeRef.name", expected="the name of a runtime", found="none")
    if trainer is not None and trainer.num_nodes is not None:
        if trainer.num_nodes < 1:
            subject.refuse("spec.trainer.numNodes", expected="a number of at least 1", found=show(trainer.num_nodes))
        check_pods(subject, "spec.trainer.numNodes", trainer.num_nodes)


_CHECKS: dict[type, Callable[[Subject, Any], None]] = {
    JobSet: _check_job_set,
    MpiJob: _check_mpi_job,
    RayCluster: _check_ray_cluster,
    RayJob: _check_ray_job,
    RayService: _check_ray_service,
    SparkApplication: _check_spark,
    TrainJob: _check_train_job,
    **dict.fromkeys(TRAINING_KINDS, _check_training_job),
}


def _check_kind(subject: Subject, owner: Any) -> None:
    check_version(subject, owner)
    _CHECKS[type(owner)](subject, owner)


JOB_CHECKS = dict.fromkeys(_CHECKS, _check_kind)

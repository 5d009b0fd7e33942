"""Workloads of other controllers than Kubernetes' own: where their pod templates are, and which pods they become."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mooring.model.api.pods import Pod, PodSpec, PodTemplateSpec
from mooring.model.gangs.dialects.grove import PodCliqueSet
from mooring.model.gangs.dialects.grove_pods import default_clique_set, expand_clique_set
from mooring.model.gangs.dialects.grove_pods import templates_of as clique_templates
from mooring.model.gangs.dialects.lws import LeaderWorkerSet
from mooring.model.gangs.dialects.lws import templates_of as leader_worker_templates
from mooring.model.gangs.dialects.lws_pods import expand_leader_worker_set
from mooring.model.gangs.dialects.volcano_cron_job import (
    VolcanoCronJob,
    cron_job_templates,
    default_cron_job,
    expand_cron_job,
)
from mooring.model.gangs.dialects.volcano_flow import JobFlow, JobTemplate, default_template, template_templates
from mooring.model.gangs.dialects.volcano_job import VolcanoJob, default_job, expand_volcano_job
from mooring.model.gangs.dialects.volcano_job import templates_of as volcano_job_templates
from mooring.model.jobs.app_wrapper import AppWrapper
from mooring.model.jobs.expansion import Owned
from mooring.model.jobs.jobset import JobSet, default_job_set, expand_job_set, job_set_templates
from mooring.model.jobs.kubeflow import TRAINING_KINDS, expand_training_job, training_templates
from mooring.model.jobs.mpi import MpiJob, expand_mpi_job, mpi_templates
from mooring.model.jobs.ray import (
    RayCluster,
    RayJob,
    RayService,
    default_ray_cluster,
    default_ray_owner,
    expand_ray_cluster,
    expand_ray_job,
    ray_cluster_templates,
    ray_job_templates,
)
from mooring.model.jobs.spark import SparkApplication, default_spark, expand_spark, spark_templates
from mooring.model.jobs.train_job import TrainJob, train_job_templates
from mooring.model.objects.job_kinds import wrapper_pod_sets


class CustomWorkload(NamedTuple):
    """A kind that others' controllers turn into pods."""

    type: type[Any]
    templates: Callable[[Any], Iterator[tuple[str, PodTemplateSpec]]]
    """Each pod template with its field path, such as `spec.tasks[0].template`."""
    expand: Callable[[Any, Owned], list[Pod]]
    """The pods that it lacks; they name their gang, if it makes one, as its controller would let them."""
    default: Callable[[Any], None] | None = None
    """Fills in what its webhooks and its controller would, before its templates get their own defaults."""
    class_at: str = ""
    """The part of it whose priorityClassName is that of its pods, where they name none; empty if there is none."""

    def named_class(self, owner: Any) -> PodSpec:
        """A spec with no more than that class, to be resolved as a pod's is."""
        part = owner
        for name in self.class_at.split("."):
            part = getattr(part, name)
        return PodSpec(priority_class_name=part.priority_class_name)


def _wrapper_templates(owner: AppWrapper) -> Iterator[tuple[str, PodTemplateSpec]]:
    return ((plan.path, plan.template) for plan in wrapper_pod_sets(owner))


CUSTOM_WORKLOADS: tuple[CustomWorkload, ...] = (
    CustomWorkload(AppWrapper, _wrapper_templates, lambda found, owned: []),  # its controller makes what is in it
    CustomWorkload(JobSet, job_set_templates, expand_job_set, default_job_set),
    *(CustomWorkload(type_, training_templates, expand_training_job) for type_ in TRAINING_KINDS),
    CustomWorkload(MpiJob, mpi_templates, expand_mpi_job),
    CustomWorkload(TrainJob, train_job_templates, lambda found, owned: []),  # it makes a JobSet
    CustomWorkload(RayJob, ray_job_templates, expand_ray_job, default_ray_owner),
    CustomWorkload(RayService, ray_job_templates, expand_ray_job, default_ray_owner),
    CustomWorkload(RayCluster, ray_cluster_templates, expand_ray_cluster, default_ray_cluster),
    CustomWorkload(SparkApplication, spark_templates, expand_spark, default_spark),
    CustomWorkload(VolcanoCronJob, cron_job_templates, expand_cron_job, default_cron_job),
    CustomWorkload(JobFlow, lambda found: iter(()), lambda found, owned: []),  # it makes Jobs
    CustomWorkload(JobTemplate, template_templates, lambda found, owned: [], default_template),
    CustomWorkload(VolcanoJob, volcano_job_templates, expand_volcano_job, default_job, "spec"),
    CustomWorkload(LeaderWorkerSet, leader_worker_templates, expand_leader_worker_set),
    CustomWorkload(PodCliqueSet, clique_templates, expand_clique_set, default_clique_set, "spec.template"),
)
_BY_TYPE = {workload.type: workload for workload in CUSTOM_WORKLOADS}


def spec_path(path: str) -> str:
    """Where the pod spec of a template stands; Grove's cliques have one without a template around it."""
    return path if path.endswith(".podSpec") else f"{path}.spec"


def custom_workload(type_: type[Any]) -> CustomWorkload | None:
    return _BY_TYPE.get(type_)

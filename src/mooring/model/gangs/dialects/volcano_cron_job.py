"""Volcano's CronJob (`batch.volcano.sh`): the Job of one run of it, as of a CronJob of Kubernetes' own."""

from collections.abc import Iterator

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta, OwnerReference
from mooring.model.api.pods import Pod, PodTemplateSpec
from mooring.model.gangs.dialects.volcano_job import (
    GROUP,
    VolcanoJob,
    VolcanoJobSpec,
    default_job,
    expand_volcano_job,
    templates_of,
)
from mooring.model.jobs.expansion import Owned, owner_key


class VolcanoJobTemplate(KubeObject):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: VolcanoJobSpec = msgspec.field(default_factory=VolcanoJobSpec)


class VolcanoCronJobSpec(KubeObject):
    schedule: str = ""
    suspend: bool = False
    job_template: VolcanoJobTemplate = msgspec.field(default_factory=VolcanoJobTemplate)


class VolcanoCronJob(KubeObject):
    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = "CronJob"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: VolcanoCronJobSpec = msgspec.field(default_factory=VolcanoCronJobSpec)


def next_job(found: VolcanoCronJob) -> VolcanoJob:
    """The Job of one run, under the CronJob's name: which run it is does not matter to where it goes."""
    template = found.spec.job_template
    owner = OwnerReference(
        api_version=found.api_version,
        kind=found.kind,
        name=found.metadata.name,
        uid=found.metadata.uid,
        controller=True,
    )
    metadata = ObjectMeta(
        name=found.metadata.name,
        namespace=found.metadata.namespace,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=[owner],
    )
    return VolcanoJob(metadata=metadata, spec=template.spec)


def default_cron_job(found: VolcanoCronJob) -> None:
    default_job(next_job(found))


def cron_job_templates(found: VolcanoCronJob) -> Iterator[tuple[str, PodTemplateSpec]]:
    for path, template in templates_of(next_job(found)):
        yield f"spec.jobTemplate.{path}", template


def expand_cron_job(found: VolcanoCronJob, owned: Owned) -> list[Pod]:
    """Create the pods of one run, unless there is one or it is suspended."""
    if found.spec.suspend or owner_key(found) in owned:
        return []
    return expand_volcano_job(next_job(found), owned)

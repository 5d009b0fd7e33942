"""Volcano's JobFlow and JobTemplate (`flow.volcano.sh`): Jobs that are made one after the other."""

from collections.abc import Iterator, Mapping

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta, OwnerReference
from mooring.model.api.pods import PodTemplateSpec
from mooring.model.gangs.checks import check_names, check_order
from mooring.model.gangs.dialects.volcano_job import VolcanoJob, VolcanoJobSpec, default_job, templates_of
from mooring.model.gangs.dialects.volcano_job_checks import check_job
from mooring.model.validation.terms import Subject

GROUP = "flow.volcano.sh"
COMPLETED = "Completed"

NamespacedName = tuple[str, str]


class FlowDependsOn(KubeObject):
    targets: list[str] | None = None


class Flow(KubeObject):
    name: str = ""
    depends_on: FlowDependsOn | None = None

    @property
    def targets(self) -> list[str]:
        return (self.depends_on.targets if self.depends_on is not None else None) or []


class JobFlowSpec(KubeObject):
    flows: list[Flow] = []


class JobFlow(KubeObject):
    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = "JobFlow"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: JobFlowSpec = msgspec.field(default_factory=JobFlowSpec)

    def job_name(self, flow: str) -> str:
        return f"{self.metadata.name}-{flow}"


class JobTemplate(KubeObject):
    """By itself it makes nothing."""

    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = "JobTemplate"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: VolcanoJobSpec = msgspec.field(default_factory=VolcanoJobSpec)


def check_flow(subject: Subject, found: JobFlow) -> None:
    flows = found.spec.flows
    check_names(subject, "spec.flows", (flow.name for flow in flows))
    paths = {flow.name: f"spec.flows[{index}].dependsOn.targets" for index, flow in enumerate(flows)}
    check_order(subject, lambda name: paths[name], {flow.name: flow.targets for flow in flows}, "flow")


def check_template(subject: Subject, found: JobTemplate) -> None:
    check_job(subject, _job(found))


def default_template(found: JobTemplate) -> None:
    default_job(_job(found))


def template_templates(found: JobTemplate) -> Iterator[tuple[str, PodTemplateSpec]]:
    return templates_of(_job(found))


def _job(found: JobTemplate) -> VolcanoJob:
    return VolcanoJob(metadata=found.metadata, spec=found.spec)


def jobs_to_start(
    flow: JobFlow, templates: Mapping[NamespacedName, JobTemplate], jobs: Mapping[NamespacedName, VolcanoJob]
) -> Iterator[VolcanoJob]:
    """The Jobs that are due and not there: all that they depend on have completed, and their templates are known."""
    namespace = flow.metadata.namespace
    reference = OwnerReference(
        api_version=flow.api_version, kind=flow.kind, name=flow.metadata.name, uid=flow.metadata.uid, controller=True
    )

    def is_completed(name: str) -> bool:
        job = jobs.get((namespace, flow.job_name(name)))
        return job is not None and job.status.state.phase == COMPLETED

    for part in flow.spec.flows:
        template = templates.get((namespace, part.name))
        name = flow.job_name(part.name)
        if template is None or (namespace, name) in jobs or not all(map(is_completed, part.targets)):
            continue
        given = template.metadata
        metadata = ObjectMeta(
            name=name,
            namespace=namespace,
            labels=given.labels,
            annotations=given.annotations,
            owner_references=[reference],
        )
        spec = msgspec.convert(msgspec.to_builtins(template.spec), VolcanoJobSpec)
        yield VolcanoJob(metadata=metadata, spec=spec)

"""Checks of what workloads make pods from: templates, counts, and the spec of a Job wherever one is written."""

from mooring.model.api.meta import LabelSelector
from mooring.model.api.pods import PodTemplateSpec
from mooring.model.api.workloads import JobSpec
from mooring.model.gangs.dialects.annotations import check_annotations
from mooring.model.places import show
from mooring.model.validation.cards import check_card_shares
from mooring.model.validation.pods import check_pod_spec
from mooring.model.validation.terms import Subject, check_choice, check_label_selector
from mooring.model.values.selectors import compile_label_selector

COMPLETION_MODES = ("NonIndexed", "Indexed")
JOB_RESTART_POLICIES = ("Never", "OnFailure")
"""A Job's pods come to an end; who says nothing means Always, which the API server refuses."""

MOST_REPLICAS = 1_000_000
"""Pods of one workload: a slip of the hand must not fill the memory."""
LARGEST_COUNT = 2**31 - 1


def check_count(subject: Subject, path: str, count: int | None, most: int = LARGEST_COUNT) -> None:
    if count is not None and not 0 <= count <= most:
        expected = "a number of at least 0" if count < 0 else f"a number of at most {most}"
        subject.refuse(path, expected=expected, found=show(count))


def check_replicas(subject: Subject, path: str, count: int | None) -> None:
    """Check how many pods are to be made."""
    check_count(subject, path, count, MOST_REPLICAS)


def check_template(
    subject: Subject, template: PodTemplateSpec, selector: LabelSelector | None, path: str = "spec"
) -> None:
    """Check the template below `path`, and that the selector beside it selects its pods."""
    check_pod_spec(subject, f"{path}.template.spec", template.spec)
    check_annotations(subject, f"{path}.template.metadata.annotations", template.metadata)
    check_card_shares(subject, f"{path}.template.", template.metadata, template.spec)
    if selector is None:
        return
    check_label_selector(subject, f"{path}.selector", selector)
    labels = template.metadata.labels or {}
    if not compile_label_selector(selector).matches(labels):
        shown = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
        expected = f"labels that match {path}.selector"
        subject.refuse(f"{path}.template.metadata.labels", expected=expected, found=shown or "none")


def check_job_spec(subject: Subject, path: str, spec: JobSpec, *, restart_policy: str = "") -> None:
    """Check the spec of a Job; `restart_policy` is what its owner makes of a template that says nothing."""
    check_replicas(subject, f"{path}.parallelism", spec.parallelism)
    check_count(subject, f"{path}.activeDeadlineSeconds", spec.active_deadline_seconds, 2**63 - 1)
    policy = spec.template.spec.restart_policy or restart_policy
    check_choice(subject, f"{path}.template.spec.restartPolicy", policy, JOB_RESTART_POLICIES)
    check_count(subject, f"{path}.completions", spec.completions)
    if spec.completion_mode is not None:
        check_choice(subject, f"{path}.completionMode", spec.completion_mode, COMPLETION_MODES)
        if spec.completion_mode == "Indexed" and spec.completions is None:
            subject.refuse(f"{path}.completions", expected="a number, as completionMode is Indexed", found="none")
    check_template(subject, spec.template, None, path)

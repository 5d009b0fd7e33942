"""The labels, annotations and scheduling gates by which workload queues in Kueue's way."""

import re

from mooring.model.api.meta import ObjectMeta

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
MAX_EXECUTION_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"
PREBUILT_WORKLOAD = "kueue.x-k8s.io/prebuilt-workload-name"
MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
POD_SET_GROUP = "kueue.x-k8s.io/podset-group-name"

POD_GROUP = "kueue.x-k8s.io/pod-group-name"
POD_GROUP_TOTAL = "kueue.x-k8s.io/pod-group-total-count"
POD_GROUP_FAST_ADMISSION = "kueue.x-k8s.io/pod-group-fast-admission"
POD_GROUP_INDEX = "kueue.x-k8s.io/pod-group-pod-index"
RETRIABLE_IN_GROUP = "kueue.x-k8s.io/retriable-in-group"
ROLE_HASH = "kueue.x-k8s.io/role-hash"

ADMISSION_GATE, TOPOLOGY_GATE = "kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"
POD_SET = "kueue.x-k8s.io/podset"
"""The label of the pods of a job that was admitted."""
ORIGINAL_TEMPLATES = "mooring.dev/original-templates"
"""The annotation of a job that was started: what its pod templates said before admission added to them."""
ELASTIC_JOB = "kueue.x-k8s.io/elastic-job"
"""The annotation of a job that may grow and shrink while it runs."""
QUEUE_GATES = frozenset({ADMISSION_GATE, TOPOLOGY_GATE, "kueue.x-k8s.io/elastic-job"})
"""All that admission opens: who is admitted here is also given its place and its share of an elastic job."""

NO_CONTROLLER = "mooring.dev/no-controller"
"""The annotation that the embedded control plane writes on objects whose pods nothing makes there: they do not queue,
or they would hold their quota for ever."""

DEFAULT_QUEUE = "default"
"""The LocalQueue of jobs that name none, where a namespace has one of that name."""
DEFAULT_PRIORITY_CLASS = "default"
"""Likewise the WorkloadPriorityClass of workload that names none."""

_COUNT = re.compile(r"0*[1-9]\d{0,8}", re.ASCII)


def positive_count(text: str | None) -> int | None:
    """A number of at least 1 as written in a label or an annotation; None for anything else."""
    return int(text) if text is not None and _COUNT.fullmatch(text) else None


APP_WRAPPER = "mooring.dev/app-wrapper"
"""Written on the components of an AppWrapper that queues: they are admitted as one. The wrapper itself is not kept."""


def app_wrapper(metadata: ObjectMeta) -> str:
    """The name of the AppWrapper that something is admitted with; empty for most."""
    return metadata.annotations.get(APP_WRAPPER, "") if metadata.annotations else ""


def queue_name(metadata: ObjectMeta) -> str:
    """The LocalQueue that an object names, empty if none; the annotation is the older way."""
    if metadata.labels and QUEUE_NAME in metadata.labels:
        return metadata.labels[QUEUE_NAME]
    return metadata.annotations.get(QUEUE_NAME, "") if metadata.annotations else ""


def pod_group(metadata: ObjectMeta) -> str:
    """The group of plain pods that a pod names, empty if none; the label is the older way."""
    for marks in (metadata.annotations, metadata.labels):
        if marks and POD_GROUP in marks:
            return marks[POD_GROUP]
    return ""

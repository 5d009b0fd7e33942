"""Kinds of other projects: what their own definitions and webhooks fill in, and the checks that scheduling knows."""

import copy
from typing import Any

from mooring.kubeapi.kinds.standard import Standard
from mooring.kubeapi.status import Object
from mooring.model.api.kueue import BEST_EFFORT_FIFO, MAY_STOP_SEARCH, NEVER, STOP_NONE, TRY_NEXT_FLAVOR
from mooring.model.api.kueue_labels import NO_CONTROLLER
from mooring.model.api.volcano_queue import OPEN, ROOT

DEFAULTS: dict[str, Object] = {
    "clusterqueues.kueue.x-k8s.io": {
        "spec": {
            "queueingStrategy": BEST_EFFORT_FIFO,
            "stopPolicy": STOP_NONE,
            "flavorFungibility": {"whenCanBorrow": MAY_STOP_SEARCH, "whenCanPreempt": TRY_NEXT_FLAVOR},
            "preemption": {
                "withinClusterQueue": NEVER,
                "reclaimWithinCohort": NEVER,
                "borrowWithinCohort": {"policy": NEVER},
            },
        }
    },
    "localqueues.kueue.x-k8s.io": {"spec": {"stopPolicy": STOP_NONE}},
    "workloads.kueue.x-k8s.io": {"spec": {"active": True}},
    "queues.scheduling.volcano.sh": {"spec": {"weight": 1, "reclaimable": True}},
    "podgroups.scheduling.volcano.sh": {"spec": {"queue": "default"}},
    "jobsets.jobset.x-k8s.io": {
        "spec": {
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
            "successPolicy": {"operator": "All"},
        }
    },
    "trainjobs.trainer.kubeflow.org": {
        "spec": {"runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}}
    },
    "jobs.batch.volcano.sh": {"spec": {"queue": "default", "maxRetry": 3}},
}
"""By resource: what stands where nothing was said."""


NOT_MADE = frozenset(
    {
        "sparkapplications.sparkoperator.k8s.io",
        "podcliquesets.grove.io",
        "podcliques.grove.io",
        "podcliquescalinggroups.grove.io",
        "cronjobs.batch.volcano.sh",
        "jobflows.flow.volcano.sh",
    }
)
"""Kinds that are kept, and whose pods nothing makes here."""


class Foreign(Standard):
    """Kinds of which only the names of fields are known, and what scheduling reads of them."""

    is_checked_by_model = True

    def default(self, obj: Object) -> None:
        """As their webhooks do. The templates inside stay as they are: a pod gets its defaults when it is created."""
        self.write_as_go(obj)
        _set_missing(obj, DEFAULTS.get(self.resource.key, {}))
        if self.resource.key in NOT_MADE:
            annotations = obj["metadata"].get("annotations") or {}
            obj["metadata"]["annotations"] = {**annotations, NO_CONTROLLER: f"no controller of {obj['kind']} runs here"}
        if self.resource.key == "jobsets.jobset.x-k8s.io":
            _default_job_set(obj)
        if self.resource.key == "queues.scheduling.volcano.sh" and obj["metadata"].get("name") != ROOT:
            _set_missing(obj, {"spec": {"parent": ROOT}})

    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        if self.resource.key == "queues.scheduling.volcano.sh":
            obj["status"] = {"state": OPEN}
        elif not obj.get("status"):
            obj.pop("status", None)


def _default_job_set(obj: Object) -> None:
    for replicated in obj["spec"].get("replicatedJobs") or ():
        template: Any = replicated
        for _ in range(2):  # of the Job, then of its pods
            template = (template.get("template") or {}).get("spec") or {}
        if template:
            _set_missing(template, {"restartPolicy": "OnFailure"})


def _set_missing(value: Object, defaults: dict[str, Any]) -> None:
    for name, default in defaults.items():
        if value.get(name) is None:
            value[name] = copy.deepcopy(default)
        elif isinstance(default, dict) and isinstance(value[name], dict):
            _set_missing(value[name], default)

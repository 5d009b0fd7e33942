"""The rights that are deployed: to read every kind that is followed, to write what is written, and no others.

That they are enough for what `mooring run` does is tried on a cluster (tests/live/test_rights_suffice.py).
"""

from pathlib import Path
from typing import Any

import yaml

from mooring.drivers.live.api.discovery import NOT_WATCHED
from mooring.model.objects.kinds import KINDS

RIGHTS = Path(__file__).parents[2] / "deploy" / "manifests" / "rbac.yaml"
READING = {"get", "list", "watch"}
JOBS = {
    "batch": ["jobs"],
    "jobset.x-k8s.io": ["jobsets"],
    "kubeflow.org": ["pytorchjobs", "tfjobs", "mpijobs", "xgboostjobs", "paddlejobs", "jaxjobs"],
    "ray.io": ["rayclusters", "rayjobs"],
    "sparkoperator.k8s.io": ["sparkapplications"],
    "trainer.kubeflow.org": ["trainjobs"],
    "workload.codeflare.dev": ["appwrappers"],
}
"""The kinds that can be suspended."""
WRITTEN = {
    ("", "nodes", "patch"),
    ("", "pods", "delete"),
    ("", "pods", "patch"),
    ("", "pods/binding", "create"),
    ("", "pods/status", "patch"),
    ("", "pods/resize", "patch"),
    ("", "persistentvolumes", "patch"),
    ("", "persistentvolumeclaims", "patch"),
    ("", "pods/eviction", "create"),
    ("batch", "jobs/status", "patch"),
    ("events.k8s.io", "events", "create"),
    ("events.k8s.io", "events", "patch"),
    ("resource.k8s.io", "resourceclaims", "create"),
    ("resource.k8s.io", "resourceclaims", "update"),
    ("resource.k8s.io", "resourceclaims/status", "update"),
    ("resource.k8s.io", "resourceclaims/binding", "update"),
    ("karpenter.sh", "nodeclaims", "create"),
    ("karpenter.sh", "nodeclaims", "delete"),
    ("scheduling.k8s.io", "podgroups/status", "patch"),
    ("scheduling.volcano.sh", "podgroups/status", "patch"),
    ("kueue.x-k8s.io", "workloads", "create"),
    ("kueue.x-k8s.io", "workloads", "patch"),
    ("kueue.x-k8s.io", "workloads/status", "patch"),
    ("kueue.x-k8s.io", "clusterqueues/status", "patch"),
    ("kueue.x-k8s.io", "localqueues/status", "patch"),
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
    *((group, plural, "patch") for group, plurals in JOBS.items() for plural in plurals),
}


def rules(kind: str) -> list[dict[str, Any]]:
    found = next(each for each in yaml.safe_load_all(RIGHTS.read_text()) if each["kind"] == kind)
    given: list[dict[str, Any]] = found["rules"]
    return given


def rights() -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in rules("ClusterRole")
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def plural(kind: str) -> str:
    name = kind.lower()
    return f"{name}es" if name.endswith("s") else f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


LOAD = {
    *(("metrics.k8s.io", name, verb) for name in ("nodes", "pods") for verb in ("get", "list")),
    *(("slo.koordinator.sh", "nodemetrics", verb) for verb in READING),
}
"""What sources of load read, where the configuration has some."""


def test_every_kind_that_is_followed_may_be_read_and_no_other() -> None:
    followed = {(kind.group, plural(kind.name)) for kind in KINDS if kind.type not in NOT_WATCHED}
    assert {found for found in rights() if found[2] in READING} == LOAD | {
        (group, name, verb) for group, name in followed for verb in READING
    }


def test_what_is_written_may_be_written_and_nothing_else() -> None:
    assert {found for found in rights() if found[2] not in READING} == WRITTEN


def test_beside_its_own_objects_it_may_change_nothing_in_its_namespace() -> None:
    named = [rule for rule in rules("Role") if rule["verbs"] != ["create"]]
    assert [(rule["resources"], rule["resourceNames"], rule["verbs"]) for rule in named] == [
        (["leases"], ["mooring", "mooring-admission"], ["get", "update", "patch"]),
        (["configmaps"], ["mooring-memory-mooring"], ["get", "patch"]),
        (["configmaps"], ["mooring-node-claims"], ["get", "watch", "update"]),
    ]

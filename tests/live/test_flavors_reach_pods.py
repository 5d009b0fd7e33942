"""What a flavor gives reaches every pod set of every kind of job, as Kueue writes it, and goes when the job stops."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from control_plane import until
from kube import Kube, Object, Refused, node
from kube import pod as make_pod
from test_live_queueing import GROUP, install_kinds, job

LABEL, TAINT = {"pool": "gpu"}, "dedicated"
TOLERATIONS = [
    {"key": TAINT, "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
    {"key": TAINT, "operator": "Equal", "value": "gpu", "effect": "NoExecute"},
]
JOB_SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
QUEUE = {"kueue.x-k8s.io/queue-name": "team"}
RACK = "example.com/rack"


def install_job_sets(cluster: Kube) -> None:
    with suppress(Refused):
        delete_job_sets(cluster)
        return
    version = {
        "name": "v1alpha2",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"status": {}},
    }
    names = {"kind": "JobSet", "listKind": "JobSetList", "plural": "jobsets", "singular": "jobset"}
    cluster.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "jobsets.jobset.x-k8s.io"},
            "spec": {"group": "jobset.x-k8s.io", "names": names, "scope": "Namespaced", "versions": [version]},
        }
    )

    def is_served() -> bool:
        with suppress(Refused):
            return cluster.objects(JOB_SETS) == []
        return False

    until(is_served, 30)


def delete_job_sets(cluster: Kube) -> None:
    for found in cluster.objects(JOB_SETS):
        cluster.call("DELETE", f"{JOB_SETS}/{found['metadata']['name']}?propagationPolicy=Background")


@pytest.fixture
def tainted(cluster: Kube) -> Iterator[Kube]:
    """A plain node, and two in different racks with taints, for eight CPUs of which there is quota."""
    install_kinds(cluster)
    install_job_sets(cluster)
    with suppress(Refused):
        cluster.call("DELETE", f"/apis/{GROUP}/topologies")
    taints = [{"key": TAINT, "value": "gpu", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    cluster.create(node("plain"))
    for at in range(2):
        cluster.create({**node(f"gpu-{at}", cpu=8, labels={**LABEL, RACK: f"r{at}"}), "spec": {"taints": taints}})
    create_queue(cluster)
    yield cluster
    delete_job_sets(cluster)


def create_queue(cluster: Kube, **flavor: str) -> None:
    flavors = [{"name": "gpu", "resources": [{"name": "cpu", "nominalQuota": "8"}]}]
    cluster.create(
        {
            "apiVersion": GROUP,
            "kind": "ResourceFlavor",
            "metadata": {"name": "gpu"},
            "spec": {"nodeLabels": LABEL, "tolerations": TOLERATIONS, **flavor},
        },
        {
            "apiVersion": GROUP,
            "kind": "ClusterQueue",
            "metadata": {"name": "team"},
            "spec": {
                "namespaceSelector": {},
                "preemption": {"withinClusterQueue": "LowerPriority"},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            },
        },
        {
            "apiVersion": GROUP,
            "kind": "LocalQueue",
            "metadata": {"name": "team", "namespace": "default"},
            "spec": {"clusterQueue": "team"},
        },
        {"apiVersion": GROUP, "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 100},
    )


def job_set(name: str, annotations: dict[str, str] | None = None, scheduler: str = "") -> Object:
    """A leader that tolerates something itself, and two workers."""

    def replicated(role: str, count: int, **spec: Any) -> Object:
        template = job(role, "1")["spec"]["template"]
        template["spec"] |= spec | ({"schedulerName": scheduler} if scheduler else {})
        template["metadata"] = {"labels": {"role": role}, "annotations": annotations or {}}
        inner = {"parallelism": count, "completions": count, "template": template}
        return {"name": role, "replicas": 1, "template": {"spec": inner}}

    own = [{"key": "spot", "operator": "Exists"}]
    roles = [replicated("leader", 1, tolerations=own), replicated("worker", 2)]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": "default", "labels": QUEUE},
        "spec": {"suspend": True, "replicatedJobs": roles},
    }


def templates(cluster: Kube, path: str) -> list[Object]:
    spec = cluster.call("GET", path)["spec"]
    if "replicatedJobs" in spec:
        return [each["template"]["spec"]["template"] for each in spec["replicatedJobs"]]
    return [spec["template"]]


def is_suspended(cluster: Kube, path: str) -> bool:
    return bool(cluster.call("GET", path)["spec"].get("suspend"))


def terms(template: Object) -> tuple[Any, ...]:
    """What of a template admission may add to."""
    metadata, spec = template.get("metadata") or {}, template["spec"]
    marks = [metadata.get(name) or {} for name in ("labels", "annotations")]
    return (*marks, spec.get("nodeSelector"), spec.get("tolerations"), spec.get("schedulingGates"))


def has_tolerations(spec: Object) -> bool:
    return all(any(each.items() <= found.items() for found in spec.get("tolerations") or ()) for each in TOLERATIONS)


JOB = "/apis/batch/v1/namespaces/default/jobs/train"


@pytest.mark.parametrize("scheduler", ["", "another"])
def test_every_pod_set_of_a_job_gets_the_terms_of_its_flavor_until_it_is_stopped(tainted: Kube, scheduler: str) -> None:
    """Also of jobs whose pods are scheduled by somebody else."""
    plain = job("train", "1")
    if scheduler:
        plain["spec"]["template"]["spec"]["schedulerName"] = scheduler
    tainted.create(plain, job_set("several", scheduler=scheduler))
    before = {path: list(map(terms, templates(tainted, path))) for path in (JOB, f"{JOB_SETS}/several")}
    tainted.run(name="mooring")
    for path in before:
        until(lambda path=path: not is_suspended(tainted, path), 60)  # type: ignore[misc]
        for template in templates(tainted, path):
            assert template["spec"]["nodeSelector"] == LABEL
            assert has_tolerations(template["spec"]), template["spec"]
            assert "kueue.x-k8s.io/podset" in template["metadata"]["labels"]
    leader = templates(tainted, f"{JOB_SETS}/several")[0]
    assert {"key": "spot", "operator": "Exists"} in leader["spec"]["tolerations"]
    assert leader["metadata"]["labels"]["role"] == "leader"

    tainted.create(job("urgent", "8", {"kueue.x-k8s.io/priority-class": "high"}))
    for path, found in before.items():
        until(lambda path=path: is_suspended(tainted, path), 60)  # type: ignore[misc]
        until(lambda path=path, found=found: list(map(terms, templates(tainted, path))) == found, 30)  # type: ignore[misc]
    assert "annotations" not in tainted.call("GET", f"{JOB_SETS}/several")["metadata"]

    tainted.call("DELETE", f"{JOB.rpartition('/')[0]}/urgent?propagationPolicy=Background")
    with suppress(Refused):  # where nothing collects garbage
        workloads = f"/apis/{GROUP}/namespaces/default/workloads"
        for each in tainted.objects(workloads):
            if each["metadata"]["name"].startswith("job-urgent"):
                tainted.call("DELETE", f"{workloads}/{each['metadata']['name']}")
    for path in before:
        until(lambda path=path: not is_suspended(tainted, path), 60)  # type: ignore[misc]
        assert all(has_tolerations(template["spec"]) for template in templates(tainted, path))


def test_pods_and_groups_of_pods_get_the_terms_of_their_flavor_when_their_gates_open(tainted: Kube) -> None:
    def pod(name: str, labels: dict[str, str], **spec: Any) -> Object:
        found = make_pod(name, labels=labels, **spec)
        del found["spec"]["containers"][0]["resources"]["requests"]["memory"]  # of which there is no quota
        return found

    gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "example.com/other"}]
    tainted.run(name="mooring")
    tainted.create(pod("single", labels=QUEUE, schedulingGates=gates[:1]))
    tainted.create(pod("other", labels=QUEUE, schedulingGates=gates))
    group = {**QUEUE, "kueue.x-k8s.io/pod-group-name": "group"}
    for at in range(3):
        member = pod(f"member-{at}", labels=group, schedulingGates=gates[:1])
        member["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": "3"}
        tainted.create(member)
    tainted.create(pod("ungated", labels=QUEUE))
    names = ["single", "ungated", "member-0", "member-1", "member-2"]
    bound = tainted.wait_until_bound(names)

    assert set(bound.values()) <= {"gpu-0", "gpu-1"}
    until(lambda: tainted.pods()["other"]["spec"]["schedulingGates"] == [{"name": "example.com/other"}], 30)
    found = tainted.pods()
    for name in (*names, "other"):
        assert has_tolerations(found[name]["spec"]), name
        assert name == "ungated" or found[name]["spec"]["nodeSelector"] == LABEL


def test_the_pods_of_a_job_go_to_the_domains_of_their_pod_set(tainted: Kube) -> None:
    """Their template has the gate of topology-aware scheduling; it opens with the labels of the domain."""
    for plural, name in (("clusterqueues", "team"), ("resourceflavors", "gpu")):
        tainted.call("DELETE", f"/apis/{GROUP}/{plural}/{name}")
    tainted.call("DELETE", f"/apis/{GROUP}/namespaces/default/localqueues/team")
    tainted.call("DELETE", f"/apis/{GROUP}/workloadpriorityclasses/high")
    levels = [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]
    tainted.create({"apiVersion": GROUP, "kind": "Topology", "metadata": {"name": "racks"}, "spec": {"levels": levels}})
    create_queue(tainted, topologyName="racks")
    tainted.create(job_set("several", annotations={"kueue.x-k8s.io/podset-required-topology": RACK}))
    tainted.run(name="mooring")
    until(lambda: not is_suspended(tainted, f"{JOB_SETS}/several"), 60)
    for template in templates(tainted, f"{JOB_SETS}/several"):
        assert has_tolerations(template["spec"])
        assert template["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/topology"}]
        assert template["metadata"]["labels"]["kueue.x-k8s.io/tas"] == "true"
        # On a real control plane nothing makes the pods of a JobSet: they are made here as its controller would.
    make_pods(tainted)
    until(lambda: [bool(each["spec"].get("nodeName")) for each in tainted.pods().values()] == [True] * 3, 60)
    for found in tainted.pods().values():
        at = found["spec"]["nodeName"][-1]
        assert found["spec"]["nodeSelector"] == {**LABEL, "kubernetes.io/hostname": f"gpu-{at}"}


def make_pods(cluster: Kube) -> None:
    """Where there is no JobSet controller, do what it and the Job controller do."""
    found = cluster.call("GET", f"{JOB_SETS}/several")
    with suppress(AssertionError):
        until(lambda: bool(cluster.pods()), 5)
    if cluster.pods():
        return
    for each in found["spec"]["replicatedJobs"]:
        inner = each["template"]["spec"]
        name = f"several-{each['name']}-0"
        owner = {
            "apiVersion": found["apiVersion"],
            "kind": "JobSet",
            "name": "several",
            "uid": found["metadata"]["uid"],
        }
        inner["template"]["metadata"]["labels"] |= {
            "jobset.sigs.k8s.io/jobset-name": "several",
            "jobset.sigs.k8s.io/replicatedjob-name": each["name"],
            "jobset.sigs.k8s.io/job-index": "0",
        }
        made = cluster.call(
            "POST",
            "/apis/batch/v1/namespaces/default/jobs",
            {
                "metadata": {"name": name, "ownerReferences": [{**owner, "controller": True}]},
                "spec": inner,
            },
        )
        for index in range(inner["completions"]):
            template = made["spec"]["template"]
            owned = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": made["metadata"]["uid"]}
            labels = {**template["metadata"]["labels"], "batch.kubernetes.io/job-completion-index": str(index)}
            metadata = {**template["metadata"], "labels": labels, "name": f"{name}-{index}", "namespace": "default"}
            metadata["ownerReferences"] = [{**owned, "controller": True}]
            cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})

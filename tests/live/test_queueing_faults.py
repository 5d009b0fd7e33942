"""What went wrong on clusters with queues: quota that stays with pods that are over, pods deleted that never ran, stops
that nobody carries out."""

import time

import pytest
from control_plane import until
from kube import Kube, Object, node
from kube import pod as make_pod
from test_live_queueing import GROUP, job, queueing, suspended, true_conditions

__all__ = ["queueing"]
POLICIES = "/apis/admissionregistration.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"


def queued_pod(name: str) -> Object:
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    labels = {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/managed": "true"}
    found = make_pod(name, "1", labels=labels, schedulingGates=gates)
    del found["spec"]["containers"][0]["resources"]["requests"]["memory"]
    return found


def nodes_of(cluster: Kube) -> dict[str, str]:
    return {name: found["spec"].get("nodeName", "") for name, found in cluster.pods().items()}


@pytest.mark.parametrize("restarts", [False, True])
def test_the_quota_of_queued_pods_that_succeed_is_free(queueing: Kube, restarts: bool) -> None:
    queueing.create(node("n0", cpu=16))
    scheduler = queueing.run(name="first")
    queueing.create(*(queued_pod(f"q{at}") for at in range(6)))
    until(lambda: sum(map(bool, nodes_of(queueing).values())) == 4, 60)
    running = [name for name, found in nodes_of(queueing).items() if found][:2]
    if restarts:
        scheduler.kill()
    for name in running:
        content = "application/strategic-merge-patch+json"
        queueing.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}}, content)
    if restarts:
        queueing.run(name="second")
    until(lambda: all("Finished" in true_conditions(queueing)[name] for name in running), 60)
    until(lambda: all(nodes_of(queueing).values()), 60)


def test_pods_whose_admission_is_refused_for_a_while_are_not_deleted(queueing: Kube) -> None:
    """The API server refuses every status of a Workload that has an admission."""
    queueing.create(node("n0", cpu=16))
    rule = {"apiGroups": ["kueue.x-k8s.io"], "apiVersions": ["*"], "operations": ["UPDATE"]}
    rule["resources"] = ["workloads/status"]
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "!has(object.status.admission)", "message": "no admission today"}],
    }
    queueing.call("POST", f"{POLICIES}/validatingadmissionpolicies", {"metadata": {"name": "none"}, "spec": spec})
    binding = {"policyName": "none", "validationActions": ["Deny"]}
    queueing.call(
        "POST", f"{POLICIES}/validatingadmissionpolicybindings", {"metadata": {"name": "none"}, "spec": binding}
    )
    try:
        time.sleep(2.0)
        scheduler = queueing.run(name="first")
        queueing.create(*(queued_pod(f"q{at}") for at in range(4)))
        before = {found["metadata"]["uid"] for found in queueing.pods().values()}
        until(lambda: "Admit was refused" in scheduler.log.read_text(), 60)
        time.sleep(5.0)
    finally:
        for plural in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            queueing.call("DELETE", f"{POLICIES}/{plural}/none")
    until(lambda: sum(map(bool, nodes_of(queueing).values())) == 4, 90)
    assert {found["metadata"]["uid"] for found in queueing.pods().values()} == before
    assert "Traceback" not in scheduler.log.read_text()


@pytest.mark.parametrize("what", ["ClusterQueue", "LocalQueue", "active"])
def test_a_stop_that_falls_due_while_no_scheduler_runs_is_carried_out(queueing: Kube, what: str) -> None:
    queueing.create(node("n0", cpu=16))
    scheduler = queueing.run(name="first")
    queueing.create(job("one", "1"), job("two", "1"))
    until(lambda: suspended(queueing) == {"one": False, "two": False}, 60)
    scheduler.kill()
    merge = "application/merge-patch+json"
    drained = {"spec": {"stopPolicy": "HoldAndDrain"}}
    if what == "ClusterQueue":
        queueing.call("PATCH", f"/apis/{GROUP}/clusterqueues/team", drained, merge)
    elif what == "LocalQueue":
        queueing.call("PATCH", f"/apis/{GROUP}/namespaces/default/localqueues/team", drained, merge)
    else:
        workloads = f"/apis/{GROUP}/namespaces/default/workloads"
        for found in queueing.objects(workloads):
            queueing.call("PATCH", f"{workloads}/{found['metadata']['name']}", {"spec": {"active": False}}, merge)
    queueing.run(name="second")
    until(lambda: suspended(queueing) == {"one": True, "two": True}, 60)

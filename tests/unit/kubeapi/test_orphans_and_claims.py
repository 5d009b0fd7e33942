"""Symptoms that upstream's tests found."""

from mooring.kubeapi.api import Api
from mooring.kubeapi.kinds.workloads import check_template
from mooring.kubeapi.store.store import Store


def test_pods_of_a_replication_controller_were_deleted_with_it_though_nobody_said_so() -> None:
    api = Api(Store())
    for resource in ("replicationcontrollers", "replicasets.apps"):
        api.create(resource, {"metadata": {"name": "web"}, "spec": {}}, "default")

    answers = [api.delete(resource, "default", "web") for resource in ("replicationcontrollers", "replicasets.apps")]

    assert answers[0]["metadata"]["finalizers"] == ["orphan"]
    assert answers[1]["status"] == "Success"


def test_the_claims_of_a_stateful_set_could_not_be_mounted() -> None:
    mounts = [{"name": "data", "mountPath": "/data"}]
    container = {"name": "main", "image": "web", "imagePullPolicy": "Always", "volumeMounts": mounts}
    template = {"spec": {"containers": [container], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst"}}

    errors = [[error.field for error in check_template(template, claimed=claimed)] for claimed in ((), ("data",))]

    assert errors == [["spec.template.spec.containers[0].volumeMounts[0].name"], []]

"""A session with a real kubectl against `mooring up`, from the first `apply` to the last `delete`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from with_kubectl import KUBECTL, Kubectl, Refused, cluster_up, eventually

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="no kubectl here")

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - {name: web, image: "registry.example.com/web:v1", resources: {requests: {cpu: 100m}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
"""


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with cluster_up(tmp_path_factory.mktemp("kubectl"), "--nodes", "3") as run:
        yield run


def test_a_session(kubectl: Kubectl) -> None:
    """One story: what each verb says, and what it leaves behind."""
    assert kubectl("apply -f -", WEB).splitlines() == [
        "deployment.apps/web created",
        "poddisruptionbudget.policy/web created",
    ]
    assert "successfully rolled out" in kubectl("rollout status deployment/web --timeout=60s")
    kubectl("wait --for=condition=Ready pod -l app=web --timeout=60s")
    assert "deployment.apps/web unchanged" in kubectl("apply -f -", WEB)
    assert "deployment.apps/web serverside-applied" in kubectl("apply --server-side --force-conflicts -f -", WEB)

    table = kubectl("get pods -l app=web -o wide").splitlines()
    assert table[0].split()[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [line.split()[1:3] for line in table[1:]] == [["1/1", "Running"]] * 2
    assert kubectl("get deployment web -o jsonpath={.status.readyReplicas}") == "2"
    assert "kind: Deployment" in kubectl("get deployment web -o yaml")
    assert len(kubectl("get pods --field-selector=status.phase=Running -o name").split()) == 2
    assert "Scheduled" in kubectl("describe pods -l app=web")
    assert "v1.37" in kubectl("version")

    kubectl("scale deployment/web --replicas=4")
    eventually(lambda: kubectl("get deployment web -o jsonpath={.status.readyReplicas}") == "4")
    kubectl("set image deployment/web web=registry.example.com/web:v2")
    assert "successfully rolled out" in kubectl("rollout status deployment/web --timeout=60s")
    assert "REVISION" in kubectl("rollout history deployment/web")
    kubectl("rollout undo deployment/web")
    assert "successfully rolled out" in kubectl("rollout status deployment/web --timeout=60s")
    assert "web:v1" in kubectl("get deployment web -o jsonpath={..image}")


QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team, labels: {tier: gold}}
spec:
  cohortName: shared
  namespaceSelector: {}
"""


def test_apply_merges_into_what_others_have_set(kubectl: Kubectl) -> None:
    """Built-in kinds by strategic merge, others by JSON merge, and on the server with owners of fields."""
    kubectl("apply -f -", WEB.replace("web", "merged"))
    kubectl("set env deployment/merged COLOUR=red")
    assert "deployment.apps/merged configured" in kubectl(
        "apply -f -", WEB.replace("web", "merged").replace(":v1", ":v3")
    )
    assert "red" in kubectl("get deployment merged -o jsonpath={..env[0].value}")

    kubectl("apply -f -", QUEUE)
    kubectl("annotate clusterqueue team note=kept")
    assert "configured" in kubectl(
        "apply -f -", QUEUE.replace("cohortName: shared", "cohortName: other").replace("gold", "silver")
    )
    assert kubectl("get clusterqueue team -o jsonpath={.spec.cohortName},{.metadata.annotations.note}") == "other,kept"

    mine = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owned}\ndata: {colour: COLOUR}\n"
    kubectl("apply --server-side --field-manager=one -f -", mine.replace("COLOUR", "red"))
    with pytest.raises(Refused, match=r'conflict with "one": \.data\.colour'):
        kubectl("apply --server-side --field-manager=two -f -", mine.replace("COLOUR", "blue"))
    kubectl("apply --server-side --field-manager=two --force-conflicts -f -", mine.replace("COLOUR", "blue"))
    assert kubectl("get configmap owned -o jsonpath={.data.colour}") == "blue"
    kubectl("delete deployment,pdb merged")


def test_output_forms(kubectl: Kubectl) -> None:
    kubectl("create namespace forms")
    for number in range(3):
        kubectl(f"create configmap c{number} -n forms --from-literal=n={number}")
    mine = "-n forms --field-selector=metadata.name!=kube-root-ca.crt"

    assert kubectl(f"get configmaps {mine} -o name --chunk-size=1").split() == [f"configmap/c{n}" for n in range(3)]
    assert json.loads(kubectl("get configmap c1 -n forms -o json"))["data"] == {"n": "1"}
    assert kubectl("get configmap c2 -n forms -o go-template={{.data.n}}") == "2"
    table = kubectl(f"get configmaps {mine} -o custom-columns=NAME:.metadata.name,N:.data.n --sort-by=.data.n")
    assert [line.split() for line in table.splitlines()] == [["NAME", "N"], ["c0", "0"], ["c1", "1"], ["c2", "2"]]
    assert kubectl("get configmaps c0 -n forms --show-labels").splitlines()[0].split() == [
        "NAME",
        "DATA",
        "AGE",
        "LABELS",
    ]
    nodes = kubectl("get nodes -o wide").splitlines()
    assert nodes[0].split()[:5] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    kubectl("delete namespace forms")


def test_a_deletion_waits_for_grace_and_finalizers(kubectl: Kubectl) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: slow, annotations: {mooring.dev/stop-delay: 1h}}\n"
    pod += "spec: {terminationGracePeriodSeconds: 600, containers: [{name: c, image: pause}]}\n"
    kubectl("apply -f -", pod)
    kubectl("wait --for=condition=Ready pod/slow --timeout=60s")
    kubectl("delete pod slow --wait=false")
    assert "Terminating" in kubectl("get pod slow")
    kubectl("delete pod slow --grace-period=0 --force")
    with pytest.raises(Refused, match="not found"):
        kubectl("get pod slow")

    held = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/hold]}\n"
    kubectl("apply -f -", held)
    kubectl("delete configmap held --wait=false")
    assert kubectl("get configmap held -o jsonpath={.metadata.deletionTimestamp}")
    kubectl('patch configmap held --type=merge -p {"metadata":{"finalizers":null}}')
    with pytest.raises(Refused, match="not found"):
        kubectl("get configmap held")


def test_small_changes(kubectl: Kubectl) -> None:
    kubectl("create configmap settings --from-literal=a=1")
    kubectl("label configmap settings team=red")
    kubectl("annotate configmap settings note=hello")
    kubectl('patch configmap settings --type=merge -p {"data":{"b":"2"}}')
    kubectl('patch configmap settings --type=json -p [{"op":"add","path":"/data/c","value":"3"}]')
    kubectl('patch configmap settings -p {"data":{"d":"4"}}')

    assert kubectl("get configmap settings -L team --no-headers").split()[-1] == "red"
    assert kubectl("get configmap settings -o jsonpath={.data}") == '{"a":"1","b":"2","c":"3","d":"4"}'
    misspelt = WEB.partition("---")[0].replace("replicas: 2", "replicsa: 2")
    with pytest.raises(Refused, match="strict decoding error: unknown field"):
        kubectl("apply -f -", misspelt)
    kubectl("delete configmap settings")
    with pytest.raises(Refused, match='configmaps "settings" not found'):
        kubectl("get configmap settings")


def test_nodes_are_tainted_cordoned_and_drained(kubectl: Kubectl) -> None:
    kubectl("taint nodes node-2 key=value:NoSchedule")
    assert "key=value:NoSchedule" in kubectl("describe node node-2")
    kubectl("taint nodes node-2 key-")
    kubectl("cordon node-0")
    assert "SchedulingDisabled" in kubectl("get node node-0")
    kubectl("drain node-0 --ignore-daemonsets --delete-emptydir-data --timeout=90s --force")
    eventually(lambda: "node-0" not in kubectl("get pods -o jsonpath={..spec.nodeName}"))
    kubectl("uncordon node-0")
    assert "SchedulingDisabled" not in kubectl("get node node-0")


def test_questions(kubectl: Kubectl) -> None:
    assert kubectl("auth can-i create pods").strip() == "yes"
    with pytest.raises(Refused, match="no"):
        kubectl("auth can-i create pods --as=jane")
    kubectl("create serviceaccount robot")
    assert kubectl("create token robot").count(".") == 2
    assert "ATTRIBUTE" in kubectl("auth whoami")
    resources = kubectl("api-resources").splitlines()
    assert any(line.startswith("clusterqueues") for line in resources)
    assert "batch/v1" in kubectl("api-versions").splitlines()
    assert "containers" in kubectl("explain pod.spec")
    pod = kubectl("get pods -l app=web -o name").split()[0]
    with pytest.raises(Refused, match="nodes are simulated"):
        kubectl(f"logs {pod}")
    with pytest.raises(Refused):
        kubectl(f"exec {pod} -- true")


def test_a_watch_shows_changes(kubectl: Kubectl) -> None:
    kubectl("create configmap watched")
    shown = kubectl("get configmap watched --watch --request-timeout=2s")

    assert "watched" in shown


def test_edit_changes_an_object(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl("create configmap edited --from-literal=x=before")
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/before/after/")
    kubectl("edit configmap edited")

    assert kubectl("get configmap edited -o jsonpath={.data.x}") == "after"


def test_deletion_cascades(kubectl: Kubectl) -> None:
    kubectl("create deployment gone --image=registry.example.com/gone:v1 --replicas=2")
    kubectl("rollout status deployment/gone --timeout=60s")
    kubectl("delete deployment gone --cascade=foreground --timeout=60s")
    eventually(lambda: kubectl("get pods -l app=gone -o name") == "")
    kubectl("create deployment kept --image=registry.example.com/kept:v1")
    eventually(lambda: kubectl("get replicasets -l app=kept -o name") != "")
    kubectl("delete deployment kept --cascade=orphan")
    assert kubectl("get replicasets -l app=kept -o name") != ""
    kubectl("create namespace brief")
    kubectl("create configmap x -n brief")
    kubectl("delete namespace brief --timeout=60s")
    with pytest.raises(Refused, match="not found"):
        kubectl("get namespace brief")


def test_a_debug_container_starts_and_says_that_nothing_runs(kubectl: Kubectl) -> None:
    kubectl("run debugged --image=registry.example.com/app:v1")
    kubectl("wait --for=condition=Ready pod/debugged --timeout=60s")

    with pytest.raises(Refused, match="its containers do not run, nodes are simulated"):
        kubectl("debug -it debugged --image=busybox --container=shell")

    state = "{.status.ephemeralContainerStatuses[?(@.name=='shell')].state}"
    eventually(lambda: "startedAt" in kubectl(f"get pod debugged -o jsonpath={state}"))
    kubectl("delete pod debugged")


def test_other_users_have_contexts_and_no_rights_of_their_own(tmp_path: Path) -> None:
    with cluster_up(
        tmp_path, "--nodes", "1", "--no-scheduler", "--as", "alice=team-a,team-b", "--as", "bob"
    ) as kubectl:
        assert kubectl("--context alice auth whoami -o jsonpath={.status.userInfo.groups}") == (
            '["team-a","team-b","system:authenticated"]'
        )
        with pytest.raises(Refused, match='User "alice" cannot list resource "pods"'):
            kubectl("--context alice get pods")
        kubectl("create rolebinding viewers --clusterrole=view --group=team-a")
        kubectl("--context alice get pods")
        with pytest.raises(Refused, match='User "bob" cannot list resource "pods"'):
            kubectl("--context bob get pods")

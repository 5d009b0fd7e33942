"""Kueue is replaced by deploy/replace-kueue.sh on a real API server, with objects of the form that Kueue installs."""

import copy
import json
import os
import shutil
import ssl
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from control_plane import ControlPlane, is_available, until
from kube import Kube, Object, Refused, node, pod
from test_live_queueing import GROUP, job, suspended

from mooring.drivers.live.certificate import _self_signed

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "deploy" / "replace-kueue.sh"
OLD = "kueue.x-k8s.io/v1beta1"
NAMESPACE = "kueue-system"
pytestmark = pytest.mark.live


class Converter(BaseHTTPRequestHandler):
    """What Kueue's conversion webhook does to the field that its versions name differently."""

    calls = 0

    def do_POST(self) -> None:
        type(self).calls += 1
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        wanted = review["request"]["desiredAPIVersion"]
        answer = {
            "uid": review["request"]["uid"],
            "result": {"status": "Success"},
            "convertedObjects": [converted(each, wanted) for each in review["request"]["objects"]],
        }
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


def converted(found: Object, version: str) -> Object:
    names = ("cohort", "cohortName") if version == GROUP else ("cohortName", "cohort")
    spec = {names[1] if name == names[0] else name: value for name, value in found.get("spec", {}).items()}
    return {**found, "apiVersion": version, "spec": spec}


class Kueue:
    """Kueue as it is installed: its kinds, webhooks, APIService and Deployment; only conversion really answers."""

    def __init__(self, directory: Path) -> None:
        pem = _self_signed("localhost")
        path = directory / "kueue.pem"
        path.write_bytes(pem)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(path)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Converter)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self._bundle = b64encode(pem.partition(b"-----BEGIN PRIVATE KEY")[0]).decode()

    def kinds(self) -> list[Object]:
        url = f"https://localhost:{self.server.server_address[1]}/convert"
        webhook = {"clientConfig": {"url": url, "caBundle": self._bundle}, "conversionReviewVersions": ["v1"]}
        found = [each for each in yaml.safe_load_all((ROOT / "deploy" / "crds" / "kueue.yaml").read_text()) if each]
        for kind in found:
            (current,) = kind["spec"]["versions"]
            spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": spec}}}
            older = {
                "name": "v1beta1",
                "served": True,
                "storage": False,
                "schema": schema,
                "subresources": {"status": {}},
            }
            kind["spec"]["versions"] = [older, current]
            kind["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        return found

    def around(self) -> list[Object]:
        service = {"namespace": NAMESPACE, "name": "kueue-webhook-service"}
        rule = {"apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"]}
        rules = [
            {**rule, "apiGroups": ["batch"], "resources": ["jobs"]},
            {**rule, "apiGroups": [""], "resources": ["pods"]},
        ]
        outside = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}
        labels = {"control-plane": "controller-manager"}
        container = {"name": "manager", "image": "kueue"}
        webhooks: list[Object] = [
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": f"{name}WebhookConfiguration",
                "metadata": {"name": f"kueue-{name.lower()}-webhook-configuration"},
                "webhooks": [
                    {
                        "name": f"{name[0].lower()}job.kb.io",
                        "admissionReviewVersions": ["v1"],
                        "clientConfig": {"service": {**service, "path": "/mutate"}},
                        "failurePolicy": "Fail",
                        "sideEffects": "None",
                        "namespaceSelector": {"matchExpressions": [outside]},
                        "rules": rules,
                    }
                ],
            }
            for name in ("Mutating", "Validating")
        ]
        return [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {
                    "name": "kueue-controller-manager",
                    "namespace": NAMESPACE,
                    "labels": labels,
                },
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
                },
            },
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": "v1beta1.visibility.kueue.x-k8s.io"},
                "spec": {
                    "group": "visibility.kueue.x-k8s.io",
                    "version": "v1beta1",
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "insecureSkipTLSVerify": True,
                    "service": {"namespace": NAMESPACE, "name": "kueue-visibility-server"},
                },
            },
            *webhooks,
        ]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Kube]:
    """A control plane of its own: what Kueue leaves behind is nothing for other tests."""
    if not is_available() or shutil.which("kubectl") is None:
        pytest.skip("kube-apiserver, etcd and kubectl are needed")
    with ControlPlane(tmp_path / "plane") as plane, Kube(plane.kubeconfig, tmp_path) as kube:
        yield kube


def kubectl(cluster: Kube, *arguments: str, given: str = "") -> str:
    environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig)}
    done = subprocess.run(arguments, input=given, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def apply(cluster: Kube, objects: list[Object]) -> None:
    text = yaml.safe_dump_all(objects)
    kubectl(cluster, "kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-", given=text)


def can_create_pods(cluster: Kube, name: str) -> bool:
    try:
        cluster.create(pod(name))
    except Refused:
        return False
    return True


def test_kueue_is_replaced_without_loss_and_can_come_back(own: Kube, tmp_path: Path) -> None:
    kueue = Kueue(tmp_path)
    older = copy.deepcopy(kueue.kinds())
    for kind in older:  # as a release stored them that had no other version
        kind["spec"]["versions"] = [{**kind["spec"]["versions"][0], "storage": True}]
        kind["spec"].pop("conversion")
    apply(own, older)
    until(lambda: "clusterqueues" in kubectl(own, "kubectl", "api-resources", "--api-group=kueue.x-k8s.io"), 30)
    flavors = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "4"}]}]
    spec = {
        "cohort": "everybody",
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
    }
    in_use = ["kueue.x-k8s.io/resource-in-use"]
    queue: Object = {"apiVersion": OLD, "kind": "ClusterQueue", "metadata": {"name": "team", "finalizers": in_use}}
    local: Object = {"apiVersion": OLD, "kind": "LocalQueue", "metadata": {"name": "team", "namespace": "default"}}
    flavor: Object = {"apiVersion": OLD, "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}}
    apply(own, [flavor, {**queue, "spec": spec}, {**local, "spec": {"clusterQueue": "team"}}])
    apply(own, kueue.kinds())
    apply(own, kueue.around())
    until(lambda: not can_create_pods(own, "refused"), 30)  # what scaling Kueue down alone comes to

    kubectl(own, str(SCRIPT))
    kueue.server.shutdown()
    kueue.server.server_close()

    assert Converter.calls
    until(lambda: can_create_pods(own, "welcome"), 30)
    (found,) = own.objects(f"/apis/{GROUP}/clusterqueues")
    assert found["spec"]["cohortName"] == "everybody"
    assert "finalizers" not in found["metadata"]
    deployment = own.call("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/kueue-controller-manager")
    assert deployment["spec"]["replicas"] == 0
    with pytest.raises(Refused):
        own.objects(f"/apis/{OLD}/clusterqueues")
    own.create(node("n0", cpu=16), job("train", "3"))
    scheduler = own.run()
    until(lambda: suspended(own) == {"train": False}, 30, scheduler.tail)
    assert scheduler.stop() == 0

    # Back: the same release is installed again.
    again = Kueue(tmp_path)
    apply(own, [*again.kinds(), *again.around()])
    until(lambda: _cohort(own, OLD) == "everybody", 30)
    assert not can_create_pods(own, "asks-kueue-again")


def _cohort(cluster: Kube, version: str) -> str:
    try:
        (found,) = cluster.objects(f"/apis/{version}/clusterqueues")
    except Refused:
        return ""
    cohort: str = found["spec"].get("cohort", "")
    return cohort

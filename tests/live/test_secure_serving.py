"""Metrics and configuration over TLS, for those whom the API server lets read them."""

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path

from control_plane import free_port, until
from kube import Kube, Object, node

RBAC = "rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def read(address: str, path: str, token: str = "") -> tuple[int, str]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"https://{address}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, context=context, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def token_of(cluster: Kube, name: str) -> str:
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
    cluster.delete(account)
    cluster.create(account)
    wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    given: str = cluster.call("POST", f"{ACCOUNTS}/{name}/token", wanted)["status"]["token"]
    return given


def test_only_those_who_may_read_metrics_are_told(cluster: Kube) -> None:
    role = {
        "apiVersion": RBAC,
        "kind": "ClusterRole",
        "metadata": {"name": "metrics-reader"},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }
    binding = {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "metrics-reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    }
    cluster.delete(role, binding)
    cluster.create(node("n0"), role, binding)
    reader, other = token_of(cluster, "reader"), token_of(cluster, "other")
    address = f"127.0.0.1:{free_port()}"
    scheduler = cluster.run(f"--secure-address={address}")
    scheduler.wait_until_it_says("scheduling for")

    until(lambda: read(address, "/readyz")[0] == 200, 20, scheduler.tail)
    assert read(address, "/livez") == (200, "ok")
    assert read(address, "/metrics")[0] == 401
    assert read(address, "/metrics", "not-a-token")[0] == 401
    assert read(address, "/metrics", other)[0] == 403
    until(lambda: read(address, "/metrics", reader)[0] == 200, 15)
    assert "scheduler_schedule_attempts_total" in read(address, "/metrics", reader)[1]
    assert read(address, "/configz", reader)[0] == 403
    status, text = read(address, "/configz", cluster.token)
    assert status == 200
    assert json.loads(text)["kubescheduler.config.k8s.io"]["kind"] == "KubeSchedulerConfiguration"


def test_a_certificate_without_its_key_is_refused(cluster: Kube, tmp_path: Path) -> None:
    scheduler = cluster.run("--secure-address=127.0.0.1:0", f"--tls-cert-file={tmp_path / 'tls.crt'}")
    until(lambda: not scheduler.is_running, 20)
    assert "--tls-cert-file and --tls-private-key-file: expected both, found one" in scheduler.tail()

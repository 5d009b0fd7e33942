"""Users of a cluster see what the cluster lets them list, and nothing without a token."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser
from serving import dashboard
from test_dashboard_live import Api, pod, wait_until

RBAC = "rbac.authorization.k8s.io/v1"
PATHS = ("/", "/nodes", "/queues", "/pods", "/time", "/plans", "/what-if", "/data/nodes.json", "/data/allocation.json")


class Shown:
    """The pages as the user of a token sees them."""

    def __init__(self, link: str, token: str) -> None:
        self.link, self._token = link, token

    def get(self, path: str) -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(self.link + path, headers=headers), timeout=60
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two teams with a pod each that runs and one that waits; nothing schedules them."""
    kubeconfig = tmp_path_factory.mktemp("users") / "kubeconfig"
    options = ["--in-memory", "--port", "0", "--nodes", "2", "--no-scheduler", "--no-dashboard"]
    command = [sys.executable, "-m", "mooring", "up", *options, "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "is up at" in process.stdout.readline()
        api = Api(kubeconfig)
        for team in ("red", "blue"):
            api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}})
            running = pod(f"{team}-runs", team)
            running["spec"]["nodeName"] = "node-0"
            api.apply(running)
            api.apply(pod(f"{team}-waits", team, cpu="9000"))
        yield kubeconfig
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="module")
def link(cluster: Path) -> Iterator[str]:
    with dashboard("--kubeconfig", cluster, "--access", "cluster") as found:
        yield found


def token_of(api: Api, account: str) -> str:
    """The token of a new service account without rights."""
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": "red"}})
    path = f"/api/v1/namespaces/red/serviceaccounts/{account}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token: str = api.ask(path, body)["status"]["token"]
    return token


def allow(api: Api, account: str, resources: list[str], *, everywhere: bool) -> None:
    """Let a service account list some kinds: in its own namespace, or everywhere."""
    prefix, metadata = ("Cluster", {"name": account}) if everywhere else ("", {"name": account, "namespace": "red"})
    rules = [{"apiGroups": ["*"], "resources": resources, "verbs": ["list"]}]
    api.apply({"apiVersion": RBAC, "kind": f"{prefix}Role", "metadata": metadata, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": f"{prefix}Role", "name": account}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "red"}
    binding = {"metadata": metadata, "roleRef": role, "subjects": [subject]}
    api.apply({"apiVersion": RBAC, "kind": f"{prefix}RoleBinding", **binding})


def test_without_a_token_there_is_nothing(link: str) -> None:
    for token in ("", "wrong"):
        shown = Shown(link, token)
        for path in (*PATHS, "/events", "/healthz", "/pods/red/red-runs"):
            code, text = shown.get(path)
            assert (code, "red" in text, "node-0" in text) == (401, False, False), path


def test_a_user_without_rights_is_told_so(cluster: Path, link: str) -> None:
    shown = Shown(link, token_of(Api(cluster), "nobody"))
    for path in PATHS:
        code, text = shown.get(path)
        assert (code, "red" in text, "node-0" in text) == (403, False, False), path


def test_a_user_with_rights_in_one_namespace_sees_that_one_only(cluster: Path, link: str) -> None:
    api = Api(cluster)
    token = token_of(api, "member")
    allow(api, "member", ["pods"], everywhere=False)
    shown = Shown(link, token)

    wait_until(lambda: "red/red-runs" in shown.get("/pods")[1], "the own pods are not shown")
    code, overview = shown.get("/")
    assert code == 200 and "red-waits" in overview and "blue" not in overview
    assert 'id="count-bound">1<' in overview and 'id="count-waiting">1<' in overview
    code, text = shown.get("/pods/red/red-waits")
    assert code == 200 and "Insufficient cpu" in text and "node-0" not in text
    for path in ("/pods", "/queues", "/time", "/plans"):
        code, text = shown.get(path)
        assert code == 200 and "blue" not in text, path
    assert shown.get("/pods/blue/blue-waits")[0] == 404
    for path in ("/nodes", "/nodes/node-0", "/data/nodes.json", "/data/allocation.json", "/what-if"):
        code, text = shown.get(path)
        assert code == 403 and "blue" not in text, path


def test_a_user_with_all_rights_sees_everything(cluster: Path, link: str) -> None:
    api = Api(cluster)
    token = token_of(api, "viewer")
    allow(api, "viewer", ["pods", "nodes", "clusterqueues"], everywhere=True)
    shown = Shown(link, token)

    assert all(shown.get(path)[0] == 200 for path in PATHS)
    pods = shown.get("/pods")[1]
    assert "red/red-runs" in pods and "blue/blue-runs" in pods
    assert json.loads(shown.get("/data/nodes.json")[1])["pods"] == [2, 0]


def test_a_browser_logs_in_with_a_token(cluster: Path, link: str, browser: Browser) -> None:
    api = Api(cluster)
    token = token_of(api, "person")
    allow(api, "person", ["pods"], everywhere=False)
    context = browser.new_context()
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto(link)
    assert page.url == f"{link}/login"
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert found.violations_count == 0, found.generate_report()
    page.fill("input[name=token]", "wrong")
    page.click("main button")
    assert "does not know this token" in page.inner_text("[role=alert]")
    page.fill("input[name=token]", token)
    page.click("main button")
    page.wait_for_url(f"{link}/")
    assert "red" in page.inner_text("main") and "blue" not in page.inner_text("main")
    cookie = context.cookies()[0]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    context.close()

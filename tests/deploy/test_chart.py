"""The Helm chart, rendered: by Go's own templates, which Helm's are, where Go is there."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from mooring.cli.main import app

ROOT = Path(__file__).parents[2]
CHART, MANIFESTS = ROOT / "deploy" / "chart", ROOT / "deploy" / "manifests"
Documents = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("go") is None:
        pytest.skip("there is no Go")
    path = tmp_path_factory.mktemp("renderer") / "render"
    environment = os.environ | {"GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    source = Path(__file__).parent / "render.go"
    subprocess.run(["go", "build", "-o", str(path), str(source)], check=True, env=environment, cwd=path.parent)
    return path


def render(renderer: Path, **values: Any) -> Documents:
    given = {
        "Values": yaml.safe_load((CHART / "values.yaml").read_text()) | values,
        "Release": {"Name": "mooring", "Namespace": "kube-system"},
    }
    found = subprocess.run([renderer, CHART], input=json.dumps(given), capture_output=True, text=True, check=True)
    documents = [each for each in yaml.safe_load_all(found.stdout) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}


def manifests() -> Documents:
    documents = [
        each
        for path in sorted(MANIFESTS.glob("*.yaml"))
        for each in yaml.safe_load_all(path.read_text())
        if each and each["kind"] != "Kustomization"
    ]
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}


def arguments(documents: Documents) -> list[str]:
    containers = documents["Deployment", "mooring"]["spec"]["template"]["spec"]["containers"]
    found: list[str] = containers[0]["args"]
    return found


def test_the_chart_gives_the_rights_of_the_manifests_and_no_others(renderer: Path) -> None:
    rights = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    chart = {key: each for key, each in render(renderer).items() if key[0] in rights}
    assert chart == {key: each for key, each in manifests().items() if key[0] in rights}
    assert len(chart) >= 5


def test_the_chart_deploys_what_the_manifests_do(renderer: Path) -> None:
    chart, plain = render(renderer), manifests()
    assert {kind for kind, _ in chart} >= {"Deployment", "PodDisruptionBudget", "ConfigMap", "Service"}
    assert {kind for kind, _ in plain} >= {"Deployment", "PodDisruptionBudget", "ConfigMap"}
    for documents in (chart, plain):
        deployment = documents["Deployment", "mooring"]["spec"]
        container = deployment["template"]["spec"]["containers"][0]
        assert deployment["replicas"] == 2
        assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert container["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]
        budget = next(each for (kind, _), each in documents.items() if kind == "PodDisruptionBudget")
        assert budget["spec"]["selector"] == deployment["selector"]


def test_every_argument_is_an_option_of_the_command(renderer: Path) -> None:
    run = get_command(app).commands["run"]  # type: ignore[attr-defined]
    options = {name for parameter in run.params for name in parameter.opts}
    for documents in (render(renderer), manifests()):
        command, *given = arguments(documents)
        assert command == "run"
        assert {each.partition("=")[0] for each in given} <= options


def test_values_change_what_is_deployed(renderer: Path) -> None:
    beside = render(renderer)
    assert ("ServiceMonitor", "mooring") not in beside
    assert "--leader-elect-resource-name=mooring" in arguments(beside)
    inside = render(
        renderer,
        schedulerName="default-scheduler",
        replicas=3,
        leaderElect=False,
        serviceMonitor={"enabled": True, "interval": "5s"},
        moreConfig="apiVersion: mooring.dev/v1\nkind: TenantPolicy",
        extraArgs=["--share-nodes"],
        image={"repository": "here/mooring", "tag": "1", "pullPolicy": "Always"},
        resources={"limits": {"memory": "8Gi"}},
    )
    assert inside["ServiceMonitor", "mooring"]["spec"]["endpoints"] == [{"port": "http", "interval": "5s"}]
    assert "--leader-elect-resource-name=kube-scheduler" in arguments(inside)
    assert {"--leader-elect=false", "--share-nodes"} <= set(arguments(inside))
    deployment = inside["Deployment", "mooring"]["spec"]
    container = deployment["template"]["spec"]["containers"][0]
    assert (deployment["replicas"], container["image"]) == (3, "here/mooring:1")
    assert container["resources"] == {"limits": {"memory": "8Gi"}}
    documents = list(yaml.safe_load_all(inside["ConfigMap", "mooring"]["data"]["config.yaml"]))
    assert [each["kind"] for each in documents] == ["KubeSchedulerConfiguration", "TenantPolicy"]
    assert documents[0]["profiles"] == [{"schedulerName": "default-scheduler"}]


def test_the_chart_allows_the_names_that_its_values_make(renderer: Path) -> None:
    def names(**values: Any) -> list[list[str]]:
        rules = render(renderer, **values)["Role", "mooring"]["rules"]
        return [rule["resourceNames"] for rule in rules if "resourceNames" in rule]

    claims = ["mooring-node-claims"]
    in_its_place = [["kube-scheduler", "mooring-admission"], ["mooring-memory-kube-scheduler"], claims]
    assert names(schedulerName="default-scheduler") == in_its_place
    assert names(schedulerName="batch", leaderElect=False)[1:] == [["mooring-memory-batch"], claims]
    assert names(rememberAs="west")[1:] == [["mooring-memory-west"], claims]
    assert "--remember-as=west" in arguments(render(renderer, rememberAs="west"))


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    from mooring.observe.metrics import Metrics

    names = {found.name for found in Metrics().registry.collect()}
    text = (ROOT / "deploy" / "grafana" / "mooring.json").read_text()
    asked = {
        word
        for panel in json.loads(text)["panels"]
        for target in panel.get("targets", ())
        for word in "".join(c if c.isalnum() or c == "_" else " " for c in target["expr"]).split()
        if word.startswith(("mooring_", "scheduler_", "kueue_"))
    }
    endings = ("_total", "_bucket", "_sum", "_count")
    assert asked
    assert {next((w.removesuffix(e) for e in endings if w.endswith(e)), w) for w in asked} - names == set()


def test_the_image_is_built_from_what_is_there() -> None:
    """No container engine runs here: what the file copies exists, and its entry point is our command."""
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    copied = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    assert all((ROOT / name).exists() for name in copied)
    assert 'ENTRYPOINT ["mooring"]' in lines
    assert any(line.startswith("USER ") and line != "USER root" for line in lines)

"""The Helm chart, rendered by Helm's own library, where Go is there."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from rendering import CHART, ROOT, Documents, helm, render, renderer
from typer.main import get_command

from mooring.cli.main import app

__all__ = ["renderer"]
MANIFESTS = ROOT / "deploy" / "manifests"


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
    assert {kind for kind, _ in chart} >= {"Deployment", "PodDisruptionBudget", "ConfigMap", "Service", "NetworkPolicy"}
    assert {kind for kind, _ in plain} >= {"Deployment", "PodDisruptionBudget", "ConfigMap", "Service", "NetworkPolicy"}
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
    endpoint = inside["ServiceMonitor", "mooring"]["spec"]["endpoints"][0]
    assert (endpoint["port"], endpoint["scheme"], endpoint["interval"]) == ("https", "https", "5s")
    assert "--leader-elect-resource-name=kube-scheduler" in arguments(inside)
    assert {"--leader-elect=false", "--share-nodes"} <= set(arguments(inside))
    deployment = inside["Deployment", "mooring"]["spec"]
    container = deployment["template"]["spec"]["containers"][0]
    assert (deployment["replicas"], container["image"]) == (3, "here/mooring:1")
    assert container["resources"]["limits"] == {"memory": "8Gi"}
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


def test_the_default_scheduler_takes_the_lease_of_kube_scheduler_wherever_it_is_installed(renderer: Path) -> None:
    found = render(renderer, "mooring-system", schedulerName="default-scheduler")

    assert "--leader-elect-resource-namespace=kube-system" in arguments(found)
    assert "--leader-elect-resource-name=kube-scheduler" in arguments(found)
    assert found["Role", "mooring"]["metadata"]["namespace"] == "kube-system"
    assert found["RoleBinding", "mooring"]["metadata"]["namespace"] == "kube-system"
    assert found["RoleBinding", "mooring"]["subjects"][0]["namespace"] == "mooring-system"
    beside = render(renderer, "mooring-system")
    assert "--leader-elect-resource-namespace=mooring-system" in arguments(beside)
    assert beside["Role", "mooring"]["metadata"]["namespace"] == "mooring-system"


def test_in_kube_schedulers_place_replicas_can_start_without_a_scheduler(renderer: Path) -> None:
    found = render(renderer, schedulerName="default-scheduler", nodeNames=["cp-1", "cp-2"])

    names = [name for kind, name in found if kind == "Deployment"]
    assert names == ["mooring-0", "mooring-1"]
    specs = [found["Deployment", name]["spec"]["template"]["spec"] for name in names]
    assert [spec["nodeName"] for spec in specs] == ["cp-1", "cp-2"]
    assert all(spec["tolerations"] == [{"operator": "Exists"}] for spec in specs)
    selectors = [found["Deployment", name]["spec"]["selector"]["matchLabels"] for name in names]
    assert selectors[0] != selectors[1]


def test_where_pods_run_and_from_which_image_can_be_said(renderer: Path) -> None:
    digest = "sha256:" + "a" * 64
    found = render(
        renderer,
        image={"repository": "registry.example.com/mooring", "digest": digest},
        imagePullSecrets=[{"name": "pull"}],
        nodeSelector={"pool": "system"},
        tolerations=[{"key": "system", "operator": "Exists"}],
        affinity={"nodeAffinity": {}},
        podAnnotations={"a": "b"},
        configuration="apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 8",
    )
    template = found["Deployment", "mooring"]["spec"]["template"]
    spec = template["spec"]
    assert spec["containers"][0]["image"] == f"registry.example.com/mooring@{digest}"
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert (spec["nodeSelector"], spec["affinity"]) == ({"pool": "system"}, {"nodeAffinity": {}})
    assert spec["tolerations"] == [{"key": "system", "operator": "Exists"}]
    assert template["metadata"]["annotations"] == {"a": "b"}
    assert yaml.safe_load(found["ConfigMap", "mooring"]["data"]["config.yaml"])["parallelism"] == 8


@pytest.mark.parametrize(
    "values", [{"replcas": 3}, {"image": {"tga": "1"}}, {"replicas": "two"}, {"networkPolicy": {"enable": True}}]
)
def test_misspelt_values_are_refused(renderer: Path, values: dict[str, Any]) -> None:
    refused = helm(renderer, values)
    assert refused.returncode != 0
    assert "values don't meet the specifications of the schema" in refused.stderr


def test_the_schema_knows_every_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]
    assert schema.keys() - {"global"} == yaml.safe_load((CHART / "values.yaml").read_text()).keys()


def test_the_notes_say_what_to_do_next(renderer: Path) -> None:
    def notes(**values: Any) -> str:
        found: str = json.loads(helm(renderer, values).stdout)["mooring/templates/NOTES.txt"]
        return found

    assert "schedulerName: mooring" in notes() and "nodeNames" not in notes()
    assert "Set nodeNames before you do" in notes(schedulerName="default-scheduler")
    assert "Set nodeNames" not in notes(schedulerName="default-scheduler", nodeNames=["cp-1"])


def test_the_image_is_built_from_what_is_there() -> None:
    """No container engine runs here: what the file copies exists, and its entry point is our command."""
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    copied = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    assert all((ROOT / name).exists() for name in copied)
    assert 'ENTRYPOINT ["mooring"]' in lines
    assert any(line.startswith("USER ") and line != "USER root" for line in lines)


def test_base_images_are_pinned_by_digest_and_packages_by_hash() -> None:
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    argument = next(line for line in lines if line.startswith("ARG PYTHON="))
    assert re.fullmatch(r"ARG PYTHON=python:[\w.-]+@sha256:[0-9a-f]{64}", argument)
    assert [line.split()[1] for line in lines if line.startswith("FROM")] == ["${PYTHON}", "${PYTHON}"]
    text = "".join(lines)
    assert text.count("--require-hashes") == 2 and "--no-deps --no-build-isolation" in text
    for name in ("requirements.txt", "build-requirements.txt"):
        pinned = re.split(r"\n(?=[a-z])", (ROOT / "deploy" / name).read_text())[1:]
        assert pinned and all("==" in each and "--hash=sha256:" in each for each in pinned)


def test_the_lock_file_has_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["fast"]]
    named = {re.split(r"[>=;\[ ]", each)[0].lower() for each in wanted}
    locked = set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / "deploy" / "requirements.txt").read_text(), re.MULTILINE))
    assert named <= locked


def test_the_list_of_components_has_each_package_with_its_hashes() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools" / "sbom.py"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    locked = re.findall(r"^([a-z0-9._-]+)==", (ROOT / "deploy" / "requirements.txt").read_text(), re.MULTILINE)
    assert [each["name"] for each in document["components"]] == locked
    assert all(each["hashes"] and each["purl"].startswith("pkg:pypi/") for each in document["components"])

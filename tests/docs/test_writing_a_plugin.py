"""The page on plugins does what it says: its files load, its plugins decide, its tests pass."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mooring.assembly import Assembly, assemble
from mooring.errors import ConfigError
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Wait
from mooring.model.events import NodeSeen, PodSeen
from mooring.model.objects.picture import Manifests
from mooring.testing.builders import GPU, make_node, make_pod, make_pods

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "writing-a-plugin.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with the page's Python blocks, each under the name in its first line, and its configuration."""
    for language, text in BLOCK.findall(PAGE.read_text()):
        if language == "python":
            (tmp_path / text.splitlines()[0].removeprefix("# ")).write_text(text)
        elif language == "yaml":
            (tmp_path / "scheduler.yaml").write_text(text)
    return tmp_path


def decide(assembly: Assembly, nodes: list[Node], pods: list[Pod]) -> list[Decision]:
    scheduler = assembly.new_scheduler()
    scheduler.load(Manifests(nodes=nodes, pods=pods))
    return scheduler.cycle(0.0)


def classed(name: str, node_class: str = "") -> Node:
    labels = {"example.com/node-class": node_class} if node_class else {}
    return make_node(name, cpu=64, gpu=8, labels=labels)


def test_work_goes_to_nodes_by_their_class(files: Path) -> None:
    assembly = assemble(files / "scheduler.yaml", plugin_files=[files / "node_class.py"])
    nodes = [classed("plain"), classed("cpus", "cpu"), classed("gpus", "gpu")]
    pods = [make_pod("train", resources={GPU: 1}), make_pod("build", cpu=16), make_pod("web", cpu=1)]

    decisions = decide(assembly, nodes, pods)

    assert decisions == [Bind("default/train", "gpus"), Bind("default/build", "cpus"), Bind("default/web", "plain")]


def test_a_plugin_given_as_a_file_runs_without_being_named(files: Path) -> None:
    assembly = assemble(plugin_files=[files / "node_class.py"])

    decisions = decide(assembly, [classed("plain")], [make_pod("train", resources={GPU: 1})])

    message = (
        "0/1 nodes are available: 1 node(s) were not of class gpu. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    assert decisions == [Wait("default/train", message, ("NodeClass",))]


def test_bad_arguments_are_refused_with_one_line(files: Path) -> None:
    config = yaml.safe_load((files / "scheduler.yaml").read_text())
    config["profiles"][0]["pluginConfig"][0]["args"] = {"cpuHeavyCores": 0}
    (files / "scheduler.yaml").write_text(yaml.safe_dump(config))

    with pytest.raises(ConfigError, match=r"cpuHeavyCores: expected a whole number above 0, found 0$"):
        assemble(files / "scheduler.yaml", plugin_files=[files / "node_class.py"])


def pooled(name: str, rack: str, addresses: int) -> Node:
    return make_node(name, rack=rack, annotations={"example.com/rack-addresses": str(addresses)})


def test_pods_wait_for_an_address_when_their_racks_have_none_left(files: Path) -> None:
    assembly = assemble(plugin_files=[files / "address_pool.py"])
    labels = {"example.com/address": "yes"}
    nodes = [pooled("a-0", "a", 2), pooled("a-1", "a", 2), pooled("b-0", "b", 1), make_node("no-rack")]
    pods = [make_pod("old", node="a-0", labels=labels), *make_pods(3, labels=labels), make_pod("other")]

    decisions = decide(assembly, nodes, pods)

    rack_of = {"a-0": "a", "a-1": "a", "b-0": "b"}
    placed = [decision for decision in decisions if isinstance(decision, Bind)]
    assert sorted(rack_of[d.node] for d in placed if d.pod != "default/other") == ["a", "b"]
    message = (
        "0/4 nodes are available: 4 node(s) were in a rack without a free address. "
        "preemption: 0/4 nodes are available: 4 No preemption victims found for incoming pod."
    )
    assert [d for d in decisions if isinstance(d, Wait)] == [Wait("default/pod-2", message, ("AddressPool",))]
    assert "default/other" in [decision.pod for decision in placed]


def test_a_pod_that_waits_for_a_gpu_node_is_not_tried_again_for_another_node(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(files))
    scheduler = assemble(plugin_files=[files / "node_class_hint.py"]).new_scheduler()
    scheduler.load(Manifests(nodes=[classed("plain")], pods=[make_pod("train", resources={GPU: 1})]))
    scheduler.cycle(0.0)

    scheduler.handle(NodeSeen(classed("other")))
    assert scheduler.cycle(100.0) == []

    scheduler.handle(NodeSeen(classed("gpus", "gpu")))
    assert scheduler.cycle(200.0) == [Bind("default/train", "gpus")]


def test_a_pod_waits_in_its_place_until_it_is_approved(files: Path) -> None:
    scheduler = assemble(plugin_files=[files / "approval.py"]).new_scheduler()
    scheduler.load(Manifests(nodes=[make_node("a")], pods=[make_pod("train")]))
    message = "waits for the permission of Approval, 600 s at most: example.com/approved is missing"
    assert scheduler.cycle(0.0) == [Wait("default/train", message, ("Approval",), "a")]

    scheduler.handle(PodSeen(make_pod("train", annotations={"example.com/approved": "yes"})))

    assert scheduler.cycle(60.0) == [Bind("default/train", "a")]


def test_the_tests_on_the_page_pass(files: Path) -> None:
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(files), str(files)]
    result = subprocess.run(run, cwd=files, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
    assert " passed" in result.stdout


def test_replicas_that_differ_in_an_index_share_answers_beside_the_example_of_the_readme(tmp_path: Path) -> None:
    (block,) = [text for language, text in BLOCK.findall((ROOT / "README.md").read_text()) if language == "python"]
    (tmp_path / "plugin.py").write_text(block)
    scheduler = assemble(plugin_files=[tmp_path / "plugin.py"]).new_scheduler()
    pods = [make_pod(f"train-{i}", gpu=1, labels={"index": f"{i}"}) for i in range(3)]

    scheduler.load(Manifests(nodes=[make_node("a", gpu=4), make_node("b", gpu=1)], pods=pods))

    assert len({record.shape.id for record in scheduler.cluster.pods.records.values()}) == 1
    assert scheduler.cycle(0.0) == [Bind(f"default/train-{i}", "a") for i in range(3)]


def test_what_people_write_imports_nothing_but_what_stays() -> None:
    texts = [text for page in (PAGE, ROOT / "README.md") for _, text in BLOCK.findall(page.read_text())]
    texts += [path.read_text() for path in (ROOT / "examples" / "plugins").glob("*.py")]

    imported = {name for text in texts for name in re.findall(r"^from (mooring[\w.]*) import", text, re.MULTILINE)}

    assert imported <= {"mooring.plugin", "mooring.model.decisions"} | {
        f"mooring.testing.{name}" for name in ("builders", "plugin_checks", "random_clusters")
    }

"""What must outlive a scheduler: written where people can read it, and taken up by the next one."""

import json
import signal
from pathlib import Path

from control_plane import until
from kube import Kube, Refused, node, pod

from mooring.drivers.offline.reading import NO_CONFIGURATION, Inputs, read
from mooring.observe.progress import Progress

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - {name: PreemptionCost, args: {mostPreemptionsPerWorkload: 1, windowSeconds: 3600}}
"""
MEMORY = "/api/v1/namespaces/kube-system/configmaps/mooring-memory-default-scheduler"
SPARED = "preemption: 0/1 nodes are available"


def written(cluster: Kube) -> dict[str, str]:
    try:
        found: dict[str, str] = cluster.call("GET", MEMORY).get("data", {})
        return found
    except Refused:
        return {}


def forget(cluster: Kube) -> None:
    if written(cluster):
        cluster.call("DELETE", MEMORY)


def place_low(cluster: Kube) -> None:
    cluster.create(pod("low", cpu="2"))
    cluster.wait_until_bound(["low"])


def test_who_was_preempted_often_is_spared_by_the_scheduler_after_a_crash(cluster: Kube, tmp_path: Path) -> None:
    forget(cluster)
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 9}
    cluster.create(urgent, node("n0", cpu=2))
    first = cluster.run(f"--config={config}", name="first")
    place_low(cluster)
    cluster.create(pod("high", cpu="2", priorityClassName="urgent"))
    cluster.wait_until_bound(["high"])
    until(lambda: "preemptions" in written(cluster), 30, first.tail)
    first.kill()
    (preempted,) = json.loads(written(cluster)["preemptions"]).items()
    assert preempted[0] == "default/low"
    assert len(preempted[1]) == 1

    cluster.delete(pod("high"))
    second = cluster.run(f"--config={config}", name="second")
    second.wait_until_it_says("preemptions: 1")
    place_low(cluster)
    cluster.create(pod("higher", cpu="2", priorityClassName="urgent"))
    until(lambda: any(SPARED in note for _, note in cluster.events("higher")), 30, second.tail)
    assert cluster.by_node() == {"n0": 1, "": 1}
    # A new configuration forgets nothing either.
    second.send(signal.SIGHUP)
    second.wait_until_it_says("the configuration was read again")
    cluster.delete(pod("higher"))
    cluster.create(pod("highest", cpu="2", priorityClassName="urgent"))
    until(lambda: any(SPARED in note for _, note in cluster.events("highest")), 30, second.tail)
    assert cluster.by_node() == {"n0": 1, "": 1}
    second.kill()

    forget(cluster)
    third = cluster.run(f"--config={config}", name="third")
    assert cluster.wait_until_bound(["highest"]) == {"highest": "n0"}
    assert "remembered from" not in third.tail()
    assert third.stop() == 0
    assert "preemptions" in written(cluster)


def test_what_cannot_be_read_is_said_and_left_out(cluster: Kube, tmp_path: Path) -> None:
    forget(cluster)
    data = {
        "written": "2026-01-01T00:00:00Z",
        "preemptions": '{"default/low": "often"}',
        "gangsWaitingSince": '{"a": "2026-01-01T00:00:00Z"}',
    }
    metadata = {"name": MEMORY.rpartition("/")[2], "namespace": "kube-system"}
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, node("n0"))
    scheduler = cluster.run()
    scheduler.wait_until_it_says("preemptions is left out: Expected `array`, got `str`")
    scheduler.wait_until_it_says("remembered from 2026-01-01T00:00:00Z: gangsWaitingSince: 1")
    cluster.create(pod("one"))
    cluster.wait_until_bound(["one"])
    until(lambda: list(written(cluster)) == ["written"], 30, scheduler.tail)  # such a gang is not there
    assert scheduler.stop() == 0

    cluster.call("PATCH", MEMORY, {"data": {**data, "written": "2999-01-01T00:00:00Z"}}, "application/merge-patch+json")
    again = cluster.run(name="again")
    again.wait_until_it_says("is left out: written: expected a time that is over, found '2999-01-01T00:00:00Z'")
    assert again.stop() == 0


def test_where_nothing_is_to_be_remembered_nothing_is_written(cluster: Kube) -> None:
    forget(cluster)
    cluster.create(node("n0"), pod("one"))
    scheduler = cluster.run()
    cluster.wait_until_bound(["one"])
    assert scheduler.stop() == 0
    assert written(cluster) == {}


def test_schedulers_without_a_lease_remember_by_a_name_of_their_own(cluster: Kube, tmp_path: Path) -> None:
    memory = "/api/v1/namespaces/kube-system/configmaps/mooring-memory-team-a"
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 9}
    cluster.create(urgent, node("n0", cpu=2))
    options = (f"--config={config}", "--only-namespace=default")
    nameless = cluster.run(*options, name="nameless")
    nameless.wait_until_it_says("what is remembered ends with this process")
    assert nameless.stop() == 0
    first = cluster.run(*options, "--remember-as=team-a", name="first")
    place_low(cluster)
    cluster.create(pod("high", cpu="2", priorityClassName="urgent"))
    cluster.wait_until_bound(["high"])
    assert first.stop() == 0
    second = cluster.run(*options, "--remember-as=team-a", name="second")
    second.wait_until_it_says("preemptions: 1")
    second.kill()
    cluster.call("DELETE", memory)


def test_commands_that_ask_about_a_cluster_decide_by_the_configuration_of_its_scheduler(
    cluster: Kube, tmp_path: Path
) -> None:
    forget(cluster)
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: default-scheduler}, {schedulerName: second}]\n"
    )
    cluster.create(node("n0"), pod("one"))
    inputs = Inputs([], kubeconfig=cluster.kubeconfig)
    before = read(inputs, Progress())
    assert NO_CONFIGURATION in before.remarks
    scheduler = cluster.run(f"--config={config}")
    until(lambda: "configuration" in written(cluster), 60)

    loaded = read(inputs, Progress())

    assert list(loaded.assembly.profiles) == ["default-scheduler", "second"]
    assert NO_CONFIGURATION not in loaded.remarks
    assert scheduler.stop() == 0
    again = cluster.run()
    until(lambda: "configuration" not in written(cluster), 60)
    assert again.stop() == 0

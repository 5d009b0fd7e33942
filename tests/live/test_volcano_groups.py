"""Groups of Volcano whose pods are made only once they are let in, with a test in place of Volcano's controllers."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from control_plane import until
from kube import Kube, Object, Refused, condition, node, pod

GROUP = "scheduling.volcano.sh/v1beta1"
GROUPS, QUEUES = f"/apis/{GROUP}/namespaces/default/podgroups", f"/apis/{GROUP}/queues"


def has_kinds(cluster: Kube) -> bool:
    with suppress(Refused):
        return cluster.objects(GROUPS) == cluster.objects(QUEUES) == []
    return False


def remove_all(cluster: Kube) -> None:
    for path in (GROUPS, QUEUES):
        for found in cluster.objects(path):
            cluster.call("DELETE", f"{path}/{found['metadata']['name']}")


@pytest.fixture
def volcano(cluster: Kube) -> Iterator[Kube]:
    """A cluster with Volcano's kinds, and a queue for four CPUs."""
    try:
        remove_all(cluster)
    except Refused:
        kinds = Path(__file__).parents[2] / "deploy" / "crds" / "gangs-and-shares.yaml"
        given = [found for found in yaml.safe_load_all(kinds.read_text()) if found["spec"]["group"] in GROUP]
        cluster.create(*given)
    until(lambda: has_kinds(cluster), 30)
    spec = {"weight": 1, "capability": {"cpu": "4"}}
    cluster.create({"apiVersion": GROUP, "kind": "Queue", "metadata": {"name": "team"}, "spec": spec})
    yield cluster
    remove_all(cluster)  # other tests have no queues


def group(name: str, cpu: str) -> Object:
    """As Volcano's controller makes it for a Job of three pods, before it makes those."""
    return {
        "apiVersion": GROUP,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": 3, "queue": "team", "minResources": {"cpu": cpu}},
        "status": {"phase": "Pending"},
    }


def members(name: str) -> list[Object]:
    found = [pod(f"{name}-{number}", cpu="1") for number in range(3)]
    for each in found:
        each["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": name}
    return found


def status(cluster: Kube, name: str) -> Object:
    found: Object = cluster.call("GET", f"{GROUPS}/{name}").get("status", {})
    return found


def phases(cluster: Kube) -> dict[str, str]:
    return {found["metadata"]["name"]: found.get("status", {}).get("phase", "") for found in cluster.objects(GROUPS)}


def test_a_group_gets_its_pods_once_its_queue_has_room_for_it(volcano: Kube) -> None:
    volcano.create(node("n0", cpu=16))
    first = volcano.run(name="first")
    volcano.create(group("one", "3"))
    until(lambda: phases(volcano) == {"one": "Inqueue"}, 30, first.tail)
    volcano.create(group("two", "3"))
    until(lambda: condition({"status": status(volcano, "two")}, "Unschedulable") is not None, 30, first.tail)
    said = condition({"status": status(volcano, "two")}, "Unschedulable")
    assert said is not None
    assert said["reason"] == "NotEnoughResources"
    assert said["message"] == "queue team can have 4 cpu; jobs that were let in need 3, and this one 3"
    until(lambda: ("Unschedulable", said["message"]) in volcano.events("two"), 20, first.tail)
    assert phases(volcano) == {"one": "Inqueue", "two": "Pending"}
    # Whoever goes on knows from the phase that the first was let in: it has no pods yet.
    assert first.stop() == 0
    second = volcano.run(name="second")
    second.wait_until_it_says("scheduling for")
    volcano.create(*members("one"))
    volcano.wait_until_bound(["one-0", "one-1", "one-2"])
    until(lambda: phases(volcano) == {"one": "Running", "two": "Pending"}, 30, second.tail)
    assert second.stop() == 0
    third = volcano.run(name="third")
    third.wait_until_it_says("scheduling for")
    volcano.delete(*members("one"))
    volcano.call("DELETE", f"{GROUPS}/one")
    until(lambda: phases(volcano) == {"two": "Inqueue"}, 30, third.tail)
    volcano.create(*members("two"))
    volcano.wait_until_bound(["two-0", "two-1", "two-2"])
    until(lambda: phases(volcano) == {"two": "Running"}, 30, third.tail)


def test_where_volcano_has_no_queues_a_group_is_let_in_at_once(volcano: Kube) -> None:
    volcano.call("DELETE", f"{QUEUES}/team")
    program = volcano.run("--only-namespace=default", name="first")
    volcano.create(group("one", "99"))
    until(lambda: phases(volcano) == {"one": "Inqueue"}, 30, program.tail)
    assert "conditions" not in status(volcano, "one")


def test_a_group_of_another_part_is_left_to_its_scheduler(volcano: Kube) -> None:
    volcano.create(node("n0", cpu=16))
    log = volcano.directory / "decisions"
    theirs = volcano.run("--only-namespace=elsewhere", f"--decision-log={log}", name="theirs")
    theirs.wait_until_it_says("scheduling for")
    volcano.create(group("one", "1"))
    ours = volcano.run("--only-namespace=default", "--scheduler-name=mooring", name="ours")
    until(lambda: phases(volcano) == {"one": "Inqueue"}, 30, ours.tail)
    assert theirs.stop() == 0
    assert log.read_text() == ""

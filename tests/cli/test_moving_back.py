"""Pods that spilled over from their pool go back to it, as `mooring schedule` decides."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from mooring.cli.main import run

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint: {{enabled: [{{name: NodePools, weight: 100}}]}}
    pluginConfig:
      - name: NodePools
        args:
          {most}
          pools: [{{name: r, nodeLabels: {{pool: research}}, namespaces: [research], {how}}}]
"""
Json = dict[str, Any]


def node(name: str, pool: str, cpu: str = "4") -> Json:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"pool": pool, "kubernetes.io/hostname": name}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(name: str, cpu: str, on: str = "", *, owner: str = "ReplicaSet", **spec: Any) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    controller = {"apiVersion": "v1", "kind": owner, "name": "web", "uid": "web", "controller": True}
    metadata = {"name": name, "namespace": "research", "labels": {"app": name, "set": "web"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | ({"ownerReferences": [controller]} if owner else {}),
        "spec": {"containers": [container], **({"nodeName": on} if on else {}), **spec},
    }


NAMESPACE: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research"}}


class Commands:
    """`mooring schedule` on a node of the pool, `ours`, and one of nobody's."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._directory, self._capsys = directory, capsys

    def schedule(
        self, *objects: Json, how: str = "movesBack: true", most: str = "", then: list[Json] | None = None
    ) -> Json:
        """What `mooring schedule` says in the end."""
        everything = [NAMESPACE, node("ours", "research"), node("other", "none", "8"), *objects]
        files = {"cluster.yaml": yaml.safe_dump_all(everything), "config.yaml": CONFIG.format(how=how, most=most)}
        files["then.yaml"] = yaml.safe_dump_all(then or [])
        for name, text in files.items():
            (self._directory / name).write_text(text)
        options = ["-f", str(self._directory / "cluster.yaml"), "--config", str(self._directory / "config.yaml")]
        options += ["--then", f"10m:{self._directory / 'then.yaml'}"] if then else []
        assert run(["schedule", *options, "-q", "-o", "json"]) == 0
        found: Json = msgspec.json.decode(self._capsys.readouterr().out)
        return found


@pytest.fixture
def mooring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(tmp_path, capsys)


def evicted(found: Json) -> list[tuple[str, str]]:
    return [(each["pod"], each["reason"]) for each in found["evicted"]]


def placed(found: Json) -> dict[str, str]:
    return {each["pod"]: each["node"] for each in found["placements"]}


REASON = "Moved back to node pool r: node ours has room"


@pytest.mark.parametrize("how", ["movesBack: true", "movesBack: true, policy: Reserved, reservedPercent: 50"])
def test_a_pod_that_spilled_over_goes_back_where_the_pool_says_so(mooring: Commands, how: str) -> None:
    back = mooring.schedule(pod("a", "2", "other"), how=how)
    stays = mooring.schedule(pod("a", "2", "other"), how=how.replace("true", "false"))

    assert (evicted(back), placed(back)) == ([("a", REASON)], {"a": "ours"})
    assert (evicted(stays), placed(stays)) == ([], {})


def test_it_goes_back_once_there_is_room(mooring: Commands) -> None:
    full = [pod("a", "2", "other"), pod("b", "3", "ours")]
    done = {**full[1], "status": {"phase": "Succeeded"}}

    assert evicted(mooring.schedule(*full)) == []
    steps = mooring.schedule(*full, then=[done])["steps"]
    assert [evicted(step["result"]) for step in steps] == [[], [("a", REASON)]]
    assert placed(steps[1]["result"]) == {"a": "ours"}


def test_who_waits_for_the_room_comes_first(mooring: Commands) -> None:
    found = mooring.schedule(pod("a", "2", "other"), pod("b", "3"))

    assert (evicted(found), placed(found)) == ([], {"b": "ours"})


GROUP = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "research"},
    "spec": {"minMember": 1},
}
QUOTA = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "ElasticQuota",
    "metadata": {"name": "q", "namespace": "research"},
    "spec": {"min": {"cpu": "10"}, "max": {"cpu": "10"}},
}


KUEUE = "kueue.x-k8s.io/v1beta1"
QUEUES: list[Json] = [
    {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "any"}},
    {
        "apiVersion": KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": "all"},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": 9}]}],
                }
            ],
        },
    },
    {
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": "q", "namespace": "research"},
        "spec": {"clusterQueue": "all"},
    },
]


def budget(**spec: Any) -> Json:
    selector = {"matchLabels": {"set": "web"}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "research"},
        "spec": {"selector": selector, **spec},
    }


def labelled(key: str, value: str) -> Json:
    found = pod("a", "2", "other")
    found["metadata"]["labels"][key] = value
    return found


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([pod("a", "2", "other", owner="")], id="nobody makes it anew"),
        pytest.param([pod("a", "2", "other", owner="Job")], id="a job would count it as a failure"),
        pytest.param([GROUP, labelled("scheduling.x-k8s.io/pod-group", "g")], id="a member of a gang"),
        pytest.param([*QUEUES, labelled("kueue.x-k8s.io/queue-name", "q")], id="a queued workload"),
        pytest.param([QUOTA, pod("a", "2", "other")], id="it shares a queue's quota"),
        pytest.param([budget(maxUnavailable=0), pod("a", "2", "other")], id="its budget has none to give"),
        pytest.param([pod("a", "5", "other")], id="its pool has no room for it"),
        pytest.param([pod("a", "2", "other", nodeSelector={"pool": "none"})], id="it wants to be elsewhere"),
        pytest.param([pod("a", "2", "other", schedulerName="theirs")], id="another scheduler's"),
        pytest.param([pod("a", "2", "other"), pod("b", "9")], id="another of its workload waits"),
        pytest.param([pod("a", "2", "ours")], id="it is where it belongs"),
    ],
)
def test_these_stay_where_they_are(mooring: Commands, objects: list[Json]) -> None:
    assert evicted(mooring.schedule(*objects)) == []


def test_a_budget_gives_as_many_as_it_has(mooring: Commands) -> None:
    pods = [pod(name, "1", "other") for name in ("a", "b", "c")]

    found = mooring.schedule(budget(minAvailable=2), *pods, most="mostMovesAtATime: 3")

    assert [name for name, _ in evicted(found)][:1] == ["a"]
    assert placed(found) == dict.fromkeys([name for name, _ in evicted(found)], "ours")


def test_no_more_are_on_their_way_than_the_settings_say(mooring: Commands) -> None:
    """`near` may start beside `a` once that is back: with one at a time, before `b` has gone to take the room."""
    near = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
    late = pod("near", "2", owner="", affinity={"podAffinity": near}, nodeSelector={"pool": "research"}, priority=-1)
    late["metadata"]["namespace"] = "research"
    lower = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": -1}
    late["spec"] |= {"priorityClassName": "low"}
    objects = [lower, pod("a", "2", "other"), pod("b", "2", "other"), late]

    one, two = (mooring.schedule(*objects, most=f"mostMovesAtATime: {most}") for most in (1, 2))

    assert (placed(one), [name for name, _ in evicted(one)]) == ({"a": "ours", "near": "ours"}, ["a"])
    assert (placed(two), [name for name, _ in evicted(two)]) == ({"a": "ours", "b": "ours"}, ["a", "b"])


def test_moves_that_are_none_are_refused(mooring: Commands, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG.format(how="movesBack: true", most="mostMovesAtATime: 0"))
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(node("n", "a")))

    assert run(["schedule", "-f", str(tmp_path / "cluster.yaml"), "--config", str(tmp_path / "config.yaml")]) == 2
    error = capsys.readouterr().err
    assert error.endswith(".args.mostMovesAtATime: expected a whole number above 0, found 0\n")
    assert error.count("\n") == 1

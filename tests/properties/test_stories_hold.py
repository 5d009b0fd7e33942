"""Random stories through the product, checked by somebody who sees only what went in and what came out.

No node has more than it holds, no gang runs in part, nothing waits that would fit, no queue has more than its quota,
and nobody is missing from the output.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mooring.drivers.offline.reading import Inputs, Step, read
from mooring.drivers.offline.story import moments
from mooring.model.loading.manifests import collector_paused
from mooring.observe.progress import Progress
from mooring.report.schedule import make_result

Json = dict[str, Any]
GANG = "scheduling.x-k8s.io/pod-group"
QUEUE = "kueue.x-k8s.io/queue-name"
QUOTA = 4
SECONDS = 20.0
"""Between steps: short of the time after which room is kept for a gang."""


# What goes in.


def node(name: str, cpu: int, *, taint: str = "") -> Json:
    spec = {"taints": [{"key": "broken", "effect": taint}]} if taint else {}
    status = {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": 50}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"host": name}},
        "spec": spec,
        "status": status,
    }


def pod(name: str, cpu: int, priority: int = 0, **more: Any) -> Json:
    metadata = {"name": name, "namespace": "a", **more.pop("metadata", {})}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"priority": priority, "containers": [container], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def gang(name: str, size: int, cpu: int, priority: int) -> list[Json]:
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "a"},
        "spec": {"minMember": size},
    }
    return [group, *(pod(f"{name}-{i}", cpu, priority, metadata={"labels": {GANG: name}}) for i in range(size))]


def job(name: str, pods: int, priority: int) -> Json:
    template = {"restartPolicy": "Never", **pod(name, 1, priority)["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "a", "labels": {QUEUE: "q"}},
        "spec": {"parallelism": pods, "completions": pods, "template": {"spec": template}},
    }


def tenants() -> list[Json]:
    quotas = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": QUOTA}]}]
    spec = {
        "namespaceSelector": {},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": quotas}],
    }
    kueue = "kueue.x-k8s.io/v1beta1"
    return [
        {"apiVersion": kueue, "kind": "ResourceFlavor", "metadata": {"name": "f"}},
        {"apiVersion": kueue, "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec},
        {
            "apiVersion": kueue,
            "kind": "LocalQueue",
            "metadata": {"name": "q", "namespace": "a"},
            "spec": {"clusterQueue": "q"},
        },
    ]


def gone(document: Json) -> Json:
    stamp = "2026-03-02T12:00:00Z"
    metadata = {**document["metadata"], "deletionTimestamp": stamp}
    return {"apiVersion": "v1", "kind": document["kind"], "metadata": metadata}


@st.composite
def stories(draw: st.DrawFn) -> list[list[Json]]:
    """Nodes and pods at first; then in each step somebody comes, ends, is deleted, or a node is tainted or lost."""
    nodes = [node(f"n-{i}", draw(st.integers(1, 4))) for i in range(draw(st.integers(1, 4)))]
    plain: list[Json] = []

    def newcomers(step: int) -> list[Json]:
        found: list[Json] = []
        for i in range(draw(st.integers(0, 3))):
            name, cpu, priority = f"s{step}-{i}", draw(st.integers(1, 3)), draw(st.sampled_from([0, 0, 5, 9]))
            match draw(st.sampled_from(["pod", "pod", "pinned", "lasting", "gang", "job"])):
                case "gang":
                    found += gang(name, draw(st.integers(2, 3)), cpu, priority)
                case "job":
                    found.append(job(name, draw(st.integers(1, 3)), priority))
                case "pinned":
                    where = {"host": draw(st.sampled_from(nodes))["metadata"]["name"]}
                    found.append(pod(name, cpu, priority, nodeSelector=where))
                case "lasting":
                    metadata = {"annotations": {"mooring.dev/duration": f"{draw(st.integers(5, 40))}s"}}
                    found.append(pod(name, cpu, priority, metadata=metadata))
                case _:
                    found.append(pod(name, cpu, priority))
        plain.extend(
            document for document in found if document["kind"] == "Pod" and "labels" not in document["metadata"]
        )
        return found

    bound = [
        pod(f"old-{i}", 1, nodeName=draw(st.sampled_from(nodes))["metadata"]["name"])
        for i in range(draw(st.integers(0, 2)))
    ]
    room = Counter({found["metadata"]["name"]: found["status"]["allocatable"]["cpu"] for found in nodes})
    bound = [found for found in bound if room[found["spec"]["nodeName"]] >= 2]
    story = [[*nodes, *tenants(), *bound, *newcomers(0)]]
    for step in range(1, draw(st.integers(1, 3)) + 1):
        happens: list[Json] = []
        somebody_ends = draw(st.booleans())
        if plain and somebody_ends:
            whom = plain.pop(draw(st.integers(0, len(plain) - 1)))
            done = {"apiVersion": "v1", "kind": "Pod", "metadata": whom["metadata"], "status": {"phase": "Succeeded"}}
            happens.append(draw(st.sampled_from([gone(whom), done])))
        if draw(st.integers(0, 4)) == 0:
            one = draw(st.sampled_from(nodes))
            taint = draw(st.sampled_from(["NoExecute", "NoSchedule", ""]))
            happens.append(node(one["metadata"]["name"], one["status"]["allocatable"]["cpu"], taint=taint))
        story.append([*happens, *newcomers(step)])
    return story


# What comes out.


def tell(story: list[list[Json]]) -> list[Json]:
    """What `mooring schedule --then` prints of each step, as data."""
    with tempfile.TemporaryDirectory() as folder, collector_paused():
        files = []
        for number, documents in enumerate(story):
            file = Path(folder) / f"{number}.yaml"
            file.write_text(yaml.safe_dump_all(documents) if documents else "")
            files.append(str(file))
        loaded = read(Inputs(files[:1], then=tuple(Step(file, SECONDS) for file in files[1:])), Progress())
        return [
            msgspec.to_builtins(
                make_result(
                    moment.offline.scheduler,
                    moment.picture,
                    moment.decisions,
                    None,
                    moment.ran,
                    moment.offline.lost,
                    moment.offline.ended,
                )
            )
            for moment in moments(loaded, Progress())
        ]


@dataclass
class Witness:
    """Follows a story by its documents and its output alone."""

    nodes: dict[str, Json] = field(default_factory=dict)
    pods: dict[str, Json] = field(default_factory=dict)
    """All that have to be somewhere, by name."""
    gangs: dict[str, int] = field(default_factory=dict)
    running: dict[str, str] = field(default_factory=dict)
    for_good: set[str] = field(default_factory=set)
    """Those that nobody makes again, once they have lost their node: they were bound when the story began."""
    disturbed: set[str] = field(default_factory=set)
    """Gangs of which members were taken away by other hands than the scheduler's."""

    def read(self, documents: Iterable[Json]) -> None:
        for document in documents:
            name, kind = document["metadata"]["name"], document["kind"]
            is_over = "deletionTimestamp" in document["metadata"] or ("status" in document and kind == "Pod")
            if kind == "Node":
                self.nodes[name] = document
            elif kind == "PodGroup":
                self.gangs[name] = document["spec"]["minMember"]
            elif kind == "Pod" and is_over:
                self.pods.pop(name, None)
                self.running.pop(name, None)
            elif kind == "Pod":
                self.pods[name] = document
                if "nodeName" in document["spec"]:
                    self.running[name] = document["spec"]["nodeName"]
                    self.for_good.add(name)

    def see(self, result: Json) -> None:
        for found in result["ended"]:
            self.pods.pop(found["pod"], None)
            self.running.pop(found["pod"], None)
        for found in result["lost"]:
            self.running.pop(found["pod"], None)
            self.disturbed.add(self._gang_of(found["pod"]))
        for found in result["evicted"]:
            self.running.pop(found["pod"], None)
        for found in (*result["lost"], *result["evicted"]):
            if found["pod"] in self.for_good:
                self.pods.pop(found["pod"], None)
        for found in result["placements"]:
            self.running[found["pod"]] = found["node"]

    def _gang_of(self, name: str) -> str:
        labels = self.pods.get(name, {}).get("metadata", {}).get("labels") or {}
        return str(labels.get(GANG, ""))

    def cpu(self, name: str) -> int:
        """Pods of jobs, which have no document of their own, ask for one."""
        return self.pods[name]["spec"]["containers"][0]["resources"]["requests"]["cpu"] if name in self.pods else 1

    def free(self, name: str) -> int:
        used = sum(self.cpu(found) for found, where in self.running.items() if where == name)
        return int(self.nodes[name]["status"]["allocatable"]["cpu"]) - used

    # The checks.

    def check(self, result: Json) -> None:
        assert all(self.free(name) >= 0 for name in self.nodes), "a node is over-allocated"
        members = Counter(self._gang_of(name) for name in self.running)
        for name, minimum in self.gangs.items():
            assert members[name] in (0, minimum) or name in self.disturbed, f"gang {name} runs in part"
        jobs = [name for name in self.running if name not in self.pods and name not in self.for_good]
        assert len(jobs) <= QUOTA, "a queue has more than its quota"
        self._check_nobody_is_missing(result)
        for found in result["waiting"]:
            assert not self._would_fit(found["pod"]), f"{found['pod']} waits and would fit"

    def _check_nobody_is_missing(self, result: Json) -> None:
        listed = [found["pod"] for part in ("waiting", "gated", "notOurs") for found in result[part]]
        assert len(set(listed)) == len(listed), "somebody is listed twice"
        assert not set(listed) & set(self.running), "somebody runs and waits"
        missing = set(self.pods) - set(listed) - set(self.running)
        assert not missing, f"missing from the output: {missing}"

    def _would_fit(self, name: str) -> bool:
        gang = self._gang_of(name)
        open_nodes = [found for found in self.nodes if not self.nodes[found]["spec"]]
        if gang in self.disturbed and gang:
            return False
        wanted = self.pods.get(name, {"spec": {}})["spec"].get("nodeSelector", {}).get("host")
        rooms = [self.free(found) // self.cpu(name) for found in open_nodes if wanted in (None, found)]
        return sum(max(0, room) for room in rooms) >= (self.gangs[gang] if gang else 1)


@given(stories())
def test_no_story_breaks_a_promise(story: list[list[Json]]) -> None:
    witness = Witness()

    for documents, result in zip(story, tell(story), strict=True):
        witness.read(documents)
        witness.see(result)
        witness.check(result)

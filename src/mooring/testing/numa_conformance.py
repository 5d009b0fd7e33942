"""Answer recorded scenarios of NUMA alignment: by a kubelet's managers, or by NodeResourceTopologyMatch.

See tests/golden-numa/README.md.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.assembly import assemble
from mooring.config.scheduler import parse_config
from mooring.engine.evaluate import evaluate
from mooring.model.api.pods import Pod
from mooring.model.defaults import default_pod_spec
from mooring.model.loading.manifests import build_manifests
from mooring.model.numa.ask import ask_of
from mooring.model.numa.documents import (
    KubeletDocument,
    MachineDocument,
    machine_of,
    settings_of,
)
from mooring.model.numa.kubelet import Admitted, ContainerShare, Free, Kubelet, Refused
from mooring.model.numa.machine import cpu_set, members, parse_cpu_set
from mooring.model.values.quantity import NANO, parse_quantity
from mooring.model.values.requests import Amounts, pod_requests
from mooring.state.loading import populate

Json = dict[str, Any]
FIRST_MISSING = ("pods", "cpu", "memory", "ephemeral-storage")


def is_numa(scenario: Json) -> bool:
    """Tell a scenario of NUMA alignment from the others."""
    return "machine" in scenario or "nodeResourceTopologies" in scenario


def answer_scenario(scenario: Json) -> Json:
    """Decide one scenario, in the form of its `expect`."""
    return _answer_for_kubelet(scenario) if "machine" in scenario else _answer_for_plugin(scenario)


def _answer_for_plugin(scenario: Json) -> Json:
    assembly = assemble(parse_config(_only(scenario["plugin"], scenario["args"]), "config"))
    cluster = assembly.new_cluster()
    documents = [*scenario["nodes"], *scenario["nodeResourceTopologies"], scenario["pod"]]
    manifests = build_manifests(documents, source=scenario["id"])
    pod = manifests.pods.pop()
    populate(cluster, manifests)
    found = evaluate(assembly.default_profile, cluster, cluster.shape_for(pod))
    names = [cluster.nodes.name(row) for row in found.rows.tolist()]
    refused = {name: found.verdict(position) for position, name in enumerate(names)}
    feasible = [name for name in names if refused[name] is None]
    scores = found.scores[scenario["plugin"]].tolist() if feasible else []
    return {
        "id": scenario["id"],
        "feasible": feasible,
        "rejected": {name: list(verdict.reasons) for name, verdict in refused.items() if verdict is not None},
        "scores": dict(zip(feasible, scores, strict=True)),
    }


def _only(plugin: str, args: Json) -> Json:
    """A configuration with this one plugin beside what a profile cannot do without."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {
                    "multiPoint": {"disabled": [{"name": "*"}]},
                    "queueSort": {"enabled": [{"name": "PrioritySort"}]},
                    "bind": {"enabled": [{"name": "DefaultBinder"}]},
                    "filter": {"enabled": [{"name": plugin}]},
                    "score": {"enabled": [{"name": plugin}]},
                },
                "pluginConfig": [{"name": plugin, "args": args}],
            }
        ],
    }


def _answer_for_kubelet(scenario: Json) -> Json:
    devices = {"devices": scenario.get("devices") or {}}
    machine = machine_of(msgspec.convert(scenario["machine"] | devices, MachineDocument))
    settings = settings_of(msgspec.convert(scenario["kubelet"], KubeletDocument))
    problem = settings.refuses_to_start(machine)
    if problem:
        return {"id": scenario["id"], "error": problem}
    node = _Node(Kubelet(machine, settings), scenario["allocatable"])
    steps = []
    for step in scenario["steps"]:
        if "remove" in step:
            node.remove(step["remove"])
        else:
            steps.append(node.admit(step["admit"]))
    return {"id": scenario["id"], "steps": steps, **node.rest()}


class _Node:
    """A kubelet, the pods on it, and the last check that it makes: whether they fit by their sums."""

    def __init__(self, kubelet: Kubelet, allocatable: dict[str, str]) -> None:
        self._kubelet = kubelet
        self._free: Free = kubelet.at_start()
        self._allocatable = {name: parse_quantity(text) for name, text in allocatable.items()}
        self._pods: dict[str, tuple[Admitted, Amounts]] = {}

    def remove(self, name: str) -> None:
        if name in self._pods:
            self._kubelet.release(self._free, self._pods.pop(name)[0])

    def admit(self, manifest: Json) -> Json:
        pod = msgspec.convert(manifest, Pod)
        default_pod_spec(pod.spec)
        name, requests = pod.metadata.name, pod_requests(pod)
        answer = self._kubelet.admit(self._free, ask_of(pod.spec))
        if isinstance(answer, Admitted):
            missing = self._missing(requests)
            if missing:
                self._kubelet.release(self._free, answer)
                answer = Refused(f"OutOf{missing}", f"not enough {missing}")
        if isinstance(answer, Refused):
            return {"pod": name, "admitted": False, "reason": answer.reason, "message": answer.message}
        self._pods[name] = answer, requests
        return {"pod": name, "admitted": True, "containers": {s.name: self._share(s) for s in answer.containers}}

    def _missing(self, requests: Amounts) -> str | None:
        full = self._kubelet.at_start().devices
        for name in sorted(requests, key=lambda n: (FIRST_MISSING.index(n) if n in FIRST_MISSING else 9, n)):
            limit = self._allocatable.get(name, 0)
            if name in full:
                # A kubelet raises what is allocatable to what its plugins have given away.
                limit = max(limit, (full[name] & ~self._free.devices[name]).bit_count() * NANO)
            used = sum(others.get(name, 0) for _, others in self._pods.values())
            if requests[name] and used + requests[name] > limit:
                return name
        return None

    def _share(self, share: ContainerShare) -> Json:
        return {
            "affinity": None if share.affinity is None else list(members(share.affinity)),
            "preferred": share.preferred,
            "cpus": cpu_set(share.cpus),
            "memory": [{"type": b.type, "numa": list(members(b.numa)), "size": b.size} for b in share.memory],
            "devices": {name: list(self._kubelet.device_names(name, taken)) for name, taken in share.devices.items()},
        }

    def rest(self) -> Json:
        free = self._free
        return {
            "sharedCPUs": cpu_set(free.cpus),
            "freeMemory": {str(number): dict(node.free) for number, node in free.memory.items()},
            "freeDevices": {name: list(self._kubelet.device_names(name, left)) for name, left in free.devices.items()},
        }


def differences(expected: Json, answer: Json) -> Iterator[tuple[str, Any, Any]]:
    """The first step that differs, or what is left at the end; words of messages do not count."""
    if "steps" not in expected and "error" not in expected:
        for topic in ("feasible", "rejected", "scores"):
            want, have = _comparable_topic(expected, topic), _comparable_topic(answer, topic)
            if want != have:
                yield topic, want, have
        return
    if expected.get("error") or answer.get("error"):
        if bool(expected.get("error")) != bool(answer.get("error")):
            yield "error", expected.get("error"), answer.get("error")
        return
    for want, have in zip(expected["steps"], answer["steps"], strict=True):
        if _comparable_step(want) != _comparable_step(have):
            yield f"step {want['pod']}", _comparable_step(want), _comparable_step(have)
            return
    if _comparable_rest(expected) != _comparable_rest(answer):
        yield "left free", _comparable_rest(expected), _comparable_rest(answer)


def _comparable_topic(answer: Json, topic: str) -> Any:
    found = answer.get(topic) or {}
    if topic == "feasible":
        return sorted(found)
    return {node: sorted(reasons) for node, reasons in found.items()} if topic == "rejected" else found


def _comparable_step(step: Json) -> Json:
    if not step["admitted"]:
        return {"pod": step["pod"], "reason": step["reason"]}
    return {"pod": step["pod"], "containers": {name: _comparable_share(s) for name, s in step["containers"].items()}}


def _comparable_share(share: Json) -> Json:
    return {
        "affinity": sorted(share.get("affinity") or ()) or None,
        "preferred": bool(share.get("preferred")),
        "cpus": parse_cpu_set(share.get("cpus") or ""),
        "memory": sorted((block["type"], sorted(block["numa"]), block["size"]) for block in share.get("memory") or ()),
        "devices": {name: sorted(ids) for name, ids in (share.get("devices") or {}).items() if ids},
    }


def _comparable_rest(answer: Json) -> Json:
    return {
        "sharedCPUs": parse_cpu_set(answer.get("sharedCPUs") or ""),
        "freeMemory": answer.get("freeMemory") or {},
        "freeDevices": {name: sorted(ids) for name, ids in (answer.get("freeDevices") or {}).items() if ids},
    }

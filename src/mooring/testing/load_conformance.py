"""Answer recorded scenarios of load-aware scheduling. See tests/golden-load/README.md."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mooring.assembly import assemble
from mooring.config.scheduler import parse_config
from mooring.engine.asking import normalized
from mooring.engine.plugin import FilterAnswers
from mooring.model.api.koordinator import NodeMetric
from mooring.model.api.meta import timestamp_seconds, timestamp_text
from mooring.model.events import NodeLoadSeen
from mooring.model.load.koordinator import from_node_metric
from mooring.model.load.load_watcher import WatcherMetrics, from_load_watcher
from mooring.model.load.reports import NodeReport
from mooring.model.loading.manifests import build_manifests
from mooring.state.loading import populate
from mooring.testing.asking import prepare

Json = dict[str, Any]
LOAD_AWARE = "LoadAwareScheduling"
FIELDS = ("feasible", "rejected", "scores")


def is_load(scenario: Json) -> bool:
    """Tell a scenario of load-aware scheduling from the others."""
    return "watcher" in scenario or ("nodeMetrics" in scenario and "pod" in scenario)


def answer_scenario(scenario: Json) -> Json:
    """Ask one plugin about one pod, in the form of its `expect`."""
    name = scenario.get("plugin", LOAD_AWARE)
    assembly = assemble(parse_config(_config(name, scenario["args"]), scenario["id"]))
    plugin = next(found for found in assembly.default_profile.plugins if found.name == name)
    cluster = assembly.new_cluster()
    pods = [_bound(pod, scenario.get("boundAt") or {}) for pod in scenario["pods"]]
    manifests = build_manifests([*scenario["nodes"], *pods, scenario["pod"]], source=scenario["id"])
    pod = manifests.pods.pop()
    populate(cluster, manifests)
    cluster.observe(*map(NodeLoadSeen, _reports(scenario)))
    cluster.pass_time(timestamp_seconds(scenario.get("now")) or 0.0)
    shape = cluster.shape_for(pod)
    asked, nodes = prepare(plugin, cluster, shape), cluster.rows()
    rejected = {}
    if isinstance(plugin, FilterAnswers):
        for node, code in zip(nodes.names, asked.codes(nodes).tolist(), strict=True):
            if code:
                rejected[node] = list(plugin.rejection(shape, code).reasons)
    raw = asked.raw(nodes)
    scores = [0] * len(nodes) if raw is None else normalized(plugin, raw).tolist()  # type: ignore[arg-type]
    return {
        "id": scenario["id"],
        "feasible": [node for node in nodes.names if node not in rejected],
        "rejected": rejected,
        "scores": dict(zip(nodes.names, scores, strict=True)),
    }


def _config(name: str, args: Json) -> Json:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"plugins": {"multiPoint": {"enabled": [{"name": name}]}}, "pluginConfig": [{"name": name, "args": args}]}
        ],
    }


def _bound(pod: Json, bound_at: Mapping[str, float]) -> Json:
    """A pod with the time at which the scheduler saw it bound, as the API server would have written it."""
    at = bound_at.get(pod["metadata"]["name"])
    if at is None:
        return pod
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp_text(at)}
    return {**pod, "status": {**pod.get("status", {}), "conditions": [scheduled]}}


def _reports(scenario: Json) -> list[NodeReport]:
    if "watcher" in scenario:
        return list(from_load_watcher(msgspec.convert(scenario["watcher"], WatcherMetrics)))
    return [from_node_metric(found) for found in msgspec.convert(scenario["nodeMetrics"], list[NodeMetric])]


def differences(expected: Json, answer: Json) -> Iterator[tuple[str, Any, Any]]:
    for field in FIELDS:
        want, have = expected.get(field) or {}, answer[field] or {}
        if field == "feasible":
            want, have = sorted(want), sorted(have)
        if want != have:
            yield field, want, have

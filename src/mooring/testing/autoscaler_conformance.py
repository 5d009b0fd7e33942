"""Answer recorded scenarios of the Cluster Autoscaler. See tests/golden-autoscaler/README.md."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import msgspec

from mooring.actions.capacity.autoscaler.deletion_budgets import Deletions
from mooring.actions.capacity.autoscaler.expanders import keep_best
from mooring.actions.capacity.autoscaler.removal import Unremovable
from mooring.actions.capacity.autoscaler.scale_down import BEING_DELETED, Memory, ScaleDown, scale_down
from mooring.actions.capacity.autoscaler.scale_up import ScaleUp, scale_up
from mooring.actions.capacity.autoscaler.situation import ControllerKey, NodeGroup, Prices, Situation
from mooring.assembly import assemble
from mooring.config.autoscaler import AutoscalerSettings, GroupOptions, ScaleDownSettings, ScaleUpSettings
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget
from mooring.model.api.workloads import DaemonSet

Json = dict[str, Any]

GPU_LABEL = "TestGPULabel/accelerator"
EXPANDERS = ("least-nodes", "least-waste", "most-pods", "price", "priority")
CONTROLLERS = {
    "replicaSets": "ReplicaSet",
    "statefulSets": "StatefulSet",
    "jobs": "Job",
    "replicationControllers": "ReplicationController",
    "daemonSets": "DaemonSet",
}


def is_autoscaling(scenario: Json) -> bool:
    """Tell a scenario of the Cluster Autoscaler from the others."""
    return scenario.get("kind") in ("scale-up", "scale-down") and "nodeGroups" in scenario


def answer_scenario(scenario: Json, *, counts_amounts: bool = True) -> Json:
    """Decide one scenario, in the form of its `expect`; see `scale_up` for `counts_amounts`."""
    situation, settings = read_situation(scenario), read_settings(scenario)
    assembly = assemble()
    cluster = assembly.new_cluster()
    situation.populate(cluster)
    answer: Json = {"id": scenario["id"]}
    if scenario["kind"] == "scale-up":
        grown = scale_up(cluster, assembly.default_profile, situation, settings, counts_amounts=counts_amounts)
        return answer | _told(grown, situation)
    loops, memory, begin = [], Memory(), situation.now
    for seconds in scenario["loops"]:
        situation = replace(situation, now=begin + seconds)
        found = scale_down(
            cluster,
            assembly.default_profile,
            situation,
            settings,
            memory,
            under_way=_under_way(scenario),
            sorted_at=begin + scenario["loops"][0],
        )
        memory = found.memory
        loops.append(_looked(seconds, found))
    return answer | {"loops": loops}


def read_situation(scenario: Json) -> Situation:
    """The cluster that a scenario describes."""
    now = timestamp_seconds(scenario["now"])
    assert now is not None
    return Situation(
        now=now,
        groups=[_group(found) for found in scenario["nodeGroups"]],
        nodes=msgspec.convert(scenario.get("nodes") or [], list[Node]),
        pods=msgspec.convert(scenario.get("pods") or [], list[Pod]),
        pending=msgspec.convert(scenario.get("pending") or [], list[Pod]),
        daemon_sets=msgspec.convert(scenario.get("daemonSets") or [], list[DaemonSet]),
        controllers={
            ControllerKey(kind, found["metadata"]["namespace"], found["metadata"]["name"]): found["spec"].get(
                "replicas"
            )
            for field, kind in CONTROLLERS.items()
            for found in scenario.get(field) or ()
        },
        budgets=msgspec.convert(scenario.get("podDisruptionBudgets") or [], list[PodDisruptionBudget]),
        prices=Prices(**(scenario.get("prices") or {})),
    )


def _group(found: Json) -> NodeGroup:
    template = found.get("template")
    nodes = tuple(found.get("nodes") or ())
    return NodeGroup(
        name=found["id"],
        min_size=found["min"],
        max_size=found["max"],
        nodes=nodes,
        target=found.get("target", len(nodes)),
        template=None if template is None else msgspec.convert(template, Node),
        price=found.get("price") or 0.0,
        options=_options(found.get("options") or {}),
    )


def _options(given: Json) -> GroupOptions:
    return GroupOptions(
        given.get("scaleDownUtilizationThreshold"),
        given.get("scaleDownGpuUtilizationThreshold"),
        given.get("scaleDownUnneededTime"),
        given.get("scaleDownUnreadyTime"),
        given.get("ignoreDaemonSetsUtilization"),
        given.get("zeroOrMaxNodeScaling", False),
    )


SCALE_UP_FIELDS = {
    "expander": "expanders",
    "balanceSimilarNodeGroups": "balance_similar_node_groups",
    "balancingIgnoreLabels": "balancing_ignore_labels",
    "maxNodesTotal": "max_nodes_total",
    "max": "max_totals",
    "maxNodesPerScaleUp": "max_nodes_per_scale_up",
    "allOrNothing": "all_or_nothing",
    "fastpathBinpacking": "fastpath_binpacking",
    "forceDaemonSets": "force_daemon_sets",
    "expendablePodsPriorityCutoff": "expendable_pods_priority_cutoff",
}
SCALE_DOWN_FIELDS = {
    "scaleDownUtilizationThreshold": "utilization_threshold",
    "scaleDownGpuUtilizationThreshold": "gpu_utilization_threshold",
    "scaleDownUnneededTime": "unneeded_seconds",
    "scaleDownUnreadyTime": "unready_seconds",
    "ignoreDaemonSetsUtilization": "ignore_daemon_sets_utilization",
    "ignoreMirrorPodsUtilization": "ignore_mirror_pods_utilization",
    "scaleDownUnreadyEnabled": "unready_enabled",
    "maxScaleDownParallelism": "max_parallelism",
    "maxDrainParallelism": "max_drain_parallelism",
    "unremovableNodeRecheckTimeout": "unremovable_recheck_seconds",
    "skipNodesWithSystemPods": "skip_nodes_with_system_pods",
    "skipNodesWithLocalStorage": "skip_nodes_with_local_storage",
    "skipNodesWithCustomControllerPods": "skip_nodes_with_custom_controller_pods",
    "minReplicaCount": "min_replica_count",
    "blockingSystemPodDisruptionTimeout": "blocking_system_pod_disruption_seconds",
    "min": "min_totals",
}


def read_settings(scenario: Json) -> AutoscalerSettings:
    """The flags that a scenario has."""
    given: Json = scenario.get("settings") or {}
    up = {name: given[field] for field, name in SCALE_UP_FIELDS.items() if field in given}
    if "expanders" in up:
        up["expanders"] = tuple(up["expanders"])
    if "balancing_ignore_labels" in up:
        up["balancing_ignore_labels"] = frozenset(up["balancing_ignore_labels"])
    down = {name: given[field] for field, name in SCALE_DOWN_FIELDS.items() if field in given}
    priorities = {
        int(priority): tuple(re.compile(text) for text in found)
        for priority, found in (scenario.get("priorities") or {}).items()
    }
    return AutoscalerSettings(
        replace(ScaleUpSettings(), **up), replace(ScaleDownSettings(), **down), priorities, GPU_LABEL
    )


# Scale-up.


def _told(found: ScaleUp, situation: Situation) -> Json:
    answer: Json = {
        "result": found.result,
        "expendable": _counts(found.expendable),
        "fits": _counts(pod for pod in situation.pending if pod.key in found.fits),
        "daemons": _counts(found.daemons),
        "options": {
            option.group.name: {
                "nodes": option.nodes,
                "pods": _counts(pod for pods, count in option.helped for pod in pods.pods[:count]),
                "similar": [group.name for group in option.similar],
            }
            for option in found.options
        },
        "scaleUp": {growth.group.name: [growth.group.target, growth.size] for growth in found.growths},
        "triggered": _counts(found.triggered),
        "awaiting": _counts(found.awaiting),
        "remain": {
            _app(pod): {"rejected": _lists(why.rejected), "skipped": _lists(why.skipped)}
            for why in found.remain
            for pod in why.pods
        },
    }
    if found.options and found.market is not None:
        market = found.market
        answer["expanders"] = {
            name: [option.group.name for option in keep_best(name, found.options, market)] for name in EXPANDERS
        }
    return answer


def _app(pod: Pod) -> str:
    app = (pod.metadata.labels or {}).get("app")
    return pod.metadata.name if app in (None, "odd") else app


def _counts(pods: Iterable[Pod]) -> dict[str, int]:
    return dict(Counter(_app(pod) for pod in pods))


def _lists(reasons: Any) -> dict[str, list[str]]:
    return {group: list(found) for group, found in reasons.items()}


# Scale-down.


def _under_way(scenario: Json) -> Deletions:
    found = scenario.get("deleting") or ()
    return Deletions(
        tuple(each["node"] for each in found if not each.get("drain")),
        tuple(each["node"] for each in found if each.get("drain")),
    )


def _looked(seconds: float, found: ScaleDown) -> Json:
    return {
        "at": seconds,
        "candidates": list(found.candidates),
        "unneeded": sorted(found.unneeded),
        "utilization": {name: [used.resource, used.share] for name, used in found.utilization.items()},
        "unremovable": {name: _why(each) for name, each in found.unremovable.items() if each.reason != BEING_DELETED},
        "removable": {"empty": list(found.removable.empty), "drain": list(found.removable.drain)},
        "delete": {"empty": list(found.delete.empty), "drain": list(found.delete.drain)},
    }


def _why(found: Unremovable) -> list[str]:
    if found.blocked is None:
        return [found.reason]
    return [found.reason, found.blocked.pod.key, found.blocked.reason]


# Comparing.


def differences(expected: Json, answer: Json) -> Iterator[tuple[str, Any, Any]]:
    """The fields in which an answer differs."""
    if "loops" in expected:
        for want, have in zip(expected["loops"], answer["loops"], strict=True):
            yield from _loop_differences(want, have)
        return
    want, have = _comparable(expected), _comparable(answer)
    for field in want:
        if want[field] != have[field]:
            yield field, want[field], have[field]


def _comparable(answer: Json) -> Json:
    fields = ("expendable", "fits", "daemons", "triggered", "awaiting")
    found: Json = {field: {k: n for k, n in (answer.get(field) or {}).items() if n} for field in fields}
    found["result"] = answer.get("result")
    found["options"] = {
        group: (option["nodes"], option.get("pods") or {}, sorted(option.get("similar") or ()))
        for group, option in (answer.get("options") or {}).items()
    }
    found["expanders"] = {name: sorted(groups) for name, groups in (answer.get("expanders") or {}).items()}
    found["scaleUp"] = {group: list(sizes) for group, sizes in (answer.get("scaleUp") or {}).items()}
    found["remain"] = {
        pod: {side: {g: sorted(r) for g, r in (why.get(side) or {}).items()} for side in ("rejected", "skipped")}
        for pod, why in (answer.get("remain") or {}).items()
    }
    return found


def _loop_differences(want: Json, have: Json) -> Iterator[tuple[str, Any, Any]]:
    """The fields of one look that differ; where chance decides, any choice of the right size is right."""
    undecided = set[str]()
    pairs: list[tuple[str, Any, Any]] = [
        ("candidates", want["candidates"], have["candidates"]),
        ("unneeded", sorted(want["unneeded"]), sorted(have["unneeded"])),
        ("utilization", _rounded(want["utilization"]), _rounded(have["utilization"])),
    ]
    for which in ("removable", "delete"):
        for kind in ("empty", "drain"):
            wanted, found = want[which][kind], have[which][kind]
            if isinstance(wanted, dict):
                undecided |= set(wanted["from"])
            if not _is_choice(wanted, found):
                pairs.append((f"{which}.{kind}", wanted, found))
    reasons = {n: why for n, why in have["unremovable"].items() if n in want["unremovable"] or n not in undecided}
    pairs.append(("unremovable", want["unremovable"], reasons))
    yield from ((f"at {want['at']} {field}", one, other) for field, one, other in pairs if one != other)


def _rounded(shares: Json) -> Json:
    return {node: (resource, round(float(share), 9)) for node, (resource, share) in shares.items()}


def _is_choice(wanted: Any, found: list[str]) -> bool:
    if not isinstance(wanted, dict):
        return sorted(wanted) == sorted(found)
    if len(set(found)) != len(found) or len(found) != wanted["count"] or not set(found) <= set(wanted["from"]):
        return False
    return "groups" not in wanted or Counter(node.rsplit("-", 1)[0] for node in found) == wanted["groups"]

"""Answer recorded scenarios of right-sizing. See tests/golden-vpa/README.md."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from mooring.model.api.autoscaling import VerticalPodAutoscaler
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.quotas.objects import LimitRange
from mooring.model.rightsizing.amounts import CONTROLLED
from mooring.model.rightsizing.applying import resources_for_pod
from mooring.model.rightsizing.limit_ranges import bounds_of
from mooring.model.rightsizing.recommendations import (
    Recommendation,
    cap_by_policy,
    cap_for_pod,
    container_policy,
    is_off,
    read_recommendations,
)
from mooring.model.rightsizing.updating import pods_to_update
from mooring.state.usage.containers import ContainerUsage
from mooring.state.usage.estimates import Estimates, EstimateSettings, estimate

Json = dict[str, Any]
FIELDS = ("recommendation", "pods", "updates")


def is_right_sizing(scenario: Json) -> bool:
    """Tell a scenario of right-sizing from the others."""
    return "vpa" in scenario


def answer_scenario(scenario: Json) -> Json:
    """Decide one scenario, in the form of its `expect`."""
    vpa = msgspec.convert(scenario["vpa"], VerticalPodAutoscaler)
    pods = msgspec.convert(scenario["pods"], list[Pod])
    limit_ranges = msgspec.convert(scenario.get("limitRanges") or [], list[LimitRange])
    now = timestamp_seconds(scenario["now"])
    assert now is not None
    answer: Json = {"id": scenario["id"]}
    if scenario.get("events") is None:
        recommendations = read_recommendations(vpa.status.recommendation) or []
    else:
        recommendations = _recommend(vpa, pods, scenario["events"], now)
        answer["recommendation"] = [_written(one) for one in recommendations]
    in_container, in_pod = bounds_of(limit_ranges, "Container"), bounds_of(limit_ranges, "Pod")

    def cap(pod: Pod) -> list[Recommendation]:
        return cap_for_pod(recommendations, vpa.spec.resource_policy, pod, in_container, in_pod)

    answer["pods"] = {
        pod.metadata.name: [
            {"container": one.container, "requests": one.requests, "limits": one.limits}
            for one in resources_for_pod(pod, vpa, cap(pod), in_container)
        ]
        for pod in pods
    }
    answer["updates"] = [pod.metadata.name for pod in pods_to_update(vpa, pods, cap, now)]
    return answer


def differences(expected: Json, answer: Json) -> Iterator[tuple[str, Any, Any]]:
    for field in FIELDS:
        if field in expected and expected[field] != answer.get(field):
            yield field, expected[field], answer.get(field)


def _recommend(vpa: VerticalPodAutoscaler, pods: list[Pod], events: list[Json], now: float) -> list[Recommendation]:
    usage = ContainerUsage()
    names = sorted({container.name for pod in pods for container in pod.spec.containers})
    aggregates = {name: usage.add_aggregate() for name in names}
    containers = {
        (pod.metadata.name, container.name): usage.add_container(aggregates[container.name])
        for pod in pods
        for container in pod.spec.containers
    }
    for event in events:
        row = containers.get((event["pod"], event["container"]))
        if row is None:
            continue
        rows, times = np.array([row]), np.array([now + event["at"]], np.float64)
        if event.get("cpu") is not None:
            usage.see_cpu(rows, times, np.array([event["cpu"] / 1000.0]))
        if event.get("memory") is not None:
            usage.see_memory(rows, times, np.array([event["memory"]]))
        if event.get("oom") is not None:
            usage.see_out_of_memory(row, now + event["at"], event["oom"])
    policy = vpa.spec.resource_policy
    sized = [name for name in names if not is_off(policy, name)]
    rows = np.array([aggregates[name] for name in sized], np.intp)
    estimates = estimate(usage, rows, np.full(len(sized), len(sized), np.int64), EstimateSettings())
    raw = [_recommendation(vpa, name, position, estimates) for position, name in enumerate(sized)]
    return cap_by_policy(raw, policy, {})


def _recommendation(vpa: VerticalPodAutoscaler, name: str, position: int, estimates: Estimates) -> Recommendation:
    own = container_policy(vpa.spec.resource_policy, name)
    controlled = own.controlled_resources if own is not None else None
    kept = CONTROLLED if controlled is None else [one for one in CONTROLLED if one in controlled]
    target, lower, upper = (
        {one: int(amounts[one][position]) for one in kept}
        for amounts in (estimates.target, estimates.lower_bound, estimates.upper_bound)
    )
    return Recommendation(name, target, lower, upper, dict(target))


def _written(one: Recommendation) -> Json:
    return {
        "container": one.container,
        "target": one.target,
        "lowerBound": one.lower_bound,
        "upperBound": one.upper_bound,
        "uncappedTarget": one.uncapped_target,
    }

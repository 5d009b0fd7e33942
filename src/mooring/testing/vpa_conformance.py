"""Answer recorded scenarios of right-sizing. See tests/golden-vpa/README.md."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from mooring.model.api.autoscaling import VerticalPodAutoscaler
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.quotas.objects import LimitRange
from mooring.model.rightsizing.applying import resources_for_pod
from mooring.model.rightsizing.limit_ranges import bounds_of
from mooring.model.rightsizing.recommendations import (
    Recommendation,
    cap_for_pod,
    read_recommendations,
)
from mooring.model.rightsizing.updating import pods_to_update
from mooring.state.usage.recommender import Recommender

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
    recommender, key = Recommender(), vpa.metadata.name
    names = sorted({container.name for pod in pods for container in pod.spec.containers})
    known = {(pod.metadata.name, container.name) for pod in pods for container in pod.spec.containers}
    for event in events:
        pod, container, at = event["pod"], event["container"], now + event["at"]
        if (pod, container) not in known:
            continue
        row = recommender.watch(key, pod, container)
        rows, times = np.array([row]), np.array([at], np.float64)
        if event.get("cpu") is not None:
            recommender.usage.see_cpu(rows, times, np.array([event["cpu"] / 1000.0]))
        if event.get("memory") is not None:
            recommender.usage.see_memory(rows, times, np.array([event["memory"]]))
        if event.get("oom") is not None:
            recommender.usage.see_out_of_memory(row, at, event["oom"])
    return recommender.recommend(key, names, vpa.spec.resource_policy)


def _written(one: Recommendation) -> Json:
    return {
        "container": one.container,
        "target": one.target,
        "lowerBound": one.lower_bound,
        "upperBound": one.upper_bound,
        "uncappedTarget": one.uncapped_target,
    }

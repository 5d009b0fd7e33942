"""A DeschedulerPolicy of v1alpha1 is read as it is, and means what the same policy of v1alpha2 means."""

from typing import Any

import pytest

from mooring.config.descheduler import (
    HighNodeUtilizationArgs,
    LowNodeUtilizationArgs,
    Names,
    NodeTaintsArgs,
    PodLifeTimeArgs,
    PriorityThreshold,
    RemoveFailedPodsArgs,
    TooManyRestartsArgs,
    TopologySpreadArgs,
)
from mooring.config.descheduler_v1alpha1 import parse_any_descheduler_policy
from mooring.errors import ConfigError


def old_policy(strategies: dict[str, Any], **policy: Any) -> dict[str, Any]:
    given = {"apiVersion": "descheduler/v1alpha1", "kind": "DeschedulerPolicy", "strategies": strategies}
    return {**given, **policy}


def one_strategy(name: str, **params: Any) -> dict[str, Any]:
    return old_policy({name: {"enabled": True, "params": params}})


def args_of(name: str, **params: Any) -> object:
    (profile,) = parse_any_descheduler_policy(one_strategy(name, **params), "policy.yaml").profiles
    ((found, args),) = (*profile.deschedule, *profile.balance)
    assert found == name
    return args


def test_strategies_that_are_enabled_become_profiles_with_what_holds_for_all_pods() -> None:
    policy = parse_any_descheduler_policy(
        old_policy(
            {
                "RemoveDuplicates": {"enabled": True},
                "RemovePodsViolatingNodeTaints": {
                    "enabled": True,
                    "params": {"nodeFit": True, "thresholdPriority": 1000},
                },
                "PodLifeTime": {"enabled": False},
            },
            nodeSelector="pool=a",
            evictLocalStoragePods=True,
            ignorePvcPods=True,
            maxNoOfPodsToEvictPerNode=3,
            maxNoOfPodsToEvictPerNamespace=5,
            maxNoOfPodsToEvictTotal=7,
        ),
        "policy.yaml",
    )

    duplicates, taints = policy.profiles
    assert (duplicates.name, [name for name, _ in duplicates.balance]) == (
        "strategy-RemoveDuplicates-profile",
        ["RemoveDuplicates"],
    )
    assert [name for name, _ in taints.deschedule] == ["RemovePodsViolatingNodeTaints"]
    assert (taints.evictor.node_fit, taints.evictor.priority_threshold) == (True, PriorityThreshold(value=1000))
    assert "PodsWithLocalStorage" not in taints.evictor.protections and "PodsWithPVC" in taints.evictor.protections
    assert (policy.node_selector, policy.most_per_node, policy.most_per_namespace, policy.most_in_all) == (
        "pool=a",
        3,
        5,
        7,
    )


def test_each_strategy_reads_its_own_parameters() -> None:
    use = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}, "numberOfNodes": 2}
    life = {"maxPodLifeTimeSeconds": 60, "podStatusPhases": ["Pending"]}
    restarts = {"podRestartThreshold": 9, "includingInitContainers": True}

    assert args_of("LowNodeUtilization", nodeResourceUtilizationThresholds=use) == LowNodeUtilizationArgs(
        thresholds={"cpu": 20}, target_thresholds={"cpu": 50}, number_of_nodes=2
    )
    assert args_of(
        "HighNodeUtilization", nodeResourceUtilizationThresholds={"thresholds": {"cpu": 20}}
    ) == HighNodeUtilizationArgs(thresholds={"cpu": 20})
    assert args_of("PodLifeTime", podLifeTime=life, namespaces={"include": ["a"]}) == PodLifeTimeArgs(
        max_pod_life_time_seconds=60, states=["Pending"], namespaces=Names(include=["a"])
    )
    assert args_of("RemovePodsHavingTooManyRestarts", podsHavingTooManyRestarts=restarts) == TooManyRestartsArgs(
        pod_restart_threshold=9, including_init_containers=True
    )
    assert args_of("RemoveFailedPods", failedPods={"reasons": ["OOM"]}) == RemoveFailedPodsArgs(
        min_pod_lifetime_seconds=0, reasons=["OOM"]
    )
    assert args_of("RemovePodsViolatingNodeTaints", excludedTaints=["a"]) == NodeTaintsArgs(excluded_taints=["a"])
    assert args_of("RemovePodsViolatingTopologySpreadConstraint", includeSoftConstraints=True) == TopologySpreadArgs(
        constraints=["DoNotSchedule", "ScheduleAnyway"]
    )


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        pytest.param(
            one_strategy("LowNodeUtilisation"),
            "strategies.LowNodeUtilisation: expected a strategy of the descheduler (did you mean LowNodeUtilization?), "
            'found "LowNodeUtilisation"',
            id="unknown strategy",
        ),
        pytest.param(
            one_strategy("HighNodeUtilization", nodeResourceUtilizationThresholds={"thresholds": {"cpu": 120}}),
            "strategies.HighNodeUtilization.params.nodeResourceUtilizationThresholds.thresholds.cpu: expected a "
            "percentage from 0 to 100, found 120",
            id="threshold above 100",
        ),
        pytest.param(
            one_strategy("RemoveDuplicates", thresholdPriority=5, thresholdPriorityClassName="high"),
            "strategies.RemoveDuplicates.params: expected thresholdPriority or thresholdPriorityClassName, found both",
            id="two thresholds",
        ),
        pytest.param(
            old_policy({}) | {"apiVersion": "descheduler/v1beta1"},
            'apiVersion: expected descheduler/v1alpha2, found "descheduler/v1beta1"',
            id="wrong version",
        ),
    ],
)
def test_a_wrong_policy_is_refused_in_one_line(policy: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_any_descheduler_policy(policy, "policy.yaml")

    assert str(refused.value) == f"policy.yaml: {message}"

"""Queueing objects as read: both versions, the defaults, and one clear line for what is wrong."""

from typing import Any

import msgspec
import pytest

from mooring.errors import ManifestError
from mooring.model.api.kueue import (
    ClusterQueue,
    Cohort,
    LocalQueue,
    PodSet,
    QueueingKind,
    Topology,
    Workload,
    default_queueing,
)
from mooring.model.places import Place
from mooring.model.validation.kueue import validate_cohort_tree, validate_queueing
from mooring.testing.queueing_builders import (
    make_cohort,
    make_group,
    make_pod_set,
    make_queue,
    make_quota,
    make_workload,
)

PLACE = Place("queues.yaml", 1)


def complaint(found: QueueingKind) -> str:
    with pytest.raises(ManifestError) as raised:
        validate_queueing(found, PLACE)
    # Whether a kind is shown with a namespace is decided in one place for all kinds, and not here.
    return str(raised.value).removeprefix("queues.yaml: document 1 ").replace("default/", "", 1)


def queue_from(spec: dict[str, Any]) -> ClusterQueue:
    return msgspec.convert({"metadata": {"name": "team"}, "spec": spec}, ClusterQueue)


def test_an_empty_queue_gets_the_defaults_of_its_kind() -> None:
    queue = queue_from({})

    default_queueing(queue)

    assert msgspec.to_builtins(queue.spec) == {
        "queueingStrategy": "BestEffortFIFO",
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {
            "withinClusterQueue": "Never",
            "reclaimWithinCohort": "Never",
            "borrowWithinCohort": {"policy": "Never"},
        },
        "stopPolicy": "None",
        "fairSharing": {"weight": 1},
    }


def test_the_older_version_is_read_as_the_newer_one() -> None:
    old = queue_from({"cohort": "all", "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}})
    new = queue_from(
        {
            "cohortName": "all",
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"},
        }
    )
    workload = msgspec.convert(
        {"spec": {"priorityClassName": "high", "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass"}}, Workload
    )

    for found in (old, new, workload):
        default_queueing(found)

    assert old == new
    reference = workload.spec.priority_class_ref
    assert reference is not None and (reference.kind, reference.name) == ("WorkloadPriorityClass", "high")


def test_defaulting_twice_changes_nothing_more() -> None:
    queue = queue_from({"cohort": "all"})
    default_queueing(queue)
    once = msgspec.to_builtins(queue)

    default_queueing(queue)

    assert msgspec.to_builtins(queue) == once


def gpus(nominal: int | str) -> Any:
    return make_group(a100=make_quota(nominal, resource="nvidia.com/gpu"))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            make_queue("team", make_group(default=make_quota("-1"))),
            "(ClusterQueue team): spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: expected a quantity "
            'of at least 0, found "-1"',
            id="negative quota",
        ),
        pytest.param(
            make_queue("team", make_group(default=make_quota(1)), make_group(other=make_quota(1))),
            "(ClusterQueue team): spec.resourceGroups[1].coveredResources: expected each resource in one group "
            "only, found cpu also in spec.resourceGroups[0]",
            id="a resource in two groups",
        ),
        pytest.param(
            make_queue("team", make_group(a100=make_quota(1)), gpus(1)),
            "(ClusterQueue team): spec.resourceGroups[1].flavors[0].name: expected each flavor in one group only, "
            "found a100 also in spec.resourceGroups[0]",
            id="a flavor in two groups",
        ),
        pytest.param(
            make_queue("team", weight="-1"),
            '(ClusterQueue team): spec.fairSharing.weight: expected a quantity of at least 0, found "-1"',
            id="negative weight",
        ),
        pytest.param(
            make_queue("team", make_group(default=make_quota(1, borrowing_limit=1))),
            "(ClusterQueue team): spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit: expected no "
            "borrowingLimit without cohortName, found 1",
            id="a borrowing limit without a cohort",
        ),
        pytest.param(
            make_queue("team", make_group(default=make_quota(1, lending_limit=2)), cohort="all"),
            "(ClusterQueue team): spec.resourceGroups[0].flavors[0].resources[0].lendingLimit: expected at most "
            "the nominal quota (1), found 2",
            id="lends more than it has",
        ),
        pytest.param(
            make_queue("team", strategy="Random"),
            '(ClusterQueue team): spec.queueingStrategy: expected one of StrictFIFO, BestEffortFIFO, found "Random"',
            id="unknown strategy",
        ),
        pytest.param(
            make_queue("team", borrow_policy="LowerPriority"),
            "(ClusterQueue team): spec.preemption.borrowWithinCohort.policy: expected Never, as "
            'reclaimWithinCohort is Never, found "LowerPriority"',
            id="borrows while preempting but may not reclaim",
        ),
        pytest.param(
            make_cohort("all", parent="all"),
            '(Cohort all): spec.parentName: expected another cohort, found "all"',
            id="a cohort that is its own parent",
        ),
        pytest.param(
            LocalQueue(),
            "(LocalQueue): metadata.name: expected a name, found none",
            id="no name",
        ),
        pytest.param(
            make_workload("train", make_pod_set(count=2, min_count=3)),
            "(Workload train): spec.podSets[0].minCount: expected 1 to 2, found 3",
            id="a minimum above the count",
        ),
        pytest.param(
            make_workload("train", make_pod_set("a"), make_pod_set("a")),
            '(Workload train): spec.podSets[1].name: expected a name that is not taken, found "a"',
            id="two pod sets with one name",
        ),
        pytest.param(
            msgspec.convert(
                {
                    "metadata": {"name": "racks"},
                    "spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "rack"}]},
                },
                Topology,
            ),
            "(Topology racks): spec.levels[0].nodeLabel: expected kubernetes.io/hostname only as the last, "
            'found "kubernetes.io/hostname"',
            id="hosts above racks",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(found: QueueingKind, expected: str) -> None:
    assert complaint(found) == expected


def test_a_cycle_of_cohorts_is_shown_whole() -> None:
    cohorts: list[Cohort] = [make_cohort("a", parent="b"), make_cohort("b", parent="c"), make_cohort("c", parent="b")]

    with pytest.raises(ManifestError, match="a cycle, b -> c -> b"):
        validate_cohort_tree((cohort, PLACE) for cohort in cohorts)


def test_what_is_right_passes() -> None:
    pods: PodSet = make_pod_set(count=4, min_count=2)

    right = [make_queue(cohort="all"), make_cohort("all", parent="top"), make_workload("train", pods)]
    refused = []
    for found in right:
        try:
            validate_queueing(found, PLACE)
        except ManifestError as error:
            refused.append(str(error))

    assert refused == []

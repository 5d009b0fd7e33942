"""Volcano's queues as read: defaults, one clear line for what is wrong, and what shares are given."""

from typing import Any

import msgspec
import pytest

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.volcano.queues import compile_queues
from mooring.errors import ManifestError
from mooring.model.api.volcano_queue import (
    HIERARCHY,
    HIERARCHY_WEIGHTS,
    HierarchyStep,
    Queue,
    default_queue,
    hierarchy_of,
)
from mooring.model.places import Place
from mooring.model.validation.volcano_queue import validate_queue, validate_queue_tree

PLACE = Place("queues.yaml", 1)
GPU = "nvidia.com/gpu"


def queue_from(spec: dict[str, Any], name: str = "team", **metadata: Any) -> Queue:
    return msgspec.convert({"metadata": {"name": name, **metadata}, "spec": spec}, Queue)


def annotated(path: str, weights: str, name: str = "team") -> Queue:
    return queue_from({}, name, annotations={HIERARCHY: path, HIERARCHY_WEIGHTS: weights})


def shorten(error: ManifestError) -> str:
    # Whether a kind is shown with a namespace is decided in one place for all kinds, and not here.
    return str(error).removeprefix("queues.yaml: ").replace("default/", "", 1)


def complaint(queue: Queue) -> str:
    with pytest.raises(ManifestError) as raised:
        validate_queue(queue, PLACE)
    return shorten(raised.value)


def tree_complaint(*queues: Queue) -> str:
    for queue in queues:
        validate_queue(queue, PLACE)
    with pytest.raises(ManifestError) as raised:
        validate_queue_tree([(queue, Place("queues.yaml", number + 1)) for number, queue in enumerate(queues)])
    return shorten(raised.value)


def test_a_queue_is_read_with_all_that_it_says() -> None:
    text = b"""{
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "vision"},
        "spec": {"weight": 3, "reclaimable": false, "parent": "research", "priority": 7, "type": "other",
                 "capability": {"cpu": "64", "nvidia.com/gpu": 8}, "deserved": {"nvidia.com/gpu": "4"},
                 "guarantee": {"resource": {"nvidia.com/gpu": 2}}, "unheardOf": 1,
                 "affinity": {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["a100"]}}},
        "status": {"state": "Closing", "allocated": {"pods": 3}}}"""

    queue = msgspec.json.decode(text, type=Queue)
    validate_queue(queue, PLACE)

    affinity = queue.spec.affinity
    assert affinity is not None and affinity.node_group_affinity is not None
    assert affinity.node_group_affinity.required_during_scheduling_ignored_during_execution == ["a100"]
    assert (queue.spec.weight, queue.spec.type, queue.status.state) == (3, "other", "Closing")
    assert compile_queues([queue]) == [
        QueueSpec(
            "vision",
            parent="research",
            weight=3.0,
            priority=7,
            capability={"cpu": 64_000, GPU: 8},
            deserved={GPU: 4},
            guarantee={GPU: 2},
            is_reclaimable=False,
            is_open=False,
        ),
        QueueSpec("default"),
    ]


def test_an_empty_queue_gets_the_defaults_of_its_kind() -> None:
    queue = queue_from({})

    default_queue(queue)
    default_queue(queue)

    assert msgspec.to_builtins(queue.spec) == {"weight": 1, "reclaimable": True, "parent": "root"}
    assert queue.status.state == "Open"
    assert compile_queues([queue]) == [QueueSpec("team"), QueueSpec("default")]


def test_the_default_queue_is_there_where_queues_are_and_as_it_is_written() -> None:
    written = queue_from({"weight": 5}, "default")

    assert compile_queues([]) == []
    assert compile_queues([queue_from({}), written]) == [QueueSpec("team"), QueueSpec("default", weight=5.0)]


def test_a_queue_may_be_below_the_default_queue_that_nobody_wrote() -> None:
    queue = queue_from({"parent": "default"})

    validate_queue_tree([(queue, PLACE)])

    assert compile_queues([queue]) == [QueueSpec("team", parent="default"), QueueSpec("default")]


def test_the_root_gets_no_parent() -> None:
    root = queue_from({}, "root")

    default_queue(root)

    assert root.spec.parent == ""


def test_of_cpu_and_memory_a_capability_of_nothing_is_none() -> None:
    queue = queue_from({"capability": {"cpu": 0, "memory": "0", GPU: 0}})

    assert compile_queues([queue])[0].capability == {GPU: 0}


def test_a_hierarchy_starts_below_the_root_and_its_weights_are_at_least_1() -> None:
    short, long = annotated("science/dev", "3/0.5"), annotated("root/science/dev", "100/3/2")
    for queue in (short, long):
        validate_queue(queue, PLACE)
        default_queue(queue)

    assert short.annotation(HIERARCHY) == "root/science/dev"
    assert hierarchy_of(short) == (HierarchyStep("science", 3.0), HierarchyStep("dev", 1.0))
    assert compile_queues([long])[0].hierarchy == (HierarchyStep("science", 3.0), HierarchyStep("dev", 2.0))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"weight": -1}, "spec.weight: expected a number from 1 to 2147483647, found -1", id="weight"),
        pytest.param(
            {"weight": 2**31},
            "spec.weight: expected a number from 1 to 2147483647, found 2147483648",
            id="large weight",
        ),
        pytest.param(
            {"capability": {"cpu": "many"}},
            'spec.capability.cpu: expected a quantity such as 500m, 2 or 1.5Gi, found "many"',
            id="no quantity",
        ),
        pytest.param(
            {"deserved": {"cpu": "-1"}},
            'spec.deserved.cpu: expected a quantity of at least 0, found "-1"',
            id="negative",
        ),
        pytest.param(
            {"guarantee": {"resource": {GPU: "0.5"}}},
            f'spec.guarantee.resource.{GPU}: expected a whole number, found "0.5"',
            id="half a device",
        ),
        pytest.param(
            {"capability": {"memory": "2Ei"}},
            'spec.capability.memory: expected a quantity of at most 1Ei, found "2Ei"',
            id="too large to count",
        ),
        pytest.param(
            {"deserved": {"cpu": 3}, "capability": {"cpu": 2}},
            "spec.deserved.cpu: expected at most the queue's capability (2), found 3",
            id="deserves more than it may have",
        ),
        pytest.param(
            {"guarantee": {"resource": {"cpu": "2500m"}}, "deserved": {"cpu": 2}},
            'spec.guarantee.resource.cpu: expected at most the queue\'s deserved share (2), found "2500m"',
            id="guaranteed more than it deserves",
        ),
        pytest.param(
            {"guarantee": {"resource": {"cpu": 3}}, "capability": {"cpu": 2}},
            "spec.guarantee.resource.cpu: expected at most the queue's capability (2), found 3",
            id="guaranteed more than it may have",
        ),
        pytest.param({"parent": "team"}, 'spec.parent: expected another queue, found "team"', id="its own parent"),
    ],
)
def test_what_is_wrong_with_one_queue_is_said_in_one_line(spec: dict[str, Any], expected: str) -> None:
    assert complaint(queue_from(spec)) == f"document 1 (Queue team): {expected}"


def test_a_guarantee_needs_no_deserved_share_beside_it() -> None:
    validate_queue(queue_from({"guarantee": {"resource": {"cpu": 3}}, "deserved": {GPU: 1}}), PLACE)


@pytest.mark.parametrize(
    ("path", "weights", "expected"),
    [
        pytest.param("root//dev", "1/2/3", f"{HIERARCHY}: expected names separated by single slashes", id="gap"),
        pytest.param("", "1/2", f"{HIERARCHY}: expected names separated by single slashes", id="weights alone"),
        pytest.param("root/a/a", "1/2/3", f"{HIERARCHY}: expected each name once", id="twice"),
        pytest.param("root/dev", "1/two", f"{HIERARCHY_WEIGHTS}: expected numbers above 0", id="no number"),
        pytest.param("root/dev", "1/0", f"{HIERARCHY_WEIGHTS}: expected numbers above 0", id="nothing"),
        pytest.param("root/dev", "1/nan", f"{HIERARCHY_WEIGHTS}: expected numbers above 0", id="not a number"),
        pytest.param("root/dev", "1", f"{HIERARCHY_WEIGHTS}: expected one weight for each of the 2 names", id="short"),
        pytest.param("root/dev", "", f"{HIERARCHY_WEIGHTS}: expected numbers above 0", id="path alone"),
    ],
)
def test_annotations_that_give_no_way_are_refused(path: str, weights: str, expected: str) -> None:
    assert complaint(annotated(path, weights)).startswith(f"document 1 (Queue team): metadata.annotations.{expected}")


def test_a_state_is_one_that_volcano_knows() -> None:
    queue = queue_from({})
    queue.status.state = "Ajar"

    assert complaint(queue) == (
        'document 1 (Queue team): status.state: expected one of Open, Closed, Closing, Unknown, found "Ajar"'
    )


def test_a_queue_has_a_name_and_the_root_no_parent() -> None:
    assert complaint(queue_from({}, "")) == "document 1 (Queue): metadata.name: expected a name, found none"
    assert complaint(queue_from({"parent": "a"}, "root")) == (
        'document 1 (Queue root): spec.parent: expected none, as this is the root, found "a"'
    )


def test_names_are_unique() -> None:
    assert tree_complaint(queue_from({}), queue_from({})) == (
        "document 2 (Queue team): metadata.name: expected a name of its own"
        ' (another stands at queues.yaml: document 1), found "team"'
    )


def test_a_parent_exists() -> None:
    assert tree_complaint(queue_from({"parent": "gone"})) == (
        'document 1 (Queue team): spec.parent: expected the name of a queue, found "gone"'
    )


def test_no_queue_is_its_own_ancestor() -> None:
    chain = [queue_from({"parent": parent}, name) for name, parent in (("c", "a"), ("a", "b"), ("b", "c"), ("d", "a"))]

    assert tree_complaint(*chain) == (
        "document 2 (Queue a): spec.parent: expected a queue that is not below this one,"
        " found a cycle, a -> b -> c -> a"
    )


def test_children_fit_into_what_their_parent_is_guaranteed_and_deserves() -> None:
    parent = queue_from({"deserved": {GPU: 4}, "guarantee": {"resource": {GPU: 2}}}, "parent")
    children = [queue_from({"parent": "parent", "deserved": {GPU: 2}}, name) for name in "ab"]
    greedy = queue_from({"parent": "parent", "deserved": {GPU: 1}}, "c")
    kept = queue_from({"parent": "parent", "guarantee": {"resource": {GPU: 3}}}, "c")

    validate_queue_tree([(queue, PLACE) for queue in (parent, *children)])
    expected = "expected no more than what its siblings leave of the 4 of queue parent above them, found 1"
    assert tree_complaint(parent, *children, greedy) == f"document 4 (Queue c): spec.deserved.{GPU}: {expected}"
    expected = "expected no more than what its siblings leave of the 2 of queue parent above them, found 3"
    found = tree_complaint(parent, *children, kept)
    assert found == f"document 4 (Queue c): spec.guarantee.resource.{GPU}: {expected}"


def test_below_the_root_sums_are_free() -> None:
    root = queue_from({"deserved": {GPU: 1}}, "root")
    queues = [queue_from({"deserved": {GPU: 8}, "parent": "root"}, name) for name in "ab"]

    validate_queue_tree([(queue, PLACE) for queue in (root, *queues)])


def test_a_capability_stays_within_the_nearest_one_above() -> None:
    queues = [
        queue_from({"capability": {"cpu": 8}}, "top"),
        queue_from({"parent": "top"}, "middle"),
        queue_from({"parent": "middle", "capability": {"cpu": 8}}, "a"),
        queue_from({"parent": "middle", "capability": {"cpu": "8001m"}}, "b"),
    ]

    validate_queue_tree([(queue, PLACE) for queue in queues[:3]])
    assert tree_complaint(*queues) == (
        "document 4 (Queue b): spec.capability.cpu: expected at most the capability of queue top above it (8),"
        ' found "8001m"'
    )


def test_hierarchies_agree_on_the_weights_of_what_they_share() -> None:
    queues = [annotated("root/science/dev", "1/3/1", "dev"), annotated("science/prod", "2/1", "prod")]

    assert tree_complaint(*queues) == (
        f"document 2 (Queue prod): metadata.annotations.{HIERARCHY_WEIGHTS}: expected for root/science the weight that"
        " queue dev gives it (3), found 2"
    )


def test_a_queue_is_a_leaf_of_the_hierarchy() -> None:
    queues = [annotated("root/science", "1/3", "science"), annotated("root/science/dev", "1/3/1", "dev")]

    assert tree_complaint(*queues) == (
        f"document 1 (Queue science): metadata.annotations.{HIERARCHY}: expected a path that does not lead to"
        ' queue dev, found "root/science"'
    )

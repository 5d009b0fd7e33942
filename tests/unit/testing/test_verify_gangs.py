"""Gangs that are not as they asked to be are found, whoever placed them."""

import pytest

from mooring.model.events import GangSeen, NodeSeen, PodSeen
from mooring.model.gangs.gang import Gang, Role, gang_key
from mooring.model.gangs.membership import PLAIN_KIND, VOLCANO_KIND
from mooring.model.topology.requests import TopologyRequest
from mooring.state.cluster import Cluster
from mooring.testing.builders import HOSTNAME, make_node, make_pod
from mooring.testing.verify_gangs import broken_gangs

RACK = "example.com/rack"


def make_cluster(gang: Gang, placed: list[str], *, roles: list[str] | None = None) -> Cluster:
    """Nodes a0, a1 in rack a and b0, b1 in rack b; the members of rank 0, 1, 2 and so on are on the nodes given."""
    cluster = Cluster()
    for name in ("a0", "a1", "b0", "b1"):
        cluster.observe(NodeSeen(make_node(name, cpu=64, labels={RACK: name[0], HOSTNAME: name})))
    cluster.observe(GangSeen(gang))
    for rank, node in enumerate(placed):
        annotations = {"mooring.dev/gang-name": "train"}
        if roles:
            annotations = {"scheduling.volcano.sh/group-name": "train", "volcano.sh/task-spec": roles[rank]}
        cluster.observe(PodSeen(make_pod(f"train-{rank}", node=node, annotations=annotations)))
    return cluster


def make_gang(minimum: int, *, topology_request: TopologyRequest | None = None) -> Gang:
    return Gang(gang_key(PLAIN_KIND, "default", "train"), "default/train", minimum, topology_request=topology_request)


def test_a_gang_that_runs_in_part_is_found() -> None:
    gang = make_gang(4)

    assert list(broken_gangs(make_cluster(gang, ["a0", "a0", "b0"]))) == [
        "gang default/train: 3 of at least 4 members run"
    ]
    assert not list(broken_gangs(make_cluster(gang, ["a0", "a0", "b0", "b1"])))
    assert not list(broken_gangs(make_cluster(gang, ["", "", "", ""])))


def test_a_role_that_runs_in_part_is_found() -> None:
    gang = Gang(gang_key(VOLCANO_KIND, "default", "train"), "default/train", 2, (Role("ps", 1), Role("worker", 1)))

    assert list(broken_gangs(make_cluster(gang, ["a0", "a0"], roles=["worker", "worker"]))) == [
        "gang default/train: 0 of at least 1 members of role ps run"
    ]
    assert not list(broken_gangs(make_cluster(gang, ["a0", "a0"], roles=["worker", "ps"])))


def test_a_gang_of_gangs_that_runs_in_part_is_found() -> None:
    parent = Gang(gang_key(PLAIN_KIND, "default", "set"), "default/set", 2, of_gangs=True)
    part = Gang(gang_key(PLAIN_KIND, "default", "train"), "default/train", 1, parent=parent.key)
    cluster = make_cluster(part, ["a0"])
    cluster.observe(GangSeen(parent))

    assert list(broken_gangs(cluster)) == ["gang default/set: 1 of at least 2 gangs run"]


def test_members_outside_the_required_domain_are_found() -> None:
    gang = make_gang(3, topology_request=TopologyRequest(required=RACK))

    assert list(broken_gangs(make_cluster(gang, ["a0", "a1", "b0"]))) == [
        f"gang default/train: its members are in 2 domains of {RACK}"
    ]
    assert not list(broken_gangs(make_cluster(gang, ["b0", "b1", "b0"])))


def test_members_in_no_domain_at_all_are_found() -> None:
    gang = make_gang(2, topology_request=TopologyRequest(required="example.com/block"))

    assert list(broken_gangs(make_cluster(gang, ["a0", "a0"]))) == [
        "gang default/train: some of its members are in no domain of example.com/block"
    ]


@pytest.mark.parametrize(
    ("placed", "torn"),
    [
        pytest.param(["a0", "a0", "b1", "b1"], [], id="each slice on a node"),
        pytest.param(["a0", "b1", "b1", "a0"], [0, 1], id="the same numbers, by other ranks"),
        pytest.param(["a0", "a0", "b1", "b0"], [1], id="the last slice apart"),
    ],
)
def test_slices_are_counted_by_rank(placed: list[str], torn: list[int]) -> None:
    gang = make_gang(4, topology_request=TopologyRequest(preferred=RACK, slice_size=2, slice_level=HOSTNAME))

    assert list(broken_gangs(make_cluster(gang, placed))) == [
        f"gang default/train: slice {number} is in 2 domains of {HOSTNAME}" for number in torn
    ]

"""Who may use a reservation, and what room there is in it and beside it."""

from typing import Any

import msgspec
import pytest

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.reservation import Reservation
from mooring.model.reservations.accounts import NodeBooks, node_books, open_account, request_of
from mooring.model.reservations.fitting import node_refusals, nominate, scores, shortage
from mooring.model.reservations.matching import matches

Json = dict[str, Any]
NODE = msgspec.convert(
    {"metadata": {"name": "n", "labels": {"zone": "a"}}, "status": {"allocatable": {"cpu": "8", "pods": "10"}}}, Node
)


def make_pod(cpu: str = "1", **metadata: Any) -> Pod:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    return msgspec.convert({"metadata": {"name": "p", "namespace": "team", **metadata}, "spec": spec}, Pod)


def make_reservation(name: str = "r", cpu: str = "4", labels: Json | None = None, **spec: Any) -> Reservation:
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"owners": [{}], **spec},
            "status": {"phase": "Available", "nodeName": "n", "allocatable": {"cpu": cpu}},
        },
        Reservation,
    )


def may_use(pod: Pod, reservation: Reservation) -> bool:
    return matches(reservation, NODE, pod, request_of(pod), {"cpu": 4000})


def make_books(*reservations: Reservation, bound: str = "0", users: int = 0) -> NodeBooks:
    accounts = [open_account(one, [make_pod()] * users) for one in reservations]
    requests = [request_of(make_pod(bound)), *[request_of(make_pod())] * users]
    return node_books(NODE, requests, accounts, accounts)


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        pytest.param({}, True, id="anybody"),
        pytest.param({"object": {"name": "p"}}, True, id="by-name"),
        pytest.param({"object": {"name": "p", "namespace": "other"}}, False, id="in-another-namespace"),
        pytest.param({"controller": {"kind": "ReplicaSet", "name": "web"}}, True, id="of-a-controller"),
        pytest.param({"controller": {"name": "web", "controller": False}}, False, id="not-its-controller"),
        pytest.param({"labelSelector": {"matchLabels": {"app": "web"}}}, True, id="by-label"),
        pytest.param(
            {"labelSelector": {"matchLabels": {"app": "web"}}, "object": {"name": "q"}}, False, id="all-parts"
        ),
    ],
)
def test_owners_are_who_a_reservation_is_for(owner: Json, expected: bool) -> None:
    pod = make_pod(
        labels={"app": "web"}, ownerReferences=[{"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}]
    )

    assert may_use(pod, make_reservation(owners=[owner])) is expected


def test_a_reservation_without_owners_is_for_nobody() -> None:
    assert not may_use(make_pod(), make_reservation(owners=[]))


def test_a_pod_may_name_its_reservation_whatever_keeps_others_away() -> None:
    closed = make_reservation(unschedulable=True, taints=[{"key": "t", "effect": "NoSchedule"}])
    affinity = "scheduling.koordinator.sh/reservation-affinity"

    assert not may_use(make_pod(), closed)
    assert may_use(make_pod(annotations={affinity: '{"name": "r"}'}), closed)
    assert not may_use(make_pod(annotations={affinity: '{"name": "other"}'}), closed)


def test_selectors_read_the_labels_of_node_and_reservation() -> None:
    affinity = "scheduling.koordinator.sh/reservation-affinity"
    asks = make_pod(annotations={affinity: '{"reservationSelector": {"zone": "a", "tier": "gold"}}'})

    assert may_use(asks, make_reservation(labels={"tier": "gold"}))
    assert not may_use(asks, make_reservation(labels={"tier": "gold", "zone": "b"}))


def test_reserved_room_is_free_for_those_it_is_for() -> None:
    books = make_books(make_reservation(), bound="4")

    assert shortage({"cpu": 4000}, books) == []
    assert shortage({"cpu": 4001}, books) == ["Insufficient cpu"]


def test_an_aligned_reservation_is_filled_up_from_the_node_a_restricted_one_is_not() -> None:
    aligned = make_books(make_reservation(allocatePolicy="Aligned"), bound="2")
    restricted = make_books(make_reservation(allocatePolicy="Restricted"), bound="2")

    assert node_refusals({"cpu": 6000}, aligned, has_affinity=True) == []
    assert node_refusals({"cpu": 6000}, restricted, has_affinity=True) == ["Reservation(s) Insufficient cpu"]
    assert node_refusals({"cpu": 6000}, restricted, has_affinity=True, is_named=True) == [
        "Reservation(s) Insufficient cpu, requested: 6000, used: 0, capacity: 4000"
    ]


def test_a_pod_that_does_not_depend_on_reservations_goes_beside_one_that_is_too_small() -> None:
    books = make_books(make_reservation(cpu="1", allocatePolicy="Restricted"))

    assert node_refusals({"cpu": 2000}, books, has_affinity=False) == []
    assert nominate({"cpu": 2000}, books, has_affinity=False) is None


def test_the_first_in_order_is_used_else_the_fullest() -> None:
    order = "scheduling.koordinator.sh/reservation-order"
    small, large = make_reservation("small", "2"), make_reservation("large", "4")
    first = make_reservation("first", "4", {order: "1"})

    fullest = nominate({"cpu": 1000}, make_books(small, large), has_affinity=False)
    ordered = nominate({"cpu": 1000}, make_books(small, first), has_affinity=False)

    assert (fullest and fullest.name, ordered and ordered.name) == ("small", "first")


def test_the_node_with_the_fuller_reservation_scores_most() -> None:
    nodes = [make_books(make_reservation(cpu="4")), make_books(make_reservation(cpu="2")), make_books()]

    assert scores({"cpu": 1000}, nodes, has_affinity=False) == [50, 100, 0]


def test_a_reservation_for_one_pod_is_not_usable_once_it_is_used() -> None:
    once, often = make_reservation(allocateOnce=True), make_reservation(allocateOnce=False)

    assert not open_account(once, [make_pod()]).is_usable
    assert open_account(often, [make_pod()]).left == {"cpu": 3000}

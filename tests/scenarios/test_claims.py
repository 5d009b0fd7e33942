"""Claims to devices, from pods to decisions: who gets which device, who waits, and what is said of it."""

from collections.abc import Sequence

import pytest

from mooring.engine.cycle import Scheduler
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict, Wait
from mooring.model.events import Failed, GangSeen, NodeLost, NodeSeen, ObjectLost, ObjectSeen, PodLost, PodSeen, Related
from mooring.model.loading.manifests import build_manifests
from mooring.testing.builders import make_node, make_pod, make_profile, make_scheduler
from mooring.testing.claim_builders import (
    CLASS,
    DRIVER,
    make_claim,
    make_claiming_pod,
    make_class,
    make_device,
    make_request,
    make_slice,
    make_taint_rule,
    make_template,
)

ONE = make_template("one", make_request())
TWO = make_template("two", make_request(count=2))


def devices(decisions: Sequence[Decision]) -> dict[str, list[str]]:
    """By pod, the devices that its claims get with the binding, pool/device."""
    found: dict[str, list[str]] = {}
    for bind in decisions:
        if isinstance(bind, Bind):
            results = [
                each
                for claim in bind.claims
                if claim.allocation is not None
                for each in claim.allocation.devices.results or ()
            ]
            found[bind.pod] = [f"{each.pool}/{each.device}" for each in results]
    return found


def waits(decisions: Sequence[Decision]) -> dict[str, str]:
    return {found.pod: found.message for found in decisions if isinstance(found, Wait)}


def two_gpus_each(*pods: Pod, nodes: Sequence[str] = ("a",)) -> Scheduler:
    related: list[Related] = [make_class(), ONE, TWO, *(make_slice(node, 2) for node in nodes)]
    return make_scheduler(nodes=[make_node(node) for node in nodes], pods=pods, related=related)


def test_pods_get_the_devices_in_the_order_of_the_slice_until_there_are_none() -> None:
    scheduler = two_gpus_each(*(make_claiming_pod(f"p{number}", templates=["one"]) for number in range(3)))

    decisions = scheduler.cycle(1.0)

    assert devices(decisions) == {"default/p0": ["a/gpu-0"], "default/p1": ["a/gpu-1"]}
    assert waits(decisions)["default/p2"].startswith("0/1 nodes are available: 1 cannot allocate all claims.")


def test_a_pod_that_goes_leaves_its_devices_to_the_next() -> None:
    scheduler = two_gpus_each(make_claiming_pod("p0", templates=["two"]), make_claiming_pod("p1", templates=["one"]))
    scheduler.cycle(1.0)

    scheduler.handle(PodLost("default/p0"))

    assert devices(scheduler.cycle(2.0)) == {"default/p1": ["a/gpu-0"]}


def test_a_pod_that_could_not_be_bound_gives_its_devices_back() -> None:
    scheduler = two_gpus_each(make_claiming_pod("p0", templates=["two"]))
    scheduler.cycle(1.0)

    scheduler.handle(Failed(Bind("default/p0", ""), "the claim was written by somebody else"))

    assert devices(scheduler.cycle(20.0)) == {"default/p0": ["a/gpu-0", "a/gpu-1"]}


def test_a_more_urgent_pod_gets_the_devices_of_a_less_urgent_one() -> None:
    scheduler = two_gpus_each(make_claiming_pod("low", templates=["two"], priority=1))
    scheduler.cycle(1.0)
    urgent = make_claiming_pod("high", templates=["one"], priority=10)

    scheduler.handle(PodSeen(urgent))
    evicted = scheduler.cycle(2.0)
    scheduler.handle(PodLost("default/low"))
    bound = scheduler.cycle(3.0)

    assert [found.pod for found in evicted if isinstance(found, Evict)] == ["default/low"]
    assert devices(bound) == {"default/high": ["a/gpu-0"]}


def test_pods_that_share_a_claim_go_where_it_is_allocated() -> None:
    shared = make_claim("shared", make_request(count=1))
    pods = [make_claiming_pod(f"p{number}", claims=["shared"]) for number in range(3)]
    scheduler = make_scheduler(
        nodes=[make_node("a"), make_node("b")],
        pods=pods,
        related=[make_class(), shared, make_slice("a", 1), make_slice("b", 1)],
    )

    decisions = [found for found in scheduler.cycle(1.0) if isinstance(found, Bind)]

    assert len({found.node for found in decisions}) == 1
    assert [[claim.claim for claim in found.claims] for found in decisions] == [["default/shared"]] * 3


def test_a_pod_waits_for_its_claim_to_exist_and_comes_back_when_it_does() -> None:
    scheduler = two_gpus_each(make_claiming_pod("p0", claims=["late"]))

    first = scheduler.cycle(1.0)
    scheduler.handle(ObjectSeen(make_claim("late")))
    second = scheduler.cycle(20.0)

    assert waits(first) == {
        "default/p0": '0/1 nodes are available: could not find ResourceClaim "default/late". '
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    }
    assert devices(second) == {"default/p0": ["a/gpu-0"]}


def test_a_missing_class_is_named() -> None:
    template = make_template("odd", make_request(of="nothing-like-it"))
    scheduler = make_scheduler(
        nodes=[make_node("a")], pods=[make_claiming_pod("p0", templates=["odd"])], related=[make_class(), template]
    )

    decisions = scheduler.cycle(1.0)

    assert "request gpu: device class nothing-like-it does not exist" in waits(decisions)["default/p0"]


def test_a_device_that_a_rule_taints_is_given_to_nobody() -> None:
    scheduler = two_gpus_each(make_claiming_pod("p0", templates=["one"]))
    scheduler.handle(ObjectSeen(make_taint_rule("bad", driver=DRIVER, pool="a", device="gpu-0")))

    assert devices(scheduler.cycle(1.0)) == {"default/p0": ["a/gpu-1"]}


def test_a_claim_that_tolerates_the_taint_gets_the_device() -> None:
    tolerant = make_template("tolerant", make_request(tolerations=[{"key": "broken", "operator": "Exists"}]))
    scheduler = make_scheduler(
        nodes=[make_node("a")],
        pods=[make_claiming_pod("p0", templates=["tolerant"])],
        related=[make_class(), tolerant, make_slice("a", 1), make_taint_rule("bad", driver=DRIVER)],
    )

    assert devices(scheduler.cycle(1.0)) == {"default/p0": ["a/gpu-0"]}


def test_the_first_alternative_that_some_node_has_is_worth_the_most() -> None:
    choice = {
        "name": "gpu",
        "firstAvailable": [
            {"name": "big", "deviceClassName": CLASS, "selectors": [_model("h100")]},
            {"name": "small", "deviceClassName": CLASS, "selectors": [_model("t4")]},
        ],
    }
    scheduler = make_scheduler(
        nodes=[make_node("a"), make_node("b")],
        pods=[make_claiming_pod("p0", templates=["choice"])],
        related=[
            make_class(),
            make_template("choice", choice),
            make_slice("a", [make_device("gpu-0", attributes={"model": "t4"})]),
            make_slice("b", [make_device("gpu-0", attributes={"model": "h100"})]),
        ],
    )

    (bind,) = scheduler.cycle(1.0)

    assert isinstance(bind, Bind)
    assert bind.claims[0].allocation is not None
    results = bind.claims[0].allocation.devices.results or []
    assert (bind.node, [each.request for each in results]) == ("b", ["gpu/big"])


def _model(name: str) -> dict[str, object]:
    return {"cel": {"expression": f'device.attributes["{DRIVER}"].model == "{name}"'}}


ISLANDS = [make_device(f"gpu-{n}", attributes={"island": n // 2, f"{DRIVER}/root": n}) for n in range(4)]


def test_two_gpus_come_from_one_island_even_if_that_is_not_the_first() -> None:
    pair = make_template("pair", make_request(count=2), constraints=[{"matchAttribute": f"{DRIVER}/island"}])
    pods = [make_claiming_pod("first", templates=["one"]), make_claiming_pod("second", templates=["pair"])]
    scheduler = make_scheduler(
        nodes=[make_node("a")], pods=pods, related=[make_class(), ONE, pair, make_slice("a", ISLANDS)]
    )

    assert devices(scheduler.cycle(1.0)) == {"default/first": ["a/gpu-0"], "default/second": ["a/gpu-2", "a/gpu-3"]}


def test_devices_of_distinct_islands_are_spread() -> None:
    spread = make_template("spread", make_request(count=2), constraints=[{"distinctAttribute": f"{DRIVER}/island"}])
    scheduler = make_scheduler(
        nodes=[make_node("a")],
        pods=[make_claiming_pod("p", templates=["spread"])],
        related=[make_class(), spread, make_slice("a", ISLANDS)],
    )

    assert devices(scheduler.cycle(1.0)) == {"default/p": ["a/gpu-0", "a/gpu-2"]}


def test_all_devices_means_all_of_them_or_none() -> None:
    everything = make_template("all", {"name": "gpus", "exactly": {"deviceClassName": CLASS, "allocationMode": "All"}})
    pods = [make_claiming_pod("p0", templates=["all"]), make_claiming_pod("p1", templates=["all"])]
    scheduler = make_scheduler(
        nodes=[make_node("a")], pods=pods, related=[make_class(), everything, make_slice("a", 3)]
    )

    decisions = scheduler.cycle(1.0)

    assert devices(decisions) == {"default/p0": ["a/gpu-0", "a/gpu-1", "a/gpu-2"]}
    assert list(waits(decisions)) == ["default/p1"]


def test_admin_access_shares_devices_that_others_have() -> None:
    watch = make_template("watch", make_request(adminAccess=True))
    pods = [make_claiming_pod("user", templates=["one"]), make_claiming_pod("admin", templates=["watch"])]
    scheduler = make_scheduler(
        nodes=[make_node("a")], pods=pods, related=[make_class(), ONE, watch, make_slice("a", 1)]
    )

    assert devices(scheduler.cycle(1.0)) == {"default/user": ["a/gpu-0"], "default/admin": ["a/gpu-0"]}


def mig_slices(node: str = "a") -> list[Related]:
    """A GPU of seven slices as a driver publishes it: counters, and every cut as a device."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 2}
    counters = {"name": "gpu-0", "counters": {f"slice-{n}": {"value": "1"} for n in range(4)}}

    def cut(name: str, *slices: int) -> dict[str, object]:
        consumed = {f"slice-{n}": {"value": "1"} for n in slices}
        consumes = [{"counterSet": "gpu-0", "counters": consumed}]
        return make_device(name, attributes={"size": len(slices)}, consumesCounters=consumes)

    cuts = [cut("whole", 0, 1, 2, 3), cut("half-0", 0, 1), cut("half-1", 2, 3), *(cut(f"q-{n}", n) for n in range(4))]
    return [
        make_slice(node, [], name=f"{node}-counters", pool=pool, sharedCounters=[counters]),
        make_slice(node, cuts, name=f"{node}-devices", pool=pool),
    ]


def size(parts: int) -> dict[str, object]:
    return make_request("cut", f'device.attributes["{DRIVER}"].size == {parts}')


def test_cuts_of_one_gpu_do_not_overlap() -> None:
    templates = [make_template("half", size(2)), make_template("quarter", size(1))]
    pods = [
        make_claiming_pod(f"p{n}", templates=[name]) for n, name in enumerate(["quarter", "half", "half", "quarter"])
    ]
    scheduler = make_scheduler(
        nodes=[make_node("a")],
        pods=pods,
        related=[make_class(), *templates, *mig_slices()],
    )

    decisions = scheduler.cycle(1.0)

    assert devices(decisions) == {"default/p0": ["a/q-0"], "default/p1": ["a/half-1"], "default/p3": ["a/q-1"]}
    assert list(waits(decisions)) == ["default/p2"]


@pytest.mark.parametrize(("strategy", "placed"), [("FirstFit", 2), ("Packed", 3)])
def test_packing_keeps_large_cuts_possible_where_first_fit_does_not(strategy: str, placed: int) -> None:
    """A driver that lists its small cuts from both ends: first fit takes one of each half."""
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 2}
    counters = {"name": "gpu-0", "counters": {f"slice-{n}": {"value": "1"} for n in range(4)}}

    def cut(name: str, *slices: int) -> dict[str, object]:
        consumes = [{"counterSet": "gpu-0", "counters": {f"slice-{n}": {"value": "1"} for n in slices}}]
        return make_device(name, attributes={"size": len(slices)}, consumesCounters=consumes)

    cuts = [cut("q-0", 0), cut("q-2", 2), cut("q-1", 1), cut("q-3", 3), cut("half-0", 0, 1), cut("half-1", 2, 3)]
    related: list[Related] = [
        make_class(),
        make_template("half", size(2)),
        make_template("quarter", size(1)),
        make_slice("a", [], name="a-counters", pool=pool, sharedCounters=[counters]),
        make_slice("a", cuts, name="a-devices", pool=pool),
    ]
    asked = ["quarter", "quarter", "half"]
    pods = [make_claiming_pod(f"p{n}", templates=[name]) for n, name in enumerate(asked)]
    profile = make_profile(args={"DynamicResources": {"allocationStrategy": strategy}})

    decisions = make_scheduler(profile=profile, nodes=[make_node("a")], pods=pods, related=related).cycle(1.0)

    assert len(devices(decisions)) == placed


def test_amounts_of_a_device_are_rounded_up_to_what_it_gives_out() -> None:
    policy = {"default": "1Gi", "validRange": {"min": "2Gi", "step": "2Gi"}}
    card = make_device(
        "card", allowMultipleAllocations=True, capacity={"memory": {"value": "8Gi", "requestPolicy": policy}}
    )
    part = make_template("part", make_request(capacity={"requests": {"memory": "3Gi"}}))
    pods = [make_claiming_pod(f"p{n}", templates=["part"]) for n in range(3)]
    scheduler = make_scheduler(nodes=[make_node("a")], pods=pods, related=[make_class(), part, make_slice("a", [card])])

    decisions = scheduler.cycle(1.0)

    amounts = [
        each.consumed_capacity
        for bind in decisions
        if isinstance(bind, Bind) and bind.claims[0].allocation is not None
        for each in bind.claims[0].allocation.devices.results or ()
    ]
    assert amounts == [{"memory": "4Gi"}, {"memory": "4Gi"}]
    assert list(waits(decisions)) == ["default/p2"]


def test_devices_that_several_nodes_reach_are_given_out_once() -> None:
    fabric = make_slice("a", 2, driver="nic.example.com", name="fabric", nodeName=None, allNodes=True)
    nic = make_class("nic", driver="nic.example.com")
    pods = [make_claiming_pod(f"p{n}", templates=["nic"]) for n in range(3)]
    scheduler = make_scheduler(
        nodes=[make_node("a"), make_node("b")],
        pods=pods,
        related=[nic, make_template("nic", make_request(of="nic")), fabric],
    )

    decisions = scheduler.cycle(1.0)

    assert sorted(each for found in devices(decisions).values() for each in found) == ["a/gpu-0", "a/gpu-1"]
    assert len(waits(decisions)) == 1


def test_a_slice_that_goes_takes_its_devices_with_it() -> None:
    scheduler = two_gpus_each()
    scheduler.handle(ObjectLost("ResourceSlice", f"a-{DRIVER}"))
    scheduler.handle(PodSeen(make_claiming_pod("p0", templates=["one"])))

    assert list(waits(scheduler.cycle(1.0))) == ["default/p0"]


def test_a_selector_without_an_answer_on_one_node_keeps_the_pod_from_all_and_says_so() -> None:
    odd = make_template("odd", make_request("gpu", f'device.attributes["{DRIVER}"].colour == "red"'))
    scheduler = make_scheduler(
        nodes=[make_node("a")],
        pods=[make_claiming_pod("p0", templates=["odd"])],
        related=[make_class(), odd, make_slice("a", 1)],
    )

    assert (
        "request gpu: selector #0 on device gpu.example.com/gpu-0: CEL runtime error: no such key: colour"
        in (waits(scheduler.cycle(1.0))["default/p0"])
    )


def test_a_selector_without_an_answer_is_no_matter_where_nobody_comes_to_ask_it() -> None:
    """The first request cannot be met, so the second is never asked about the GPU that has no colour."""
    red = make_request("red", f'device.attributes["{DRIVER}"].colour == "red"')
    gpus = [make_device("gpu-0", attributes={"colour": "red"}), make_device("gpu-1")]
    scheduler = make_scheduler(
        nodes=[make_node("a")],
        pods=[make_claiming_pod("p0", templates=["three"])],
        related=[make_class(), make_template("three", make_request("any", count=3), red), make_slice("a", gpus)],
    )

    assert waits(scheduler.cycle(1.0))["default/p0"].startswith(
        "0/1 nodes are available: 1 cannot allocate all claims."
    )


def test_admin_access_leaves_the_free_device_to_who_needs_it() -> None:
    """gpu-0 is free and gpu-1 is not: the admin first gets gpu-0, and has to do with gpu-1."""
    both = make_template("both", make_request("watch", adminAccess=True), make_request("use"))
    second = make_template("second", make_request("gpu", f'device.attributes["{DRIVER}"].index == 1'))
    gpus = [make_device(f"gpu-{index}", attributes={"index": index}) for index in range(2)]
    pods = [make_claiming_pod("user", templates=["second"], priority=1), make_claiming_pod("p", templates=["both"])]
    scheduler = make_scheduler(
        nodes=[make_node("a")], pods=pods, related=[make_class(), second, both, make_slice("a", gpus)]
    )

    assert devices(scheduler.cycle(1.0)) == {"default/user": ["a/gpu-1"], "default/p": ["a/gpu-1", "a/gpu-0"]}


def test_admin_access_to_a_device_that_is_given_out_by_amounts_takes_nothing_of_it() -> None:
    shared = make_device("gpu-0", capacity={"memory": {"value": "4Gi"}}, allowMultipleAllocations=True)
    watch = make_template("watch", make_request(adminAccess=True))
    pods = [make_claiming_pod(f"admin-{index}", templates=["watch"]) for index in range(5)]
    pods.append(make_claiming_pod("user", templates=["one"]))
    scheduler = make_scheduler(
        nodes=[make_node("a")], pods=pods, related=[make_class(), ONE, watch, make_slice("a", [shared])]
    )

    assert set(devices(scheduler.cycle(1.0))) == {pod.key for pod in pods}


def test_a_claim_that_takes_for_ever_is_given_up_and_says_so() -> None:
    many = [make_device(f"gpu-{n}", attributes={"index": n, "half": n % 2}) for n in range(24)]
    requests = [make_request(f"r{n}", count=3) for n in range(6)]
    constraints = [{"matchAttribute": f"{DRIVER}/half"}, {"distinctAttribute": f"{DRIVER}/index"}]
    scheduler = make_scheduler(
        profile=make_profile(args={"DynamicResources": {"filterTimeout": "1s"}}),
        nodes=[make_node("a")],
        pods=[make_claiming_pod("p0", templates=["mad"])],
        related=[make_class(), make_template("mad", *requests, constraints=constraints), make_slice("a", many)],
    )

    assert "gave up after 10000 steps of trying to allocate devices" in waits(scheduler.cycle(1.0))["default/p0"]


def test_a_gang_moves_a_member_to_another_device_where_that_lets_the_next_one_in() -> None:
    """The first member takes whatever comes first, which is the one GPU that the second can use."""
    gpus = [make_device("gpu-0", attributes={"model": "h100"}), make_device("gpu-1", attributes={"model": "t4"})]
    any_gpu, big = make_template("any", make_request()), make_template("big", _request_for("h100"))
    gang = {"pod-group.scheduling.sigs.k8s.io": "train"}
    pods = [
        make_claiming_pod("first", templates=["any"], labels=gang, cpu=2),
        make_claiming_pod("second", templates=["big"], labels=gang, cpu=1),
    ]
    documents = [
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": "train", "namespace": "default"},
            "spec": {"minMember": 2},
        }
    ]
    manifests = build_manifests(documents, source="gang")
    scheduler = make_scheduler(nodes=[make_node("a")], related=[make_class(), any_gpu, big, make_slice("a", gpus)])
    scheduler.handle(*(GangSeen(found) for found in manifests.gangs), *map(PodSeen, pods))

    assert devices(scheduler.cycle(1.0)) == {"default/first": ["a/gpu-1"], "default/second": ["a/gpu-0"]}


def _request_for(model: str) -> dict[str, object]:
    return make_request("gpu", f'device.attributes["{DRIVER}"].model == "{model}"')


def asking_for(resource: str, count: int, name: str = "p0") -> Pod:
    return make_pod(name, spec={"containers": [{"name": "c", "resources": {"limits": {resource: count}}}]})


@pytest.mark.parametrize("resource", ["example.com/gpu", f"deviceclass.resource.kubernetes.io/{CLASS}"])
def test_an_extended_resource_that_a_class_serves_is_given_as_devices(resource: str) -> None:
    scheduler = make_scheduler(
        nodes=[make_node("a")],
        pods=[asking_for(resource, 2), asking_for(resource, 2, "p1")],
        related=[make_class(extendedResourceName="example.com/gpu"), make_slice("a", 3)],
    )

    decisions = scheduler.cycle(1.0)

    (bind,) = [found for found in decisions if isinstance(found, Bind)]
    assert devices(decisions) == {"default/p0": ["a/gpu-0", "a/gpu-1"]}
    (claim,) = bind.claims
    assert claim.claim == "default/p0-extended-resources"
    assert claim.spec is not None
    assert claim.mappings == (("c", resource, "container-0-request-0"),)
    assert [request.name for request in claim.spec.devices.requests or ()] == ["container-0-request-0"]
    assert list(waits(decisions)) == ["default/p1"]


def test_a_node_with_a_device_plugin_is_used_without_a_claim() -> None:
    resource = "example.com/gpu"
    scheduler = make_scheduler(
        nodes=[make_node("plugin", resources={resource: 1}), make_node("slices")],
        pods=[asking_for(resource, 1, f"p{number}") for number in range(3)],
        related=[make_class(extendedResourceName=resource), make_slice("slices", 1)],
    )

    decisions = scheduler.cycle(1.0)

    placed = {found.node: len(found.claims) for found in decisions if isinstance(found, Bind)}
    assert placed == {"plugin": 0, "slices": 1}
    assert len(waits(decisions)) == 1


@pytest.mark.parametrize("count", [0, 2], ids=["goes", "changes"])
def test_a_slice_may_change_or_go_after_its_node(count: int) -> None:
    devices = [make_device("gpu-0")]
    scheduler = make_scheduler(
        nodes=[make_node("a"), make_node("b")],
        related=[make_class(), make_slice("a", devices), make_slice("b", devices)],
    )
    found = make_slice("b", [*devices, make_device("gpu-1")])

    scheduler.handle(NodeLost("b"))
    scheduler.handle(ObjectSeen(found) if count else ObjectLost("ResourceSlice", found.metadata.name))

    assert scheduler.cycle(0.0) == []
    assert scheduler.take_faults() == []
    scheduler.handle(NodeSeen(make_node("b")))
    scheduler.cycle(1.0)
    assert [len(scheduler.cluster.devices.of_row(row).inventory.devices) for row in (0, 1)] == [1, count]

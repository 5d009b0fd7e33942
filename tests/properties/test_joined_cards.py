"""One GPU, asked for in every way at once: by claims, as whole GPUs, shares, replicas and instances."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from drawing import choices
from hypothesis import given
from hypothesis import strategies as st
from stories import without_empty_columns
from test_rollback import change_something, fingerprint, release_and_restore

from mooring.engine.cycle import Scheduler
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import Decision, Evict
from mooring.model.devices.cards import GPU, Sharing
from mooring.model.devices.joining import NVIDIA, cards_of_devices
from mooring.model.events import Event, NodeLost, NodeSeen, PodLost, PodSeen, Related
from mooring.state.cluster import Cluster
from mooring.state.devices.cards import MEMORY, MILLI, SLOTS, USERS
from mooring.state.devices.table import DeviceShare
from mooring.testing.builders import make_scheduler
from mooring.testing.card_worlds import random_card_node, random_card_template
from mooring.testing.claim_builders import (
    make_claiming_pod,
    make_class,
    make_device,
    make_request,
    make_slice,
    make_template,
)
from mooring.testing.claim_worlds import wrong_with_devices
from mooring.testing.random_clusters import Choose


class JoinedWorld:
    """Nodes whose GPUs are published for claims and handed out as cards, and pods that want them either way."""

    def __init__(self, choose: Choose, nodes: int) -> None:
        self._choose = choose
        self.nodes = [self.node(f"node-{index}") for index in range(nodes)]
        parts = make_request(capacity={"requests": {"memory": "4Gi", "cores": "30"}})
        selects_parts = make_request("part", "device.allowMultipleAllocations == true", **parts["exactly"])
        self.related: list[Related] = [
            make_class(driver=NVIDIA),
            make_template("one"),
            make_template("two", make_request(count=2)),
            make_template("part", {**selects_parts, "name": "gpu"}),
            *(self._slice(node) for node in self.nodes),
        ]

    def node(self, name: str) -> Node:
        return random_card_node(self._choose, name)

    def _slice(self, node: Node) -> Related:
        name = node.metadata.name
        is_shared = not self._choose(3)
        capacity = {"memory": {"value": "15Gi"}, "cores": {"value": "100"}} if is_shared else {}
        devices = [
            make_device(
                f"gpu-{index}",
                attributes={"uuid": f"GPU-{name}-{index}", "index": index},
                **({"allowMultipleAllocations": True, "capacity": capacity} if is_shared else {}),
            )
            for index in range(3)
        ]
        return make_slice(name, devices, driver=NVIDIA)

    def pod(self, name: str) -> Pod:
        if self._choose(2):
            template = ("one", "two", "part")[self._choose(3)]
            return make_claiming_pod(name, templates=[template], cpu="100m", priority=10 * self._choose(3))
        return random_card_template(self._choose).pod(name)


@st.composite
def stories(draw: st.DrawFn) -> tuple[JoinedWorld, list[list[Event]]]:
    choose = draw(choices())
    world = JoinedWorld(choose, nodes=draw(st.integers(1, 3)))
    steps: list[list[Event]] = []
    names: list[str] = []
    for step in range(draw(st.integers(1, 4))):
        new = [f"p{step}-{index}" for index in range(choose(6))]
        names += new
        events: list[Event] = [PodSeen(world.pod(name)) for name in new]
        if names and choose(2):
            events.append(PodLost(f"default/{names.pop(choose(len(names)))}"))
        if not choose(3):
            node = world.nodes[choose(len(world.nodes))].metadata.name
            events.append(NodeSeen(world.node(node)) if choose(3) else NodeLost(node))
        steps.append(events)
    return world, steps


def scheduler_of(world: JoinedWorld, *, cached: bool = True) -> Scheduler:
    return make_scheduler(nodes=world.nodes, related=world.related, cached=cached)


def run(scheduler: Scheduler, steps: list[list[Event]]) -> Iterator[list[Decision]]:
    for now, events in enumerate(steps):
        scheduler.handle(*events)
        decisions = scheduler.cycle(100.0 * now)
        yield decisions
        scheduler.handle(*(PodLost(found.pod) for found in decisions if isinstance(found, Evict)))


def wrong_with_cards(cluster: Cluster) -> Iterator[str]:
    """Recount what claims and pods have of each card, from who holds what."""
    table = cluster.nodes.cards
    for row, cards in table.of_row.items():
        found = cluster.devices.on_row.get(row)
        by_claims = dict[int, list[DeviceShare]]()
        if found is not None:
            for position, card in enumerate(cards_of_devices(found.inventory.devices, cards)):
                shares = cluster.devices.holders_at(found.inventory, found.pool_names, position)
                if card >= 0 and shares:
                    by_claims.setdefault(card, []).extend(shares.values())
        with_pods = cluster.card_holders.cards_with_pods(row)
        whole = {card for card, shares in by_claims.items() if any(share.amounts is None for share in shares)}
        if whole & with_pods:
            yield f"{cluster.nodes.name(row)}: claims and pods have cards {whole & with_pods}"
        facts = table.facts[:, row, : len(cards.cards)]
        if (facts[[MILLI, MEMORY, SLOTS]] < 0).any():
            yield f"{cluster.nodes.name(row)}: more is taken than there is: {facts[[MILLI, MEMORY, SLOTS]].tolist()}"
        if not by_claims and not with_pods and facts[USERS].any():
            yield f"{cluster.nodes.name(row)}: somebody is on a card whom nobody knows"
        if cards.sharing == Sharing.COUNTED:
            requested = sum(record.shape.request(GPU) for record in cluster.pods.on(row))
            if len(by_claims.keys() | with_pods) + requested > len(cards.cards):
                yield f"{cluster.nodes.name(row)}: {requested} whole GPUs beside cards {by_claims.keys() | with_pods}"


@given(stories())
def test_no_card_is_given_out_twice_whichever_way_it_is_asked_for(story: tuple[JoinedWorld, list[list[Event]]]) -> None:
    world, steps = story
    scheduler = scheduler_of(world)
    moved = {event.node.metadata.name for events in steps for event in events if isinstance(event, NodeSeen)}

    for _ in run(scheduler, steps):
        pass
    scheduler.cycle(10_000.0)

    if not moved:  # a node that is described anew may have fewer cards than its pods have
        assert list(wrong_with_cards(scheduler.cluster)) == []
        assert list(wrong_with_devices(scheduler.cluster)) == []


@given(stories())
def test_kept_answers_give_the_same_decisions_as_none(story: tuple[JoinedWorld, list[list[Event]]]) -> None:
    world, steps = story

    assert list(run(scheduler_of(world), steps)) == list(run(scheduler_of(world, cached=False), steps))


def all_of(cluster: Cluster) -> Any:
    states = {row: cluster.devices.of_row(row).taken for row in cluster.devices.on_row}
    known = fingerprint(cluster)
    known["nodes"] = without_empty_columns(known["nodes"])
    return known, cluster.card_holders.fingerprint(), dict(cluster.devices.held), states


@given(stories(), choices())
def test_what_is_tried_out_leaves_no_trace(story: tuple[JoinedWorld, list[list[Event]]], choose: Choose) -> None:
    world, steps = story
    scheduler = scheduler_of(world)
    for _ in run(scheduler, steps):
        pass
    cluster = scheduler.cluster
    cluster.observe(*(PodSeen(world.pod(f"more-{index}")) for index in range(3)))
    before = all_of(cluster)

    if len(cluster.nodes.live_rows()):
        with cluster.what_if():
            for _ in range(6):
                change_something(cluster, choose)

    assert all_of(cluster) == before
    with cluster.what_if():
        release_and_restore(cluster, choose)
        assert all_of(cluster) == before
    assert all_of(cluster) == before
    assert not np.any(cluster.nodes.cards.facts[USERS] < 0)

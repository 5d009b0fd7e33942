"""Shares of cards: nobody gets more than there is, what is tried leaves no trace, and caches change nothing."""

from collections import Counter
from typing import Any

import numpy as np
from drawing import choices
from hypothesis import given
from hypothesis import strategies as st
from stories import Story, assembled
from test_rollback import change_something, fingerprint

from mooring.engine.cycle import Scheduler
from mooring.model.devices.cards import WHOLE, Card, CardShare
from mooring.model.devices.mig import geometry_of
from mooring.state.cluster import Cluster
from mooring.state.devices.cards import MASK, MEMORY, MILLI, SLOTS, USERS
from mooring.state.rows import NodeRows
from mooring.testing.builders import make_cluster
from mooring.testing.card_worlds import CardWorld, random_card_world
from mooring.testing.random_clusters import Choose


@st.composite
def card_worlds(draw: st.DrawFn) -> CardWorld:
    choose = draw(choices())
    return random_card_world(choose, nodes=draw(st.integers(1, 6)), templates=draw(st.integers(1, 4)))


def random_card_cluster(choose: Choose) -> Cluster:
    world = random_card_world(choose, nodes=1 + choose(5), templates=1 + choose(4))
    names = ["", *world.nodes]
    pods = [world.template().pod(f"pod-{index}", node=names[choose(len(names))]) for index in range(9)]
    return make_cluster(nodes=world.nodes.values(), pods=pods)


def slices_of(share: CardShare, model: str) -> list[int]:
    geometry = geometry_of(model)
    assert geometry is not None and share.start in geometry.by_name[share.profile].starts
    return list(range(share.start, share.start + geometry.by_name[share.profile].slices))


def assert_nobody_has_too_much(cluster: Cluster) -> None:
    """Add up from nothing what pods have of each card: it is no more than there is, once those have left who are to."""
    for row, node in cluster.nodes.cards.of_row.items():
        held = [(record, share) for record, shares in cluster.card_holders.on_row(row) for share in shares]
        for at, card in enumerate(node.cards):
            here = [share for _, share in held if share.card == at]
            staying = [share for record, share in held if share.card == at and record.leaving is None]
            assert cluster.nodes.cards.facts[[MILLI, MEMORY, USERS, SLOTS, MASK], row, at].tolist() == left_of(
                card, here
            )
            milli, memory, _, slots, _ = left_of(card, staying)
            slices = Counter(number for share in staying if share.profile for number in slices_of(share, card.model))
            assert milli >= 0 and (memory >= 0 or not card.memory) and slots >= 0
            assert max(slices.values(), default=0) <= 1
            assert len(staying) == 1 or not any(share.milli == WHOLE for share in staying)


def left_of(card: Card, shares: list[CardShare]) -> list[int]:
    """What is left of a card: compute, memory, who is on it, how many more may be, and the slices that are taken."""
    slices = {number for share in shares if share.profile for number in slices_of(share, card.model)}
    return [
        WHOLE - sum(share.milli for share in shares),
        card.memory - sum(share.memory for share in shares),
        len(shares),
        card.slots - len(shares),
        sum(1 << number for number in slices),
    ]


def assert_everybody_has_what_it_asked_for(scheduler: Scheduler) -> None:
    cluster = scheduler.cluster
    for record in cluster.pods.records.values():
        request = record.shape.card_request
        if record.row < 0 or request is None:
            continue
        cards = cluster.nodes.cards.cards(record.row)
        asks = request.asks[cards.sharing]
        shares = cluster.card_holders.shares_of(record.key)
        assert len(shares) == sum(ask.count for ask in asks)
        assert all(cards.cards[share.card].is_healthy and request.suits(cards.cards[share.card]) for share in shares)


@given(choose=choices(), depths=st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_what_is_tried_with_cards_is_undone_to_the_last_share(choose: Choose, depths: list[int]) -> None:
    cluster = random_card_cluster(choose)

    def everything() -> tuple[Any, Any]:
        return fingerprint(cluster), cluster.card_holders.fingerprint()

    def try_out(depths: list[int]) -> None:
        before = everything()
        with cluster.what_if():
            for _ in range(depths[0]):
                change_something(cluster, choose)
            if depths[1:]:
                try_out(depths[1:])
        assert everything() == before

    try_out(depths)


@given(world=card_worlds(), batches=st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_no_card_gives_more_than_it_has(world: CardWorld, batches: list[int]) -> None:
    story = Story(world, assembled(None))
    for count in batches:
        story.tell(world.new_pods(world.template(), count))
        story.cycle()
        assert_nobody_has_too_much(story.fast.cluster)
        assert_everybody_has_what_it_asked_for(story.fast)


@given(world=card_worlds(), steps=st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_whatever_happens_cards_are_given_out_as_if_computed_from_nothing(world: CardWorld, steps: list[int]) -> None:
    story = Story(world, assembled(None))

    for events in steps:
        story.tell(world.events(events))
        story.cycle()
        plain, fast = (found.cluster.card_holders.fingerprint() for found in (story.plain, story.fast))
        assert plain == fast


@given(choose=choices())
def test_a_row_takes_as_many_pods_as_its_room_says(choose: Choose) -> None:
    world = random_card_world(choose, nodes=3, templates=1)
    names = list(world.nodes)
    pods = [world.templates[0].pod(f"pod-{index}", node=names[choose(3)] if choose(2) else "") for index in range(6)]
    cluster = make_cluster(nodes=world.nodes.values(), pods=[*pods, *world.templates[0].pods(40)])
    waiting = [record for record in cluster.pods.records.values() if record.row < 0]
    request = waiting[0].shape.card_request
    assert request is not None
    rows = cluster.nodes.live_rows()
    room = cluster.rows(rows).cards.room(request, most=7).tolist()

    def takes(row: int) -> int:
        one = np.array([row], np.intp)
        with cluster.what_if():
            for count, record in enumerate(waiting):
                if (count == 7 and room[row] == 7) or cluster.rows(one).cards.refusals(request)[0]:
                    return count
                cluster.assume(record.key, row)
        raise AssertionError("there is no end of room")

    assert [takes(row) for row in rows.tolist()] == room


@given(choose=choices(), extra=st.lists(st.integers(0, 4), min_size=4, max_size=4))
def test_cards_with_more_pods_supposed_are_as_they_are_once_those_are_there(choose: Choose, extra: list[int]) -> None:
    world = random_card_world(choose, nodes=4, templates=2)
    pods = [world.templates[1].pod(f"other-{index}", node=f"node-{choose(4)}") for index in range(choose(6))]
    cluster = make_cluster(nodes=world.nodes.values(), pods=[*pods, *world.templates[0].pods(16)])
    waiting = [record for record in cluster.pods.records.values() if record.row < 0]
    shape = waiting[0].shape
    request = shape.card_request
    assert request is not None
    rows = cluster.nodes.live_rows()
    fits = [
        min(more, room) for more, room in zip(extra, cluster.rows(rows).cards.room(request, 4).tolist(), strict=True)
    ]

    supposed = NodeRows(cluster.nodes, rows, np.array(fits, np.int64), shape).cards
    with cluster.what_if():
        for row, count in zip(rows.tolist(), fits, strict=True):
            for _ in range(count):
                cluster.assume(waiting.pop().key, row)
        real = NodeRows(cluster.nodes, rows, shape=shape).cards

        assert supposed.facts.tolist() == real.facts.tolist()
        assert supposed.refusals(request).tolist() == real.refusals(request).tolist()
        assert supposed.fullness(request).tolist() == real.fullness(request).tolist()

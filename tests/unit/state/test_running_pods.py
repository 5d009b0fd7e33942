"""Many pods that run are taken in at once, as a start with a full cluster does: as if they had come one by one."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from mooring.engine.cycle import MANY, Scheduler
from mooring.errors import InputError
from mooring.model.api.pods import Pod
from mooring.model.events import Event, NodeSeen, PodSeen
from mooring.testing.builders import (
    make_affinity,
    make_nodes,
    make_pod,
    make_pod_term,
    make_scheduler,
    make_spread,
)

NODES = 8


def some_pods(seed: int) -> list[Pod]:
    """Pods of every kind that a cluster may hold when a scheduler starts."""
    draw = random.Random(seed)
    found = []
    for number in range(6 * MANY):
        name, node = f"p{number}", f"node-{draw.randrange(NODES)}"
        app = {"app": draw.choice("abc")}
        kinds: Sequence[tuple[int, dict[str, Any]]] = (
            (40, {"cpu": draw.choice(("100m", "1"))}),
            (6, {"labels": app}),
            (3, {"host_ports": (8000 + number,)}),
            (2, {"labels": app, "affinity": make_affinity(near=[make_pod_term(labels=app)])}),
            (2, {"labels": app, "spread": [make_spread(labels=app)]}),
            (1, {"node": ""}),
            (1, {"node": "nowhere"}),
            (1, {"annotations": {"mooring.dev/gang": "true", "mooring.dev/gang-name": "g"}}),
            (1, {"phase": "Succeeded"}),
        )
        given = draw.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]
        found.append(make_pod(name, **{"node": node, **given}))
    return found


def told(events: Sequence[Event], *, at_once: bool) -> Scheduler:
    scheduler = make_scheduler(nodes=make_nodes(NODES, cpu="1000", pods=10_000))
    if at_once:
        scheduler.handle(*events)
        scheduler.catch_up(100.0)
    else:
        for event in events:
            scheduler.handle(event)
            scheduler.catch_up(100.0)
    return scheduler


def facts(scheduler: Scheduler) -> dict[str, Any]:
    cluster = scheduler.cluster
    records = {
        key: (each.slot, each.shape.id, each.row, each.node_name, each.assumed)
        for key, each in cluster.pods.records.items()
    }
    shapes, rows = cluster.pods.bound()
    return {
        "records": records,
        "nodes": cluster.nodes.fingerprint(),
        "bound": (shapes.tolist(), rows.tolist()),
        "on rows": {row: sorted(slots) for row, slots in cluster.pods.on_row.items()},
        "waiting": len(scheduler.queue),
        "gangs": {key: sorted(record.members) for key, record in cluster.gangs.records.items()},
        "changes": cluster.pod_changes.position,
        "faults": [str(fault) for fault in scheduler.faults],
    }


@pytest.mark.parametrize("seed", range(8))
def test_a_cluster_that_is_read_at_once_is_the_one_that_came_pod_by_pod(seed: int) -> None:
    events: list[Event] = [PodSeen(pod) for pod in some_pods(seed)]
    events.insert(MANY // 2, NodeSeen(make_nodes(NODES + 1, cpu="1000", pods=10_000)[-1]))
    events += events[:MANY]  # seen again, as they were

    at_once, one_by_one = told(events, at_once=True), told(events, at_once=False)

    assert facts(at_once) == facts(one_by_one)
    assert [str(each) for each in at_once.cycle(101.0)] == [str(each) for each in one_by_one.cycle(101.0)]


def test_pods_that_ask_for_too_much_together_hide_nobody_else() -> None:
    large = [make_pod(f"large-{number}", cpu=str(2**60), node="node-0") for number in range(4200)]
    small = [make_pod(f"small-{number}", cpu="1", node="node-1") for number in range(MANY)]

    found = told([PodSeen(pod) for pod in (*large, *small)], at_once=True)

    assert any(isinstance(fault.error, InputError) for fault in found.faults)
    assert sum(each.row >= 0 for each in found.cluster.pods.records.values()) == len(large) + len(small)

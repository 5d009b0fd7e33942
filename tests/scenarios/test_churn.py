"""A day of churn: pods of ever new shapes come and go, and what is kept for them goes with them."""

from collections.abc import Iterator

import pytest

from mooring.actions.admit.action import Admit
from mooring.actions.admit.cycle import pending_queue, quota_requests
from mooring.actions.admit.quota import structure, workload_info
from mooring.assembly import assemble
from mooring.engine.cycle import Scheduler
from mooring.model.api.pods import Affinity, Pod, PodAffinity
from mooring.model.decisions import Bind
from mooring.model.events import NodeSeen, PodLost, PodSeen
from mooring.state import cluster as cluster_module
from mooring.testing.builders import make_node, make_pod, make_pod_term
from mooring.testing.queueing_builders import make_group, make_queue, make_quota
from mooring.testing.tenant_builders import TenantWorld, make_job

NODES = 20
AT_A_TIME = 500


def keeps_away(app: str) -> Affinity:
    return Affinity(pod_anti_affinity=PodAffinity(required=[make_pod_term(labels={"app": app})]))


def ever_new_pods(rounds: int) -> Iterator[list[Pod]]:
    """No two pods ask for the same; every tenth keeps away from its own kind."""
    for number in range(rounds):
        yield [
            make_pod(
                f"pod-{number}-{index}",
                cpu=f"{10 + index % 50}m",
                memory=str((1 << 20) + number * AT_A_TIME + index),
                labels={"app": f"app-{number}-{index}"},
                affinity=keeps_away(f"app-{number}-{index}") if index % 10 == 0 else None,
            )
            for index in range(AT_A_TIME)
        ]


def sizes(scheduler: Scheduler) -> dict[str, int]:
    """How much is kept, table by table."""
    cluster = scheduler.cluster
    shapes = cluster.shapes
    return {
        "shapes": len(shapes.all),
        "in use": shapes.in_use,
        "with affinity": len(shapes.with_pod_affinity),
        "labels": max(len(shapes._labelled), len(shapes._asking)),
        "specs": len(shapes._signature_of),
        "amounts": len(cluster.nodes._taken),
        "node changes": len(cluster._node_changes),
        "pods": len(cluster.pods.by_slot),
        "answers": sum(len(action.batches.kept._known) for action in scheduler.actions if hasattr(action, "batches")),
    }


def test_a_day_of_ever_new_pods_leaves_no_more_behind_than_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "SPARE_SHAPES", 1_000)
    monkeypatch.setattr(cluster_module, "MOST_NODE_CHANGES", 10)
    scheduler = assemble().new_scheduler()
    scheduler.handle(*(NodeSeen(make_node(f"node-{index}", cpu=64, pods=110)) for index in range(NODES)))
    after: list[dict[str, int]] = []
    for number, pods in enumerate(ever_new_pods(20)):
        scheduler.handle(*map(PodSeen, pods))
        scheduler.handle(NodeSeen(make_node("node-0", cpu=64, pods=110, labels={"round": str(number)})))
        decisions = scheduler.cycle(now=float(number))
        assert sum(isinstance(decision, Bind) for decision in decisions) == AT_A_TIME
        scheduler.handle(*(PodLost(pod.key) for pod in pods))
        after.append(sizes(scheduler))

    # As many as pods have and had a moment ago, and the spare ones; every pod here has a label of its own as well.
    most = 1_000 + 4 * AT_A_TIME
    assert {name: max(found[name] for found in after) <= most for name in after[0]} == dict.fromkeys(after[0], True)
    assert after[-1]["answers"] > 0


def test_a_day_of_ever_new_jobs_leaves_no_more_behind_than_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job asks for another amount, of nodes of another kind; every third for more than there will ever be."""
    monkeypatch.setattr(workload_info, "MOST_POD_SETS_KNOWN", 20)
    monkeypatch.setattr(workload_info, "MOST_NUMBERS_KNOWN", 20)
    monkeypatch.setattr(structure, "MOST_ANSWERS", 20)
    monkeypatch.setattr(quota_requests, "MOST_KEPT", 20)
    monkeypatch.setattr(pending_queue, "MOST_FAILED", 20)
    world = TenantWorld([make_queue("queue", make_group(flavor=make_quota(4)))])
    for number in range(60):
        job = make_job(f"job-{number}", cpu=f"{1000 + number + 9000 * (number % 3 == 0)}m", second=number)
        job.workload.spec.pod_sets[0].template.spec.node_selector = {"kind": str(number)}
        world.submit(job)
        world.cycle(1.0)
        world.succeed(*(pod.key for pod in job.pods))
        world.cycle(1.0)
        world.delete(job)
        world.cycle(1.0)

    admit = next(action for action in world.scheduler.actions if isinstance(action, Admit))
    lifecycle = admit.lifecycle
    assert lifecycle is not None
    intake, admission = lifecycle.admission.intake, lifecycle.admission
    (only,) = admission.pending
    kept = {
        "pod sets": len(intake._known),
        "numbers": len(intake._numbers),
        "matches": len(admission.structure.matcher._answers),
        "shapes that failed": len(only._failed_shapes),
    }
    assert (lifecycle.workloads, len(admission.ledger)) == ({}, 0)
    assert {name: size <= 20 for name, size in kept.items()} == dict.fromkeys(kept, True), kept

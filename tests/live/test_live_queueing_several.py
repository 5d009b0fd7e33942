"""Several active schedulers and one set of queues: one of them admits, and all place what is admitted."""

import random
import signal
import time

import pytest
from control_plane import Program, until
from judge import QUEUE, Judge
from kube import Kube, Object, pod
from test_live_queueing import ADMISSION, job
from test_live_queueing_chaos import PRIORITY, QUICK, QUOTAS, finish_some, queued_pod
from test_live_queueing_chaos import queues as queues  # a fixture

NAMES = ("left", "right")
SHARED = (*QUICK, "--share-nodes")


@pytest.fixture
def rivals(queues: Kube) -> dict[str, Program]:
    """Two schedulers for pods of two names, on the same nodes."""
    found = {name: start(queues, name, 0) for name in NAMES}
    for each in found.values():
        each.wait_until_it_says("scheduling for")
    return found


def start(queues: Kube, name: str, number: int) -> Program:
    return queues.run(*SHARED, f"--scheduler-name={name}", name=f"{name}-{number}")


def of(name: str, found: Object) -> Object:
    """A job or pod whose pods this scheduler is to place."""
    spec = found["spec"]["template"]["spec"] if "template" in found["spec"] else found["spec"]
    spec["schedulerName"] = name
    return found


def wave(cluster: Kube, number: int) -> None:
    """More than there is quota for, by halves of one and of the other."""
    priority = {PRIORITY: "high"} if number else {}
    cluster.create(
        *(
            of(NAMES[i % 2], job(f"job-{number}-{i}", "1", {QUEUE: ("red", "blue")[i % 2], **priority}))
            for i in range(6)
        ),
        *(of(NAMES[i % 2], queued_pod(f"pod-{number}-{i}", ("red", "blue")[i % 2])) for i in range(4)),
    )


def holder(cluster: Kube) -> str:
    found: str = cluster.call("GET", ADMISSION)["spec"]["holderIdentity"]
    return found


def admitting(rivals: dict[str, Program]) -> list[str]:
    return [name for name, each in rivals.items() if "admitting" in each.log.read_text(errors="replace")]


def test_two_that_share_a_cluster_never_exceed_its_quota(queues: Kube, rivals: dict[str, Program]) -> None:
    with Judge(queues, {}, quotas=QUOTAS) as judge:
        for number in range(3):
            wave(queues, number)
            time.sleep(1.5)
            finish_some(queues)
        judge.wait_until_sound()
    assert len(admitting(rivals)) == 1
    assert all(each.is_running for each in rivals.values())


def test_when_who_admits_is_killed_another_does(queues: Kube, rivals: dict[str, Program]) -> None:
    drawn = random.Random(5)
    with Judge(queues, {}, quotas=QUOTAS) as judge:
        for number in range(3):
            until(lambda: len(admitting(rivals)) == 1, 30)
            wave(queues, number)
            time.sleep(drawn.uniform(0.0, 0.5))
            (one,) = admitting(rivals)
            other = next(name for name in NAMES if name != one)
            rivals[one].send(signal.SIGKILL)
            rivals[other].wait_until_it_says("admitting", 30)
            finish_some(queues)
            # Whoever comes back finds that another admits, and places pods all the same.
            rivals[one] = start(queues, one, 2 * number + 1)
            rivals[one].wait_until_it_says("waiting for the lease")
            assert "admitting" not in rivals[one].tail()
            if number < 2:  # the roles are changed by an orderly end
                before = holder(queues)
                assert rivals[other].stop() == 0
                rivals[one].wait_until_it_says("admitting", 10)
                assert holder(queues) not in ("", before)
                rivals[other] = start(queues, other, 2 * number + 2)
                rivals[other].wait_until_it_says("waiting for the lease")
        judge.wait_until_sound()


def test_who_does_not_admit_places_pods_and_holds_those_back_that_have_no_quota(
    queues: Kube, rivals: dict[str, Program]
) -> None:
    until(lambda: len(admitting(rivals)) == 1, 30)
    (one,) = admitting(rivals)
    other = next(name for name in NAMES if name != one)
    started = time.monotonic()
    queues.create(pod("plain", schedulerName=other))
    queues.wait_until_bound(["plain"], 10)
    assert time.monotonic() - started < 10
    # Pods that nobody has put behind a gate: those of them that have no quota must not run.
    eager = [of(other, queued_pod(f"eager-{i}", "red")) for i in range(12)]
    for each in eager:
        del each["spec"]["schedulingGates"]
    with Judge(queues, {}, quotas=QUOTAS):
        queues.create(*eager)
        until(lambda: len(bound_of(queues, "eager")) == 8, 30, rivals[other].tail)
        time.sleep(1.0)
        assert len(bound_of(queues, "eager")) == 8
    rivals[one].send(signal.SIGSTOP)  # it admits no more, and cannot give its lease back
    queues.create(pod("meanwhile", schedulerName=other))
    queues.wait_until_bound(["meanwhile"], 10)
    rivals[other].wait_until_it_says("admitting", 30)
    rivals[one].send(signal.SIGCONT)
    until(lambda: not rivals[one].is_running, 30, rivals[one].tail)
    assert rivals[one].stop() == 1


def bound_of(cluster: Kube, prefix: str) -> list[str]:
    found = cluster.pods().items()
    return [name for name, each in found if name.startswith(prefix) and each["spec"].get("nodeName")]

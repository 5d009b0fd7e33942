"""An API server that is there and fails at everything for a while. `MOORING_OUTAGE_SECONDS` makes it longer."""

import os
import time

import pytest
from control_plane import until
from faulty_proxy import behind_proxy
from judge import Judge
from kube import Kube, condition, node, pod
from test_chaos import CPU, NODES, make_work

pytestmark = pytest.mark.live

SECONDS = float(os.environ.get("MOORING_OUTAGE_SECONDS", "20"))


def test_a_server_that_answers_500_to_everything_for_a_while_is_outlived(kube: Kube) -> None:
    with behind_proxy(kube) as proxy:
        kube.create(*(node(f"n{i:02}", cpu=CPU) for i in range(NODES)))
        scheduler = kube.run()
        scheduler.wait_until_it_says("scheduling for")
        sizes = make_work(kube, 0)
        until(lambda: len(proxy.bound) > 5, 60, scheduler.tail)  # in the middle of it
        with Judge(kube, sizes, proxy) as judge:
            proxy.faults.is_failing = True
            proxy.drop_watches()
            sizes |= make_work(kube, 1)
            kube.delete(*(pod(f"web-0-{i}") for i in range(0, 24, 5)))
            time.sleep(SECONDS)
            assert scheduler.is_running, scheduler.tail()
            assert proxy.faults.counted["failing"] > 10
            proxy.faults.is_failing = False
            sizes |= make_work(kube, 2)
            judge.wait_until_sound(lambda: gangs_without_their_condition(kube, sizes))
        assert scheduler.is_running


def gangs_without_their_condition(kube: Kube, sizes: dict[str, int]) -> list[str]:
    """Gangs that run, and whose PodGroup does not say so; pods that wait and do not say why."""
    pods = kube.pods()
    said: list[str] = []
    for name in sizes:
        if pods[f"{name}-0"]["spec"].get("nodeName"):
            group = kube.call("GET", f"/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/{name}")
            found = condition(group, "PodGroupInitiallyScheduled")
            if found is None or found["status"] != "True":
                said.append(f"{name} runs and its PodGroup says {found}")
    for name, each in pods.items():
        if not each["spec"].get("nodeName") and condition(each, "PodScheduled") is None:
            said.append(f"{name} waits and does not say why")
    return said

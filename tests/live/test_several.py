"""Several active schedulers on one cluster: by name on shared nodes, or each with a part of its own."""

import json
import re
import time
from pathlib import Path

import pytest
from control_plane import Program, free_port, until
from judge import millis
from kube import Kube, node, pod
from test_failures import get

CPU = 2
THINKS = """\
import time

from mooring.plugin import Reserve


class Licences(Reserve):
    def reserve(self, pod, cluster, row):
        time.sleep(0.005)  # as long as it takes to ask somebody
        return ()
"""


def allocated(kube: Kube) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in kube.pods().values():
        place = each["spec"].get("nodeName")
        if place:
            found[place] = found.get(place, 0) + millis(each)
    return found


def binds(address: str) -> dict[str, float]:
    """How many binds of a scheduler came to what so far."""
    _, metrics = get(f"{address}/metrics")  # nothing while it starts
    outcomes = re.finditer(r'^mooring_binds_total\{outcome="(\w+)"\} (\S+)$', metrics, re.MULTILINE)
    return {found[1]: float(found[2]) for found in outcomes}


def bound_at(logs: list[Path]) -> list[float]:
    """When pods were bound, as the decision logs of schedulers say: asking them often would slow them down."""
    lines = [line for log in logs if log.exists() for line in log.read_bytes().splitlines(keepends=True)]
    said = [json.loads(line) for line in lines if b'"Bound"' in line and line.endswith(b"\n")]
    return sorted(found["time"] for found in said if found["kind"] == "Bound")


def seconds_of_binding(logs: list[Path], count: int, program: Program) -> float:
    """Wait for so many binds of all schedulers together; how long they took from the first one on."""

    def are_done() -> bool:
        time.sleep(0.3)
        return len(bound_at(logs)) >= count

    until(are_done, 200, program.tail)
    times = bound_at(logs)
    return times[-1] - times[0]


WAITS = ("--leader-elect-lease-duration=300s", "--leader-elect-retry-period=0.2s")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


def hold_lease(kube: Kube, name: str) -> None:
    """A scheduler that wants this lease follows the cluster, and decides nothing until it is let go."""
    metadata = {"name": name, "namespace": "kube-system"}
    spec = {"holderIdentity": "the-start-line", "leaseDurationSeconds": 3600}
    kube.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})


def let_go(kube: Kube, name: str) -> None:
    kube.call("DELETE", f"{LEASES}/{name}")


def schedule(kube: Kube, count: int, nodes: int, pods: int, *more: str) -> tuple[float, list[float]]:
    """Let so many schedulers, which begin at once, place a backlog of pods; four fill a node to the last core.
    `more` options are those of each.

    Seconds from the first bind to the last, and the share of conflicts among the binds of each.
    """
    kube.clean()
    names = [f"n{i:03}" for i in range(nodes)]
    fitting = min(pods, nodes * CPU * 2)
    kube.create(*(node(name, cpu=CPU) for name in names))
    kube.create(*(pod(f"p{i}", cpu="500m", schedulerName=f"mooring-{i % count}") for i in range(pods)))
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(count)]
    programs: list[Program] = []
    leases = [f"mooring-{number}" for number in range(count)]
    logs = [kube.directory / f"{lease}.jsonl" for lease in leases]
    for lease, log in zip(leases, logs, strict=True):  # of the run before
        log.unlink(missing_ok=True)
        (kube.directory / f"{count}-{lease}.log").unlink(missing_ok=True)
    for lease, address in zip(leases, addresses, strict=True):
        hold_lease(kube, lease)
        options = [f"--scheduler-name={lease}", f"--health-address={address}", *WAITS]
        options += [f"--decision-log={kube.directory / lease}.jsonl", *more]
        shares = ["--share-nodes"] if count > 1 else []
        programs.append(kube.run(*options, *shares, name=f"{count}-{lease}", leads=True))
    for program in programs:
        program.wait_until_it_says("waiting for the lease", 120)
    for lease in leases:
        let_go(kube, lease)
    took = seconds_of_binding(logs, fitting, programs[0])
    used = allocated(kube)
    assert sum(used.values()) == fitting * 500
    assert all(amount <= CPU * 1000 for amount in used.values())
    assert all(re.search(r"(?m)^mooring_bind_conflict_ratio \S+$", get(f"{each}/metrics")[1]) for each in addresses)
    outcomes = [binds(address) for address in addresses]
    for program in programs:
        assert program.stop(60) == 0, program.tail()
    for lease in leases:
        let_go(kube, lease)
    return took, [each.get("conflict", 0.0) / max(1.0, sum(each.values())) for each in outcomes]


def shown(rates: list[float]) -> str:
    return ", ".join(f"{rate:.1%}" for rate in rates)


@pytest.mark.parametrize("count", [2, 3])
def test_several_schedulers_on_the_same_nodes_overfill_none(cluster: Kube, count: int) -> None:
    took, rates = schedule(cluster, count, 25, 120)
    print(f"{count} schedulers: {took:.1f} s; conflicts {shown(rates)}")


@pytest.mark.live
@pytest.mark.long  # it measures time, so it is of use on a quiet machine only
def test_several_schedulers_outdo_one_that_has_to_think(kube: Kube, tmp_path: Path) -> None:
    """What several are for: one is at its limits, and the API server is not."""
    plugin = tmp_path / "licences.py"
    plugin.write_text(THINKS)
    pods = 500
    alone, *together = (schedule(kube, count, 160, pods, f"--plugin={plugin}") for count in (1, 2, 3))
    rates = [pods / took for took, _ in (alone, *together)]
    print("one, two and three schedulers:", ", ".join(f"{rate:.0f}" for rate in rates), "pods a second")
    assert min(rates[1:]) >= rates[0]
    for _, conflicts in together:
        print(f"conflicts {shown(conflicts)}")


def test_each_scheduler_has_the_pods_and_nodes_of_its_part(cluster: Kube) -> None:
    cluster.create(node("a0", labels={"pool": "a"}), node("b0", labels={"pool": "b"}))
    quick = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "quick"}, "value": 5}
    cluster.create(quick)
    cluster.run("--node-pool=pool=b", "--only-priority-class=quick", name="b")
    cluster.create(pod("ours", priorityClassName="quick"), pod("theirs"))
    assert cluster.wait_until_bound(["ours"]) == {"ours": "b0"}
    time.sleep(1)
    assert cluster.by_node() == {"b0": 1, "": 1}
    cluster.run("--node-pool=pool=a", "--only-namespace=default", name="a")
    assert cluster.wait_until_bound(["theirs"]) == {"theirs": "a0"}

"""What a node's agent is told of its GPUs."""

import asyncio
import json

import pytest

from mooring.drivers.live.api.client import ApiError
from mooring.drivers.live.api.requests import binding, cut_gpu
from mooring.drivers.live.pods import cutting
from mooring.model.decisions import Bind, Instance, Partition
from mooring.model.events import Failed
from mooring.testing.builders import make_node, make_pod, make_scheduler


def test_how_a_gpu_is_cut_is_written_to_its_node_and_what_is_over_taken_away() -> None:
    annotations = (("spec-gpu-0-3g.40gb", "2"), ("spec-gpu-0-1g.10gb", ""))
    decision = Partition("n", 0, (Instance("3g.40gb", 0), Instance("3g.40gb", 4)), annotations)

    assert json.loads(cut_gpu(decision)) == {
        "metadata": {"annotations": {"spec-gpu-0-3g.40gb": "2", "spec-gpu-0-1g.10gb": None}}
    }


def test_a_pods_cards_are_written_with_its_binding() -> None:
    decision = Bind("default/p", "n", (("alibabacloud.com/gpu-index", "0-1"),), (("runai-gpu-group", "g"),))

    assert json.loads(binding(make_pod("p"), decision))["metadata"] == {
        "name": "p",
        "namespace": "default",
        "uid": "uid-default-p",
        "annotations": {"alibabacloud.com/gpu-index": "0-1"},
        "labels": {"runai-gpu-group": "g"},
    }


class Server:
    """Answers with one node, which has one more instance each time that it is asked for."""

    def __init__(self, instances: int = 0, error: ApiError | None = None) -> None:
        self.instances, self.error = instances, error

    async def get(self, path: str) -> bytes:
        assert path == "/api/v1/nodes/n"
        if self.error is not None:
            raise self.error
        self.instances += 1
        return json.dumps({"status": {"allocatable": {"nvidia.com/mig-1g.10gb": str(self.instances)}}}).encode()


def waited(server: Server, seconds: float = 60.0) -> str:
    decision = Bind("default/p", "n", instances=(("nvidia.com/mig-1g.10gb", 3),))
    return asyncio.run(cutting.wait_for_instances(server, decision, seconds))  # type: ignore[arg-type]


def test_a_pod_is_bound_once_its_node_has_the_instances_it_was_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "LOOK_SECONDS", 0.0)
    server = Server()

    assert waited(server) == ""
    assert server.instances == 3


def test_a_pod_waits_again_where_nobody_cuts_the_gpu() -> None:
    assert waited(Server(), seconds=-1.0) == ("node n was not cut within -1 s: it has too few nvidia.com/mig-1g.10gb")
    assert waited(Server(error=ApiError(404, "NotFound", "nodes n not found"))) == "nodes n not found"


def test_a_gpu_that_is_cut_already_may_be_cut_further() -> None:
    """The node offers the one instance that it has now; two more fit on its GPU."""
    labels = {
        "nos.nebuly.com/gpu-partitioning": "mig",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "nvidia.com/gpu.count": "1",
    }
    node = make_node("n", labels=labels, resources={"nvidia.com/gpu": 0, "nvidia.com/mig-3g.40gb": 1})
    pods = [make_pod(f"p-{at}", resources={"nvidia.com/mig-3g.40gb": 1}) for at in range(2)]

    made = [found for found in make_scheduler(nodes=[node], pods=pods).cycle(1.0) if isinstance(found, Bind)]

    assert [found.instances for found in made] == [(("nvidia.com/mig-3g.40gb", 2),)] * 2


def test_a_cut_that_failed_does_not_count_as_done() -> None:
    """The node is told again when that may be tried, for as long as a pod needs it."""
    labels = {
        "nos.nebuly.com/gpu-partitioning": "mig",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "nvidia.com/gpu.count": "1",
    }
    node = make_node("n", labels=labels, resources={"nvidia.com/gpu": 1})
    scheduler = make_scheduler(nodes=[node], pods=[make_pod("p", resources={"nvidia.com/mig-3g.40gb": 1})])
    (cut,) = [found for found in scheduler.cycle(1.0) if isinstance(found, Partition)]
    assert scheduler.cycle(2.0) == []

    scheduler.handle(Failed(cut, "forbidden", retry_after=5.0))
    assert scheduler.cycle(3.0) == []
    assert scheduler.next_wake(3.0) == 8.0
    assert scheduler.cycle(8.0) == [cut]

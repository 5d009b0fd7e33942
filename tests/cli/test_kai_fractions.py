"""Parts of GPUs count in KAI's queues as whole ones do."""

import pytest
from queue_manifests import NODE, Call, placed, shown_queues
from test_other_queues import kai_pods, kai_queue

WHOLE = "resources: {limits: {nvidia.com/gpu: 1}}"
LABELLED = NODE.replace("{name: n}", "{name: n, labels: {nvidia.com/gpu.memory: '40000'}}")


def parts(name: str, queue: str, count: int, annotations: str) -> str:
    """So many pods that ask for a part of a GPU each."""
    return kai_pods(name, queue, count, annotations=f", {annotations}").replace(WHOLE, "resources: {}")


@pytest.mark.parametrize(
    ("limit", "annotations", "expected"),
    [
        ("2", "gpu-fraction: '0.5'", 4),
        ("1.5", "gpu-fraction: '0.5'", 3),
        ("2", "gpu-fraction: '0.5', gpu-fraction-num-devices: '2'", 2),
        ("2", "gpu-memory: '10000'", 8),
    ],
    ids=["halves", "a limit of one and a half", "halves of two", "a quarter, by memory"],
)
def test_a_queue_holds_no_more_parts_than_its_limit_has(
    mooring: Call, write: Call, limit: str, annotations: str, expected: int
) -> None:
    queue = kai_queue("qa", f"{{limit: {limit}, overQuotaWeight: 1}}")

    assert placed(mooring, "-f", write(LABELLED + queue + parts("a", "qa", 9, annotations))) == {"a": expected}


def test_parts_and_whole_gpus_count_together(mooring: Call, write: Call) -> None:
    queue = kai_queue("qa", "{limit: 4, overQuotaWeight: 1}")
    file = write(NODE + queue + parts("a", "qa", 1, "gpu-fraction: '0.5'") + kai_pods("b", "qa", 6))

    assert placed(mooring, "-f", file) == {"a": 1, "b": 3}
    said = mooring("schedule", "-f", file, "--as", "kai-scheduler").out
    assert "3 pods: queue qa may hold 4 nvidia.com/gpu, 3.5 of it held; 1 more asked for" in said


def test_queues_shows_parts_of_gpus(mooring: Call, write: Call) -> None:
    file = write(NODE + kai_queue("qa", "{quota: 0.5, limit: 1.5}") + parts("a", "qa", 1, "gpu-fraction: '0.5'"))

    ((_, _, _, deserved, allocated, capability, *_),) = shown_queues(mooring, "-f", file, "--as", "kai-scheduler")

    gpus = [amounts["nvidia.com/gpu"] for amounts in (deserved, allocated, capability)]
    assert gpus == [0.5, 0.5, 1.5]

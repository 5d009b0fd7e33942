"""Traces: files in, arrivals in order of time out; what cannot be read is refused with file, line and field."""

import gzip
import math
from pathlib import Path
from typing import Any

import pytest

from mooring.drivers.sim.arrival import Arrival
from mooring.drivers.sim.traces import TRACES
from mooring.errors import ConfigError

NODES = """sn,cpu_milli,memory_mib,gpu,model
node-0,64000,262144,2,P100
node-1,96000,393216,0,
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-0,12000,16384,1,1000,,LS,Running,0,900,300
pod-1,6000,12288,1,460,P100|T4,LS,Running,50,650,50
pod-2,8000,8192,0,0,,BE,Pending,50,90,
"""
JOBS = """submit_time,duration,pods,cpu,memory,nvidia.com/gpu,queue,priority,name
0,3600,4,8,32Gi,2,research,5,train
10.5,,,500m,,,,,
"""


def written(tmp_path: Path, text: str, name: str = "trace.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def work(path: Path, form: str, **options: Any) -> list[Arrival]:
    read = TRACES[form].read_work
    assert read is not None
    return list(read(path, options))


def nodes(path: Path, **options: Any) -> list[dict[str, Any]]:
    read = TRACES["alibaba-gpu-2023"].read_nodes
    assert read is not None
    return list(read(path, options))


def pod(name: str, time: float, duration: float, cpu: int, memory: int, **gpu: str) -> Arrival:
    annotations = {f"alibabacloud.com/gpu-{key.replace('_', '-')}": value for key, value in gpu.items()}
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    return Arrival(time=time, name=name, duration=duration, requests=requests, annotations=annotations)


def test_alibabas_pods_come_when_they_were_created_and_run_as_long_as_they_did(tmp_path: Path) -> None:
    path = written(tmp_path, PODS)

    assert work(path, "alibaba-gpu-2023") == [
        pod("pod-0", 0.0, 600.0, 12000, 16384, milli="1000", count="1"),
        pod("pod-1", 50.0, 600.0, 6000, 12288, milli="460", count="1", card_model="P100|T4"),
        pod("pod-2", 50.0, 40.0, 8000, 8192),
    ]


def test_a_trace_can_be_run_faster_than_it_was(tmp_path: Path) -> None:
    found = work(written(tmp_path, PODS), "alibaba-gpu-2023", speedup=10)

    assert [(arrival.time, arrival.duration) for arrival in found] == [(0.0, 60.0), (5.0, 60.0), (5.0, 4.0)]


def test_alibabas_pods_come_in_a_given_order_a_repeated_name_as_another_copy_and_stay(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "order.txt.gz", "wt") as file:
        file.write("pod-2\npod-0\npod-2\n")
    five_columns = "\n".join(",".join(line.split(",")[:5]) for line in PODS.splitlines())

    found = work(written(tmp_path, five_columns), "alibaba-gpu-2023", order="order.txt.gz")

    assert [(arrival.time, arrival.name, arrival.duration) for arrival in found] == [
        (0.0, "pod-2", math.inf),
        (1.0, "pod-0", math.inf),
        (2.0, "pod-2-2", math.inf),
    ]


def test_alibabas_nodes_come_as_manifests_in_a_given_order(tmp_path: Path) -> None:
    path = written(tmp_path, NODES)
    written(tmp_path, "node-1\nnode-0\n", "order.txt")

    plain, ordered = nodes(path), nodes(path, order="order.txt")

    amounts = {"cpu": "64000m", "memory": "262144Mi", "pods": "1001", "alibabacloud.com/gpu-count": "2"}
    assert plain[0] == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-0", "labels": {"alibabacloud.com/gpu-card-model": "P100"}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
    assert ordered == plain[::-1]


def test_anyones_jobs_are_read_with_what_each_pod_asks_for(tmp_path: Path) -> None:
    assert work(written(tmp_path, JOBS), "jobs") == [
        Arrival(
            time=0.0,
            name="train",
            requests={"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2"},
            pods=4,
            duration=3600.0,
            queue="research",
            priority=5,
        ),
        Arrival(time=10.5, name="job-3", requests={"cpu": "500m"}),
    ]


HEAD = "submit_time,duration,pods,cpu\n"


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        pytest.param(
            "jobs",
            "submit_time,pods\n",
            "line 1: duration: expected a column of this name, found submit_time, pods",
            id="a missing column",
        ),
        pytest.param("jobs", "", "line 1: submit_time: expected a column of this name, found no columns", id="empty"),
        pytest.param(
            "jobs",
            "submit_time,duration,memmory\n",
            'line 1: memmory: expected a known column (did you mean memory?), found "memmory"',
            id="a column nearly right",
        ),
        pytest.param(
            "jobs",
            "submit_time,duration,cpu,cpu\n",
            "line 1: cpu: expected each column once, found 2 of this name",
            id="a column twice",
        ),
        pytest.param(
            "jobs",
            HEAD + "0,-5,1,1\n",
            'line 2: duration: expected seconds, not negative, found "-5"',
            id="a negative duration",
        ),
        pytest.param(
            "jobs",
            HEAD + "9,5,1,1\n8,5,1,1\n",
            "line 3: submit_time: expected no time before that of the line above, 9, found 8",
            id="a time that goes backwards",
        ),
        pytest.param(
            "jobs", HEAD + "0,5,0,1\n", 'line 2: pods: expected a whole number from 1, found "0"', id="no pods"
        ),
        pytest.param(
            "jobs",
            HEAD + "0,5,1,lots\n",
            'line 2: cpu: expected a quantity that is not negative, such as "500m" or "2Gi", found "lots"',
            id="no quantity",
        ),
        pytest.param(
            "jobs", HEAD + "0,5\n", "line 2: expected 4 fields, as in the first line, found 2", id="a short line"
        ),
        pytest.param(
            "jobs",
            "submit_time,duration,name\n0,1,a\n0,1,a\n",
            'line 3: name: expected each name once in a namespace, found "a" again',
            id="a name twice",
        ),
        pytest.param(
            "jobs",
            "submit_time,duration,priority\n0,1,high\n",
            'line 2: priority: expected a whole number, found "high"',
            id="a priority that is no number",
        ),
        pytest.param(
            "alibaba-gpu-2023",
            PODS.replace("650,50", "40,50"),
            "line 3: deletion_time: expected no time before it started, 50, found 40",
            id="ended before it began",
        ),
        pytest.param(
            "alibaba-gpu-2023",
            PODS.replace("Pending,50", "Pending,49"),
            "line 4: creation_time: expected no time before that of the line above, 50, found 49",
            id="created before the one above",
        ),
        pytest.param(
            "alibaba-gpu-2023",
            PODS.replace(",460,", ",1460,"),
            "line 3: gpu_milli: expected from 1 to 1000, thousandths of each GPU, found 1460",
            id="more than a GPU",
        ),
        pytest.param(
            "alibaba-gpu-2023",
            PODS.replace("gpu_milli", "milli"),
            "line 1: gpu_milli: expected a column of this name, found name, cpu_milli, memory_mib, num_gpu, milli, "
            "gpu_spec, qos, pod_phase, creation_time, deletion_time, scheduled_time",
            id="another missing column",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_file_line_and_field(
    tmp_path: Path, form: str, text: str, message: str
) -> None:
    path = written(tmp_path, text)

    with pytest.raises(ConfigError) as refused:
        work(path, form)

    assert str(refused.value) == f"{path}: {message}"


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_bytes(b"submit_time,duration\n0,1\n\xff\xfe,2\n")

    with pytest.raises(ConfigError, match=r"none\.csv: expected a file that can be read, found No such file"):
        work(tmp_path / "none.csv", "jobs")
    with pytest.raises(ConfigError, match=r"odd\.csv: line \d: expected comma-separated values in UTF-8"):
        work(tmp_path / "odd.csv", "jobs")


@pytest.mark.parametrize("form", ["jobs", "alibaba-gpu-2023"])
def test_an_option_that_is_not_known_is_refused_and_so_is_time_that_stands_still(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, JOBS if form == "jobs" else PODS)

    with pytest.raises(ConfigError, match=r"options\.speedupp: expected a known key \(did you mean speedup\?\)"):
        work(path, form, speedupp=3)
    with pytest.raises(ConfigError, match=r"options\.speedup: expected float > 0"):
        work(path, form, speedup=0)


def test_a_name_in_the_order_that_is_not_in_the_trace_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, NODES)
    written(tmp_path, "node-1\nnode-9\n", "order.txt")

    with pytest.raises(ConfigError, match=r'order\.txt: line 2: expected a name that is in trace\.csv, found "node-9"'):
        nodes(path, order="order.txt")

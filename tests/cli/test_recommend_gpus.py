"""`mooring recommend` says what pods need of the whole GPUs that they have, by the metrics of DCGM exporter."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mooring.cli.main import run

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a"},
    "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "4", "pods": "110"}},
}
A100, L4 = "NVIDIA A100-SXM4-80GB", "NVIDIA L4"


def scrape(time: int, pod: str, model: str, utilization: float, used: float, total: float, card: str = "GPU-0") -> str:
    """One GPU at one moment, in seconds."""
    labels = f'UUID="{card}",modelName="{model}",Hostname="a",namespace="ml",pod="{pod}",container="main"'
    values = {
        "DCGM_FI_DEV_GPU_UTIL": utilization,
        "DCGM_FI_DEV_FB_USED": used,
        "DCGM_FI_DEV_FB_FREE": total - used,
    }
    return "".join(f"{name}{{{labels}}} {value} {time * 1000}\n" for name, value in values.items())


def recommended(folder: Path, capfd: pytest.CaptureFixture[str], text: str, *options: str) -> tuple[int, str, str]:
    (folder / "cluster.yaml").write_text(yaml.safe_dump(NODE))
    (folder / "gpus.prom").write_text(text)
    files = ("-f", str(folder / "cluster.yaml"), "--metrics", str(folder / "gpus.prom"))
    code = run(["recommend", *files, "--quiet", *options])
    said = capfd.readouterr()
    return code, said.out, said.err


def advice(folder: Path, capfd: pytest.CaptureFixture[str], text: str, *options: str) -> list[dict[str, Any]]:
    code, out, err = recommended(folder, capfd, text, "-o", "json", *options)
    assert (code, err) == (0, "")
    found: list[dict[str, Any]] = json.loads(out).get("gpus", [])
    return found


@pytest.mark.parametrize(
    ("model", "utilization", "used", "total", "expected"),
    [
        pytest.param(A100, 10, 6_000, 81_920, ("MIG", "nvidia.com/mig-1g.10gb: 1", 0.875), id="a small instance"),
        pytest.param(A100, 10, 30_000, 81_920, ("MIG", "nvidia.com/mig-3g.40gb: 1", 0.5), id="by its memory"),
        pytest.param(A100, 40, 2_000, 81_920, ("MIG", "nvidia.com/mig-4g.40gb: 1", 0.5), id="by its compute"),
        pytest.param(A100, 90, 2_000, 81_920, ("keep", "nvidia.com/gpu: 1", 0.0), id="busy"),
        pytest.param(L4, 15, 2_000, 23_034, ("MPS", "20% of a GPU", 0.8), id="a card without MIG is shared"),
        pytest.param(L4, 60, 2_000, 23_034, ("keep", "nvidia.com/gpu: 1", 0.0), id="too much for a share"),
        pytest.param(A100, 0, 100, 81_920, ("idle", "none", 1.0), id="idle"),
    ],
)
def test_a_whole_gpu_that_is_little_used_becomes_less(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    model: str,
    utilization: float,
    used: float,
    total: float,
    expected: tuple[str, str, float],
) -> None:
    text = "".join(scrape(60 * minute, "serve", model, utilization, used, total) for minute in range(20))

    (found,) = advice(tmp_path, capfd, text)

    assert (found["change"], found["resource"], found["saving"]) == expected
    assert (found["pod"], found["model"]) == ("ml/serve", model)
    assert found["why"].endswith("; 20 samples")


def test_short_bursts_do_not_count_and_a_peak_of_memory_does(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = "".join(scrape(60 * minute, "serve", A100, 5, 1_000, 81_920) for minute in range(99))
    text += scrape(6_000, "serve", A100, 100, 60_000, 81_920)

    (found,) = advice(tmp_path, capfd, text)

    assert found["resource"] == "nvidia.com/gpu: 1"
    assert found["why"].startswith("p95 of utilization 5%, peak of memory 73%")


def test_the_table_says_what_could_be_given_to_others(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = scrape(0, "a", A100, 10, 6_000, 81_920) + scrape(0, "b", A100, 0, 0, 81_920, card="GPU-1")

    code, out, _ = recommended(tmp_path, capfd, text)

    assert code == 0
    assert "2 GPUs of pods measured, of which 1.9 could be given to others" in out


def test_only_the_pods_of_a_namespace_are_shown_where_asked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = scrape(0, "a", A100, 10, 6_000, 81_920)

    assert advice(tmp_path, capfd, text, "-n", "other") == []
    assert len(advice(tmp_path, capfd, text, "-n", "ml")) == 1


def test_a_negative_value_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = recommended(tmp_path, capfd, scrape(0, "a", A100, -5, 10, 81_920))

    assert (code, out) == (2, "")
    assert err.endswith("gpus.prom: DCGM_FI_DEV_GPU_UTIL of pod a: expected at least 0, found -5\n")

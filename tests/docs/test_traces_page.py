"""The page on traces shows a file that is read as it says."""

import re
from pathlib import Path

from mooring.drivers.sim.arrival import Arrival
from mooring.drivers.sim.traces import TRACES
from mooring.drivers.sim.traces.jobs_csv import KNOWN

PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text()
SHOWN = re.compile(r"^```csv\n(?P<text>(?:.*\n)*?)```$", re.MULTILINE)


def test_the_jobs_that_the_page_shows_are_read(tmp_path: Path) -> None:
    shown, read = SHOWN.search(PAGE), TRACES["jobs"].read_work
    assert shown is not None and read is not None
    (tmp_path / "jobs.csv").write_text(shown["text"])

    assert list(read(tmp_path / "jobs.csv", {})) == [
        Arrival(
            time=0.0,
            name="train",
            requests={"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2"},
            pods=4,
            duration=3600.0,
            queue="research",
            priority=5,
        ),
        Arrival(time=600.0, name="job-3", requests={"cpu": "500m", "memory": "1Gi"}, duration=120.5, queue="serving"),
    ]


def test_the_page_has_every_form_and_every_column() -> None:
    assert [name for name in (*TRACES, *KNOWN) if f"`{name}`" not in PAGE] == []

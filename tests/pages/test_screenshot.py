"""The picture in the README is made by a command."""

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCENARIO = """
apiVersion: config.mooring.dev/v1alpha1
kind: Simulation
name: tiny
horizon: 60s
cluster:
  objects:
  - {apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 8, memory: 64Gi, pods: 110}}}
work:
- {name: job, at: [0s], duration: 30s, requests: {cpu: 4}}
"""


@pytest.mark.skipif(
    shutil.which("chromium") is None, reason="no Chromium on the PATH (Debian: apt-get install chromium)"
)
def test_the_screenshot_of_a_scenario_is_a_picture_as_wide_as_a_screen(tmp_path: Path) -> None:
    scenario, picture = tmp_path / "scenario.yaml", tmp_path / "pictures" / "page.png"
    scenario.write_text(SCENARIO)

    command = [sys.executable, str(ROOT / "tools" / "screenshot.py"), str(scenario), str(picture)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith(f"wrote {picture}\n")
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    assert width == 1280
    assert height >= 900

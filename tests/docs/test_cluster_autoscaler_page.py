"""What the page on node groups shows can be used, and the flags that it names are those that are read."""

import re
from pathlib import Path

from mooring.config.autoscaler_flags import USED_FLAGS
from mooring.config.node_groups import parse_node_groups
from mooring.config.settings import read_settings_text

PAGE = (Path(__file__).parents[2] / "docs" / "cluster-autoscaler.md").read_text()


def test_the_file_that_is_shown_is_read() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)

    found = parse_node_groups(read_settings_text(block, "page"), "page")

    assert [(group.name, group.min_size, group.max_size) for group in found.groups] == [
        ("workers", 1, 10),
        ("gpu", 0, 4),
    ]
    assert found.groups[1].options.zero_or_max
    assert found.gpu_label == "cloud.google.com/gke-accelerator"


def test_the_flags_that_change_decisions_are_named() -> None:
    table = PAGE[PAGE.index("| flags | about |") : PAGE.index("Other flags of the Cluster Autoscaler")]

    assert sorted(re.findall(r"`--([a-z-]+)`", table)) == sorted(USED_FLAGS)

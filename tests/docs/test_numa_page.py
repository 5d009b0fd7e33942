"""The documents that the page on NUMA shows are read, and it names every field and score."""

import re
from pathlib import Path

from mooring.model.numa.documents import KubeletDocument
from mooring.model.numa.nodes import ALLOCATION, KUBELET, MACHINE, kubelet_of_annotations
from mooring.model.numa.settings import CPU_OPTIONS
from mooring.plugins.node_resource_topology_match import LEAST_NUMA_NODES
from mooring.plugins.numa_zones import STRATEGIES

PAGE = (Path(__file__).parents[2] / "docs" / "numa.md").read_text()
SHOWN = re.findall(r"^```json\n((?:.*\n)*?)```$", PAGE, re.MULTILINE)


def test_the_machine_and_the_kubelet_that_the_page_shows_make_a_kubelet() -> None:
    machine, settings, _ = SHOWN
    found = kubelet_of_annotations({MACHINE: machine, KUBELET: settings})

    assert found is not None
    assert (len(found.machine.nodes), len(found.machine.cores)) == (2, 64)
    assert len(found.machine.devices["nvidia.com/gpu"]) == 8
    assert (found.settings.topology_policy, found.settings.topology_scope) == ("single-numa-node", "pod")
    assert found.settings.cpu_options.full_pcpus_only


def test_the_page_names_every_annotation_field_and_score() -> None:
    fields = [field for field in KubeletDocument.__struct_encode_fields__ if f"`{field}`" not in PAGE]
    names = [name for name in (MACHINE, KUBELET, ALLOCATION, *STRATEGIES, LEAST_NUMA_NODES) if name not in PAGE]

    assert (fields, names, len(CPU_OPTIONS)) == ([], [], 6)

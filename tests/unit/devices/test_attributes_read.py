"""Which attributes of devices selectors and constraints read; what nobody reads tells no devices apart."""

import pytest

from mooring.model.decisions import Bind
from mooring.model.devices.reading import EVERYTHING, read_by_claim, read_by_expression
from mooring.model.events import ObjectSeen, PodSeen, Related
from mooring.testing.builders import make_node, make_scheduler
from mooring.testing.claim_builders import (
    DRIVER,
    make_claiming_pod,
    make_class,
    make_device,
    make_request,
    make_slice,
    make_template,
)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        pytest.param('device.driver == "gpu.example.com"', set(), id="none"),
        pytest.param('device.capacity["a.b"].memory.isGreaterThan(quantity("1Gi"))', set(), id="a capacity"),
        pytest.param('device.attributes["a.b"].model == "h100"', {"model"}, id="by name"),
        pytest.param('device.attributes["a.b"]["model"] == "h100"', {"model"}, id="by key"),
        pytest.param('device.attributes["a.b"].?model.orValue("") in ["x", "y"]', {"model"}, id="if there is one"),
        pytest.param(
            'has(device.attributes["a.b"].model) && device.attributes["c"].numa < 2', {"model", "numa"}, id="two"
        ),
        pytest.param('"model" in device.attributes["a.b"]', {EVERYTHING}, id="a whole domain"),
        pytest.param('cel.bind(a, device.attributes["a.b"], a.model == "h100")', {EVERYTHING}, id="a domain by a name"),
        pytest.param('device.attributes.exists(d, d == "a.b")', {EVERYTHING}, id="all domains"),
        pytest.param("device.attributes[", {EVERYTHING}, id="no expression at all"),
    ],
)
def test_what_an_expression_reads(expression: str, names: set[str]) -> None:
    assert read_by_expression(expression) == names


def test_a_claim_reads_by_its_selectors_and_its_constraints() -> None:
    template = make_template(
        "t",
        make_request("a", 'device.attributes["a.b"].model == "h100"'),
        constraints=[{"matchAttribute": "resource.kubernetes.io/pcieRoot"}],
    )

    assert read_by_claim(template.spec.spec) == {"model", "pcieRoot"}


def slice_of(node: str) -> Related:
    return make_slice(node, [make_device("gpu-0", attributes={"model": "h100", "uuid": f"GPU-{node}"})])


def test_nodes_whose_devices_differ_in_what_nobody_reads_are_alike_until_somebody_does() -> None:
    names = ("a", "b")
    scheduler = make_scheduler(
        nodes=[make_node(name) for name in names],
        related=[make_class(), make_template("any"), *(slice_of(name) for name in names)],
    )
    cluster = scheduler.cluster
    inventories = [cluster.devices.of_row(row).inventory for row in (0, 1)]

    scheduler.handle(
        ObjectSeen(make_template("that", make_request("gpu", f'device.attributes["{DRIVER}"].uuid == "GPU-b"'))),
        PodSeen(make_claiming_pod("p", templates=["that"])),
    )
    decisions = scheduler.cycle(1.0)

    assert inventories[0] is inventories[1]
    assert [(found.pod, found.node) for found in decisions if isinstance(found, Bind)] == [("default/p", "b")]
    assert cluster.devices.of_row(0).inventory is not cluster.devices.of_row(1).inventory

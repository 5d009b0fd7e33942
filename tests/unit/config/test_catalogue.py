"""Catalogues of instance types, read from files."""

from pathlib import Path
from typing import Any

import pytest

from mooring.config.catalogue import load_catalogue, parse_catalogue
from mooring.errors import ConfigError
from mooring.model.capacity.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE


def make_type(**changes: Any) -> dict[str, Any]:
    given = {
        "name": "m-4",
        "capacity": {"cpu": 4, "memory": "16Gi"},
        "overhead": {"cpu": "100m"},
        "labels": {"kubernetes.io/arch": "amd64", "gpu": []},
        "offerings": [{"zone": "a", "price": 0.2}, {"zone": "b", "capacityType": "spot", "price": 0.1}],
    }
    return {name: value for name, value in {**given, **changes}.items() if value is not None}


def make_catalogue(*types: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "mooring.dev/v1alpha1", "kind": "InstanceTypeCatalogue", "instanceTypes": list(types)}


def test_labels_follow_from_name_and_offerings() -> None:
    (found,) = parse_catalogue(make_catalogue(make_type()), "c.yaml")

    assert found.requirements[INSTANCE_TYPE].values == {"m-4"}
    assert found.requirements[ZONE].values == {"a", "b"}
    assert found.requirements[CAPACITY_TYPE].values == {"on-demand", "spot"}
    assert found.requirements["gpu"].operator == "DoesNotExist"
    assert found.allocatable == {"cpu": 3900, "memory": 16 << 30, "pods": 110}
    assert (found.price("b", "spot"), found.price("b", "on-demand")) == (0.1, None)


def test_huge_pages_come_out_of_memory() -> None:
    capacity = {"cpu": 4, "memory": "16Gi", "hugepages-1Gi": "6Gi"}
    (found,) = parse_catalogue(make_catalogue(make_type(capacity=capacity)), "c.yaml")

    assert found.allocatable["memory"] == 10 << 30


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(
            make_catalogue(make_type(offerings=[{"zone": "a"}])),
            "c.yaml: instanceTypes[0].offerings[0].price: expected a value, found none",
            id="a missing price",
        ),
        pytest.param(
            make_catalogue(make_type(offerings=[{"zone": "a", "price": -1}])),
            "c.yaml: instanceTypes[0].offerings[0].price: expected a price per hour of at least 0, found -1",
            id="a negative price",
        ),
        pytest.param(
            make_catalogue(make_type(capacity={"cpu": "-2", "memory": "1Gi"})),
            "c.yaml: instanceTypes[0].capacity.cpu: expected a quantity of at least 0 such as 500m, 2 or 1.5Gi, "
            'found "-2"',
            id="a negative capacity",
        ),
        pytest.param(
            make_catalogue(make_type(capacity={"cpu": "2"})),
            "c.yaml: instanceTypes[0].capacity.memory: expected a quantity, found none",
            id="no memory",
        ),
        pytest.param(
            make_catalogue(make_type(), make_type()),
            'c.yaml: instanceTypes[1].name: expected each name once, found "m-4" again, after instanceTypes[0]',
            id="a name twice",
        ),
        pytest.param(
            make_catalogue(make_type(offerings=[{"zone": "a", "price": 1, "capacityType": "reserved"}])),
            "c.yaml: instanceTypes[0].offerings[0].reservationId: expected a reservation's id with capacityType "
            "reserved, and with no other, found none",
            id="a reservation without an id",
        ),
        pytest.param(
            make_catalogue(make_type(offerings=[{"zone": "a", "price": 1, "capacityType": "cheap"}])),
            "c.yaml: instanceTypes[0].offerings[0].capacityType: expected one of reserved, spot, on-demand, "
            'found "cheap"',
            id="an unknown capacity type",
        ),
        pytest.param(
            make_catalogue(make_type(labels={ZONE: "a"})),
            f"c.yaml: instanceTypes[0].labels: expected no {ZONE}, which follows from name and offerings, found it",
            id="a label that follows from the rest",
        ),
        pytest.param(
            make_catalogue(make_type(prices=[])),
            'c.yaml: instanceTypes[0].prices: expected a known key, found "prices"',
            id="an unknown key",
        ),
        pytest.param(
            make_catalogue(), "c.yaml: instanceTypes: expected at least one instance type, found none", id="no types"
        ),
        pytest.param(
            {"kind": "NodePool"}, 'c.yaml: kind: expected InstanceTypeCatalogue, found "NodePool"', id="other"
        ),
        pytest.param([], "c.yaml: expected a InstanceTypeCatalogue, found list", id="a list"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(document: Any, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_catalogue(document, "c.yaml")

    assert str(error.value) == message


def test_a_file_has_one_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("---\n---\n")

    with pytest.raises(ConfigError, match="expected one InstanceTypeCatalogue, found 0 documents"):
        load_catalogue(path)

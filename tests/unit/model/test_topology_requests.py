"""Topology requests as annotations state them: Kueue's words, KAI's words, one clear line for what cannot be meant."""

import pytest

from mooring.errors import ManifestError
from mooring.model.places import Place
from mooring.model.topology.requests import (
    TopologyRequest,
    TopologyRequestError,
    is_label_key,
    tier_level,
    tier_of,
    topology_request_of,
)
from mooring.model.validation.terms import Subject
from mooring.model.validation.topology import check_topology_request
from mooring.testing.builders import make_pod

RACK, BLOCK = "topology.example.com/rack", "topology.example.com/block"
KUEUE = "kueue.x-k8s.io/podset-"
KAI = "kai.scheduler/topology"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param(None, None, id="no annotations"),
        pytest.param({"team": "vision"}, None, id="none about topology"),
        pytest.param({f"{KUEUE}required-topology": RACK}, TopologyRequest(required=RACK), id="required"),
        pytest.param({f"{KUEUE}preferred-topology": RACK}, TopologyRequest(preferred=RACK), id="preferred"),
        pytest.param({f"{KUEUE}unconstrained-topology": "true"}, TopologyRequest(), id="unconstrained"),
        pytest.param({f"{KUEUE}unconstrained-topology": "false"}, None, id="not unconstrained"),
        pytest.param(
            {
                f"{KUEUE}required-topology": BLOCK,
                f"{KUEUE}slice-required-topology": RACK,
                f"{KUEUE}slice-size": "4",
            },
            TopologyRequest(required=BLOCK, slice_size=4, slice_level=RACK),
            id="slices in one block",
        ),
        pytest.param(
            {f"{KUEUE}slice-required-topology": RACK, f"{KUEUE}slice-size": "4"},
            TopologyRequest(slice_size=4, slice_level=RACK),
            id="slices only",
        ),
        pytest.param(
            {KAI: "network", f"{KAI}-required-placement": BLOCK, f"{KAI}-preferred-placement": RACK},
            TopologyRequest(required=BLOCK, preferred=RACK, topology="network"),
            id="KAI has both at once",
        ),
        pytest.param({KAI: "network"}, None, id="KAI with a topology and no level"),
        pytest.param(
            {f"{KUEUE}required-topology": RACK, f"{KAI}-required-placement": RACK},
            TopologyRequest(required=RACK),
            id="both say the same",
        ),
    ],
)
def test_annotations_are_read(annotations: dict[str, str] | None, expected: TopologyRequest | None) -> None:
    assert topology_request_of(annotations) == expected


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param(
            {f"{KUEUE}required-topology": RACK, f"{KUEUE}preferred-topology": BLOCK},
            f"at.{KUEUE}preferred-topology: expected no podset-preferred-topology beside podset-required-topology, "
            f'found "{BLOCK}"',
            id="required and preferred",
        ),
        pytest.param(
            {f"{KUEUE}preferred-topology": RACK, f"{KUEUE}unconstrained-topology": "true"},
            f"at.{KUEUE}unconstrained-topology: expected no podset-unconstrained-topology beside "
            'podset-preferred-topology, found "true"',
            id="preferred and unconstrained",
        ),
        pytest.param(
            {f"{KUEUE}unconstrained-topology": "yes"},
            f'at.{KUEUE}unconstrained-topology: expected true or false, found "yes"',
            id="not a boolean",
        ),
        pytest.param(
            {f"{KUEUE}required-topology": "a rack"},
            f'at.{KUEUE}required-topology: expected a topology level: the key of a node label, found "a rack"',
            id="not a label key",
        ),
        pytest.param(
            {f"{KUEUE}slice-required-topology": RACK},
            f"at.{KUEUE}slice-size: expected a size, as {KUEUE}slice-required-topology is set, found none",
            id="slices without a size",
        ),
        pytest.param(
            {f"{KUEUE}slice-size": "2"},
            f'at.{KUEUE}slice-size: expected none without {KUEUE}slice-required-topology, found "2"',
            id="a size without slices",
        ),
        pytest.param(
            {f"{KUEUE}slice-required-topology": RACK, f"{KUEUE}slice-size": "0"},
            f'at.{KUEUE}slice-size: expected a whole number of at least 1, found "0"',
            id="empty slices",
        ),
        pytest.param(
            {f"{KUEUE}slice-required-topology": RACK, f"{KUEUE}slice-size": "four"},
            f'at.{KUEUE}slice-size: expected a whole number of at least 1, found "four"',
            id="a size in words",
        ),
        pytest.param(
            {f"{KUEUE}slice-required-topology-constraints": "[]"},
            f"at.{KUEUE}slice-required-topology-constraints: expected {KUEUE}slice-required-topology and "
            f'{KUEUE}slice-size in its place, as slices have one layer, found "[]"',
            id="slices inside slices",
        ),
        pytest.param(
            {f"{KUEUE}required-topology": RACK, f"{KAI}-required-placement": BLOCK},
            f'at.{KAI}-required-placement: expected "{RACK}", as in {KUEUE}required-topology, found "{BLOCK}"',
            id="Kueue and KAI contradict each other",
        ),
        pytest.param(
            {f"{KUEUE}unconstrained-topology": "true", f"{KAI}-preferred-placement": RACK},
            f"at.{KAI}-preferred-placement: expected no level from KAI beside {KUEUE}unconstrained-topology, "
            f'found "{RACK}"',
            id="unconstrained, says Kueue; preferred, says KAI",
        ),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(annotations: dict[str, str], expected: str) -> None:
    with pytest.raises(TopologyRequestError) as raised:
        topology_request_of(annotations, "at")

    assert str(raised.value) == expected


def test_a_manifest_with_a_bad_wish_is_refused_with_its_place() -> None:
    pod = make_pod("worker", annotations={f"{KUEUE}slice-size": "2"})
    subject = Subject(pod, Place("job.yaml", 3))

    with pytest.raises(ManifestError) as raised:
        check_topology_request(subject, "metadata.annotations", pod.metadata.annotations)

    assert str(raised.value) == (
        f"job.yaml: document 3 (Pod default/worker): metadata.annotations.{KUEUE}slice-size: "
        f'expected none without {KUEUE}slice-required-topology, found "2"'
    )


def test_the_levels_of_a_wish_come_coarse_to_fine_and_once() -> None:
    assert TopologyRequest(required=BLOCK, preferred=BLOCK, slice_size=2, slice_level=RACK).levels == (BLOCK, RACK)
    assert TopologyRequest(required=BLOCK, slice_size=1, slice_level=RACK).levels == (BLOCK,)


def test_tiers_are_levels_with_a_number() -> None:
    assert tier_level(2) == "hypernode-tier/2"
    assert [tier_of(level) for level in ("hypernode-tier/2", "hypernode-tier/two", "hypernode-tier/", RACK)] == [
        2,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RACK, True),
        ("rack", True),
        ("Rack_1.b", True),
        ("a" * 63, True),
        ("a" * 64, False),
        ("", False),
        ("example.com/", False),
        ("/rack", False),
        ("Example.com/rack", False),
        ("a/b/c", False),
        ("rack-", False),
        (f"{'a.' * 127}a/rack", False),
    ],
)
def test_label_keys_are_told_from_other_text(text: str, expected: bool) -> None:
    assert is_label_key(text) is expected

"""What a Workload says of topologies: read in both versions, and refused in one clear line where it is wrong."""

import pytest
import yaml

from mooring.actions.admit.quota.workload_info import assigned_topology
from mooring.actions.admit.topology.request import PodSetTopologyRequest, SliceLayer, compile_request
from mooring.errors import ManifestError
from mooring.model.api.kueue_workload import PodSetAssignment, SliceConstraint, TopologyRequest, Workload
from mooring.model.decisions import TopologyAssignment, TopologyDomain
from mooring.model.loading.manifests import build_manifests

WORKLOAD = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: train, namespace: default}
spec:
  queueName: jobs
  podSets:
    - name: main
      count: 4
      topologyRequest: REQUEST
      template: {spec: {containers: [{name: main, image: i}]}}
status:
  admission:
    clusterQueue: team
    podSetAssignments: [{name: main, count: 4, topologyAssignment: ASSIGNMENT}]
"""
GOOD_REQUEST, GOOD_ASSIGNMENT = "{required: rack}", "{levels: [rack], domains: [{values: [a], count: 4}]}"


def build(*, request: str = GOOD_REQUEST, assignment: str = GOOD_ASSIGNMENT) -> PodSetAssignment:
    text = WORKLOAD.replace("REQUEST", request).replace("ASSIGNMENT", assignment)
    (found,) = build_manifests([yaml.safe_load(text)]).of(Workload)
    assert found.status.admission is not None
    return found.status.admission.pod_set_assignments[0]


def assign(*domains: tuple[tuple[str, ...], int], levels: tuple[str, ...]) -> TopologyAssignment:
    return TopologyAssignment(levels, tuple(TopologyDomain(values, count) for values, count in domains))


def test_domains_are_read_as_a_list_and_as_slices() -> None:
    slices = """
      levels: [block, rack]
      slices:
        - domainCount: 2
          valuesPerLevel: [{universal: b1}, {individual: {prefix: r-, roots: [x, y], suffix: -z}}]
          podCounts: {individual: [3, 1]}
        - {domainCount: 1, valuesPerLevel: [{universal: b2}, {universal: r}], podCounts: {universal: 2}}
    """.replace("\n      ", "\n          ")
    flow = yaml.safe_dump(yaml.safe_load(slices), default_flow_style=True, width=1000).strip()

    assert assigned_topology(build()) == assign((("a",), 4), levels=("rack",))
    assert assigned_topology(build(assignment=flow)) == assign(
        (("b1", "r-x-z"), 3), (("b1", "r-y-z"), 1), (("b2", "r"), 2), levels=("block", "rack")
    )


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (TopologyRequest(required="rack"), PodSetTopologyRequest(required="rack")),
        (TopologyRequest(unconstrained=True), PodSetTopologyRequest(unconstrained=True)),
        (
            TopologyRequest(pod_set_slice_required_topology="rack", pod_set_slice_size=4, pod_set_group_name="g"),
            PodSetTopologyRequest(layers=(SliceLayer("rack", 4),), group="g"),
        ),
        (
            TopologyRequest(
                podset_slice_required_topology_constraints=[
                    SliceConstraint(topology="rack", size=8),
                    SliceConstraint(topology="host", size=2),
                ]
            ),
            PodSetTopologyRequest(layers=(SliceLayer("rack", 8), SliceLayer("host", 2))),
        ),
    ],
)
def test_requests_are_read(request_: TopologyRequest, expected: PodSetTopologyRequest) -> None:
    assert compile_request(request_) == expected


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("{levels: []}", "levels: expected 1 to 16 levels, found 0"),
        ("{levels: [rack], domains: [{values: [a, b], count: 1}]}", "domains[0].values: expected 1 of them, found 2"),
        (
            "{levels: [rack], domains: [{values: [a], count: 0}]}",
            "expected 1 to 2147483647 pods in each domain, found 0",
        ),
        (
            "{levels: [rack], slices: [{domainCount: 0}]}",
            "slices[0].domainCount: expected 1 to 100000 domains, found 0",
        ),
        (
            "{levels: [rack], slices: [{domainCount: 2, valuesPerLevel: [{individual: {roots: [a]}}]}]}",
            "slices[0].valuesPerLevel[0].individual.roots: expected 2 of them, found 1",
        ),
        (
            "{levels: [rack], slices: [{domainCount: 1, valuesPerLevel: [{}]}]}",
            "slices[0].valuesPerLevel[0]: expected either universal or individual, found both or none",
        ),
        (
            "{levels: [rack], slices: [{domainCount: 1, valuesPerLevel: [{universal: a}]}]}",
            "slices[0].podCounts: expected either universal or individual, found both or none",
        ),
    ],
)
def test_an_assignment_that_cannot_be_is_refused(assignment: str, said: str) -> None:
    with pytest.raises(ManifestError, match="topologyAssignment") as error:
        build(assignment=assignment)

    assert str(error.value).endswith(said)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (
            "{podsetSliceRequiredTopologyConstraints: [{topology: rack, size: 6}, {topology: host, size: 4}]}",
            "podsetSliceRequiredTopologyConstraints[1].size: expected a number that divides 6, found 4",
        ),
        (
            "{podSetSliceRequiredTopology: rack, podSetSliceSize: 2,"
            " podsetSliceRequiredTopologyConstraints: [{topology: rack, size: 2}]}",
            "podsetSliceRequiredTopologyConstraints: expected none beside podSetSliceRequiredTopology, found 1",
        ),
    ],
)
def test_slices_that_do_not_nest_are_refused(request_: str, said: str) -> None:
    with pytest.raises(ManifestError) as error:
        build(request=request_)

    assert str(error.value).endswith(said)

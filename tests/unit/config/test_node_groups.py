"""Node groups are read from a list of ours, or from Cluster API's MachineDeployments."""

from typing import Any

import pytest

from mooring.config.autoscaler import GroupOptions
from mooring.config.node_groups import GroupSpec, parse_node_groups
from mooring.errors import ConfigError
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.nodes import Node, NodeSpec, NodeStatus, Taint

SIZES = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-"
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"


def test_a_list_of_groups_is_read() -> None:
    template = {"metadata": {"name": "t"}, "status": {"capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"}}}
    options = {"zeroOrMaxNodeScaling": True, "scaleDownUnneededTime": "5m"}
    first = {"name": "gpu", "minSize": 0, "maxSize": 4, "nodeSelector": {"pool": "gpu"}, "template": template}
    document = {
        "nodeGroups": [
            {**first, "price": 2.5, "options": options},
            {"name": "workers", "nodes": ["a"], "targetSize": 3},
        ],
        "prices": {"cpu": 0.03, "memory": 0.004, "gpu": 1.4},
        "gpuLabel": "example.com/gpu",
    }

    found = parse_node_groups([document], "groups.yaml")

    amounts: Any = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    assert found.groups == (
        GroupSpec(
            "gpu",
            0,
            4,
            node_selector={"pool": "gpu"},
            template=Node(metadata=ObjectMeta(name="t"), status=NodeStatus(capacity=amounts, allocatable=amounts)),
            price=2.5,
            options=GroupOptions(scale_down_unneeded_seconds=300.0, zero_or_max=True),
        ),
        GroupSpec("workers", target_size=3, nodes=frozenset(("a",))),
    )
    assert (found.cpu_price, found.memory_price, found.gpu_price) == (0.03, 0.004, 1.4)
    assert found.gpu_label == "example.com/gpu"


def make_machine_deployment(**annotations: str) -> dict[str, Any]:
    metadata = {"name": "md-0", "namespace": "team", "annotations": annotations}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineDeployment",
        "metadata": metadata,
        "spec": {"replicas": 2},
    }


def test_a_machine_deployment_is_a_group() -> None:
    annotations = {
        f"{SIZES}min-size": "1",
        f"{SIZES}max-size": "5",
        "cluster.x-k8s.io/autoscaling-options-scaledownunneededtime": "2m",
        "cluster.x-k8s.io/autoscaling-options-scaledownutilizationthreshold": "0.7",
        f"{CAPACITY}cpu": "16",
        f"{CAPACITY}memory": "128G",
        f"{CAPACITY}gpu-type": "nvidia.com/gpu",
        f"{CAPACITY}gpu-count": "2",
        f"{CAPACITY}labels": "pool=gpu, rack=r1",
        f"{CAPACITY}taints": "dedicated=ml:NoSchedule,spot:PreferNoSchedule",
    }

    (group,) = parse_node_groups([make_machine_deployment(**annotations)], "md.yaml").groups

    amounts: Any = {"cpu": "16", "memory": "128G", "pods": "110", "nvidia.com/gpu": "2"}
    labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "pool": "gpu", "rack": "r1"}
    taints = [
        Taint(key="dedicated", value="ml", effect="NoSchedule"),
        Taint(key="spot", effect="PreferNoSchedule"),
    ]
    assert group == GroupSpec(
        "MachineDeployment/team/md-0",
        1,
        5,
        2,
        machine_deployment=("team", "md-0"),
        template=Node(
            metadata=ObjectMeta(name="md-0", labels=labels),
            spec=NodeSpec(taints=taints),
            status=NodeStatus(capacity=amounts, allocatable=amounts),
        ),
        options=GroupOptions(scale_down_utilization_threshold=0.7, scale_down_unneeded_seconds=120.0),
    )


def test_nodes_tell_which_machine_deployment_they_are_of() -> None:
    sizes = {f"{SIZES}min-size": "0", f"{SIZES}max-size": "5"}
    (group,) = parse_node_groups([make_machine_deployment(**sizes)], "md.yaml").groups

    def is_of(owner: str, namespace: str = "team", kind: str = "MachineSet") -> bool:
        told = {"owner-kind": kind, "owner-name": owner, "cluster-namespace": namespace}
        annotations = {f"cluster.x-k8s.io/{key}": value for key, value in told.items()}
        return group.has(Node(metadata=ObjectMeta(name="n", annotations=annotations)))

    assert is_of("md-0-7d4fz")
    assert not is_of("md-0-more-7d4fz")
    assert not is_of("md-0-7d4fz", namespace="other")
    assert not is_of("md-0-7d4fz", kind="KubeadmControlPlane")
    assert not group.has(Node(metadata=ObjectMeta(name="n")))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(
            {"nodeGroups": [{"name": "a", "minSize": 3, "maxSize": 1}]},
            "nodeGroups[0].minSize: expected at most maxSize (1), found 3",
            id="min above max",
        ),
        pytest.param(
            {"nodeGroups": [{"name": "a", "maxSise": 1}]},
            'nodeGroups[0].maxSise: expected a known key (did you mean maxSize?), found "maxSise"',
            id="unknown key",
        ),
        pytest.param(
            {"nodeGroups": [{"name": "a"}, {"name": "a"}]},
            'nodeGroups: expected each name once, found "a" twice',
            id="twice",
        ),
        pytest.param(
            {"nodeGroups": [{"name": "a", "template": {"status": {"capacity": {"cpu": "four"}}}}]},
            'nodeGroups[0].template.status.capacity.cpu: expected a quantity, found "four"',
            id="no quantity",
        ),
        pytest.param(
            {"nodeGroups": [{"name": "a", "options": {"scaleDownUnreadyTime": "5"}}]},
            'nodeGroups[0].options.scaleDownUnreadyTime: expected a duration such as 90s, 10m or 1h30m, found "5"',
            id="no duration",
        ),
        pytest.param(
            make_machine_deployment(**{f"{SIZES}min-size": "1"}),
            f"MachineDeployment team/md-0: {SIZES}max-size: expected a whole number of at least 0, found none",
            id="one size only",
        ),
        pytest.param(
            make_machine_deployment(),
            f"expected nodeGroups, or MachineDeployments with the annotations {SIZES}min-size and {SIZES}max-size, "
            "found none",
            id="none at all",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_node_groups([document], "groups.yaml")

    assert str(refused.value) == f"groups.yaml: {message}"

"""The Cluster Autoscaler's flags become settings; what is wrong is refused in one line."""

from typing import Any

import pytest

from mooring.config.autoscaler import AutoscalerSettings, ScaleDownSettings, ScaleUpSettings
from mooring.config.autoscaler_flags import autoscaler_arguments, parse_autoscaler_flags, parse_priorities
from mooring.errors import ConfigError

GIB = 1 << 30


def test_without_flags_all_is_as_the_original_has_it() -> None:
    flags = parse_autoscaler_flags([], "args")

    assert flags.settings == AutoscalerSettings()
    assert flags.settings.scale_up.expanders == ("least-waste",)
    assert flags.settings.scale_down.unneeded_seconds == 600
    assert flags.remarks == ()


def test_flags_are_read_in_every_form() -> None:
    flags = parse_autoscaler_flags(
        [
            "--expander=priority,least-nodes",
            "--balance-similar-node-groups",
            "--balancing-ignore-label=rack",
            "--balancing-ignore-label",
            "row",
            "--max-nodes-total",
            "40",
            "--cores-total=8:640",
            "--memory-total=64:5000",
            "--gpu-total=nvidia-a100:0:64",
            "--gpu-total=nvidia-h100:8:16",
            "--scale-down-unneeded-time=1h30m",
            "--scale-down-utilization-threshold=0.65",
            "--skip-nodes-with-local-storage=false",
            "--expendable-pods-priority-cutoff=-100",
            "--nodes=1:10:workers",
            "--nodes=0:4:https://example.com/groups/gpu",
            "--v=4",
            "--scan-interval=30s",
        ],
        "args",
    )

    assert flags.settings.scale_up == ScaleUpSettings(
        expanders=("priority", "least-nodes"),
        balance_similar_node_groups=True,
        balancing_ignore_labels=frozenset(("rack", "row")),
        max_nodes_total=40,
        max_totals={"cpu": 640, "memory": 5000 * GIB, "nvidia-a100": 64, "nvidia-h100": 16},
        expendable_pods_priority_cutoff=-100,
    )
    assert flags.settings.scale_down == ScaleDownSettings(
        unneeded_seconds=5400,
        utilization_threshold=0.65,
        skip_nodes_with_local_storage=False,
        min_totals={"cpu": 8, "memory": 64 * GIB, "nvidia-a100": 0, "nvidia-h100": 8},
    )
    assert flags.group_sizes == {"workers": (1, 10), "https://example.com/groups/gpu": (0, 4)}
    assert flags.remarks == ("args: not used here: --v, --scan-interval",)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        pytest.param(
            "--expander=least-wast",
            "--expander: expected some of random, most-pods, least-waste, price, priority, least-nodes (did you mean "
            'least-waste?), found "least-wast"',
            id="unknown expander",
        ),
        pytest.param(
            "--expander=price,price", '--expander: expected each expander once, found "price,price"', id="twice"
        ),
        pytest.param(
            "--nodes=10:1:workers",
            '--nodes: expected a smallest number that is not above the largest, found "10:1:workers"',
            id="min above max",
        ),
        pytest.param(
            "--nodes=workers",
            '--nodes: expected sizes and a name, such as 1:10:workers, found "workers"',
            id="no sizes",
        ),
        pytest.param(
            "--scale-down-unneeded-time=10",
            '--scale-down-unneeded-time: expected a duration such as 90s, 10m or 1h30m, found "10"',
            id="no unit",
        ),
        pytest.param(
            "--cores-total=8",
            '--cores-total: expected a smallest and a largest number, such as 0:320, found "8"',
            id="no range",
        ),
        pytest.param(
            "--max-nodes-total=many",
            '--max-nodes-total: expected a whole number of at least 0, found "many"',
            id="no number",
        ),
        pytest.param(
            "--scale-down-enabled=perhaps",
            '--scale-down-enabled: expected true or false, found "perhaps"',
            id="no switch",
        ),
        pytest.param("--max-nodes-total", "--max-nodes-total: expected a value, found none", id="no value"),
        pytest.param(
            "--scale-down-unneded-time=10m",
            "expected a flag of cluster-autoscaler (did you mean scale-down-unneeded-time?), "
            "found --scale-down-unneded-time",
            id="unknown flag",
        ),
        pytest.param("expander", 'expected flags such as --expander=least-waste, found "expander"', id="no flag"),
    ],
)
def test_a_wrong_flag_is_refused_in_one_line(argument: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_autoscaler_flags([argument], "args")

    assert str(refused.value) == f"args: {message}"


def make_deployment(**container: Any) -> dict[str, Any]:
    other = {"name": "proxy", "image": "example.com/proxy", "args": ["--port=1"]}
    containers = [other, {"name": "main", **container}]
    return {"kind": "Deployment", "spec": {"template": {"spec": {"containers": containers}}}}


@pytest.mark.parametrize(
    "container",
    [
        pytest.param({"command": ["./cluster-autoscaler", "--v=4", "--expander=price"]}, id="as a command"),
        pytest.param(
            {"image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0", "args": ["--v=4", "--expander=price"]},
            id="as arguments",
        ),
        pytest.param(
            {"command": ["/bin/sh", "-c"], "args": ["/cluster-autoscaler --v=4 --expander=price"]}, id="by a shell"
        ),
    ],
)
def test_the_flags_of_a_manifest_are_found(container: dict[str, Any]) -> None:
    assert autoscaler_arguments(make_deployment(**container), "d.yaml") == ["--v=4", "--expander=price"]


def test_a_manifest_without_an_autoscaler_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        autoscaler_arguments(make_deployment(image="nginx"), "d.yaml")

    assert str(refused.value) == (
        "d.yaml: spec.template.spec.containers: expected a container that runs cluster-autoscaler, "
        "found Deployment without one"
    )


def test_priorities_are_read_from_their_config_map() -> None:
    found = parse_priorities({"data": {"priorities": "10:\n- .*spot.*\n50:\n- ^gpu-\n- h100\n"}}, "cm.yaml")

    assert {priority: [each.pattern for each in expressions] for priority, expressions in found.items()} == {
        10: [".*spot.*"],
        50: ["^gpu-", "h100"],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", ": expected priorities with lists of regular expressions, found none", id="nothing"),
        pytest.param("[1]", ": expected priorities with lists of regular expressions, found a list", id="a list"),
        pytest.param("high: [a]", ': expected whole numbers as priorities, found "high"', id="no number"),
        pytest.param(
            "10: [",
            ": line 2, column 1: expected YAML, found while parsing a flow node did not find expected node content",
            id="no YAML",
        ),
        pytest.param("10: a", ".10: expected a list of texts, found a text", id="no list"),
        pytest.param(
            "10: ['*']",
            '.10: expected a regular expression, found "*" (nothing to repeat at position 0)',
            id="no expression",
        ),
    ],
)
def test_a_wrong_config_map_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_priorities({"data": {"priorities": text}}, "cm.yaml")

    assert str(refused.value) == f"cm.yaml: data.priorities{message}"

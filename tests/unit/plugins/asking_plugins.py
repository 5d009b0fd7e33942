"""Asking one plugin about a few nodes, by name."""

from typing import Any

import msgspec

from mooring.engine.plugin import FilterAnswers, Plugin
from mooring.engine.verdict import Rejection
from mooring.model.api.pods import Pod
from mooring.state.cluster import Cluster
from mooring.testing.asking import prepare


def configured(plugin: type[Plugin], **args: Any) -> Any:
    return plugin(msgspec.convert(args, plugin.args_type) if args else None)


def problems(plugin: type[Plugin], **args: Any) -> list[tuple[str, str, str]]:
    """What the plugin's arguments say is wrong with them: field, expected, found."""
    return list(msgspec.convert(args, plugin.args_type).validate())


def refusals(plugin: FilterAnswers, cluster: Cluster, pod: Pod) -> dict[str, Rejection]:
    """By the name of each node that refuses the pod: how."""
    shape = cluster.shape_for(pod)
    nodes = cluster.rows()
    codes = prepare(plugin, cluster, shape).codes(nodes).tolist()
    return {name: plugin.rejection(shape, code) for name, code in zip(nodes.names, codes, strict=True) if code}


def scores(plugin: Plugin, cluster: Cluster, pod: Pod) -> dict[str, int]:
    """By the name of each node: its score, brought into range over all of them."""
    nodes = cluster.rows()
    return dict(zip(nodes.names, prepare(plugin, cluster, cluster.shape_for(pod)).final(nodes).tolist(), strict=True))


def remedies(plugin: FilterAnswers, cluster: Cluster, pod: Pod) -> dict[str, list[str]]:
    """By single change: the names of the nodes that it opens, of those that are refused."""
    shape = cluster.shape_for(pod)
    prepared = prepare(plugin, cluster, shape)
    refused = cluster.nodes.live_rows()[prepared.codes(cluster.rows()) != 0]
    nodes = cluster.rows(refused)
    found = plugin.remedies(shape, nodes, prepared.for_filter)
    return {change: [nodes.names[position] for position in positions.tolist()] for change, positions in found}

"""Why a topology has no place for a pod set, in Kueue's words."""

from collections.abc import Sequence

import numpy as np

from mooring.actions.admit.topology.counts import LevelCounts
from mooring.actions.admit.topology.flavor import FlavorTopology
from mooring.actions.admit.topology.request import SliceLayer


def not_fit_message(topology: str, fitting: int, wanted: int, size: int) -> str:
    """Say how many of the pods, or of the slices, would fit.

    >>> not_fit_message("dc", 8, 10, 1), not_fit_message("dc", 0, 3, 4)
    ('topology "dc" allows to fit only 8 out of 10 pod(s)', 'topology "dc" doesn\\'t allow to fit any of 3 slice(s)')
    """
    unit = "pod(s)" if size == 1 else "slice(s)"
    if not fitting:
        return f'topology "{topology}" doesn\'t allow to fit any of {wanted} {unit}'
    return f'topology "{topology}" allows to fit only {fitting} out of {wanted} {unit}'


def layers_message(
    flavor: FlavorTopology, levels: Sequence[LevelCounts], layers: Sequence[SliceLayer], count: int, depth: int
) -> str:
    """Say of each layer of slices how many would fit in the best domain of the depth that was searched last."""
    tree = flavor.tree
    best = _best_domain(flavor, levels, depth)
    text = f'topology "{flavor.topology}" doesn\'t allow to fit'
    for layer in layers:
        at = flavor.levels.index(layer.level) + 1
        domains = np.array([best], np.intp)
        for above in range(depth, at):
            domains = tree.children(above, domains)[0]
        fitting = int((levels[at].pods[domains] // layer.size).sum()) if at >= depth else 0
        text += f"; {fitting}/{count // layer.size} slice(s) fit on level {layer.level}"
    return text


def _best_domain(flavor: FlavorTopology, levels: Sequence[LevelCounts], depth: int) -> int:
    """The domain with most slices; among equals the one whose name, as Kueue writes it, comes first."""
    slices = levels[depth].slices
    most = np.flatnonzero(slices == slices.max()).tolist()
    is_node = depth == flavor.tree.leaf and flavor.has_nodes_as_leaves
    paths = {domain: flavor.tree.path(depth, domain) for domain in most}
    return int(min(most, key=lambda domain: paths[domain][-1] if is_node else ",".join(paths[domain])))

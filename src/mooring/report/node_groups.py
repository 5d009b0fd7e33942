"""The result of `mooring capacity --node-groups` as a value: which groups grow, which nodes could go, and why not."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from mooring.actions.capacity.autoscaler.scale_down import ScaleDown
from mooring.actions.capacity.autoscaler.scale_up import ScaleUp
from mooring.model.api.pods import Pod


class GroupGrowth(Struct, rename="camel"):
    """A node group that grows."""

    group: str
    from_size: int
    to_size: int


class Unhelped(Struct, rename="camel"):
    """Equal pods that no group can help."""

    pods: list[str]
    reasons: dict[str, list[str]]
    """By node group."""


class GroupKept(Struct, rename="camel"):
    """A node that stays, and why."""

    node: str
    reason: str
    pod: str = ""
    """The pod that keeps it, if one does."""


class NodeGroupsResult(Struct, rename="camel"):
    result: str
    """In the Cluster Autoscaler's words."""
    grow: list[GroupGrowth]
    pods: list[str]
    """For which groups grow."""
    fits: dict[str, str]
    """Waiting pods that nodes which exist have room for, and where."""
    awaiting: list[str]
    """Pods that a group could help that was not chosen: they have their turn later."""
    unhelped: list[Unhelped]
    unneeded: list[str]
    """Nodes that could go; those that have been so for long enough are deleted."""
    delete_empty: list[str]
    delete_drained: list[str]
    kept: list[GroupKept]


def make_node_groups_result(grown: ScaleUp, shrunk: ScaleDown | None) -> NodeGroupsResult:
    """Put one loop of the autoscaler into words."""
    return NodeGroupsResult(
        result=grown.result,
        grow=[GroupGrowth(each.group.name, each.group.target, each.size) for each in grown.growths],
        pods=_keys(grown.triggered) if grown.growths else [],
        fits={str(key): node for key, node in grown.fits.items()},
        awaiting=_keys(grown.awaiting),
        unhelped=[Unhelped(_keys(each.pods), _reasons(each.rejected, each.skipped)) for each in grown.remain],
        unneeded=[] if shrunk is None else list(shrunk.unneeded),
        delete_empty=[] if shrunk is None else list(shrunk.delete.empty),
        delete_drained=[] if shrunk is None else list(shrunk.delete.drain),
        kept=[]
        if shrunk is None
        else [
            GroupKept(name, why.reason, why.blocked.pod.key if why.blocked is not None else "")
            for name, why in sorted(shrunk.unremovable.items())
        ],
    )


def _keys(pods: Sequence[Pod]) -> list[str]:
    return sorted(pod.key for pod in pods)


def _reasons(*several: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for reasons in several:
        for group, texts in reasons.items():
            found.setdefault(group, []).extend(texts)
    return dict(sorted(found.items()))

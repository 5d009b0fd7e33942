"""From a chosen node to a pod that may be bound: reserve, permit, prepare, bind, tell."""

from mooring.engine.plugin import AfterChoice, Reserve
from mooring.engine.profile import Profile
from mooring.engine.verdict import Rejection, Verdict
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape


def needs_steps(profile: Profile, shape: Shape) -> bool:
    """Whether any plugin has something to do for such a pod once its node is chosen."""
    steps: tuple[tuple[AfterChoice, ...], ...] = (
        profile.reserve,
        profile.permit,
        profile.pre_bind,
        profile.bind,
        profile.post_bind,
    )
    return any(plugin.applies_to(shape) for plugins in steps for plugin in plugins)


def take_steps(profile: Profile, cluster: Cluster, record: PodRecord, row: int) -> Verdict | None:
    """Take an assumed pod through every step; if a plugin refuses it, give back what was reserved and say who."""
    reserved: list[Reserve] = []
    refused = reserve(profile, cluster, record, row, reserved)
    for step in AFTER_RESERVE:
        refused = refused or step(profile, cluster, record, row)
    if refused is not None:
        for plugin in reversed(reserved):
            cluster.observe(*plugin.unreserve(record, cluster, row))
    return refused


def reserve(profile: Profile, cluster: Cluster, record: PodRecord, row: int, reserved: list[Reserve]) -> Verdict | None:
    for plugin in profile.reserve:
        if not plugin.applies_to(record.shape):
            continue
        changes = plugin.reserve(record, cluster, row)
        reserved.append(plugin)
        if isinstance(changes, Rejection):
            return Verdict(plugin.name, changes)
        cluster.observe(*changes)
    return None


def permit(profile: Profile, cluster: Cluster, record: PodRecord, row: int) -> Verdict | None:
    for plugin in profile.permit:
        rejection = plugin.permit(record, cluster, row) if plugin.applies_to(record.shape) else None
        if rejection is not None:
            return Verdict(plugin.name, rejection)
    return None


def prepare(profile: Profile, cluster: Cluster, record: PodRecord, row: int) -> Verdict | None:
    for plugin in profile.pre_bind:
        rejection = plugin.pre_bind(record, cluster, row) if plugin.applies_to(record.shape) else None
        if rejection is not None:
            return Verdict(plugin.name, rejection)
    return None


def bind(profile: Profile, cluster: Cluster, record: PodRecord, row: int) -> Verdict | None:
    if not any(plugin.bind(record, cluster, row) for plugin in profile.bind):
        names = ", ".join(plugin.name for plugin in profile.bind)
        return Verdict(profile.bind[-1].name, Rejection((f"no bind plugin took the pod: {names}",)))
    for post_bind in profile.post_bind:
        if post_bind.applies_to(record.shape):
            post_bind.post_bind(record, cluster, row)
    return None


AFTER_RESERVE = (permit, prepare, bind)
"""The steps for which plugins have nothing to give back; pods that start together take each of them together."""

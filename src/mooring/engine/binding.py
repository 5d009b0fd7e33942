"""From a chosen node to a pod that may be bound: reserve, permit, prepare, bind, tell."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from mooring.engine.asking import faults_of
from mooring.engine.plugin import AfterChoice, Reserve
from mooring.engine.profile import Profile
from mooring.engine.verdict import Rejection, Verdict
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape
from mooring.state.views import PodView

Step = TypeVar("Step", bound=AfterChoice)


def needs_steps(profile: Profile, shape: Shape) -> bool:
    """Whether any plugin has something to do for such a pod once its node is chosen."""
    steps: tuple[tuple[AfterChoice, ...], ...] = (
        profile.reserve,
        profile.permit,
        profile.pre_bind,
        profile.bind,
        profile.post_bind,
    )
    return any(True for plugins in steps for _ in _concerned(plugins, shape))


def _concerned(plugins: Sequence[Step], shape: Shape) -> Iterator[Step]:
    """The plugins that have something to do for such a pod."""
    for plugin in plugins:
        with faults_of(plugin, "applies_to"):
            applies = plugin.applies_to(shape)
        if applies:
            yield plugin


def take_steps(profile: Profile, cluster: Cluster, record: PodRecord, row: int) -> Verdict | None:
    """Take an assumed pod through every step; who asks undoes it all, by a trial, if a plugin refuses or raises."""
    refused = reserve(profile, cluster, record, row)
    for step in AFTER_RESERVE:
        refused = refused or step(profile, cluster, record, row)
    return refused


def reserve(profile: Profile, cluster: Cluster, record: PodRecord, row: int) -> Verdict | None:
    """Let plugins take what they need for a pod. A trial that is not kept gives it back, the last first."""
    for plugin in _concerned(profile.reserve, record.shape):
        cluster.log.note(_give_back, plugin, cluster, record, row)
        with faults_of(plugin, "reserve"):
            changes = plugin.reserve(PodView.of(record), cluster.view, row)
        if isinstance(changes, Rejection):
            return Verdict(plugin.name, changes)
        cluster.observe(*changes)
    return None


def unreserve(profile: Profile, cluster: Cluster, record: PodRecord, row: int) -> None:
    """A pod was not bound after all: let plugins give back what they reserved for it, the last first."""
    for plugin in reversed(list(_concerned(profile.reserve, record.shape))):
        _give_back(plugin, cluster, record, row)


def _give_back(plugin: Reserve, cluster: Cluster, record: PodRecord, row: int) -> None:
    with faults_of(plugin, "unreserve"):
        changes = plugin.unreserve(PodView.of(record), cluster.view, row)
    cluster.observe(*changes)


def permit(profile: Profile, cluster: Cluster, record: PodRecord, row: int) -> Verdict | None:
    for plugin in _concerned(profile.permit, record.shape):
        with faults_of(plugin, "permit"):
            rejection = plugin.permit(PodView.of(record), cluster.view, row)
        if rejection is not None:
            return Verdict(plugin.name, rejection)
    return None


def prepare(profile: Profile, cluster: Cluster, record: PodRecord, row: int) -> Verdict | None:
    for plugin in _concerned(profile.pre_bind, record.shape):
        with faults_of(plugin, "pre_bind"):
            rejection = plugin.pre_bind(PodView.of(record), cluster.view, row)
        if rejection is not None:
            return Verdict(plugin.name, rejection)
    return None


def bind(profile: Profile, cluster: Cluster, record: PodRecord, row: int) -> Verdict | None:
    for plugin in profile.bind:
        with faults_of(plugin, "bind"):
            is_taken = plugin.bind(PodView.of(record), cluster.view, row)
        if is_taken:
            break
    else:
        names = ", ".join(plugin.name for plugin in profile.bind)
        return Verdict(profile.bind[-1].name, Rejection((f"no bind plugin took the pod: {names}",)))
    for post_bind in _concerned(profile.post_bind, record.shape):
        with faults_of(post_bind, "post_bind"):
            post_bind.post_bind(PodView.of(record), cluster.view, row)
    return None


AFTER_RESERVE = (permit, prepare, bind)
"""The steps for which plugins have nothing to give back; pods that start together take each of them together."""

"""The contracts of the scheduling framework: what a plugin can do is which of these classes it inherits.

The names are kube-scheduler's. Where it asks a plugin node by node, we ask for many rows at once: `filter` and `score`
get some rows and return one answer a row. An answer may depend only on the pod's shape, on what was prepared, and on
the row itself, never on which other rows are asked about; `mooring.testing.plugin_checks` holds every plugin to that.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.engine.verdict import Rejection, Wait
from mooring.errors import ConfigError
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.events import Event, Related
from mooring.state.read_keys import ALL as ALL
from mooring.state.read_keys import All, Keys, ReadKeys
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, PodView

MAX_SCORE = 100
MIN_SCORE = 0

Mask: TypeAlias = NDArray[np.bool_]
"""One truth a row: this node will do."""
Codes: TypeAlias = NDArray[np.int64]
"""One number a row: 0 where the node will do, else a code that `rejection` can put into words."""
Scores: TypeAlias = NDArray[np.int64]

IGNORED = np.iinfo(np.int64).min
"""A raw score that takes no part in finding the lowest and the highest one."""


class Depends(enum.Flag):
    """What a plugin's answers depend on besides the pod: the engine keeps an answer until that changes.

    Left out too much, answers go stale; declared too much, they are computed more often than needed.
    """

    NODE = enum.auto()
    """The nodes' descriptions: labels, taints, capacity, images."""
    NODE_USAGE = enum.auto()
    """What runs on the row itself."""
    NODE_LOAD = enum.auto()
    """What was measured on the row itself, and how old that is."""
    PODS = enum.auto()
    """Pods anywhere, as affinity and spreading do."""
    RELATED = enum.auto()
    """Other objects: namespaces, services, volumes."""
    ANYTHING = NODE | NODE_USAGE | NODE_LOAD | PODS | RELATED


class Change(enum.Flag):
    """What can happen that might help a pod that waits."""

    POD_BOUND = enum.auto()
    POD_GONE = enum.auto()
    NODE = enum.auto()
    RELATED = enum.auto()
    NODE_LOAD = enum.auto()
    """Something was measured, or has become too old."""
    ANY = POD_BOUND | POD_GONE | NODE | RELATED | NODE_LOAD


@dataclass(frozen=True, slots=True)
class Changed:
    """Something that happened, and the object that it happened to."""

    change: Change
    old: Node | Pod | Related | None
    """As it was; None if it is new."""
    new: Node | Pod | Related | None
    """As it is now; None if it is gone."""


class _Skip(enum.Enum):
    SKIP = enum.auto()


SKIP = _Skip.SKIP
"""Returned by pre_filter or pre_score: this plugin has nothing to say about this pod."""
Skip: TypeAlias = _Skip


EVERYTHING = frozenset(("shape",))
"""The one part of a pod that is all of it."""


class NoArgs(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a plugin that takes none."""


class Plugin:
    """The root of all abilities. The class's name is the plugin's name in profiles."""

    depends_on: ClassVar[Depends] = Depends.ANYTHING
    reads: ClassVar[frozenset[str] | None] = None
    """Which parts of a pod the answers depend on (names of `Shape.part`); None for all of it."""
    args_type: ClassVar[type[Any]] = NoArgs
    """A msgspec Struct; the profile's pluginConfig is decoded into it and checked."""
    skip_is_settled: ClassVar[bool] = False
    """Whether SKIP, once returned, stands until a node, a related object or the set of shapes changes."""
    reads_pod_labels: ClassVar[Sequence[str] | All] = ()
    """The labels of the pod that it reads, by key, or ALL; the fewer, the more pods share answers."""
    reads_pod_annotations: ClassVar[Sequence[str] | All] = ()
    """The annotations of the pod that it reads, by key, or ALL."""
    reads_pod_priority_class: ClassVar[bool] = False
    """Whether it reads the name of the pod's PriorityClass; where nobody does, pods of several share answers."""

    def __init__(self, args: Any = None) -> None:
        self.args = self.args_type() if args is None else args

    @property
    def name(self) -> str:
        return type(self).__name__


class PreEnqueue(Plugin):
    """Decides whether a pod may enter the queue at all."""

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        raise NotImplementedError


class QueueSort(Plugin):
    """Orders the queue: smaller keys first."""

    def sort_key(self, pod: Pod, queued_at: float) -> Any:
        raise NotImplementedError


class FilterAnswers(Plugin):
    """How a filter's refusals read; shared by Filter and PreFilter."""

    reason: ClassVar[str] = ""
    """What a False in the mask means."""
    unresolvable: ClassVar[bool] = False
    """Whether evicting pods from the node could not change the answer."""

    helped_by: ClassVar[Change] = Change.ANY
    """Which changes could make this plugin accept a node that it refused; others need not be tried."""

    def is_helped_by(self, pod: Shape, changed: Changed) -> bool:
        """Whether a change of one of these kinds can make it accept a node that it refused; if in doubt, it can.

        Asked of the plugins that refused a pod, so that a pod is not tried again in vain.
        """
        return True

    def rejection(self, pod: Shape, code: int) -> Rejection:
        """Put a code into words; plugins that answer with a mask need not override this."""
        return Rejection((self.reason or f"node(s) didn't satisfy plugin {self.name}",), self.unresolvable)

    def remedies(self, pod: Shape, nodes: NodeRows, prepared: Any) -> Iterable[tuple[str, NDArray[np.intp]]]:
        """For rows that this plugin refuses: single changes, each with the positions in `nodes` that it opens."""
        return ()


class Filter(FilterAnswers):
    """Says which nodes can run the pod."""

    def filter(self, pod: Shape, nodes: NodeRows) -> Mask | Codes:
        raise NotImplementedError


class PreFilter(FilterAnswers):
    """As Filter, but gathers something once before it answers for the nodes."""

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Any | Skip | Rejection:
        """Gather what `filter` needs; SKIP if all nodes will do, a Rejection if none can."""
        raise NotImplementedError

    def filter(self, pod: Shape, nodes: NodeRows, prepared: Any) -> Mask | Codes:
        raise NotImplementedError

    def narrow(self, pod: Shape) -> frozenset[str] | Rejection | None:
        """Name the only nodes worth looking at, if they are known beforehand."""
        return None


class ScoreAnswers(Plugin):
    """How raw scores become 0..100; shared by Score and PreScore."""

    normalizes: ClassVar[bool] = False
    """Whether `normalize` is to be called."""

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        """Bring raw scores into 0..100, each by itself, given the extremes over all feasible nodes."""
        return raw


class Score(ScoreAnswers):
    """Says how good each feasible node is."""

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        raise NotImplementedError


class PreScore(ScoreAnswers):
    """As Score, but gathers something once before it scores the nodes."""

    reads_feasible: ClassVar[bool] = False
    """Whether what is gathered depends on which nodes are feasible."""

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> Any | Skip:
        """Gather what `score` needs: what `pre_filter` gathers, unless it is written otherwise; SKIP to say nothing."""
        if not isinstance(self, PreFilter):
            raise NotImplementedError
        gathered = self.pre_filter(pod, cluster)
        return SKIP if isinstance(gathered, Rejection) else gathered

    def score(self, pod: Shape, nodes: NodeRows, prepared: Any) -> Scores:
        raise NotImplementedError


class PostFilter(Plugin):
    """Tries to make room when no node is feasible; asked before pods are evicted for the pod's sake."""

    def post_filter(self, pod: PodView, cluster: ClusterView, refusals: Mapping[str, Rejection]) -> str | None:
        """Return the name of a node that will have room, which the pod then waits for, or None."""
        raise NotImplementedError


class AfterChoice(Plugin):
    """What the abilities share that come after a node is chosen."""

    def applies_to(self, pod: Shape) -> bool:
        """Whether there is anything to do for such pods; where there is not, many can be placed at once."""
        return True


class Reserve(AfterChoice):
    """Takes something for a pod whose node is chosen, and gives it back if the pod does not get there."""

    def reserve(self, pod: PodView, cluster: ClusterView, row: int) -> Sequence[Event] | Rejection:
        """Return what changes by the reservation, as events for the cluster to observe, or why it cannot be."""
        raise NotImplementedError

    def unreserve(self, pod: PodView, cluster: ClusterView, row: int) -> Sequence[Event]:
        """Return what changes back; also called if another plugin refuses after this one reserved."""
        return ()


class Permit(AfterChoice):
    """Lets a pod with a reservation be bound, refuses it, or lets it wait in its place for a while.

    A pod that waits is asked about again in every cycle, and bound as soon as all permit plugins allow it. The members
    of a gang wait together, and are bound together.
    """

    def permit(self, pod: PodView, cluster: ClusterView, row: int) -> Rejection | Wait | None:
        raise NotImplementedError


class PreBind(AfterChoice):
    """Prepares the world before a pod is bound."""

    def pre_bind(self, pod: PodView, cluster: ClusterView, row: int) -> Rejection | None:
        raise NotImplementedError


class Bind(AfterChoice):
    """Takes on the binding of a pod: True if it did, False to leave it to the next plugin."""

    def bind(self, pod: PodView, cluster: ClusterView, row: int) -> bool:
        raise NotImplementedError


class PostBind(AfterChoice):
    """Is told that a pod was bound."""

    def post_bind(self, pod: PodView, cluster: ClusterView, row: int) -> None:
        raise NotImplementedError


def keys_read_by(plugins: Iterable[Plugin]) -> ReadKeys:
    """What any of these plugins says it reads of pods: labels, annotations, and whether their priority class."""
    plugins = list(plugins)
    labels, annotations = (_union([_keys(plugin, what) for plugin in plugins]) for what in _READS)
    return ReadKeys(labels, annotations, any(plugin.reads_pod_priority_class for plugin in plugins))


_READS = ("reads_pod_labels", "reads_pod_annotations")


def _keys(plugin: Plugin, what: str) -> Keys:
    said = getattr(plugin, what)
    if isinstance(said, All):
        return said
    if isinstance(said, tuple | list | set | frozenset) and all(isinstance(key, str) for key in said):
        return frozenset(said)
    raise ConfigError(plugin.name, what, expected='keys, such as ("team",), or ALL', found=repr(said))


def _union(keys: Sequence[Keys]) -> Keys:
    found = [each for each in keys if each is not ALL]
    return frozenset[str]().union(*found) if len(found) == len(keys) else ALL


def normalize_by_highest(raw: Scores, highest: int, *, reverse: bool = False) -> Scores:
    """Scale so that the highest becomes 100 (or, reversed, 0), in whole numbers, as kube-scheduler does."""
    if highest == 0:
        return np.full_like(raw, MAX_SCORE) if reverse else raw
    scaled = MAX_SCORE * raw // highest
    return MAX_SCORE - scaled if reverse else scaled

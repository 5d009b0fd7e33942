"""What translation looks up by name: classes of priority and storage, queues, flavors, nodes, tiers of the network.

These are few, and many objects are read against them. They are kept as they come and go, so that whoever is translated
finds what it needs without a look at everything else.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mooring.model.api.colocation_profile import ClusterColocationProfile
from mooring.model.api.kueue import ClusterQueue, LocalQueue, ResourceFlavor, WorkloadPriorityClass
from mooring.model.api.kueue_labels import DEFAULT_QUEUE
from mooring.model.api.meta import Labels, Namespace
from mooring.model.api.nodes import Node
from mooring.model.api.policies import PriorityClass
from mooring.model.api.volumes import StorageClass
from mooring.model.defaults import default_class
from mooring.model.gangs.dialects.grove import ClusterTopologyBinding
from mooring.model.gangs.dialects.grove_gangs import Bindings, bindings_of
from mooring.model.gangs.dialects.kai_pods import with_kai_classes
from mooring.model.gangs.dialects.volcano import Tiers, tiers_of
from mooring.model.jobs.train_job import ClusterTrainingRuntime, RuntimeSpec, TrainingRuntime, TrainJob, runtime_key
from mooring.model.objects.picture import Identity, Manifests, Source, identity_of
from mooring.model.places import Place
from mooring.model.priorities import Priorities, collect_priorities
from mooring.model.quotas.objects import CoreResourceQuota, LimitRange
from mooring.model.topology.requests import HyperNode

TABLE_TYPES: dict[type[Any], None] = dict.fromkeys(
    (
        PriorityClass,
        WorkloadPriorityClass,
        LocalQueue,
        ClusterQueue,
        ResourceFlavor,
        Node,
        HyperNode,
        ClusterTopologyBinding,
        StorageClass,
        TrainingRuntime,
        ClusterTrainingRuntime,
        CoreResourceQuota,
        LimitRange,
        ClusterColocationProfile,
        Namespace,
    )
)
"""In order, and found at once: it is asked for every object whether it is of these."""


class Tables:
    """The objects of these kinds by name, and what is worked out from all of a kind."""

    def __init__(self) -> None:
        self._tables: dict[type[Any], dict[Identity, Source]] = {type_: {} for type_ in TABLE_TYPES}
        self._priorities: Priorities | None = None
        self._kai_priorities: Priorities | None = None
        self._tiers: Tiers | None = None
        self._bindings: Bindings | None = None
        self._default_queues: set[str] = set()
        self._governed: Counter[str] = Counter()
        self._limited: Counter[str] = Counter()

    @classmethod
    def of(cls, manifests: Manifests) -> "Tables":
        """The tables of a whole picture."""
        tables = cls()
        for type_ in TABLE_TYPES:
            for number, found in enumerate(manifests.all_of(type_)):
                tables.put(Source(found, Place("<memory>"), (number, 0)))
        return tables

    def put(self, source: Source) -> None:
        """Take in an object of one of these kinds."""
        found = source.object
        table, identity = self._tables[type(found)], identity_of(found)
        if identity not in table:
            self._count(found, 1)
        table[identity] = source
        self._forget(type(found))

    def remove(self, found: Any) -> None:
        if self._tables[type(found)].pop(identity_of(found), None) is not None:
            self._count(found, -1)
            self._forget(type(found))

    def _count(self, found: Any, change: int) -> None:
        namespace = found.metadata.namespace
        if isinstance(found, LocalQueue) and found.metadata.name == DEFAULT_QUEUE:
            (self._default_queues.add if change > 0 else self._default_queues.discard)(namespace)
        elif isinstance(found, CoreResourceQuota | LimitRange):
            self._governed[namespace] += change
            self._limited[namespace] += change if isinstance(found, LimitRange) else 0

    def local_queue(self, namespace: str, name: str) -> LocalQueue | None:
        found: LocalQueue | None = self._find(LocalQueue, namespace, name)
        return found

    def cluster_queue(self, name: str) -> ClusterQueue | None:
        found: ClusterQueue | None = self._find(ClusterQueue, "", name)
        return found

    def flavor(self, name: str) -> ResourceFlavor | None:
        found: ResourceFlavor | None = self._find(ResourceFlavor, "", name)
        return found

    def workload_class(self, name: str) -> WorkloadPriorityClass | None:
        found: WorkloadPriorityClass | None = self._find(WorkloadPriorityClass, "", name)
        return found

    def workload_class_names(self) -> set[str]:
        return {name for _, _, name in self._tables[WorkloadPriorityClass]}

    def node_labels(self, name: str) -> Mapping[str, str]:
        node = self._find(Node, "", name)
        return (node.metadata.labels or {}) if node is not None else {}

    def runtime(self, owner: TrainJob) -> RuntimeSpec | None:
        """The runtime that a TrainJob names."""
        found = self._find(*runtime_key(owner))
        return None if found is None else found.spec

    def nodes(self) -> list[Node]:
        """All nodes, in the order in which they came."""
        return self._objects(Node)

    def labels_by_node(self) -> dict[str, Labels | None]:
        return {node.name: node.metadata.labels for node in self.nodes()}

    def profiles(self) -> list[tuple[ClusterColocationProfile, Place]]:
        """All ClusterColocationProfiles, with where they stood."""
        return [(source.object, source.place) for source in self._tables[ClusterColocationProfile].values()]

    def labels_by_namespace(self) -> dict[str, Labels]:
        return {found.metadata.name: found.metadata.labels or {} for found in self._objects(Namespace)}

    def has_default_queue(self, namespace: str) -> bool:
        return namespace in self._default_queues

    def governs(self, namespace: str) -> bool:
        """Whether quotas or limits say what may exist in a namespace."""
        return self._governed[namespace] > 0

    def limits(self, namespace: str) -> bool:
        """Whether a LimitRange may fill in what containers of a namespace leave out."""
        return self._limited[namespace] > 0

    @property
    def priorities(self) -> Priorities:
        if self._priorities is None:
            self._priorities = collect_priorities(self._objects(PriorityClass))
        return self._priorities

    @property
    def kai_priorities(self) -> Priorities:
        """The classes for pods of KAI, which brings some of its own."""
        if self._kai_priorities is None:
            self._kai_priorities = with_kai_classes(self.priorities)
        return self._kai_priorities

    @property
    def tiers(self) -> Tiers:
        if self._tiers is None:
            self._tiers = tiers_of(self._objects(HyperNode))
        return self._tiers

    @property
    def bindings(self) -> Bindings:
        if self._bindings is None:
            self._bindings = bindings_of(self._objects(ClusterTopologyBinding))
        return self._bindings

    @property
    def default_class(self) -> str | None:
        """The name of the StorageClass for claims that name none."""
        return default_class(self._objects(StorageClass))

    def _find(self, type_: type[Any], namespace: str, name: str) -> Any:
        source = self._tables[type_].get((type_, namespace, name))
        return None if source is None else source.object

    def _objects(self, type_: type[Any]) -> list[Any]:
        return [source.object for source in sorted(self._tables[type_].values(), key=lambda source: source.rank)]

    def _forget(self, type_: type[Any]) -> None:
        """What was worked out from all objects of a kind is to be worked out anew."""
        if type_ is PriorityClass:
            self._priorities = self._kai_priorities = None
        elif type_ is HyperNode:
            self._tiers = None
        elif type_ is ClusterTopologyBinding:
            self._bindings = None

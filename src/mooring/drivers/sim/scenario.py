"""The scenario file: a cluster, work that arrives, what goes wrong and changes, and the policies to compare.

    apiVersion: config.mooring.dev/v1alpha1
    kind: Simulation

Durations are written as Kubernetes writes them (`90s`, `720h`); where chance may play a part, as distributions too
(`exponential(10m)`, see `model/kubelet/distributions.py`).
"""

from typing import Any

import msgspec

from mooring.config.scheduler import ConfigObject
from mooring.config.tenant_policy import API_VERSION
from mooring.plugins.gpu_fragmentation import TypicalPod

KIND = "Simulation"


class TraceSource(ConfigObject):
    """A file in one of the forms of `drivers/sim/traces`."""

    format: str
    path: str
    """Relative to the scenario."""
    options: dict[str, Any] = {}


class Price(ConfigObject):
    """What an hour of certain nodes costs."""

    per_hour: float
    nodes: dict[str, str] = {}
    """Labels that they have; none: all others. The first entry that fits counts."""


class KubeletTimings(ConfigObject):
    """How long things take on nodes where pods do not say so themselves: durations or distributions."""

    pull: str = "0s"
    """To pull an image that the node does not have."""
    start: str = "0s"
    """From there to the running container."""
    ready: str = "0s"
    stop: str = "0s"
    """From the signal to the end of a container; at most the grace period."""


class ClusterSource(ConfigObject):
    """The cluster at the start."""

    manifests: list[str] = []
    """Files or folders, relative to the scenario; also what `kubectl get ... -o json` prints."""
    objects: list[dict[str, Any]] = []
    """Manifests that stand in the scenario itself."""
    trace: TraceSource | None = None
    """A list of nodes."""
    decision_log: str = ""
    """A log of `mooring run --decision-log`: pods of the manifests are where it says that they were bound last."""
    prices: list[Price] = []
    timings: KubeletTimings = msgspec.field(default_factory=KubeletTimings)


class CheckpointRule(ConfigObject):
    """When jobs save their work."""

    interval: str = ""
    """Of work between two; empty: never."""
    on_eviction: bool = False
    """Whether a pod that is told to stop saves first."""


class Size(ConfigObject):
    """One of several forms that a job may have; what it does not say is as the work says."""

    weight: float = 1.0
    pods: int | None = None
    requests: dict[str, str | int | float] | None = None
    duration: str | None = None
    priority: int | None = None
    node_labels: dict[str, str | list[str]] | None = None


class WorkSource(ConfigObject):
    """Jobs that arrive: drawn, from a trace, or manifests."""

    name: str
    """Jobs that are drawn, or made of manifests, are called so, with a number."""
    every: str = ""
    """The time from one arrival to the next."""
    at: list[str] = []
    """The times of arrivals, since the start."""
    from_: str = msgspec.field(name="from", default="0s")
    until: str = ""
    """Empty: to the end."""
    count: int | None = None
    """At most so many."""
    as_: str = msgspec.field(name="as", default="Job")
    """What each is submitted as: Pod, Job, PodGroup or VolcanoJob."""
    namespace: str = "default"
    queue: str = ""
    priority: int = 0
    pods: int = 1
    requests: dict[str, str | int | float] = {}
    duration: str = ""
    """How long each pod works; of manifests, what `$(duration)` stands for."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    node_labels: dict[str, str | list[str]] = {}
    """By label, the value that a node must have, or one of several."""
    sizes: list[Size] = []
    trace: TraceSource | None = None
    manifests: list[str] = []
    """Files; `$(name)` in them stands for the name of each job."""
    objects: list[dict[str, Any]] = []
    """The same in the scenario itself."""
    checkpoints: CheckpointRule = msgspec.field(default_factory=CheckpointRule)


class NodeFailures(ConfigObject):
    """Nodes that fail by chance, each for itself."""

    every: str
    """The time that a node works until it fails."""
    repair: str
    """The time until it works again."""
    nodes: dict[str, str] = {}
    """Labels of the nodes that it is about; none: all."""


class SpotReclaim(ConfigObject):
    """Nodes that whoever lent them takes away by chance."""

    every: str
    back: str = "never"
    """The time until one comes back."""
    notice: str = "2m"
    """How long before it is known: nothing new starts there."""
    nodes: dict[str, str] = {}


class Faults(ConfigObject):
    node_failures: list[NodeFailures] = []
    spot_reclaims: list[SpotReclaim] = []
    detection: str = "40s"
    """From the failure of a node until the cluster knows."""


class NodeChoice(ConfigObject):
    """Nodes by name, by labels, or both."""

    names: list[str] = []
    labels: dict[str, str] = {}


class PlannedChange(ConfigObject):
    """What happens at a given time."""

    at: str
    apply: list[str] = []
    """Manifests to apply: queues with other quotas, nodes with taints; with a deletionTimestamp, to delete."""
    objects: list[dict[str, Any]] = []
    cordon: NodeChoice | None = None
    uncordon: NodeChoice | None = None
    fail: NodeChoice | None = None
    repair: NodeChoice | None = None


class Policy(ConfigObject):
    """One way to schedule, to be compared with the others."""

    name: str
    config: str = ""
    """A file with a KubeSchedulerConfiguration and whatever else `mooring schedule --config` reads."""
    settings: list[dict[str, Any]] = []
    """The same in the scenario itself."""
    manifests: list[str] = []
    """Queue objects and others that belong to this policy alone."""
    objects: list[dict[str, Any]] = []
    plugins: list[str] = []
    """Python files with plugins."""
    scores: list[str] = []
    """The Score plugins that alone decide between nodes, each with weight 1; none: those of the configuration."""
    schedulers: list[str] = []
    """Whose pods are taken on besides our own: their schedulerNames."""
    interval: str = ""
    """Instead of the scenario's."""


class Scenario(ConfigObject):
    """The document as a whole."""

    horizon: str
    """How long is simulated."""
    cluster: ClusterSource
    work: list[WorkSource]
    api_version: str = API_VERSION
    kind: str = KIND
    name: str = ""
    start: str = "2026-01-01T00:00:00Z"
    interval: str = "0s"
    """Between cycles; 0: one whenever something happens."""
    sample_every: str = ""
    """Empty: 500 samples."""
    seeds: list[int] = msgspec.field(default_factory=lambda: [0])
    faults: Faults = msgspec.field(default_factory=Faults)
    changes: list[PlannedChange] = []
    policies: list[Policy] = msgspec.field(default_factory=lambda: [Policy(name="default")])
    typical_pods: list[TypicalPod] = []
    """For the measure of fragmentation; empty: those of GpuFragmentation."""

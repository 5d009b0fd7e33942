"""Which pods may be evicted (DefaultEvictor), and how many: limits for each node, each namespace and in all."""

from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto

from mooring.actions.rebalance.descheduler.node_fit import Destinations
from mooring.actions.rebalance.descheduler.situation import PREFER_NO_EVICTION, Situation, owner_kinds
from mooring.config.descheduler import SYSTEM_CRITICAL, DefaultEvictorArgs, DeschedulerPolicy
from mooring.errors import ConfigError
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.model.values.durations import parse_duration
from mooring.model.values.selectors import compile_label_selector

EVICT = "descheduler.alpha.kubernetes.io/evict"
MIRROR = "kubernetes.io/config.mirror"
SOURCE = "kubernetes.io/config.source"


class Outcome(Enum):
    """What became of an eviction."""

    DONE = auto()
    REFUSED = auto()
    """By a limit of its namespace, or by a budget: the next pod may go."""
    NODE_LIMIT = auto()
    TOTAL_LIMIT = auto()


@dataclass(frozen=True, slots=True)
class Eviction:
    """One pod that is evicted."""

    pod: PodKey
    node: str
    strategy: str
    profile: str


class Limits:
    """How many pods were evicted in this cycle, by all strategies of all profiles."""

    def __init__(self, policy: DeschedulerPolicy) -> None:
        self._policy = policy
        self._by_node: Counter[str] = Counter()
        self._by_namespace: Counter[str] = Counter()
        self.evictions: list[Eviction] = []

    def reached(self, *pods: Pod) -> Outcome | None:
        """The limit that keeps pods from being evicted together, if there is one."""
        policy, in_all = self._policy, len(self.evictions)
        nodes = self._by_node + Counter(pod.spec.node_name for pod in pods)
        namespaces = self._by_namespace + Counter(pod.metadata.namespace for pod in pods)
        if policy.most_in_all is not None and in_all + max(1, len(pods)) > policy.most_in_all:
            # A smaller number may still be evicted, if only several together are too many.
            return Outcome.TOTAL_LIMIT if in_all >= policy.most_in_all else Outcome.REFUSED
        if policy.most_per_node is not None and any(nodes[pod.spec.node_name] > policy.most_per_node for pod in pods):
            return Outcome.NODE_LIMIT
        most = policy.most_per_namespace
        if most is not None and any(namespaces[pod.metadata.namespace] > most for pod in pods):
            return Outcome.REFUSED
        return None

    def count(self, pod: Pod, strategy: str, profile: str) -> None:
        """Note that a pod is evicted."""
        self._by_node[pod.spec.node_name] += 1
        self._by_namespace[pod.metadata.namespace] += 1
        self.evictions.append(Eviction(pod.key, pod.spec.node_name, strategy, profile))


class Evictor:
    """What one profile may evict."""

    def __init__(self, situation: Situation, limits: Limits, args: DefaultEvictorArgs, profile: str) -> None:
        self.situation = situation
        self._limits = limits
        self._args = args
        self.profile = profile
        self._protections = args.protections
        self._threshold = priority_threshold(situation, args)
        self._youngest_seconds = parse_duration(args.min_pod_age) if args.min_pod_age is not None else None
        self._selector = compile_label_selector(args.label_selector) if args.label_selector is not None else None
        self._classes = {one.name for one in args.protected_storage_classes}
        self._destinations = Destinations(situation, situation.ready_nodes(args.node_selector))
        self._evictable: dict[PodKey, bool] = {}
        """What pods are does not change while a profile runs; how many replicas there are does."""
        self._namespaces = _selected_namespaces(situation, args)

    def evict(self, pod: Pod, strategy: str) -> Outcome:
        """Evict a pod, unless a limit or a budget is in the way; what is refused counts towards no limit."""
        reached = self._limits.reached(pod)
        if reached is not None:
            return reached
        if not self.situation.evict(pod):
            return Outcome.REFUSED
        self._limits.count(pod, strategy, self.profile)
        return Outcome.DONE

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing more can be evicted in this cycle, whatever it is."""
        return self._limits.reached() is Outcome.TOTAL_LIMIT

    def may_evict(self, pod: Pod) -> bool:
        """Whether a pod may be evicted by what it is (Filter)."""
        key = pod.key
        found = self._evictable.get(key)
        if found is None:
            found = self._evictable[key] = self._is_evictable(pod)
        if not found or self._args.min_replicas <= 1:
            return found
        return EVICT in (pod.metadata.annotations or {}) or self._has_replicas(pod)

    def _is_evictable(self, pod: Pod) -> bool:
        annotations = pod.metadata.annotations or {}
        if EVICT in annotations:
            return True
        if self._args.no_eviction_policy == "Mandatory" and PREFER_NO_EVICTION in annotations:
            return False
        if MIRROR in annotations or annotations.get(SOURCE, "api") != "api":
            return False
        if pod.metadata.deletion_timestamp is not None or self._is_protected(pod):
            return False
        if self._selector is not None and not self._selector.matches(pod.metadata.labels or {}):
            return False
        return self._is_old_enough(pod)

    def could_move(self, pod: Pod) -> bool:
        """Whether a pod has somewhere to go, and is in a namespace that is meant (PreEvictionFilter)."""
        if self._args.node_fit and not self._destinations.has_another(pod):
            return False
        return self._namespaces is None or pod.metadata.namespace in self._namespaces

    def _is_protected(self, pod: Pod) -> bool:
        protections, kinds = self._protections, owner_kinds(pod)
        if not kinds and ("FailedBarePods" in protections or pod.status.phase != "Failed"):
            return True
        priority, protected_from = pod.spec.priority, min(SYSTEM_CRITICAL, self._threshold)
        if "SystemCriticalPods" in protections and priority is not None and priority >= protected_from:
            return True
        volumes = pod.spec.volumes or ()
        if "PodsWithLocalStorage" in protections and any(one.host_path or one.empty_dir for one in volumes):
            return True
        if "DaemonSetPods" in protections and "DaemonSet" in kinds:
            return True
        if "PodsWithPVC" in protections and self._has_protected_claim(pod):
            return True
        if "PodsWithoutPDB" in protections and not self.situation.budgets_of(pod):
            return True
        return "PodsWithResourceClaims" in protections and bool(pod.spec.resource_claims)

    def _has_protected_claim(self, pod: Pod) -> bool:
        names = {
            one.persistent_volume_claim.claim_name for one in pod.spec.volumes or () if one.persistent_volume_claim
        }
        if not self._classes:
            return bool(names)
        claims = {
            claim.metadata.name: claim.spec.storage_class_name
            for claim in self.situation.volume_claims
            if claim.metadata.namespace == pod.metadata.namespace
        }
        # A claim that is not there, or has no class, protects its pod too.
        return any(not claims.get(name) or claims[name] in self._classes for name in names)

    def _has_replicas(self, pod: Pod) -> bool:
        owners = pod.metadata.owner_references or ()
        if len(owners) != 1:
            return True
        return self.situation.replicas(owners[0].uid) >= self._args.min_replicas

    def _is_old_enough(self, pod: Pod) -> bool:
        if self._youngest_seconds is None:
            return True
        started = timestamp_seconds(pod.status.start_time)
        return started is not None and self.situation.now - started >= self._youngest_seconds


def priority_threshold(situation: Situation, args: DefaultEvictorArgs) -> int:
    """The priority from which pods are protected; a class that does not exist is a mistake in the policy."""
    given = args.priority_threshold
    if given is None or (given.value is None and not given.name):
        return SYSTEM_CRITICAL
    if given.value is not None:
        return given.value
    value = next((one.value for one in situation.priority_classes if one.metadata.name == given.name), None)
    if value is None or value > SYSTEM_CRITICAL:
        expected = f"a PriorityClass of at most {SYSTEM_CRITICAL}"
        raise ConfigError("DefaultEvictor", "priorityThreshold.name", expected=expected, found=f'"{given.name}"')
    return value


def _selected_namespaces(situation: Situation, args: DefaultEvictorArgs) -> set[str] | None:
    selector = args.namespace_label_selector
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return None
    compiled = compile_label_selector(selector)
    return {one.metadata.name for one in situation.namespaces if compiled.matches(one.metadata.labels or {})}

"""What must hold of gangs after every cycle, checked against the world alone: nothing here asks the scheduler."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from gang_worlds import BLOCK, RACK, GangWorld

from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict, Wait
from mooring.model.gangs.gang import Gang
from mooring.model.gangs.membership import VOLCANO_ROLE
from mooring.model.keys import PodKey
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import pod_requests
from mooring.testing.builders import HOSTNAME

DEFAULT_TIMEOUT = 300.0


def is_whole(gang: Gang, members: Iterable[Pod]) -> bool:
    """Whether these members are enough, in all and of each role."""
    found = list(members)
    roles = Counter((pod.metadata.annotations or {}).get(VOLCANO_ROLE, "") for pod in found)
    return len(found) >= gang.minimum and all(roles[role.name] >= role.minimum for role in gang.roles)


class Watch:
    """Follows a world from cycle to cycle. `before` is to be called before a cycle, `after` once it is carried out."""

    def __init__(self, world: GangWorld) -> None:
        self.world = world
        self._ran: dict[str, set[str]] = {}
        self._short_since: dict[str, float] = {}

    def before(self) -> None:
        self._ran = {key: {pod.key for pod in self.world.bound(key)} for key in self.world.kinds}

    def after(self, decisions: Sequence[Decision], now: float) -> None:
        bound = {decision.pod for decision in decisions if isinstance(decision, Bind)}
        evicted = {decision.pod for decision in decisions if isinstance(decision, Evict)}
        waits = {decision.pod for decision in decisions if isinstance(decision, Wait)} - evicted
        assert not bound & waits, f"said to wait, and bound: {sorted(bound & waits)}"
        bound -= evicted
        _check_rooms(self.world, bound)
        for key in self.world.kinds:
            new = {pod.key for pod in self.world.bound(key)} & bound
            if new:
                self._check_start(key, new)
            self._check_timeout(key, now)

    def _check_start(self, key: str, new: set[PodKey]) -> None:
        """Whoever of a gang is bound makes it whole, or comes to a whole one; and goes where it has to be."""
        gang = self.world.gangs.get(key)
        assert gang is not None, f"{sorted(new)} were bound, and nobody declares {key}"
        members = self.world.bound(key)
        has_all = is_whole(gang, [*members, *self.world.finished(key)])
        assert has_all, f"{gang.name} was started in part: {[pod.key for pod in members]}"
        if gang.topology_request is None:
            return
        if gang.topology_request.required:
            domains = {self._domain(pod, gang.topology_request.required) for pod in members}
            assert len(domains) == 1 and "" not in domains, f"{gang.name} is in {domains}"
        if not self._ran[key] and not gang.roles:
            self._check_ranks(gang, members)

    def _check_ranks(self, gang: Gang, members: list[Pod]) -> None:
        """Of a gang that starts: each slice in one domain, and neighbours by rank near each other."""
        topology_request = gang.topology_request
        assert topology_request is not None
        ranks = [int(pod.metadata.name.rpartition("-")[2]) for pod in members]
        if topology_request.has_slices:
            if ranks != list(range(len(members))):
                return  # where some are missing, slices are of those that were there when it started
            for first in range(0, len(members), topology_request.slice_size):
                of_slice = members[first : first + topology_request.slice_size]
                domains = {self._domain(pod, topology_request.slice_level or "") for pod in of_slice}
                assert len(domains) == 1, f"a slice of {gang.name} is torn: {domains}"
            return
        for level in (HOSTNAME, *topology_request.levels):
            runs = [self._domain(pod, level) for pod in members]
            changes = sum(one != other for one, other in pairwise(runs))
            assert changes == len(set(runs)) - 1, f"ranks of {gang.name} go to and fro between {runs}"

    def _check_timeout(self, key: str, now: float) -> None:
        """A gang that is short is completed or released in time."""
        gang, members = self.world.gangs.get(key), self.world.bound(key)
        if gang is None or not members or is_whole(gang, [*members, *self.world.finished(key)]):
            self._short_since.pop(key, None)
            return
        since = self._short_since.setdefault(key, now)
        timeout = DEFAULT_TIMEOUT if gang.timeout_seconds is None else gang.timeout_seconds
        assert now - since <= timeout, f"{gang.name} was left in part since {since:g}: {[pod.key for pod in members]}"

    def _domain(self, pod: Pod, level: str) -> str:
        labels = self.world.nodes[pod.spec.node_name].metadata.labels or {}
        if level == RACK:
            return f"{labels.get(BLOCK, '')}/{labels[RACK]}" if RACK in labels else ""
        return pod.spec.node_name if level == HOSTNAME else labels.get(level, "")


def _check_rooms(world: GangWorld, bound: set[str]) -> None:
    """No node was given more than it has."""
    chosen = {world.pods[key].spec.node_name for key in bound}
    for name in chosen:
        running = [pod for pod in world.pods.values() if pod.spec.node_name == name]
        taken = Counter[str]()
        for pod in running:
            taken.update(pod_requests(pod))
        has = world.nodes[name].status.allocatable or {}
        over = {key: amount for key, amount in taken.items() if amount > parse_quantity(has.get(key, 0))}
        assert not over, f"{name} has {has} and was given {over} (billionths)"
        assert len(running) <= int(has["pods"]), f"{name} was given {len(running)} pods"

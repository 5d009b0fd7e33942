"""What a pod asks of the managers of a kubelet, container by container, in the order in which they are asked."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from mooring.model.api.meta import Resources
from mooring.model.api.pods import Container, PodSpec
from mooring.model.values.quantity import NANO, Nanos, parse_quantity, to_units
from mooring.model.values.requests import CPU, MEMORY

HUGEPAGES = "hugepages-"
ALWAYS = "Always"


@dataclass(frozen=True, slots=True)
class ContainerAsk:
    name: str
    cpus: int = 0  # whole ones, for itself; 0: it runs on the shared pool
    memory: tuple[tuple[str, int], ...] = ()  # to be pinned, bytes by type
    limits: tuple[tuple[str, int], ...] = ()  # of anything that may turn out to be a device
    init: bool = False
    sidecar: bool = False

    @property
    def ends(self) -> bool:
        """An init container that is gone when the next one starts, and leaves what it had to it."""
        return self.init and not self.sidecar


@dataclass(frozen=True)
class PodAsk:
    """Hashable, and looked up often: pods that ask alike are answered alike."""

    containers: tuple[ContainerAsk, ...]

    @cached_property
    def is_nothing(self) -> bool:
        return not any(asked.cpus or asked.memory or asked.limits for asked in self.containers)

    @cached_property
    def _hash(self) -> int:
        return hash(self.containers)

    def __hash__(self) -> int:
        return self._hash

    def cpus(self) -> int:
        """For the pod as a whole: what the largest moment needs."""
        return _peak((asked, asked.cpus) for asked in self.containers)

    def memory(self) -> dict[str, int]:
        names = [name for asked in self.containers if not asked.init for name, _ in asked.memory]
        return {n: _peak((asked, dict(asked.memory).get(n, 0)) for asked in self.containers) for n in names}

    def limits(self) -> dict[str, int]:
        names = [name for asked in self.containers for name, _ in asked.limits]
        return {n: _peak((asked, dict(asked.limits).get(n, 0)) for asked in self.containers) for n in names}


def _peak(amounts: Iterable[tuple[ContainerAsk, int]]) -> int:
    sidecars = during_init = running = 0
    for asked, amount in amounts:
        if asked.sidecar:
            sidecars += amount
        elif asked.init:
            during_init = max(during_init, sidecars + amount)
        else:
            running += amount
    return max(during_init, running + sidecars)


def ask_of(spec: PodSpec) -> PodAsk:
    """Only Guaranteed pods get CPUs and memory of their own; devices go to any."""
    guaranteed = is_guaranteed(spec)
    containers = [
        *(_container_ask(container, guaranteed, init=True) for container in spec.init_containers or ()),
        *(_container_ask(container, guaranteed, init=False) for container in spec.containers),
    ]
    return PodAsk(tuple(containers))


def is_guaranteed(spec: PodSpec) -> bool:
    """The QoS class Guaranteed: every container limits CPU and memory, and asks for as much in all."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    for container in (*spec.containers, *(spec.init_containers or ())):
        limited = _compute(container.resources.limits if container.resources else None)
        if limited.keys() != {CPU, MEMORY}:
            return False
        asked = _compute(container.resources.requests if container.resources else None)
        for name in (CPU, MEMORY):
            requests[name] = requests.get(name, 0) + asked.get(name, 0)
            limits[name] = limits.get(name, 0) + limited[name]
    return requests == limits


def _compute(resources: Resources | None) -> dict[str, Nanos]:
    amounts = {name: parse_quantity(text) for name, text in (resources or {}).items() if name in (CPU, MEMORY)}
    return {name: amount for name, amount in amounts.items() if amount}


def _container_ask(container: Container, guaranteed: bool, init: bool) -> ContainerAsk:
    given = container.resources
    limits = {name: parse_quantity(text) for name, text in ((given and given.limits) or {}).items()}
    requests = {name: parse_quantity(text) for name, text in ((given and given.requests) or {}).items()}
    cpu = requests.get(CPU, 0)
    pinned = {
        name: to_units(amount) for name, amount in requests.items() if name == MEMORY or name.startswith(HUGEPAGES)
    }
    return ContainerAsk(
        name=container.name,
        cpus=cpu // NANO if guaranteed and cpu % NANO == 0 else 0,
        memory=tuple(sorted(pinned.items())) if guaranteed else (),
        limits=tuple(sorted((n, to_units(a)) for n, a in limits.items() if n != CPU and n != MEMORY)),
        init=init,
        sidecar=init and container.restart_policy == ALWAYS,
    )

"""Admission by a kubelet: would it take this pod here, and which CPUs, memory and devices would it give it?"""

from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from mooring.model.numa.ask import ContainerAsk, PodAsk
from mooring.model.numa.cpus import CpuManager, NotEnoughCpus, SmtAlignmentError
from mooring.model.numa.devices import DeviceManager, NoDevices
from mooring.model.numa.hints import NOTHING_SAID, Hint, Hints, merge
from mooring.model.numa.machine import Bits, Machine, cpu_set, members
from mooring.model.numa.memory import (
    Block,
    MemoryManager,
    MemoryState,
    NoMemory,
    Reusable,
    leave_to_others,
    pin,
    release,
    shrink,
    use_up,
)
from mooring.model.numa.settings import KubeletSettings

TOPOLOGY_AFFINITY_ERROR = "TopologyAffinityError"
SMT_ALIGNMENT_ERROR = "SMTAlignmentError"
UNEXPECTED_ADMISSION_ERROR = "UnexpectedAdmissionError"


@dataclass(slots=True)
class Free:
    """What nobody has: the shared pool of CPUs, memory by NUMA node, devices by resource."""

    cpus: Bits
    memory: MemoryState
    devices: dict[str, Bits]

    def copy(self) -> "Free":
        return Free(self.cpus, {number: node.copy() for number, node in self.memory.items()}, dict(self.devices))

    def key(self) -> tuple[object, ...]:
        """Equal for machines with the same things left."""
        memory = tuple(
            (node.group, node.assignments, tuple(node.free.values()), tuple(node.pinned.values()))
            for node in self.memory.values()
        )
        return self.cpus, memory, tuple(self.devices.values())


@dataclass(slots=True)
class ContainerShare:
    """What one container got. Without an affinity, it does not matter where."""

    name: str
    affinity: Bits | None
    preferred: bool
    cpus: Bits = 0
    memory: list[Block] = field(default_factory=list)
    devices: dict[str, Bits] = field(default_factory=dict)


@dataclass(frozen=True)
class Admitted:
    containers: tuple[ContainerShare, ...]
    running: tuple[Block, ...]
    """The memory that is still pinned once all containers run: that of init containers is given back."""
    devices: DeviceManager

    @cached_property
    def text(self) -> str:
        """Which CPUs, NUMA nodes, memory and devices each container gets, as JSON; many pods have the same."""
        return msgspec.json.encode({"containers": {s.name: self._described(s) for s in self.containers}}).decode()

    def _described(self, share: ContainerShare) -> dict[str, object]:
        return {
            "numaNodes": None if share.affinity is None else list(members(share.affinity)),
            "cpus": cpu_set(share.cpus),
            "memory": [{"type": b.type, "numaNodes": list(members(b.numa)), "bytes": b.size} for b in share.memory],
            "devices": {name: list(self.devices.named(name, taken)) for name, taken in share.devices.items()},
        }


@dataclass(frozen=True, slots=True)
class Refused:
    reason: str
    message: str


class Kubelet:
    """The managers of one kind of node; nodes alike share it, and each has its own `Free`."""

    def __init__(self, machine: Machine, settings: KubeletSettings) -> None:
        self.machine = machine
        self.settings = settings
        self._cpus = CpuManager(machine, settings) if settings.static_cpus else None
        self._memory = MemoryManager(machine, settings) if settings.static_memory else None
        self._devices = DeviceManager(machine)

    def at_start(self) -> Free:
        return Free(
            self._cpus.shared_at_start if self._cpus else 0,
            self._memory.at_start() if self._memory else {},
            self._devices.at_start(),
        )

    def device_names(self, resource: str, taken: Bits) -> tuple[str, ...]:
        return self._devices.named(resource, taken)

    def admit(self, free: Free, pod: PodAsk) -> Admitted | Refused:
        """Take what the pod gets off `free`, until its last container runs; a refused pod leaves what it had."""
        turn = _Turn(free)
        try:
            hint = NOTHING_SAID
            if self.settings.topology_policy != "none" and self.settings.topology_scope == "pod":
                hint = self._merged(self._pod_hints(free, pod))
            for asked in pod.containers:
                if self.settings.topology_policy != "none" and self.settings.topology_scope == "container":
                    hint = self._merged(self._container_hints(turn, asked))
                self._give(turn, asked, hint)
        except _Refusal as refusal:
            turn.give_back()
            return Refused(refusal.reason, str(refusal))
        return turn.start(pod, self._devices)

    def release(self, free: Free, admitted: Admitted) -> None:
        """The pod is gone."""
        for share in admitted.containers:
            free.cpus |= share.cpus
            for resource, taken in share.devices.items():
                free.devices[resource] |= taken
        release(free.memory, list(admitted.running))

    def give_again(self, free: Free, admitted: Admitted) -> None:
        """A pod has again what it had before it was released."""
        for share in admitted.containers:
            free.cpus &= ~share.cpus
            for resource, taken in share.devices.items():
                free.devices[resource] &= ~taken
        pin(free.memory, admitted.running)

    def _merged(self, hints: list[Hints]) -> Hint:
        hint, admitted = merge(hints, self.machine, self.settings)
        if not admitted:
            raise _Refusal(TOPOLOGY_AFFINITY_ERROR, "Resources cannot be allocated with Topology locality")
        return hint

    def _pod_hints(self, free: Free, pod: PodAsk) -> list[Hints]:
        hints = self._devices.hints(free.devices, {}, self._devices.wanted(pod.limits()))
        hints.append(self._cpus.hints(free.cpus, 0, pod.cpus()) if self._cpus else None)
        return hints + (self._memory.hints(free.memory, {}, pod.memory()) if self._memory else [None])

    def _container_hints(self, turn: "_Turn", asked: ContainerAsk) -> list[Hints]:
        free = turn.free
        hints = self._devices.hints(free.devices, turn.devices, self._devices.wanted(dict(asked.limits)))
        hints.append(self._cpus.hints(free.cpus, turn.cpus, asked.cpus) if self._cpus else None)
        memory = self._memory.hints(free.memory, turn.memory, dict(asked.memory)) if self._memory else [None]
        return hints + memory

    def _give(self, turn: "_Turn", asked: ContainerAsk, hint: Hint) -> None:
        share = ContainerShare(asked.name, hint.numa, hint.preferred)
        turn.shares.append(share)
        try:
            self._give_devices(turn, asked, share)
            self._give_cpus(turn, asked, share)
            self._give_memory(turn, asked, share, hint)
        except SmtAlignmentError as error:
            raise _Refusal(SMT_ALIGNMENT_ERROR, str(error)) from error
        except (NotEnoughCpus, NoMemory, NoDevices) as error:
            raise _Refusal(UNEXPECTED_ADMISSION_ERROR, str(error)) from error

    def _give_devices(self, turn: "_Turn", asked: ContainerAsk, share: ContainerShare) -> None:
        for resource, count in self._devices.wanted(dict(asked.limits)).items():
            reusable = turn.devices.get(resource, 0)
            taken = self._devices.allocate(resource, turn.free.devices[resource], reusable, count, share.affinity)
            turn.free.devices[resource] &= ~taken
            share.devices[resource] = taken
            turn.devices[resource] = reusable | taken if asked.ends else reusable & ~taken

    def _give_cpus(self, turn: "_Turn", asked: ContainerAsk, share: ContainerShare) -> None:
        if self._cpus is None or not asked.cpus:
            return
        share.cpus = self._cpus.allocate(turn.free.cpus, turn.cpus, asked.cpus, share.affinity)
        turn.free.cpus &= ~share.cpus
        turn.cpus = turn.cpus | share.cpus if asked.ends else turn.cpus & ~share.cpus

    def _give_memory(self, turn: "_Turn", asked: ContainerAsk, share: ContainerShare, hint: Hint) -> None:
        if self._memory is None or not asked.memory:
            return
        share.memory = self._memory.allocate(turn.free.memory, turn.memory, dict(asked.memory), hint)
        shrink([earlier.memory for earlier in turn.ended], share.memory)
        if asked.ends:
            leave_to_others(turn.memory, share.memory)
            turn.ended.append(share)
        else:
            use_up(turn.memory, share.memory)


class _Refusal(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class _Turn:
    """One pod on its way in: what it has so far, and what of its init containers later ones may use again."""

    def __init__(self, free: Free) -> None:
        self.free = free
        self.shares: list[ContainerShare] = []
        self.ended: list[ContainerShare] = []
        self.cpus: Bits = 0
        self.devices: dict[str, Bits] = {}
        self.memory: Reusable = {}

    def give_back(self) -> None:
        for share in self.shares:
            self.free.cpus |= share.cpus
            for resource, taken in share.devices.items():
                self.free.devices[resource] |= taken
            release(self.free.memory, share.memory)

    def start(self, pod: PodAsk, devices: DeviceManager) -> Admitted:
        """All containers start in order; each start gives back the memory of the init containers before it."""
        running: list[Block] = []
        for asked, share in zip(pod.containers, self.shares, strict=True):
            if asked.ends:
                release(self.free.memory, share.memory)
            else:
                running += share.memory
        return Admitted(tuple(self.shares), tuple(running), devices)

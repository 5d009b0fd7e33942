"""The Device Manager: devices of device plugins, near to the CPUs and the memory of their container."""

from mooring.model.numa.hints import Hint, Hints
from mooring.model.numa.machine import Bits, Device, Machine, bits, masks_of, members


class NoDevices(Exception):
    """Fewer devices are free than asked."""


class DeviceManager:
    """Answers for one machine. Devices of a resource are bits, in the order in which the plugin lists them."""

    def __init__(self, machine: Machine) -> None:
        self._devices = machine.devices
        self._numa = machine.numa

    def at_start(self) -> dict[str, Bits]:
        return {name: bits(n for n, each in enumerate(found) if each.healthy) for name, found in self._devices.items()}

    def named(self, resource: str, taken: Bits) -> tuple[str, ...]:
        return tuple(self._devices[resource][n].id for n in members(taken))

    def wanted(self, limits: dict[str, int]) -> dict[str, int]:
        """Of what is asked, what device plugins of this machine serve."""
        return {name: count for name, count in limits.items() if name in self._devices}

    def hints(self, free: dict[str, Bits], reusable: dict[str, Bits], wanted: dict[str, int]) -> list[Hints]:
        return [self._hints(name, free[name], reusable.get(name, 0), count) for name, count in wanted.items()] or [None]

    def _hints(self, resource: str, free: Bits, reusable: Bits, wanted: int) -> Hints:
        devices = self._devices[resource]
        places = self._places(devices)
        if not places:
            return None
        if (free | reusable).bit_count() < wanted:
            return []
        masks = masks_of(places & self._numa or self._numa)
        fewest = masks[-1].bit_count()
        found = []
        for numa in masks:
            inside = bits(n for n, device in enumerate(devices) if device.numa & numa)
            if numa.bit_count() < fewest and inside.bit_count() >= wanted:
                fewest = numa.bit_count()
            placed = bits(n for n in members(reusable) if devices[n].numa)
            if not placed & ~inside and (free & inside).bit_count() + placed.bit_count() >= wanted:
                found.append(numa)
        return [Hint(numa, numa.bit_count() == fewest) for numa in found]

    def allocate(self, resource: str, free: Bits, reusable: Bits, wanted: int, numa: Bits | None) -> Bits:
        """Devices for one container; whoever has to choose takes the first ones of the plugin's list."""
        devices = self._devices[resource]
        taken = _first(reusable, wanted)
        needed = wanted - taken.bit_count()
        if needed == 0:
            return taken
        if free.bit_count() < needed:
            raise NoDevices(f"{needed} of {resource} wanted, {free.bit_count()} free")
        aligned = 0
        if numa is not None and self._places(devices):
            aligned = bits(n for n in members(free) if devices[n].numa & numa)
        if needed < aligned.bit_count():
            return taken | _first(aligned, needed)
        taken |= aligned
        needed -= aligned.bit_count()
        return taken | _first(free & ~aligned, needed)

    @staticmethod
    def _places(devices: tuple[Device, ...]) -> Bits:
        places = 0
        for device in devices:
            places |= device.numa
        return places


def _first(devices: Bits, count: int) -> Bits:
    return bits(list(members(devices))[:count])

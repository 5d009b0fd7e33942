"""Addresses of simulated nodes and pods, all within 127.0.0.0/8: whatever is dialled stays on the machine."""

import heapq

_PER_BLOCK = 1 << 16
NODE_BLOCK, FIRST_POD_BLOCK, LAST_POD_BLOCK = 1, 2, 254


def node_address(number: int) -> str:
    return f"127.{NODE_BLOCK}.{number >> 8 & 255}.{number & 255}"


class PodAddresses:
    """Gives each pod an address of its own, the lowest that is free."""

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}
        self._free: list[int] = []
        self._next = 1

    def of(self, uid: str) -> str:
        """The address of a pod, from its first question until it is given back."""
        address = self._taken.get(uid)
        if address is None:
            number = heapq.heappop(self._free) if self._free else self._new()
            address = self._taken[uid] = _pod_address(number)
        return address

    def keep(self, uid: str, address: str) -> None:
        """Note an address that a pod has from before."""
        number = _pod_number(address)
        if number is None or uid in self._taken:
            return
        self._taken[uid] = address
        while self._next <= number:
            heapq.heappush(self._free, self._next)
            self._next += 1
        if number in self._free:
            self._free.remove(number)
            heapq.heapify(self._free)

    def give_back(self, uid: str) -> None:
        address = self._taken.pop(uid, None)
        number = _pod_number(address) if address else None
        if number is not None:
            heapq.heappush(self._free, number)

    def _new(self) -> int:
        number, self._next = self._next, self._next + 1
        return number


def _pod_address(number: int) -> str:
    block, rest = divmod(number, _PER_BLOCK)
    return f"127.{FIRST_POD_BLOCK + block % (LAST_POD_BLOCK - FIRST_POD_BLOCK)}.{rest >> 8}.{rest & 255}"


def _pod_number(address: str) -> int | None:
    first, block, high, low = (int(part) for part in address.split("."))
    if first != 127 or not FIRST_POD_BLOCK <= block <= LAST_POD_BLOCK:
        return None
    return (block - FIRST_POD_BLOCK) * _PER_BLOCK + high * 256 + low

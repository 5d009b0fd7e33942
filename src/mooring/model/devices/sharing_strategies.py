"""How pods that use one claim share its GPU, as NVIDIA's driver is told in the claim's or the class's configuration.

The driver carries it out. The scheduler reads it to refuse what the driver would refuse, and to show it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from mooring.model.api.claims import AllocationResult
from mooring.model.api.devices import DeviceClassConfiguration
from mooring.model.api.meta import KubeObject, QuantityText
from mooring.model.devices.joining import NVIDIA
from mooring.model.values.quantity import QuantityError, parse_quantity

KINDS = ("GpuConfig", "MigDeviceConfig")
TIME_SLICING, MPS = "TimeSlicing", "MPS"
STRATEGIES = (TIME_SLICING, MPS)
INTERVALS = ("Default", "Short", "Medium", "Long")

Problem = tuple[str, str, str]
"""(field, what is expected, what was found)"""


class TimeSlicingConfig(KubeObject):
    interval: str = "Default"


class MpsConfig(KubeObject):
    default_active_thread_percentage: int | None = None
    default_pinned_device_memory_limit: QuantityText | None = None


class SharingStrategy(KubeObject):
    strategy: str = ""
    time_slicing_config: TimeSlicingConfig | None = None
    mps_config: MpsConfig | None = None

    @property
    def words(self) -> str:
        """For people: TimeSlicing, or MPS with what each pod may have."""
        if self.strategy == TIME_SLICING and self.time_slicing_config is not None:
            return f"{TIME_SLICING} {self.time_slicing_config.interval}"
        if self.strategy == MPS and self.mps_config is not None:
            percentage = self.mps_config.default_active_thread_percentage
            limit = self.mps_config.default_pinned_device_memory_limit
            parts = [MPS, *([f"{percentage}%"] if percentage else ()), *([str(limit)] if limit else ())]
            return " ".join(parts)
        return self.strategy


def sharing_strategy(parameters: Any) -> SharingStrategy | None:
    """What parameters of NVIDIA's driver say of sharing; None if nothing. Raises ValidationError if it is none."""
    if not isinstance(parameters, dict) or parameters.get("kind") not in KINDS or not parameters.get("sharing"):
        return None
    return msgspec.convert(parameters["sharing"], SharingStrategy)


def problems(config: Sequence[DeviceClassConfiguration] | None) -> Iterator[Problem]:
    """What NVIDIA's driver would refuse of some configuration."""
    for index, each in enumerate(config or ()):
        if each.opaque is None or each.opaque.driver != NVIDIA:
            continue
        path = f"[{index}].opaque.parameters.sharing"
        try:
            found = sharing_strategy(each.opaque.parameters)
        except msgspec.ValidationError as error:
            yield path, "how a GPU is shared", str(error)
            continue
        if found is not None:
            yield from ((f"{path}.{field}", expected, said) for field, expected, said in _problems_of(found))


def _problems_of(found: SharingStrategy) -> Iterator[Problem]:
    if found.strategy not in STRATEGIES:
        yield "strategy", f"one of {', '.join(STRATEGIES)}", f'"{found.strategy}"'
    if found.time_slicing_config is not None and found.time_slicing_config.interval not in INTERVALS:
        interval = found.time_slicing_config.interval
        yield "timeSlicingConfig.interval", f"one of {', '.join(INTERVALS)}", f'"{interval}"'
    if found.mps_config is not None:
        percentage = found.mps_config.default_active_thread_percentage
        if percentage is not None and not 0 < percentage <= 100:
            yield "mpsConfig.defaultActiveThreadPercentage", "from 1 to 100", str(percentage)
        limit = found.mps_config.default_pinned_device_memory_limit
        if limit is not None and not _is_quantity(limit):
            yield "mpsConfig.defaultPinnedDeviceMemoryLimit", "a quantity such as 10Gi", f'"{limit}"'


def _is_quantity(text: QuantityText) -> bool:
    try:
        return parse_quantity(text) > 0
    except QuantityError:
        return False


def sharing_words(allocation: AllocationResult | None, device: str) -> str:
    """How a device of an allocation is shared, for people; the claim's own word counts more than the class's."""
    if allocation is None:
        return ""
    requests = {each.request for each in allocation.devices.results or () if each.device == device}
    said = ""
    for config in allocation.devices.config or ():
        concerned = set(config.requests or requests)
        if config.opaque is not None and config.opaque.driver == NVIDIA and concerned & _with_parents(requests):
            try:
                found = sharing_strategy(config.opaque.parameters)
            except msgspec.ValidationError:
                continue
            said = found.words if found is not None else said
    return said


def _with_parents(requests: set[str]) -> set[str]:
    """Requests, and for each alternative the request that it is one of."""
    return requests | {name.partition("/")[0] for name in requests}

"""MIG: what each model of GPU can be cut into. A profile takes so many slices of memory in a row, from certain ones on.

What is free of a card is a set of slices, as bits. Instances never move: what cannot be placed beside them waits.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

PREFIX = "nvidia.com/mig-"
COMPUTE, WHOLE = 5, 100
"""What a compute slice that is lost costs, and a GPU that is cut into, in slices of room."""


class Profile(NamedTuple):
    """One size of instance: how many slices of memory it takes, and where it may begin."""

    name: str
    slices: int
    starts: tuple[int, ...]

    @property
    def compute(self) -> int:
        """In sevenths of the GPU (in fourths, of an A30)."""
        return int(self.name.partition("g")[0])


@dataclass(frozen=True, eq=False)
class Geometry:
    """What one model of GPU can be cut into."""

    name: str
    slices: int
    profiles: tuple[Profile, ...]

    @cached_property
    def by_name(self) -> Mapping[str, Profile]:
        return {profile.name: profile for profile in self.profiles}

    def masks(self, profile: str) -> tuple[tuple[int, int], ...]:
        """Where an instance may be: its first slice, and the slices as bits."""
        return _masks(self.by_name[profile]) if profile in self.by_name else ()

    @property
    def _all(self) -> range:
        return range(1 << self.slices)

    def _most(self, size: Callable[[Profile], int]) -> list[int]:
        """For each set of taken slices: how much instances can take of the rest, at best."""
        most = [0] * len(self._all)
        for mask in reversed(self._all):  # whatever is cut next leaves a set that was looked at before
            for profile in self.profiles:
                for _, bits in _masks(profile):
                    if not mask & bits:
                        most[mask] = max(most[mask], size(profile) + most[mask | bits])
        return most

    @cached_property
    def _most_compute(self) -> list[int]:
        return self._most(lambda profile: profile.compute)

    def best_start(self, profile: str, mask: int) -> tuple[int, int] | None:
        """(cost, first slice): where an instance spoils least of a card with these slices taken; None if nowhere.

        It costs most to cut a GPU that is still whole, then to lose compute that no instance could use any more; of
        cards that cost the same, the one with the least room is best. The weights were found by trying:
        `python -m mooring.bench.mig_quality`.
        """
        most, room = self._most_compute, self.slices - mask.bit_count()
        found = [
            (
                COMPUTE * (most[mask] - most[mask | bits] - self.by_name[profile].compute) + room + WHOLE * (not mask),
                start,
            )
            for start, bits in self.masks(profile)
            if not mask & bits
        ]
        return min(found) if found else None


def _masks(profile: Profile) -> tuple[tuple[int, int], ...]:
    return tuple((start, ((1 << profile.slices) - 1) << start) for start in profile.starts)


def _seven(name: str, one: str, double: str, three: str, seven: str) -> Geometry:
    """GPUs of seven compute and eight memory slices, by the memory that their profiles are called after."""
    profiles = (
        Profile(f"1g.{one}", 1, (0, 1, 2, 3, 4, 5, 6)),
        Profile(f"1g.{double}", 2, (0, 2, 4, 6)),
        Profile(f"2g.{double}", 2, (0, 2, 4)),
        Profile(f"3g.{three}", 4, (0, 4)),
        Profile(f"4g.{three}", 4, (0,)),
        Profile(f"7g.{seven}", 8, (0,)),
    )
    return Geometry(name, 8, profiles)


A30 = Geometry(
    "A30",
    4,
    (Profile("1g.6gb", 1, (0, 1, 2, 3)), Profile("2g.12gb", 2, (0, 2)), Profile("4g.24gb", 4, (0,))),
)
A100_40 = _seven("A100-40GB", "5gb", "10gb", "20gb", "40gb")
A100_80 = _seven("A100-80GB", "10gb", "20gb", "40gb", "80gb")
H100_80 = _seven("H100-80GB", "10gb", "20gb", "40gb", "80gb")
H100_94 = _seven("H100-94GB", "12gb", "24gb", "47gb", "94gb")
H100_96 = _seven("H100-96GB", "12gb", "24gb", "48gb", "96gb")
H200 = _seven("H200-141GB", "18gb", "35gb", "71gb", "141gb")
B200 = _seven("B200-180GB", "23gb", "45gb", "90gb", "180gb")
GEOMETRIES = (A30, A100_40, A100_80, H100_80, H100_94, H100_96, H200, B200)

_MODELS = (
    (r"\bA30\b", 0, A30),
    (r"\bA100\b", 60_000, A100_80),
    (r"\bA100\b", 0, A100_40),
    (r"\bA800\b", 60_000, A100_80),
    (r"\bA800\b", 0, A100_40),
    (r"\bH200\b", 0, H200),
    (r"\bGH200\b|\bH20\b", 0, H100_96),
    (r"\bH100\b|\bH800\b", 95_900, H100_96),
    (r"\bH100\b|\bH800\b", 90_000, H100_94),
    (r"\bH100\b|\bH800\b", 0, H100_80),
    (r"\bB200\b", 0, B200),
)
"""A model's name, the least MiB of memory that tells it from others of that name, and its geometry."""
_MEMORY_IN_NAME = re.compile(r"\b(\d+)\s?GB\b", re.IGNORECASE)


@lru_cache(maxsize=256)
def geometry_of(model: str, memory: int = 0) -> Geometry | None:
    """The geometry of a model as nodes spell it (NVIDIA-A100-SXM4-80GB), with its MiB of memory if known."""
    words = model.replace("-", " ").replace("_", " ")
    in_name = _MEMORY_IN_NAME.search(words)
    size = memory or (int(in_name[1]) * 1000 if in_name else 0)
    for pattern, least, geometry in _MODELS:
        if re.search(pattern, words, re.IGNORECASE) and size >= least:
            return geometry
    return None


def profile_of(resource: str) -> str:
    """The profile that a resource such as nvidia.com/mig-1g.10gb is of; nothing for others."""
    return resource.removeprefix(PREFIX) if resource.startswith(PREFIX) else ""


KNOWN_PROFILES = frozenset(profile.name for geometry in GEOMETRIES for profile in geometry.profiles)

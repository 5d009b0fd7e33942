"""Usage of containers minute by minute, made so that the truth is known: what each needs at every moment."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MINUTES_A_DAY = 1440
STEADY, DAILY, BURSTY, GROWING, SAWTOOTH = KINDS = ("steady", "daily", "bursty", "growing", "sawtooth")
BURST_MINUTES = 10
SAWTOOTH_MINUTES = 360


@dataclass(frozen=True, slots=True)
class Containers:
    """Containers of all kinds in turn: what they use on average, and what their users ask for."""

    kinds: tuple[str, ...]
    cores: Floats
    memory: Floats
    """In bytes."""
    asked_cores: Floats
    asked_memory: Floats

    def of_kind(self, kind: str) -> NDArray[np.bool_]:
        return np.array([one == kind for one in self.kinds])


@dataclass(frozen=True, slots=True)
class Minute:
    """What every container uses in one minute, had it as much as it wants."""

    number: int
    cores: Floats
    memory: Floats


def make_containers(count: int, generator: np.random.Generator) -> Containers:
    """Draw containers; users ask for about twice the average, some for far too much and some for too little."""
    kinds = tuple(KINDS[number % len(KINDS)] for number in range(count))
    cores = generator.lognormal(np.log(0.5), 0.8, count)
    memory = generator.lognormal(np.log(1 << 30), 0.8, count)
    guess = generator.lognormal(np.log(2.0), 0.35, count)
    return Containers(kinds, cores, memory, cores * guess, memory * guess)


def minutes(containers: Containers, days: int, generator: np.random.Generator) -> Iterator[Minute]:
    """Play the usage of all containers."""
    count = len(containers.kinds)
    daily, bursty, growing, sawtooth = (containers.of_kind(kind) for kind in KINDS[1:])
    phase = generator.uniform(0.0, 1.0, count)
    burst_until = np.zeros(count)
    for number in range(days * MINUTES_A_DAY):
        level = np.ones(count)
        level[daily] = 1.0 + 0.5 * np.sin(2 * np.pi * (number / MINUTES_A_DAY + phase[daily]))
        begins = bursty & (generator.uniform(size=count) < 1.0 / 240)
        burst_until[begins] = number + BURST_MINUTES
        level[bursty] = np.where(burst_until[bursty] > number, 2.0, 0.8)
        memory = level.copy()
        memory[growing] = 1.0 + 0.05 * number / MINUTES_A_DAY
        tooth = (number / SAWTOOTH_MINUTES + phase[sawtooth]) % 1.0
        memory[sawtooth] = 0.6 + 0.8 * tooth
        noise = generator.lognormal(0.0, 0.05, count)
        yield Minute(number, containers.cores * level * noise, containers.memory * memory * noise)


def shares_of(values: Floats, kinds: Sequence[str]) -> dict[str, float]:
    """The mean of some figure for the containers of each kind, and for all."""
    found = {kind: float(values[np.array([one == kind for one in kinds])].mean()) for kind in KINDS}
    return {"all": float(values.mean()), **found}

"""Durations that are known, and those of which only the distribution is: `10m`, `exponential(10m)`, `uniform(1m, 5m)`.

Chance is an argument: a draw is a number between 0 and 1 made of a seed and names, so that the same run draws the same.
"""

import hashlib
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from mooring.model.values.durations import parse_duration

EXPECTED_DISTRIBUTION = (
    "a duration such as 90s or 1h30m, or one of exponential(MEAN), uniform(LEAST, MOST), normal(MEAN, DEVIATION), "
    "lognormal(MEDIAN, SIGMA)"
)
NEVER_TEXT = "never"

_CALL = re.compile(r"(exponential|uniform|normal|lognormal)\(([^()]*)\)")
_ARGUMENTS = {"exponential": 1, "uniform": 2, "normal": 2, "lognormal": 2}
_STANDARD = NormalDist()


@dataclass(frozen=True, slots=True)
class Distribution:
    """Seconds as a function of a draw; `kind` is empty where they do not depend on it."""

    first: float = 0.0
    second: float = 0.0
    kind: str = ""

    def at(self, draw: float) -> float:
        """The seconds that belong to a draw strictly between 0 and 1."""
        match self.kind:
            case "exponential":
                return -self.first * math.log1p(-draw)
            case "uniform":
                return self.first + draw * (self.second - self.first)
            case "normal":
                return max(0.0, self.first + self.second * _STANDARD.inv_cdf(draw))
            case "lognormal":
                return self.first * math.exp(self.second * _STANDARD.inv_cdf(draw))
            case _:
                return self.first


AT_ONCE = Distribution()
NEVER = Distribution(math.inf)


@lru_cache(maxsize=1024)
def parse_distribution(text: str) -> Distribution | None:
    """Read a duration, a distribution of durations or `never`; None if it is none of them.

    >>> parse_distribution("uniform(1m, 5m)")
    Distribution(first=60.0, second=300.0, kind='uniform')
    """
    text = text.strip()
    if text == NEVER_TEXT:
        return NEVER
    if (seconds := parse_duration(text)) is not None:
        return Distribution(seconds)
    found = _CALL.fullmatch(text)
    if found is None:
        return None
    kind, arguments = found[1], [argument.strip() for argument in found[2].split(",")]
    if len(arguments) != _ARGUMENTS[kind]:
        return None
    first = parse_duration(arguments[0])
    second = 0.0 if len(arguments) == 1 else _second(kind, arguments[1])
    if first is None or second is None or (kind == "uniform" and first > second):
        return None
    return Distribution(first, second, kind)


def _second(kind: str, text: str) -> float | None:
    if kind != "lognormal":
        return parse_duration(text)
    try:
        sigma = float(text)
    except ValueError:
        return None
    return sigma if 0 <= sigma < math.inf else None


def draw(seed: int, *words: object) -> float:
    """A number strictly between 0 and 1 that depends on the seed and the words alone."""
    text = "\0".join(map(str, (seed, *words))).encode()
    number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
    return (number + 0.5) / 2**64

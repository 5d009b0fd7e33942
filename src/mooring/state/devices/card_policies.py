"""Which cards of a node a pod gets, where several will do; and where on a card an instance is cut."""

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mooring.model.devices.cards import CardAsk
from mooring.model.devices.mig import Geometry
from mooring.state.devices.cards import USERS, Matrix

if TYPE_CHECKING:
    from mooring.state.devices.card_rows import CardRows

Preference: TypeAlias = NDArray[np.float64]
"""(rows, cards): the card with the highest is taken, of several the first."""
InstanceTable: TypeAlias = tuple[Matrix, Matrix, Matrix, Preference]
"""By geometry and the slices of a card that are taken: see `instance_table`."""


class CardPolicy:
    """Which cards of a node a pod gets."""

    def prefer(self, rows: "CardRows", ask: CardAsk, units: Matrix) -> Preference:
        """How good each card is; `units` says how many such shares it has room for."""
        raise NotImplementedError


class Binpack(CardPolicy):
    """The card with the least left, so that others stay whole."""

    def prefer(self, rows: "CardRows", ask: CardAsk, units: Matrix) -> Preference:
        return -rows.left()


class Spread(CardPolicy):
    """The card with the fewest on it, then with the most left."""

    def prefer(self, rows: "CardRows", ask: CardAsk, units: Matrix) -> Preference:
        preferred: Preference = rows.left() - 4.0 * rows.facts[USERS]
        return preferred


class TopologyAware(CardPolicy):
    """One card: that with the fewest links, so that linked ones stay together. Several are linked, if possible."""

    def prefer(self, rows: "CardRows", ask: CardAsk, units: Matrix) -> Preference:
        preferred: Preference = -4.0 * rows.linked(units > 0) - rows.left()
        return preferred


class FirstCard(CardPolicy):
    """The first card that fits."""

    def prefer(self, rows: "CardRows", ask: CardAsk, units: Matrix) -> Preference:
        return np.zeros(units.shape)


class RandomCard(CardPolicy):
    """Any card, drawn from how many are on the row's cards."""

    def prefer(self, rows: "CardRows", ask: CardAsk, units: Matrix) -> Preference:
        turns = rows.facts[USERS].sum(axis=1, keepdims=True) + 1
        places = rows.index[:, np.newaxis] * np.int64(rows.table.width) + np.arange(units.shape[1])
        drawn = drawn_numbers((places * 1009 + turns).astype(np.uint64), 0)
        return (drawn >> np.uint64(12)).astype(np.float64)


def drawn_numbers(places: NDArray[np.uint64], turn: int) -> NDArray[np.uint64]:
    """A number for each place and turn that looks drawn by lot."""
    mixed = places * np.uint64(0x9E3779B97F4A7C15) + np.uint64(turn * 0xBF58476D1CE4E5B9 % (1 << 64))
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0x94D049BB133111EB)
    found: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return found


BINPACK, SPREAD, TOPOLOGY_AWARE, FIRST, RANDOM = Binpack(), Spread(), TopologyAware(), FirstCard(), RandomCard()
CARD_POLICIES: dict[str, CardPolicy] = {"binpack": BINPACK, "spread": SPREAD, "topology-aware": TOPOLOGY_AWARE}
"""By the names that HAMi gives them."""


@lru_cache(maxsize=512)
def cost_levels(geometries: tuple[Geometry | None, ...], profile: str) -> Preference:
    """All that an instance of a profile may spoil, from little to much."""
    costs = instance_table(geometries, profile)[3]
    return np.unique(costs[np.isfinite(costs)])


@lru_cache(maxsize=512)
def instance_table(geometries: tuple[Geometry | None, ...], profile: str, is_first_fit: bool = False) -> InstanceTable:
    """By geometry and taken slices: how many instances fit, where the next begins, its slices, and what it spoils.

    By first fit it begins where it can, whatever that spoils.
    """
    counts, starts = np.zeros((len(geometries), 256), np.int64), np.full((len(geometries), 256), -1, np.int64)
    bits, costs = np.zeros((len(geometries), 256), np.int64), np.full((len(geometries), 256), np.inf)
    for code, geometry in enumerate(geometries):
        if geometry is None or profile not in geometry.by_name:
            continue
        slices = geometry.by_name[profile].slices
        for mask in range(1 << geometry.slices):
            best = geometry.best_start(profile, mask)
            if best is not None and is_first_fit:
                best = 0, next(start for start, taken in geometry.masks(profile) if not mask & taken)
            if best is not None:
                counts[code, mask] = sum(not mask & taken for _, taken in geometry.masks(profile))
                costs[code, mask], starts[code, mask] = best
                bits[code, mask] = ((1 << slices) - 1) << best[1]
    return counts, starts, bits, costs

"""The cards of some rows, as plugins see them: the one fit on cards, and which of them a pod gets.

Everything is answered for all rows at once, (rows, cards). `extra` pods of one shape may be supposed to run on each row
already, as in `NodeRows`: they are seated one after the other, just as they will be.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mooring.model.devices.cards import WHOLE, CardAsk, CardRequest, CardShare, Sharing
from mooring.state.devices.card_policies import (
    BINPACK,
    CARD_POLICIES,
    SPREAD,
    CardPolicy,
    FirstCard,
    InstanceTable,
    Preference,
    cost_levels,
    instance_table,
)
from mooring.state.devices.cards import (
    GEOMETRY,
    ISLAND,
    MASK,
    MEMORY,
    MEMORY_SIZE,
    MILLI,
    SIZES,
    SLOTS,
    USABLE,
    USERS,
    CardTable,
    Matrix,
    memory_of,
)

NOT_SERVED, NO_SUCH_CARD, TOO_LITTLE, TOO_MANY_REPLICAS = 1, 2, 3, 4
"""Why a row's cards will not do: it hands them out in another way; it has too few of the kinds wanted, or too few that
are healthy; too little of them is free; or more replicas are asked for than its device plugin gives to a pod."""
COUNTED, HAMI, REPLICAS = int(Sharing.COUNTED), int(Sharing.HAMI), int(Sharing.REPLICAS)
Asks: TypeAlias = tuple[CardAsk, ...]
MOST_UNITS = 1 << 20
FAR = 1e9
"""More than any preference: what is ahead by that comes first, whatever else there is."""


class CardRows:
    """The cards of some rows."""

    def __init__(
        self,
        table: CardTable,
        index: NDArray[np.intp],
        whole_free: NDArray[np.int64],
        policy: CardPolicy | None = None,
    ) -> None:
        """`whole_free`: of the GPUs that each row hands out by count, how many are left."""
        self.table = table
        self.index = index
        self.facts = table.facts.take(index, axis=1)
        self.sharing = table.sharing.take(index)
        self.policy = policy
        """Which cards are taken first, where neither the pod nor the node's kind says."""
        self._whole_free = whole_free
        self.cpu_left: NDArray[np.int64] | None = None
        """What is left of each row's CPU, in millis, once the pod is there that is to get cards; None: not known."""
        self.cpu_asked = 0
        """What that pod takes of it."""
        self._more_sizes: Matrix | None = None
        """Of pods that are supposed to be there."""
        self._kinds: list[int] = list(set(self.sharing.tolist()))
        self._parts: dict[int, tuple[NDArray[np.intp] | slice, CardRows]] = {}
        self._units: tuple[CardRequest, CardAsk, Matrix] | None = None

    def __len__(self) -> int:
        return len(self.index)

    def _of(self, positions: NDArray[np.intp]) -> "CardRows":
        """Some of these rows, as they are supposed to be."""
        part = CardRows.__new__(CardRows)
        part.table, part.index, part.policy = self.table, self.index[positions], self.policy
        part.facts, part.sharing = self.facts.take(positions, axis=1), self.sharing[positions]
        part._whole_free = self._whole_free[positions]
        part.cpu_left = None if self.cpu_left is None else self.cpu_left[positions]
        part.cpu_asked, part._more_sizes = self.cpu_asked, None
        part._kinds, part._parts, part._units = self._kinds if len(self._kinds) == 1 else part._kinds_there(), {}, None
        return part

    def _kinds_there(self) -> list[int]:
        return list(set(self.sharing.tolist()))

    def by_kind(self, request: CardRequest) -> Iterator[tuple[NDArray[np.intp] | slice, "CardRows", Asks | None]]:
        """The rows that hand out cards in the same way: where they are among these, themselves, and what is asked."""
        if len(self._kinds) == 1:
            yield slice(None), self, request.asks.get(self._kinds[0])
            return
        for kind in self._kinds:
            if kind not in self._parts:
                positions = np.flatnonzero(self.sharing == kind)
                self._parts[kind] = positions, self._of(positions)
            yield *self._parts[kind], request.asks.get(kind)

    # What fits.

    def units(self, request: CardRequest, ask: CardAsk) -> Matrix:
        """How many shares of this size each card has room for; not to be written to."""
        if self._units is None or self._units[0] is not request or self._units[1] is not ask:
            self._units = request, ask, self._count_units(request, ask)
        return self._units[2]

    def _count_units(self, request: CardRequest, ask: CardAsk) -> Matrix:
        facts = self.facts
        units = np.where(facts[USABLE] > 0, facts[SLOTS], 0)
        suiting = self.table.suiting(request)
        if suiting is not None:
            units *= suiting.take(self.index, axis=0)
        if ask.profile:
            starts = self._instances(ask.profile)
            np.minimum(units, starts, out=units)
            units[(facts[USERS] > 0) & (facts[MASK] == 0)] = 0  # somebody has it whole
        else:
            self._limit_by_amounts(units, ask)
        if COUNTED in self._kinds:
            # Of the cards that nobody shares, as many are free as are not handed out whole.
            unshared = (facts[USERS] == 0) & (self.sharing == COUNTED)[:, np.newaxis]
            units[unshared & (np.cumsum(unshared, axis=1) > self._whole_free[:, np.newaxis])] = 0
        return units

    def _limit_by_amounts(self, units: Matrix, ask: CardAsk) -> None:
        facts = self.facts
        if ask.is_exclusive:
            np.minimum(units, facts[USERS] == 0, out=units)
        elif ask.milli:
            np.minimum(units, np.maximum(facts[MILLI], 0) // ask.milli, out=units)
        else:
            units[facts[MILLI] <= 0] = 0
        if len(self.table.geometries) > 1:
            units[facts[MASK] != 0] = 0  # it is cut
        if ask.memory or ask.memory_milli:
            wanted = memory_of(ask, facts[MEMORY_SIZE])
            known = facts[MEMORY_SIZE] > 0
            room = np.maximum(facts[MEMORY], 0) // np.maximum(wanted, 1)
            # Of cards whose memory is not known, a share goes by compute alone, and MiB cannot be had.
            np.minimum(units, np.where(known, room, 0 if ask.memory else MOST_UNITS), out=units)

    def _instances(self, profile: str) -> Matrix:
        """How many instances of a profile can still be cut from each card."""
        table = self._table_of(profile)
        found: Matrix = table[0][self.facts[GEOMETRY], self.facts[MASK] & 255]
        return found

    def telling_apart(self, request: CardRequest) -> list[NDArray[np.int64]]:
        """What matters of rows' cards to a pod, as columns: rows that are equal in these take the same pods."""
        if not self.table.gives_to(request):
            return []
        suiting = self.table.suiting(request)
        facts = list(self.facts) if suiting is None else [*self.facts, suiting.take(self.index, axis=0)]
        return [self.sharing, *(column for fact in facts for column in fact.T)]

    def left(self) -> Preference:
        """How much is free of each card: of its compute and of its memory, each from 0 to 1."""
        facts = self.facts
        total: Preference = facts[MILLI] / WHOLE + facts[MEMORY] / np.maximum(facts[MEMORY_SIZE], 1)
        return total

    def models(self) -> list[str]:
        """The model of each row's cards."""
        found: list[str] = self.table.models.take(self.index).tolist()
        return found

    def pod_sizes(self) -> Matrix:
        """(rows, sizes): how many pods have a part of a card, one card, two cards and so on."""
        known = self.table.pod_sizes.take(self.index, axis=0)
        return known if self._more_sizes is None else known + self._more_sizes

    def linked(self, among: NDArray[np.bool_]) -> Matrix:
        """How many cards among these each card is linked to, itself included; 0 where nothing is known of links."""
        return linked(self.facts[ISLAND], among)

    def _table_of(self, profile: str) -> InstanceTable:
        return instance_table(tuple(self.table.geometries), profile, isinstance(self.policy, FirstCard))

    def refusals(self, request: CardRequest) -> NDArray[np.int64]:
        """Why each row's cards will not do; 0 where they will."""
        codes = np.zeros(len(self), np.int64)
        for positions, part, asks in self.by_kind(request):
            if asks is None:
                codes[positions] = NOT_SERVED
            elif asks:
                codes[positions] = part._refusals_of(request, asks)
        return codes

    def will_do(self, request: CardRequest) -> NDArray[np.bool_]:
        """Whether each row's cards will do: `refusals` without the reasons."""
        found = np.zeros(len(self), np.bool_)
        for positions, part, asks in self.by_kind(request):
            if asks is not None:
                found[positions] = part._will_do(request, asks) if asks else True
        return found

    def _will_do(self, request: CardRequest, asks: Asks) -> NDArray[np.bool_]:
        if len(asks) == 1 and self._kinds[0] != REPLICAS:
            return _holds(asks[0], self.units(request, asks[0]))
        found: NDArray[np.bool_] = self._refusals_of(request, asks) == 0
        return found

    def _refusals_of(self, request: CardRequest, asks: tuple[CardAsk, ...]) -> NDArray[np.int64]:
        ask = asks[0]
        units = self.units(request, ask)
        codes = np.where(_holds(ask, units), 0, TOO_LITTLE)
        if codes.any():
            codes[(codes > 0) & ~self._could_ever(request, asks)] = NO_SUCH_CARD
        if self._kinds[0] == REPLICAS:
            asked = sum(each.count for each in asks)
            codes[asked > self.table.most_replicas[self.index]] = TOO_MANY_REPLICAS
        rest = asks[1:]
        if rest:
            left = np.flatnonzero(codes == 0)
            if len(left):
                after = self._of(left)
                after.seat(request, ask)
                codes[left] = after._refusals_of(request, rest)
        return codes

    def _could_ever(self, request: CardRequest, asks: tuple[CardAsk, ...]) -> NDArray[np.bool_]:
        """Whether each row's cards would do if nobody were on them."""
        facts = self.facts
        fits = facts[USABLE] > 0
        suiting = self.table.suiting(request)
        if suiting is not None:
            fits = fits & (suiting.take(self.index, axis=0) > 0)
        held = np.ones(len(self), np.bool_)
        for ask in asks:
            can = fits
            if ask.profile:
                table = self._table_of(ask.profile)
                can = can & (table[0][facts[GEOMETRY], 0] > 0)
            elif ask.memory:
                can = can & (facts[MEMORY_SIZE] >= ask.memory)
            held &= can.sum(axis=1) >= (ask.count if ask.is_distinct else 1)
        return held

    def room(self, request: CardRequest, most: int) -> NDArray[np.int64]:
        """How many such pods each row's cards take, one after the other; `most` where cards have no say."""
        counts = np.zeros(len(self), np.int64)
        for positions, part, asks in self.by_kind(request):
            if asks is not None:
                counts[positions] = part._room_of(request, asks) if asks else most
        return counts

    def _room_of(self, request: CardRequest, asks: tuple[CardAsk, ...]) -> NDArray[np.int64]:
        ask = asks[0]
        if len(asks) == 1 and (ask.count == 1 or ask.is_exclusive or not ask.is_distinct):
            counts: NDArray[np.int64] = self.units(request, ask).sum(axis=1) // ask.count
            counts[self._refusals_of(request, asks) != 0] = 0
            return counts
        counts = np.zeros(len(self), np.int64)
        left, rows = np.arange(len(self)), self._of(np.arange(len(self)))
        while len(left):
            is_open = np.flatnonzero(rows._refusals_of(request, asks) == 0)
            left, rows = left[is_open], rows._of(is_open)
            counts[left] += 1
            for each in asks:
                if len(left):
                    rows.seat(request, each)
        return counts

    def fullness(self, request: CardRequest) -> NDArray[np.int64]:
        """From 0 to 100: half for how much of the usable cards is taken, half if shared ones will do for this pod."""
        facts = self.facts
        usable = facts[USABLE] > 0
        size = usable.sum(axis=1) + (usable & (facts[MEMORY_SIZE] > 0)).sum(axis=1)
        free = np.where(usable & (facts[MASK] == 0), np.maximum(self.left(), 0.0), 0.0).sum(axis=1)
        taken = 50.0 * (1.0 - free / np.maximum(size, 1))
        is_shared = np.zeros(len(self), np.bool_)
        for positions, part, asks in self.by_kind(request):
            if asks:
                is_shared[positions] = _holds(asks[0], np.where(part.facts[USERS] > 0, part.units(request, asks[0]), 0))
        found: NDArray[np.int64] = np.clip(taken, 0, 50).astype(np.int64) + 50 * is_shared
        for positions, part, asks in self.by_kind(request):
            if asks and asks[0].profile:
                found[positions] = part._unspoiled(request, asks[0])
        return found

    def _unspoiled(self, request: CardRequest, ask: CardAsk) -> NDArray[np.int64]:
        """100 where an instance spoils as little as it can anywhere, one less for each way that spoils more."""
        geometries = tuple(self.table.geometries)
        costs = np.where(self.units(request, ask) > 0, -self.preference(request, ask, self.facts[MASK]), np.inf)
        ranks: NDArray[np.int64] = np.searchsorted(cost_levels(geometries, ask.profile), costs.min(axis=1))
        return np.maximum(100 - ranks, 0)

    # Who gets what.

    def choose(self, request: CardRequest) -> tuple[CardShare, ...] | None:
        """What a pod gets on the only one of these rows; None if it does not fit."""
        asks = request.asks.get(self._kinds[0], ())
        if len(asks) == 1 and (asks[0].is_distinct or asks[0].count == 1) and self._kinds[0] != REPLICAS:
            # What nearly every pod asks for, without following what becomes of the row.
            units = self.units(request, asks[0])
            return (
                tuple(self._shares(asks[0], self._pick(request, asks[0], units))) if _holds(asks[0], units)[0] else None
            )
        if asks and self._refusals_of(request, asks)[0]:
            return None
        return tuple(share for ask in asks for share in self.seat(request, ask))

    def move(
        self, shares: Sequence[CardShare], sign: int, bits_of: Callable[[CardShare], int] = lambda share: 0
    ) -> None:
        """Suppose that somebody with such shares were on the only one of these rows (sign 1), or gone (sign -1)."""
        facts = self.facts
        for share in shares:
            was_used = facts[USERS, 0, share.card] > 0
            facts[MILLI, 0, share.card] -= sign * share.milli
            facts[MEMORY, 0, share.card] -= sign * share.memory
            facts[USERS, 0, share.card] += sign
            facts[SLOTS, 0, share.card] -= sign
            mask, bits = facts[MASK, 0, share.card], bits_of(share)
            facts[MASK, 0, share.card] = mask | bits if sign > 0 else mask & ~bits
            is_used = facts[USERS, 0, share.card] > 0
            self._whole_free = self._whole_free + (int(was_used) - int(is_used))
        self._units = None

    def force(self, request: CardRequest) -> tuple[CardShare, ...]:
        """What a pod gets that runs on the only one of these rows, though it does not fit: of what is used least."""
        asks = request.asks.get(self._kinds[0], ())
        shares = list[CardShare]()
        present = len(self.table.cards(int(self.index[0])).cards)
        for ask in asks:
            wanted = min(ask.count if ask.is_distinct else 1, present)
            cards = np.argsort(-self.left()[0, :present], kind="stable")[:wanted]
            if wanted and not ask.profile:
                shares += self._give(ask, cards[np.newaxis, :])
        return tuple(shares)

    def suppose(self, request: CardRequest, extra: NDArray[np.int64]) -> None:
        """Let so many more such pods be on each row, whether or not there is room for them."""
        self._more_sizes = sizes = np.zeros((len(self), SIZES), np.int64)
        for step in range(int(extra.max(initial=0))):
            for kind in self._kinds:
                asks = request.asks.get(kind) or ()
                waiting = np.flatnonzero((self.sharing == kind) & (extra > step)) if asks else np.zeros(0, np.intp)
                if not len(waiting):
                    continue
                fits = self._of(waiting)._refusals_of(request, asks) == 0
                seated = self._let_in(request, asks, waiting[fits])
                seated += [row for at in waiting[~fits].tolist() for row in self._let_in(request, (), np.array([at]))]
                is_part = any(ask.milli < WHOLE for ask in asks)
                sizes[seated, 0 if is_part else min(sum(ask.count for ask in asks), SIZES - 1)] += 1
        self._parts, self._units = {}, None

    def _let_in(self, request: CardRequest, asks: Asks, positions: NDArray[np.intp]) -> list[int]:
        """Let one more pod be on each of some rows; without asks on one row, where it does not fit. Who got cards."""
        if not len(positions):
            return []
        part = self._of(positions)
        before = part.facts[USERS].sum()
        for ask in asks:
            part.seat(request, ask)
        if not asks:
            part.force(request)
        self.facts[:, positions] = part.facts
        self._whole_free[positions] = part._whole_free
        return positions.tolist() if part.facts[USERS].sum() > before else []

    def seat(self, request: CardRequest, ask: CardAsk) -> list[CardShare]:
        """Let every one of these rows' cards take what an ask needs; the shares of the first row."""
        shares = list[CardShare]()
        for _ in range(1 if ask.is_distinct else ask.count):
            shares += self._seat(request, ask)
        return shares

    def _seat(self, request: CardRequest, ask: CardAsk) -> list[CardShare]:
        return self._give(ask, self._pick(request, ask, self.units(request, ask)))

    def _pick(self, request: CardRequest, ask: CardAsk, units: Matrix) -> NDArray[np.intp]:
        """(rows, shares): the cards that each row's pod gets."""
        preference = np.where(units > 0, self.preference(request, ask, units), -np.inf)
        if not ask.is_distinct or ask.count == 1:
            best: NDArray[np.intp] = preference.argmax(axis=1)[:, np.newaxis]
            return best
        preference = _linked_first(preference, self.facts[ISLAND], ask.count)
        return np.argsort(-preference, axis=1, kind="stable")[:, : ask.count]

    def _give(self, ask: CardAsk, cards: NDArray[np.intp]) -> list[CardShare]:
        """Let each row's pod have shares of these cards, (rows, shares)."""
        shares = self._shares(ask, cards)
        facts = self.facts
        rows = np.arange(len(self))[:, np.newaxis]
        self._whole_free = self._whole_free - (facts[USERS][rows, cards] == 0).sum(axis=1)
        if ask.profile:
            table = self._table_of(ask.profile)
            facts[MASK][rows, cards] |= table[2][facts[GEOMETRY][rows, cards], facts[MASK][rows, cards] & 255]
        self._parts, self._units = {}, None
        facts[MILLI][rows, cards] -= ask.milli
        facts[MEMORY][rows, cards] -= memory_of(ask, facts[MEMORY_SIZE][rows, cards])
        facts[USERS][rows, cards] += 1
        facts[SLOTS][rows, cards] -= 1
        return shares

    def _shares(self, ask: CardAsk, cards: NDArray[np.intp]) -> list[CardShare]:
        """What the first row's pod gets of its cards."""
        facts, shares = self.facts, list[CardShare]()
        for card in cards[0].tolist():
            memory = ask.memory or ask.memory_milli * int(facts[MEMORY_SIZE, 0, card]) // WHOLE
            start = -1
            if ask.profile:
                table = self._table_of(ask.profile)
                start = int(table[1][facts[GEOMETRY, 0, card], facts[MASK, 0, card] & 255])
            shares.append(CardShare(card, ask.milli, memory, ask.container, ask.profile, start))
        return shares

    def preference(self, request: CardRequest, ask: CardAsk, units: Matrix) -> Preference:
        """Which cards to take first."""
        if ask.profile:
            table = self._table_of(ask.profile)
            spoiled: Preference = -table[3][self.facts[GEOMETRY], self.facts[MASK] & 255]
            return spoiled
        asked = next((CARD_POLICIES[name] for name in request.card_policy.split(",") if name in CARD_POLICIES), None)
        kind = self._kinds[0]
        spreads = kind == REPLICAS or (kind == HAMI and request.dialect != "kai")
        return (asked or self.policy or (SPREAD if spreads else BINPACK)).prefer(self, ask, units)


def _holds(ask: CardAsk, units: Matrix) -> NDArray[np.bool_]:
    """Whether each row's cards have room for an ask."""
    if ask.is_distinct:
        # By the ufunc itself: it is asked about a few rows, very often, and what stands around it takes longer.
        enough: NDArray[np.bool_] = np.add.reduce(units > 0, axis=1) >= ask.count
    else:
        enough = np.add.reduce(units, axis=1) >= ask.count
    return enough


def linked(island: Matrix, among: NDArray[np.bool_]) -> Matrix:
    together = (island[:, :, np.newaxis] == island[:, np.newaxis, :]) & (island >= 0)[:, :, np.newaxis]
    found: Matrix = (together & among[:, np.newaxis, :]).sum(axis=2)
    return found


def _linked_first(preference: Preference, island: Matrix, count: int) -> Preference:
    """Prefer cards of one island that has enough of them, the smallest such, so that larger ones stay whole."""
    fits = preference > -np.inf
    mates = linked(island, fits)
    is_enough = fits & (mates >= count)
    if not is_enough.any():
        return preference
    size = np.where(is_enough, mates, 1 << 20)
    smallest = size.min(axis=1, keepdims=True)
    first = np.where(size == smallest, island, 1 << 20).min(axis=1, keepdims=True)
    is_chosen = is_enough & (size == smallest) & (island == first)
    return np.where(is_chosen, preference + FAR, preference)

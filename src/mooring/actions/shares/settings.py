"""How shares are to be decided."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mooring.errors import ConfigError

if TYPE_CHECKING:
    from mooring.actions.shares.division import Division


@dataclass(frozen=True, slots=True)
class ShareSettings:
    """Settings of one `Sharing`."""

    division: "Division"
    """Where deserved shares come from."""
    stays_within_deserved: bool = True
    """With shares by weight: whether a queue stops at what it deserves, even while others leave their share unused."""
    keeps_guarantees: bool = False
    """Whether all queues together leave what others are guaranteed; Volcano limits each of them alone."""
    moves_parent_shares: bool = False
    """Whether shares of queues above others move with every turn; Volcano's are those of the cycle's start."""
    is_hierarchical: bool = False
    """Whether hierarchical dominant shares decide which queue comes first, and who gives back."""
    resource_weights: Mapping[str, float] = field(default_factory=dict)
    """What resources count for in dominant shares; 1 if not named."""
    enqueues: bool = True
    """Whether jobs that say what they need at least (minResources) are let in only as far as there will be room."""
    overcommit_factor: float | None = None
    """How many times what the cluster has such jobs are let in for, in all; None: their queues alone limit that."""
    backfills: bool = True
    """Whether pods that ask for nothing are placed whatever their queue deserves."""
    reclaims: bool = True
    """Whether queues that starve within their share take back what others hold beyond theirs."""
    preempts: bool = False
    """Whether a job for which there is no room takes that of less important jobs of its own queue."""
    takes_for_spares: bool = True
    """Whether others also give way to members that a gang can do without; in Volcano such a gang does not starve."""
    preempts_like_others: bool = False
    """Whether whoever found no node may evict by priority whoever is there, as pods of no queue may."""
    orders_jobs_by_priority: bool = True
    orders_jobs_by_share: bool = True
    """Whether of a queue's jobs with equal priority the one with the smaller dominant share comes first."""
    half_life_seconds: float | None = None
    """With shares by weight: after how long past use counts half; None: the past does not count."""
    k_value: float = 1.0
    """How much past use counts against the weights; 0: not at all."""
    minimum_runtime_seconds: float = 0.0
    """How long a job runs before anything can be reclaimed from it, where its queue does not say."""
    preempt_runtime_seconds: float = 0.0
    """The same before a more important job of its own queue takes its place, where that is so."""

    def __post_init__(self) -> None:
        if self.is_hierarchical and self.division.is_by_weight:
            expected = "division by capacity, as shares by weight have an order of their own"
            self._refuse("is_hierarchical", expected, self.division.name)
        for name, weight in self.resource_weights.items():
            if not 0 <= weight < float("inf"):
                self._refuse(f"resource_weights.{name}", "a number of at least 0", str(weight))
        if self.half_life_seconds is not None and not self.half_life_seconds > 0:
            self._refuse("half_life_seconds", "a number above 0", str(self.half_life_seconds))
        for field_name in ("k_value", "minimum_runtime_seconds"):
            value = getattr(self, field_name)
            if not 0 <= value < float("inf"):
                self._refuse(field_name, "a number of at least 0", str(value))

    def _refuse(self, name: str, expected: str, found: str) -> None:
        raise ConfigError("share settings", name, expected=expected, found=found)

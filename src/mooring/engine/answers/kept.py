"""The answers kept for shapes, those used least recently given up when there are too many."""

from mooring.engine.answers.answers import ShapeAnswers
from mooring.engine.answers.settled import SettledCache
from mooring.engine.profile import Profile
from mooring.state.cluster import Cluster
from mooring.state.shapes import Shape

MOST_BYTES = 256 * 1024 * 1024
"""Enough for some thousand shapes on 10,000 nodes; more shapes than that are asked about anew, which is only slower."""


class KeptAnswers:
    """Answers by profile and shape, within a budget of memory."""

    def __init__(self, most_bytes: int = MOST_BYTES, *, is_supposed: bool = False) -> None:
        self._most_bytes = most_bytes
        self._is_supposed = is_supposed
        self._supposed: KeptAnswers | None = None
        """About rows that are opened or closed in a trial, until it ends."""
        self._settled = SettledCache()
        self._known: dict[tuple[str, int], ShapeAnswers] = {}
        self._sizes: dict[tuple[str, int], int] = {}
        self._total = 0
        self._epoch = 0
        self.hits = self.misses = 0
        """How often answers that were kept would do, and how often they had to be asked for anew."""

    def fresh(self, profile: Profile, cluster: Cluster, shape: Shape) -> ShapeAnswers:
        """A shape's answers, up to date. Where rows are open that no node has, those for the nodes stay as they are."""
        if not cluster.series:
            self._supposed = None
        elif not self._is_supposed:
            self._supposed = self._supposed or KeptAnswers(self._most_bytes, is_supposed=True)
            return self._supposed.fresh(profile, cluster, shape)
        key = (profile.name, shape.id)
        if self._epoch != cluster.shapes.epoch:
            self._forget_the_dead(cluster)
        answers = self._known.pop(key, None)
        if answers is None or answers.cluster is not cluster or answers.shape is not shape:
            answers = ShapeAnswers(profile, cluster, shape, self._settled)
        self._known[key] = answers  # the last in the dictionary is the one used last
        if answers.refresh():
            self.misses += 1
            self._account(key, answers.size_bytes)
        else:
            self.hits += 1
        return answers

    def get(self, profile: Profile, shape: Shape) -> ShapeAnswers | None:
        """A shape's answers as they were left, if they are kept."""
        supposed = None if self._supposed is None else self._supposed.get(profile, shape)
        if supposed is not None and supposed.cluster.series:
            return supposed
        answers = self._known.get((profile.name, shape.id))
        return answers if answers is not None and answers.shape is shape else None

    def _forget_the_dead(self, cluster: Cluster) -> None:
        """Some shapes are forgotten: so are their answers."""
        self._epoch = cluster.shapes.epoch
        shapes = cluster.shapes.all
        dead = [key for key, answers in self._known.items() if answers.shape is not shapes[key[1]]]
        for key in dead:
            del self._known[key]
            self._total -= self._sizes.pop(key, 0)

    def _account(self, key: tuple[str, int], size: int) -> None:
        self._total += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        while self._total > self._most_bytes and len(self._known) > 1:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._total -= self._sizes.pop(oldest)

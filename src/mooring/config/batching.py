"""How many equal pods are placed together.

Batches change no decision: pods placed together get the nodes that they would have got one by one. They decide only
how long a pod that arrives meanwhile may have to wait for the batch before it.
"""

from collections.abc import Iterator

import msgspec

MODES = ("Adaptive", "Fixed", "Time", "PriorityClass")


class BatchingArgs(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of `Batching` in a profile's pluginConfig."""

    mode: str = "Adaptive"
    size: int = 1024
    """Fixed: pods a batch. PriorityClass: pods a batch of classes that are not listed."""
    milliseconds: int = 50
    """Time: a batch ends after so long."""
    sizes: dict[str, int] = {}
    """PriorityClass: pods a batch, by the name of the class."""

    def validate(self) -> Iterator[tuple[str, str, str]]:
        if self.mode not in MODES:
            yield "mode", f"one of {', '.join(MODES)}", f'"{self.mode}"'
        if self.size < 1:
            yield "size", "a whole number above 0", str(self.size)
        if self.milliseconds < 1:
            yield "milliseconds", "a whole number above 0", str(self.milliseconds)
        for name, size in self.sizes.items():
            if size < 1:
                yield f"sizes.{name}", "a whole number above 0", str(size)


SMALLEST_BATCH = 64
LARGEST_BATCH = 8192
"""A batch of this size takes about a tenth of a second: longer, and an urgent pod would notice."""


def batch_limit(args: BatchingArgs, priority_class: str, waiting: int) -> int:
    """How many pods the next batch may have, given how many wait."""
    match args.mode:
        case "Fixed":
            return args.size
        case "PriorityClass":
            return args.sizes.get(priority_class, args.size)
        case "Time":
            return LARGEST_BATCH
        case _:
            # A long backlog wants throughput; a short one wants its next arrival seen soon.
            return max(SMALLEST_BATCH, min(LARGEST_BATCH, waiting // 4))

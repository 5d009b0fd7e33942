"""YuniKorn's fair order: queues by what they hold of their guarantee, applications by what they hold of everything.

A queue's share is the highest part, over the resources that it holds, of what it is guaranteed; of a resource without
guarantee, of the most that it may have. An application has a share of every resource, and where the largest of two are
equal, the next largest decide, and so on.
"""

from collections.abc import Mapping

Amounts = Mapping[str, float]


def queue_share(allocated: Amounts, guaranteed: Amounts, fair_max: Amounts) -> float:
    """What a queue is ordered by: the smaller comes first."""
    highest = 0.0
    for name, held in allocated.items():
        denominator = guaranteed.get(name)
        if denominator is None:
            denominator = fair_max.get(name)
        if denominator is None or held < 0:
            continue
        share = held / denominator if denominator > 0 else float(held > 0)
        highest = max(highest, share)
    return highest


def application_key(allocated: Amounts, total: Amounts) -> tuple[float, ...]:
    """What an application is ordered by: the smaller comes first.

    >>> application_key({"vcore": 4, "memory": 2}, {"vcore": 8, "memory": 8})
    (0.5, 0.25)
    """
    shares = (held / total[name] if total.get(name) else held for name, held in allocated.items() if held)
    return tuple(sorted(shares, reverse=True))

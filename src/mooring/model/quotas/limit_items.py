"""One item of a LimitRange, with its defaults: what it gives to those who say nothing, and what it asks of all."""

from collections.abc import Iterator
from dataclasses import dataclass

from mooring.model.quotas.amounts import Amount, Amounts, read_amounts
from mooring.model.quotas.objects import CONTAINER, LimitRangeItem


@dataclass(frozen=True, slots=True)
class LimitItem:
    """Bounds by resource name; of containers also what those get that leave something out."""

    type: str
    min: Amounts
    max: Amounts
    ratio: Amounts
    """The most by which a limit may exceed its request."""
    default_limits: Amounts
    default_requests: Amounts

    def faults(self, requests: Amounts, limits: Amounts) -> Iterator[str]:
        """Say in which ways some requests and limits are out of bounds, bound by bound, by resource name."""
        for name, bound in sorted(self.min.items()):
            yield from self._below(name, bound, requests.get(name), limits.get(name))
        for name, bound in sorted(self.max.items()):
            yield from self._above(name, bound, requests.get(name), limits.get(name))
        for name, bound in sorted(self.ratio.items()):
            yield from self._apart(name, bound, requests.get(name), limits.get(name))

    def faults_of_requests(self, requests: Amounts) -> Iterator[str]:
        """The same for what has no limits of its own: a claim."""
        for name, bound in sorted(self.min.items()):
            yield from self._below(name, bound, requests.get(name), None)
        for name, bound in sorted(self.max.items()):
            request = requests.get(name)
            start = f"maximum {name} usage per {self.type} is {bound}"
            if request is None:
                yield f"{start}.  No request is specified"
            elif request.nanos > bound.nanos:
                yield f"{start}, but request is {request}"

    def _below(self, name: str, bound: Amount, request: Amount | None, limit: Amount | None) -> Iterator[str]:
        start = f"minimum {name} usage per {self.type} is {bound}"
        if request is None:
            yield f"{start}.  No request is specified"
        elif request.nanos < bound.nanos:
            yield f"{start}, but request is {request}"
        elif limit is not None and limit.nanos < bound.nanos:
            yield f"{start}, but limit is {limit}"

    def _above(self, name: str, bound: Amount, request: Amount | None, limit: Amount | None) -> Iterator[str]:
        start = f"maximum {name} usage per {self.type} is {bound}"
        if limit is None:
            yield f"{start}.  No limit is specified"
        elif limit.nanos > bound.nanos:
            yield f"{start}, but limit is {limit}"
        elif request is not None and request.nanos > bound.nanos:
            yield f"{start}, but request is {request}"

    def _apart(self, name: str, bound: Amount, request: Amount | None, limit: Amount | None) -> Iterator[str]:
        start = f"{name} max limit to request ratio per {self.type} is {bound}"
        if request is None or not request.nanos:
            yield f"{start}, but no request is specified or request is 0"
        elif limit is None or not limit.nanos:
            yield f"{start}, but no limit is specified or limit is 0"
        else:
            # A quotient of floats, because that is what the API server compares and prints.
            ratio = limit.millis / request.millis
            if ratio * 1000 > bound.millis:
                yield f"{start}, but provided ratio is {ratio:f}"


def read_item(item: LimitRangeItem) -> LimitItem:
    """Read an item with the API's defaults: limits from the maximum, requests from the limit or else the minimum."""
    minimum, maximum = read_amounts(item.min), read_amounts(item.max)
    limits, requests = read_amounts(item.default), read_amounts(item.default_request)
    if item.type == CONTAINER:
        limits = {**maximum, **limits}
        requests = {**minimum, **limits, **requests}
    return LimitItem(item.type, minimum, maximum, read_amounts(item.max_limit_request_ratio), limits, requests)

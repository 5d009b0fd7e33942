"""What the dialects have in common: whole amounts by container, and lists of names in annotations."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from mooring.model.api.pods import Container, Pod
from mooring.model.devices.cards import CardAsk
from mooring.model.values.quantity import QuantityError, parse_quantity, to_units

Asked = dict[str, int]
"""What a container requests, in whole units, of resources with a domain: nothing else is of interest here."""


class BadShare(ValueError):
    """A share that cannot be: the annotation or resource, what is expected of it, and what is there."""

    def __init__(self, key: str, expected: str, found: str) -> None:
        super().__init__(key, expected, found)
        self.key, self.expected, self.found = key, expected, found


def amounts_by_container(pod: Pod) -> list[Asked]:
    """What each container asks for; init containers are gone before the others, and count if those ask nothing."""
    spec = pod.spec
    found = [_amounts(container) for container in spec.containers]
    found += [_amounts(c) for c in spec.init_containers or () if c.restart_policy == "Always"]
    if not any(found):
        found = [_amounts(container) for container in spec.init_containers or ()]
    return found


def _amounts(container: Container) -> Asked:
    resources = container.resources
    if resources is None:
        return {}
    found: Asked = {}
    for name, text in {**(resources.limits or {}), **(resources.requests or {})}.items():
        if "/" in name:
            try:
                amount = to_units(parse_quantity(text))
            except QuantityError:
                continue  # loading has said so
            if amount > 0:
                found[name] = amount
    return found


def counts_of(containers: Sequence[Asked], ask: Callable[[Asked], CardAsk | None]) -> tuple[CardAsk, ...]:
    """What each container that asks for cards asks for."""
    found = [(at, asked) for at, amounts in enumerate(containers) if (asked := ask(amounts)) is not None]
    return tuple(replace(asked, container=at) for at, asked in found)


def names_in(text: str) -> tuple[str, ...]:
    """Names in a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())

"""Checks of Volcano's queues, like the webhook that guards them: each on its own, then the tree of all of them.

What a queue may hold is asked for three times: guarantee <= deserved <= capability, for every resource that both sides
name. In the tree, children's guarantees and deserved shares must fit into their parent's, and no child's capability
may exceed that of the nearest ancestor that has one. Children's capabilities may add up to more than the parent's:
they are limits, and siblings rarely reach them at the same time. The root is above such sums.
"""

from collections.abc import Callable, Iterable, Mapping

from mooring.model.api.meta import Resources
from mooring.model.api.volcano_queue import (
    CLOSED,
    CLOSING,
    DEFAULT_QUEUE,
    HIERARCHY,
    HIERARCHY_WEIGHTS,
    OPEN,
    ROOT,
    UNKNOWN,
    Queue,
    queue_named_default,
)
from mooring.model.places import Place, show
from mooring.model.validation.kueue import LARGEST_AMOUNT
from mooring.model.validation.terms import Subject, check_choice, check_resources
from mooring.model.values.quantity import parse_quantity, to_units

LARGEST_WEIGHT = 2**31 - 1

Placed = Mapping[str, tuple[Queue, Place]]
"""Queues by name, with their places."""


def validate_queue(queue: Queue, place: Place) -> None:
    """Raise ManifestError for the first thing that is wrong with a queue as such."""
    subject = Subject(queue, place)
    spec = queue.spec
    if not queue.metadata.name and not queue.metadata.generate_name:
        subject.refuse("metadata.name", expected="a name", found="none")
    if spec.weight is not None and not 0 <= spec.weight <= LARGEST_WEIGHT:
        subject.refuse("spec.weight", expected=f"a number from 1 to {LARGEST_WEIGHT}", found=show(spec.weight))
    for path, amounts in (
        ("spec.capability", spec.capability),
        ("spec.deserved", spec.deserved),
        ("spec.guarantee.resource", queue.guaranteed),
    ):
        _check_amounts(subject, path, amounts or {})
    _check_order(subject, "spec.deserved", spec.deserved, "capability", spec.capability)
    _check_order(subject, "spec.guarantee.resource", queue.guaranteed, "deserved share", spec.deserved)
    _check_order(subject, "spec.guarantee.resource", queue.guaranteed, "capability", spec.capability)
    if queue.status.state:
        check_choice(subject, "status.state", queue.status.state, (OPEN, CLOSED, CLOSING, UNKNOWN))
    _check_parent(subject, queue)
    _check_hierarchy(subject, queue)


def _check_amounts(subject: Subject, path: str, amounts: Resources) -> None:
    check_resources(subject, path, amounts)
    for name, text in amounts.items():
        if to_units(parse_quantity(text)) > LARGEST_AMOUNT:
            subject.refuse(f"{path}.{name}", expected="a quantity of at most 1Ei", found=show(text))


def _check_order(subject: Subject, path: str, amounts: Resources | None, limit: str, limits: Resources | None) -> None:
    for name, text in (amounts or {}).items():
        at_most = (limits or {}).get(name)
        if at_most is not None and parse_quantity(text) > parse_quantity(at_most):
            subject.refuse(f"{path}.{name}", expected=f"at most the queue's {limit} ({at_most})", found=show(text))


def _check_parent(subject: Subject, queue: Queue) -> None:
    parent = queue.spec.parent
    if parent and queue.is_root:
        subject.refuse("spec.parent", expected="none, as this is the root", found=show(parent))
    if parent and parent == queue.metadata.name:
        subject.refuse("spec.parent", expected="another queue", found=show(parent))


def _check_hierarchy(subject: Subject, queue: Queue) -> None:
    path, weights = queue.annotation(HIERARCHY), queue.annotation(HIERARCHY_WEIGHTS)
    if not path and not weights:
        return
    field = f"metadata.annotations.{HIERARCHY}"
    names, numbers = path.split("/"), weights.split("/")
    if not path or not all(names):
        subject.refuse(field, expected="names separated by single slashes, as in root/team/queue", found=show(path))
    if len(set(names)) < len(names):
        subject.refuse(field, expected="each name once", found=show(path))
    field = f"metadata.annotations.{HIERARCHY_WEIGHTS}"
    for number in numbers:
        if not _is_weight(number):
            subject.refuse(field, expected="numbers above 0, separated by slashes", found=show(weights))
    if len(names) != len(numbers):
        expected = f"one weight for each of the {len(names)} names in {HIERARCHY}"
        subject.refuse(field, expected=expected, found=show(weights))


def _is_weight(text: str) -> bool:
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False


def validate_queue_tree(queues: Iterable[tuple[Queue, Place]]) -> None:
    """Raise ManifestError for the first contradiction between queues, each of which is right as such."""
    placed: dict[str, tuple[Queue, Place]] = {}
    for queue, place in queues:
        if queue.metadata.name in placed:
            expected = f"a name of its own (another stands at {placed[queue.metadata.name][1]})"
            raise place.error("metadata.name", expected=expected, found=show(queue.metadata.name), subject=queue)
        placed[queue.metadata.name] = (queue, place)
    if not placed:
        return
    if DEFAULT_QUEUE not in placed:  # it may be the parent of others
        placed[DEFAULT_QUEUE] = (queue_named_default(), place)
    _refuse_unknown_parents(placed)
    _refuse_cycles(placed)
    for name in placed:
        _check_capability(placed, name)
    for field, pick in _SUMS.items():
        _check_sums(placed, field, pick)
    _check_hierarchies(placed)


def _refuse_unknown_parents(placed: Placed) -> None:
    for queue, place in placed.values():
        parent = queue.spec.parent
        if parent and parent != ROOT and parent not in placed:
            raise place.error("spec.parent", expected="the name of a queue", found=show(parent), subject=queue)


def _parent_of(placed: Placed, name: str) -> str:
    """The name of a queue's parent; empty right below the root, and for the root."""
    parent = placed[name][0].spec.parent
    return "" if parent == ROOT else parent


def _refuse_cycles(placed: Placed) -> None:
    ended: set[str] = set()
    for start in sorted(placed):
        chain: list[str] = []
        name = start
        while name and name not in ended and name not in chain:
            chain.append(name)
            name = _parent_of(placed, name)
        if name in chain:
            cycle = chain[chain.index(name) :]
            queue, place = placed[name]
            way = " -> ".join([*cycle, name])
            expected = "a queue that is not below this one"
            raise place.error("spec.parent", expected=expected, found=f"a cycle, {way}", subject=queue)
        ended.update(chain)


def _check_capability(placed: Placed, name: str) -> None:
    queue, place = placed[name]
    for resource, text in (queue.spec.capability or {}).items():
        above = _parent_of(placed, name)
        while above and resource not in (placed[above][0].spec.capability or {}):
            above = _parent_of(placed, above)
        if not above:
            continue
        limit = (placed[above][0].spec.capability or {})[resource]
        if parse_quantity(text) > parse_quantity(limit):
            expected = f"at most the capability of queue {above} above it ({limit})"
            raise place.error(f"spec.capability.{resource}", expected=expected, found=show(text), subject=queue)


_SUMS: dict[str, Callable[[Queue], Resources]] = {
    "spec.guarantee.resource": lambda queue: queue.guaranteed,
    "spec.deserved": lambda queue: queue.spec.deserved or {},
}


def _check_sums(placed: Placed, field: str, pick: Callable[[Queue], Resources]) -> None:
    children: dict[str, list[str]] = {}
    for name in placed:
        children.setdefault(_parent_of(placed, name), []).append(name)
    for parent, names in children.items():
        if not parent:
            continue
        above = pick(placed[parent][0])
        sums: dict[str, int] = {}
        for name in names:
            queue, place = placed[name]
            for resource, text in pick(queue).items():
                limit = above.get(resource)
                if limit is None:  # a parent that names nothing has what its children have
                    continue
                sums[resource] = sums.get(resource, 0) + parse_quantity(text)
                if sums[resource] > parse_quantity(limit):
                    expected = f"no more than what its siblings leave of the {limit} of queue {parent} above them"
                    raise place.error(f"{field}.{resource}", expected=expected, found=show(text), subject=queue)


def _check_hierarchies(placed: Placed) -> None:
    """Queues are leaves of the annotated hierarchy, and all agree on the weights of what they share."""
    weight_of: dict[str, tuple[float, str]] = {}
    ends_at: dict[str, str] = {}
    for name, (queue, place) in placed.items():
        path = queue.annotation(HIERARCHY)
        if not path:
            continue
        names, numbers = path.split("/"), queue.annotation(HIERARCHY_WEIGHTS).split("/")
        if names[0] != ROOT:
            names, numbers = [ROOT, *names], ["1", *numbers]
        ends_at["/".join(names)] = name
        for depth in range(2, len(names) + 1):
            prefix, weight = "/".join(names[:depth]), float(numbers[depth - 1])
            known, owner = weight_of.setdefault(prefix, (weight, name))
            if known != weight:
                expected = f"for {prefix} the weight that queue {owner} gives it ({known:g})"
                field = f"metadata.annotations.{HIERARCHY_WEIGHTS}"
                raise place.error(field, expected=expected, found=f"{weight:g}", subject=queue)
    for path, longer in ends_at.items():
        names = path.split("/")
        for depth in range(1, len(names)):
            prefix = "/".join(names[:depth])
            if prefix in ends_at:
                queue, place = placed[ends_at[prefix]]
                field, expected = f"metadata.annotations.{HIERARCHY}", f"a path that does not lead to queue {longer}"
                raise place.error(field, expected=expected, found=show(prefix), subject=queue)

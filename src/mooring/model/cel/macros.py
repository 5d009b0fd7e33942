"""One evaluation, and the macros that evaluate something for each item: all, exists, exists_one, filter, map."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from mooring.model.cel.values import NONE, CelEvaluationError


@dataclass(slots=True)
class Run:
    """One evaluation: what names stand for, and what it has cost so far."""

    names: dict[str, Any]
    left: int

    def pay(self, cost: int) -> bool:
        """Raise if that is more than is left; True otherwise."""
        self.left -= cost
        if self.left < 0:
            raise CelEvaluationError("operation cancelled: actual cost limit exceeded")
        return True


Step: TypeAlias = Callable[[Run], Any]


def evaluate_with(run: Run, name: str, value: Any, step: Step) -> Any:
    """Evaluate something with a name that stands for a value."""
    names = run.names
    before = names.get(name, NONE)
    names[name] = value
    try:
        return step(run)
    finally:
        if before is NONE:
            del names[name]
        else:
            names[name] = before


def truth_of(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise CelEvaluationError("no such overload")


def _all(run: Run, name: str, items: list[Any], steps: list[Step]) -> bool:
    return _any_or_all(run, name, items, steps[0], absorbing=False)


def _exists(run: Run, name: str, items: list[Any], steps: list[Step]) -> bool:
    return _any_or_all(run, name, items, steps[0], absorbing=True)


def _any_or_all(run: Run, name: str, items: list[Any], step: Step, *, absorbing: bool) -> bool:
    error: CelEvaluationError | None = None
    for item in items:
        run.pay(4 if absorbing else 3)
        try:
            if truth_of(evaluate_with(run, name, item, step)) is absorbing:
                return absorbing
        except CelEvaluationError as raised:
            if run.left < 0:
                raise
            error = error or raised
    if error is not None:
        raise error
    return not absorbing


def _exists_one(run: Run, name: str, items: list[Any], steps: list[Step]) -> bool:
    return sum(truth_of(evaluate_with(run, name, item, steps[0])) for item in items if run.pay(2)) == 1


def _filter(run: Run, name: str, items: list[Any], steps: list[Step]) -> list[Any]:
    chosen = (item for item in items if run.pay(1) and truth_of(evaluate_with(run, name, item, steps[0])))
    return [item for item in chosen if run.pay(12)]


def _map(run: Run, name: str, items: list[Any], steps: list[Step]) -> list[Any]:
    kept = _filter(run, name, items, steps) if len(steps) == 2 else items
    return [evaluate_with(run, name, item, steps[-1]) for item in kept if run.pay(12)]


COMBINE: dict[str, Callable[[Run, str, list[Any], list[Step]], Any]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "existsOne": _exists_one,
    "filter": _filter,
    "map": _map,
}
MACROS = {"all": (2,), "exists": (2,), "exists_one": (2,), "existsOne": (2,), "filter": (2,), "map": (2, 3)}
"""By name, with how many arguments."""

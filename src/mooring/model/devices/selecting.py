"""CEL selectors of devices: compiled once, and asked once about each device."""

from functools import lru_cache

from mooring.model.cel.program import ANY, COST_LIMIT, Budget, Program, Type, compile_expression
from mooring.model.cel.values import CelCompileError, CelEvaluationError, Quantity, Semver, WithDefault
from mooring.model.devices.device import Attribute, Device

MOST_CHARACTERS = 10 * 1024
"""CELSelectorExpressionMaxLength"""
USUAL_COST = 100
"""Steps of an evaluation that are not counted against its claim: no real selector needs more."""
CLAIM_COST_LIMIT = COST_LIMIT
"""What the evaluations of one claim may cost beyond the usual, over all selectors and devices. kube-scheduler bounds
the time of a Filter call instead, which would make decisions depend on the machine."""
_SPENT = f"CEL runtime error: the selectors of the claim cost more than {CLAIM_COST_LIMIT} steps in total"

_MAP = "map"
_ATTRIBUTES = Type(_MAP, Type(_MAP, ANY))
_CAPACITY = Type(_MAP, Type(_MAP, Type("kubernetes.Quantity")))
DEVICE = Type(
    "object",
    fields={
        "driver": Type("string"),
        "allowMultipleAllocations": Type("bool"),
        "attributes": _ATTRIBUTES,
        "capacity": _CAPACITY,
    },
)
_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue())"
    " or guarding the check with has() for optional fields"
)


class Costs:
    """What the selectors of one claim have cost so far. Each evaluation counts once for each claim that needs it, also
    where its answer is known from another: what happens to a claim does not depend on the others."""

    __slots__ = ("_counted", "left")

    def __init__(self) -> None:
        self.left = CLAIM_COST_LIMIT
        self._counted: set[tuple[Selector, Device]] = set()

    def count(self, selector: "Selector", device: Device, cost: int) -> None:
        if (selector, device) not in self._counted:
            self._counted.add((selector, device))
            self.left -= cost


class Selector:
    """An expression over a device."""

    __slots__ = ("_costs", "_known", "error", "program", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.error = ""
        """Why it cannot be compiled, if so."""
        self.program: Program | None = None
        self._known: dict[Device, bool | str] = {}
        self._costs: dict[Device, int] = {}
        """What evaluations cost beyond the usual."""
        try:
            self.program = compile_selector(text)
        except CelCompileError as error:
            self.error = str(error)

    def matches(self, device: Device, costs: Costs | None = None) -> bool | str:
        """Whether it holds for a device; a text if that has no answer, which says why."""
        if costs is not None and costs.left < 0:
            return _SPENT
        known = self._known.get(device)
        if known is None:
            known = self._known[device] = self._evaluate(device)
        if costs is not None and (cost := self._costs.get(device)):
            costs.count(self, device, cost)
        return known

    def _evaluate(self, device: Device) -> bool | str:
        if self.program is None:
            return f"CEL compile error: {self.error}"
        budget = Budget()
        before = budget.left
        try:
            found = self.program.evaluate({"device": as_variable(device)}, budget=budget)
        except CelEvaluationError as error:
            text = str(error)
            return f"CEL runtime error: {text}" + (_HINT if "no such key:" in text else "")
        finally:
            if (cost := before - budget.left) > USUAL_COST:
                self._costs[device] = cost - USUAL_COST
        if found is True or found is False:
            return bool(found)
        return f"CEL runtime error: result of type {type(found).__name__} could not be converted to bool"


def compile_selector(text: str) -> Program:
    """A selector as a program; CelCompileError if it is none."""
    if len(text) > MOST_CHARACTERS:
        raise CelCompileError(f"longer than {MOST_CHARACTERS} characters")
    program = compile_expression(text, {"device": DEVICE})
    if program.type.name not in ("bool", "dyn"):
        raise CelCompileError(f"must evaluate to bool, not {program.type.name}")
    return program


@lru_cache(maxsize=1024)
def selector(text: str) -> Selector:
    """The selector of a text; equal ones are one, and so are their answers."""
    return Selector(text)


def as_variable(device: Device) -> dict[str, object]:
    """A device as expressions see it: attributes and capacities by domain."""
    attributes, capacity = WithDefault(), WithDefault()
    for name, value in device.attributes.items():
        domain, short = _qualified(name, device.driver)
        attributes.setdefault(domain, {})[short] = _value(value)
    for name, amount in device.capacity.items():
        domain, short = _qualified(name, device.driver)
        capacity.setdefault(domain, {})[short] = Quantity(amount.value)
    return {
        "driver": device.driver,
        "allowMultipleAllocations": device.is_shared,
        "attributes": attributes,
        "capacity": capacity,
    }


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, short = name.partition("/")
    return (domain, short) if slash else (driver, name)


def _value(attribute: Attribute) -> object:
    kind, value = attribute
    if kind == "version":
        found = Semver.parse(str(value))
        if found is None:
            raise CelEvaluationError(f"parse semantic version: {value}")
        return found
    return value

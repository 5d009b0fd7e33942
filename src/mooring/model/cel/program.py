"""From a tree to a program: names and types are checked once, then the program is run for one value after another."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mooring.model.cel.costs import COSTS
from mooring.model.cel.costs import compared as compare_cost
from mooring.model.cel.functions import BOOL, DYN, LIST, MAP, OPTIONAL, STRING, Functions, Overload
from mooring.model.cel.library import FUNCTIONS, find
from mooring.model.cel.macros import COMBINE, MACROS, Run, Step, evaluate_with, truth_of
from mooring.model.cel.syntax import Call, Expression, Index, ListOf, Literal, MapOf, Name, Select, parse
from mooring.model.cel.values import (
    NONE,
    NUMBERS,
    ORDERED,
    CelCompileError,
    CelEvaluationError,
    Optional,
    TypeValue,
    compare,
    equal,
    type_of,
)

COST_LIMIT = 1_000_000
"""CELSelectorExpressionMaxCost of resource.k8s.io: what an evaluation may cost, in steps."""
LIST_COST, MAP_COST = 10, 30
"""As cel-go counts: to make a list or a map costs so many steps."""


@dataclass(frozen=True, slots=True)
class Type:
    """A type as far as it is known before anything is evaluated."""

    name: str = DYN
    item: "Type | None" = None
    """Of the values of a list, a map or an optional."""
    fields: "Mapping[str, Type] | None" = None
    """Of an object: which fields it has; nothing else may be selected from it."""


ANY = Type()
_NAMES = {name: Type(name) for name in ("int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type")}
_TYPE_NAMES = {**dict.fromkeys(_NAMES), "type": None}


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression."""

    text: str
    type: Type
    _step: Step = field(repr=False)

    def evaluate(
        self, variables: Mapping[str, Any], cost_limit: int = COST_LIMIT, budget: "Budget | None" = None
    ) -> Any:
        """The value for these variables; CelEvaluationError if there is none, or finding it costs too much. Several
        evaluations may have one budget beside the limit of each."""
        limit = min(cost_limit, budget.left) if budget is not None else cost_limit
        run = Run(dict(variables), limit)
        try:
            return self._step(run)
        except RecursionError as error:
            raise CelEvaluationError("operation cancelled: nested too deeply") from error
        except (ArithmeticError, TypeError, ValueError, UnicodeError) as error:
            raise CelEvaluationError(str(error)) from error
        finally:
            if budget is not None:
                budget.left -= limit - max(run.left, 0)


@dataclass(slots=True)
class Budget:
    """What several evaluations may cost together."""

    left: int = 10 * COST_LIMIT


def compile_expression(text: str, variables: Mapping[str, Type], functions: Functions = FUNCTIONS) -> Program:
    """Check an expression over these variables and make it ready to run."""
    try:
        type_, step = _Compiler(functions).compile(parse(text), dict(variables))
    except RecursionError as error:
        raise CelCompileError("expression recursion limit exceeded") from error
    return Program(text, type_, step)


class _Compiler:
    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    def compile(self, node: Expression, scope: dict[str, Type]) -> tuple[Type, Step]:
        match node:
            case Literal(value):
                return Type(type_of(value)), lambda run: value
            case Name(name):
                return self._name(node, name, scope)
            case Select():
                return self._select(node, scope)
            case Index():
                return self._index(node, scope)
            case ListOf(items):
                return self._list(items, scope)
            case MapOf(items):
                return self._map(items, scope)
            case Call():
                return self._call(node, scope)

    # Names and parts.

    def _name(self, node: Expression, name: str, scope: dict[str, Type]) -> tuple[Type, Step]:
        if name in scope:

            def look_up(run: Run) -> Any:
                run.pay(1)
                return run.names[name]

            return scope[name], look_up
        if name in _TYPE_NAMES:
            value = TypeValue(name)
            return Type("type"), lambda run: value
        raise CelCompileError(f"undeclared reference to '{name}'", node.at + 1)

    def _select(self, node: Select, scope: dict[str, Type]) -> tuple[Type, Step]:
        type_, operand = self.compile(node.operand, scope)
        through_optional = type_.name == OPTIONAL
        inner = (type_.item or ANY) if through_optional else type_
        found = self._field_type(inner, node)
        name = node.field
        if node.is_optional or through_optional:
            return Type(OPTIONAL, found), lambda run: _optional_part(run, operand(run), name)

        def select(run: Run) -> Any:
            run.pay(1)
            value = operand(run)
            if isinstance(value, Optional):
                return _optional_part(run, value, name)
            return _part(value, name)

        return found, select

    def _field_type(self, type_: Type, node: Select) -> Type:
        if type_.fields is not None:
            if node.field not in type_.fields:
                raise CelCompileError(f"undefined field '{node.field}'", node.at + 1)
            return type_.fields[node.field]
        if type_.name not in (DYN, MAP, OPTIONAL):
            raise CelCompileError(f"type '{type_.name}' does not support field selection", node.at + 1)
        return type_.item or ANY

    def _index(self, node: Index, scope: dict[str, Type]) -> tuple[Type, Step]:
        type_, operand = self.compile(node.operand, scope)
        _, key = self.compile(node.key, scope)
        through_optional = type_.name == OPTIONAL
        inner = (type_.item or ANY) if through_optional else type_
        if inner.name not in (DYN, MAP, LIST, OPTIONAL):
            raise CelCompileError(f"found no matching overload for '_[_]' applied to '({inner.name})'", node.at + 1)
        found = inner.item or ANY
        if node.is_optional or through_optional:
            return Type(OPTIONAL, found), lambda run: _optional_part(run, operand(run), key(run))

        def index(run: Run) -> Any:
            run.pay(1)
            value = operand(run)
            return _optional_part(run, value, key(run)) if isinstance(value, Optional) else _part(value, key(run))

        return found, index

    def _list(self, items: tuple[Expression, ...], scope: dict[str, Type]) -> tuple[Type, Step]:
        compiled = [self.compile(item, scope) for item in items]
        types = {type_ for type_, _ in compiled if type_.fields is None}
        steps = [step for _, step in compiled]
        item = types.pop() if len(types) == 1 else ANY

        def make(run: Run) -> list[Any]:
            run.pay(LIST_COST)
            return [step(run) for step in steps]

        return Type(LIST, item), make

    def _map(self, items: tuple[tuple[Expression, Expression], ...], scope: dict[str, Type]) -> tuple[Type, Step]:
        steps = [(self.compile(key, scope)[1], self.compile(value, scope)[1]) for key, value in items]

        def make(run: Run) -> dict[Any, Any]:
            run.pay(MAP_COST)
            return {key(run): value(run) for key, value in steps}

        return Type(MAP, ANY), make

    # Calls.

    def _call(self, node: Call, scope: dict[str, Type]) -> tuple[Type, Step]:
        if node.target is None and node.function in _OPERATORS:
            return _OPERATORS[node.function](self, node, scope)
        if node.target is None and node.function == "has":
            return self._has(node, scope)
        if node.target is not None:
            if node.function in MACROS and len(node.arguments) in MACROS[node.function]:
                return self._comprehension(node, node.target, scope)
            if node.function in ("optMap", "optFlatMap") and len(node.arguments) == 2:
                return self._opt_map(node, node.target, scope)
            if isinstance(node.target, Name) and node.target.name == "cel" and node.function == "bind":
                return self._bind(node, scope)
            qualified = _qualified(node)
            if qualified in self._functions and not (isinstance(node.target, Name) and node.target.name in scope):
                return self._function(qualified, node, (), scope)
            return self._function(f".{node.function}", node, (node.target,), scope)
        return self._function(node.function, node, (), scope)

    def _function(
        self, name: str, node: Call, target: tuple[Expression, ...], scope: dict[str, Type]
    ) -> tuple[Type, Step]:
        overloads = self._functions.get(name)
        if overloads is None:
            raise CelCompileError(f"undeclared reference to '{node.function}'", node.at + 1)
        compiled = [self.compile(argument, scope) for argument in (*target, *node.arguments)]
        types, steps = [type_ for type_, _ in compiled], [step for _, step in compiled]
        possible = [overload for overload in overloads if _may_take(overload, types)]
        if not possible:
            given = ", ".join(type_.name for type_ in types)
            raise CelCompileError(
                f"found no matching overload for '{node.function}' applied to '({given})'", node.at + 1
            )
        gives = {overload.gives for overload in possible}
        result = Type(gives.pop()) if len(gives) == 1 else ANY
        if name == ".orValue" and types[0].item is not None:
            result = types[0].item if types[0].item.name == types[1].name else ANY

        def call(run: Run) -> Any:
            run.pay(1)
            values = [step(run) for step in steps]
            return _dispatch(possible, values, name.lstrip("."), run)

        return result, call

    def _has(self, node: Call, scope: dict[str, Type]) -> tuple[Type, Step]:
        if len(node.arguments) != 1 or not isinstance(node.arguments[0], Select):
            raise CelCompileError("invalid argument to has() macro", node.at + 1)
        asked = node.arguments[0]
        type_, operand = self.compile(asked.operand, scope)
        self._field_type(type_, asked)

        def has(run: Run) -> bool:
            run.pay(1)
            value = operand(run)
            if isinstance(value, Optional):
                value = value.value if value.has_value else {}
            if not isinstance(value, Mapping):
                raise CelEvaluationError(f"no such overload: has() of {type_of(value)}")
            return asked.field in value

        return Type(BOOL), has

    def _bind(self, node: Call, scope: dict[str, Type]) -> tuple[Type, Step]:
        if len(node.arguments) != 3 or not isinstance(node.arguments[0], Name):
            raise CelCompileError("cel.bind() takes a name, a value and an expression", node.at + 1)
        name = node.arguments[0].name
        type_, value = self.compile(node.arguments[1], scope)
        result, inner = self.compile(node.arguments[2], {**scope, name: type_})
        return result, lambda run: evaluate_with(run, name, value(run), inner)

    def _opt_map(self, node: Call, target: Expression, scope: dict[str, Type]) -> tuple[Type, Step]:
        type_, operand = self.compile(target, scope)
        if not isinstance(node.arguments[0], Name):
            raise CelCompileError(f"{node.function}() takes a name and an expression", node.at + 1)
        name, is_flat = node.arguments[0].name, node.function == "optFlatMap"
        _, inner = self.compile(node.arguments[1], {**scope, name: type_.item or ANY})

        def opt_map(run: Run) -> Any:
            value = operand(run)
            if not isinstance(value, Optional):
                raise CelEvaluationError(f"no such overload: {node.function}() of {type_of(value)}")
            if not value.has_value:
                return NONE
            found = evaluate_with(run, name, value.value, inner)
            return found if is_flat else Optional(found)

        return Type(OPTIONAL), opt_map

    def _comprehension(self, node: Call, target: Expression, scope: dict[str, Type]) -> tuple[Type, Step]:
        if not isinstance(node.arguments[0], Name):
            raise CelCompileError(f"{node.function}() takes a name first", node.at + 1)
        name = node.arguments[0].name
        type_, items = self.compile(target, scope)
        if type_.name not in (DYN, LIST, MAP):
            raise CelCompileError(f"expression of type '{type_.name}' cannot be range of a comprehension", node.at + 1)
        item = Type(STRING) if type_.name == MAP else (type_.item or ANY)
        inner_scope = {**scope, name: item}
        steps = [self.compile(argument, inner_scope)[1] for argument in node.arguments[1:]]
        result = Type(LIST) if node.function in ("map", "filter") else Type(BOOL)
        combine = COMBINE[node.function]

        def comprehend(run: Run) -> Any:
            values = items(run)
            if not isinstance(values, list | tuple | Mapping):
                raise CelEvaluationError(f"no such overload: {node.function}() of {type_of(values)}")
            return combine(run, name, list(values), steps)

        return result, comprehend

    # Operators that do not evaluate all they are given, or take values of any type.

    def _logical(self, node: Call, scope: dict[str, Type]) -> tuple[Type, Step]:
        left, right = (self._truth(argument, scope) for argument in node.arguments)
        absorbing = node.function == "||"

        def logical(run: Run) -> bool:
            error: CelEvaluationError | None = None
            for side in (left, right):
                try:
                    if truth_of(side(run)) is absorbing:
                        return absorbing
                except CelEvaluationError as raised:
                    if run.left < 0:
                        raise
                    error = error or raised
            if error is not None:
                raise error
            return not absorbing

        return Type(BOOL), logical

    def _truth(self, node: Expression, scope: dict[str, Type]) -> Step:
        type_, step = self.compile(node, scope)
        if type_.name not in (DYN, BOOL):
            raise CelCompileError(f"expected type 'bool' but found '{type_.name}'", node.at + 1)
        return step

    def _ternary(self, node: Call, scope: dict[str, Type]) -> tuple[Type, Step]:
        condition = self._truth(node.arguments[0], scope)
        (one, yes), (other, no) = (self.compile(argument, scope) for argument in node.arguments[1:])
        if one.name != other.name and DYN not in (one.name, other.name):
            raise CelCompileError(
                f"found no matching overload for '_?_:_' applied to '(bool, {one.name}, {other.name})'", node.at + 1
            )
        return one if one == other else ANY, lambda run: yes(run) if truth_of(condition(run)) else no(run)

    def _comparison(self, node: Call, scope: dict[str, Type]) -> tuple[Type, Step]:
        (one, left), (other, right) = (self.compile(argument, scope) for argument in node.arguments)
        known = DYN not in (one.name, other.name) and "null_type" not in (one.name, other.name)
        mixed = one.name in NUMBERS and other.name in NUMBERS
        orders = node.function not in ("==", "!=")
        unfit = (known and one.name != other.name and not (mixed and orders)) or (
            orders and any(type_.name not in ORDERED | {DYN} for type_ in (one, other))
        )
        if unfit:
            raise CelCompileError(
                f"found no matching overload for '_{node.function}_' applied to '({one.name}, {other.name})'",
                node.at + 1,
            )
        test = _COMPARE[node.function]

        def compared(run: Run) -> bool:
            one, other = left(run), right(run)
            run.pay(1 + compare_cost(one, other))
            return test(one, other)

        return Type(BOOL), compared


def _part(value: Any, key: Any) -> Any:
    """A value of a map or a list; an error where there is none."""
    if isinstance(value, Mapping):
        found = find(value, key)
        if found.has_value:
            return found.value
        raise CelEvaluationError(f"no such key: {key}")
    if isinstance(value, list | tuple):
        if isinstance(key, bool) or not isinstance(key, int | float) or key != int(key):
            raise CelEvaluationError(f"unsupported index type '{type_of(key)}' in list")
        if not 0 <= key < len(value):
            raise CelEvaluationError(f"index out of bounds: {key}")
        return value[int(key)]
    raise CelEvaluationError("no such overload")


def _optional_part(run: Run, value: Any, key: Any) -> Optional:
    run.pay(1)
    if isinstance(value, Optional):
        if not value.has_value:
            return NONE
        value = value.value
    if isinstance(value, Mapping):
        return find(value, key)
    if isinstance(value, list | tuple) and isinstance(key, int) and not isinstance(key, bool):
        return Optional(value[key]) if 0 <= key < len(value) else NONE
    raise CelEvaluationError("no such overload")


def _qualified(node: Call) -> str:
    return f"{node.target.name}.{node.function}" if isinstance(node.target, Name) else ""


def _may_take(overload: Overload, types: list[Type]) -> bool:
    if len(overload.takes) != len(types):
        return False
    return all(
        wanted == DYN or type_.name in (DYN, wanted) for wanted, type_ in zip(overload.takes, types, strict=True)
    )


def _dispatch(overloads: list[Overload], values: list[Any], name: str, run: Run) -> Any:
    names = [type_of(value) for value in values]
    for overload in overloads:
        if all(wanted in (DYN, found) for wanted, found in zip(overload.takes, names, strict=True)):
            if (cost := COSTS.get(name)) is not None:
                run.pay(cost(values))
            return overload.run(*values)
    raise CelEvaluationError(f"no such overload: {name}({', '.join(names)})")


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": equal,
    "!=": lambda one, other: not equal(one, other),
    "<": lambda one, other: compare(one, other) < 0,
    "<=": lambda one, other: compare(one, other) <= 0,
    ">": lambda one, other: compare(one, other) > 0,
    ">=": lambda one, other: compare(one, other) >= 0,
}
_OPERATORS: dict[str, Callable[[_Compiler, Call, dict[str, Type]], tuple[Type, Step]]] = {
    "&&": _Compiler._logical,
    "||": _Compiler._logical,
    "?:": _Compiler._ternary,
    **dict.fromkeys(_COMPARE, _Compiler._comparison),
}

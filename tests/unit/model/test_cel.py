"""The Common Expression Language: what expressions are worth, and which are none."""

import time
import tracemalloc
from typing import Any

import pytest

from mooring.model.cel import CelCompileError, CelEvaluationError, compile_expression
from mooring.model.cel.program import ANY, COST_LIMIT, Budget
from mooring.model.cel.values import Quantity, Semver
from mooring.model.devices.device import Capacity, Device
from mooring.model.devices.selecting import Selector, compile_selector
from mooring.model.values.quantity import parse_quantity

GPU = Device(
    "gpu-0",
    "gpu.example.com",
    {
        "model": ("string", "h100"),
        "numa": ("int", 1),
        "mig": ("bool", False),
        "version": ("version", "1.10.0"),
        "pci.example.org/root": ("string", "pci0000:00"),
    },
    {"memory": Capacity(parse_quantity("80Gi"))},
)
VALUE = {"list": [1, 2, 3], "map": {"a": 1, "b": 2}, "text": "hello", "truth": True}

TRUE = """
1 + 2 * 3 == 7 && !(2 > 3) || false
value.list.all(x, x > 0) && value.list.exists(y, y == 2) && value.list.exists_one(z, z == 2)
value.list.map(x, x * 2) == [2, 4, 6] && value.list.map(x, x > 1, x * 10) == [20, 30]
value.list.filter(x, x > 1).size() == 2
value.map.all(k, k < "c") && "a" in value.map && !("c" in value.map)
1 / 0 == 1 || true
true || 1 / 0 == 1
!(false && 1 / 0 == 1) && !(1 / 0 == 1 && false)
-7 / 2 == -3 && -7 % 2 == -1
dyn(1) == 1.0 && dyn(1) != "1" && 1 < 2.5
size("héllo") == 5 && "abc".startsWith("a") && "abc".matches("^a.c$") && "abc".contains("b")
"a,b".split(",") == ["a", "b"] && ["a", "b"].join("-") == "a-b" && "hello".substring(1, 3) == "el"
value.map.?c.orValue(3) == 3 && value.map[?"a"].hasValue() && !value.map.?c.hasValue()
has(value.map.a) && !has(value.map.c)
cel.bind(x, value.list, x.size() == 3)
optional.of(3).value() == 3 && optional.none().orValue(4) == 4
optional.of(3).optMap(x, x + 1).value() == 4
int("12") == 12 && string(12) == "12" && double("1.5") == 1.5 && 1u + 2u == 3u
r"a\\.b" == "a\\\\.b" && 'it\\'s' == "it's" && \"\"\"a"b\"\"\" == 'a"b'
(true ? "a" : "b") == "a" && type(1) == int
value.list.exists(x, x / 0 == 1 || true)
duration("1h") > duration("30m") && timestamp("2026-01-01T00:00:00Z") < timestamp("2026-01-02T00:00:00Z")
quantity("1Gi").isGreaterThan(quantity("1G")) && quantity("2").add(1).compareTo(quantity("3")) == 0
quantity("1500m").isInteger() == false && quantity("3k").asInteger() == 3000 && isQuantity("1x") == false
semver("1.10.0").isGreaterThan(semver("1.9.0")) && semver("1.0.0-rc.1").isLessThan(semver("1.0.0"))
semver("v1.2", true).compareTo(semver("1.2.0")) == 0 && isSemver("1.2") == false
sets.contains([1, 2, 3], [2]) && sets.intersects([1], [1, 2]) && [1, 2, 2].isSorted() && [3, 1].max() == 3
"abc 123".find("[0-9]+") == "123" && [1, 2].sum() == 3
""".strip().splitlines()


@pytest.mark.parametrize("text", TRUE)
def test_an_expression_is_true(text: str) -> None:
    assert compile_expression(text, {"value": ANY}).evaluate({"value": VALUE}) is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 +", "expected a value, found 'end of the expression' (column 4)"),
        ("foo == 1", "undeclared reference to 'foo' (column 1)"),
        ('1 == "a"', "found no matching overload for '_==_' applied to '(int, string)' (column 3)"),
        ('"x" + 1', "found no matching overload for '+' applied to '(string, int)' (column 5)"),
        ("value.foo(1)", "undeclared reference to 'foo' (column 6)"),
        ("1 && true", "expected type 'bool' but found 'int' (column 1)"),
        ("has(value)", "invalid argument to has() macro (column 1)"),
        ("for", "'for' is a reserved word (column 1)"),
        ("a ~ b", "'~' is not a part of an expression (column 3)"),
        ("9223372036854775808", "9223372036854775808 does not fit 64 bits (column 1)"),
        ("(" * 200 + "1" + ")" * 200, "nested deeper than 100 levels (column 102)"),
    ],
)
def test_what_is_no_expression_is_told_with_its_column(text: str, message: str) -> None:
    with pytest.raises(CelCompileError) as raised:
        compile_expression(text, {"value": ANY})

    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("value.map.c == 1", "no such key: c"),
        ("value.list[5] == 1", "index out of bounds: 5"),
        ("value.text && true", "no such overload"),
        ("9223372036854775807 + 1 == 0", "integer overflow"),
        ("1 / 0 == 1", "division by zero"),
        ('quantity("x") == quantity("1")', "quantities must match the regular expression"),
        ("value.list.all(a, value.list.all(b, value.list.all(c, c < 9)))", "cost limit exceeded"),
    ],
)
def test_what_has_no_value_says_why(text: str, message: str) -> None:
    program = compile_expression(text, {"value": ANY})

    with pytest.raises(CelEvaluationError, match=message):
        program.evaluate({"value": VALUE}, cost_limit=100)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('device.driver == "gpu.example.com"', True),
        ('device.attributes["gpu.example.com"].model in ["a100", "h100"]', True),
        ('device.attributes["gpu.example.com"].numa == 0', False),
        ('device.attributes["pci.example.org"].root == "pci0000:00"', True),
        ('device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.9.0"))', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0', True),
        ('device.attributes["other.example.com"].?model.orValue("none") == "none"', True),
        ('has(device.attributes["other.example.com"].model)', False),
        ('"other.example.com" in device.attributes', False),
        ("device.allowMultipleAllocations", False),
        (
            'device.attributes["gpu.example.com"].colour == "red"',
            "CEL runtime error: no such key: colour. consider using CEL optional chaining (.? followed by orValue())"
            " or guarding the check with has() for optional fields",
        ),
        ("device.colour", "CEL compile error: undefined field 'colour' (column 7)"),
    ],
)
def test_a_selector_is_asked_about_a_device(text: str, expected: bool | str) -> None:
    assert Selector(text).matches(GPU) == expected


def test_a_selector_must_say_yes_or_no() -> None:
    with pytest.raises(CelCompileError, match="must evaluate to bool, not string"):
        compile_selector("device.driver")


def test_versions_and_quantities_are_values_of_their_own() -> None:
    variables = {"v": ANY, "q": ANY}
    program = compile_expression('v.major() == 1 && q.sign() == 1 && dyn(v) != "1.2.3"', variables)

    assert program.evaluate({"v": Semver(1, 2, 3), "q": Quantity(parse_quantity("1m"))}) is True


def cost_of(text: str, **variables: Any) -> int:
    """The least limit with which an expression has a value."""
    program = compile_expression(text, dict.fromkeys(variables, ANY))
    budget = Budget(COST_LIMIT)
    program.evaluate(variables, COST_LIMIT, budget)
    return COST_LIMIT - budget.left


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("true", 0),
        ("1 + 2 == 3", 2),
        ("s == s", 2 + 1 + 10),
        ("[1, 2]", 10),
        ("{'a': 1}", 30),
        ("s.matches('^a+$')", 1 + 1 + 11 * 1),
        ("s.contains('aaaaaaaaaaaaaaaaaaaa')", 1 + 1 + 10 * 2),
        ("s.startsWith('aaaaaaaaaaaaaaaaaaaa')", 1 + 1 + 2),
        ("s + s == s", 2 + 1 + 20 + 1 + 1 + 10),
        ("7 in l", 1 + 1 + 5),
        ("l.all(x, x > 0)", 1 + 5 * (3 + 2)),
        ("l.exists(x, x > 4)", 1 + 5 * (4 + 2)),
        ("l.map(x, x)", 1 + 5 * (12 + 1)),
        ("l.sum() > 0", 1 + 1 + 5 + 1),
    ],
)
def test_an_expression_costs_what_it_costs_in_kubernetes(text: str, cost: int) -> None:
    assert cost_of(text, s="a" * 100, l=[1, 2, 3, 4, 5]) == cost


@pytest.mark.parametrize(
    "text",
    [
        f'"{"a" * 40}!".matches("^(a+)+$")',
        f'"{"a" * 40}!".findAll("(a|aa)+$").size() > 0',
        f'"{"a" * 5000}!".matches("(a*)*b")',
    ],
)
def test_a_regular_expression_takes_time_linear_in_the_text(text: str) -> None:
    start = time.process_time()

    assert compile_expression(text, {}).evaluate({}) is False
    assert time.process_time() - start < 1.0


DOUBLED = '"aaaaaaaaaaaaaaaa"'
LISTS = "[1, 2, 3, 4]"
for _ in range(30):
    DOUBLED = f"[{DOUBLED}].map(x, x + x)[0]"
    LISTS = f"[{LISTS}].map(x, x + x)[0]"


@pytest.mark.parametrize(
    "text",
    [
        '"%.999999999f".format([1.0]) == ""',
        '"%.101e".format([1.0]) == ""',
        '"aaaaaaaaaa"' + '.replace("a", "aaaaaaaaaa")' * 9 + ".size() > 0",
        '["aaaaaaaaaa", "b"].join("a"' + '.replace("a", "aaaaaaaaaa")' * 8 + ') != ""',
        f"{DOUBLED}.size() > 0",
        f"{LISTS}.size() > 0",
    ],
)
def test_what_an_expression_makes_has_a_largest_size(text: str) -> None:
    program = compile_expression(text, {})
    tracemalloc.start()

    with pytest.raises(CelEvaluationError, match=r"more than|cost limit exceeded"):
        program.evaluate({})

    assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    tracemalloc.stop()


def test_several_evaluations_have_one_budget() -> None:
    program, budget = compile_expression("l.all(x, x > 0)", {"l": ANY}), Budget(40)

    assert program.evaluate({"l": [1, 2, 3, 4, 5]}, budget=budget) is True
    with pytest.raises(CelEvaluationError, match="cost limit exceeded"):
        program.evaluate({"l": [1, 2, 3, 4, 5]}, budget=budget)
    assert budget.left == 0


def test_an_expression_that_is_nested_too_deeply_is_none() -> None:
    with pytest.raises(CelCompileError, match="nested deeper than 100 levels"):
        compile_expression("(" * 20_000 + "true" + ")" * 20_000, {})
    with pytest.raises(CelCompileError, match="recursion limit"):
        compile_expression("x" + ".a" * 20_000, {"x": ANY})


@pytest.mark.parametrize(("text", "expected"), [
    ('"a1b22".findAll("[0-9]*")', ["", "1", "22"]),
    ('"a1b22".findAll("[0-9]+", 1)', ["1"]),
    ('"a1b22".find("[0-9]{2}")', "22"),
    ('"Ünïcödé".find("[[:^ascii:]]+")', "Ü"),
])  # fmt: skip
def test_matches_are_those_of_go(text: str, expected: Any) -> None:
    assert compile_expression(text, {}).evaluate({}) == expected

"""From text to a tree: CEL's grammar."""

import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from mooring.model.cel.values import CelCompileError, Uint

MOST_NESTED = 100
"""Levels; a deeper expression is refused, as cel-go does at 250 of its own."""


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any
    at: int


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, or `operand.?field`."""

    operand: "Expression"
    field: str
    is_optional: bool
    at: int


@dataclass(frozen=True, slots=True)
class Index:
    """`operand[key]`, or `operand[?key]`."""

    operand: "Expression"
    key: "Expression"
    is_optional: bool
    at: int


@dataclass(frozen=True, slots=True)
class Call:
    """`function(...)`, `target.function(...)`, or an operator by its symbol."""

    function: str
    target: "Expression | None"
    arguments: tuple["Expression", ...]
    at: int


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple["Expression", ...]
    at: int


@dataclass(frozen=True, slots=True)
class MapOf:
    items: tuple[tuple["Expression", "Expression"], ...]
    at: int


Expression: TypeAlias = Literal | Name | Select | Index | Call | ListOf | MapOf

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<uint>(?:0[xX][0-9a-fA-F]+|\d+)[uU])
    |(?P<int>0[xX][0-9a-fA-F]+|\d+)
    |(?P<string>(?:[rR]?[bB]?|[bB][rR])(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''
        |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*|`[a-zA-Z0-9_.\-/ ]+`)
    |(?P<sign>&&|\|\||==|!=|<=|>=|\?|[-+*/%<>!.,:()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPES |= {sign: sign for sign in "\\\"'`?"}
_RESERVED = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"}
    | {"namespace", "return", "var", "void", "while"}
)
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("<", "<=", ">=", ">", "==", "!=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
MAX_INT = 2**63 - 1


def parse(text: str) -> Expression:
    """The tree of an expression; CelCompileError with the column where it is none."""
    parser = _Parser(text)
    found = parser.ternary(0)
    if parser.kind != "end":
        parser.fail(f"unexpected '{parser.text}'")
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._source = text
        self._next = 0
        self.kind, self.text, self.at = "end", "", 0
        self.advance()

    def fail(self, what: str, at: int | None = None) -> Any:
        raise CelCompileError(what, (self.at if at is None else at) + 1)

    def advance(self) -> tuple[str, str, int]:
        """Step to the next token; return the one that was current."""
        was = self.kind, self.text, self.at
        while True:
            if self._next >= len(self._source):
                self.kind, self.text, self.at = "end", "end of the expression", self._next
                return was
            match = _TOKEN.match(self._source, self._next)
            if match is None:
                self.fail(f"'{self._source[self._next]}' is not a part of an expression", self._next)
                raise AssertionError
            self._next, self.at = match.end(), match.start()
            self.kind, self.text = str(match.lastgroup), match.group()
            if self.kind != "space":
                return was

    def _takes(self, *signs: str) -> bool:
        if self.text in signs and self.kind in ("sign", "name"):
            self.advance()
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            self.fail(f"expected '{sign}', found '{self.text}'")

    def ternary(self, depth: int) -> Expression:
        if depth > MOST_NESTED:
            self.fail(f"nested deeper than {MOST_NESTED} levels")
        condition, at = self._binary(0, depth), self.at
        if not self._takes("?"):
            return condition
        yes = self._binary(0, depth + 1)
        self._expect(":")
        return Call("?:", None, (condition, yes, self.ternary(depth + 1)), at)

    def _binary(self, level: int, depth: int) -> Expression:
        if level == len(_LEVELS):
            return self._unary(depth)
        left = self._binary(level + 1, depth)
        while self.text in _LEVELS[level] and self.kind in ("sign", "name"):
            _, sign, at = self.advance()
            left = Call(sign, None, (left, self._binary(level + 1, depth)), at)
        return left

    def _unary(self, depth: int) -> Expression:
        signs = list[tuple[str, int]]()
        while self.kind == "sign" and self.text in "!-":
            signs.append((self.text, self.at))
            self.advance()
        if signs and signs[-1][0] == "-" and self.kind in ("int", "float"):
            signs.pop()
            found = self._postfix(self._number(negative=True), depth)
        else:
            found = self._postfix(self._primary(depth), depth)
        for sign, at in reversed(signs):
            found = Call("!" if sign == "!" else "neg", None, (found,), at)
        return found

    def _postfix(self, found: Expression, depth: int) -> Expression:
        while True:
            at = self.at
            if self._takes("."):
                is_optional = self._takes("?")
                if self.kind != "name":
                    self.fail(f"expected a name, found '{self.text}'")
                name = self.advance()[1].strip("`")
                if not is_optional and self._takes("("):
                    found = Call(name, found, self._arguments(")", depth), at)
                else:
                    found = Select(found, name, is_optional, at)
            elif self._takes("["):
                is_optional = self._takes("?")
                key = self.ternary(depth + 1)
                self._expect("]")
                found = Index(found, key, is_optional, at)
            else:
                return found

    def _arguments(self, end: str, depth: int) -> tuple[Expression, ...]:
        found = list[Expression]()
        while not self._takes(end):
            found.append(self.ternary(depth + 1))
            if not self._takes(","):
                self._expect(end)
                break
        return tuple(found)

    def _primary(self, depth: int) -> Expression:
        at = self.at
        if self._takes("("):
            found = self.ternary(depth + 1)
            self._expect(")")
            return found
        if self._takes("["):
            return ListOf(self._arguments("]", depth), at)
        if self._takes("{"):
            return self._map(depth, at)
        if self.kind in ("int", "uint", "float"):
            return self._number(negative=False)
        if self.kind == "string":
            return Literal(_string(self.advance()[1], self), at)
        if self.kind == "name":
            return self._name(depth)
        return self.fail(f"expected a value, found '{self.text}'")  # type: ignore[no-any-return]

    def _name(self, depth: int) -> Expression:
        _, name, at = self.advance()
        if name in ("true", "false", "null"):
            return Literal({"true": True, "false": False, "null": None}[name], at)
        if name in _RESERVED:
            self.fail(f"'{name}' is a reserved word", at)
        if self._takes("("):
            return Call(name, None, self._arguments(")", depth), at)
        return Name(name.strip("`"), at)

    def _map(self, depth: int, at: int) -> MapOf:
        items = list[tuple[Expression, Expression]]()
        while not self._takes("}"):
            key = self.ternary(depth + 1)
            self._expect(":")
            items.append((key, self.ternary(depth + 1)))
            if not self._takes(","):
                self._expect("}")
                break
        return MapOf(tuple(items), at)

    def _number(self, *, negative: bool) -> Literal:
        kind, text, at = self.advance()
        if kind == "float":
            return Literal(-float(text) if negative else float(text), at)
        number = int(text.rstrip("uU"), 0 if text[:2].lower() == "0x" else 10)
        if kind == "uint":
            if number >= 2**64:
                self.fail(f"{text} does not fit 64 bits", at)
            return Literal(Uint(number), at)
        if number > MAX_INT + negative:
            self.fail(f"{text} does not fit 64 bits", at)
        return Literal(-number if negative else number, at)


def _string(token: str, parser: _Parser) -> str | bytes:
    quoted = token.lstrip("rRbB")
    prefix = token[: len(token) - len(quoted)].lower()
    size = 3 if len(quoted) >= 6 and quoted[:3] in ('"""', "'''") else 1
    inner = quoted[size:-size]
    if "r" not in prefix:
        inner = re.sub(
            r"\\(x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", _unescape, inner
        )
        if "\0bad" in inner:
            parser.fail("an escape that is none, in a string")
    return inner.encode() if "b" in prefix else inner


def _unescape(match: re.Match[str]) -> str:
    found = match.group(1)
    if found in _ESCAPES:
        return _ESCAPES[found]
    if found[0] in "xXuU" and len(found) > 1:
        return chr(int(found[1:], 16))
    return chr(int(found, 8)) if len(found) == 3 else "\0bad"

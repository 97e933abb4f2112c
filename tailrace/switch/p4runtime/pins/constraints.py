# SPDX-License-Identifier: Apache-2.0
"""The language of @entry_restriction and @action_restriction: parsed once, evaluated for each entry.

Source: p4lang/p4-constraints, docs/language-specification.md. It defines neither conversions nor a final `;`:
here both follow p4-constraints' type checker and interpreter. Precedence, lowest first: `;`, `->`, `||`,
`&&`, comparisons, `!` and `-`, `::`. Integer literals have any size: compared with a bit<W> they are taken
modulo 2^W, compared with a key they are an exact match. An extension: a string (sdn_string) can be compared
with 0, which is the empty string, as SAI's programs write `vrf_id != 0`.

Constraints are untrusted: nesting, tokens and digits are bounded; evaluation calls only closures made here.
"""

from __future__ import annotations

import ipaddress
import operator
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tailrace.p4rt.status import P4RtError, invalid

MAX_TOKENS = 4096
"""Most tokens (names, numbers, signs) of a constraint, which is evaluated for each entry that is written."""
MAX_NESTING = 32
"""Most nested parentheses."""
MAX_DIGITS = 1024
"""Most digits of a number; Python converts thousands of decimal digits slowly, or rejects them."""

_TOKEN = re.compile(
    r"(?P<skip>[ \t\r\n\f]+|//[^\r\n]*|/\*.*?\*/)"
    r"|(?P<sign>&&|\|\||->|::|==|!=|>=|<=|[!()<>.;-])"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|(?:0[dD])?[0-9]+)"
    r"|(?P<string>'[^']*')",
    re.DOTALL,
)
_BASES = {"0x": 16, "0b": 2, "0o": 8, "0d": 10}
_MAC = re.compile(r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}")

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# precedence of the binary operators, the lowest first
_IMPLIES, _COMPARES = 2, 5
_LEVELS = {";": 1, "->": _IMPLIES, "||": 3, "&&": 4, **dict.fromkeys(_COMPARISONS, _COMPARES)}

Value = Any
"""The value of an expression: a bool, an int, the bytes of a string, or the two parts of a match."""
Values = Sequence[Value]


class Type(NamedTuple):
    """A type of the language: bool, int, bit or string, or a match of W bits or of strings."""

    kind: str
    bits: int = 0

    def __str__(self) -> str:
        return f"{self.kind}<{self.bits}>" if self.kind in _WITH_BITS else self.kind


BOOL, INT, STRING = Type("bool"), Type("int"), Type("string")
EXACT_STRING, OPTIONAL_STRING = "exact string", "optional string"
_MATCHES = {"exact", "ternary", "lpm", "range", "optional"}
_STRINGS = {"string", EXACT_STRING, OPTIONAL_STRING}
_WITH_BITS = {*_MATCHES, "bit"}
_ORDERED = {"int", "bit", "exact"}

_PARTS: dict[str, dict[str, tuple[int, str]]] = {
    "exact": {"value": (0, "bit")},
    "ternary": {"value": (0, "bit"), "mask": (1, "bit")},
    "optional": {"value": (0, "bit"), "mask": (1, "bit")},
    "lpm": {"value": (0, "bit"), "prefix_length": (1, "int")},
    "range": {"low": (0, "bit"), "high": (1, "bit")},
    EXACT_STRING: {"value": (0, "string")},
    OPTIONAL_STRING: {"value": (0, "string"), "mask": (1, "bit")},
}
"""Per kind of match, the fields that `::` selects: the index of the value in the match, and its type."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that a constraint may use: keys or parameters (`what`), and attributes such as `::priority`.

    Each name has the index of its value, and its type.
    """

    what: str
    names: Mapping[str, tuple[int, Type]]
    attributes: Mapping[str, tuple[int, Type]]


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A conjunct of a constraint. `names`: the names that it uses, attributes with their `::`.

    `holds` evaluates it, which takes some 0.25 µs for each of its `tokens`.
    """

    text: str
    names: tuple[str, ...]
    holds: Callable[[Values], bool]
    tokens: int


class _ConstraintToken(NamedTuple):
    kind: str
    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class _Expression:
    """A parsed expression.

    `value` computes it from the values of all names. `first`: index of its first token; `last`: of the token
    after its last. `parts`: the operands of `&&` or `;`. `literal`: the value of an integer literal.
    """

    type: Type
    value: Callable[[Values], Value]
    first: int
    last: int
    parts: tuple[_Expression, ...] = ()
    literal: int | None = None


class ConstraintParser:
    """The parser of one constraint; `what`: its name in errors."""

    def __init__(self, text: str, scope: Scope, what: str) -> None:
        self._text, self._scope, self._what = text, scope, what
        self._tokens = list(self._split())
        self._position = self._nesting = 0
        self._named: list[tuple[int, str]] = []  # names with the index of their first token

    # ---- tokens ----

    def _split(self) -> Iterator[_ConstraintToken]:
        offset = count = 0
        while offset < len(self._text):
            match = _TOKEN.match(self._text, offset)
            if match is None:
                raise self._error(offset, f"unexpected '{self._text[offset]}'")
            kind = match.lastgroup
            if kind != "skip" and kind is not None:
                count += 1
                if count > MAX_TOKENS:
                    raise self._error(offset, f"more than {MAX_TOKENS} tokens")
                yield _ConstraintToken(kind, match[0], offset)
            offset = match.end()
        yield _ConstraintToken("end", "the end", offset)

    def _error(self, offset: int, message: str) -> P4RtError:
        before = self._text[:offset].splitlines() or [""]
        if self._text[:offset].endswith(("\n", "\r")):
            before.append("")
        return invalid(f"{self._what}, line {len(before)}, column {len(before[-1]) + 1}: {message}")

    def _unexpected(self, token: _ConstraintToken, expected: str) -> P4RtError:
        return self._error(token.offset, f"expected {expected}, not '{token.text[:40]}'")

    @property
    def _next(self) -> _ConstraintToken:
        return self._tokens[self._position]

    def _take(self) -> _ConstraintToken:
        token = self._next
        if token.kind != "end":
            self._position += 1
        return token

    def _next_is(self, sign: str) -> bool:
        return self._next.kind == "sign" and self._next.text == sign

    def _expect(self, sign: str) -> None:
        if not self._next_is(sign):
            raise self._unexpected(self._next, f"'{sign}'")
        self._take()

    def _identifier(self, expected: str) -> str:
        token = self._take()
        if token.kind != "word":
            raise self._unexpected(token, expected)
        return token.text

    # ---- the grammar ----

    def conjuncts(self) -> Iterator[Conjunct]:
        """Parses the constraint.

        Raises:
            P4RtError: INVALID_ARGUMENT, with line, column and the expected tokens.
        """
        root = self._expression(0)
        if self._next.kind != "end":
            raise self._unexpected(self._next, "an operator or the end")
        self._require(BOOL, root)
        for part in _conjuncts_of(root):
            begin = bisect_left(self._named, (part.first, ""))
            end = bisect_left(self._named, (part.last, ""))
            names = dict.fromkeys(name for _, name in self._named[begin:end])
            tokens = part.last - part.first + 1  # with the operator after the conjunct, or the end
            yield Conjunct(self._shown(part), tuple(names), part.value, tokens)

    def _shown(self, node: _Expression) -> str:
        """An expression as in the source, without comments."""
        tokens = self._tokens[node.first : node.last]
        spaced = (f" {t.text} " if t.kind == "sign" and t.text in _LEVELS else t.text for t in tokens)
        return "".join(spaced)

    def _expression(self, above: int) -> _Expression:
        """Parses operators whose precedence is higher than `above`, with their operands."""
        left = self._unary()
        while self._next.kind == "sign" and (level := _LEVELS.get(self._next.text, 0)) > above:
            sign = self._take()
            if sign.text == ";" and self._at_end():
                break
            if level in (_IMPLIES, _COMPARES):
                right = self._expression(level)
                if self._next.kind == "sign" and _LEVELS.get(self._next.text) == level:
                    raise self._error(
                        self._next.offset,
                        "needs parentheses: the operators '->' and comparisons do not chain",
                    )
                left = self._implies(left, right) if level == _IMPLIES else self._compare(left, sign, right)
            else:
                left = self._chain(left, sign.text, level)
        return left

    def _at_end(self) -> bool:
        return self._next.kind == "end" or self._next_is(")")

    def _chain(self, left: _Expression, sign: str, level: int) -> _Expression:
        """A chain of operands with the same operator, as one expression."""
        parts = [left, self._expression(level)]
        while self._next_is(sign):
            self._take()
            if sign == ";" and self._at_end():
                break
            parts.append(self._expression(level))
        for part in parts:
            self._require(BOOL, part)
        values = tuple(part.value for part in parts)
        if sign == "||":
            return _Expression(BOOL, lambda v: any(value(v) for value in values), left.first, parts[-1].last)
        return _Expression(
            BOOL, lambda v: all(value(v) for value in values), left.first, parts[-1].last, tuple(parts)
        )

    def _implies(self, left: _Expression, right: _Expression) -> _Expression:
        self._require(BOOL, left)
        self._require(BOOL, right)
        if_, then = left.value, right.value
        return _Expression(BOOL, lambda v: not if_(v) or then(v), left.first, right.last)

    def _unary(self) -> _Expression:
        first, signs = self._position, []
        while self._next_is("!") or self._next_is("-"):
            signs.append(self._take().text)
        node = self._postfix()
        for sign in reversed(signs):
            self._require(BOOL if sign == "!" else INT, node)
        if len(signs) % 2 == 0:  # the types allow no mix of ! and -, so the operators cancel in pairs
            return node
        value = node.value
        if signs[0] == "!":
            return _Expression(BOOL, lambda v: not value(v), first, node.last)
        literal = None if node.literal is None else -node.literal
        return _Expression(INT, lambda v: -value(v), first, node.last, literal=literal)

    def _postfix(self) -> _Expression:
        node = self._primary()
        while self._next_is("::"):
            offset = self._take().offset
            parts = _PARTS.get(node.type.kind, {})
            name = self._identifier("the name of a part")
            if name not in parts:
                has = f"has {', '.join(parts)}" if parts else "has no parts"
                raise self._error(offset, f"a value of type {node.type} {has}, not '{name}'")
            index, kind = parts[name]
            value = node.value
            type_ = Type(kind, node.type.bits if kind == "bit" else 0)
            node = _Expression(type_, _part(value, index), node.first, self._position)
        return node

    def _primary(self) -> _Expression:
        first, token = self._position, self._take()
        if token.kind == "number":
            return self._constant(INT, self._number(token), first)
        if token.kind == "word":
            if token.text in ("true", "false"):
                return self._constant(BOOL, token.text == "true", first)
            return self._address(token, first) if self._next_is("(") else self._name(token, first)
        if token.kind == "sign" and token.text == "::":
            name = self._identifier("the name of an attribute")
            return self._resolved(name, self._scope.attributes, "attribute", token, first)
        if token.kind == "sign" and token.text == "(":
            self._nesting += 1
            if self._nesting > MAX_NESTING:
                raise self._error(token.offset, f"more than {MAX_NESTING} nested parentheses")
            node = self._expression(0)
            self._expect(")")
            self._nesting -= 1
            return _Expression(node.type, node.value, first, self._position, node.parts, node.literal)
        raise self._unexpected(
            token, f"a {self._scope.what}, a number, 'true', 'false', '(', '!', '-' or '::'"
        )

    def _constant(self, type_: Type, constant: int, first: int) -> _Expression:
        literal = constant if type_ == INT else None
        return _Expression(type_, lambda _: constant, first, self._position, literal=literal)

    def _number(self, token: _ConstraintToken) -> int:
        if len(token.text) > MAX_DIGITS:
            raise self._error(token.offset, f"a number of more than {MAX_DIGITS} digits")
        base = _BASES.get(token.text[:2].lower())
        return int(token.text[2:], base) if base else int(token.text)

    def _name(self, token: _ConstraintToken, first: int) -> _Expression:
        names = [token.text]
        while self._next_is("."):
            self._take()
            names.append(self._identifier("a name after '.'"))
        return self._resolved(".".join(names), self._scope.names, self._scope.what, token, first)

    def _resolved(
        self, name: str, known: Mapping[str, tuple[int, Type]], what: str, token: _ConstraintToken, first: int
    ) -> _Expression:
        if name not in known:
            allowed = f"expected one of {', '.join(known)}" if known else f"there is no {what}"
            raise self._error(token.offset, f"no {what} '{name}': {allowed}")
        index, type_ = known[name]
        self._named.append((first, name if token.kind == "word" else f"::{name}"))
        return _Expression(type_, lambda v: v[index], first, self._position)

    def _address(self, token: _ConstraintToken, first: int) -> _Expression:
        self._take()
        text = self._take()
        if text.kind != "string":
            raise self._unexpected(text, "an address in single quotes")
        self._expect(")")
        given = text.text[1:-1]
        try:
            if token.text == "ipv4":
                return self._constant(INT, int(ipaddress.IPv4Address(given)), first)
            if token.text == "ipv6" and "%" not in given:
                return self._constant(INT, int(ipaddress.IPv6Address(given)), first)
            if token.text == "mac" and _MAC.fullmatch(given):
                return self._constant(INT, int(given.replace(":", ""), 16), first)
        except ipaddress.AddressValueError:
            pass
        if token.text not in ("ipv4", "ipv6", "mac"):
            raise self._error(token.offset, f"expected ipv4, ipv6 or mac before '(', not '{token.text}'")
        raise self._error(text.offset, f"'{given[:50]}' is no {token.text} address")

    # ---- types ----

    def _require(self, type_: Type, node: _Expression) -> None:
        if node.type != type_:
            raise self._error(
                self._tokens[node.first].offset, f"expected a {type_}, not a value of type {node.type}"
            )

    def _compare(self, left: _Expression, sign: _ConstraintToken, right: _Expression) -> _Expression:
        compare = _COMPARISONS[sign.text]
        if left.type.kind in _STRINGS or right.type.kind in _STRINGS:
            return self._compare_string(left, sign, right)
        common_type = _common_type(left.type, right.type)
        if common_type is None:
            raise self._error(
                sign.offset, f"'{sign.text}' between different types, {left.type} and {right.type}"
            )
        if sign.text not in ("==", "!=") and common_type.kind not in _ORDERED:
            raise self._error(
                sign.offset, f"'{sign.text}' between values of type {common_type}, which have no order"
            )
        left_value, right_value = _cast(left, common_type), _cast(right, common_type)
        return _Expression(BOOL, lambda v: compare(left_value(v), right_value(v)), left.first, right.last)

    def _compare_string(self, left: _Expression, sign: _ConstraintToken, right: _Expression) -> _Expression:
        string, zero = (left, right) if left.type.kind in _STRINGS else (right, left)
        if zero.literal != 0 or sign.text not in ("==", "!="):
            raise self._error(
                sign.offset, "a string (sdn_string) can only be compared by == or != with 0, the empty string"
            )
        value, kind, equal = string.value, string.type.kind, sign.text == "=="
        # a match is a pair of string and mask; an omitted field has mask 0 and is not the empty string
        if kind == "string":
            return _Expression(BOOL, lambda v: (value(v) == b"") is equal, left.first, right.last)
        return _Expression(
            BOOL, lambda v: (value(v)[0] == b"" and value(v)[1] != 0) is equal, left.first, right.last
        )


def _part(match: Callable[[Values], Value], index: int) -> Callable[[Values], Value]:
    return lambda v: match(v)[index]


def _common_type(left: Type, right: Type) -> Type | None:
    """The type to compare in: int converts to any type with bits, bit<W> to a match of W bits."""
    if left == right:
        return left
    for low, high in ((left, right), (right, left)):
        if low == INT and high.kind in _WITH_BITS:
            return high
        if low.kind == "bit" and high.kind in _MATCHES and low.bits == high.bits:
            return high
    return None


def _cast(node: _Expression, target: Type) -> Callable[[Values], Value]:
    value = node.value
    if node.type == target:
        return value
    full = (1 << target.bits) - 1
    kind = target.kind
    if kind == "bit":
        return lambda v: value(v) & full
    if kind == "range":
        return lambda v: (value(v) & full,) * 2
    length_or_mask = target.bits if kind == "lpm" else full
    return lambda v: (value(v) & full, length_or_mask)


def _conjuncts_of(node: _Expression) -> Iterator[_Expression]:
    if not node.parts:
        yield node
    for part in node.parts:
        yield from _conjuncts_of(part)

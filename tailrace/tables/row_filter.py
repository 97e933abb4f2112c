# SPDX-License-Identifier: Apache-2.0
"""Row filters (--where): parsed here, never evaluated as code.

    filter  = conj { "or" conj }          conj = part { "and" part }
    part    = "not" part | "(" filter ")" | test
    test    = NAME                                            true, not 0 and not empty
            | NAME ("==" | "!=" | "<" | "<=" | ">" | ">=" | "~") WORD
            | NAME "in" WORD                                  a prefix, or low..high
            | NAME "in" "(" WORD { "," WORD } ")"             one of several
            | NAME "has" WORD                                 the field's prefix, mask or range takes it in

NAME is a column or a name inside a cell (a key field, a parameter); the last part of a dotted name is
enough. WORD is a number with or without unit (10KiB, 5us), an address, a prefix, a port by number or by
neighbour, a text, quoted where it holds a blank or one of ()<>=!~,"'. `~` looks for a part of the text, in
any case. A row without the name does not pass a test. `none` is the absent value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tailrace.p4rt.values import Value
from tailrace.spec import SpecError
from tailrace.spec.suggest import expected
from tailrace.tables.compare import MisfitError, passes, truth
from tailrace.tables.listing import Listing, Row

_TOKEN = re.compile(
    r"""\s*(?: (?P<op>==|!=|<=|>=|<|>|~|\(|\)|,)
             | (?P<quoted>"[^"]*"|'[^']*')
             | (?P<word>[^\s()<>=!~,"']+) )""",
    re.VERBOSE,
)
_KEYWORDS = frozenset({"and", "or", "not", "in", "has"})
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "~"})
_SLIPS = {"=": "use ==", "!": "use 'not' or !=", "&": "use 'and'", "|": "use 'or'"}
_MAX_DEPTH = 100
"""Of parentheses and nots: far more than users write, far less than Python's stack."""


class RowFilterError(SpecError):
    """A filter that cannot be used. str() is one line that names the column, counted from 1."""

    def __init__(self, problem: str, text: str, position: int) -> None:
        super().__init__(f"--where, column {position + 1}: {problem}: {text}")
        self.position = position


@dataclass(frozen=True, slots=True)
class _FilterToken:
    """`kind`: op, word, quoted, keyword or end."""

    kind: str
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One comparison; `op` is empty for a bare name."""

    name: str
    op: str
    operands: tuple[str, ...]
    name_at: int
    operand_at: int


@dataclass(frozen=True, slots=True)
class _Not:
    part: _Node


@dataclass(frozen=True, slots=True)
class _All:
    parts: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Any:
    parts: tuple[_Node, ...]


_Node = _Comparison | _Not | _All | _Any


class RowFilter:
    """A parsed filter."""

    def __init__(self, text: str) -> None:
        """Parses. Raises RowFilterError."""
        self.text = text
        self._tree = _FilterParser(text).parse()

    def apply(self, listing: Listing) -> Listing:
        """The listing with only the rows that pass.

        Raises:
            RowFilterError: the listing has no such column, or the value is not of the column's type (such as
                an invalid address): an empty result would hide such a mistake.
        """
        known = {column.name for column in listing.columns} | listing.names
        fits: dict[_Comparison, bool] = {}
        for test in _tests(self._tree):
            self._check_name(test, known)
        rows = [row for row in listing.rows if self._passes(self._tree, row, fits)]
        for test, fit in fits.items():
            if not fit:
                kind = f"{test.name} cannot be compared by {test.op} with {' '.join(test.operands)!r}"
                raise RowFilterError(kind, self.text, test.operand_at)
        return listing.replace_rows(rows)

    def _check_name(self, test: _Comparison, known: set[str]) -> None:
        if any(name == test.name or name.endswith("." + test.name) for name in known):
            return
        inner = test.name.partition(".")[2]
        if inner and any(name == inner or name.endswith("." + inner) for name in known):
            return
        hint = expected(test.name, sorted(known))
        raise RowFilterError(f"no field {test.name!r}; {hint}", self.text, test.name_at)

    def _passes(self, node: _Node, row: Row, fits: dict[_Comparison, bool]) -> bool:
        if isinstance(node, _Not):
            return not self._passes(node.part, row, fits)
        if isinstance(node, _All):
            return all(self._passes(part, row, fits) for part in node.parts)
        if isinstance(node, _Any):
            return any(self._passes(part, row, fits) for part in node.parts)
        values = list(_lookup(row, node.name))
        if not node.op:
            return any(truth(value) for value in values)
        return any(self._test(node, value, fits) for value in values)

    @staticmethod
    def _test(test: _Comparison, value: Value, fits: dict[_Comparison, bool]) -> bool:
        try:
            result = passes(value, test.op, test.operands)
        except MisfitError:
            fits.setdefault(test, False)
            return False
        if value is not None and value != ():  # which fit any word
            fits[test] = True
        return result


def _tests(node: _Node) -> Iterator[_Comparison]:
    if isinstance(node, _Comparison):
        yield node
    elif isinstance(node, _Not):
        yield from _tests(node.part)
    else:
        for part in node.parts:
            yield from _tests(part)


def _lookup(row: Row, name: str) -> Iterator[Value]:
    """The values of a name in a row: of the column, else of every cell that has such a name inside."""
    if name in row:
        yield row[name]
        return
    column, _, inner = name.partition(".")
    cells = [row[column]] if inner and column in row else list(row.values())
    wanted = inner if inner and column in row else name
    for cell in cells:
        for part in cell if isinstance(cell, tuple) else (cell,):
            if isinstance(part, Mapping):
                yield from (
                    value for key, value in part.items() if key == wanted or key.endswith("." + wanted)
                )


class _FilterParser:
    """Recursive descent over the tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._next = 0
        self._depth = 0

    def parse(self) -> _Node:
        tree = self._filter()
        if self._peek().kind != "end":
            raise self._error("expected 'and', 'or' or the end", self._peek())
        return tree

    def _split(self) -> list[_FilterToken]:
        tokens, at, text = [], 0, self._text
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                slip = _SLIPS.get(text[at], "an open quote" if text[at] in "\"'" else "not understood")
                raise RowFilterError(f"unexpected {text[at]!r} ({slip})", text, at)
            kind = str(match.lastgroup)
            found, start = match.group(kind), match.start(kind)
            if (kind == "word" and found in _SLIPS) or found in {"&&", "||"}:
                raise RowFilterError(f"unexpected {found!r} ({_SLIPS[found[0]]})", text, start)
            if kind == "word" and found in _KEYWORDS:
                kind = "keyword"
            tokens.append(_FilterToken(kind, found[1:-1] if kind == "quoted" else found, start))
            at = match.end()
        return [*tokens, _FilterToken("end", "the end", len(text))]

    def _peek(self) -> _FilterToken:
        return self._tokens[self._next]

    def _take(self) -> _FilterToken:
        token = self._tokens[self._next]
        self._next += token.kind != "end"
        return token

    def _accept(self, kind: str, *texts: str) -> bool:
        token = self._peek()
        if token.kind == kind and token.text in texts:
            self._next += 1
            return True
        return False

    def _error(self, problem: str, token: _FilterToken) -> RowFilterError:
        return RowFilterError(f"{problem}, found {token.text!r}", self._text, token.position)

    def _chain(self, keyword: str, operand: Callable[[], _Node]) -> list[_Node]:
        parts = [operand()]
        while self._accept("keyword", keyword):
            parts.append(operand())
        return parts

    def _filter(self) -> _Node:
        parts = self._chain("or", self._conjunction)
        return parts[0] if len(parts) == 1 else _Any(tuple(parts))

    def _conjunction(self) -> _Node:
        parts = self._chain("and", self._part)
        return parts[0] if len(parts) == 1 else _All(tuple(parts))

    def _part(self) -> _Node:
        token = self._peek()
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise RowFilterError("nested too deeply", self._text, token.position)
        try:
            if self._accept("keyword", "not"):
                return _Not(self._part())
            if self._accept("op", "("):
                inside = self._filter()
                if not self._accept("op", ")"):
                    raise self._error("expected ')'", self._peek())
                return inside
            return self._test()
        finally:
            self._depth -= 1

    def _test(self) -> _Comparison:
        name = self._take()
        if name.kind != "word":
            raise self._error("expected the name of a field", name)
        op = self._peek()
        if op.kind == "op" and op.text in _COMPARISONS:
            self._take()
            operand = self._operand()
            return _Comparison(name.text, op.text, (operand.text,), name.position, operand.position)
        if self._accept("keyword", "has"):
            operand = self._operand()
            return _Comparison(name.text, "has", (operand.text,), name.position, operand.position)
        if self._accept("keyword", "in"):
            operands = self._operands()
            return _Comparison(
                name.text, "in", tuple(w.text for w in operands), name.position, operands[0].position
            )
        if op.kind in {"word", "quoted"}:
            raise self._error("expected a comparison such as ==", op)
        return _Comparison(name.text, "", (), name.position, name.position)

    def _operand(self) -> _FilterToken:
        token = self._take()
        if token.kind not in {"word", "quoted"}:
            raise self._error("expected a value", token)
        return token

    def _operands(self) -> list[_FilterToken]:
        if not self._accept("op", "("):
            return [self._operand()]
        operands = [self._operand()]
        while self._accept("op", ","):
            operands.append(self._operand())
        if not self._accept("op", ")"):
            raise self._error("expected ',' or ')'", self._peek())
        return operands

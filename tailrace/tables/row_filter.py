# SPDX-License-Identifier: Apache-2.0
"""Row filters (--where), which are parsed here and never evaluated as Python code.

    filter  = conj { "or" conj }          conj = part { "and" part }
    part    = "not" part | "(" filter ")" | test
    test    = NAME                                            not absent, not 0, not empty, not `no`
            | NAME ("==" | "!=" | "<" | "<=" | ">" | ">=" | "~") WORD
            | NAME "in" WORD                                  a prefix, or low..high
            | NAME "in" "(" WORD { "," WORD } ")"             one of several
            | NAME "has" WORD                                 the field's prefix, mask or range contains it

NAME is a column or a name inside a cell (a key field, a parameter); the last part of a dotted name suffices.
WORD is a number with or without unit (10KiB, 5us), an address, a prefix, a port by number or by neighbour, or
a string, quoted if it contains a blank or one of ()<>=!~,"'. `~` looks for a substring, ignoring case. A row
without the name does not pass a test. `none` is the absent value.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

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
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "~")
_SLIPS = {"=": "use ==", "!": "use 'not' or !=", "&": "use 'and'", "|": "use 'or'"}
_MAX_DEPTH = 100
"""The deepest nesting of parentheses and nots: far more than users write, far less than Python's stack
allows.
"""

_Predicate = Callable[[Row], bool]


class RowFilterError(SpecError):
    """An invalid filter. str() is one line with the position in the filter, counted from 1."""

    def __init__(self, problem: str, text: str, position: int) -> None:
        super().__init__(f"--where, column {position + 1}: {problem}: {text}")
        self.position = position


class _Token(NamedTuple):
    """`kind`: op, word, quoted, keyword or end."""

    kind: str
    text: str
    position: int


class _Test:
    """One test of a row; `op` is empty for a bare name.

    fits: whether the operand had the type of a tested value; None: no value decided this yet
    """

    def __init__(self, name: _Token, op: str = "", operands: tuple[_Token, ...] = ()) -> None:
        self.name = name
        self.op = op
        self.operands = operands
        self.fits: bool | None = None
        self._operand_texts = tuple(operand.text for operand in operands)

    def __call__(self, row: Row) -> bool:
        """Whether a row passes."""
        values = _lookup(row, self.name.text)
        return any(self._passes(value) if self.op else truth(value) for value in values)

    def _passes(self, value: Value) -> bool:
        try:
            result = passes(value, self.op, self._operand_texts)
        except MisfitError:
            self.fits = self.fits or False
            return False
        if value is not None and value != ():  # absent and empty values fit any operand
            self.fits = True
        return result


class RowFilter:
    """A parsed filter."""

    def __init__(self, text: str) -> None:
        """Parses the filter. Raises RowFilterError."""
        self.text = text
        parser = _FilterParser(text)
        self._passes = parser.parse()
        self._tests = parser.tests

    @property
    def names(self) -> set[str]:
        """The names that the filter tests."""
        return {test.name.text for test in self._tests}

    def apply(self, listing: Listing) -> Listing:
        """The listing with only the rows that pass.

        Raises:
            RowFilterError: the listing has no such column, or an operand is not of the column's type (such as
                an invalid address): an empty result would hide such a mistake.
        """
        known = {column.name for column in listing.columns} | listing.names
        for test in self._tests:
            self._check_name(test.name, known)
            test.fits = None
        rows = [row for row in listing.rows if self._passes(row)]
        for test in self._tests:
            if test.fits is False:
                operands = " ".join(operand.text for operand in test.operands)
                problem = f"{test.name.text} cannot be compared by {test.op} with {operands!r}"
                raise RowFilterError(problem, self.text, test.operands[0].position)
        return listing.replace_rows(rows)

    def _check_name(self, token: _Token, known: set[str]) -> None:
        name = token.text
        # the second part: the field in a name of the form COLUMN.FIELD
        parts = [part for part in (name, name.partition(".")[2]) if part]
        if not any(full == part or full.endswith("." + part) for full in known for part in parts):
            hint = expected(name, sorted(known))
            raise RowFilterError(f"no field {name!r}; {hint}", self.text, token.position)


def _lookup(row: Row, name: str) -> Iterator[Value]:
    """The value of the column with a name; without such a column, all values with the name inside cells."""
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


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while rest := text[position:].lstrip():
        match = _TOKEN.match(text, position)
        if match is None:
            slip = _SLIPS.get(rest[0], "an open quote" if rest[0] in "\"'" else "not understood")
            raise RowFilterError(f"unexpected {rest[0]!r} ({slip})", text, len(text) - len(rest))
        kind = str(match.lastgroup)
        token, start = match.group(kind), match.start(kind)
        if (kind == "word" and token in _SLIPS) or token in {"&&", "||"}:
            raise RowFilterError(f"unexpected {token!r} ({_SLIPS[token[0]]})", text, start)
        if kind == "word" and token in _KEYWORDS:
            kind = "keyword"
        yield _Token(kind, token[1:-1] if kind == "quoted" else token, start)
        position = match.end()
    yield _Token("end", "the end", len(text))


class _FilterParser:
    """Recursive descent over the tokens; each rule of the grammar returns a predicate on rows."""

    def __init__(self, text: str) -> None:
        self.tests: list[_Test] = []
        self._text = text
        self._rest = deque(_tokens(text))
        self._depth = 0

    def parse(self) -> _Predicate:
        """The predicate of the whole text. Raises RowFilterError."""
        predicate = self._filter()
        self._expect("end", "expected 'and', 'or' or the end")
        return predicate

    def _accept(self, kind: str, *texts: str) -> _Token | None:
        """Takes the next token if it is of this kind, and one of these texts if any are given."""
        token = self._rest[0]
        if token.kind != kind or (texts and token.text not in texts):
            return None
        return self._rest.popleft()

    def _expect(self, kind: str, problem: str, *texts: str) -> _Token:
        token = self._accept(kind, *texts)
        if token is None:
            next_token = self._rest[0]
            raise RowFilterError(f"{problem}, found {next_token.text!r}", self._text, next_token.position)
        return token

    def _filter(self) -> _Predicate:
        parts = [self._conjunction()]
        while self._accept("keyword", "or"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else lambda row: any(part(row) for part in parts)

    def _conjunction(self) -> _Predicate:
        parts = [self._part()]
        while self._accept("keyword", "and"):
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else lambda row: all(part(row) for part in parts)

    def _part(self) -> _Predicate:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise RowFilterError("nested too deeply", self._text, self._rest[0].position)
        try:
            if self._accept("keyword", "not"):
                part = self._part()
                return lambda row: not part(row)
            if self._accept("op", "("):
                inside = self._filter()
                self._expect("op", "expected ')'", ")")
                return inside
            return self._test()
        finally:
            self._depth -= 1

    def _test(self) -> _Test:
        name = self._expect("word", "expected the name of a field")
        op = self._accept("op", *_COMPARISONS) or self._accept("keyword", "has", "in")
        if op is None:
            if self._rest[0].kind in {"word", "quoted"}:
                self._expect("op", "expected a comparison such as ==")
            test = _Test(name)
        else:
            test = _Test(name, op.text, self._operands(several=op.text == "in"))
        self.tests.append(test)
        return test

    def _operands(self, *, several: bool) -> tuple[_Token, ...]:
        if not (several and self._accept("op", "(")):
            return (self._operand(),)
        operands = [self._operand()]
        while self._accept("op", ","):
            operands.append(self._operand())
        self._expect("op", "expected ',' or ')'", ")")
        return tuple(operands)

    def _operand(self) -> _Token:
        return self._accept("quoted") or self._expect("word", "expected a value")

# SPDX-License-Identifier: Apache-2.0
"""The expressions of claims: arithmetic over metrics of runs.

    fct_p99['flowcut'] / fct_p99['ecmp']                     in the case that is being checked
    max(gap['*', 'flowlet']) / min(gap['*', 'flowlet'])      over all cases
    mean(fct_mean['rtt=1,*'])                                over all labels with this prefix
    mean(slowdown_p99_by_size['letflow'])                    over all ranges of flow size (sizes.py)

An index is a scheme's label, or the name of a case (a setting in which schemes are compared) and a label;
`*` matches any string and gives a list.
Arithmetic on lists is element by element; min, max and mean reduce a list to a number. Expressions are parsed
by Python's parser; only the syntax shown here is accepted, and no Python code is executed.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from tailrace.results.statistics import mean
from tailrace.spec import SpecError

Values = Mapping[tuple[str, str], Mapping[str, Any]]
"""Metrics by case and label."""

BY_SIZE = "_by_size"
"""The suffix of metrics that are lists: `m_by_size` is the list of `m_by_size_1`, `m_by_size_2`, ..."""

_MOST_CHARACTERS = 2000
_MOST_LEVELS = 200
"""Maximum depth of nested operations. It prevents a RecursionError, at which Python's limit is not fixed."""

_Result = Any
"""A number, or an array with a number for each selection of seeds (claims.OfSeeds); or a list of these."""

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _reduced(
    of_numbers: Callable[[Sequence[float]], float], of_arrays: str
) -> Callable[[Sequence[Any]], Any]:
    """A function that applies `of_numbers` to numbers, and NumPy's `of_arrays` to arrays, elementwise."""

    def reduced(items: Sequence[Any]) -> Any:
        if not any(hasattr(item, "shape") for item in items):
            return of_numbers(items)
        import numpy as np  # already loaded, since the items are arrays

        return getattr(np, of_arrays)(np.broadcast_arrays(*items), axis=0)

    return reduced


_FUNCTIONS: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "min": _reduced(min, "min"),
    "max": _reduced(max, "max"),
    "mean": _reduced(mean, "mean"),
}


class NotMeasuredError(SpecError):
    """An expression uses a metric, case or label that has no value, or its result is not a finite number."""


def metrics_of(text: str) -> list[str]:
    """The names of the metrics in an expression."""
    return [_name(node.value) for node in ast.walk(_parsed(text)) if isinstance(node, ast.Subscript)]


def names_cases(text: str) -> bool:
    """Whether every index of an expression contains a case, so that its value is the same in all cases."""
    indices = [node.slice for node in ast.walk(_parsed(text)) if isinstance(node, ast.Subscript)]
    return all(isinstance(index, ast.Tuple) for index in indices)


def subtracts(text: str) -> bool:
    """Whether an expression contains a subtraction, so that it can be negative although no metric is."""
    return any(isinstance(node, ast.Sub | ast.USub) for node in ast.walk(_parsed(text)))


def evaluate(text: str, values: Values, case: str) -> Any:
    """The value of an expression in a case: a number, or an array if `values` has arrays.

    Raises:
        NotMeasuredError: a metric, case or label has no value, or the result is not a finite number.
        SpecError: the expression is invalid, or its value is a list.
    """
    tree = checked(text)
    try:
        value = _Evaluation(values, case).of(tree)
    except ZeroDivisionError:
        raise NotMeasuredError(f"{text}: division by zero") from None
    if isinstance(value, list):
        raise SpecError(f"{text!r} is a list; expected min, max or mean of it")
    if type(value) is float and not math.isfinite(value):
        raise NotMeasuredError(f"{text}: not a finite number")
    return value


def checked(text: str) -> ast.expr:
    """The parsed expression. Raises SpecError if the text is not a valid expression."""
    tree = _parsed(text)
    level: list[ast.AST] = [tree]
    for _ in range(_MOST_LEVELS):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise _too_deep(text)
    _check(tree)
    return tree


def _too_deep(text: str) -> SpecError:
    return SpecError(f"{text[:40]!r}… is nested too deeply")


def _parsed(text: str) -> ast.expr:
    if len(text) > _MOST_CHARACTERS:
        raise SpecError(f"an expression of {len(text)} characters, expected at most {_MOST_CHARACTERS}")
    try:
        return ast.parse(text, mode="eval").body
    except (RecursionError, MemoryError):
        raise _too_deep(text) from None
    except (SyntaxError, ValueError) as error:
        raise SpecError(f"{text!r} is not an expression: {error}") from None


def _check(node: ast.expr) -> None:
    """Raises SpecError for the first part that is not accepted."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        _check(node.left)
        _check(node.right)
    elif isinstance(node, ast.Call) and not node.keywords and _name(node.func) in _FUNCTIONS:
        for argument in node.args:
            _check(argument)
        if not node.args:
            raise SpecError(f"{_name(node.func)}(): expected at least one argument")
    elif isinstance(node, ast.Subscript) and _name(node.value):
        _index(node)
    elif not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
        raise SpecError(f"{ast.unparse(node)!r} is not supported; expected metric['label'] and arithmetic")
    elif not math.isfinite(float(str(node.value))):
        raise SpecError(f"{str(node.value)[:40]} is too large for a floating-point number")


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _index(node: ast.Subscript) -> tuple[str | None, str]:
    """The case (None: the index contains none) and the label of an index."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    if len(texts) != len(parts) or not 1 <= len(texts) <= 2:
        raise SpecError(f"{ast.unparse(node)!r}: expected metric['label'] or metric['case', 'label']")
    return (None, texts[0]) if len(texts) == 1 else (texts[0], texts[1])


class _Evaluation:
    """Evaluates checked nodes of an expression in a case."""

    def __init__(self, values: Values, case: str) -> None:
        self._values = values
        self._case = case

    def of(self, node: ast.expr) -> _Result:
        """The value of a node."""
        if isinstance(node, ast.BinOp):
            return _elementwise(_OPERATORS[type(node.op)], self.of(node.left), self.of(node.right))
        if isinstance(node, ast.Call):
            items: list[Any] = []
            for argument in map(self.of, node.args):
                items += argument if isinstance(argument, list) else [argument]
            return _FUNCTIONS[_name(node.func)](items)
        if isinstance(node, ast.Subscript):
            return self._measured(_name(node.value), *_index(node))
        assert isinstance(node, ast.Constant), "_check accepts nothing else"
        return float(str(node.value))

    def _measured(self, metric: str, case: str | None, label: str) -> _Result:
        where = self._case if case is None else case
        if metric.endswith(BY_SIZE):
            return self._by_size(metric, where, label)
        keys = [key for key in self._values if fnmatchcase(key[0], where) and fnmatchcase(key[1], label)]
        values = [self._values[key][metric] for key in keys if metric in self._values[key]]
        if not values or len(values) < len(keys):
            raise NotMeasuredError(f"{metric}['{where}', '{label}'] was not measured")
        return values if "*" in where + label else values[0]

    def _by_size(self, metric: str, case: str, label: str) -> list[Any]:
        metrics = self._values.get((case, label), {})
        values = [metrics[name] for name in metrics if name.startswith(f"{metric}_")]
        if not values:
            raise NotMeasuredError(f"{metric}['{case}', '{label}'] was not measured")
        return values


def _elementwise(compute: Callable[[Any, Any], Any], left: _Result, right: _Result) -> _Result:
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            raise SpecError(f"lists of {len(left)} and {len(right)} values cannot be combined")
        return [compute(a, b) for a, b in zip(left, right, strict=True)]
    if isinstance(left, list):
        return [compute(a, right) for a in left]
    if isinstance(right, list):
        return [compute(left, b) for b in right]
    return compute(left, right)

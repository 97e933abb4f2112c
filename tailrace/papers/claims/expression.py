# SPDX-License-Identifier: Apache-2.0
"""The expressions of claims: arithmetic over metrics of runs.

    fct_p99['flowcut'] / fct_p99['ecmp']                     in the case that is being checked
    max(gap['*', 'flowlet']) / min(gap['*', 'flowlet'])      over all cases
    mean(fct_mean['rtt=1,*'])                                over all labels that begin so
    mean(slowdown_p99_by_size['letflow'])                    over all ranges of flow size (sizes.py)

An index is a scheme's label, or a case's name and a label; `*` stands for any text and makes a list. Lists
are taken element by element in arithmetic and become a number by min, max or mean. Read with Python's own
parser; nothing but what is listed here is let through, and nothing is executed.
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
"""What the names of metrics end in that are lists: `m_by_size` are the values of `m_by_size_1` and so on."""

_MOST_CHARACTERS = 2000
_DEEP = (RecursionError, MemoryError)
"""What Python raises where parts are nested too deeply for it, by where it notices."""

_Result = Any
"""A number, or an array of them, one for each choice of seeds (of_seeds.py); or a list of these."""

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _reduced(
    of_numbers: Callable[[Sequence[float]], float], of_arrays: str
) -> Callable[[Sequence[Any]], Any]:
    """A function of numbers that takes arrays, too, element by element."""

    def reduced(items: Sequence[Any]) -> Any:
        if not any(hasattr(item, "shape") for item in items):
            return of_numbers(items)
        import numpy as np  # there are arrays, so it is loaded already

        return getattr(np, of_arrays)(np.broadcast_arrays(*items), axis=0)

    return reduced


_FUNCTIONS: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "min": _reduced(min, "min"),
    "max": _reduced(max, "max"),
    "mean": _reduced(mean, "mean"),
}


class NotMeasuredError(SpecError):
    """An expression names something for which there is no value."""


def check_expression(text: str) -> None:
    """Raises SpecError where a text is no expression."""
    _checked(text)


def metrics_of(text: str) -> list[str]:
    """The metrics that an expression names."""
    return [_name(node.value) for node in ast.walk(_parsed(text)) if isinstance(node, ast.Subscript)]


def names_cases(text: str) -> bool:
    """Whether every index of an expression names its case, so that it need not be checked for each."""
    indices = [node.slice for node in ast.walk(_parsed(text)) if isinstance(node, ast.Subscript)]
    return all(isinstance(index, ast.Tuple) for index in indices)


def subtracts(text: str) -> bool:
    """Whether an expression can be negative where no metric is."""
    return any(isinstance(node, ast.Sub | ast.USub) for node in ast.walk(_parsed(text)))


def evaluate(text: str, values: Values, case: str) -> Any:
    """The number that an expression means for a case; of values that are arrays, an array.

    Raises:
        NotMeasuredError: a metric, case or label has no value, or no finite number comes of them.
        SpecError: it is no expression, or is a list.
    """
    tree = _checked(text)
    try:
        value = _Evaluation(values, case).of(tree)
    except ZeroDivisionError:
        raise NotMeasuredError(f"{text}: division by zero") from None
    except _DEEP:
        raise _too_deep(text) from None
    if isinstance(value, list):
        raise SpecError(f"{text!r} is a list; expected min, max or mean of it")
    if type(value) is float and not math.isfinite(value):
        raise NotMeasuredError(f"{text}: no finite number")
    return value


def _checked(text: str) -> ast.expr:
    tree = _parsed(text)
    try:
        _check(tree)
    except _DEEP:
        raise _too_deep(text) from None
    return tree


def _too_deep(text: str) -> SpecError:
    return SpecError(f"{text[:40]!r}… is nested too deeply")


def _parsed(text: str) -> ast.expr:
    if len(text) > _MOST_CHARACTERS:
        raise SpecError(f"an expression of {len(text)} characters, expected at most {_MOST_CHARACTERS}")
    try:
        return ast.parse(text, mode="eval").body
    except _DEEP:
        raise _too_deep(text) from None
    except (SyntaxError, ValueError) as error:
        raise SpecError(f"{text!r} is no expression: {error}") from None


def _check(node: ast.expr) -> None:
    """Raises SpecError at the first thing that is not let through."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        _check(node.left)
        _check(node.right)
    elif isinstance(node, ast.Call) and not node.keywords and _name(node.func) in _FUNCTIONS:
        for argument in node.args:
            _check(argument)
        if not node.args:
            raise SpecError(f"{_name(node.func)}() of nothing")
    elif isinstance(node, ast.Subscript) and _name(node.value):
        _index(node)
    elif not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
        raise SpecError(f"{ast.unparse(node)!r} means nothing here; expected metric['label'] and arithmetic")
    elif not math.isfinite(float(str(node.value))):
        raise SpecError(f"{str(node.value)[:40]} is larger than any number here")


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _index(node: ast.Subscript) -> tuple[str | None, str]:
    """Case, None where there is none, and label of an index."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    if len(texts) != len(parts) or not 1 <= len(texts) <= 2:
        raise SpecError(f"{ast.unparse(node)!r}: expected metric['label'] or metric['case', 'label']")
    return (None, texts[0]) if len(texts) == 1 else (texts[0], texts[1])


class _Evaluation:
    """Values of checked nodes."""

    def __init__(self, values: Values, case: str) -> None:
        self._values = values
        self._case = case

    def of(self, node: ast.expr) -> _Result:
        if isinstance(node, ast.BinOp):
            return _elementwise(_OPERATORS[type(node.op)], self.of(node.left), self.of(node.right))
        if isinstance(node, ast.Call):
            items: list[Any] = []
            for argument in map(self.of, node.args):
                items += argument if isinstance(argument, list) else [argument]
            return _FUNCTIONS[_name(node.func)](items)
        if isinstance(node, ast.Subscript):
            return self._measured(_name(node.value), *_index(node))
        assert isinstance(node, ast.Constant), "_check lets nothing else through"
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
            raise SpecError(f"lists of {len(left)} and {len(right)} values do not go together")
        return [compute(a, b) for a, b in zip(left, right, strict=True)]
    if isinstance(left, list):
        return [compute(a, right) for a in left]
    if isinstance(right, list):
        return [compute(left, b) for b in right]
    return compute(left, right)

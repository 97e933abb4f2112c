# SPDX-License-Identifier: Apache-2.0
"""Compares typed values with operands that a user wrote."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Any, TypeVar

from tailrace.p4rt.values import Interval, Mac, Masked, SwitchPort, Value, Wide, number_of, text_of
from tailrace.spec.errors import Error, UnitError
from tailrace.spec.units import parse_bytes, parse_rate_bps, parse_time_ns

T = TypeVar("T")

NONE = "none"
_YES_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_RANGE = ".."


class MisfitError(Error, ValueError):
    """The operand does not have the type of the value, or the type does not support the operator."""


def truth(value: Value) -> bool:
    """The result of a filter that is only a name: whether the value exists and is not 0, empty or `no`."""
    if isinstance(value, (Mac, SwitchPort, Wide, Masked)):
        return value.number != 0
    return bool(value)


def passes(value: Value, op: str, operands: tuple[str, ...]) -> bool:
    """Whether a value passes a test.

    Args:
        value: a value from a row.
        op: ==, !=, <, <=, >, >=, ~, in, has.
        operands: one operand; several only for `in`.

    Raises:
        MisfitError: the comparison has no meaning.
    """
    if op == "~":
        return operands[0].lower() in text_of(value).lower()
    if op == "has":
        return _has(value, operands[0])
    if op == "in":
        return _any_fitting(operands, lambda operand: _within(value, operand))
    if value is None or operands[0].lower() == NONE:
        # only == and != compare an absent value, which equals `none` alone
        return (
            (op == "==") == (value is None and operands[0].lower() == NONE) if op in {"==", "!="} else False
        )
    if isinstance(value, tuple):
        if op == "!=":
            return not passes(value, "==", operands)
        return _any_fitting(value, lambda part: passes(part, op, operands))
    left, right = _pair(value, operands[0], ordered=op not in {"==", "!="})
    return _OPERATORS[op](left, right)


def _any_fitting(items: tuple[T, ...], test: Callable[[T], bool]) -> bool:
    """Whether any part of a value, or any operand, passes; raises MisfitError if the types of none match."""
    fits = not items
    for item in items:
        try:
            if test(item):
                return True
            fits = True
        except MisfitError:
            continue
    if not fits:
        raise MisfitError("fits none")
    return False


def _within(value: Value, operand: str) -> bool:
    """`in`: whether the operand contains the value."""
    if value is None:
        return operand.lower() == NONE
    if isinstance(value, tuple):
        return _any_fitting(value, lambda part: _within(part, operand))
    if isinstance(value, (IPv4Address, IPv6Address, IPv4Network, IPv6Network)) and _RANGE not in operand:
        outer = _network(value.version, operand)
        return bool(ip_network(value).subnet_of(outer))
    low, dots, high = operand.partition(_RANGE)
    if not dots:
        left, right = _pair(value, operand, ordered=False)
        return bool(left == right)
    left, least = _pair(value, low, ordered=True)
    most = _pair(value, high, ordered=True)[1]
    return bool(least <= left <= most)


def _has(value: Value, operand: str) -> bool:
    """`has`: whether a match field matches the operand; a don't-care field matches everything."""
    if value is None:
        return True
    if isinstance(value, tuple):
        return _any_fitting(value, lambda part: _has(part, operand))
    if isinstance(value, (IPv4Network, IPv6Network)):
        return bool(_network(value.version, operand).subnet_of(value))  # both have the same version
    if isinstance(value, Masked):
        return value.covers(number_of(_pair(value.value, operand, ordered=False)[1]))
    if isinstance(value, Interval):
        return value.covers(number_of(_pair(value.low, operand, ordered=False)[1]))
    left, right = _pair(value, operand, ordered=False)
    return bool(left == right)


def _network(version: int, operand: str) -> Any:
    try:
        return IPv4Network(operand, strict=False) if version == 4 else IPv6Network(operand, strict=False)
    except ValueError as error:
        raise MisfitError(operand) from error


def _pair(value: Value, operand: str, *, ordered: bool) -> tuple[Any, Any]:
    """The value, and the operand converted to a comparable type."""
    try:
        if isinstance(value, bool):
            return value, _YES_NO[operand.lower()]
        if isinstance(value, (int, float)):
            return value, parse_number(operand)
        if isinstance(value, SwitchPort):
            return _port_pair(value, operand, ordered=ordered)
        if isinstance(value, Wide):
            return value, Wide(int(operand, 0))
        if isinstance(value, (Mac, IPv4Address, IPv6Address)):
            return value, Mac.parse(operand) if isinstance(value, Mac) else type(value)(operand)
        if isinstance(value, (IPv4Network, IPv6Network)):
            return value, _network(value.version, operand)
    except (ValueError, KeyError) as error:
        raise MisfitError(operand) from error
    if ordered and not isinstance(value, str):
        raise MisfitError(operand)
    return text_of(value).casefold(), operand.casefold()


def _port_pair(value: SwitchPort, operand: str, *, ordered: bool) -> tuple[Any, Any]:
    if operand.isdecimal():
        return value.number, int(operand)
    if ordered:
        raise MisfitError(operand)
    if ":" in operand:
        return str(value), operand
    return value.peer, operand


def parse_number(operand: str) -> int | float:
    """A number, also hexadecimal, with or without a unit of size, time or rate. Raises ValueError."""
    for read in (partial(int, base=0), float, parse_bytes, parse_time_ns, parse_rate_bps):
        try:
            return read(operand)
        except (UnitError, ValueError):
            continue
    raise ValueError(f"{operand!r} is not a number")

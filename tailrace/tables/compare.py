# SPDX-License-Identifier: Apache-2.0
"""Comparing a typed value with a word that a user wrote."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any

from tailrace.p4rt.values import Interval, Mac, Masked, SwitchPort, Value, Wide, number_of, text_of
from tailrace.spec.errors import Error, UnitError
from tailrace.spec.units import parse_bytes, parse_rate_bps, parse_time_ns

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
    """The word is no value of the field's kind, or the kind does not know the operator."""


def truth(value: Value) -> bool:
    """What a bare name means: there, not 0, not empty, not no."""
    if isinstance(value, (Mac, SwitchPort, Wide, Masked)):
        return value.number != 0
    return bool(value)


def passes(value: Value, op: str, words: tuple[str, ...]) -> bool:
    """Whether a value passes a test.

    Args:
        value: of a row.
        op: ==, !=, <, <=, >, >=, ~, in, has.
        words: several only for `in`.

    Raises:
        MisfitError: the comparison has no meaning.
    """
    if op == "~":
        return words[0].lower() in text_of(value).lower()
    if op == "has":
        return _has(value, words[0])
    if op == "in":
        return _passes_any(value, words)
    if value is None or words[0].lower() == NONE:
        return (op == "==") == (value is None and words[0].lower() == NONE) if op in {"==", "!="} else False
    if isinstance(value, tuple):
        if op == "!=":
            return not passes(value, "==", words)
        return _any_part(value, lambda part: passes(part, op, words))
    left, right = _pair(value, words[0], ordered=op not in {"==", "!="})
    return _OPERATORS[op](left, right)


def _any_part(parts: tuple[Value, ...], test: Callable[[Value], bool]) -> bool:
    """Whether a part passes; MisfitError only when the word fits no part."""
    fits = not parts
    for part in parts:
        try:
            if test(part):
                return True
            fits = True
        except MisfitError:
            continue
    if not fits:
        raise MisfitError("fits no part")
    return False


def _passes_any(value: Value, words: tuple[str, ...]) -> bool:
    """`in`: whether one of the words takes the value in; MisfitError when none can."""
    fits = False
    for word in words:
        try:
            if _within(value, word):
                return True
            fits = True
        except MisfitError:
            continue
    if not fits:
        raise MisfitError("fits none")
    return False


def _within(value: Value, word: str) -> bool:
    if value is None:
        return word.lower() == NONE
    if isinstance(value, tuple):
        return _any_part(value, lambda part: _within(part, word))
    if isinstance(value, (IPv4Address, IPv6Address, IPv4Network, IPv6Network)) and _RANGE not in word:
        outer = _network(value.version, word)
        return bool(_as_network(value).subnet_of(outer))
    low, dots, high = word.partition(_RANGE)
    if not dots:
        left, right = _pair(value, word, ordered=False)
        return bool(left == right)
    left, least = _pair(value, low, ordered=True)
    most = _pair(value, high, ordered=True)[1]
    return bool(least <= left <= most)


def _has(value: Value, word: str) -> bool:
    """Whether the field takes the word's value in; a field that does not care takes everything."""
    if value is None:
        return True
    if isinstance(value, tuple):
        return _any_part(value, lambda part: _has(part, word))
    if isinstance(value, (IPv4Network, IPv6Network)):
        return bool(_network(value.version, word).subnet_of(value))  # type of both: the version's
    if isinstance(value, Masked):
        return value.covers(number_of(_pair(value.value, word, ordered=False)[1]))
    if isinstance(value, Interval):
        return value.covers(number_of(_pair(value.low, word, ordered=False)[1]))
    left, right = _pair(value, word, ordered=False)
    return bool(left == right)


def _as_network(value: Any) -> Any:
    if isinstance(value, IPv4Address):
        return IPv4Network(value)
    return IPv6Network(value) if isinstance(value, IPv6Address) else value


def _network(version: int, word: str) -> Any:
    try:
        return IPv4Network(word, strict=False) if version == 4 else IPv6Network(word, strict=False)
    except ValueError as error:
        raise MisfitError(word) from error


def _pair(value: Value, word: str, *, ordered: bool) -> tuple[Any, Any]:
    """The value and the word as two things of one type that can be compared."""
    try:
        if isinstance(value, bool):
            return value, _YES_NO[word.lower()]
        if isinstance(value, (int, float)):
            return value, parse_number(word)
        if isinstance(value, SwitchPort):
            return _port_pair(value, word, ordered=ordered)
        if isinstance(value, Wide):
            return value, Wide(int(word, 0))
        if isinstance(value, (Mac, IPv4Address, IPv6Address)):
            return value, Mac.parse(word) if isinstance(value, Mac) else type(value)(word)
        if isinstance(value, (IPv4Network, IPv6Network)):
            return value, _network(value.version, word)
    except (ValueError, KeyError) as error:
        raise MisfitError(word) from error
    if ordered and not isinstance(value, str):
        raise MisfitError(word)
    return text_of(value).casefold(), word.casefold()


def _port_pair(value: SwitchPort, word: str, *, ordered: bool) -> tuple[Any, Any]:
    if word.isdecimal():
        return value.number, int(word)
    if ordered:
        raise MisfitError(word)
    if ":" in word:
        return str(value), word
    return value.peer, word


def parse_number(word: str) -> int | float:
    """A number, also hexadecimal, with or without a unit of size, time or rate. Raises ValueError."""
    for read in (_plain_int, float, parse_bytes, parse_time_ns, parse_rate_bps):
        try:
            return read(word)
        except (UnitError, ValueError):
            continue
    raise ValueError(f"{word!r} is not a number")


def _plain_int(word: str) -> int:
    return int(word, 0)

# SPDX-License-Identifier: Apache-2.0
"""Expressions at odd widths against Python's unlimited integers.

Each example is a program of many random expressions over fields of random widths, run on many
random values: the compiled C must give what the expression gives in Python, cut to the field.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tailrace.switch.compiler import load_program
from tailrace.switch.core import V1ModelSwitch
from tests.long import times
from tests.switch.bmv2_builder import Builder, assign, const, field, op, pack, unpack

WIDTHS = (
    1,
    2,
    3,
    7,
    8,
    9,
    15,
    16,
    17,
    31,
    32,
    33,
    48,
    63,
    64,
    65,
    100,
    127,
    128,
    129,
    160,
    191,
    192,
    200,
    256,
)
Value = Callable[[Sequence[int]], int]
Number = tuple[dict[str, Any], Value]


def signed(value: int, bits: int) -> int:
    """The low bits of a number as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


class Maker:
    """Random expressions as JSON, together with a Python function of the same meaning."""

    def __init__(self, rng: random.Random, inputs: list[tuple[str, int, bool]]) -> None:
        self.rng = rng
        self.inputs = inputs

    def leaf(self) -> Number:
        if self.rng.random() < 0.25:
            value = self.rng.getrandbits(self.rng.choice(WIDTHS))
            return const(value), lambda v: value
        i = self.rng.randrange(len(self.inputs))
        name, bits, is_signed = self.inputs[i]
        read: Value = (lambda v: signed(v[i], bits)) if is_signed else (lambda v: v[i])
        return field("in", name), read

    def number(self, depth: int) -> Number:
        if depth == 0:
            return self.leaf()
        kind = self.rng.choice(
            [
                "+",
                "-",
                "*",
                "&",
                "|",
                "^",
                "~",
                "<<",
                ">>",
                "/",
                "%",
                "mask",
                "?",
                "two_comp_mod",
                "sat",
                "usat",
            ]
        )
        make = {
            "~": self.invert,
            "<<": self.shift_left,
            ">>": self.shift_right,
            "/": self.divide,
            "%": self.divide,
            "mask": self.mask,
            "?": self.choose,
            "two_comp_mod": self.cast,
            "sat": self.cast,
            "usat": self.cast,
        }.get(kind, self.binary)
        return make(kind, depth)

    def binary(self, kind: str, depth: int) -> Number:
        (a, x), (b, y) = self.number(depth - 1), self.number(depth - 1)
        do: dict[str, Value] = {
            "+": lambda v: x(v) + y(v),
            "-": lambda v: x(v) - y(v),
            "*": lambda v: x(v) * y(v),
            "&": lambda v: x(v) & y(v),
            "|": lambda v: x(v) | y(v),
            "^": lambda v: x(v) ^ y(v),
        }
        return op(kind, a, b), do[kind]

    def invert(self, kind: str, depth: int) -> Number:
        a, x = self.number(depth - 1)
        return op("~", None, a), lambda v: ~x(v)

    def mask(self, kind: str, depth: int) -> Number:
        a, x = self.number(depth - 1)
        bits = self.rng.choice(WIDTHS)
        full = (1 << bits) - 1
        return op("&", a, const(full)), lambda v: x(v) & full

    def amount(self) -> Number:
        """A shift amount: a constant, or a value of few bits."""
        if self.rng.random() < 0.5:
            n = self.rng.choice([0, 1, 7, 8, 31, 63, 64, 65, 127, 130])
            return const(n), lambda v: n
        a, x = self.leaf()
        return op("&", a, const(0xFF)), lambda v: x(v) & 0xFF

    def shift_left(self, kind: str, depth: int) -> Number:
        (a, x), (b, y) = self.number(depth - 1), self.amount()
        return op("<<", a, b), lambda v: x(v) << y(v)

    def shift_right(self, kind: str, depth: int) -> Number:
        (a, x), (b, y) = self.number(depth - 1), self.amount()
        return op(">>", a, b), lambda v: x(v) >> y(v)

    def divide(self, kind: str, depth: int) -> Number:
        """Division of masked operands: P4 has it for non-negative numbers only."""
        bits = self.rng.choice(WIDTHS)
        full = (1 << bits) - 1
        (a, x), (b, y) = self.number(depth - 1), self.leaf()
        left, right = op("&", a, const(full)), op("|", op("&", b, const(full)), const(1))
        if kind == "/":
            return op("/", left, right), lambda v: (x(v) & full) // (y(v) & full | 1)
        return op("%", left, right), lambda v: (x(v) & full) % (y(v) & full | 1)

    def choose(self, kind: str, depth: int) -> Number:
        (a, x), (b, y) = self.number(depth - 1), self.number(depth - 1)
        condition, holds = self.boolean(depth - 1)
        return op("?", a, b, condition), lambda v: x(v) if holds(v) else y(v)

    def cast(self, kind: str, depth: int) -> Number:
        a, x = self.number(depth - 1)
        bits = self.rng.choice(WIDTHS[1:])
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        if kind == "two_comp_mod":
            return op("two_comp_mod", a, const(bits)), lambda v: signed(x(v), bits)
        if kind == "sat":
            return op("sat_cast", a, const(bits)), lambda v: max(low, min(high, x(v)))
        return op("usat_cast", a, const(bits)), lambda v: max(0, min((1 << bits) - 1, x(v)))

    def boolean(self, depth: int) -> tuple[dict[str, Any], Callable[[Sequence[int]], bool]]:
        (a, x), (b, y) = self.number(depth), self.number(max(depth - 1, 0))
        kind = self.rng.choice(["==", "!=", "<", "<=", ">", ">="])
        do: dict[str, Callable[[Sequence[int]], bool]] = {
            "==": lambda v: x(v) == y(v),
            "!=": lambda v: x(v) != y(v),
            "<": lambda v: x(v) < y(v),
            "<=": lambda v: x(v) <= y(v),
            ">": lambda v: x(v) > y(v),
            ">=": lambda v: x(v) >= y(v),
        }
        return op(kind, a, b), do[kind]


def interesting(rng: random.Random, bits: int) -> int:
    """A value that is likely to be near an edge."""
    full = (1 << bits) - 1
    return (
        rng.choice([0, 1, full, full >> 1, (full >> 1) + 1, rng.getrandbits(bits), rng.getrandbits(bits)])
        & full
    )


@pytest.mark.parametrize("seed", range(times(12, 3)))
def test_random_expressions_equal_pythons(seed: int) -> None:
    """60 expressions, depth up to 4, on 40 sets of values each."""
    rng = random.Random(seed)
    inputs = [(f"i{k}", rng.choice(WIDTHS[1:]), rng.random() < 0.3) for k in range(8)]
    outputs = [(f"o{k}", rng.choice(WIDTHS[1:]), rng.random() < 0.3) for k in range(60)]
    maker = Maker(rng, inputs)
    made = [maker.number(rng.randrange(1, 5)) for _ in outputs]
    b = Builder(inputs, outputs)
    b.run([assign(field("out", o[0]), e) for o, (e, _) in zip(outputs, made, strict=True)])
    with V1ModelSwitch(load_program(b.text())) as switch:
        for round_ in range(40):
            values = [interesting(rng, bits) for _, bits, _ in inputs]
            frame = pack(inputs, values) + pack(outputs, [0] * len(outputs))
            switch.inject(1, frame, round_)
            (out,) = switch.outputs()
            got = unpack(outputs, out.data[len(pack(inputs, values)) :])
            for (name, bits, _), (expression, value), g in zip(outputs, made, got, strict=True):
                assert value(values) & ((1 << bits) - 1) == g, (name, bits, values, expression)


def test_a_field_keeps_its_low_bits() -> None:
    """Assignment cuts a sum, a difference and a product to the width of the target, for every width."""
    inputs = [(f"{name}{bits}", bits) for bits in WIDTHS for name in "ab"]
    outputs = [(f"{name}{bits}", bits) for bits in WIDTHS for name in ("sum", "difference", "product")]
    b = Builder(inputs, outputs)
    b.run(
        [
            assign(field("out", f"{name}{bits}"), op(sign, field("in", f"a{bits}"), field("in", f"b{bits}")))
            for bits in WIDTHS
            for name, sign in (("sum", "+"), ("difference", "-"), ("product", "*"))
        ]
    )
    rng = random.Random(1)
    with V1ModelSwitch(load_program(b.text())) as switch:
        for _ in range(50):
            pairs = [(interesting(rng, bits), interesting(rng, bits)) for bits in WIDTHS]
            frame = pack(inputs, [value for pair in pairs for value in pair])
            switch.inject(0, frame + pack(outputs, [0] * len(outputs)), 0)
            (out,) = switch.outputs()
            results = [
                result & (1 << bits) - 1
                for bits, (x, y) in zip(WIDTHS, pairs, strict=True)
                for result in (x + y, x - y, x * y)
            ]
            assert results == unpack(outputs, out.data[len(frame) :])

# SPDX-License-Identifier: Apache-2.0
"""Small finite fields GF(p^n), represented by tables.

Element e of GF(p^n) is a polynomial over GF(p) whose coefficients are the digits of e to base p, lowest
first. Products are taken modulo the first monic irreducible polynomial of degree n, in the order of its
digits.
"""

from __future__ import annotations

from itertools import product

import msgspec

_Polynomial = tuple[int, ...]


class GaloisField(msgspec.Struct, frozen=True):
    """GF(q). `add` and `mul` are its tables, `generator` the smallest primitive element."""

    q: int
    add: tuple[tuple[int, ...], ...]
    mul: tuple[tuple[int, ...], ...]
    generator: int

    def negative(self, element: int) -> int:
        """The additive inverse of an element."""
        return self.add[element].index(0)

    def powers(self) -> tuple[int, ...]:
        """The powers 0 to q - 2 of the generator: every element but 0, once."""
        powers = [1]
        while len(powers) < self.q - 1:
            powers.append(self.mul[powers[-1]][self.generator])
        return tuple(powers)


def prime_power(q: int) -> tuple[int, int] | None:
    """(p, n) if q = p^n for a prime p and n >= 1, else None."""
    if q < 2:
        return None
    p = next((divisor for divisor in range(2, int(q**0.5) + 1) if q % divisor == 0), q)
    n = 0
    while q % p == 0:
        q, n = q // p, n + 1
    return (p, n) if q == 1 else None


def _multiply(a: _Polynomial, b: _Polynomial, p: int) -> list[int]:
    result = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] = (result[i + j] + x * y) % p
    return result


def _remainder(value: list[int], modulus: _Polynomial, p: int) -> _Polynomial:
    """The remainder of the division by a monic polynomial of degree n, as n coefficients."""
    value, degree = value.copy(), len(modulus) - 1
    for top in range(len(value) - 1, degree - 1, -1):
        factor = value[top]
        for i, coefficient in enumerate(modulus):
            value[top - degree + i] = (value[top - degree + i] - factor * coefficient) % p
    return tuple((value + [0] * degree)[:degree])


def _monic(p: int, degree: int) -> list[_Polynomial]:
    return [(*reversed(digits), 1) for digits in product(range(p), repeat=degree)]


def _irreducible(p: int, n: int) -> _Polynomial:
    divisors = [divisor for degree in range(1, n // 2 + 1) for divisor in _monic(p, degree)]
    return next(
        candidate
        for candidate in _monic(p, n)
        if all(any(_remainder(list(candidate), divisor, p)) for divisor in divisors)
    )


def field(q: int) -> GaloisField:
    """GF(q).

    Raises:
        ValueError: q is no power of a prime.
    """
    power = prime_power(q)
    if power is None:
        raise ValueError(f"{q} is no power of a prime")
    p, n = power
    modulus = _irreducible(p, n)
    digits = [tuple(element // p**i % p for i in range(n)) for element in range(q)]
    number = {polynomial: element for element, polynomial in enumerate(digits)}
    add = tuple(
        tuple(number[tuple((x + y) % p for x, y in zip(a, b, strict=True))] for b in digits) for a in digits
    )
    mul = tuple(tuple(number[_remainder(_multiply(a, b, p), modulus, p)] for b in digits) for a in digits)
    generator = next(element for element in range(1, q) if _order(mul, element) == q - 1)
    return GaloisField(q, add, mul, generator)


def _order(mul: tuple[tuple[int, ...], ...], element: int) -> int:
    order, power = 1, element
    while power != 1:
        power, order = mul[power][element], order + 1
    return order

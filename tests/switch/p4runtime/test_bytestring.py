# SPDX-License-Identifier: Apache-2.0
"""Bytestrings against Python integers (SEMANTICS §2 row 16; specification tables 5 and 6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.p4rt.status import Code, P4RtError
from tailrace.switch.p4runtime.entities.bytestring import (
    decode,
    decode_signed,
    encode,
    encode_signed,
    shortest,
)
from tailrace.switch.p4runtime.entities.match import MatchField, MatchKind

BITS = st.integers(1, 140)


@given(st.data(), BITS)
def test_unsigned_round_trip(data, bits):
    """Row 16: the shortest string, and any padding of it, is the value."""
    value = data.draw(st.integers(0, (1 << bits) - 1))
    text = encode(value)
    padded = bytes(data.draw(st.integers(0, 4))) + text
    assert len(text) == max(1, (value.bit_length() + 7) // 8)
    assert decode(padded, bits, "x") == value
    assert shortest(padded) == text
    assert MatchField(1, "x", bits, 0, MatchKind.EXACT).pack(padded) == value.to_bytes((bits + 7) // 8, "big")


@given(st.data(), BITS)
def test_signed_round_trip(data, bits):
    """Row 16: two's complement, the shortest string and any sign extension of it."""
    value = data.draw(st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
    text = encode_signed(value)
    extended = (b"\xff" if value < 0 else b"\0") * data.draw(st.integers(0, 4)) + text
    assert decode_signed(extended, bits, "x") == value


@given(st.binary(max_size=20), BITS)
def test_what_is_out_of_range(data, bits):
    """Row 16: empty or too wide is OUT_OF_RANGE, everything else is accepted."""
    fits = bool(data) and int.from_bytes(data, "big") < 1 << bits
    for parse in (
        lambda: decode(data, bits, "x"),
        lambda: MatchField(1, "x", bits, 0, MatchKind.EXACT).pack(data),
    ):
        if fits:
            parse()
        else:
            with pytest.raises(P4RtError) as error:
                parse()
            assert error.value.code == Code.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("bits", "value", "text"),
    [(8, 99, "63"), (8, -99, "9d"), (12, -739, "fd1d"), (16, 0, "00"), (16, -1, "ff")],
)
def test_signed_examples_of_the_specification(bits, value, text):
    """Row 16: the specification's table of valid encodings."""
    assert encode_signed(value) == bytes.fromhex(text)
    assert decode_signed(bytes.fromhex(text), bits, "x") == value


@pytest.mark.parametrize(("bits", "text"), [(8, "009d"), (12, "8d1d"), (16, "")])
def test_invalid_signed_examples_of_the_specification(bits, text):
    """Row 16: the specification's table of invalid encodings."""
    with pytest.raises(P4RtError):
        decode_signed(bytes.fromhex(text), bits, "x")

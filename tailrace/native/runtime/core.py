# SPDX-License-Identifier: Apache-2.0
"""What all parts of a switch's Python API stand on: the C switch, its errors, its units."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_void_p

from tailrace.native.compiler.model import Model
from tailrace.native.compiler.program import Program
from tailrace.native.runtime import lib
from tailrace.native.runtime.encoding import TargetEncoder
from tailrace.native.runtime.types import ErrorCode, MeterRates, StateError

_CODES: dict[int, tuple[ErrorCode, str]] = {
    lib.EEXIST: ("exists", "exists already"),
    lib.ENOENT: ("not_found", "does not exist"),
    lib.EFULL: ("full", "is full"),
    lib.ERANGE: ("range", "index out of range"),
    lib.EINVAL: ("invalid", "invalid argument"),
    lib.ENOMEM: ("memory", "out of memory"),
}


def checked(result: int, what: str) -> int:
    """A C result that is no error.

    Raises:
        StateError: it is one.
    """
    if result < 0:
        code, text = _CODES[result]
        raise StateError(code, f"{what}: {text}")
    return result


def ps(time_ns: int) -> int:
    """A time or span for the core, in its picoseconds; what is longer than it can count is its longest."""
    return min(time_ns, lib.MAX_NS) * lib.PS_PER_NS


def rates_of(rates: MeterRates | None) -> object:
    """Rates for the core; None: no metering."""
    if rates is None:
        return None
    return byref(lib.CMeterRates(rates.cir, rates.cburst, rates.pir, rates.pburst))


class Core:
    """The C switch, and the program that it runs."""

    handle: c_void_p
    _lib: ctypes.CDLL
    _program: Program | None
    _encode: TargetEncoder

    @property
    def program(self) -> Program | None:
        """The program that is loaded."""
        return self._program

    @property
    def model(self) -> Model:
        """The model of the program.

        Raises:
            StateError: no program is loaded.
        """
        if self._program is None:
            raise StateError("not_found", "no program is loaded")
        return self._program.model

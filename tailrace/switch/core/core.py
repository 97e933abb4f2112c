# SPDX-License-Identifier: Apache-2.0
"""Base of the switch's Python API: calls of the C switch, its error codes and its units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tailrace.spec.constants import PS_PER_NS
from tailrace.switch.compiler.model import Model
from tailrace.switch.compiler.program import SwitchProgram
from tailrace.switch.core.encoding import encode_target
from tailrace.switch.core.lib import MAX_NS, C, ffi
from tailrace.switch.core.types import ErrorCode, MeterRates, StateError, Target

_CODES: dict[int, tuple[ErrorCode, str]] = {
    C.TR_EEXIST: ("exists", "exists already"),
    C.TR_ENOENT: ("not_found", "does not exist"),
    C.TR_EFULL: ("full", "is full"),
    C.TR_ERANGE: ("range", "index out of range"),
    C.TR_EINVAL: ("invalid", "invalid argument"),
    C.TR_ENOMEM: ("memory", "out of memory"),
}


def ps(time_ns: int) -> int:
    """Converts a time or duration to ps, the unit of the core; at most the core's longest time."""
    return min(time_ns, MAX_NS) * PS_PER_NS


def rates_of(rates: MeterRates | None) -> object:
    """Meter rates as an argument of the core's functions; None: no metering."""
    if rates is None:
        return ffi.NULL
    return [(rates.cir, rates.cburst, rates.pir, rates.pburst, rates.eburst)]


class Core:
    """The C switch, and the program that it runs."""

    handle: Any
    """Pointer to the C switch, a ``tr_switch *``; NULL after close."""
    _lib: Any
    _program: SwitchProgram | None

    @property
    def address(self) -> int:
        """The pointer as an integer, for C functions of other bindings."""
        return int(ffi.cast("uintptr_t", self.handle))

    @property
    def program(self) -> SwitchProgram | None:
        """The loaded program; None: no program is loaded."""
        return self._program

    @property
    def model(self) -> Model:
        """The model of the loaded program.

        Raises:
            StateError: no program is loaded.
        """
        if self._program is None:
            raise StateError("not_found", "no program is loaded")
        return self._program.model

    def _encode(self, target: Target) -> list[tuple[Any, ...]]:
        """The action, member or group to which a table entry refers, for the core."""
        return encode_target(self.model, target)

    def _do(self, what: str, call: Callable[..., int], *arguments: object) -> int:
        """Calls a C function that can fail; `what` names the object of the call, for error messages.

        Raises:
            StateError: the call failed, or a number does not fit its C type.
        """
        try:
            result: int = call(self.handle, *arguments)
        except OverflowError:
            raise StateError("range", f"{what}: number out of range") from None
        if result < 0:
            code, text = _CODES[result]
            raise StateError(code, f"{what}: {text}")
        return result

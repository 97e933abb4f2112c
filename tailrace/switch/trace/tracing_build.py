# SPDX-License-Identifier: Apache-2.0
"""A program of glass in this process."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from tailrace.switch.compiler.coverage_points import Uses
from tailrace.switch.compiler.program import Program
from tailrace.switch.core.lib import ffi, load
from tailrace.switch.trace.field_layout import Places
from tailrace.switch.trace.records import Reader, Written, nothing_written

KEPT = 16
"""Programs of which it is kept what their records mean."""


def glass_of(program: Program) -> Glass:
    """The program of glass, made once.

    Raises:
        ProgramError: it cannot be compiled.
    """
    key = (program.library, program.sha256, program.source)
    found = _kept.pop(key, None) or Glass(program)
    _kept[key] = found  # the last one used comes last
    while len(_kept) > KEPT:
        del _kept[next(iter(_kept))]
    return found


class Glass:
    """A program compiled to tell what it does, and what its records mean.

    Raises:
        ProgramError: it cannot be compiled.
    """

    def __init__(self, program: Program) -> None:
        self.program = program.glass()
        self._code = self.program.load()
        self.uses = Uses(program.model)
        # as the switch has it: the same code is loaded once
        self._plain_code = program.load()
        self.plain = _symbol(self._plain_code, "tr_program *", "tr_program_entry")
        self.entry = _symbol(self._code, "tr_program *", "tr_program_entry")
        self._places = Places(program.model, _symbol(self._code, "tr_place *", "tr_program_places"))

    def room(self, words: int) -> Any:
        """Room for so many words of records, and for counts; freed when nobody has it any more, or NULL."""
        core = load()
        made = core.tr_glass_new(words, len(self.uses.all), len(self.program.model.tables))
        return ffi.gc(made, core.tr_glass_free)

    def reader(self, written: Written = nothing_written) -> Reader:
        """Makes steps of the program's records."""
        core = load()

        def drop_name(reason: int) -> str:
            return str(ffi.string(core.tr_drop_name(reason)).decode())

        return Reader(self.program.model, self._places, drop_name, written)


_kept: dict[tuple[Path, str, str], Glass] = {}


def _symbol(code: ctypes.CDLL, kind: str, name: str) -> object:
    return ffi.cast(kind, ctypes.addressof(ctypes.c_char.in_dll(code, name)))

# SPDX-License-Identifier: Apache-2.0
"""Counters, registers, meters and value sets of a switch, by their index in the program's model."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_uint64

from native.compiler.model import limbs_of
from native.runtime.core import Core, checked, rates_of
from native.runtime.encoding import int_to_limbs, limbs_to_int
from native.runtime.types import MeterRates, StateError


class Externs(Core):
    """State that a program reads and writes."""

    def counter_read(self, counter: int, index: int) -> tuple[int, int]:
        """Bytes and packets of a counter's cell."""
        cell = (c_uint64 * 2)()
        rc = self._lib.tr_counter_read(self.handle, counter, index, 1, cell)
        checked(rc, f"counter {counter}[{index}]")
        return cell[0], cell[1]

    def counter_read_all(self, counter: int) -> list[tuple[int, int]]:
        """Bytes and packets of all cells."""
        size = self.model.counters[counter].size
        cells = (c_uint64 * (2 * max(size, 1)))()
        checked(self._lib.tr_counter_read(self.handle, counter, 0, size, cells), f"counter {counter}")
        return [(cells[2 * i], cells[2 * i + 1]) for i in range(size)]

    def counter_write(self, counter: int, index: int, bytes_: int, packets: int) -> None:
        """Sets a counter's cell."""
        rc = self._lib.tr_counter_write(self.handle, counter, index, bytes_, packets)
        checked(rc, f"counter {counter}[{index}]")

    def register_read(self, register: int, index: int) -> int:
        """The number in a register's cell."""
        return self._cells(register, index, 1)[0]

    def register_read_all(self, register: int) -> list[int]:
        """The numbers of all cells."""
        return self._cells(register, 0, self.model.registers[register].size)

    def _cells(self, register: int, first: int, count: int) -> list[int]:
        per_cell = limbs_of(self.model.registers[register].bits)
        limbs = (c_uint64 * max(count * per_cell, 1))()
        rc = self._lib.tr_register_read(self.handle, register, first, count, limbs)
        checked(rc, f"register {register}[{first}]")
        if per_cell == 1:
            return list(limbs[:count])
        return [limbs_to_int(limbs[i * per_cell : (i + 1) * per_cell]) for i in range(count)]

    def register_write(self, register: int, index: int, value: int) -> None:
        """Sets a register's cell.

        Raises:
            StateError: index or value out of range.
        """
        limbs = int_to_limbs(value, self.model.registers[register].bits)
        array = (c_uint64 * len(limbs))(*limbs)
        rc = self._lib.tr_register_write(self.handle, register, index, array)
        checked(rc, f"register {register}[{index}]")

    def register_reset(self, register: int) -> None:
        """Sets all cells to zero."""
        checked(self._lib.tr_register_reset(self.handle, register), f"register {register}")

    def meter_set(self, meter: int, index: int, rates: MeterRates | None) -> None:
        """Configures a meter's cell; None: every packet is green."""
        rc = self._lib.tr_meter_write(self.handle, meter, index, rates_of(rates))
        checked(rc, f"meter {meter}[{index}]")

    def vset_set(self, vset: int, members: Sequence[tuple[bytes, bytes]]) -> None:
        """Replaces the members of a value set: packed (value, mask) pairs."""
        values = b"".join(v for v, _ in members)
        masks = b"".join(m for _, m in members)
        expected = len(members) * self.model.vsets[vset].key_bytes
        if len(values) != expected or len(masks) != expected:
            raise StateError("invalid", f"value set {vset}: members have the wrong length")
        rc = self._lib.tr_vset_write(self.handle, vset, values, masks, len(members))
        checked(rc, f"value set {vset}")

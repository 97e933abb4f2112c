# SPDX-License-Identifier: Apache-2.0
"""Counters, registers, meters and value sets of a switch, identified by index in the program's model.

`Core._do(what, function, ...)` calls a C function; StateError if that fails, with `what` as its subject.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tailrace.switch.compiler.model import limbs_of
from tailrace.switch.core.core import Core, rates_of
from tailrace.switch.core.encoding import int_to_limbs, limbs_to_int
from tailrace.switch.core.lib import ffi
from tailrace.switch.core.types import COLOUR_NUMBERS, ColourCounts, MeterRates, StateError

MAX_CELLS = 4096
"""Maximum number of cells in one call. The call has the switch's lock for some 10 us, while packets wait."""

Raw = Any
"""Several 64-bit integers: a C array ``uint64_t[]``, or a sequence of int."""


def cell_ranges(size: int, most: int = MAX_CELLS) -> Iterator[tuple[int, int]]:
    """Splits an array of `size` cells into ranges of at most `most`: (first index, count) of each."""
    for first in range(0, size, most):
        yield first, min(most, size - first)


class ExternControl(Core):
    """Control of externs. A call for several cells, at most `MAX_CELLS`, reads or writes them atomically."""

    def counter_read(self, counter: int, index: int) -> tuple[int, int]:
        """Bytes and packets of one cell of a counter."""
        return self.counter_cells(counter, index, 1)[0]

    def counter_packets(self, counter: int) -> list[tuple[int, int]]:
        """(index, packets) of each cell of a counter that has counted packets."""
        counted = []
        for first, n in cell_ranges(self.model.counters[counter].size):
            packets = ffi.unpack(self.counter_raw(counter, first, n), 2 * n)[1::2]
            if any(packets):
                counted += [(first + i, count) for i, count in enumerate(packets) if count]
        return counted

    def counter_cells(self, counter: int, first: int, count: int) -> list[tuple[int, int]]:
        """Bytes and packets of `count` cells of a counter, from index `first` on."""
        cells = self.counter_raw(counter, first, count)
        numbers = ffi.unpack(cells, 2 * count)
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def counter_raw(self, counter: int, first: int, count: int) -> Raw:
        """The cells as a C array (bytes, packets, bytes ...), for `counter_store`."""
        cells = ffi.new("uint64_t[]", 2 * count)
        self._do(f"counter {counter}[{first}]", self._lib.tr_counter_read, counter, first, count, cells)
        return cells

    def counter_store(self, counter: int, first: int, cells: Raw) -> None:
        """Sets cells from index `first` on to the bytes and packets in `cells`."""
        self._do(
            f"counter {counter}[{first}]", self._lib.tr_counter_write, counter, first, len(cells) // 2, cells
        )

    def counter_write(self, counter: int, index: int, bytes_: int, packets: int) -> None:
        """Sets one cell of a counter."""
        self.counter_store(counter, index, (bytes_, packets))

    def register_read(self, register: int, index: int) -> int:
        """The value of one cell of a register."""
        return self.register_cells(register, index, 1)[0]

    def register_read_all(self, register: int) -> list[int]:
        """The values of all cells of a register."""
        size = self.model.registers[register].size
        return [cell for first, n in cell_ranges(size) for cell in self.register_cells(register, first, n)]

    def register_cells(self, register: int, first: int, count: int) -> list[int]:
        """The values of `count` cells of a register, from index `first` on."""
        per_cell = limbs_of(self.model.registers[register].bits)
        limbs = self.register_raw(register, first, count)
        numbers: list[int] = ffi.unpack(limbs, per_cell * count)
        if per_cell == 1:
            return numbers
        return [limbs_to_int(numbers[i : i + per_cell]) for i in range(0, len(numbers), per_cell)]

    def register_raw(self, register: int, first: int, count: int) -> Raw:
        """The cells as a C array of 64-bit limbs, for `register_store`."""
        limbs = ffi.new("uint64_t[]", count * limbs_of(self.model.registers[register].bits))
        self._do(f"register {register}[{first}]", self._lib.tr_register_read, register, first, count, limbs)
        return limbs

    def register_store(self, register: int, first: int, limbs: Raw) -> None:
        """Sets cells from index `first` on to the values in `limbs`, which must fit the cells' width."""
        count = len(limbs) // limbs_of(self.model.registers[register].bits)
        self._do(f"register {register}[{first}]", self._lib.tr_register_write, register, first, count, limbs)

    def register_write(self, register: int, index: int, value: int) -> None:
        """Sets one cell of a register.

        Raises:
            StateError: index or value out of range.
        """
        self.register_set_cells(register, index, 1, value)

    def register_set_cells(self, register: int, first: int, count: int, value: int) -> None:
        """Sets `count` cells of a register, from index `first` on, to one value.

        Raises:
            StateError: index or value out of range.
        """
        limbs = int_to_limbs(value, self.model.registers[register].bits)
        self.register_store(register, first, limbs * count)

    def register_reset(self, register: int) -> None:
        """Sets all cells of a register to zero."""
        for first, n in cell_ranges(self.model.registers[register].size):
            self.register_set_cells(register, first, n, 0)

    def meter_cells(self, meter: int, first: int, count: int) -> list[MeterRates | None]:
        """The rates of `count` cells of a meter, from index `first` on; None: the cell has no rates."""
        rates, configured = ffi.new("tr_meter_rates[]", count), ffi.new("uint8_t[]", count)
        self._do(f"meter {meter}[{first}]", self._lib.tr_meter_read, meter, first, count, rates, configured)
        return [
            MeterRates(r.cir, r.cburst, r.pir, r.pburst, r.eburst) if has else None
            for r, has in zip(rates, configured, strict=True)
        ]

    def meter_set(self, meter: int, index: int, rates: MeterRates | None) -> None:
        """Configures one cell of a meter; None: every packet is green.

        A cell that has these rates already keeps its token buckets.
        """
        self.meter_set_cells(meter, index, 1, rates)

    def meter_set_cells(self, meter: int, first: int, count: int, rates: MeterRates | None) -> None:
        """Configures `count` cells of a meter, from index `first` on, with the same rates.

        The counts by colour keep their values.
        """
        self._do(f"meter {meter}[{first}]", self._lib.tr_meter_write, meter, first, count, rates_of(rates))

    def colours_raw(self, meter: int, first: int, count: int) -> Raw:
        """The counts of a meter's cells as a C array, for `colours_store`: `COLOUR_NUMBERS` for each cell."""
        cells = ffi.new("uint64_t[]", COLOUR_NUMBERS * count)
        self._do(f"meter {meter}[{first}]", self._lib.tr_colours_read, meter, first, count, cells)
        return cells

    def colours_cells(self, meter: int, first: int, count: int) -> list[ColourCounts]:
        """The counts of `count` cells of a meter, from index `first` on."""
        numbers = ffi.unpack(self.colours_raw(meter, first, count), COLOUR_NUMBERS * count)
        return [tuple(numbers[i : i + COLOUR_NUMBERS]) for i in range(0, len(numbers), COLOUR_NUMBERS)]

    def colours_store(self, meter: int, first: int, cells: Raw) -> None:
        """Sets the counts of cells of a meter from index `first` on."""
        count = len(cells) // COLOUR_NUMBERS
        self._do(f"meter {meter}[{first}]", self._lib.tr_colours_write, meter, first, count, cells)

    def vset_set(self, vset: int, members: Sequence[tuple[bytes, bytes]]) -> None:
        """Replaces the members of a value set (parser_value_set); a member is a packed (value, mask) pair."""
        values = b"".join(v for v, _ in members)
        masks = b"".join(m for _, m in members)
        expected = len(members) * self.model.vsets[vset].key_bytes
        if len(values) != expected or len(masks) != expected:
            key_bytes = self.model.vsets[vset].key_bytes
            raise StateError("invalid", f"value set {vset}: expected {key_bytes} bytes per value and mask")
        self._do(f"value set {vset}", self._lib.tr_vset_write, vset, values, masks, len(members))

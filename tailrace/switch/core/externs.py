# SPDX-License-Identifier: Apache-2.0
"""Counters, registers, meters and value sets of a switch, by their index in the program's model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tailrace.switch.compiler.model import limbs_of
from tailrace.switch.core.core import Core, rates_of
from tailrace.switch.core.encoding import int_to_limbs, limbs_to_int
from tailrace.switch.core.lib import ffi
from tailrace.switch.core.types import COLOUR_NUMBERS, ColourCounts, MeterRates, StateError

CELLS = 4096
"""Limit of cells that are read or written under one lock: some 10 us."""

Raw = Any
"""64-bit numbers as C has them, ``uint64_t[]``, or a sequence of int."""


def cell_ranges(size: int, most: int = CELLS) -> Iterator[tuple[int, int]]:
    """(first, number) of parts of an array, in order."""
    for first in range(0, size, most):
        yield first, min(most, size - first)


class ExternControl(Core):
    """Control of externs."""

    def counter_read(self, counter: int, index: int) -> tuple[int, int]:
        """Bytes and packets of a counter's cell."""
        return self.counter_cells(counter, index, 1)[0]

    def counter_read_all(self, counter: int) -> list[tuple[int, int]]:
        """Bytes and packets of all cells."""
        size = self.model.counters[counter].size
        return [cell for first, n in cell_ranges(size) for cell in self.counter_cells(counter, first, n)]

    def counter_packets(self, counter: int) -> list[tuple[int, int]]:
        """Index and packets of the cells with packets."""
        counted = []
        for first, n in cell_ranges(self.model.counters[counter].size):
            packets = ffi.unpack(self.counter_raw(counter, first, n), 2 * n)[1::2]
            if any(packets):
                counted += [(first + i, count) for i, count in enumerate(packets) if count]
        return counted

    def counter_cells(self, counter: int, first: int, count: int) -> list[tuple[int, int]]:
        """Bytes and packets of some cells, all at one time; at most `CELLS`, as packets wait meanwhile."""
        cells = self.counter_raw(counter, first, count)
        numbers = ffi.unpack(cells, 2 * count)
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def counter_raw(self, counter: int, first: int, count: int) -> Raw:
        """The raw cells, for `counter_store`."""
        cells = ffi.new("uint64_t[]", 2 * count)
        self._do(f"counter {counter}[{first}]", self._lib.tr_counter_read, counter, first, count, cells)
        return cells

    def counter_store(self, counter: int, first: int, cells: Raw) -> None:
        """Sets cells from `first` on: bytes and packets of each."""
        self._do(
            f"counter {counter}[{first}]", self._lib.tr_counter_write, counter, first, len(cells) // 2, cells
        )

    def counter_write(self, counter: int, index: int, bytes_: int, packets: int) -> None:
        """Sets a counter's cell."""
        self.counter_store(counter, index, (bytes_, packets))

    def register_read(self, register: int, index: int) -> int:
        """The number in a register's cell."""
        return self.register_cells(register, index, 1)[0]

    def register_read_all(self, register: int) -> list[int]:
        """The numbers of all cells."""
        size = self.model.registers[register].size
        return [cell for first, n in cell_ranges(size) for cell in self.register_cells(register, first, n)]

    def register_cells(self, register: int, first: int, count: int) -> list[int]:
        """The numbers of some cells, all at one time; at most `CELLS`, as packets wait meanwhile."""
        per_cell = limbs_of(self.model.registers[register].bits)
        limbs = self.register_raw(register, first, count)
        numbers: list[int] = ffi.unpack(limbs, per_cell * count)
        if per_cell == 1:
            return numbers
        return [limbs_to_int(numbers[i : i + per_cell]) for i in range(0, len(numbers), per_cell)]

    def register_raw(self, register: int, first: int, count: int) -> Raw:
        """The cells as limbs, for `register_store`."""
        limbs = ffi.new("uint64_t[]", count * limbs_of(self.model.registers[register].bits))
        self._do(f"register {register}[{first}]", self._lib.tr_register_read, register, first, count, limbs)
        return limbs

    def register_store(self, register: int, first: int, limbs: Raw) -> None:
        """Sets cells from `first` on: the limbs of each, which must fit its width."""
        count = len(limbs) // limbs_of(self.model.registers[register].bits)
        self._do(f"register {register}[{first}]", self._lib.tr_register_write, register, first, count, limbs)

    def register_write(self, register: int, index: int, value: int) -> None:
        """Sets a register's cell.

        Raises:
            StateError: index or value out of range.
        """
        self.register_set_cells(register, index, 1, value)

    def register_set_cells(self, register: int, first: int, count: int, value: int) -> None:
        """Sets some cells to one number at one time; at most `CELLS`, as packets wait meanwhile.

        Raises:
            StateError: index or value out of range.
        """
        limbs = int_to_limbs(value, self.model.registers[register].bits)
        self.register_store(register, first, limbs * count)

    def register_reset(self, register: int) -> None:
        """Sets all cells to zero."""
        for first, n in cell_ranges(self.model.registers[register].size):
            self.register_set_cells(register, first, n, 0)

    def meter_cells(self, meter: int, first: int, count: int) -> list[MeterRates | None]:
        """The rates of some cells, None where none are set; at most `CELLS`, as packets wait meanwhile."""
        rates, configured = ffi.new("tr_meter_rates[]", count), ffi.new("uint8_t[]", count)
        self._do(f"meter {meter}[{first}]", self._lib.tr_meter_read, meter, first, count, rates, configured)
        return [
            MeterRates(r.cir, r.cburst, r.pir, r.pburst, r.eburst) if has else None
            for r, has in zip(rates, configured, strict=True)
        ]

    def meter_set(self, meter: int, index: int, rates: MeterRates | None) -> None:
        """Configures a meter's cell; None: every packet is green.

        A cell that has these rates already keeps its state.
        """
        self.meter_set_cells(meter, index, 1, rates)

    def meter_set_cells(self, meter: int, first: int, count: int, rates: MeterRates | None) -> None:
        """Configures some cells alike; at most `CELLS`, as packets wait meanwhile.

        Their counts stay.
        """
        self._do(f"meter {meter}[{first}]", self._lib.tr_meter_write, meter, first, count, rates_of(rates))

    def colours_raw(self, meter: int, first: int, count: int) -> Raw:
        """The raw counts of some cells of a meter, bytes and packets of green, yellow and red, for
        `colours_store`; at most `CELLS`.
        """
        cells = ffi.new("uint64_t[]", COLOUR_NUMBERS * count)
        self._do(f"meter {meter}[{first}]", self._lib.tr_colours_read, meter, first, count, cells)
        return cells

    def colours_cells(self, meter: int, first: int, count: int) -> list[ColourCounts]:
        """The same, cell by cell."""
        numbers = ffi.unpack(self.colours_raw(meter, first, count), COLOUR_NUMBERS * count)
        return [tuple(numbers[i : i + COLOUR_NUMBERS]) for i in range(0, len(numbers), COLOUR_NUMBERS)]

    def colours_store(self, meter: int, first: int, cells: Raw) -> None:
        """Sets the counts of cells from `first` on."""
        count = len(cells) // COLOUR_NUMBERS
        self._do(f"meter {meter}[{first}]", self._lib.tr_colours_write, meter, first, count, cells)

    def vset_set(self, vset: int, members: Sequence[tuple[bytes, bytes]]) -> None:
        """Replaces the members of a value set: packed (value, mask) pairs."""
        values = b"".join(v for v, _ in members)
        masks = b"".join(m for _, m in members)
        expected = len(members) * self.model.vsets[vset].key_bytes
        if len(values) != expected or len(masks) != expected:
            raise StateError("invalid", f"value set {vset}: members have the wrong length")
        self._do(f"value set {vset}", self._lib.tr_vset_write, vset, values, masks, len(members))

# SPDX-License-Identifier: Apache-2.0
"""The registers, counters, meters and parser value sets that commands write. Each public method carries out a
command, as in `tables`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tailrace.p4rt.by_name import names, parse
from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.fields import data_field, fields_of, original
from tailrace.p4rt.messages import p4d, p4i, p4r
from tailrace.p4rt.switch_cli.handles import Commands, HandleEntry, number
from tailrace.p4rt.switch_cli.tables import TableCommands
from tailrace.spec import SpecError

_PER_US = 1_000_000
"""Rates of simple_switch_CLI are in units per microsecond, those of P4Runtime in units per second."""
_INT64 = (1 << 63) - 1

_Array = p4i.Register | p4i.Counter | p4i.DirectCounter | p4i.Meter | p4i.DirectMeter


class Cells(Commands):
    """Cells of registers, counters and meters, and parser value sets.

    rounded: lines with rates that P4Runtime's integers per second cannot express to within 1 %
    """

    def __init__(self, program: ProgramNames, tables: TableCommands) -> None:
        self._program, self._tables = program, tables
        info = program.info
        self._types = info.type_info
        counters: list[p4i.Counter | p4i.DirectCounter] = [*info.counters, *info.direct_counters]
        meters: list[p4i.Meter | p4i.DirectMeter] = [*info.meters, *info.direct_meters]
        self._counters = names.entities("counter", counters)
        self._meters = names.entities("meter", meters)
        self._cells: dict[int, dict[int | None, HandleEntry]] = defaultdict(
            dict
        )  # by array and index; None: all
        # by array and entry; counter data and meter rates of a table entry
        self._direct: dict[int, dict[int, tuple[HandleEntry, p4r.TableEntry]]] = defaultdict(dict)
        self._rates_of_all: dict[int, p4r.TableEntry] = {}  # by table; also for entries that are added later
        self.rounded: list[int] = []
        # by value set: the line of its last command, and its values
        self._values: dict[int, tuple[int, dict[bytes, None]]] = {}

    def updates(self) -> Iterator[tuple[int, p4r.Update]]:
        """The updates, each with its line; direct counters and meters are added to their table entries."""
        for entries in self._direct.values():
            for table_entry, data in entries.values():
                table_entry.entity.table_entry.MergeFrom(data)
        for table, rates in self._rates_of_all.items():
            for entry in self._tables.entries_of(table):
                if not entry.HasField("meter_config"):
                    entry.MergeFrom(rates)
        for cells in self._cells.values():
            for cell in cells.values():
                yield cell.update(p4r.Update.MODIFY)
        for set_id, (line, values) in self._values.items():
            value_set = p4r.ValueSetEntry(value_set_id=set_id)
            field_id = self._program.value_sets.by_id[set_id].match[0].id
            for value in values:
                value_set.members.add().match.add(field_id=field_id).exact.value = value
            yield HandleEntry(line, p4r.Entity(value_set_entry=value_set)).update(p4r.Update.MODIFY)

    def _write(
        self, info: _Array, index: str, entity: p4r.Entity, direct: p4r.TableEntry | None = None
    ) -> None:
        """Writes a cell: in an indirect array `entity` at `index`; in a direct array `direct`, to the table
        entry with the handle `index`.
        """
        if isinstance(info, (p4i.DirectCounter, p4i.DirectMeter)):
            assert direct is not None
            table_entry = self._tables.entry_of(
                self._program.table(self._program.table_names.full(info.direct_table_id)), index
            )
            self._direct[info.preamble.id][id(table_entry)] = table_entry, direct
            return
        cell_index = number(index, "index", info.size - 1)
        getattr(entity, str(entity.WhichOneof("entity"))).index.index = cell_index
        self._cells[info.preamble.id][cell_index] = HandleEntry(self.line, entity)

    def _reset(self, array: int) -> None:
        self._cells.pop(array, None)
        self._direct.pop(array, None)

    def write_register(self, register: str, index: str, value: str) -> None:
        info: p4i.Register = self._program.registers.named(register)
        entry = p4r.RegisterEntry(register_id=info.preamble.id, data=self._data(info, value))
        self._write(info, index, p4r.Entity(register_entry=entry))

    def _data(self, register: p4i.Register, value: str) -> p4d.P4Data:
        spec = original(register.type_spec, self._types)
        kind = spec.WhichOneof("type_spec")
        if kind == "bool":
            return p4d.P4Data(bool=bool(number(value, "value", 1)))
        if kind not in ("bitstring", "serializable_enum", "new_type"):
            raise SpecError(f"register {register.preamble.name} has cells of several fields")
        # only here does simple_switch_CLI accept a negative number, as its two's complement
        octets = parse.octets(
            data_field(register.preamble.name, spec, self._types),
            int(value) if re.fullmatch(r"-[0-9]{1,80}", value, re.ASCII) else value,
        )
        return p4d.P4Data(enum_value=octets) if kind == "serializable_enum" else p4d.P4Data(bitstring=octets)

    def reset_register(self, register: str) -> None:
        self._reset(self._program.registers.id_of(register))

    def write_counter(self, counter: str, index: str, packets: str, octets: str) -> None:
        info = self._counters.named(counter)
        data = p4r.CounterData(
            packet_count=number(packets, "packets", _INT64), byte_count=number(octets, "bytes", _INT64)
        )
        entry = p4r.CounterEntry(counter_id=info.preamble.id, data=data)
        self._write(info, index, p4r.Entity(counter_entry=entry), p4r.TableEntry(counter_data=data))

    def reset_counter(self, counter: str) -> None:
        self._reset(self._counters.id_of(counter))

    def set_rates(self, meter: str, index: str, *rates: str) -> None:
        info = self._meters.named(meter)
        config = self._config(rates)
        entry = p4r.MeterEntry(meter_id=info.preamble.id, config=config)
        self._write(info, index, p4r.Entity(meter_entry=entry), p4r.TableEntry(meter_config=config))

    def set_all_rates(self, meter: str, *rates: str) -> None:
        info = self._meters.named(meter)
        config = self._config(rates)
        self._reset(info.preamble.id)
        if isinstance(info, p4i.DirectMeter):
            self._rates_of_all[info.direct_table_id] = p4r.TableEntry(meter_config=config)
            return
        cells = p4r.MeterEntry(meter_id=info.preamble.id, config=config)
        self._cells[info.preamble.id][None] = HandleEntry(self.line, p4r.Entity(meter_entry=cells))

    def _config(self, rates: Sequence[str]) -> p4r.MeterConfig:
        """The two rates of a meter, each as RATE:BURST."""
        if len(rates) != 2:
            raise SpecError(f"expected two rates as RATE:BURST, found {len(rates)}")
        (committed, cburst), (peak, pburst) = map(_rate, rates)
        # a rate below 0.5 per second would be rounded to 0
        cir, pir = (max(1, round(rate)) if rate else 0 for rate in (committed, peak))
        if abs(cir - committed) * 100 > committed or abs(pir - peak) * 100 > peak:
            self.rounded.append(self.line)
        return p4r.MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)

    # ---- value sets ----

    def _members_and_value(self, value_set: str, value: str) -> tuple[dict[bytes, None], bytes]:
        """The members so far of a value set with one field, and a value of this field, encoded."""
        info = self._program.value_sets.named(value_set)
        if len(info.match) != 1:
            raise SpecError(f"value set {info.preamble.name} has {len(info.match)} fields, expected 1")
        field = info.match[0]
        _, values = self._values.get(info.preamble.id, (self.line, {}))
        self._values[info.preamble.id] = self.line, values
        return values, parse.octets(fields_of([field], self._types)[field.id], value)

    def add_value(self, value_set: str, value: str) -> None:
        values, octets = self._members_and_value(value_set, value)
        values[octets] = None

    def remove_value(self, value_set: str, value: str) -> None:
        values, octets = self._members_and_value(value_set, value)
        values.pop(octets, None)

    def clear_values(self, value_set: str) -> None:
        self._values.pop(self._program.value_sets.id_of(value_set), None)


def _rate(text: str) -> tuple[float, int]:
    """Parses RATE:BURST: units per second, and the burst."""
    rate, _, burst = text.partition(":")
    try:
        units = float(rate) * _PER_US
    except ValueError:
        units = -1.0
    if not 0 <= units <= _INT64:
        raise SpecError(f"expected RATE:BURST, such as 0.5:100, found {text[:40]!r}")
    return units, number(burst, "burst", _INT64)

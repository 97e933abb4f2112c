# SPDX-License-Identifier: Apache-2.0
"""The counters of a switch as sums by name: `port_tx`, `flowcut_created`, `drops.NO_ROUTE`.

The cells of a counter are summed, except those of the counter of drops, which has a cell for each reason. For
the recirculations of the scheme RLB (docs/schemes/rlb.md) the maximum per packet is computed, too. Trimming:
a full queue cuts a packet to its headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.programs import P4Program

DROPS = "drops"
TRIMS = "trims"
RECIRCULATIONS = "recirculations"
"""A counter of recirculations; its index is the packet's number of earlier recirculations."""

MOST_RECIRCULATIONS = "recirculations_most"
_REASONS = "DropReason_t"


def requests(program: P4Program) -> list[p4r.Entity]:
    """Read requests for all cells of a program's indexed counters."""
    return [
        p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id))
        for counter in program.p4info.counters
    ]


Cell = tuple[str, int, int]
"""Alias of a counter, index of the cell, packets."""


def cells(program: P4Program, entities: Iterable[p4r.Entity]) -> Iterator[Cell]:
    """The cells in the counter entries that a switch has returned for `requests`."""
    names = {counter.preamble.id: counter.preamble.alias for counter in program.p4info.counters}
    for entity in entities:
        entry = entity.counter_entry
        yield names[entry.counter_id], entry.index.index, entry.data.packet_count


def sums(program: P4Program, counted: Iterable[Cell]) -> dict[str, int]:
    """Packets by counter name; drop reasons without packets are left out. `counted` may lack empty cells.

    A counter called DROPS in a program without DropReason_t is a counter as any other.
    """
    aliases = [counter.preamble.alias for counter in program.p4info.counters]
    has_reasons = _REASONS in program.p4info.type_info.serializable_enums
    packets_by_name = {name: 0 for name in aliases if name != DROPS or not has_reasons}
    if RECIRCULATIONS in packets_by_name:
        packets_by_name[MOST_RECIRCULATIONS] = 0
    for name, index, packets in counted:
        if name == RECIRCULATIONS and packets:
            packets_by_name[MOST_RECIRCULATIONS] = max(packets_by_name[MOST_RECIRCULATIONS], index + 1)
        if name in packets_by_name:
            packets_by_name[name] += packets
        elif packets:
            packets_by_name[f"{DROPS}.{drop_reason(program, index)}"] = packets
    return packets_by_name


def drop_reason(program: P4Program, index: int) -> str:
    """The drop reason of a cell of DROPS."""
    return program.enum_name(_REASONS, index)


def trimmed(switches: Iterable[Mapping[str, int]]) -> int | None:
    """Packets trimmed by these switches; None: their programs do not trim."""
    trims = [values[TRIMS] for values in switches if TRIMS in values]
    return sum(trims) if trims else None


def by_reason(drops: Mapping[str, int]) -> dict[str, int]:
    """Drops that a switch counted by reason, as the values of a counter of drops."""
    return {f"{DROPS}.{reason}": packets for reason, packets in drops.items()}


def dropped(switches: Iterable[Mapping[str, int]]) -> int:
    """Packets that the programs of these switches dropped, for any reason."""
    return sum(value for values in switches for name, value in values.items() if name.startswith(f"{DROPS}."))

# SPDX-License-Identifier: Apache-2.0
"""Counters that pass what a message bears: they go on from 0, wherever they are told."""

from __future__ import annotations

from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tests.switch.p4runtime.conftest import Rig, everything_of
from tests.switch.p4runtime.test_externs import counter, modify
from tests.switch.p4runtime.test_streams import idle_entry

MOST = (1 << 63) - 1
FRAME = bytes.fromhex("0000000000050000000000019999") + bytes(46)
PORT = 3
CELL = 2


def asked(rig: Rig) -> list[p4r.Entity]:
    """The requests that tell all counters of one frame and entry."""
    requests = [counter(rig, PORT)] + [p4r.Entity() for _ in range(4)]
    mac = rig.names.id("tables", "mac")
    requests[1].meter_entry.meter_id = rig.names.id("meters", "by_class")
    requests[1].meter_entry.index.index = CELL
    requests[1].meter_entry.counter_data.SetInParent()
    requests[2].table_entry.table_id = requests[3].direct_counter_entry.table_entry.table_id = mac
    requests[2].table_entry.counter_data.SetInParent()
    requests[2].table_entry.meter_counter_data.SetInParent()
    requests[4].direct_meter_entry.table_entry.table_id = mac
    requests[4].direct_meter_entry.counter_data.SetInParent()
    return requests


def counts_of(rig: Rig) -> list[tuple[int, int]]:
    """(bytes, packets) of the counter, the direct counter twice, and the green of meter and direct meter twice."""
    cell, meter, entry, direct, direct_meter = rig.read(*asked(rig))
    counters = [cell.counter_entry.data, entry.table_entry.counter_data, direct.direct_counter_entry.data]
    counters += [meter.meter_entry.counter_data.green, entry.table_entry.meter_counter_data.green]
    counters.append(direct_meter.direct_meter_entry.counter_data.green)
    return [(data.byte_count, data.packet_count) for data in counters]


def test_counters_pass_the_largest_number_of_a_message(rig: Rig) -> None:
    """2^63 - 1 is followed by 0, and 2^64 - 1, too; wildcard Reads and a reconciliation work with such counts."""
    entry = idle_entry(rig, 0)
    entry.entity.table_entry.counter_data.byte_count = MOST - 59
    entry.entity.table_entry.counter_data.packet_count = MOST
    indirect = counter(rig, PORT, MOST)
    indirect.counter_entry.data.byte_count = MOST - 59
    assert rig.write(entry, modify(indirect)) == [Code.OK] * 2
    live = rig.device._live
    assert live is not None
    plan = live.state.tables[rig.names.id("tables", "mac")].plan
    meter = rig.switch.model.meter("AllIngress.by_class").index
    near = (MOST - 59, MOST, 0, 0, 0, 0)

    def pretend() -> None:
        """Clients cannot set what meters have counted."""
        rig.switch.colours_store(meter, CELL, near)
        rig.switch.entry_colours_set(plan.index, 0, near)

    rig.in_server(pretend)
    assert counts_of(rig) == [(MOST - 59, MOST)] * 6
    rig.receive(PORT, FRAME)
    rig.in_server(lambda: rig.switch.colours_store(meter, CELL, (MOST + 1, MOST + 1, 0, 0, 0, 0)))
    assert counts_of(rig) == [(0, 0)] * 6
    rig.receive(PORT, FRAME)
    assert rig.read(
        *everything_of("counter_entry", "direct_counter_entry", "meter_entry", "direct_meter_entry")
    )
    now = counts_of(rig)
    assert now[:3] == [(60, 1)] * 3 and now[4:] == [(60, 1)] * 2
    rig.push("p4rt_all", 5)
    assert counts_of(rig) == now
    cell = rig.switch.model.counter("AllIngress.by_port").index
    rig.in_server(lambda: rig.switch.counter_store(cell, PORT, (2**64 - 60, 2**64 - 1)))
    assert counts_of(rig)[0] == (MOST - 59, MOST)
    rig.receive(PORT, FRAME)
    assert counts_of(rig)[0] == (0, 0)

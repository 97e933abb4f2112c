# SPDX-License-Identifier: Apache-2.0
"""Presto's flowcells (presto/flowcells.p4) in virtual time, and against a model in Python."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.numbers import Opcode
from tests.p4src.flow_hash import flow_hash
from tests.p4src.frames import detoured, roce
from tests.p4src.rig import HOST_PORT, UPLINK_GROUP, UPLINKS, Rig
from tests.p4src.selectors import Presto

CELL_BYTES = 64 * 1024
PAYLOAD_BYTES = 1024
FEW_REMOTE, FEW_GROUP, FEW_PORTS = "10.0.7.2", 9, (5, 3)
ORDER = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.sampled_from(["10.0.2.2", "10.0.2.9", FEW_REMOTE]),
        st.integers(0, 1400),
    ),
    max_size=60,
)


def presto_rig(cell_bytes: int = CELL_BYTES) -> Rig:
    rig = Rig("presto")
    rig.default("flowcell_config", cell_bytes=cell_bytes)
    return rig


def test_cells_of_64_kb_go_round_the_next_hops():
    """A flow alone: as many whole packets as fit into a cell, then the next port, and so on around."""
    frame = roce()
    per_cell = CELL_BYTES // (len(frame) + PAYLOAD_BYTES)
    with presto_rig() as rig:
        ports = [
            rig.forward(HOST_PORT, frame, at, virtual_bytes=PAYLOAD_BYTES).port for at in range(9 * per_cell)
        ]
        assert rig.count("flowcells_created") == 9
    expected = [UPLINKS[cell % len(UPLINKS)] for cell in range(9) for _ in range(per_cell)]
    assert ports == expected


def test_flows_take_turns():
    """Flows to one group share the turn, cell by cell: no two cells in a row go the same way."""
    frame = roce()
    with presto_rig(2 * len(frame)) as rig:
        ports = [rig.forward(HOST_PORT, roce(1000 + flow), flow).port for flow in (0, 1, 0, 2, 1, 2, 0, 2)]
    first, second, third, fourth = UPLINKS
    assert ports == [first, second, first, third, second, third, fourth, first]


@settings(max_examples=60)
@given(ORDER, st.integers(0, 6000))
def test_every_packet_goes_where_the_model_says(order, cell_bytes):
    """Any packets of several flows, groups and sizes, and cells of any size, also none."""
    model = Presto(cell_bytes)
    with presto_rig(cell_bytes) as rig:
        rig.group(FEW_REMOTE, FEW_GROUP, FEW_PORTS)
        for at, (flow, dst, size) in enumerate(order):
            frame = roce(flow, dst=dst, payload=bytes(size))
            group, ports = (FEW_GROUP, FEW_PORTS) if dst == FEW_REMOTE else (UPLINK_GROUP, UPLINKS)
            slot = model.slot(flow_hash(frame), len(frame), group, len(ports))
            assert rig.forward(HOST_PORT, frame, at).port == ports[slot]
            assert rig.count("flowcells_created") == model.created


def test_a_group_that_shrank_is_no_trap():
    """Where a link went away, a cell in the slot that is gone ends, and the turn begins anew."""
    with presto_rig() as rig:
        last = len(UPLINKS) - 1
        rig.set_register("flowcell_turn", UPLINK_GROUP, last)
        assert rig.forward(HOST_PORT, roce(), 0).port == UPLINKS[last]
        rig.route("10.0.2.2", 32, "to_group", group=UPLINK_GROUP, size=last)
        rig.set_register("flowcell_turn", UPLINK_GROUP, last)
        assert rig.forward(HOST_PORT, roce(), 1).port == UPLINKS[0]
        assert rig.register("flowcell_turn", UPLINK_GROUP) == 1


def test_what_is_not_data_fills_no_cell():
    """ACKs of a flow take its ECMP path and leave cells and turns alone."""
    ack = roce(opcode=int(Opcode.ACK), payload=bytes(4))
    with presto_rig(2 * len(roce())) as rig:
        usual = UPLINKS[flow_hash(ack) % len(UPLINKS)]
        first = rig.forward(HOST_PORT, roce(), 0).port
        assert {rig.forward(HOST_PORT, ack, at).port for at in range(1, 9)} == {usual}
        assert rig.forward(HOST_PORT, roce(), 9).port == first
        assert rig.count("flowcells_created") == 1


def test_dropped_packets_fill_no_cell():
    """What is dropped before a path is chosen, such as a control frame from a host, is not part of a cell."""
    with presto_rig(2 * len(roce())) as rig:
        assert rig.send(HOST_PORT, detoured(roce(), 1), 0) == []
        assert rig.send(HOST_PORT, roce(ttl=1), 1) == []
        assert rig.count("flowcells_created") == 0

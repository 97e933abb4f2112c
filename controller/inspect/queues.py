# SPDX-License-Identifier: Apache-2.0
"""What waits at each port, as the program accounts for it, read by packets (`controller.inspect.asking`)."""

from __future__ import annotations

from controller.inspect.answers import parse_queues
from controller.inspect.asking import Asker, answers, require_op
from controller.inspect.errors import NotOfferedError
from controller.inspect.listing import Column, Listing, Row, in_order
from controller.inspect.node import Node
from controller.inspect.tables import read_tables
from controller.inspect.values import Port

COLUMNS = (
    Column("switch", key=True),
    Column("port", key=True),
    Column("egress_queue_bytes"),
    Column("ingress_queue_bytes"),
)
_OP = "READ_PORT"


def read_queues(node: Node, asker: Asker) -> Listing:
    """Bytes that wait to leave by each port, and bytes in the switch that came in by it.

    Raises:
        NotOfferedError: the program does not answer such questions, or no ports are known.
        InspectError: the switch cannot be read.
    """
    require_op(node.program, node.name, node.title, _OP)
    rows: list[Row] = []
    for index, data in answers(asker, node.name, _OP, known_ports(node)).items():
        queues = parse_queues(data, node.name)
        rows.append(
            {
                "switch": node.name,
                "port": Port(index, node.peer_of(index)),
                "egress_queue_bytes": queues.egress_queue_bytes,
                "ingress_queue_bytes": queues.ingress_queue_bytes,
            }
        )
    return Listing("queues", COLUMNS, in_order(COLUMNS, rows))


def known_ports(node: Node) -> list[int]:
    """The ports of the topology; without one, the ports that the tables speak of."""
    if node.peers:
        return sorted(node.peers)
    special, found = node.program.special_ports, set()
    for row in read_tables(node).rows:
        for cell in (row["match"], row["params"]):
            if isinstance(cell, dict):
                found |= {value.number for value in cell.values() if isinstance(value, Port)}
    ports = sorted(found - set(special) - {0})
    if not ports:
        raise NotOfferedError(f"{node.name}: no table names a port; give --topology to name them")
    return ports

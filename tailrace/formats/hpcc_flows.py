# SPDX-License-Identifier: Apache-2.0
"""flow.txt of HPCC's simulator, and ConWeave's without the port.

    2                                   number of flows
    0 5 3 100 200000 2.0                source, destination, priority group, port, bytes, start in s
    0 5 3 200000 2.0                    without port

Nodes are those of topology.txt. Text after the last flow is ignored, as the simulator does. The port has no
effect: source ports are random, and RoCEv2 has one destination port. Starts are rounded to ns. Not supported:
several priority groups; the older form with numbers of packets and end times.
"""

from __future__ import annotations

from tailrace.formats.flow_table import FlowData, FlowTable
from tailrace.formats.registry import Kind, Source, register
from tailrace.spec import SpecError
from tailrace.spec.constants import NS_PER_S
from tailrace.spec.units import MOST_NS


def _recognises(source: Source) -> bool:
    first, *others = source.head or [[]]
    return len(first) == 1 and first[0].isdecimal() and all(len(words) >= 5 for words in others[:1])


def _read(source: Source) -> FlowTable:
    (line, words), *rows = source.lines()
    count = source.number(line, "number of flows", words[0], least=1)
    if len(rows) < count:
        raise source.error("", f"expected {count} flows, found {len(rows)}")
    for line, words in rows[:count]:
        if len(words) not in (5, 6):
            raise source.error(line, "expected source, destination, priority group, port, bytes and start")
        if words[2] != rows[0][1][2]:
            raise source.error(line, f"priority group: not supported: it differs from line {rows[0][0]}")
    return FlowTable(tuple(_flow(source, line, words) for line, words in rows[:count]), by_node=True)


def _flow(source: Source, line: int, words: list[str]) -> FlowData:
    if len(words) == 6 and "." in words[4]:
        raise source.error(line, "not supported: the older form with numbers of packets and end times")
    src, dst, _ = (source.number(line, "number", text) for text in words[:3])
    size_bytes = source.number(line, "bytes", words[-2], least=1)
    start_ns = source.decimal(line, "start", words[-1]) * NS_PER_S
    if start_ns > MOST_NS:
        raise source.error(line, f"start: {words[-1]} s is more than 100 days")
    return FlowData(line, src, dst, size_bytes, round(start_ns))


def _write(table: FlowTable) -> str:
    lines = [str(len(table.flows))]
    for flow in table.flows:
        if flow.after:
            raise SpecError(f"hpcc-flows: cannot be written: flow {len(lines)} starts after other flows")
        start = f"{flow.start_ns // NS_PER_S}.{flow.start_ns % NS_PER_S:09d}"
        lines.append(f"{flow.src} {flow.dst} 3 100 {flow.size_bytes} {start}")
    return "\n".join(lines) + "\n"


register("hpcc-flows", Kind.WORKLOAD, "flow.txt of HPCC and ConWeave", _recognises, _read, _write)

# SPDX-License-Identifier: Apache-2.0
"""flow.txt of HPCC's simulator, and ConWeave's without the port.

    2                                   number of flows
    0 5 3 100 200000 2.0                source, destination, priority group, port, bytes, start in s
    0 5 3 200000 2.0                    without port

Nodes are those of topology.txt. Text after the last flow is ignored, as the simulator does. All flows must
have the same priority group. The port has no effect: the destination port of RoCEv2 is fixed, and source
ports are drawn at random. Starts are rounded to ns. Not supported: the older form with numbers of packets
and end times.
"""

from __future__ import annotations

from tailrace.formats.flow_table import FlowData, FlowTable
from tailrace.formats.registry import Format, Kind, Source, register
from tailrace.spec import SpecError
from tailrace.spec.units import MOST_NS

NAME = "hpcc-flows"

_GROUP = 3
"""The priority group of data in HPCC's and ConWeave's files."""

_PORT = 100
_S = 10**9


def _recognises(source: Source) -> bool:
    head = source.head
    if not head or len(head[0]) != 1 or not head[0][0].isdecimal():
        return False
    return len(head) == 1 or (len(head[1]) >= 5 and head[1][0].isdecimal())


def _read(source: Source) -> FlowTable:
    lines = source.lines()
    line, words = next(lines)
    count = source.number(line, "number of flows", words[0], least=1)
    flows: list[FlowData] = []
    group = ""
    for line, words in lines:
        if len(flows) == count:
            break
        flows.append(_flow(source, line, words))
        if words[2] != (group or words[2]):
            raise source.error(line, f"priority group {words[2][:20]}: all flows must have the same, {group}")
        group = words[2]
    if len(flows) != count:
        raise source.error("", f"expected {count} flows, found {len(flows)}")
    return FlowTable(tuple(flows), by_node=True)


def _flow(source: Source, line: int, words: list[str]) -> FlowData:
    if len(words) not in (5, 6):
        raise source.error(line, "expected source, destination, priority group, port, bytes and start")
    src, dst, _ = (
        source.number(line, name, text) for name, text in zip(("src", "dst", "pg"), words, strict=False)
    )
    if len(words) == 6 and not words[4].isdecimal():
        raise source.error(
            line, "numbers of packets with start and end times: this older form is not supported"
        )
    size_bytes = source.number(line, "bytes", words[-2], least=1)
    return FlowData(line, src, dst, size_bytes, _start_ns(source, line, words[-1]))


def _start_ns(source: Source, line: int, text: str) -> int:
    start_ns = source.decimal(line, "start", text) * _S
    if start_ns > MOST_NS:
        raise source.error(line, f"start: {text} s is more than 100 days")
    return round(start_ns)


def _write(table: FlowTable) -> str:
    lines = [str(len(table.flows))]
    for flow in table.flows:
        if flow.after:
            raise SpecError(f"{NAME}: flow {len(lines)} starts after other flows, which cannot be written")
        start = f"{flow.start_ns // _S}.{flow.start_ns % _S:09d}"
        lines.append(f"{flow.src} {flow.dst} {_GROUP} {_PORT} {flow.size_bytes} {start}")
    return "\n".join(lines) + "\n"


register(Format(NAME, Kind.WORKLOAD, "flow.txt of HPCC and ConWeave", _recognises, _read, _write))

# SPDX-License-Identifier: Apache-2.0
"""topology.txt of HPCC's simulator and those derived from it, such as ConWeave's.

    6 2 5                               numbers of nodes, of switches among them, and of links
    4 5                                 the nodes that are switches
    0 4 100Gbps 1000ns 0.000000         a link: two nodes, rate, delay, error rate

Nodes are numbered from 0; host 3 gets the name h3 and switch 4 the name s4. Text after the last link is
ignored, as the simulator does. Not supported: error rates, hosts with several links, and the form with
NVSwitches (six values in the first line).
"""

from __future__ import annotations

import re

from tailrace.formats.network import LinkData, NetworkData, NodeData
from tailrace.formats.registry import Kind, Source, register
from tailrace.spec import SpecError, UnitError
from tailrace.spec.limits import refuse_above
from tailrace.spec.units import parse_rate_bps, parse_time_ns

_MOST_NODES = 1 << 18
_COUNTS = re.compile(r"[0-9]+ [0-9]+ [0-9]+(?: [0-9]+ [0-9]+ \S+)?")
_LINK = re.compile(r"[0-9]+ [0-9]+ [0-9.]+[KMGT]?(?:bps|b/s) .*", re.IGNORECASE)


def _recognises(source: Source) -> bool:
    first, *others = [" ".join(words) for words in source.head] or [""]
    return _COUNTS.fullmatch(first) is not None and any(map(_LINK.fullmatch, others))


def _read(source: Source) -> NetworkData:
    lines = source.lines()
    (line, counts), (second, switches) = next(lines), next(lines)
    if len(counts) != 3:
        raise source.error(line, "expected 3 numbers; the form with NVSwitches and 6 is not supported")
    nodes, switch_count, link_count = (source.number(line, "count", text, least=1) for text in counts)
    refuse_above(str(source.path), "nodes", nodes, _MOST_NODES)

    def node(line: int, text: str) -> int:
        number = source.number(line, "node", text)
        if number >= nodes:
            raise source.error(line, f"node {number}: there are {nodes} nodes, from 0")
        return number

    names = {node(second, text): f"s{int(text)}" for text in switches}
    if not len(names) == len(switches) == switch_count:
        raise source.error(second, f"expected {switch_count} different switches, found {len(names)}")
    names = {number: names.get(number, f"h{number}") for number in range(nodes)}
    links: list[LinkData] = []
    while len(links) < link_count:
        line, words = next(lines, (0, []))
        if not words:
            raise source.error("", f"expected {link_count} links, found {len(links)}")
        if len(words) != 5:
            raise source.error(line, f"expected nodes, rate, delay, error rate; found {len(words)} values")
        a, b = (names[node(line, text)] for text in words[:2])
        if source.decimal(line, "error rate", words[4]):
            raise source.error(line, "error rate: not supported: losses are --fault drop:rate=0.01")
        try:
            quantities = parse_rate_bps(words[2].replace("b/s", "bps")), parse_time_ns(words[3])
        except UnitError as error:
            raise source.error(line, str(error)) from None
        links.append(LinkData(line, a, 0, b, 0, *quantities))
    rows = [NodeData(name, f"node {number}", number=number) for number, name in names.items()]
    switches_data, hosts = ([row for row in rows if row.name[0] == kind] for kind in "sh")
    return NetworkData(tuple(switches_data), tuple(hosts), tuple(links))


def _write(data: NetworkData) -> str:
    if data.latency_ns:
        raise SpecError("hpcc-topology: switches cannot have a latency (latency=)")
    numbers = {node.name: number for number, node in enumerate((*data.hosts, *data.switches))}
    switches = (str(numbers[switch.name]) for switch in data.switches)
    lines = [f"{len(numbers)} {len(data.switches)} {len(data.links)}", " ".join(switches)]
    for link in data.links:
        lines.append(f"{numbers[link.a]} {numbers[link.b]} {link.rate_bps}bps {link.delay_ns}ns 0")
    return "\n".join(lines) + "\n"


register("hpcc-topology", Kind.TOPOLOGY, "topology.txt of HPCC and ConWeave", _recognises, _read, _write)

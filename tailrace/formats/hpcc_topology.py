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

from tailrace.formats.network import HostData, LinkData, NetworkData, SwitchData
from tailrace.formats.registry import Format, Kind, Source, register
from tailrace.spec import SpecError, UnitError
from tailrace.spec.limits import refuse_above
from tailrace.spec.units import parse_rate_bps, parse_time_ns

NAME = "hpcc-topology"

_LINK_WORDS = 5
_MOST_NODES = 1 << 18
_RATE = re.compile(r"[0-9.]+[KMGT]?(?:bps|b/s)", re.IGNORECASE)


def _recognises(source: Source) -> bool:
    head = source.head
    is_counts = bool(head) and len(head[0]) in (3, 6) and head[0][0].isdecimal() and head[0][1].isdecimal()
    return is_counts and any(len(words) >= 4 and _RATE.fullmatch(words[2]) for words in head[1:])


def _read(source: Source) -> NetworkData:
    lines = source.lines()
    line, counts = next(lines)
    if len(counts) != 3:
        raise source.error(
            line, "expected 3 numbers; the form with NVSwitches, which has 6, is not supported"
        )
    nodes, switch_count, link_count = (
        source.number(line, name, text, least=1)
        for name, text in zip(("nodes", "switches", "links"), counts, strict=True)
    )
    refuse_above(str(source.path), "nodes", nodes, _MOST_NODES)
    line, texts = next(lines)
    switches = {_node(source, line, text, nodes) for text in texts}
    if len(switches) != switch_count or len(texts) != switch_count:
        raise source.error(line, f"expected {switch_count} different switches, found {len(switches)}")
    links: list[LinkData] = []
    for line, words in lines:
        if len(links) == link_count:
            break
        links.append(_link(source, line, words, nodes, switches))
    if len(links) != link_count:
        raise source.error("", f"expected {link_count} links, found {len(links)}")
    hosts = (node for node in range(nodes) if node not in switches)
    return NetworkData(
        tuple(SwitchData(f"s{node}", f"node {node}") for node in sorted(switches)),
        tuple(HostData(f"h{node}", f"node {node}", number=node) for node in hosts),
        tuple(links),
    )


def _node(source: Source, line: int, text: str, nodes: int) -> int:
    node = source.number(line, "node", text)
    if node >= nodes:
        raise source.error(line, f"node {node}: there are {nodes} nodes, from 0")
    return node


def _link(source: Source, line: int, words: list[str], nodes: int, switches: set[int]) -> LinkData:
    if len(words) != _LINK_WORDS:
        raise source.error(line, f"expected two nodes, rate, delay, error rate; found {len(words)} values")
    a, b = (_node(source, line, text, nodes) for text in words[:2])
    try:
        rate_bps = parse_rate_bps(words[2].replace("b/s", "bps"))
        delay_ns = parse_time_ns(words[3])
    except UnitError as error:
        raise source.error(line, str(error)) from None
    if source.decimal(line, "error rate", words[4]):
        reason = "losses are faults, such as --fault drop:rate=0.01"
        raise source.error(line, f"error rate {words[4]} is not supported: {reason}")
    name_a, name_b = (f"{'s' if node in switches else 'h'}{node}" for node in (a, b))
    return LinkData(line, name_a, 0, name_b, 0, rate_bps, delay_ns)


def _write(data: NetworkData) -> str:
    if data.latency_ns:
        raise SpecError(f"{NAME}: switches cannot have a latency (latency=)")
    names = [host.name for host in data.hosts] + [switch.name for switch in data.switches]
    numbers = {name: number for number, name in enumerate(names)}
    switches = (str(numbers[switch.name]) for switch in data.switches)
    lines = [f"{len(names)} {len(data.switches)} {len(data.links)}", " ".join(switches)]
    lines += [
        f"{numbers[link.a]} {numbers[link.b]} {link.rate_bps}bps {link.delay_ns}ns 0" for link in data.links
    ]
    return "\n".join(lines) + "\n"


register(Format(NAME, Kind.TOPOLOGY, "topology.txt of HPCC and ConWeave", _recognises, _read, _write))

# SPDX-License-Identifier: Apache-2.0
"""Graphs of NetworkX, also as node-link JSON (networkx.node_link_data).

    {"directed": false, "multigraph": false, "graph": {},
     "nodes": [{"id": "h1", "role": "host"}, {"id": "s1", "role": "leaf", "group": 0}],
     "edges": [{"source": "h1", "target": "s1", "rate": "100Gbps", "delay": "1us"}]}

Nodes and edges may have the attributes of this project, of FNSS (data centres), or of p4-utils:

* A node is a host if `role` or `type` is "host", or `isHost` is true; other nodes are switches. If no node
  has any of the three, those with an `ip` are hosts. Hosts: `ip` (with a prefix length: the subnet is reached
  directly), `mac`, `defaultRoute` ("via 10.0.1.254"). Switches: see network.py, and `cpu_port_num`.
* An edge has `rate` in bit/s, `bw` in Mb/s, or `capacity` in the graph's `capacity_unit`; `delay` in ns
  or the graph's `delay_unit`; all also as strings with a unit. `port1` is the port of `node1` (by default
  `source`), `port2` that of the other end.

Attributes that would change what the network does are refused (_REFUSED), others ignored. The list of edges
is called `links` in files of NetworkX before 3.4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from tailrace.formats.network import LinkData, NetworkData, NodeData, addresses, attributes, switch_data
from tailrace.formats.registry import Kind, Source, register
from tailrace.spec import SpecError, UnitError
from tailrace.spec.units import parse_rate_bps, parse_time_ns

GRAPH = Source(Path("graph"), "node-link")
"""A graph that is no file, in messages."""

_QUEUES = "queues are limited by the scheme's key queue="
_REFUSED = {
    "loss": "losses are faults, such as --fault drop:rate=0.01",
    "jitter": "links have a fixed delay",
    "max_queue_size": _QUEUES,
    "buffer": _QUEUES,
    "bandwidth": "expected rate in bit/s, or bw in Mb/s",
    "latency": "expected delay, such as 1us",
}
"""Attributes of edges that are not supported, and the reason or the supported name."""


def _recognises(source: Source) -> bool:
    return isinstance(source.json, dict) and "nodes" in source.json


def _read(source: Source) -> NetworkData:
    return _network(source, source.json)


def from_graph(graph: Any) -> NetworkData:
    """The network of a graph of NetworkX; raises SpecError if it is none or has an invalid node or edge."""
    try:
        nodes = [{**attributes, "id": name} for name, attributes in graph.nodes(data=True)]
        edges = [{**attributes, "source": a, "target": b} for a, b, attributes in graph.edges(data=True)]
        document = {"directed": graph.is_directed(), "graph": graph.graph, "nodes": nodes, "edges": edges}
    except (AttributeError, TypeError, ValueError):
        kind = type(graph).__name__
        raise SpecError(f"expected the spec of a topology, or a graph of NetworkX, found {kind}") from None
    return _network(GRAPH, document)


def _network(source: Source, document: Mapping[str, Any]) -> NetworkData:
    """The network in a node-link document."""
    key = "edges" if "edges" in document else "links"
    for each in ("nodes", key):
        if not isinstance(document.get(each), list):
            raise source.error(each, "expected a list")
    if document.get("directed"):
        raise source.error("directed", "links have two directions; expected an undirected graph")
    nodes, edges, graph = document["nodes"], document[key], document.get("graph")
    for where, names, rows in (("nodes", ("id",), nodes), (key, ("source", "target"), edges)):
        for i, row in enumerate(rows):
            if not isinstance(row, dict) or not row.keys() >= {*names}:
                raise source.error(f"{where}[{i}]", f"expected an object with {' and '.join(names)}")
    rules: tuple[Callable[[Any], bool], ...] = (
        lambda node: "host" in (node.get("role"), node.get("type")) or node.get("isHost") is True,
        lambda node: node.get("ip") is not None,
    )
    is_host = next((rule for rule in rules if any(map(rule, nodes))), rules[0])
    hosts = [_host(source, f"nodes[{i}]", node) for i, node in enumerate(nodes) if is_host(node)]
    switches = [_switch(source, f"nodes[{i}]", node) for i, node in enumerate(nodes) if not is_host(node)]
    host_names = {host.name for host in hosts}
    units = graph if isinstance(graph, dict) else {}
    links = []
    for i, edge in enumerate(edges):
        links.append(_link(source, f"{key}[{i}]", edge, host_names, units))
        if edge.get("weight", 1) != edges[0].get("weight", 1):
            raise source.error(f"{key}[{i}].weight", "not supported: it differs; routes count links")
    return NetworkData(tuple(switches), tuple(hosts), tuple(links))


def _name(source: Source, where: str, value: Any) -> str:
    """The name of a node: its id; `n5` for the number 5."""
    if isinstance(value, str) or type(value) is int:
        return f"n{value}" if type(value) is int else str(value)
    raise source.error(where, f"{repr(value)[:40]}: expected a string or a whole number as the name")


def _switch(source: Source, where: str, node: dict[str, Any]) -> NodeData:
    cpu_port = node.get("cpu_port_num", node.get("cpu_port"))
    role = None if node.get("role") == "switch" else node.get("role")
    node = {**node, "role": role, "cpu_port": None if isinstance(cpu_port, bool) else cpu_port}
    return switch_data(source, where, _name(source, where, node["id"]), node)


def _host(source: Source, where: str, node: dict[str, Any]) -> NodeData:
    has_ip, route = node.get("ip") is not None, node.get("defaultRoute")
    ip, subnet, mac = addresses(source, where, node if has_ip else {**node, "ip": ""}, "32")
    routes = [(str(subnet), "")] if subnet is not None and "/" in node["ip"] else []
    if route is not None:
        words = route.split() if isinstance(route, str) else []
        try:
            routes.append(("0.0.0.0/0", str(IPv4Address(words[words.index("via") + 1]))))
        except (ValueError, IndexError):
            raise source.error(f"{where}.defaultRoute", "expected a text such as via 10.0.1.254") from None
    return NodeData(_name(source, where, node["id"]), where, ip=ip, mac=mac, routes=tuple(routes))


def _link(
    source: Source, where: str, edge: dict[str, Any], hosts: set[str], units: dict[str, Any]
) -> LinkData:
    for name, reason in _REFUSED.items():
        if edge.get(name) is not None:
            raise source.error(f"{where}.{name}", f"not supported: {reason}")
    ends = [_name(source, where, edge[key]) for key in ("source", "target")]
    if "node1" in edge and _name(source, where, edge["node1"]) == ends[1]:
        ends.reverse()
    ports: list[int] = []
    for end, name in zip(ends, ("port1", "port2"), strict=True):
        port = None if end in hosts else edge.get(name)
        if port is not None and (type(port) is not int or port < 1):
            raise source.error(f"{where}.{name}", f"{repr(port)[:40]}: ports count from 1")
        ports.append(port or 0)
    rates = {"rate": "bps", "bw": "Mbps", "capacity": units.get("capacity_unit")}
    key = next((key for key in rates if edge.get(key) is not None), "rate")
    if rates[key] is None:
        raise source.error(f"{where}.capacity", "the graph has no capacity_unit; expected rate")
    rate_bps = _quantity(source, f"{where}.{key}", edge.get(key), rates[key], parse_rate_bps)
    unit = units.get("delay_unit", "ns")
    delay_ns = _quantity(source, f"{where}.delay", edge.get("delay"), unit, parse_time_ns)
    return LinkData(where, ends[0], ports[0], ends[1], ports[1], rate_bps, delay_ns)


def _quantity(source: Source, where: str, value: Any, unit: Any, parse: Callable[[str], int]) -> int | None:
    """A quantity as a string with its unit, or as a number of `unit`; rounded to the smallest unit."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = round(value * parse(f"1{unit}"))
        return None if value is None else parse(str(value))
    except (UnitError, OverflowError, ValueError) as error:
        raise source.error(where, str(error)) from None


def _write(data: NetworkData) -> str:
    if data.latency_ns:
        raise SpecError("node-link: switches cannot have a latency (latency=)")
    nodes: list[dict[str, Any]] = []
    for host in data.hosts:
        nodes.append({"id": host.name, "role": "host", "ip": host.ip, "mac": host.mac})
        if host.arp or [prefix for prefix, _ in host.routes[1:]] not in ([], ["0.0.0.0/0"]):
            raise SpecError(f"node-link: host {host.name} has routes or ARP entries besides a default route")
        if host.routes:
            nodes[-1]["ip"] += "/" + host.routes[0][0].partition("/")[2]
        for _, gateway in host.routes[1:]:
            nodes[-1]["defaultRoute"] = f"via {gateway}"
    for switch in data.switches:
        nodes.append({"id": switch.name, **attributes(switch)})
    edges = [
        {"source": link.a, "target": link.b, "rate": link.rate_bps, "delay": link.delay_ns}
        # NetworkX may exchange source and target
        | {"node1": link.a, "node2": link.b, "port1": link.a_port, "port2": link.b_port}
        for link in data.links
    ]
    document = {"directed": False, "multigraph": True, "graph": {}, "nodes": nodes, "edges": edges}
    return json.dumps(document, indent=1) + "\n"


register("node-link", Kind.TOPOLOGY, "node-link JSON of NetworkX", _recognises, _read, _write)

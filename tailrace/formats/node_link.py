# SPDX-License-Identifier: Apache-2.0
"""Graphs of NetworkX, also as node-link JSON (networkx.node_link_data).

    {"directed": false, "multigraph": false, "graph": {},
     "nodes": [{"id": "h1", "role": "host"}, {"id": "s1", "role": "leaf", "group": 0}],
     "edges": [{"source": "h1", "target": "s1", "rate": "100Gbps", "delay": "1us"}]}

Nodes and edges may have the attributes of this project, of FNSS (data centres), or of p4-utils:

* A node is a host if `role` or `type` is "host", or `isHost` is true; other nodes are switches. If no node
  has any of the three, those with an `ip` are hosts. Hosts: `ip` (with a
  prefix length: the subnet is reached directly), `mac`, `defaultRoute` ("via 10.0.1.254").
  Switches: see attributes.py, and `cpu_port_num`.
* An edge has `rate` in bit/s, `bw` in Mb/s, or `capacity` in the graph's `capacity_unit`; `delay` in ns
  or the graph's `delay_unit`; all also as strings with a unit. `port1` is the port of `node1` (by default
  `source`), `port2` that of the other end.

Attributes that would change what the network does and are not supported are refused (_REFUSED); any others
are ignored. The list of edges is called `links` in files of NetworkX before 3.4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Any

from tailrace.formats.attributes import address, mac_address, switch_data
from tailrace.formats.network import HostData, LinkData, NetworkData, Pairs, SwitchData
from tailrace.formats.registry import MOST_SHOWN, Format, Kind, Origin, Source, register
from tailrace.spec import SpecError, UnitError
from tailrace.spec.text import shortened
from tailrace.spec.units import MOST_BPS, MOST_NS, parse_rate_bps, parse_time_ns

NAME = "node-link"
GRAPH = Origin(Path("graph"), NAME)
"""A graph that is no file, in messages."""

_REFUSED = {
    "loss": "losses are faults, such as --fault drop:rate=0.01",
    "max_queue_size": "queues are limited by the scheme's key queue=",
    "jitter": "links have a fixed delay",
    "bandwidth": "expected rate in bit/s, or bw in Mb/s",
    "latency": "expected delay, such as 1us",
    "buffer": "queues are limited by the scheme's key queue=",
}
"""Attributes of edges that are not supported, and the reason or the supported name."""

_MBPS = 10**6


def _recognises(source: Source) -> bool:
    return isinstance(source.json, dict) and "nodes" in source.json


def _read(source: Source) -> NetworkData:
    return _Reader(source, source.json).read()


def from_graph(graph: Any) -> NetworkData:
    """The network of a graph of NetworkX.

    Raises:
        FormatError: an attribute is invalid or not supported; the message names the node or edge by its
        position. SpecError: this is no graph.
    """
    try:
        nodes = [{**attributes, "id": name} for name, attributes in graph.nodes(data=True)]
        edges = [{**attributes, "source": a, "target": b} for a, b, attributes in graph.edges(data=True)]
        document = {"directed": graph.is_directed(), "graph": graph.graph, "nodes": nodes, "edges": edges}
    except (AttributeError, TypeError, ValueError):
        kind = type(graph).__name__
        raise SpecError(f"expected the spec of a topology, or a graph of NetworkX, found {kind}") from None
    return _Reader(GRAPH, document).read()


class _Reader:
    """Reads one document."""

    def __init__(self, origin: Origin, document: Mapping[str, Any]) -> None:
        self._origin = origin
        self._document = document
        attributes = document.get("graph")
        self._graph = attributes if isinstance(attributes, dict) else {}
        self._hosts: set[str] = set()

    def read(self) -> NetworkData:
        if self._document.get("directed"):
            raise self._origin.error("directed", "links have two directions; expected an undirected graph")
        key = "edges" if "edges" in self._document else "links"
        nodes = [self._node(f"nodes[{i}]", node) for i, node in enumerate(self._list("nodes"))]
        is_host = _host_rule([fields for _, fields in nodes])
        self._hosts = {name for name, fields in nodes if is_host(fields)}
        hosts: list[HostData] = []
        switches: list[SwitchData] = []
        for index, (name, fields) in enumerate(nodes):
            where = f"nodes[{index}]"
            if name in self._hosts:
                hosts.append(self._host(where, name, fields))
            else:
                switches.append(self._switch(where, name, fields))
        edges = self._list(key)
        links = tuple(self._link(f"{key}[{index}]", edge) for index, edge in enumerate(edges))
        self._check_weights(key, edges)
        return NetworkData(tuple(switches), tuple(hosts), links)

    def _list(self, key: str) -> list[Any]:
        value = self._document.get(key)
        if not isinstance(value, list):
            raise self._origin.error(key, "expected a list")
        return value

    def _node(self, where: str, node: Any) -> tuple[str, dict[str, Any]]:
        if not isinstance(node, dict) or "id" not in node:
            raise self._origin.error(where, 'expected an object such as {"id": "s1", "role": "leaf"}')
        return self._name(where, node["id"]), node

    def _name(self, where: str, value: Any) -> str:
        """The name of a node: its id; `n5` for the number 5."""
        if isinstance(value, int) and not isinstance(value, bool):
            return f"n{value}"
        if not isinstance(value, str):
            shown = shortened(repr(value), MOST_SHOWN)
            raise self._origin.error(where, f"{shown}: expected a string or a whole number as the name")
        return value

    def _switch(self, where: str, name: str, fields: dict[str, Any]) -> SwitchData:
        cpu_port = fields.get("cpu_port_num", fields.get("cpu_port"))
        fields = {**fields, "cpu_port": None if isinstance(cpu_port, bool) else cpu_port}
        if fields.get("role") == "switch":
            del fields["role"]
        return switch_data(self._origin, where, name, fields)

    def _host(self, where: str, name: str, fields: dict[str, Any]) -> HostData:
        mac = mac_address(self._origin, where, fields.get("mac"))
        if fields.get("ip") is None:
            return HostData(name, where, mac=mac)
        ip, subnet = address(self._origin, where, fields["ip"], "32")
        routes: Pairs = ((str(subnet), ""),) if subnet is not None and "/" in fields["ip"] else ()
        if fields.get("defaultRoute") is not None:
            routes += (("0.0.0.0/0", self._gateway(where, fields["defaultRoute"])),)
        return HostData(name, where, ip=ip, mac=mac, routes=routes)

    def _gateway(self, where: str, route: Any) -> str:
        words = route.split() if isinstance(route, str) else []
        try:
            return str(IPv4Address(words[words.index("via") + 1]))
        except (ValueError, IndexError, AddressValueError):
            shown = shortened(repr(route), MOST_SHOWN)
            raise self._origin.error(
                f"{where}.defaultRoute", f"{shown}: expected 'via' and an address"
            ) from None

    def _link(self, where: str, edge: Any) -> LinkData:
        if not isinstance(edge, dict) or not {"source", "target"} <= edge.keys():
            raise self._origin.error(where, 'expected an object such as {"source": "s1", "target": "s2"}')
        for name, reason in _REFUSED.items():
            if edge.get(name) is not None:
                raise self._origin.error(f"{where}.{name}", f"not supported: {reason}")
        ends = [self._name(where, edge[key]) for key in ("source", "target")]
        if "node1" in edge and self._name(where, edge["node1"]) == ends[1]:
            ends.reverse()
        a, b = ends
        ports = (
            0 if end in self._hosts or edge.get(key) is None else self._port(f"{where}.{key}", edge[key])
            for key, end in (("port1", a), ("port2", b))
        )
        a_port, b_port = ports
        return LinkData(where, a, a_port, b, b_port, self._rate(where, edge), self._delay(where, edge))

    def _port(self, where: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self._origin.error(where, f"{shortened(repr(value), MOST_SHOWN)}: ports count from 1")
        return value

    def _rate(self, where: str, edge: dict[str, Any]) -> int | None:
        capacity_unit = self._graph.get("capacity_unit")
        for key, unit in (("rate", "bps"), ("bw", "Mbps"), ("capacity", capacity_unit)):
            if edge.get(key) is not None:
                if key == "capacity" and capacity_unit is None:
                    raise self._origin.error(
                        f"{where}.capacity", "the graph has no capacity_unit; expected rate"
                    )
                return self._quantity(f"{where}.{key}", edge[key], unit, parse_rate_bps, 1, MOST_BPS)
        return None

    def _delay(self, where: str, edge: dict[str, Any]) -> int | None:
        if edge.get("delay") is None:
            return None
        unit = self._graph.get("delay_unit", "ns")
        return self._quantity(f"{where}.delay", edge["delay"], unit, parse_time_ns, 0, MOST_NS)

    def _quantity(
        self, where: str, value: Any, unit: Any, parse: Callable[[str], int], least: int, most: int
    ) -> int:
        """A quantity as a string with its unit, or as a number of `unit`; rounded to the smallest unit."""
        shown = shortened(repr(value), MOST_SHOWN)
        try:
            one = parse(f"1{unit}")
            if isinstance(value, str):
                quantity = parse(value)
            elif isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value * one <= most:
                quantity = round(value * one)
            else:
                raise UnitError(f"{shown} is no number with a unit")
        except (UnitError, OverflowError) as error:
            raise self._origin.error(where, str(error)) from None
        if quantity < least:
            raise self._origin.error(where, f"{shown}: expected more than 0")
        return quantity

    def _check_weights(self, key: str, edges: list[dict[str, Any]]) -> None:
        """Refuses weights that differ: routes count links."""
        weights = [edge.get("weight", 1) for edge in edges]
        for index, weight in enumerate(weights):
            if weight != weights[0]:
                problem = "differs from that of other links; routes count links, so weights have no effect"
                raise self._origin.error(f"{key}[{index}].weight", problem)


def _host_rule(nodes: list[dict[str, Any]]) -> Callable[[dict[str, Any]], bool]:
    """What makes a node a host: a role or type, or else an address."""

    def by_role(fields: dict[str, Any]) -> bool:
        return "host" in (fields.get("role"), fields.get("type")) or fields.get("isHost") is True

    if any(by_role(fields) for fields in nodes):
        return by_role
    return lambda fields: fields.get("ip") is not None


def document_of(data: NetworkData) -> dict[str, Any]:
    """The node-link document of a network.

    Raises:
        SpecError: a feature that has no attribute.
    """
    if data.latency_ns:
        raise SpecError(f"{NAME}: switches cannot have a latency (latency=)")
    nodes: list[dict[str, Any]] = [
        {"id": host.name, "role": "host", "ip": host.ip, "mac": host.mac, **_routes(host)}
        for host in data.hosts
    ]
    for switch in data.switches:
        fields = {"group": switch.group if switch.group >= 0 else None, "cpu_port": switch.cpu_port}
        fields["priority_queues"] = switch.priority_queues
        given = {key: value for key, value in fields.items() if value is not None}
        nodes.append({"id": switch.name, "role": switch.role, **given})
    edges = [
        {"source": link.a, "target": link.b, "rate": link.rate_bps, "delay": link.delay_ns}
        # NetworkX may exchange source and target
        | {"node1": link.a, "node2": link.b, "port1": link.a_port, "port2": link.b_port}
        for link in data.links
    ]
    return {"directed": False, "multigraph": True, "graph": {}, "nodes": nodes, "edges": edges}


def _routes(host: HostData) -> dict[str, str]:
    """The attributes for the routes of a host: its subnet, and a default route."""
    if not host.routes:
        return {}
    prefixes = [prefix for prefix, _ in host.routes[1:]]
    if host.arp or prefixes not in ([], ["0.0.0.0/0"]):
        raise SpecError(f"{NAME}: host {host.name} has routes or ARP entries besides a default route")
    address = {"ip": host.ip + host.routes[0][0][host.routes[0][0].index("/") :]}
    return address | ({"defaultRoute": f"via {host.routes[1][1]}"} if prefixes else {})


def _write(data: NetworkData) -> str:
    return json.dumps(document_of(data), indent=1) + "\n"


register(Format(NAME, Kind.TOPOLOGY, "node-link JSON of NetworkX", _recognises, _read, _write))

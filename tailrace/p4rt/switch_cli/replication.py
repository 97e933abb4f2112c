# SPDX-License-Identifier: Apache-2.0
"""The multicast groups and clone sessions that a file of simple_switch_CLI commands makes. Each public method
carries out a command.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.switch_cli.handles import Commands, HandleEntry, Handles, number
from tailrace.spec import SpecError

_PORT, _GROUP = "port", "group"

MOST_COPIES = 1 << 16
"""Limit of the copies of all clone sessions of a file."""


@dataclass(slots=True)
class _ReplicationNode:
    """A node: the ports that get a copy with `instance`; group: the multicast group of the node."""

    instance: int
    ports: list[int]
    group: int | None = None


@dataclass(slots=True)
class _MulticastGroup:
    """A multicast group: its line, and the nodes that it has, by handle."""

    line: int
    nodes: dict[int, _ReplicationNode] = field(default_factory=dict)

    def replicas(self) -> Iterator[p4r.Replica]:
        """The group's replicas."""
        for node in self.nodes.values():
            for port in node.ports:
                yield p4r.Replica(egress_port=port, instance=node.instance)


class ReplicationCommands(Commands):
    """Multicast groups, which in BMv2 consist of nodes, each in at most one group; and clone sessions."""

    def __init__(self) -> None:
        self._nodes: Handles[_ReplicationNode] = Handles("node")
        self._groups: dict[int, _MulticastGroup] = {}
        self._sessions: dict[int, tuple[int, str, int]] = {}  # line, _PORT or _GROUP, and its number

    def updates(self) -> Iterator[tuple[int, p4r.Update]]:
        """The updates that make the groups and sessions, each with its line.

        Raises:
            SpecError: there are too many copies.
        """
        for group_id, group in self._groups.items():
            entry = p4r.PacketReplicationEngineEntry()
            entry.multicast_group_entry.multicast_group_id = group_id
            entry.multicast_group_entry.replicas.extend(group.replicas())
            yield _insert(group.line, entry)
        copies = 0
        for session, (line, kind, target) in self._sessions.items():
            entry = p4r.PacketReplicationEngineEntry()
            entry.clone_session_entry.session_id = session
            if kind == _PORT:
                entry.clone_session_entry.replicas.add(egress_port=target)
            elif target in self._groups:
                entry.clone_session_entry.replicas.extend(self._groups[target].replicas())
            copies += len(entry.clone_session_entry.replicas)
            if copies > MOST_COPIES:
                raise SpecError(
                    f"clone sessions make more than {MOST_COPIES} copies, including those of their groups"
                )
            yield _insert(line, entry)

    # ---- multicast groups ----

    def create_group(self, group: str) -> None:
        self._groups.setdefault(number(group, "group"), _MulticastGroup(self.line))

    def destroy_group(self, group: str) -> None:
        chosen = self._groups.pop(number(group, "group"), None)
        for node in chosen.nodes.values() if chosen else ():
            node.group = None

    def _group(self, text: str) -> int:
        chosen = number(text, "group")
        if chosen not in self._groups:
            raise SpecError(f"no multicast group {chosen} in this file")
        return chosen

    def create_node(self, instance: str, *ports: str) -> None:
        self._nodes.add(_ReplicationNode(number(instance, "instance"), _ports(ports)))

    def update_node(self, node: str, *ports: str) -> None:
        self._nodes.get(node).ports = _ports(ports)

    def destroy_node(self, node: str) -> None:
        handle = self._nodes.parse(node)
        chosen = self._nodes.take(handle)
        if chosen.group is not None:
            del self._groups[chosen.group].nodes[handle]

    def associate(self, group: str, node: str) -> None:
        chosen, handle = self._group(group), self._nodes.parse(node)
        associated = self._nodes.by_handle[handle]
        if associated.group is not None:
            raise SpecError(f"node {node} is in multicast group {associated.group} already")
        associated.group = chosen
        self._groups[chosen].nodes[handle], self._groups[chosen].line = associated, self.line

    def dissociate(self, group: str, node: str) -> None:
        chosen = self._nodes.get(node)
        if chosen.group != self._group(group):
            raise SpecError(f"node {node} is not in multicast group {group}")
        chosen.group = None
        del self._groups[self._group(group)].nodes[self._nodes.parse(node)]

    # ---- clone sessions ----

    def mirror_to_port(self, session: str, port: str) -> None:
        self._sessions[number(session, "session")] = self.line, _PORT, number(port, "port")

    def mirror_to_group(self, session: str, group: str) -> None:
        self._sessions[number(session, "session")] = self.line, _GROUP, number(group, "group")

    def delete_session(self, session: str) -> None:
        chosen = number(session, "session")
        if self._sessions.pop(chosen, None) is None:
            raise SpecError(f"no clone session {chosen} in this file")


def _insert(line: int, entry: p4r.PacketReplicationEngineEntry) -> tuple[int, p4r.Update]:
    return HandleEntry(line, p4r.Entity(packet_replication_engine_entry=entry)).update(p4r.Update.INSERT)


def _ports(arguments: Sequence[str]) -> list[int]:
    """The ports, sorted as in BMv2."""
    if "|" in arguments:
        bar = arguments.index("|")
        if len(arguments) > bar + 1:
            raise SpecError("multicast groups of P4Runtime have no LAGs, which stand after |")
        arguments = arguments[:bar]
    ports = sorted(number(argument, "port") for argument in arguments)
    for port, next_port in itertools.pairwise(ports):
        if port == next_port:
            raise SpecError(f"port {port} is given twice")
    return ports

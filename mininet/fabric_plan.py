# SPDX-License-Identifier: Apache-2.0
"""The plan of a fabric, made before anything starts: interfaces, addresses, commands."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabric_report import InputError

from tailrace.bmv2.process import EXECUTABLE, MISSING, NO_THRIFT, has_thrift
from tailrace.p4rt.target import Target
from tailrace.schemes.program import ResolvedProgram
from tailrace.schemes.resolved import Resolved
from tailrace.topology import Switch, Topology

BMV2, NATIVE = "bmv2", "native"
NATIVE_MODULE = "tailrace.switch.daemon.cli"
CPU_PORT = 510
PRIORITY_QUEUES = 8
DATA_PRIORITY = 0
THRIFT_BASE = 9090
"""Base of the Thrift ports, which are free in the network namespace of a run."""

FABRIC_MTU = 9000
"""MTU of every interface, with space for the headers that switches add to a host's frames."""

HOST_MTU_BYTES = 1500
"""The largest IP packets of the hosts' kernel stacks."""

MIN_QUEUE_BYTES = 1 << 20
QUEUE_HEADROOM = 8
"""Depth of the traffic manager's queues, as a multiple of the program's limit: so only the program drops."""

_IFNAMSIZ = 15
_SMALLEST_FRAME_BYTES = 64
MANY_PACKETS = 1 << 20
"""Depth of BMv2's queues if they shall have no limit."""


@dataclass(frozen=True, slots=True)
class PortPlan:
    """One port of a switch: its interface, its link's rate, and the delay of frames to the other end.

    The delay is that of the link, plus the latency of a switch at the other end.
    """

    number: int
    interface: str
    rate_bps: int
    delay_ns: int


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """One switch process: where it listens (a gRPC target), where it writes log and counts, and its ports.

    cpu_port, priority_queues: its settings; without a CPU port None.
    unlimited: number of its highest priorities for which BMv2 has no rate limit.
    """

    name: str
    device_id: int
    address: str
    log: Path
    statistics: Path
    thrift_port: int
    ports: tuple[PortPlan, ...]
    cpu_port: int | None = CPU_PORT
    priority_queues: int = PRIORITY_QUEUES
    unlimited: int = 1


@dataclass(frozen=True, slots=True)
class LinkInterface:
    """One end of a link; hosts have port 0."""

    node: str
    port: int
    interface: str
    mac: str


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """A link. `name`, also of its capture: leaf1-spine2, then the port of `a` if links are parallel."""

    name: str
    a: LinkInterface
    b: LinkInterface


@dataclass(frozen=True, slots=True)
class FabricPlan:
    """The whole fabric."""

    topology: Topology
    target: str
    switches: tuple[SwitchPlan, ...]
    links: tuple[LinkPlan, ...]

    def between(self, a: str, b: str) -> list[LinkPlan]:
        """All links between two nodes."""
        return [link for link in self.links if {link.a.node, link.b.node} == {a, b}]


def host_interface(name: str) -> str:
    """The name of a host's only interface."""
    return f"{name}-eth0"


def _switch_ends(topology: Topology) -> dict[tuple[str, int], LinkInterface]:
    """The end at every port, by switch and port: leaf1-eth3, or s7-eth3 if some names would be too long."""
    ports = [(switch, port) for switch in topology.switches for port in topology.ports_of(switch.name)]
    short = any(len(f"{s.name}-eth{p}") > _IFNAMSIZ for s, p in ports)
    return {
        (s.name, p): LinkInterface(
            s.name,
            p,
            f"s{s.id}-eth{p}" if short else f"{s.name}-eth{p}",
            # unique, as hosts have 02:00:...
            f"02:01:{s.id >> 8:02x}:{s.id & 255:02x}:{p >> 8:02x}:{p & 255:02x}",
        )
        for s, p in ports
    }


def _links(topology: Topology, ends: dict[tuple[str, int], LinkInterface]) -> tuple[LinkPlan, ...]:
    pairs = [
        (LinkInterface(h.name, 0, host_interface(h.name), h.mac), ends[h.switch, h.port])
        for h in topology.hosts
    ]
    pairs += [(ends[link.a, link.a_port], ends[link.b, link.b_port]) for link in topology.links]
    link_counts = Counter((a.node, b.node) for a, b in pairs)
    suffix = {a: f"-{a.port}" if link_counts[a.node, b.node] > 1 else "" for a, b in pairs}
    return tuple(LinkPlan(f"{a.node}-{b.node}{suffix[a]}", a, b) for a, b in pairs)


def thrift_port(switch: Switch) -> int:
    """The Thrift port of a BMv2 switch."""
    return THRIFT_BASE + switch.id


def tutorial_order(topology: Topology) -> list[str]:
    """The switches by their device ids, from 0, with the p4lang tutorials' tool: s2 before s10."""
    return sorted((switch.name for switch in topology.switches), key=lambda name: (len(name), name))


def make_plan(
    topology: Topology, target: str, run_dir: Path, logs: Path, *, foreign: bool = False
) -> FabricPlan:
    """The fabric of `topology`: sockets go to `run_dir`, log files to `logs`.

    `foreign`: switches run programs of the user's, so their settings are simple_switch's, or the topology's.
    """
    cpu_port, queues = (None, 1) if foreign else (CPU_PORT, PRIORITY_QUEUES)
    tutorial_ids = {name: number for number, name in enumerate(tutorial_order(topology))}
    ends = _switch_ends(topology)
    switches = tuple(
        SwitchPlan(
            name=switch.name,
            device_id=tutorial_ids[switch.name] if foreign else switch.id,
            address=f"unix:{run_dir}/{switch.name}.sock",
            log=logs / f"{switch.name}.log",
            statistics=run_dir / f"{switch.name}.json",
            thrift_port=thrift_port(switch),
            ports=tuple(
                PortPlan(
                    number,
                    ends[switch.name, number].interface,
                    peer.rate_bps,
                    peer.delay_ns + (topology.latency_ns if peer.kind == "switch" else 0),
                )
                for number, peer in sorted(topology.ports_of(switch.name).items())
            ),
            cpu_port=switch.cpu_port or cpu_port,
            priority_queues=switch.priority_queues or queues,
            unlimited=0 if foreign else 1,
        )
        for switch in topology.switches
    )
    return FabricPlan(topology, target, switches, _links(topology, ends))


def command(plan: SwitchPlan, target: Target, queue_depth: str, more: Sequence[str] = ()) -> list[str]:
    """The command line of one switch.

    Args:
        target: bmv2 or native.
        queue_depth: depth of the native switch's queues, as its option is written.
        more: more options, of the native switch only.
    """
    arguments = ["--device-id", str(plan.device_id), "--no-p4", "--log-console", "--log-level", "warn"]
    for port in plan.ports:
        arguments += ["-i", f"{port.number}@{port.interface}"]
    if target.name == BMV2:
        arguments = [EXECUTABLE, "--thrift-port", str(plan.thrift_port), *arguments]
    else:
        arguments = [sys.executable, "-m", NATIVE_MODULE, *arguments]
        arguments += [*_native_options(plan, target.tick_ns, queue_depth), *more]
    arguments += ["--", "--grpc-server-addr", plan.address]
    if plan.cpu_port is not None:
        arguments += ["--cpu-port", str(plan.cpu_port)]
    return [*arguments, "--priority-queues", str(plan.priority_queues)]


def _native_options(plan: SwitchPlan, tick_ns: int, queue_depth: str) -> list[str]:
    arguments = ["--tick-ns", str(tick_ns), "--queue-depth", queue_depth]
    for port in plan.ports:
        arguments += ["--port-rate", f"{port.number}:{port.rate_bps}bps"]
        arguments += ["--port-delay", f"{port.number}:{port.delay_ns}ns"]
    return arguments


def queue_depth(scheme: Resolved) -> tuple[int, int]:
    """The depth of the traffic manager's queues in packets, or else in bytes; both 0: no limit."""
    if isinstance(scheme, ResolvedProgram):
        return scheme.depth_packets, scheme.queue_limit_bytes
    return 0, max(MIN_QUEUE_BYTES, QUEUE_HEADROOM * scheme.queue_limit_bytes)


def queue_packets(scheme: Resolved, frame_bytes: int) -> int:
    """The same in packets, BMv2's unit: of the smallest frames, for a user's program of these frames."""
    packets, limit_bytes = queue_depth(scheme)
    return (
        packets
        or limit_bytes // (frame_bytes if scheme.is_foreign else _SMALLEST_FRAME_BYTES)
        or MANY_PACKETS
    )


def check_target(target: str) -> None:
    """Looks for the switch's executable, or for the C compiler that it needs.

    Raises:
        InputError: it is not installed.
    """
    if target == BMV2 and shutil.which(EXECUTABLE) is None:
        raise InputError(f"{MISSING}, or use the target native")
    if target == BMV2 and not has_thrift():
        raise InputError(f"{NO_THRIFT}; build it with Thrift, or use the target native")
    if target == NATIVE and not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        raise InputError("no C compiler on PATH; the native switch compiles its programs on this machine")

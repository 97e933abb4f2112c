# SPDX-License-Identifier: Apache-2.0
"""Finds the switches to inspect: by the run file of a running network, or by address."""

from __future__ import annotations

import contextlib
import re
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn, TypeVar

from tailrace.controller import runfile
from tailrace.controller.inband.query import PrimaryQueryClient, QueryClient
from tailrace.controller.inband.relay import RelayClient, RelayError, SuppressedLeft
from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.runfile import RunFile
from tailrace.p4rt.channel import SwitchAddress
from tailrace.p4rt.connection import GrpcConnection, load_p4info
from tailrace.p4rt.tls import Tls
from tailrace.schemes.base import resolve
from tailrace.schemes.registry import parse_scheme, resolved_of
from tailrace.schemes.resolved import Resolved
from tailrace.spec import SpecError, plugins
from tailrace.spec.scale import scaled
from tailrace.spec.suggest import close, expected
from tailrace.tables.listing import Listing
from tailrace.topology import Topology, parse_topology
from tailrace.topology.paths.shortest import Down

_AT_ONCE = 16
"""Switches that are read in parallel."""
_NAMED = re.compile(r"(?:(?P<name>[A-Za-z_][\w.-]*)=)?(?P<target>.+?)(?:@(?P<device>[0-9]+))?")
_T = TypeVar("_T")
NamedReader = Callable[[InspectedSwitch, frozenset[str]], Listing]


@dataclass(frozen=True, slots=True)
class InspectedNetwork:
    """Switches that can be inspected; `run` is the content of the run file, if any, `run_path` its path."""

    nodes: Mapping[str, InspectedSwitch]
    topology: Topology | None
    run: RunFile | None
    run_path: Path | None = None

    def select(self, patterns: Sequence[str]) -> list[InspectedSwitch]:
        """The switches that match names or patterns such as leaf*, in the network's order; all without
        patterns.

        Raises:
            SpecError: a pattern matches no switch.
        """
        for pattern in patterns:
            if not self.has(pattern):
                self.refuse(pattern)
        return [
            node
            for name, node in self.nodes.items()
            if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
        ]

    def has(self, pattern: str) -> bool:
        """Whether a name or pattern matches a switch."""
        return any(fnmatchcase(name, pattern) for name in self.nodes)

    def refuse(self, argument: str, kind: str = "", names: Sequence[str] = ()) -> NoReturn:
        """Reports that an argument names no switch, nor an object of this kind.

        Args:
            argument: as the user wrote it.
            kind: table, counter or register; empty: only a switch was possible.
            names: the objects of this kind.

        Raises:
            SpecError: in every case.
        """
        if not kind or close(argument, self.nodes):
            raise SpecError(f"no switch {argument!r}; {expected(argument, self.nodes)}")
        known = [*self.nodes, *dict.fromkeys(names)]
        raise SpecError(f"no switch and no {kind} {argument!r}; {expected(argument, known)}")

    def connection_to(self, pattern: str) -> GrpcConnection:
        """The connection to the switch that a name or pattern matches.

        Raises:
            SpecError: it matches none, or several.
        """
        nodes = self.select((pattern,))
        if len(nodes) != 1:
            raise SpecError(f"{pattern} matches {len(nodes)} switches; name one")
        connection = nodes[0].connection
        assert isinstance(connection, GrpcConnection), "nodes of the command line are reached by gRPC"
        return connection

    def scheme_on(self, topology: Topology) -> Resolved | None:
        """The scheme of the run file, resolved for its network and time scale; None without a run file.

        Raises:
            SpecError: the run file has no valid scheme.
            IntentError: the scheme does not support the network.
        """
        if self.run is None:
            return None
        with _errors_name_run_file(self.run_path):
            if isinstance(self.run.scheme, str):
                return resolve(scaled(parse_scheme(self.run.scheme), self.run.time_scale), topology)
            with plugins.expected(self.run.plugins):
                return resolved_of(self.run.scheme)

    def has_scheme_nics(self, topology: Topology) -> bool:
        """Whether hosts are NICs of a scheme, not of a user's program. Raises as `scheme_on`."""
        scheme = self.scheme_on(topology)
        return scheme is not None and not scheme.is_foreign

    @contextlib.contextmanager
    def query_client(self, node: InspectedSwitch) -> Iterator[QueryClient]:
        """A client for in-band queries to a switch: the running controller, or this process as primary.

        Raises:
            ControllerError: neither is possible.
        """
        relay = self.relay()
        if relay is not None:
            with relay:
                yield relay
            return
        assert isinstance(node.connection, GrpcConnection), "nodes of the command line are reached by gRPC"
        with PrimaryQueryClient(node.connection, node.program) as primary:
            yield primary

    def known_to_controller(self) -> tuple[Down, tuple[SuppressedLeft, ...]]:
        """The link ends that the controller considers down, and the paths that it has withdrawn.

        Raises:
            RelayError: the controller ended meanwhile.
        """
        relay = self.relay()
        if relay is not None:
            with relay:
                return relay.down(), relay.suppressed()
        return (frozenset(), ()) if self.run is None else (frozenset(self.run.down), self.run.suppressed)

    def relay(self) -> RelayClient | None:
        """A client of the running controller's socket; None if nothing listens: the controller may have ended
        before its switches.
        """
        if self.run is None or self.run.relay is None:
            return None
        try:
            return RelayClient(Path(self.run.relay))
        except RelayError:
            return None


def each(nodes: Sequence[InspectedSwitch], read: Callable[[InspectedSwitch], _T]) -> list[_T]:
    """Reads several switches in parallel; results in the order of the switches. Raises what `read` raises."""
    if len(nodes) == 1:
        return [read(nodes[0])]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(read, nodes))


def read_named(
    network: InspectedNetwork, arguments: Sequence[str], kind: str, read: NamedReader
) -> list[Listing]:
    """Reads chosen P4 objects of chosen switches; all without arguments. An argument that names no switch is
    an object: its alias, its full name, or the end of the full name after a dot.

    Args:
        network: the switches to read.
        arguments: names and patterns of switches, names of objects.
        kind: what the objects are: table, counter or register.
        read: reads the objects of a switch with the given aliases; all if no alias is given.

    Raises:
        SpecError: an argument matches nothing, or several objects of a program.
        SwitchError: a switch cannot be read.
    """
    switches = [argument for argument in arguments if network.has(argument)]
    names = [argument for argument in arguments if argument not in switches]
    nodes = network.select(switches)
    programs = each(nodes, lambda node: node.program)
    # program.named: the objects that a name may mean; program.shown: the names of all objects
    for name in names:
        if not any(program.named(kind, name) for program in programs):
            network.refuse(name, kind, [shown for program in programs for shown in program.shown(kind)])
    chosen: dict[str, frozenset[str]] = {}
    for node in nodes:
        named = [node.program.named(kind, name) for name in names]
        for name, aliases in zip(names, named, strict=True):
            if len(aliases) > 1:
                raise SpecError(f"{name!r} matches several {kind}s: {', '.join(aliases)}; name one")
        chosen[node.name] = frozenset(alias for aliases in named for alias in aliases)
    # a switch whose program has none of the objects has nothing to show
    shown_nodes = [node for node in nodes if chosen[node.name] or not names]
    listings = each(shown_nodes, lambda node: read(node, chosen[node.name]))
    ambiguous = [name for name in switches if any(program.named(kind, name) for program in programs)]
    notes = tuple(f"{name} is a switch; for the {kind}: --where '{kind} == {name}'" for name in ambiguous)
    return [replace(listings[0], notes=(*listings[0].notes, *notes)), *listings[1:]]


def find(args: Namespace, p4info: Path | None = None) -> InspectedNetwork:
    """The switches that a command line selects by the options of cli.options.SOURCE.

    Args:
        args: the command line.
        p4info: file of the P4Info that all switches have; None: it is read from each switch.

    Raises:
        SpecError: no network runs, a file is invalid, or options contradict each other.
        ControllerError: a file cannot be read.
    """
    if args.address and args.run is not None:
        raise SpecError("--run and --address are two ways to name switches; give one")
    run, run_path = None, None
    if not args.address:
        run_path, run = named_run(args)
    topology = None if args.topology is None else parse_topology(args.topology)
    if run is not None and topology is None:
        with _errors_name_run_file(run_path), plugins.expected(run.plugins):
            topology = parse_topology(run.topology)
    info = None if p4info is None else load_p4info(p4info)
    if run is None:
        addresses = _parse_addresses(args, topology)
    else:
        addresses = {
            name: SwitchAddress(switch.address, switch.device_id) for name, switch in run.switches.items()
        }
        if not addresses:
            raise SpecError(f"run file {run_path}: switches: expected at least one")
    files = (args.ca, args.cert, args.key)
    tls = Tls(*files) if any(file is not None for file in files) else None
    nodes = {
        name: InspectedSwitch(
            name,
            GrpcConnection(name, switch.address, switch.device_id, tls=tls, p4info=info),
            *_neighbours(topology, name),
            *(() if run is None else (run.tick_ns, run.switches[name].program)),
        )
        for name, switch in addresses.items()
    }
    return InspectedNetwork(nodes, topology, run, run_path)


def named_run(args: Namespace) -> tuple[Path, RunFile]:
    """The run file of --run, or of the latest network of this user; raises RunFileError if there is none."""
    return next(iter(runfile.running().items())) if args.run is None else (args.run, runfile.read(args.run))


@contextlib.contextmanager
def _errors_name_run_file(run_path: Path | None) -> Iterator[None]:
    """Within the block, errors in specs are reported with the path of the run file."""
    try:
        yield
    except SpecError as error:
        raise SpecError(f"run file {run_path}: {error}") from error


def _parse_addresses(args: Namespace, topology: Topology | None) -> dict[str, SwitchAddress]:
    known = [] if topology is None else [switch.name for switch in topology.switches]
    addresses: dict[str, SwitchAddress] = {}
    for text in args.address:
        match = _NAMED.fullmatch(text)
        if match is None:
            raise SpecError(f"--address {text!r}: expected [NAME=]HOST:PORT[@DEVICE_ID]")
        name = match["name"] or (known[0] if len(known) == 1 else match["target"])
        if topology is not None and name not in known:
            raise SpecError(f"--address {text!r}: give NAME=…, a switch of the topology: {', '.join(known)}")
        if name in addresses:
            raise SpecError(f"--address: {name} is given twice")
        device_id = args.device_id if match["device"] is None else int(match["device"][:40])
        addresses[name] = SwitchAddress(match["target"], device_id)
    return addresses


def _neighbours(topology: Topology | None, name: str) -> tuple[dict[int, str], dict[str, str]]:
    """Names of the neighbours by port, including the controller's, and names of the hosts by IP address."""
    if topology is None or name not in {switch.name for switch in topology.switches}:
        return {}, {}
    peers = {port: peer.name for port, peer in topology.ports_of(name).items()}
    cpu_port = topology.switch(name).cpu_port
    if cpu_port is not None:
        peers.setdefault(cpu_port, "CPU")
    return peers, {host.ip: host.name for host in topology.hosts}

# SPDX-License-Identifier: Apache-2.0
"""Options of the command tailrace_switch_grpc, and their validation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from tailrace.spec.errors import Error
from tailrace.spec.units import exact_integer, parse_bytes, parse_rate_bps, split
from tailrace.switch.core.lib import MAX_PORT
from tailrace.switch.core.types import BufferConfig
from tailrace.switch.daemon.lossless import PortPfc, WatchdogSpec

# simple_switch_grpc listens on all interfaces by default; this switch does so only on request
DEFAULT_ADDRESS = "127.0.0.1:9559"
LEVELS = ("trace", "debug", "info", "warn", "error", "off")
"""Log levels, from the least severe on."""

_MOST_GROUPS = (1 << 32) - 1


class OptionError(Error):
    """The command line is invalid; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate in bits/s or in packets/s; the other value is 0."""

    bps: int = 0
    pps: int = 0


def parse_rate(text: str) -> Rate:
    """Parses a rate such as 100Mbps or 1000pps; a number without a unit is in bits/s."""
    value, unit = split(text)
    if unit.lower() == "pps":
        return Rate(pps=exact_integer(value, text))
    return Rate(bps=parse_rate_bps(text))


def parse_depth(text: str) -> tuple[int, int]:
    """Parses a queue depth to (packets, bytes): 64 and 64pkts are packets, 100KiB is bytes; 0: no limit."""
    value, unit = split(text)
    if unit in ("", "pkts", "packets"):
        return exact_integer(value, text), 0
    return 0, parse_bytes(text)


@dataclass(slots=True)
class SwitchOptions:
    """The options. In pairs with a port, port None means all ports; queue_depth is (packets, bytes).

    packets_address: where clients send and receive the frames of ports by gRPC; then every port number except
        the CPU port is a port without an interface. None: only `interfaces` are ports
    """

    program: Path | None
    interfaces: dict[int, str]
    address: str = DEFAULT_ADDRESS
    packets_address: str | None = None
    device_id: int = 0
    cpu_port: int | None = None
    drop_port: int = MAX_PORT
    priority_queues: int = 1
    max_mc_groups: int = 4096
    pcap: Path | None = None
    p4info: Path | None = None
    log_console: bool = False
    log_file: Path | None = None
    log_level: str = "trace"
    log_file_max_size: int = 5242880
    log_file_max_files: int = 3
    dump_packet_data: int = 0
    ssl: bool = False
    ssl_cacert: Path | None = None
    ssl_cert: Path | None = None
    ssl_key: Path | None = None
    ssl_client_auth: bool = False
    bmv2_compat: bool = False
    strict: bool = False
    tick_ns: int = 1000
    port_rates: list[tuple[int | None, Rate]] = field(default_factory=list)
    port_delays: list[tuple[int | None, int]] = field(default_factory=list)
    queue_depth: tuple[int, int] = (64, 0)
    recirc_rate_bps: int = 0
    pfc: list[PortPfc] = field(default_factory=list)
    pfc_watchdog: list[WatchdogSpec] = field(default_factory=list)
    buffer: BufferConfig | None = None
    statistics: Path | None = None
    coverage: Path | None = None
    memory: int = 0
    warnings: list[str] = field(default_factory=list)

    @property
    def ports(self) -> Collection[int]:
        """The numbers of the switch's ports, without the CPU port."""
        if self.packets_address is None:
            return self.interfaces.keys()
        return [port for port in range(MAX_PORT + 1) if port != self.cpu_port]

    def logs(self, level: str) -> bool:
        """Whether there is a log and it includes lines of this level."""
        has_log = self.log_console or self.log_file is not None
        return has_log and LEVELS.index(self.log_level) <= LEVELS.index(level)


def _check_pfc(options: SwitchOptions) -> None:
    for port, pfc in options.pfc:
        if port is not None and port not in options.ports:
            raise OptionError(f"--pfc: there is no port {port}")
        if max(pfc.priorities) >= options.priority_queues:
            queues = options.priority_queues
            raise OptionError(
                f"--pfc: there is no queue of priority {max(pfc.priorities)} with --priority-queues {queues}"
            )
    _check_watchdogs(options)


def _check_output_folders(options: SwitchOptions) -> None:
    if options.statistics is not None and not options.statistics.parent.is_dir():
        raise OptionError(f"--statistics: '{options.statistics.parent}' is not a directory")
    if options.coverage is not None and not options.coverage.is_dir():
        raise OptionError(f"--coverage: '{options.coverage}' is not a directory")


def _check_watchdogs(options: SwitchOptions) -> None:
    pfc_ports = {port for port, _ in options.pfc}
    if options.pfc_watchdog and not pfc_ports:
        raise OptionError("--pfc-watchdog: nothing is lossless without --pfc")
    for port in {port for spec in options.pfc_watchdog for port in spec.ports or ()}:
        if port not in options.ports:
            raise OptionError(f"--pfc-watchdog: there is no port {port}")
        if not pfc_ports & {None, port}:
            raise OptionError(f"--pfc-watchdog: port {port} has no --pfc")


def _check_address(name: str, text: str | None) -> None:
    """Rejects port numbers that gRPC would misread. gRPC itself checks host names."""
    if text is None:
        return
    host, _, port = text.rpartition(":")
    if text.startswith("unix"):
        return
    if not host or not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) < 1 << 16):
        raise OptionError(f"--{name}: expected HOST:PORT or unix:PATH, found {text[:80]!r}")


def _check_values(options: SwitchOptions) -> None:
    if not 0 < options.priority_queues <= 8:
        raise OptionError(f"--priority-queues {options.priority_queues} is not in 1..8")
    if options.drop_port > MAX_PORT:
        raise OptionError(f"--drop-port {options.drop_port} is not in 0..{MAX_PORT}")
    if not 0 < options.max_mc_groups <= _MOST_GROUPS:
        raise OptionError(f"--max-mc-groups {options.max_mc_groups} is not in 1..{_MOST_GROUPS}")
    if options.p4info is not None and options.program is None:
        raise OptionError("--p4info needs the program's JSON file on the command line, too")
    if options.tick_ns == 0 or options.log_file_max_size == 0:
        raise OptionError("--tick-ns and --log-file-max-size must be above 0")


def check(options: SwitchOptions) -> None:
    """Checks the options, and adds a warning for each option without effect.

    Raises:
        OptionError: an option is invalid, or not supported.
    """
    cpu_port = options.cpu_port
    if cpu_port is not None:
        if not 0 < cpu_port <= MAX_PORT:
            raise OptionError(f"--cpu-port {cpu_port} is not in 1..{MAX_PORT}")
        if cpu_port in options.interfaces:
            raise OptionError(f"--cpu-port {cpu_port} is the port of {options.interfaces[cpu_port]}")
        if cpu_port == options.drop_port:
            raise OptionError(f"--cpu-port {cpu_port} is the drop port; choose another with --drop-port")
    _check_values(options)
    _check_pfc(options)
    _check_output_folders(options)
    if options.log_console and options.log_file:
        raise OptionError("--log-console and --log-file exclude each other")
    if options.strict and options.bmv2_compat:
        raise OptionError("--strict and --bmv2-compat exclude each other")
    if options.strict and not options.device_id:
        raise OptionError("--strict: device id 0 is invalid in P4Runtime: give another --device-id")
    if options.dump_packet_data and not options.logs("info"):
        options.warnings.append("--dump-packet-data is ignored: there is no log at level info")
    if options.pcap is not None and not options.pcap.is_dir():
        raise OptionError(f"--pcap: '{options.pcap}' is not a directory")
    tls_files = (options.ssl_cacert, options.ssl_cert, options.ssl_key)
    if options.ssl and (options.ssl_cert is None or options.ssl_key is None):
        raise OptionError("--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key")
    if options.ssl_client_auth and options.ssl and options.ssl_cacert is None:
        raise OptionError("--grpc-server-with-client-auth needs --grpc-server-cacert")
    if options.ssl_client_auth and not options.ssl:
        raise OptionError(
            "--grpc-server-with-client-auth needs --grpc-server-ssl: without TLS no client is authenticated"
        )
    _check_address("grpc-server-addr", options.address)
    _check_address("dp-grpc-server-addr", options.packets_address)
    if not options.ssl and any(tls_files):
        options.warnings.append("TLS options are ignored without --grpc-server-ssl")

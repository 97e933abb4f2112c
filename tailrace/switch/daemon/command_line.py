# SPDX-License-Identifier: Apache-2.0
"""The command line of the switch: simple_switch_grpc's options, before or after `--`, and further options.

Source: behavioral-model src/bm_sim/options_parse.cpp and targets/simple_switch_grpc/main.cpp.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import NoReturn

from tailrace.p4rt.target import MOST_DEVICE_ID
from tailrace.spec.units import parse_bytes, parse_time_ns
from tailrace.switch.core.lib import MAX_PORT
from tailrace.switch.daemon.lossless import parse_buffer, parse_pfc, parse_port_watchdog
from tailrace.switch.daemon.options import (
    DEFAULT_ADDRESS,
    LEVELS,
    OptionError,
    SwitchOptions,
    check,
    parse_depth,
    parse_rate,
)

PROGRAM = "tailrace_switch_grpc"

_NO_DEBUGGER = "there is no debugger; --log-level trace and `tailrace trace` show what happens to packets"
# options without effect, accepted so that scripts for simple_switch_grpc work: their metavar, or None if they
# take no value, and the reason for a warning, or "" if none is due
_IGNORED: dict[str, tuple[str | None, str]] = {
    **dict.fromkeys(
        ("nanolog", "notifications-addr", "max-port-count", "max-l1-entries", "max-l2-entries"), ("X", "")
    ),
    **dict.fromkeys(
        ("log-flush", "enable-swap", "warn-on-invalid-hdr-read", "ret-zero-on-invalid-hdr-read"), (None, "")
    ),
    "thrift-port": (
        "X",
        "there is no Thrift server; tools that wait for its port, such as p4-utils, will time out"
        " (docs/switch/running.md). `tailrace push` accepts files of simple_switch_CLI commands; `tailrace"
        " tables`, `counters` and `registers` show the switch's state",
    ),
    "debugger": (None, _NO_DEBUGGER),
    "debugger-addr": ("X", _NO_DEBUGGER),
    "disable-swap": (
        None,
        "clients can always replace the program; bind --grpc-server-addr to an address that only trusted"
        " clients can reach",
    ),
    "load-modules": ("X", "there are no modules; a program that needs one is rejected when it is loaded"),
}
# options that end the program with an error
_REFUSED = {
    "use-files": "packets cannot be read from files; send them into an interface, or use the Python API",
    "packet-in": "packets cannot be taken from a nanomsg socket; attach interfaces with --interface",
    "restore-state": "BMv2's state files cannot be read; write entries over P4Runtime",
}
_PORTS_OVER_GRPC = "with --dp-grpc-server-addr ports have no interfaces, as with BMv2"

_MAX_NUMBER = MOST_DEVICE_ID
"""Maximum of all options that are numbers."""

_DEFAULTS = SwitchOptions(None, {})


class _ArgumentParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(message)


def _typed(parse: Callable[[str], object], what: str) -> Callable[[str], object]:
    """Converts a function that raises ValueError to a type for argparse; `what` describes valid values."""

    def convert(text: str) -> object:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"'{text}' is not {what}") from error

    return convert


def _number(text: str) -> int:
    value = int(text, 0)
    if not 0 <= value <= _MAX_NUMBER:
        raise ValueError(text)
    return value


def _memory(text: str) -> int:
    value = parse_bytes(text)
    if value == 0:
        raise ValueError(text)
    return value


def _interface(text: str) -> tuple[int, str]:
    number, separator, name = text.partition("@")
    if not separator or not name:
        raise ValueError(text)
    return _number(number), name


def _per_port(parse: Callable[[str], object]) -> Callable[[str], object]:
    """A function that parses [PORT:]VALUE to a port (None: all ports) and the result of `parse`."""

    def convert(text: str) -> object:
        port, colon, value = text.rpartition(":")
        return (_number(port) if colon else None, parse(value))

    return convert


def make_parser() -> argparse.ArgumentParser:
    """The parser of all options."""
    parser = _ArgumentParser(
        prog=PROGRAM,
        description="v1model switch with a P4Runtime server; takes simple_switch_grpc's command line.",
        add_help=False,
    )
    number = _typed(_number, f"a number from 0 to {_MAX_NUMBER}")
    parser.add_argument("program", nargs="*", metavar="JSON", help="compiled P4 program (BMv2 JSON)")
    _add_bmv2_options(parser, number)
    _add_target_options(parser, number)
    _add_extension_options(parser, number)
    for name, (metavar, reason) in _IGNORED.items():
        text = f"ignored: {reason}" if reason else "accepted, without effect"
        if metavar is None:
            parser.add_argument(f"--{name}", action="store_true", default=None, help=text)
        else:
            parser.add_argument(f"--{name}", metavar=metavar, help=text)
    for name, reason in _REFUSED.items():
        parser.add_argument(f"--{name}", metavar="X", help=f"refused: {reason}")
    parser.set_defaults(**{f.name: getattr(_DEFAULTS, f.name) for f in fields(SwitchOptions)})
    return parser


def _add_bmv2_options(parser: argparse.ArgumentParser, number: Callable[[str], object]) -> None:
    add = parser.add_argument
    add("-h", "--help", action="store_true", help="show this text")
    add("-v", "--version", action="store_true", help="show the version")
    add("--json-version", action="store_true", help="show the newest BMv2 JSON version that is supported")
    add(
        "-i",
        "--interface",
        action="append",
        default=[],
        metavar="PORT@INTERFACE",
        type=_typed(_interface, "PORT@INTERFACE"),
        help="attach a network interface; repeatable",
    )
    add("--no-p4", action="store_true", help="start without a program and wait for one over P4Runtime")
    add("--device-id", type=number, metavar="N", help="P4Runtime device id (default: 0)")
    add(
        "--pcap",
        nargs="?",
        const=".",
        metavar="DIR",
        help="capture the packets of each port in pcap files in DIR (without DIR: the current directory)",
    )
    add("--log-console", action="store_true", help="log on standard output")
    add("--log-file", type=Path, metavar="FILE", help="log to FILE.txt")
    add(
        "-L",
        "--log-level",
        choices=LEVELS,
        metavar="LEVEL",
        help=f"{', '.join(LEVELS)} (default: trace)",
    )
    add(
        "--log-file-max-size",
        type=number,
        metavar="BYTES",
        help="size at which the log file is rotated (default: 5242880)",
    )
    add(
        "--log-file-max-files",
        type=number,
        metavar="N",
        help="number of rotated log files to keep (default: 3)",
    )
    add(
        "--dump-packet-data",
        type=number,
        metavar="BYTES",
        help="log the first BYTES bytes of each packet received or sent, at level info (default: 0, no line)",
    )


def _add_target_options(parser: argparse.ArgumentParser, number: Callable[[str], object]) -> None:
    add = parser.add_argument
    add(
        "--grpc-server-addr",
        dest="address",
        metavar="HOST:PORT",
        help=f"address of the P4Runtime server (default: {DEFAULT_ADDRESS})",
    )
    add(
        "--dp-grpc-server-addr",
        dest="packets_address",
        metavar="HOST:PORT",
        help="address of a gRPC service to send and receive packets, in place of interfaces (default: none)",
    )
    add("--grpc-server-ssl", dest="ssl", action="store_true", help="use TLS")
    for name, text in (
        ("cacert", "CA certificate to verify clients with"),
        ("cert", "certificate of the server"),
        ("key", "key of the server"),
    ):
        add(f"--grpc-server-{name}", dest=f"ssl_{name}", type=Path, metavar="PEM", help=text)
    auth = "require a certificate of clients"
    add("--grpc-server-with-client-auth", dest="ssl_client_auth", action="store_true", help=auth)
    add(
        "--cpu-port",
        type=number,
        metavar="N",
        help="port number of packet-ins and packet-outs (default: none)",
    )
    add(
        "--drop-port", type=number, metavar="N", help=f"egress_spec that drops a packet (default: {MAX_PORT})"
    )
    add("--priority-queues", type=number, metavar="N", help="queues for each port (default: 1)")
    add("--max-mc-groups", type=number, metavar="N", help="multicast groups (default: 4096)")


def _add_extension_options(parser: argparse.ArgumentParser, number: Callable[[str], object]) -> None:
    group = parser.add_argument_group("options that simple_switch_grpc does not have")
    add = group.add_argument
    add(
        "--p4info",
        type=Path,
        metavar="FILE",
        help="P4Info of the program; P4Runtime clients then need not push the program first (default: none)",
    )
    add(
        "--bmv2-compat",
        action="store_true",
        help="accept what BMv2's switch accepts but the P4Runtime spec forbids (docs/switch/p4runtime.md)",
    )
    add(
        "--strict",
        action="store_true",
        help="follow the P4Runtime spec also where it affects other clients (docs/switch/p4runtime.md)",
    )
    add("--tick-ns", type=number, metavar="NS", help="unit of P4 timestamps (default: 1000)")
    add(
        "--port-rate",
        dest="port_rates",
        action="append",
        type=_typed(_per_port(parse_rate), "[PORT:]RATE"),
        metavar="[PORT:]RATE",
        help="rate of PORT, or of all ports: for example 100Mbps, 2.5Gbps or 1000pps (default: no limit)",
    )
    add(
        "--port-delay",
        dest="port_delays",
        action="append",
        type=_typed(_per_port(parse_time_ns), "[PORT:]TIME"),
        metavar="[PORT:]TIME",
        help="delay of frames sent by PORT, or by all ports: for example 10us or 1ms (default: 0)",
    )
    add(
        "--queue-depth",
        type=_typed(parse_depth, "a depth such as 64, 64pkts or 100KiB"),
        metavar="N[pkts]|BYTES",
        help="depth of each queue (default: 64 packets)",
    )
    add(
        "--recirc-rate",
        type=_typed(parse_rate, "a rate in bit/s"),
        metavar="RATE",
        help="rate of the recirculation port, in bit/s (default: no limit)",
    )
    add(
        "--pfc",
        action="append",
        type=_typed(parse_pfc, "[PORT:]PRIORITIES:xoff=BYTES,xon=BYTES,headroom=BYTES[,quanta=N][,rise=N]"),
        metavar="SPEC",
        help="lossless priorities of PORT or all ports: 3,4:xoff=96KiB,xon=64KiB,headroom=48KiB; repeatable",
    )
    add(
        "--pfc-watchdog",
        action="append",
        type=_typed(
            parse_port_watchdog,
            "[PORTS:]detect=TIME,restore=TIME,share=5%,action=drop|ignore, or host, or off",
        ),
        metavar="SPEC",
        help="what to do with queues of some or all ports that PFC pauses for too long: detect=200ms,restore="
        "200ms,share=100%%,action=drop (the default), 1,2:host for ports with hosts, or off; repeatable",
    )
    add(
        "--buffer",
        type=_typed(parse_buffer, "BYTES[,alpha=FRACTION][,port=BYTES]"),
        metavar="BYTES[,alpha=A][,port=BYTES]",
        help="packet buffer shared by all ports, headrooms included; alpha: dynamic PFC thresholds, at most "
        "A times the free bytes; port: bytes reserved per port for lossy packets (default: no limit)",
    )
    add(
        "--memory",
        type=_typed(_memory, "BYTES, for example 2GiB"),
        metavar="BYTES",
        help="limit of the memory that programs and clients can make the switch use (default: half of this "
        "machine's memory)",
    )
    add(
        "--statistics",
        type=Path,
        metavar="FILE",
        help="write counters of ports, PFC, buffer and drops to FILE at exit and on SIGUSR1",
    )
    add(
        "--coverage",
        type=Path,
        metavar="DIR",
        help="at exit, write to a new file in DIR which parts of the programs ran (see tailrace coverage)",
    )


def parse_options(
    parser: argparse.ArgumentParser, arguments: Sequence[str]
) -> tuple[argparse.Namespace, SwitchOptions]:
    """Parses a command line. Returns argparse's result and the checked options.

    Raises:
        OptionError: an option is invalid, or not supported.
    """
    # the options of simple_switch_grpc may be before or after `--`, so the separator has no meaning
    given = parser.parse_intermixed_args([argument for argument in arguments if argument != "--"])
    if given.help or given.version or given.json_version:
        return given, _DEFAULTS
    for name, reason in _REFUSED.items():
        if getattr(given, name.replace("-", "_")) is not None:
            raise OptionError(f"--{name}: {reason}")
    warnings = [
        f"--{name} is ignored: {reason}"
        for name, (_, reason) in _IGNORED.items()
        if reason and getattr(given, name.replace("-", "_")) is not None
    ]
    words = given.program
    given.program, given.interfaces = _program(given), _interfaces(given.interface)
    if given.packets_address is not None:
        unused = [name for name in ("interface", "pcap") if getattr(given, name)]
        warnings[:0] = [f"--{name} is ignored: {_PORTS_OVER_GRPC}" for name in unused]
        given.interfaces, given.pcap = {}, None
    given.pcap = None if given.pcap is None else Path(given.pcap)
    if given.recirc_rate is not None:
        if given.recirc_rate.pps:
            raise OptionError("--recirc-rate: expected a rate in bit/s, not in packets/s")
        given.recirc_rate_bps = given.recirc_rate.bps
    if given.no_p4 and words:
        warnings.append(f"{words[0]} is ignored: --no-p4 is given")
    given.warnings = warnings
    options = SwitchOptions(**{f.name: getattr(given, f.name) for f in fields(SwitchOptions)})
    check(options)
    return given, options


def _program(given: argparse.Namespace) -> Path | None:
    names = list(given.program)
    if (
        given.pcap is not None
        and not names
        and given.pcap.endswith(".json")
        and not Path(given.pcap).is_dir()
    ):
        # argparse took X.json of `--pcap X.json` as the value of --pcap, but X.json is the program
        names, given.pcap = [given.pcap], "."
    if len(names) > 1:
        raise OptionError(f"unexpected argument '{names[1]}': expected one JSON file")
    if given.no_p4:
        return None
    if not names:
        raise OptionError("expected a JSON file or --no-p4")
    return Path(names[0])


def _interfaces(given: Sequence[tuple[int, str]]) -> dict[int, str]:
    interfaces: dict[int, str] = {}
    for port, name in given:
        if port in interfaces:
            raise OptionError(f"port {port} is given twice, as {interfaces[port]} and {name}")
        if port > MAX_PORT:
            raise OptionError(f"port {port} exceeds {MAX_PORT}")
        interfaces[port] = name
    return interfaces

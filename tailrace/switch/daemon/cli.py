# SPDX-License-Identifier: Apache-2.0
"""The command `tailrace_switch_grpc`: a v1model switch on network interfaces with a P4Runtime server.

Modules that take long to import (gRPC, and what uses it) are imported after the command line has been parsed,
so that --help and errors of the command line appear at once.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import logging.handlers
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tailrace.spec import heap
from tailrace.spec.errors import Error
from tailrace.spec.files import MOST_TEXT_BYTES, read_bytes, without_bom
from tailrace.spec.text import one_line, printable
from tailrace.spec.version import VERSION
from tailrace.switch.compiler import CompilerError, SwitchProgram
from tailrace.switch.compiler.errors import located
from tailrace.switch.core import BuildError, StateError, SwitchConfig, V1ModelSwitch
from tailrace.switch.core.types import PortError
from tailrace.switch.daemon.command_line import PROGRAM, make_parser, parse_options
from tailrace.switch.daemon.lossless import packet_bytes, pfc_configs
from tailrace.switch.daemon.options import OptionError, SwitchOptions

if TYPE_CHECKING:
    from tailrace.switch.daemon.ports import IoLoop
    from tailrace.switch.daemon.signals import SignalHandlers
    from tailrace.switch.p4runtime.device import Device
    from tailrace.switch.p4runtime.program_compiler import ProgramCompiler
    from tailrace.switch.p4runtime.server import ServerTls
    from tailrace.switch.trace.events import Event
    from tailrace.switch.trace.live_trace import LiveTracer

_T = TypeVar("_T")

_MAX_MESSAGE_CHARS = 1000
_MOST_FILES = 4096
"""Maximum number of open files: four times the limit of P4Runtime connections."""

_SWITCH_INTERVAL_S = 0.001
"""Interval in s at which Python switches threads: short, so that no client waits long."""

_GC_THRESHOLD = (2_000, 10, 1_000_000)
"""Thresholds of Python's garbage collector: objects of requests are collected soon, in the young generations.
Full collections are rare, since a full collection over a million table entries would stall all clients.
"""

_LEVELS = {"trace": 5, "debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40, "off": 100}


class StartError(Error):
    """The switch cannot start; the message is a line for the user."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the switch until SIGTERM or SIGINT.

    Args:
        argv: arguments of the command line; None: the arguments of the process.

    Returns:
        the exit code. 0: a signal stopped the switch, or help or version was printed; 2: it cannot start.
    """
    parser = make_parser()
    try:
        arguments, options = parse_options(parser, sys.argv[1:] if argv is None else argv)
    except OptionError as error:
        return _fail(str(error))
    if arguments.help:
        parser.print_help()
        return 0
    if arguments.version or arguments.json_version:
        print(VERSION if arguments.version else _json_version())
        return 0
    for warning in options.warnings:
        print(f"{PROGRAM}: warning: {warning}", file=sys.stderr)
    heap.share_one_heap()  # of all threads: glibc's heaps for each thread would keep freed memory
    _raise_file_limit()
    logging.raiseExceptions = False  # standard output may be closed
    from tailrace.switch.daemon.signals import EndedError, SignalHandlers

    try:
        with SignalHandlers(_exit_at_once) as signals:
            _run(options, signals)
    except StartError as error:
        return _fail(str(error))
    except EndedError:
        return 0
    return 0


def _raise_file_limit() -> None:
    """Raises the soft limit of open files to _MOST_FILES, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _exit_at_once() -> None:
    """Exits without freeing memory, which the operating system does faster."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(0)


def _fail(message: str) -> int:
    """Prints an error message; returns the exit code."""
    print(f"{PROGRAM}: {one_line(message, _MAX_MESSAGE_CHARS)}", file=sys.stderr)
    return 2


def _json_version() -> str:
    from tailrace.switch.compiler.read.bmv2_json import JSON_MAJOR, JSON_MINOR

    return f"{JSON_MAJOR}.{JSON_MINOR}"


def _run(options: SwitchOptions, signals: SignalHandlers) -> None:
    """Runs the switch; raises StartError if it cannot start."""
    # gRPC would log several lines if the address is in use; this program prints one error message
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from tailrace.switch.p4runtime.program_compiler import ProgramCompiler
    from tailrace.switch.p4runtime.server import ServerError

    compiler = ProgramCompiler(tracing=_needs_tracer(options))
    try:
        _serve(options, signals, compiler)
    except (BuildError, PortError, CompilerError, ServerError, StateError) as error:
        raise StartError(str(error)) from error
    finally:
        compiler.stop()


def _serve(options: SwitchOptions, signals: SignalHandlers, compiler: ProgramCompiler) -> None:
    """Creates the switch, its ports and its server, serves until a signal, and ends the process."""
    from tailrace.switch.daemon.ports import IoLoop, is_compiled
    from tailrace.switch.p4runtime.calls import new_event_loop
    from tailrace.switch.p4runtime.context import DevicePorts
    from tailrace.switch.p4runtime.device import Device, DeviceSettings
    from tailrace.switch.p4runtime.memory import default_limit

    tls = _tls(options)
    program = _load(options.program, compiler)
    # the last option that names a port applies; 0: no limit
    rates_bps = {port: 0 if rate.pps else rate.bps for port, rate in _by_port(options, options.port_rates)}
    rates_bps = dict.fromkeys(options.ports, 0) | rates_bps
    pfc = pfc_configs(options.pfc, options.pfc_watchdog, rates_bps)
    memory_limit = options.memory or default_limit()
    config = SwitchConfig(
        device_id=options.device_id,
        cpu_port=options.cpu_port,
        drop_port=options.drop_port,
        priority_queues=options.priority_queues,
        tick_ns=options.tick_ns,
        queue_depth_packets=options.queue_depth[0],
        queue_depth_bytes=options.queue_depth[1],
        recirc_rate_bps=options.recirc_rate_bps,
        packet_bytes=packet_bytes(memory_limit, options.buffer),  # memory for all packets in the switch
        pfc=pfc.get(None),  # of all ports without a configuration of their own
        buffer=options.buffer,
    )
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.set_threshold(*_GC_THRESHOLD)
    if not is_compiled():
        print(f"{PROGRAM}: compiling the core, once", file=sys.stderr, flush=True)
    with V1ModelSwitch(program, config) as switch:
        _configure_ports(switch, options)
        for port, port_config in pfc.items():
            if port is not None:
                switch.port_pfc(port, port_config)
        _configure_log(switch, options)
        tracer = _start_tracer(switch, options)
        if program is not None and program.model.unread:
            log = logging.getLogger("tailrace.switch")
            log.warning("%s: %s", printable(str(options.program)), program.model.unread)
        # with `packets_address`, clients send and receive the frames of ports by gRPC: no interface is needed
        interfaces, no_interfaces = options.interfaces, options.packets_address is not None
        with IoLoop(
            switch, interfaces, options.cpu_port, options.pcap, without_interfaces=no_interfaces
        ) as loop:
            settings = DeviceSettings(
                options.device_id,
                options.bmv2_compat,
                options.strict,
                memory_limit=memory_limit,
                multicast_groups=options.max_mc_groups,
            )
            device = Device(
                switch, settings, loop.now_ns, compiler, DevicePorts(frozenset(options.interfaces))
            )
            if options.p4info is not None and options.program is not None:
                _commit(device, options.program, options.p4info)
            loop.start()
            gc.freeze()  # the objects created so far live until the process ends
            report = _statistics_writer(options, switch, loop)
            try:
                # the event loop is not closed, which would wait for the calls of clients that do not read
                new_event_loop().run_until_complete(_serve_grpc(options, signals, device, loop, tls, report))
            finally:
                signals.ignore_from_now()
                if tracer is not None:
                    tracer.close()
                    if options.coverage is not None:
                        _write_coverage(options, tracer, device)
                switch.set_log(None)
                compiler.stop()
            if report is not None:
                report()
            # close() completes the capture files; other memory is not freed, which would take long
            loop.close()
            _exit_at_once()


async def _serve_grpc(
    options: SwitchOptions,
    signals: SignalHandlers,
    device: Device,
    loop: IoLoop,
    tls: ServerTls | None,
    report: Callable[[], None] | None,
) -> None:
    """Serves clients until a signal. Raises ServerError if a server cannot start."""
    import asyncio

    from tailrace.switch.daemon.dataplane import DataplaneService
    from tailrace.switch.p4runtime.calls import DeadlineHandler
    from tailrace.switch.p4runtime.server import STOP_S, Server, listen, new_server

    stop_event = signals.end_event()
    if report is not None:
        signals.report_with(report)
    server, packet_server = Server(device, loop), new_server()
    try:
        await server.start(options.address, tls)
        if options.packets_address is not None:
            service = DataplaneService(
                loop, options.device_id, lambda port, up: device.port_changed(port, up=up)
            )
            packet_server.add_generic_rpc_handlers((DeadlineHandler((service.handler(),)),))
            listen(packet_server, options.packets_address, tls)
            await packet_server.start()
        server.watch(loop, options.interfaces)
        with contextlib.suppress(OSError):  # standard output may be closed
            print(f"Server listening on {options.address}", flush=True)
        await stop_event.wait()
    finally:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(packet_server.stop(None), STOP_S)
        await server.stop()


def _statistics_writer(
    options: SwitchOptions, switch: V1ModelSwitch, loop: IoLoop
) -> Callable[[], None] | None:
    """A function that writes the statistics file; None if --statistics is not given."""
    from tailrace.switch.p4runtime.statistics import write_statistics

    path = options.statistics
    if path is None:
        return None

    def report() -> None:
        try:
            write_statistics(path, switch, options.interfaces, loop.now_ns())
        except OSError as error:
            print(f"{PROGRAM}: {path}: {error.strerror}", file=sys.stderr)

    return report


def _load(path: Path | None, compiler: ProgramCompiler) -> SwitchProgram | None:
    """Compiles the program on the command line, in another process, which a signal can stop."""
    try:
        return None if path is None else compiler(_read(path))
    except CompilerError as error:
        raise StartError(located(str(path), str(error))) from error


def _read(path: Path) -> bytes:
    try:
        return without_bom(read_bytes(path, MOST_TEXT_BYTES))
    except OSError as error:
        raise StartError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise StartError(f"{path}: {error.reason}") from error


def _commit(device: Device, program: Path, p4info: Path) -> None:
    """Sets a program and its P4Info as the device's forwarding pipeline."""
    from tailrace.p4rt.messages import p4r
    from tailrace.p4rt.programs import parse_p4info
    from tailrace.p4rt.status import P4RtError

    try:
        info = parse_p4info(_read(p4info))
        config = p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=_read(program))
        device.configure(
            p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, device.prepare_config(config)
        )
    except (P4RtError, ValueError) as error:
        raise StartError(f"{p4info}: {error}") from error


def _tls(options: SwitchOptions) -> ServerTls | None:
    """The keys and certificates of the server; None: no TLS."""
    from tailrace.switch.p4runtime.server import ServerTls

    if not options.ssl or options.ssl_key is None or options.ssl_cert is None:
        return None
    root = None if options.ssl_cacert is None else _read(options.ssl_cacert)
    return ServerTls(_read(options.ssl_key), _read(options.ssl_cert), root, options.ssl_client_auth)


def _configure_ports(switch: V1ModelSwitch, options: SwitchOptions) -> None:
    for port, rate in _by_port(options, options.port_rates):
        if rate.pps:
            switch.queue_config(port, rate_pps=rate.pps)
        else:
            switch.port_config(port, rate_bps=rate.bps)
    for port, delay_ns in _by_port(options, options.port_delays):
        switch.port_config(port, delay_ns=delay_ns)


def _by_port(options: SwitchOptions, pairs: Iterable[tuple[int | None, _T]]) -> Iterator[tuple[int, _T]]:
    """Each value with the number of its port; None stands for all ports."""
    for port, value in pairs:
        for number in sorted(options.ports) if port is None else (port,):
            yield number, value


def _configure_log(switch: V1ModelSwitch, options: SwitchOptions) -> None:
    """Sets up the log of the switch and of its P4Runtime server.

    Without a log option the logger has no handler, so Python's handler of last resort writes warnings and
    errors to standard error; with -L off nothing is logged. With a log option the log is standard output, or
    a file.
    """
    root = logging.getLogger("tailrace")  # the parent of the server's loggers
    root.setLevel(_LEVELS[options.log_level])
    if not options.logs("error"):
        return
    handler: logging.Handler = logging.StreamHandler(sys.stdout)
    if options.log_file is not None:
        # BMv2 appends this suffix, too
        name = options.log_file.with_name(options.log_file.name + ".txt")
        try:
            handler = logging.handlers.RotatingFileHandler(
                name, maxBytes=options.log_file_max_size, backupCount=options.log_file_max_files
            )
        except OSError as error:
            raise StartError(f"{name}: {error.strerror}") from error
    handler.setFormatter(
        logging.Formatter("[%(asctime)s.%(msecs)03d] [%(levelname)s] %(message)s", "%H:%M:%S")
    )
    logging.addLevelName(_LEVELS["trace"], "trace")
    root.handlers[:] = [handler]
    root.propagate = False
    log = logging.getLogger("tailrace.switch")
    switch.set_log(lambda level, text: log.log(_LEVELS[level], "%s", printable(text)))
    if options.log_file is not None:
        # Nobody may have read the warnings on standard error. For example, a script may wait for ever for
        # packets on interfaces that are ignored because ports use gRPC.
        for warning in options.warnings:
            log.warning("%s", warning)


def _logs_packets(options: SwitchOptions) -> bool:
    return options.logs("debug") or (options.dump_packet_data > 0 and options.logs("info"))


def _needs_tracer(options: SwitchOptions) -> bool:
    return _logs_packets(options) or options.coverage is not None


def _start_tracer(switch: V1ModelSwitch, options: SwitchOptions) -> LiveTracer | None:
    """Starts to trace all packets for the log or for coverage; None if neither is requested."""
    if not _needs_tracer(options):
        return None
    log = logging.getLogger("tailrace.switch")
    from tailrace.switch.trace.bmv2_log import PacketLogs
    from tailrace.switch.trace.live_trace import LiveTracer

    logs = PacketLogs(switch.config.drop_port, options.dump_packet_data)

    def log_event(_: SwitchProgram, packet_number: int, event: Event) -> None:
        for level, text in logs.lines(packet_number, event):
            log.log(_LEVELS[level], "%s", printable(text))

    return LiveTracer(
        switch, log_event if _logs_packets(options) else None, lambda text: log.warning("%s", one_line(text))
    )


def _write_coverage(options: SwitchOptions, tracer: LiveTracer, device: Device) -> None:
    """Writes the coverage of all programs that ran to a new file."""
    from tailrace.switch.trace.coverage import write

    assert options.coverage is not None
    coverage = tracer.coverage(device.entries_hit)
    path = options.coverage / f"{os.getpid()}-{time.time_ns()}.json"
    try:
        write(coverage, path)
    except OSError as error:
        print(f"{PROGRAM}: {path}: {error.strerror}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""PFC, its watchdog and the shared buffer: parses the command line's specs and configures the switch.

`C` has the constants of the C core (tr_switch.h) as attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from tailrace.spec import UnitError
from tailrace.spec.constants import MAX_QUANTA
from tailrace.spec.units import parse_alpha, parse_bytes
from tailrace.spec.watchdog import Watchdog, of_host, parse_watchdog
from tailrace.switch.core.lib import C
from tailrace.switch.core.types import BufferConfig, PfcConfig

MOST_BYTES = 1 << 40
"""Largest threshold, headroom or buffer."""
HOST = "host"
MIN_PACKET_BYTES = 128 << 20
"""Least memory for packets, in bytes; a large shared buffer needs more."""

_PACKET_OVERHEAD = 16
"""Bytes of memory for each byte in the buffer, in the worst case: if all packets are of the smallest size."""

_SIZES = ("xoff", "xon", "headroom")


PortPfc = tuple[int | None, PfcConfig]
"""PFC of some priorities of a port; port None: of all ports."""


@dataclass(frozen=True, slots=True)
class WatchdogSpec:
    """The PFC watchdog of some ports; ports None: of all ports.

    If `host` is set, the watchdog's times are computed for a port to which a host is attached.
    """

    ports: tuple[int, ...] | None
    watchdog: Watchdog
    host: bool = False

    def of(self, rate_bps: int, xoff_bytes: int) -> Watchdog:
        """The watchdog of a port with this rate (0: no limit) and XOFF threshold."""
        return of_host(rate_bps, xoff_bytes, self.watchdog.action) if self.host else self.watchdog


def parse_pfc(text: str) -> PortPfc:
    """Parses [PORT:]3,4:xoff=96KiB,xon=64KiB,headroom=48KiB[,quanta=N][,rise=N].

    Raises:
        ValueError: the spec is invalid; UnitError, a subclass: a size or another value is invalid.
    """
    head, colon, settings = text.rpartition(":")
    if not colon:
        raise UnitError(text)
    port, colon, numbers = head.rpartition(":")
    priorities = tuple(int(number) for number in numbers.split(","))
    values = dict(item.split("=", 1) for item in settings.split(","))
    quanta = int(values.pop("quanta", str(MAX_QUANTA)))
    rise = int(values.pop("rise", "0"))
    if set(values) != set(_SIZES) or not all(0 <= p < C.TR_MAX_PRIORITIES for p in priorities):
        raise UnitError(text)
    xoff, xon, headroom = (parse_bytes(values[name]) for name in _SIZES)
    if xon > xoff or max(xoff, headroom) > MOST_BYTES or not 0 < quanta <= MAX_QUANTA:
        raise UnitError(text)
    if not 0 <= rise < C.TR_MAX_PRIORITIES:
        raise UnitError(text)
    return int(port) if colon else None, PfcConfig(priorities, xoff, xon, headroom, quanta, rise=rise)


def parse_port_watchdog(text: str) -> WatchdogSpec:
    """Parses [PORT,PORT,...:]SPEC; SPEC is as in spec.watchdog, or host[,action=ACTION].

    Raises:
        ValueError: a port number is invalid; UnitError: SPEC is invalid.
    """
    numbers, colon, settings = text.rpartition(":")
    ports = tuple(int(number) for number in numbers.split(",")) if colon else None
    kind, comma, rest = settings.partition(",")
    if kind != HOST:
        return WatchdogSpec(ports, parse_watchdog(settings))
    if comma and not rest.startswith("action="):
        raise UnitError(f"{rest!r}: with `host` only action=ACTION can be given")
    return WatchdogSpec(ports, parse_watchdog(rest) if comma else Watchdog(), host=True)


def parse_buffer(text: str) -> BufferConfig:
    """Parses the shared buffer, such as 9MB,alpha=1/8,port=8KB: size, alpha and reserve of each port.

    Raises:
        ValueError: the spec is invalid; UnitError, a subclass: a size or key is invalid.
    """
    size, comma, rest = text.partition(",")
    size_bytes = parse_bytes(size)
    values = dict(item.split("=", 1) for item in rest.split(",")) if comma else {}
    alpha = parse_alpha(values.pop("alpha")) if "alpha" in values else None
    port_bytes = parse_bytes(values.pop("port", "0"))
    if values or not 0 < size_bytes <= MOST_BYTES or port_bytes > MOST_BYTES:
        raise UnitError(text)
    return BufferConfig(size_bytes, alpha, port_bytes)


def pfc_configs(
    specs: Sequence[PortPfc],
    watchdogs: Sequence[WatchdogSpec] = (),
    rates_bps: Mapping[int, int] | None = None,
) -> dict[int | None, PfcConfig]:
    """The PFC configuration of each port with a spec, and of all other ports (key None).

    If several specs name a priority, the last applies; specs for one port come after those for all ports.

    Args:
        rates_bps: rate of each port of the switch (0: no limit); only watchdogs with `host` depend on it.
    """
    rates_bps = rates_bps or {}
    configs: dict[int | None, PfcConfig] = {}
    for_all_ports = [pfc for port, pfc in specs if port is None]
    if for_all_ports:
        configs[None] = _config(for_all_ports)
    named_ports = {port for port, _ in specs if port is not None}
    for port in sorted(named_ports | _watched(watchdogs, rates_bps)):
        of_port = [*for_all_ports, *(pfc for named, pfc in specs if named == port)]
        if not of_port:
            continue
        config = _config(of_port)
        watching = [spec for spec in watchdogs if spec.ports is None or port in spec.ports]
        if watching:
            watchdog = watching[-1].of(rates_bps.get(port, 0), config.least_xoff_bytes)
            config = replace(config, watchdog=watchdog)
        configs[port] = config
    return configs


def _watched(watchdogs: Sequence[WatchdogSpec], all_ports: Iterable[int]) -> set[int]:
    """The ports for which a watchdog is given."""
    return {port for spec in watchdogs for port in (all_ports if spec.ports is None else spec.ports)}


def _config(specs: Sequence[PfcConfig]) -> PfcConfig:
    """The configuration of a port: thresholds by priority; quanta and rise are those of the last spec."""
    limits = {priority: spec.limits(priority) for spec in specs for priority in spec.priorities}
    return replace(specs[-1], priorities=tuple(sorted(limits)), overrides=limits)


def packet_bytes(memory_bytes: int, buffer: BufferConfig | None) -> int:
    """Memory for the packets of a switch, in bytes: at most a quarter of `memory_bytes` (`--memory`)."""
    buffer_bytes = 0 if buffer is None else buffer.bytes
    return min(memory_bytes // 4, max(MIN_PACKET_BYTES, _PACKET_OVERHEAD * buffer_bytes))

# SPDX-License-Identifier: Apache-2.0
"""Transports in words: a name such as ``gbn``, and for dcqcn and tcp what their parameters are.

    dcqcn       cnp=50us,alpha=55us,timer=55us: times, counter=10MB: bytes, gain=0.00390625, steps=5,
                ai=40Mbps,hai=400Mbps,least=10Mbps: rates, clamp=yes (see DcqcnConfig, which has the defaults)
    tcp         iw=10: packets of the first window, tso=64KiB: of a burst, ack=32,delay=16us: packets that are
                gathered before one answer, and how long, dupacks=3: arrivals that make a packet lost,
                rto=5ms: the least timeout, ecn=no (see TcpConfig and TcpWords)
    linux-tcp   TCP connections of the hosts' kernel, on targets that have one: cc=cubic, or another
                congestion control of that kernel

All are at full speed, as everything in words is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from tailrace.hosts.options.dcqcn import DcqcnConfig
from tailrace.hosts.options.nic import DCQCN, TCP, TRANSPORTS, NicConfig
from tailrace.hosts.options.tcp import (
    LEAST_BURST_BYTES,
    MODERATION_NS,
    MODERATION_PACKETS,
    MOST_BURST_BYTES,
    MOST_DUPLICATES,
    MOST_INITIAL_PACKETS,
    TcpConfig,
)
from tailrace.words import Options, SpecError, parse
from tailrace.words.units import format_bytes, format_time

_KEYS = {
    DCQCN: ("cnp", "alpha", "timer", "counter", "gain", "steps", "ai", "hai", "least", "clamp"),
    TCP: ("iw", "tso", "ack", "delay", "dupacks", "rto", "ecn"),
}
LINUX_TCP = "linux-tcp"
NAMES = (*TRANSPORTS, LINUX_TCP)
CONGESTION_CONTROL = "cubic"
"""The kernel's own default where nobody has changed it."""

_CONGESTION = re.compile(r"[a-z][a-z0-9_-]{0,14}")
_MOST_GATHERED = 1 << 16
_MOST_DELAY_NS = 500_000_000  # RFC 5681 §4.2 allows no more
_MOST_RTO_NS = 60_000_000_000  # RFC 6298 (2.5) allows an upper bound of this or more


@dataclass(frozen=True, slots=True)
class TcpWords:
    """What the transport tcp is given.

    `ack_every` packets are acknowledged together, or those of `ack_delay_ns`; `rto_ns` is the least timeout,
    None: that of all transports (experiments.plan.nic). `ecn`: packets say that they can be marked.
    """

    config: TcpConfig = field(default_factory=TcpConfig)
    ack_every: int = MODERATION_PACKETS
    ack_delay_ns: int = MODERATION_NS
    rto_ns: int | None = None
    ecn: bool = False


@dataclass(frozen=True, slots=True)
class Transport:
    """A transport: its name, one of TRANSPORTS, and the settings of dcqcn and of tcp, needed or not.

    `kernel` is the congestion control of the hosts' kernel, whose TCP takes the place of tcp; empty: it does
    not.
    """

    name: str
    kernel: str = ""
    dcqcn: DcqcnConfig = field(default_factory=DcqcnConfig)
    tcp: TcpWords = field(default_factory=TcpWords)


def parse_transport(text: str) -> Transport:
    """The transport that words describe.

    Raises:
        SpecError: they describe none; one line says why.
    """
    words = parse(text, "transport")
    if words.name == LINUX_TCP:
        return Transport(TCP, _congestion(Options(words, ("cc",))))
    if words.name not in TRANSPORTS:
        raise SpecError(f"expected one of {', '.join(NAMES)}, found {text!r}")
    options = Options(words, _KEYS.get(words.name, ()))
    return Transport(words.name, dcqcn=_dcqcn(options), tcp=_tcp(options))


def _congestion(options: Options) -> str:
    name = options.text("cc", CONGESTION_CONTROL)
    if _CONGESTION.fullmatch(name) is None:
        raise options.error("cc", f"a congestion control such as {CONGESTION_CONTROL} or reno")
    return name


def with_tcp(config: NicConfig, words: TcpWords) -> NicConfig:
    """The settings of a NIC with what the transport tcp needs, `words` being at their time scale; other
    transports' as they are.
    """
    if config.transport != TCP:
        return config
    return replace(
        config,
        tcp=words.config,
        ack_every=words.ack_every,
        ack_delay_ns=words.ack_delay_ns,
        rto_ns=config.rto_ns if words.rto_ns is None else words.rto_ns,
        rto_backoff=NicConfig().rto_backoff,
        ecn=words.ecn,
    )


def _dcqcn(options: Options) -> DcqcnConfig:
    default = DcqcnConfig()
    gain = options.number("gain", default.gain, least=0, most=1)
    if gain == 0:
        raise options.error("gain", "more than 0")
    return DcqcnConfig(
        cnp_ns=options.time_ns("cnp", default.cnp_ns, least=1),
        alpha_ns=options.time_ns("alpha", default.alpha_ns, least=1),
        gain=gain,
        timer_ns=options.time_ns("timer", default.timer_ns, least=1),
        counter_bytes=options.size_bytes("counter", default.counter_bytes, least=1),
        recovery_steps=options.integer("steps", default.recovery_steps, least=0),
        additive_bps=options.rate_bps("ai") if "ai" in options else None,
        hyper_bps=options.rate_bps("hai") if "hai" in options else None,
        least_bps=options.rate_bps("least", default.least_bps),
        clamp=options.flag("clamp", default=default.clamp),
    )


def _tcp(options: Options) -> TcpWords:
    default, config = TcpWords(), TcpConfig()
    burst_bytes = options.size_bytes("tso", config.burst_bytes, least=LEAST_BURST_BYTES)
    delay_ns = options.time_ns("delay", default.ack_delay_ns, least=1)
    rto_ns = options.time_ns("rto", least=1) if "rto" in options else None
    for key, value, most in (
        ("tso", burst_bytes, MOST_BURST_BYTES),
        ("delay", delay_ns, _MOST_DELAY_NS),
        ("rto", rto_ns or 0, _MOST_RTO_NS),
    ):
        if value > most:
            raise options.error(key, f"at most {(format_bytes if key == 'tso' else format_time)(most)}")
    return TcpWords(
        TcpConfig(
            initial_packets=options.integer("iw", config.initial_packets, least=1, most=MOST_INITIAL_PACKETS),
            burst_bytes=burst_bytes,
            duplicates=options.integer("dupacks", config.duplicates, least=1, most=MOST_DUPLICATES),
        ),
        ack_every=options.integer("ack", default.ack_every, least=1, most=_MOST_GATHERED),
        ack_delay_ns=delay_ns,
        rto_ns=rto_ns,
        ecn=options.flag("ecn", default=default.ecn),
    )

# SPDX-License-Identifier: Apache-2.0
"""The built-in transports and their keys; `hosts.transport` implements them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import field, structs

from tailrace.hosts.options.dcqcn import DcqcnConfig
from tailrace.hosts.options.dctcp import DctcpConfig
from tailrace.hosts.options.tcp import TcpConfig
from tailrace.hosts.options.transport import TRANSPORTS, Transport, transport
from tailrace.spec import keys
from tailrace.spec.errors import UnitError

__all__ = [
    "TRANSPORTS",
    "Dcqcn",
    "Dctcp",
    "GoBackN",
    "MpRdma",
    "SelectiveRepeat",
    "Tcp",
    "Udp",
    "parse_transport",
]

RTO_BACKOFF = 6
"""Default maximum number of doublings of a retransmission timeout without progress."""

_MOST_BACKOFF = 16

PATH, LOSS, SIZE = TIMEOUTS = ("path", "loss", "size")
"""What a timeout means to the transport dctcp: only a dead path, or also a loss that reduces the window, or
that the window becomes smaller by the packet's size, and nothing else (the simulator of Spritz's authors,
uec.cpp, mark_packet_for_retransmission; the paper leaves it open).
"""

_MODERATION_PACKETS = 32
_MODERATION_NS = 16_000
"""Interrupt moderation as in Linux's driver mlx5: a NIC interrupts after this many packets or this time."""

_MOST_COALESCED = 1 << 16
_ACK_EVERY = "number of in-order packets per ACK"
_ACK_DELAY = "maximum delay of an ACK after the first packet that it acknowledges"
_MOST_DELAY_NS = 500_000_000  # RFC 5681 §4.2 allows no more
_MOST_RTO_NS = 60_000_000_000  # RFC 6298 (2.5) allows an upper bound of this or more
_BACKOFF = "maximum number of times that the timeout doubles without progress"


class BuiltInTransport(Transport, frozen=True, kw_only=True):
    """A transport whose fields are fields of NicConfig; None: network and scheme determine the value."""

    def settings(self) -> dict[str, Any]:
        """See Transport."""
        return {name: value for name, value in structs.asdict(self).items() if value is not None}


class CoalescingTransport(BuiltInTransport, frozen=True, kw_only=True):
    """A transport whose receiver may send one ACK for several packets (Spritz §IV-C, Flowcut §III-A1)."""

    ack_every: Annotated[int, keys.integer("ack_every", _ACK_EVERY, least=1, most=_MOST_COALESCED)] = 1
    ack_delay_ns: Annotated[
        int | None, keys.time("ack_delay", _ACK_DELAY, least=1, most=_MOST_DELAY_NS, absent="base RTT")
    ] = None

    rto_ns: Annotated[
        int | None,
        keys.time(
            "rto",
            "retransmission timeout (RTO)",
            least=1,
            most=_MOST_RTO_NS,
            absent="from the network",
        ),
    ] = None
    rto_backoff: Annotated[
        int | None,
        keys.integer("backoff", _BACKOFF, least=0, most=_MOST_BACKOFF, absent="depends on the scheme"),
    ] = None


class GoBackNTransport(CoalescingTransport, frozen=True, kw_only=True):
    """A transport whose receiver discards out-of-order packets."""

    nak_every_ns: Annotated[
        int | None,
        keys.time(
            "nak",
            "time after which another out-of-order packet repeats the NAK",
            least=1,
            most=_MOST_RTO_NS,
            absent="never",
        ),
    ] = None


def _parse_one(text: str) -> int:
    """The value of a key that must be 1; raises UnitError for other values."""
    if text != "1":
        raise UnitError(text)
    return 1


@transport
class GoBackN(GoBackNTransport, frozen=True, kw_only=True):
    """See hosts.transport.go_back_n."""

    name: ClassVar[str] = "gbn"
    about: ClassVar[str] = "go-back-N, as in reliable connections of RoCE NICs"
    in_order: ClassVar[bool] = True
    lossless: ClassVar[bool] = True  # made for lossless networks: experiments use PFC by default


@transport
class SelectiveRepeat(CoalescingTransport, frozen=True, kw_only=True):
    """See hosts.transport.selective_repeat."""

    name: ClassVar[str] = "sr"
    about: ClassVar[str] = "selective repeat: only missing packets are retransmitted"


@transport
class MpRdma(BuiltInTransport, frozen=True, kw_only=True):
    """See hosts.transport.mp_rdma."""

    name: ClassVar[str] = "mp-rdma"
    about: ClassVar[str] = "one ECN-controlled window over many paths (NSDI'18)"
    chooses_paths: ClassVar[bool] = True
    acks_each: ClassVar[bool] = True  # receivers acknowledge each packet
    led_by_marks: ClassVar[bool] = True
    ack_every: Annotated[
        int,
        keys.parsed(
            "ack_every",
            f"{_ACK_EVERY}; fixed",
            "1: each ACK clocks a packet out on the same path (MP-RDMA §3)",
            _parse_one,
        ),
    ] = 1


@transport
class Dctcp(CoalescingTransport, frozen=True, kw_only=True):
    """See hosts.transport.dctcp."""

    name: ClassVar[str] = "dctcp"
    about: ClassVar[str] = (
        "an ECN-controlled window, and NACKs for trimmed packets; for Spritz and its baselines"
    )
    led_by_marks: ClassVar[bool] = True
    timeout: Annotated[
        str | None,
        keys.choice(
            "timeout",
            "meaning of a timeout: a dead path; a loss too, which cuts the window; or a packet less of it",
            TIMEOUTS,
            absent=f"{PATH} if queues trim, else {LOSS}",
            section="Spritz §V-A",
        ),
    ] = None
    dctcp: DctcpConfig = field(default_factory=DctcpConfig)


@transport
class Dcqcn(GoBackNTransport, frozen=True, kw_only=True):
    """See hosts.transport.dcqcn."""

    name: ClassVar[str] = "dcqcn"
    about: ClassVar[str] = "go-back-N with DCQCN's rate control"
    windowless: ClassVar[bool] = True  # DCQCN limits the rate
    in_order: ClassVar[bool] = True
    lossless: ClassVar[bool] = True
    dcqcn: DcqcnConfig = field(default_factory=DcqcnConfig)


@transport
class Tcp(CoalescingTransport, frozen=True, kw_only=True):
    """See hosts.transport.tcp. ACKs are coalesced; `rto_ns` is the minimum RTO."""

    name: ClassVar[str] = "tcp"
    about: ClassVar[str] = "a TCP-like sender with bursts, which sends RDMA packets"
    windowless: ClassVar[bool] = True  # its congestion window suffices: it needs no fixed window
    tcp: TcpConfig = field(default_factory=TcpConfig)
    ack_every: Annotated[int, keys.integer("ack_every", _ACK_EVERY, least=1, most=_MOST_COALESCED)] = (
        _MODERATION_PACKETS
    )
    ack_delay_ns: Annotated[int | None, keys.time("ack_delay", _ACK_DELAY, least=1, most=_MOST_DELAY_NS)] = (
        _MODERATION_NS
    )
    rto_ns: Annotated[
        int | None,
        keys.time(
            "rto",
            "minimum retransmission timeout (RTO)",
            least=1,
            most=_MOST_RTO_NS,
            absent="from the network",
        ),
    ] = None
    rto_backoff: Annotated[int, keys.integer("backoff", _BACKOFF, least=0, most=_MOST_BACKOFF)] = RTO_BACKOFF
    ecn: Annotated[bool, keys.flag("ecn", "packets are sent as ECN-capable (ECT)")] = False

    @property
    def loss_driven_burst_bytes(self) -> int:
        """The payload of a burst of packets sent back to back.

        The value is given, since losses control this transport's window. So experiments limit queues (without
        a limit nothing would be lost), and make them long enough for some bursts.
        """
        return self.tcp.burst_bytes


@transport
class Udp(BuiltInTransport, frozen=True, kw_only=True):
    """See hosts.transport.udp."""

    name: ClassVar[str] = "udp"
    about: ClassVar[str] = "packets at a constant rate, without ACKs and retransmissions; losses are counted"
    windowless: ClassVar[bool] = True
    unreliable: ClassVar[bool] = True
    flow_rate_bps: Annotated[
        int | None, keys.rate("rate", "sending rate of each flow", absent="that of the host's link")
    ] = None
    ecn: Annotated[bool, keys.flag("ecn", "packets are sent as ECN-capable (ECT)")] = False


def parse_transport(text: str) -> Transport:
    """The transport that a spec describes.

    Raises:
        SpecError: the spec is invalid; the one-line message contains the reason.
    """
    return TRANSPORTS.parse(text)[1]

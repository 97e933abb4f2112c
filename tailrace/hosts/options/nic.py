# SPDX-License-Identifier: Apache-2.0
"""Settings of a NIC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tailrace.codec.calls import PSN_MASK
from tailrace.hosts.errors import ConfigError, check_setting
from tailrace.hosts.options.dcqcn import DcqcnConfig, HermesConfig
from tailrace.hosts.options.hf2t import Hf2tConfig
from tailrace.hosts.options.tcp import TcpConfig
from tailrace.hosts.options.transport import TRANSPORTS, Transport
from tailrace.hosts.options.transports import RTO_BACKOFF, Dcqcn, Dctcp, GoBackN, Tcp
from tailrace.words import SpecError, plugins

MS_NS = 1_000_000
STEERABLE = Dctcp.name  # the transport that tells each packet's fate
DCQCN = Dcqcn.name
HERMES = "hermes"
FLOWBENDER = "flowbender"
ANY = ""
ALGORITHMS = dict.fromkeys(("scout", "spray", "ops", "ecmp", "flicr"), STEERABLE) | {
    HERMES: DCQCN,
    FLOWBENDER: ANY,
}
"""The transport that each way to choose paths needs; ANY: none in particular."""

MARKED_SHARE = 0.05
"""Above which FlowBender finds a path congested (CoNEXT'14), and Flicr after it."""

MAX_MTU_BYTES = 9000
_MOST_PACKETS = 1 << 22  # outstanding: a quarter of all PSNs


@dataclass(frozen=True, slots=True)
class FlowcutNicConfig:
    """Flowcut on the NIC alone (Flowcut §II-D, with the triggers of §II-B and the extensions of §IV-C).

    rtt_threshold: drain when the average of the normalised RTT exceeds it (§III-C1: 3 to 5 do well).
    growth_threshold: drain when the average growth of the normalised RTT exceeds it; None: never.
    alpha: weight of the newest sample in both averages, 0 < alpha <= 1.
    ns_per_byte: transmission time of a byte at one hop (the paper's t).
    age_ns: longest time that a packet and its NIC ACK can be under way; what was sent longer ago is lost.
    min_left: drain only if at least so many packets have never been sent yet.
    resume_bytes: end a drain when no more than these bytes are in flight; 0 keeps the order.
    base_rtts_ns: idle round trips by the number of switches between hosts, without the packet's transmission
        time at each of these; 0, and beyond its end: the smallest one seen.
    """

    rtt_threshold: float = 4.0
    growth_threshold: float | None = None
    alpha: float = 0.5
    ns_per_byte: float = 0.0
    age_ns: int = 10 * MS_NS
    min_left: int = 8
    resume_bytes: int = 0
    base_rtts_ns: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raises ConfigError on values that make no sense."""
        check_setting(self.rtt_threshold >= 1, f"rtt_threshold is {self.rtt_threshold}, expected 1 or more")
        check_setting(0 < self.alpha <= 1, f"alpha is {self.alpha}, expected more than 0 and at most 1")
        check_setting(self.ns_per_byte >= 0, f"ns_per_byte is {self.ns_per_byte}, expected 0 or more")
        check_setting(self.age_ns > 0, f"age_ns is {self.age_ns}, expected more than 0")
        check_setting(self.min_left >= 0, f"min_left is {self.min_left}, expected 0 or more")
        check_setting(self.resume_bytes >= 0, f"resume_bytes is {self.resume_bytes}, expected 0 or more")


@dataclass(frozen=True, slots=True)
class MpRdmaConfig:
    """The transport mp-rdma (MP-RDMA §3).

    initial_bytes: payload that the congestion window begins with, one bandwidth-delay product say;
        0: NicConfig.window_bytes.
    delta_packets: a packet that comes so much later than another one was on a path too slow.
    probe: share of packets that try a new path, 0..1.
    """

    initial_bytes: int = 0
    delta_packets: int = 32
    probe: float = 0.01

    def __post_init__(self) -> None:
        """Raises ConfigError on values that make no sense."""
        check_setting(self.initial_bytes >= 0, f"initial_bytes is {self.initial_bytes}, expected 0 or more")
        check_setting(self.delta_packets > 0, f"delta_packets is {self.delta_packets}, expected more than 0")
        check_setting(0 <= self.probe <= 1, f"probe is {self.probe}, expected 0..1")


@dataclass(frozen=True, slots=True)
class DctcpConfig:
    """The transport dctcp: a window of bytes led by ECN, with QuickAdapt and FastIncrease (Spritz §IV-C).

    rtt_ns: round-trip time of the longest path without queues; 0: the smallest one that the flow sees.
    adapt_rtts: how many of them an interval of QuickAdapt lasts.
    adapt_scale: share of the bytes that arrived in an interval with losses, to which the window falls.
    increase_packets: packets that FastIncrease adds for each acknowledgment; 0: no FastIncrease.
    """

    rtt_ns: int = 0
    adapt_rtts: float = 1.5
    adapt_scale: float = 0.8
    increase_packets: float = 0.5

    def __post_init__(self) -> None:
        """Raises ConfigError on values that make no sense."""
        check_setting(self.rtt_ns >= 0, f"rtt_ns is {self.rtt_ns}, expected 0 or more")
        check_setting(self.adapt_rtts > 0, f"adapt_rtts is {self.adapt_rtts}, expected more than 0")
        check_setting(
            0 < self.adapt_scale <= 1,
            f"adapt_scale is {self.adapt_scale}, expected more than 0 and at most 1",
        )
        check_setting(
            self.increase_packets >= 0, f"increase_packets is {self.increase_packets}, expected 0 or more"
        )


@dataclass(frozen=True, slots=True)
class SteeringConfig:
    """How the NIC chooses the paths of its flows' packets (Spritz §IV).

    algorithm: "scout" and "spray" (Spritz, Algorithms 1-3), "ops" (every packet on a path drawn by
        weight), "ecmp" (every flow on one path, by the hash of its 5-tuple), "flicr" and "flowbender"
        (every flow on one path, until that is congested), "hermes" (see HermesConfig; needs the transport
        dcqcn), or one from outside. What needs no transport works over all that do not choose paths.
    explore_threshold: packets after which scout and spray draw a path anyway, 0 or more.
    ecn_threshold: marks after which scout forgets a good path, 0 or more.
    buffer: good paths that scout and spray remember, 1 or more.
    timer_ns: after this time a path that a timeout has blocked has its weight of eq. 1 again; so has
        path 0 after a bias.
    keep_ns: a flow begins with what scout or spray has learnt by the last one from this NIC to the same
        host, if that ended at most so long ago; 0: every flow begins anew.
    min_bias_factor: weight of path 0 while nearly all packets are marked; 0: twice that of eq. 1.
    ecn_rate: share of marked acknowledgments from which on that is so, 0..1.
    ecn_gain: weight of the newest acknowledgment in that share.
    epoch_ns: how often flicr and flowbender judge their path, one round-trip time say; after as long a
        pause of the flow flicr draws another one anyway.
    marked_share: share of marked packets above which an epoch is a congested one, 0..1.
    epochs: congested ones in a row after which flowbender leaves a path, 1 or more.
    own: settings of an algorithm from outside.
    """

    algorithm: str = "scout"
    explore_threshold: int = 44
    ecn_threshold: int = 8
    buffer: int = 8
    timer_ns: int = MS_NS
    keep_ns: int = 0
    min_bias_factor: float = 0.0
    ecn_rate: float = 0.9
    ecn_gain: float = 1 / 16
    epoch_ns: int = 50_000
    marked_share: float = MARKED_SHARE
    epochs: int = 1
    own: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ConfigError on values that make no sense."""
        expected = ", ".join(algorithms())
        check_setting(self.algorithm in ALGORITHMS, f"algorithm is {self.algorithm!r}, expected {expected}")
        for name in ("explore_threshold", "ecn_threshold", "min_bias_factor", "keep_ns"):
            check_setting(getattr(self, name) >= 0, f"{name} is {getattr(self, name)}, expected 0 or more")
        for name in ("buffer", "timer_ns", "epoch_ns", "epochs"):
            check_setting(getattr(self, name) > 0, f"{name} is {getattr(self, name)}, expected more than 0")
        for name in ("ecn_rate", "marked_share"):
            check_setting(0 <= getattr(self, name) <= 1, f"{name} is {getattr(self, name)}, expected 0..1")
        check_setting(
            0 < self.ecn_gain <= 1, f"ecn_gain is {self.ecn_gain}, expected more than 0 and at most 1"
        )


@dataclass(frozen=True, slots=True)
class NicConfig:
    """Settings of a NIC; both ends of a flow must agree on mtu_bytes, transport and first_psn.

    mtu_bytes: payload of a full packet.
    transport: name of one of hosts.options.transports, or of one from outside.
    window_bytes: payload that may be unacknowledged; one packet always may. Not with mp-rdma; with dctcp
        what it begins with, and at most; with tcp the receiver's. 0, with dcqcn and tcp only: no window.
    rto_ns: retransmission timeout where no ACK is held back; doubles without progress, rto_backoff times at
        most. With tcp the least one, from which on it is measured.
    timeout_is_loss: with dctcp a timeout narrows the window as a trimmed packet does; False where queues trim
        what they cannot hold, so that a timeout tells of a dead path and not of congestion.
    ack_every: the receiver acknowledges every n-th packet in order, and whatever asks for it; the same of the
        ACKs of Flowcut between NICs (Flowcut §II-D), but with tcp.
    nak_every_ns: gbn and dcqcn send a NAK again, for the next packet out of order after so long; 0: once.
    ack_delay_ns: an acknowledgment is sent so long after the first packet that it is for, at the latest.
    pause_timeout_ns: a paused flow goes on by itself after this time (Flowcut §IV-A).
    link_rate_bps: rate of the NIC's link, for the length of PFC pauses.
    flow_rate_bps: pace of each flow; 0: as fast as the link.
    virtual_payload: frames carry headers only, and the length of a payload of zeros.
    ecn: data packets are sent as ECT(0).
    data_priority, control_priority: which PFC priority pauses what.
    bitmap_packets: packets beyond the expected one that a receiver of any transport but gbn remembers.
    reorder_packets: sr and mp-rdma take a packet for lost when one so much later has arrived.
    first_psn: PSN of a flow's first packet.
    flowcut_nic: Flowcut on the NIC; None: the NIC leaves paths alone.
    mp_rdma: settings of the transport mp-rdma.
    dctcp: settings of the transport dctcp.
    steering: how the paths of packets are chosen; what needs a transport says so in ALGORITHMS. None: by each
        flow's own source port, whatever the network makes of it.
    dcqcn: settings of the transport dcqcn.
    hermes: settings of the steering hermes.
    tcp: settings of the transport tcp.
    hf2t: gaps are stretched (HF2T §4); None: they stay as they are.
    measure_gaps: the gaps between data packets of a flow are measured as they leave.
    own: settings of a transport from outside.
    """

    mtu_bytes: int = 1024
    transport: str = GoBackN.name
    window_bytes: int = 65_536
    rto_ns: int = 4 * MS_NS
    rto_backoff: int = RTO_BACKOFF
    timeout_is_loss: bool = True
    ack_every: int = 1
    ack_delay_ns: int = MS_NS
    nak_every_ns: int = 0
    pause_timeout_ns: int = 20 * MS_NS
    link_rate_bps: int = 10_000_000_000
    flow_rate_bps: int = 0
    virtual_payload: bool = False
    ecn: bool = True
    data_priority: int = 0
    control_priority: int = 7
    bitmap_packets: int = 4096
    reorder_packets: int = 64
    first_psn: int = 0
    flowcut_nic: FlowcutNicConfig | None = None
    mp_rdma: MpRdmaConfig = field(default_factory=MpRdmaConfig)
    dctcp: DctcpConfig = field(default_factory=DctcpConfig)
    steering: SteeringConfig | None = None
    dcqcn: DcqcnConfig = field(default_factory=DcqcnConfig)
    hermes: HermesConfig = field(default_factory=HermesConfig)
    tcp: TcpConfig = field(default_factory=TcpConfig)
    hf2t: Hf2tConfig | None = None
    measure_gaps: bool = False
    own: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ConfigError on values that make no sense."""
        kind = self.kind
        needed = ANY if self.steering is None else steered_by(self.steering.algorithm)
        check_setting(
            needed in (ANY, self.transport), f"steering needs transport {needed}, not {self.transport}"
        )
        for name in ("flowcut_nic", "steering"):
            check_setting(
                getattr(self, name) is None or not kind.chooses_paths,
                f"{name} and transport {self.transport} both choose the source port, expected one of them",
            )
        check_setting(
            self.flowcut_nic is None or self.steering is None,
            "flowcut_nic and steering both choose the source port, expected one of them",
        )
        check_setting(
            1 <= self.mtu_bytes <= MAX_MTU_BYTES,
            f"mtu_bytes is {self.mtu_bytes}, expected 1..{MAX_MTU_BYTES}",
        )
        check_setting(
            0 <= self.first_psn <= PSN_MASK, f"first_psn is {self.first_psn}, expected 0..{PSN_MASK}"
        )
        check_setting(
            self.window_bytes > 0 or (self.window_bytes == 0 and kind.windowless),
            f"window_bytes is {self.window_bytes}, expected more than 0",
        )
        for name in (
            "rto_ns",
            "ack_every",
            "ack_delay_ns",
            "pause_timeout_ns",
            "link_rate_bps",
        ):
            check_setting(getattr(self, name) > 0, f"{name} is {getattr(self, name)}, expected more than 0")
        if self.ack_every > 1:
            self._check_gathering()
        for name in ("bitmap_packets", "reorder_packets"):
            check_setting(
                0 < getattr(self, name) < _MOST_PACKETS,
                f"{name} is {getattr(self, name)}, expected 1..{_MOST_PACKETS - 1}",
            )
        for name in ("flow_rate_bps", "rto_backoff", "nak_every_ns"):
            check_setting(getattr(self, name) >= 0, f"{name} is {getattr(self, name)}, expected 0 or more")
        for name in ("data_priority", "control_priority"):
            check_setting(0 <= getattr(self, name) < 8, f"{name} is {getattr(self, name)}, expected 0..7")

    def _check_gathering(self) -> None:
        said = f"ack_every is {self.ack_every}, expected 1"
        check_setting(
            not self.kind.answers_each, f"{said}: with transport {self.transport} each packet is answered"
        )
        check_setting(
            self.steering is None or self.steering.algorithm != HERMES,
            f"{said}: {HERMES} takes the time of each packet from its own ACK",
        )

    @property
    def kind(self) -> type[Transport]:
        """What is declared of the transport.

        Raises:
            ConfigError: there is none of this name in NICs.
        """
        try:
            return TRANSPORTS.entry(self.transport).struct
        except SpecError as error:
            raise ConfigError(f"NIC settings: {error}") from None

    @property
    def held_ns(self) -> int:
        """Longest time for which a receiver holds back an ACK."""
        return self.ack_delay_ns if self.ack_every > 1 else 0

    @property
    def nic_ack_every(self) -> int:
        """Packets that an ACK of Flowcut between NICs is for. What tcp gathers it gathers in the host's
        stack, behind the NIC; ACKs of Flowcut do not wait for that (Flowcut §III-A1).
        """
        return 1 if self.transport == Tcp.name else self.ack_every

    @property
    def initial_packets(self) -> int:
        """The congestion window in packets that mp-rdma begins with."""
        initial = self.mp_rdma.initial_bytes
        return min(max(1, initial // self.mtu_bytes), self.bitmap_packets) if initial else self.window_packets

    @property
    def window_packets(self) -> int:
        """The window in packets, at least one; only go-back-N may exceed the receiver's bitmap."""
        packets = min(max(1, self.window_bytes // self.mtu_bytes), _MOST_PACKETS)
        if self.window_bytes == 0:
            packets = _MOST_PACKETS
        return packets if self.kind.in_order else min(packets, self.bitmap_packets)


def steered_by(algorithm: str) -> str:
    """The transport that a steering algorithm needs, or ANY."""
    return ALGORITHMS[algorithm]


def algorithms() -> tuple[str, ...]:
    """The names of all steering algorithms, those from outside among them."""
    plugins.load()
    return tuple(ALGORITHMS)

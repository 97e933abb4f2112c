# SPDX-License-Identifier: Apache-2.0
"""Settings of a NIC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from tailrace.codec.calls import NEVER, PSN_MASK
from tailrace.hosts.errors import ConfigError, check_keys, check_setting
from tailrace.hosts.options.dcqcn import DcqcnConfig, HermesNicConfig
from tailrace.hosts.options.dctcp import DctcpConfig
from tailrace.hosts.options.hf2t import Hf2tConfig
from tailrace.hosts.options.ranges import ABOVE_0, FROM_0, SHARE, WEIGHT, RangeChecked
from tailrace.hosts.options.tcp import TcpConfig
from tailrace.hosts.options.transport import TRANSPORTS, Transport
from tailrace.hosts.options.transports import LOSS, RTO_BACKOFF, TIMEOUTS, Dcqcn, Dctcp, GoBackN, Tcp
from tailrace.spec import SpecError, keys, plugins

MS_NS = 1_000_000
STEERABLE = Dctcp.name  # the transport that reports the outcome of each packet
DCQCN = Dcqcn.name
HERMES = "hermes"
FLOWBENDER = "flowbender"
ANY = ""
REPS = ("reps", "reps-fifo")
PLB = "plb"
UET = ("uet-oblivious", "uet-bitmap", "uet-mixed")
ALGORITHMS = dict.fromkeys(("scout", "spray", "ops", "ecmp", "flicr", *REPS, *UET, PLB), STEERABLE) | {
    HERMES: DCQCN,
    FLOWBENDER: ANY,
}
"""The steering algorithms, which choose paths, each with the transport that it needs; ANY: any transport."""

MARKED_SHARE = 0.05
"""FlowBender (CoNEXT'14) and Flicr regard a path as congested above this share of marked packets."""

ECN_RATE = 0.9
"""Spritz regards nearly all packets as marked above this share."""

MAX_MTU_BYTES = 9000
_MOST_PACKETS = 1 << 22  # outstanding: a quarter of all PSNs

_MTU = keys.size("mtu", "payload of a full packet", least=1, most=MAX_MTU_BYTES)
_PSN = keys.integer("psn", "packet sequence number", least=0, most=PSN_MASK)
_PACKETS = keys.integer("packets", "outstanding packets", least=1, most=_MOST_PACKETS - 1)
_PRIORITY = keys.integer("priority", "PFC priority", least=0, most=7)
_RTTS = keys.number("rtts", "normalised round-trip time", least=1)


@dataclass(frozen=True, slots=True)
class FlowcutNicConfig(RangeChecked):
    """Flowcut on the NIC alone (Flowcut §II-D, with the triggers of §II-B and the extensions of §IV-C).

    To drain a flow is to pause it until none of its packets is in flight, so that its path can change. A NIC
    ACK is a packet in which the receiving NIC reports bytes that have arrived (hosts.nic.nic_acks); it is
    sent in addition to the transport's ACKs, and does not depend on the transport.

    rtt_threshold: drain when the average of the normalised RTT exceeds it (§III-C1 recommends 3 to 5).
    growth_threshold: drain when the average growth of the normalised RTT exceeds it; None: never.
    alpha: weight of the newest sample in both averages, 0 < alpha <= 1.
    ns_per_byte: transmission time of a byte at one hop (the paper's t).
    age_ns: longest time from sending a packet to receiving the NIC ACK for it; after that the packet counts
        as lost.
    min_left: drain only if at least this many packets have not been sent yet.
    resume_bytes: end a drain when at most this many bytes are in flight; 0 keeps the order.
    base_rtts_ns: RTTs without queueing, by the number of switches between the hosts; they exclude the
        packet's transmission time at each switch. 0, or no entry: the smallest RTT measured is used.
    move: a drained flow takes a new path; otherwise it resumes on its path, so that drains only throttle.
    """

    rtt_threshold: Annotated[float, _RTTS] = 4.0
    growth_threshold: float | None = None
    alpha: Annotated[float, WEIGHT] = 0.5
    ns_per_byte: Annotated[float, FROM_0] = 0.0
    age_ns: Annotated[int, ABOVE_0] = 10 * MS_NS
    min_left: Annotated[int, FROM_0] = 8
    resume_bytes: Annotated[int, FROM_0] = 0
    base_rtts_ns: tuple[int, ...] = ()
    move: bool = True


@dataclass(frozen=True, slots=True)
class MpRdmaNicConfig(RangeChecked):
    """The transport mp-rdma (MP-RDMA §3).

    initial_bytes: initial congestion window in bytes of payload, for example one bandwidth-delay product;
        0: NicConfig.window_bytes.
    delta_packets: a path is too slow if its packet arrives after a PSN that is larger by more than this.
    probe: share of packets that try a new path, 0..1.
    """

    initial_bytes: Annotated[int, FROM_0] = 0
    delta_packets: Annotated[int, ABOVE_0] = 32
    probe: Annotated[float, SHARE] = 0.01


@dataclass(frozen=True, slots=True)
class SteeringConfig:
    """Steering: how the NIC chooses the paths of its flows' packets (Spritz §IV).

    scout and spray draw a path with a probability proportional to its weight; eq. 1 gives the usual weights.
    Path 0 is a shortest path. While nearly all packets are marked, its weight is `min_bias_factor` (a bias).

    algorithm: "scout" and "spray" (Spritz, Algorithms 1-3), "ops" (every packet on a path drawn by
        weight), "ecmp" (every flow on one path, by the hash of its 5-tuple), "flicr" and "flowbender"
        (every flow on one path, until that path is congested), "hermes" (see HermesNicConfig), those of
        REPS, UET and PLB (steering.reps, uet, plb), or the name of
        a plug-in's algorithm. ALGORITHMS contains the transport that each algorithm needs.
    explore_threshold: packets after which scout and spray draw a path at random even if they have a good
        path, 0 or more.
    ecn_threshold: marks after which scout forgets a good path, 0 or more.
    buffer: number of good paths that scout and spray remember, 1 or more.
    timer_ns: time after which a changed weight of a path is reset to that of Spritz eq. 1: the weight of a
        path blocked by a timeout, or the biased weight of path 0.
    keep_ns: with scout and spray flows from this NIC to the same host share the state of paths, which is
        kept for this time after the last of them has ended; 0: each flow has its own.
    good_ns: a new flow begins without good paths, but with the blocked ones, if the last flow ended longer
        ago than this.
    small_bytes: scout and spray give the shortest path of a flow of fewer bytes the weight `min_bias_factor`
        and all others the weight 1, whatever is marked; 0: marks bias flows.
    min_bias_factor: weight of path 0 during a bias (a weight, although the paper's name says factor). The
        value 0 stands for the default, twice the weight that eq. 1 gives path 0.
    ecn_rate: "nearly all" is this share of marked acknowledgments or more, 0..1.
    ecn_gain: weight of the newest acknowledgment in the moving average of that share.
    epoch_ns: interval over which flicr and flowbender evaluate their path, for example one RTT; if a flow
        sends nothing for that long, flicr draws another path in any case.
    marked_share: an epoch with a larger share of marked packets than this is congested, 0..1.
    epochs: number of consecutive congested epochs after which flowbender leaves a path, 1 or more.
    parameters: settings of REPS and PLB, or of a plug-in's algorithm.
    """

    algorithm: str = "scout"
    explore_threshold: Annotated[int, FROM_0] = 44
    ecn_threshold: Annotated[int, FROM_0] = 8
    buffer: Annotated[int, ABOVE_0] = 8
    timer_ns: Annotated[int, ABOVE_0] = MS_NS
    keep_ns: Annotated[int, FROM_0] = 0
    good_ns: Annotated[int, FROM_0] = NEVER
    small_bytes: Annotated[int, FROM_0] = 0
    min_bias_factor: Annotated[float, FROM_0] = 0.0
    ecn_rate: Annotated[float, SHARE] = ECN_RATE
    ecn_gain: Annotated[float, WEIGHT] = 1 / 16
    epoch_ns: Annotated[int, ABOVE_0] = 50_000
    marked_share: Annotated[float, SHARE] = MARKED_SHARE
    epochs: Annotated[int, ABOVE_0] = 1
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ConfigError on invalid values."""
        expected = ", ".join(algorithms())
        check_setting(self.algorithm in ALGORITHMS, f"algorithm is {self.algorithm!r}, expected {expected}")
        check_keys(self)


@dataclass(frozen=True, slots=True)
class NicConfig:
    """Settings of a NIC; both ends of a flow must agree on mtu_bytes, transport and first_psn.

    mtu_bytes: payload of a full packet.
    transport: name of a transport of hosts.options.transports, or of a plug-in's transport.
    window_bytes: payload that may be unacknowledged, at least one packet. Not used by mp-rdma; with dctcp
        the initial and maximum window; with tcp the receive window. 0 (dcqcn and tcp only): no window.
    path_rtt_ns: RTT of the longest path without queueing, for the window of dctcp; 0: the smallest RTT that a
        flow measures.
    rto_ns: retransmission timeout; if receivers delay ACKs (ack_every above 1), ack_delay_ns is added. With
        tcp it is the minimum RTO, and the RTO is computed from RTT samples.
    rto_backoff: maximum number of times that the timeout doubles without progress.
    timeout: meaning of a timeout with dctcp, one of TIMEOUTS. LOSS: the window is reduced as by a trimmed
        packet. SIZE: only the packet's size is taken off the window. PATH: the path is dead but not
        congested; for networks in which full queues trim packets.
    ack_every: the receiver acknowledges every n-th packet in order, and packets that request an ACK. The same
        number applies to NIC ACKs of Flowcut (Flowcut §II-D), except with tcp.
    nak_every_ns: gbn and dcqcn repeat a NAK with the next out-of-order packet after this time; 0: never.
    ack_delay_ns: maximum delay of an acknowledgment after the first packet that it acknowledges.
    pause_timeout_ns: a paused flow resumes after this time even without an XON (Flowcut §IV-A).
    link_rate_bps: rate of the NIC's link, for the length of PFC pauses.
    flow_rate_bps: pacing rate of each flow; 0: the link's rate.
    virtual_payload: frames carry headers and the length of the payload, but no payload bytes.
    ecn: data packets are sent as ECT(0).
    data_priority, control_priority: PFC priorities of data and of control packets.
    bitmap_packets: packets beyond the expected packet that a receiver (not with gbn or dcqcn) can store.
    reorder_packets: sr and mp-rdma regard a packet as lost once a packet at least this many later arrives.
    first_psn: PSN of a flow's first packet.
    flowcut_nic: Flowcut on the NIC; None: the NIC does not change paths.
    mp_rdma: settings of the transport mp-rdma.
    dctcp: settings of the transport dctcp.
    steering: how the paths of packets are chosen. None: each packet has its flow's original source port, and
        the network chooses the path.
    dcqcn: settings of the transport dcqcn.
    hermes: settings of the steering hermes.
    tcp: settings of the transport tcp.
    hf2t: settings for stretching gaps between packets (HF2T §4, hosts.gaps.hf2t); None: no gap is stretched.
    measure_gaps: measure the gaps between data packets of a flow at departure.
    parameters: settings of a plug-in's transport.
    """

    mtu_bytes: Annotated[int, _MTU] = 1024
    transport: str = GoBackN.name
    window_bytes: int = 65_536
    rto_ns: Annotated[int, ABOVE_0] = 4 * MS_NS
    rto_backoff: Annotated[int, FROM_0] = RTO_BACKOFF
    timeout: str = LOSS
    ack_every: Annotated[int, ABOVE_0] = 1
    ack_delay_ns: Annotated[int, ABOVE_0] = MS_NS
    nak_every_ns: Annotated[int, FROM_0] = 0
    pause_timeout_ns: Annotated[int, ABOVE_0] = 20 * MS_NS
    link_rate_bps: Annotated[int, ABOVE_0] = 10_000_000_000
    flow_rate_bps: Annotated[int, FROM_0] = 0
    virtual_payload: bool = False
    ecn: bool = True
    data_priority: Annotated[int, _PRIORITY] = 0
    control_priority: Annotated[int, _PRIORITY] = 7
    bitmap_packets: Annotated[int, _PACKETS] = 4096
    reorder_packets: Annotated[int, _PACKETS] = 64
    first_psn: Annotated[int, _PSN] = 0
    flowcut_nic: FlowcutNicConfig | None = None
    mp_rdma: MpRdmaNicConfig = field(default_factory=MpRdmaNicConfig)
    dctcp: DctcpConfig = field(default_factory=DctcpConfig)
    path_rtt_ns: Annotated[int, FROM_0] = 0
    steering: SteeringConfig | None = None
    dcqcn: DcqcnConfig = field(default_factory=DcqcnConfig)
    hermes: HermesNicConfig = field(default_factory=HermesNicConfig)
    tcp: TcpConfig = field(default_factory=TcpConfig)
    hf2t: Hf2tConfig | None = None
    measure_gaps: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ConfigError on invalid values."""
        kind = self.kind
        needed = ANY if self.steering is None else ALGORITHMS[self.steering.algorithm]
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
        fixed = kind.chooses_paths or self.transport == Tcp.name or self.steering is not None
        check_setting(
            self.hf2t is None or self.hf2t.delay or not fixed,
            f"delay=off changes the source port, which transport {self.transport} or steering determines",
        )
        check_setting(
            self.window_bytes > 0 or (self.window_bytes == 0 and kind.windowless),
            f"window_bytes is {self.window_bytes}, expected more than 0",
        )
        check_keys(self)
        check_setting(
            self.timeout in TIMEOUTS, f"timeout is {self.timeout!r}, expected {' or '.join(TIMEOUTS)}"
        )
        if self.ack_every > 1:
            self._check_ack_every()

    def _check_ack_every(self) -> None:
        problem = f"ack_every is {self.ack_every}, expected 1"
        check_setting(
            not self.kind.acks_each, f"{problem}: transport {self.transport} acknowledges each packet"
        )
        check_setting(
            self.steering is None or self.steering.algorithm != HERMES,
            f"{problem}: {HERMES} measures the RTT of each packet by its own ACK",
        )

    @property
    def kind(self) -> type[Transport]:
        """The declaration of the transport.

        Raises:
            ConfigError: there is no transport of this name.
        """
        try:
            return TRANSPORTS.entry(self.transport).struct
        except SpecError as error:
            raise ConfigError(f"NIC settings: {error}") from None

    @property
    def held_ns(self) -> int:
        """Longest time for which a receiver delays an ACK."""
        return self.ack_delay_ns if self.ack_every > 1 else 0

    @property
    def nic_ack_every(self) -> int:
        """Packets per NIC ACK of Flowcut. With tcp it is 1: the host's stack, not the NIC, coalesces ACKs
        (Flowcut §III-A1).
        """
        return 1 if self.transport == Tcp.name else self.ack_every

    @property
    def initial_packets(self) -> int:
        """The initial congestion window of mp-rdma in packets."""
        initial = self.mp_rdma.initial_bytes
        return min(max(1, initial // self.mtu_bytes), self.bitmap_packets) if initial else self.window_packets

    @property
    def window_packets(self) -> int:
        """The window in packets, at least one; only go-back-N may exceed the receiver's bitmap."""
        packets = min(max(1, self.window_bytes // self.mtu_bytes), _MOST_PACKETS)
        if self.window_bytes == 0:
            packets = _MOST_PACKETS
        return packets if self.kind.in_order else min(packets, self.bitmap_packets)


def algorithms() -> tuple[str, ...]:
    """The names of all steering algorithms, including those of plug-ins."""
    plugins.load()
    return tuple(ALGORITHMS)

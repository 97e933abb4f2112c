# SPDX-License-Identifier: Apache-2.0
"""Parameters that follow from the topology, where the user gave none. Pure arithmetic on integers.

All times come from the links' rates and delays, so they scale with the topology.

    base RTT      an idle round trip on the longest path: twice propagation and latency of switches, and a
                  full frame sent by the host and by every switch; on the way back a small frame, whose
                  sending time is left out
    BDP           base RTT times the fastest host link
    queue limit   one BDP of each host of the fullest leaf, for all of them may send to one port with a window
                  of one BDP each; at least 64 full frames (assumption)
    flowlet gap   one base RTT (assumption: paths that differ by less than a round trip do not reorder)
    growth        half of what would take the average from 1 to the RTT threshold within one averaging time,
                  1/alpha ACKs (assumption; the paper gives no value)
    min_left      one BDP in full frames, which is what a drain costs, at most what a sender can say
                  (assumption; Flowcut §IV-C has no value)
    age           see `age_ns`
    path          in a Dragonfly UGAL-L, as Flowcut §II-A has it (for flowlets too); for Flowcut in NICs,
                  where switches keep no state, minimal or Valiant's by a hash; elsewhere shortest paths
    control       see `control_share`
    RED           of MP-RDMA and Hermes, which need ECN marks: from a fifth of a BDP to four fifths of one
                  (assumption)

Schemes over bounded simple paths (the program `spritz`) have defaults of their own: see
schemes.spritz.defaults;
and so has RLB: see schemes.rlb.defaults.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from tailrace.schemes.dragonfly.paths import MIXED, SHORTEST, UGAL_L
from tailrace.schemes.errors import IntentError
from tailrace.schemes.registry import (
    BoundedConfig,
    FlowcutConfig,
    LetflowConfig,
    MpRdmaConfig,
    RedConfig,
    RlbConfig,
    RoutedConfig,
    SchemeConfig,
)
from tailrace.schemes.rlb.defaults import resolve_rlb
from tailrace.schemes.spritz.declaration import GROUP, HOP
from tailrace.schemes.spritz.defaults import longest_bdp_bytes, longest_rtt_ns, resolve_bounded
from tailrace.topology import Topology, max_switches_on_path
from tailrace.topology.kinds import DRAGONFLY, SLIM_FLY
from tailrace.topology.paths.dragonfly import DETOUR_SWITCHES, MINIMAL_SWITCHES
from tailrace.topology.paths.shortest import Down

__all__ = [
    "FRAME_BYTES",
    "age_ns",
    "base_rtt_ns",
    "bdp_bytes",
    "control_share",
    "known",
    "longest_bdp_bytes",
    "longest_path",
    "longest_rtt_ns",
    "needs_marks",
    "propagation_ns",
    "queue_limit_bytes",
    "resolve",
    "sending_ns",
]

FRAME_BYTES = 1600
"""A full Ethernet frame of 1500 bytes, with headers and all that Tailrace adds to it."""

CONTROL_SHARE = 0.07
"""The share of its link that a host needs for control packets: an ACK of 62 bytes for each packet of 1082
that the link can bring, which is what experiments have by default, and a fifth more (assumption).
"""

MIN_QUEUE_FRAMES = 64
MOST_LEFT = 127
"""The largest number of packets that a sender can say are left (7 bits of the BTH)."""

_NS_BITS = 8_000_000_000
"""Bits a byte times ns a second: bytes * _NS_BITS / bits a second is ns."""

_AGE_MARGIN = 2

_RED_FIFTHS = (1, 4)
"""Where RED begins and where it marks everything, in fifths of a BDP."""

_T = TypeVar("_T")


def known(value: _T | None) -> _T:
    """A parameter that `resolve` has filled in."""
    assert value is not None, "the scheme has not been resolved"
    return value


def sending_ns(size_bytes: int, rate_bps: int) -> int:
    """How long a link takes to send some bytes, rounded up."""
    return -(-size_bytes * _NS_BITS // rate_bps)


def _rates_bps(topology: Topology) -> list[int]:
    return [host.rate_bps for host in topology.hosts] + [link.rate_bps for link in topology.links]


def propagation_ns(topology: Topology, switches: int) -> int:
    """The delay between two hosts with so many switches between them, at most: propagation, and latency of
    switches.
    """
    links = max((link.delay_ns for link in topology.links), default=0)
    hosts = 2 * max(host.delay_ns for host in topology.hosts)
    return hosts + (switches - 1) * links + switches * topology.latency_ns


def base_rtt_ns(topology: Topology) -> int:
    """The round trip of a full frame and its acknowledgement on the longest path, without queueing."""
    switches = max_switches_on_path(topology)
    sending = (switches + 1) * sending_ns(FRAME_BYTES, min(_rates_bps(topology)))
    return 2 * propagation_ns(topology, switches) + sending


def bdp_bytes(topology: Topology) -> int:
    """What the fastest host link carries in one base RTT."""
    fastest_bps = max(host.rate_bps for host in topology.hosts)
    return -(-fastest_bps * base_rtt_ns(topology) // _NS_BITS)


def queue_limit_bytes(topology: Topology) -> int:
    """The default limit of an egress queue."""
    fullest = max(len(topology.hosts_of(leaf)) for leaf in topology.leaves)
    return max(fullest * bdp_bytes(topology), MIN_QUEUE_FRAMES * FRAME_BYTES)


def longest_path(topology: Topology, config: SchemeConfig, down: Down = frozenset()) -> int:
    """The most switches on a path that a packet may take, also where it was sent before links went down."""
    shortest = max(max_switches_on_path(topology), max_switches_on_path(topology, down))
    paths = config.dragonfly_paths
    if paths is None:
        return shortest
    if paths.rule == "minimal":
        return max(shortest, MINIMAL_SWITCHES)
    # a detour is one link within a group and one across, and then a path as from a host
    return DETOUR_SWITCHES - MINIMAL_SWITCHES + max(shortest, MINIMAL_SWITCHES)


def age_ns(topology: Topology, config: FlowcutConfig, down: Down = frozenset()) -> int:
    """The longest time that a packet and then its ACK can be on their way between first and last switch.

        age = 2 * (n * (limit + frame) / slow + n * 2 * frame / slow + 2 * propagation)

    with n the switches on the `longest_path`, `limit` the queue limit and `slow` the rate of the slowest link
    times `slowest_fraction`. A data packet waits behind a full queue at every switch, for ACKs are made when
    it leaves the last one. An ACK goes in front of all data, but not of the frame that is being sent; its own
    sending is taken for that of a frame. The factor of 2 is for ACKs behind ACKs, and for links that are
    paused.

    Raises:
        IntentError: queues have no limit, so no such time exists.
    """
    limit_bytes = known(config.queue_limit_bytes)
    if limit_bytes == 0:
        raise IntentError("scheme flowcut: age must be given where queue=0 leaves queues without a limit")
    switches = longest_path(topology, config, down)
    slow_bps = max(1, int(min(_rates_bps(topology)) * config.slowest_fraction))
    data_ns = switches * sending_ns(limit_bytes + FRAME_BYTES, slow_bps)
    ack_ns = switches * sending_ns(2 * FRAME_BYTES, slow_bps)
    return _AGE_MARGIN * (data_ns + ack_ns + 2 * propagation_ns(topology, switches))


def _with_path(config: SchemeConfig, topology: Topology) -> SchemeConfig:
    """The same scheme with the paths of the topology.

    Raises:
        IntentError: paths of a Dragonfly in another topology.
    """
    is_dragonfly = topology.kind == DRAGONFLY
    if isinstance(config, LetflowConfig | FlowcutConfig) and config.path is None:
        path = SHORTEST
        if is_dragonfly:
            in_nics = isinstance(config, FlowcutConfig) and config.variant == "nic"
            path = MIXED if in_nics else UGAL_L
        config = replace(config, path=path)
    if isinstance(config, RoutedConfig) and config.draw is None:
        config = replace(config, draw=HOP if topology.kind == SLIM_FLY else GROUP)
    if config.dragonfly_paths is not None and not is_dragonfly:
        rule = config.dragonfly_paths.rule
        raise IntentError(
            f"scheme {config.name}: {rule} paths are those of a Dragonfly, which {topology.words} is not"
        )
    return config


def control_share(config: SchemeConfig) -> float:
    """The share of its link that a host may send control packets at, where nothing else is said: twice as
    much where NICs do Flowcut, which answer each packet twice.
    """
    in_nics = isinstance(config, FlowcutConfig) and config.variant == "nic"
    return (2 if in_nics else 1) * CONTROL_SHARE


def needs_marks(config: SchemeConfig) -> bool:
    """Whether NICs go by ECN marks, so that queues mark where nothing else is said."""
    return config.follows_tags or isinstance(config, MpRdmaConfig)


def resolve(config: SchemeConfig, topology: Topology, down: Down = frozenset()) -> SchemeConfig:
    """The same scheme with every parameter filled in, but for `buckets`, whose number the program knows.

    Raises:
        IntentError: a parameter has no default here.
    """
    config = _with_path(config, topology)
    if isinstance(config, BoundedConfig):
        config = resolve_bounded(config, topology)
    if config.queue_limit_bytes is None:
        config = replace(config, queue_limit_bytes=queue_limit_bytes(topology))
    if config.control_share is None:
        config = replace(config, control_share=control_share(config))
    if isinstance(config, LetflowConfig | RoutedConfig) and config.gap_ns is None:
        config = replace(config, gap_ns=base_rtt_ns(topology))
    if isinstance(config, RlbConfig):
        config = resolve_rlb(config, topology, base_rtt_ns(topology))
    if needs_marks(config) and config.red is None:
        kmin, kmax = (max(1, bdp_bytes(topology) * fifths // 5) for fifths in _RED_FIFTHS)
        config = replace(config, red=RedConfig(kmin_bytes=kmin, kmax_bytes=kmax, pmax_permille=1000))
    if isinstance(config, FlowcutConfig):
        if config.growth_threshold is None:
            growth = (config.rtt_threshold - 1) * config.alpha / 2
            config = replace(config, growth_threshold=growth)
        if config.min_left_packets is None:
            packets = -(-bdp_bytes(topology) // FRAME_BYTES)
            config = replace(config, min_left_packets=min(packets, MOST_LEFT))
        if config.age_ns is None:
            config = replace(config, age_ns=age_ns(topology, config, down))
    return config

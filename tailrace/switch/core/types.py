# SPDX-License-Identifier: Apache-2.0
"""Types of the arguments and results of a switch's Python API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

import msgspec

from tailrace.spec.errors import Error
from tailrace.spec.watchdog import Watchdog
from tailrace.switch.core.lib import MAX_PORT, C

ErrorCode = Literal["exists", "not_found", "full", "range", "invalid", "memory"]


class StateError(Error):
    """A control call that failed; ``code`` is its reason."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: ErrorCode = code


class PortError(Error):
    """A port cannot be opened or used; the message is one line for the user."""


class PfcLimits(msgspec.Struct, frozen=True):
    """PFC thresholds of one ingress port and priority."""

    xoff_bytes: int
    xon_bytes: int
    headroom_bytes: int


class PfcConfig(msgspec.Struct, frozen=True):
    """PFC of a port (RLB §II-A): its lossless priorities and their thresholds in bytes.

    `overrides` has the thresholds of single priorities; `quanta` is the requested pause, in 512 bit times.
    `watchdog` None: the default for the kind of the port's peer if that is known, else `Watchdog()`.
    A received packet is queued `rise` priorities above the priority with which it was sent; PFC counts and
    pauses the sender's priority.
    """

    priorities: Sequence[int]
    xoff_bytes: int
    xon_bytes: int
    headroom_bytes: int
    quanta: int = 0xFFFF
    overrides: Mapping[int, PfcLimits] = msgspec.field(default_factory=dict)
    watchdog: Watchdog | None = None
    rise: int = 0

    @property
    def least_xoff_bytes(self) -> int:
        """The lowest XOFF threshold of the lossless priorities; 0: there are none."""
        return min((self.limits(priority).xoff_bytes for priority in self.priorities), default=0)

    def limits(self, priority: int) -> PfcLimits:
        """The thresholds of one priority."""
        return self.overrides.get(priority, PfcLimits(self.xoff_bytes, self.xon_bytes, self.headroom_bytes))


class BufferConfig(msgspec.Struct, frozen=True):
    """The shared packet buffer of a switch: its size in `bytes`, headrooms included.

    `alpha` makes thresholds dynamic: an ingress port and priority may use `alpha` times the free bytes, but
    at most its XOFF threshold. Each ingress port has `port_bytes` reserved for packets that are not lossless.
    """

    bytes: int
    alpha: Fraction | None = None
    port_bytes: int = 0


class SwitchConfig(msgspec.Struct, frozen=True):
    """Settings of a switch. A rate, queue depth or memory size of 0 means no limit.

    tick_ns: unit of the P4 timestamps
    seed: seed of the extern `random`
    packet_bytes: memory for packets in the switch, copies included
    """

    device_id: int = 0
    cpu_port: int | None = None
    drop_port: int = MAX_PORT
    priority_queues: int = 1
    tick_ns: int = 1000
    queue_depth_packets: int = 64
    queue_depth_bytes: int = 0
    port_rate_bps: int = 0
    port_delay_ns: int = 0
    recirc_rate_bps: int = 0
    seed: int = 0
    packet_bytes: int = 0
    pfc: PfcConfig | None = None
    buffer: BufferConfig | None = None


class ActionCall(msgspec.Struct, frozen=True):
    """An action, identified by its index in the model, with a value for each parameter."""

    action: int
    data: tuple[int, ...] = ()


class EncodedTarget(NamedTuple):
    """A target encoded for the core: `raw` is the C struct, `data` keeps its memory alive."""

    raw: object
    data: object


class MemberRef(msgspec.Struct, frozen=True):
    """A member of the table's action profile, by handle."""

    handle: int


class GroupRef(msgspec.Struct, frozen=True):
    """A group of the table's action selector, by handle."""

    handle: int


Target = ActionCall | MemberRef | GroupRef


class Replica(msgspec.Struct, frozen=True):
    """A copy made by the packet replication engine; ``instance`` becomes egress_rid."""

    port: int
    instance: int = 0


class MeterRates(msgspec.Struct, frozen=True):
    """Rates (units/s) and bursts (units) of a meter; a unit is a packet or a byte, as the program declares.

    Without `eburst`: a two-rate three-colour meter (RFC 2698); with equal rates and bursts it marks no packet
    yellow. With `eburst`: a single-rate meter (RFC 2697), whose pir and pburst must equal cir and cburst.
    """

    cir: int
    cburst: int
    pir: int
    pburst: int
    eburst: int = 0


COLOUR_NUMBERS: int = 2 * C.TR_COLOURS
"""Number of counts of a meter: bytes and packets of each of the three colours."""

ColourCounts = tuple[int, ...]
"""Green bytes, green packets, yellow bytes, yellow packets, red bytes, red packets."""


class SentFrame(msgspec.Struct, frozen=True):
    """A frame that a port sent; its last bit left at ``time_ns``.

    `virtual_bytes`: bytes of payload after `data` that are counted, but not stored.
    """

    port: int
    data: bytes
    time_ns: int
    virtual_bytes: int = 0


class DigestRecord(NamedTuple):
    """A digest message: index of the digest in the model, time, and values of its fields."""

    digest: int
    time_ns: int
    values: tuple[int, ...]


class FrameAccount(msgspec.Struct, frozen=True):
    """What became of all frames and of their virtual payload bytes (``_virt``: counted, not stored).

    Each frame that was received (``rx``) or made in the switch (clone, multicast copy, pause frame) has been
    sent (``tx``) or dropped, or is in the switch (``held``: queued, recirculating, resubmitted or not yet
    fetched). ``cut_virt`` was removed by `truncate`. Held frames are counted by traversal of the packet
    lists, all others by counters. ``held_data`` counts held frames with virtual payload that are not copies.
    """

    rx_frames: int
    made_frames: int
    tx_frames: int
    dropped_frames: int
    held_frames: int
    rx_virt: int
    made_virt: int
    tx_virt: int
    dropped_virt: int
    cut_virt: int
    held_virt: int
    held_data: int

    @property
    def balanced(self) -> bool:
        """Whether the sums on both sides are equal: no frame and no payload byte is missing."""
        frames = self.tx_frames + self.dropped_frames + self.held_frames
        virt = self.tx_virt + self.dropped_virt + self.cut_virt + self.held_virt
        return (self.rx_frames + self.made_frames, self.rx_virt + self.made_virt) == (frames, virt)


class PortStats(msgspec.Struct, frozen=True):
    """Counts of one port since the switch was created.

    ``paused_ns`` sums the finite PFC pauses of the port's queues; a pause that has begun counts in full.
    ``pfc_ignored`` counts MAC control frames that were not valid PFC frames.
    """

    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int
    dropped: int
    pfc_sent: int
    pfc_received: int
    paused_ns: int
    pfc_ignored: int


class PfcStats(msgspec.Struct, frozen=True):
    """PFC counts of one port and priority since the switch was created.

    Ingress: ``bytes`` received here wait now, ``headroom_bytes`` of them in the headroom; ``_most_``: maxima.
    ``xoff_sent`` includes repeated pauses; the sender was paused for ``pausing_ns``. Egress: ``received``
    pause frames named this priority; its queue was paused for ``paused_ns``, in ``times_paused`` intervals.
    The watchdog has detected ``storms`` (pauses that last too long); ``storming`` is 1 during a storm. Storms
    lasted ``storm_ns`` in total and dropped ``storm_dropped`` packets.
    """

    bytes: int
    most_bytes: int
    headroom_bytes: int
    headroom_most_bytes: int
    xoff_sent: int
    xon_sent: int
    received: int
    pausing_ns: int
    paused_ns: int
    times_paused: int
    storms: int
    storming: int
    storm_dropped: int
    storm_ns: int


class PausedQueue(NamedTuple):
    """Bytes of a paused queue from one sender: received on `from_port` with `from_priority`.

    `pausing` 1: that sender is paused, until at most `xon_bytes` received from it remain in the switch.
    """

    port: int
    priority: int
    from_port: int
    from_priority: int
    bytes: int
    xon_bytes: int
    pausing: int


class BufferState(msgspec.Struct, frozen=True):
    """The packet buffer of a switch: size (0: no limit), reserved bytes, current and maximum occupancy.

    ``own_bytes`` are occupied in the ports' reserves for packets that are not lossless. Without a size limit
    only lossless packets are counted. ``held_bytes`` is the current occupancy, counted packet by packet.
    """

    bytes: int
    reserved_bytes: int
    shared_bytes: int
    shared_most_bytes: int
    headroom_bytes: int
    headroom_most_bytes: int
    own_bytes: int
    held_bytes: int

    @property
    def balanced(self) -> bool:
        """Whether the occupancy equals the bytes of all packets, counted packet by packet."""
        return self.shared_bytes + self.headroom_bytes + self.own_bytes == self.held_bytes

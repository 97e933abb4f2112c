# SPDX-License-Identifier: Apache-2.0
"""Types of arguments and results of a switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple

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
    """A port that cannot be opened; the text is one line for the user."""


@dataclass(frozen=True, slots=True)
class PfcLimits:
    """PFC thresholds in bytes of one ingress port and priority."""

    xoff_bytes: int
    xon_bytes: int
    headroom_bytes: int


@dataclass(frozen=True, slots=True)
class PfcConfig:
    """PFC of a port (RLB §II-A): lossless priorities and their thresholds in bytes.

    `overrides` are thresholds of single priorities; `quanta` is the requested pause, in 512 bit times.
    `watchdog` None: that for the port's peer, where it is known, else `Watchdog()`. A received packet waits
    `rise` priorities above that of its sender, which is the one that is counted and paused.
    """

    priorities: Sequence[int]
    xoff_bytes: int
    xon_bytes: int
    headroom_bytes: int
    quanta: int = 0xFFFF
    overrides: Mapping[int, PfcLimits] = field(default_factory=dict)
    watchdog: Watchdog | None = None
    rise: int = 0

    @property
    def least_xoff_bytes(self) -> int:
        """The lowest XOFF threshold; 0: no priority is lossless."""
        return min((self.limits(priority).xoff_bytes for priority in self.priorities), default=0)

    def limits(self, priority: int) -> PfcLimits:
        """The thresholds of one priority."""
        return self.overrides.get(priority, PfcLimits(self.xoff_bytes, self.xon_bytes, self.headroom_bytes))


@dataclass(frozen=True, slots=True)
class BufferConfig:
    """The shared packet buffer of a switch, headrooms included.

    With `alpha` thresholds are dynamic: a port and priority gets at most `alpha` times the free bytes, and at
    most its xoff. `port_bytes` are reserved in each port for packets that are not lossless.
    """

    bytes: int
    alpha: Fraction | None = None
    port_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SwitchConfig:
    """Settings of a switch; rates in bits/s (0: no limit), times in ns, depths 0: no limit.

    packet_bytes: memory for packets in the switch, copies included; 0: no limit
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


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action, by its index in the model, with a value for each parameter."""

    action: int
    data: tuple[int, ...] = ()


class EncodedTarget(NamedTuple):
    """An action with its data, encoded for the core; `raw` points into `data`."""

    raw: object
    data: object


@dataclass(frozen=True, slots=True)
class MemberRef:
    """A member of the table's action profile, by handle."""

    handle: int


@dataclass(frozen=True, slots=True)
class GroupRef:
    """A group of the table's action selector, by handle."""

    handle: int


Target = ActionCall | MemberRef | GroupRef


@dataclass(frozen=True, slots=True)
class Replica:
    """A copy that the replication engine makes; ``instance`` becomes egress_rid."""

    port: int
    instance: int = 0


@dataclass(frozen=True, slots=True)
class MeterRates:
    """Committed and peak rate (units/s) and burst (units); a unit is a packet or a byte.

    With an excess burst there is one rate (RFC 2697), and the peak is the same as what is committed. Without
    one there are two (RFC 2698); equal ones mark as a single rate of two colours does.
    """

    cir: int
    cburst: int
    pir: int
    pburst: int
    eburst: int = 0


COLOUR_NUMBERS: int = 2 * C.TR_COLOURS
"""Counts of a meter: bytes and packets of green, yellow and red."""

ColourCounts = tuple[int, ...]
"""So many numbers, in that order."""


@dataclass(frozen=True, slots=True)
class SentFrame:
    """A frame sent on a port; ``time_ns`` is the time of its last bit."""

    port: int
    data: bytes
    time_ns: int
    virtual_bytes: int = 0


class DigestRecord(NamedTuple):
    """A digest message: which digest, when, and its fields' values."""

    digest: int
    time_ns: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FrameAccount:
    """Account of all frames and their virtual payload bytes (``_virt``).

    Frames received (``rx``) or made inside (clones, multicast copies, pauses) were sent (``tx``) or dropped,
    or are held in queues, re-entry and outputs; payload may also be cut off by truncate. Held frames are
    counted by a walk, others by counters. ``held_data`` held frames have virtual payload and are no copies.
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
        """Whether all frames are accounted for."""
        frames = self.tx_frames + self.dropped_frames + self.held_frames
        virt = self.tx_virt + self.dropped_virt + self.cut_virt + self.held_virt
        return (self.rx_frames + self.made_frames, self.rx_virt + self.made_virt) == (frames, virt)


@dataclass(frozen=True, slots=True)
class PortStats:
    """Counts of one port since the switch was made.

    ``paused_ns`` counts finite PFC pauses, up to their ends; ``pfc_ignored`` counts MAC control frames that
    were no valid PFC.
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


@dataclass(frozen=True, slots=True)
class PfcStats:
    """PFC of one port and priority since the switch was made.

    As ingress: ``bytes`` that wait, ``headroom_bytes`` of them above the threshold, the maximum of either.
    ``xoff_sent`` includes repeated pauses; the sender was paused for ``pausing_ns``. As egress: ``received``
    pause frames with the priority; its queue was paused for ``paused_ns`` in ``times_paused`` intervals.
    ``storms`` are pauses that lasted too long, and ``storming`` is 1 during one; they lasted ``storm_ns`` and
    dropped ``storm_dropped`` packets.
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
    """Bytes in a paused queue of one ingress account: received on `from_port` with `from_priority`. With
    `pausing` 1 the sender is paused, until at most `xon_bytes` of the account are left.
    """

    port: int
    priority: int
    from_port: int
    from_priority: int
    bytes: int
    xon_bytes: int
    pausing: int


@dataclass(frozen=True, slots=True)
class BufferState:
    """The packet buffer of a switch: size (0: no limit), reserved bytes, present and maximum occupancy.

    ``own_bytes`` are the occupied bytes of ports' reserves for packets that are not lossless. Without a limit
    only lossless packets are counted.
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
        """Whether the occupancy equals the bytes of all packets, counted by a walk."""
        return self.shared_bytes + self.headroom_bytes + self.own_bytes == self.held_bytes

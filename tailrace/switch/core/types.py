# SPDX-License-Identifier: Apache-2.0
"""Values that go into and come out of a Switch."""

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
    """A control call that cannot be done; ``code`` says why in one word."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: ErrorCode = code


class PortError(Error):
    """A port that cannot be opened; the text is one line for the user."""


@dataclass(frozen=True, slots=True)
class PfcLimits:
    """Thresholds in bytes of what came in by one port with one priority."""

    xoff_bytes: int
    xon_bytes: int
    headroom_bytes: int


@dataclass(frozen=True, slots=True)
class PfcConfig:
    """PFC of a port (RLB §II-A): lossless priorities and their thresholds in bytes.

    `own` names priorities whose thresholds differ; `quanta` is the pause asked for, in 512 bit times. With
    `watchdog` None it depends on what is at the port, where that is known, else it is `Watchdog()`. What came
    in by the port waits `rise` priorities above that with which its sender had sent it, and is counted, and
    paused, with that.
    """

    priorities: Sequence[int]
    xoff_bytes: int
    xon_bytes: int
    headroom_bytes: int
    quanta: int = 0xFFFF
    own: Mapping[int, PfcLimits] = field(default_factory=dict)
    watchdog: Watchdog | None = None
    rise: int = 0

    @property
    def least_xoff_bytes(self) -> int:
        """The least that a priority may have before its sender is paused; 0: none is lossless."""
        return min((self.limits(priority).xoff_bytes for priority in self.priorities), default=0)

    def limits(self, priority: int) -> PfcLimits:
        """The thresholds of one priority."""
        return self.own.get(priority, PfcLimits(self.xoff_bytes, self.xon_bytes, self.headroom_bytes))


@dataclass(frozen=True, slots=True)
class BufferConfig:
    """The memory of a switch, headrooms included, that all its ports share.

    With `alpha` thresholds are dynamic: a port and priority gets at most that many times what is free, and
    its xoff at most. `port_bytes` of it each port has for packets that are not lossless.
    """

    bytes: int
    alpha: Fraction | None = None
    port_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SwitchConfig:
    """How a switch is set up; rates in bits/s (0: no limit), times in ns, depths 0: no limit.

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


class RowTarget(NamedTuple):
    """An action with its data as the core takes it; `raw` points into `data`."""

    raw: object
    data: object


class Row(NamedTuple):
    """An entry without a timeout as the core takes it, for every switch with the same program.

    `target` is what `Switch.row_target` gives; the others are as for `Switch.table_insert`.
    """

    key: bytes
    mask: bytes
    prefix_bits: int
    priority: int
    target: RowTarget


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
"""Numbers that a meter has counted: bytes and packets of green, yellow and red."""

ColourCounts = tuple[int, ...]
"""So many numbers, in that order."""


@dataclass(frozen=True, slots=True)
class Output:
    """A frame that left a port; ``time_ns`` is when its last bit had left."""

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
class Account:
    """Where all frames and their virtual payload bytes (``_virt``) are.

    What came in (``rx``) or was made inside (clones, multicast copies, pauses) has left (``tx``), was
    dropped, or is held in queues, re-entry and outputs; payload may also have been cut off by truncate.
    What is held is found by looking for it, all else is counted as it happens. ``held_data`` of the frames
    held have virtual payload, and are no copies.
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
        """Whether nothing was lost or made up."""
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

    Of what came in by the port: ``bytes`` that wait, above the threshold ``headroom_bytes``, and the most
    of either that there ever were. ``xoff_sent`` counts repeated pauses, too; the sender was kept paused
    for ``pausing_ns``. ``received`` counts frames that named the priority, and its queue was paused for
    ``paused_ns`` by them, in ``times_paused`` stretches. Of ``storms``, in which pauses held the queue for
    too long, one goes on where ``storming`` is 1; they have lasted ``storm_ns`` and ``storm_dropped``
    packets were dropped.
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


class Held(NamedTuple):
    """Of what waits in a queue that a pause holds, the bytes on one account: what came in by `from_port` with
    `from_priority`. Its sender is paused where `pausing` is 1, and goes on when no more than `xon_bytes` of
    all that is on the account are left.
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
    """The buffer of a switch: its size (0: no limit), what of it is not shared, and what is and was taken.

    ``own_bytes`` is what ports have for packets that are not lossless, as far as it is taken. Without a limit
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
        """Whether just what packets hold is taken; they were looked for."""
        return self.shared_bytes + self.headroom_bytes + self.own_bytes == self.held_bytes

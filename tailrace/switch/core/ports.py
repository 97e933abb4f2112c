# SPDX-License-Identifier: Apache-2.0
"""Ports, queues, PFC, packet buffer, packet replication and frame counts of a switch.

`Core._do(what, function, ...)` calls a C function; StateError if that fails, with `what` as its subject.
`ps` converts ns to ps.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tailrace.spec.watchdog import Watchdog
from tailrace.switch.core.core import Core, ps
from tailrace.switch.core.lib import C, ffi, fields
from tailrace.switch.core.types import (
    BufferConfig,
    BufferState,
    FrameAccount,
    PausedQueue,
    PfcConfig,
    PfcStats,
    PortStats,
    Replica,
    StateError,
)


class PortControl(Core):
    """Control of the traffic manager: ports, queues, buffer and replication."""

    def mcast_set(self, group: int, replicas: Sequence[Replica]) -> None:
        """Creates or replaces a multicast group (1..65535)."""
        self._do(f"multicast group {group}", self._lib.tr_mcast_set, group, _raw(replicas), len(replicas))

    def mcast_delete(self, group: int) -> None:
        """Removes a multicast group."""
        self._do(f"multicast group {group}", self._lib.tr_mcast_delete, group)

    def clone_set(
        self, session: int, replicas: Sequence[Replica], *, class_of_service: int = 0, truncate_bytes: int = 0
    ) -> None:
        """Creates or replaces a clone session (0..32767); ``truncate_bytes`` 0: no truncation."""
        self._do(
            f"clone session {session}",
            self._lib.tr_clone_set,
            session,
            _raw(replicas),
            len(replicas),
            class_of_service,
            truncate_bytes,
        )

    def clone_delete(self, session: int) -> None:
        """Removes a clone session."""
        self._do(f"clone session {session}", self._lib.tr_clone_delete, session)

    def port_set(self, port: int, up: bool) -> None:
        """Sets a port up or down; packets sent to a port that is down are dropped."""
        self._lib.tr_switch_lock(self.handle)
        self._lib.tr_port_up(self.handle, port, int(up))
        self._lib.tr_switch_unlock(self.handle)

    def port_config(self, port: int, *, rate_bps: int | None = None, delay_ns: int | None = None) -> None:
        """Sets a port's rate (0: no limit) and the delay of its frames after serialisation."""
        if rate_bps is not None:
            self._do(f"port {port}", self._lib.tr_port_rate, port, rate_bps)
        if delay_ns is not None:
            self._do(f"port {port}", self._lib.tr_port_delay, port, ps(delay_ns))

    def port_pfc(self, port: int, pfc: PfcConfig) -> None:
        """Enables PFC for the priorities in `pfc`, and disables it for all others; port 512: all ports."""
        enabled = sum(1 << p for p in set(pfc.priorities) if 0 <= p < C.TR_MAX_PRIORITIES)
        limits = [
            (limit.xoff_bytes, limit.xon_bytes, limit.headroom_bytes)
            for limit in map(pfc.limits, range(C.TR_MAX_PRIORITIES))
        ]
        watchdog = pfc.watchdog or Watchdog()
        share_ppm = round(watchdog.share * C.TR_ALWAYS_PPM)
        if not 0 < share_ppm <= C.TR_ALWAYS_PPM:
            raise StateError(
                "range", f"port {port}, PFC watchdog: share is {watchdog.share}, expected above 0, at most 1"
            )
        if watchdog.detect_ns < 0 or watchdog.restore_ns < 0:
            raise StateError("range", f"port {port}, PFC watchdog: detect or restore time is negative")
        ignore = watchdog.action == "ignore"
        watched = (ps(watchdog.detect_ns), ps(watchdog.restore_ns), share_ppm, ignore)
        raw = [(enabled, pfc.quanta, limits, watched, pfc.rise)]
        self._do(f"port {port}, PFC", self._lib.tr_port_pfc, port, raw)

    def pfc_stats(self, port: int, priority: int, at_ns: int = 0) -> PfcStats:
        """PFC counts of a port and priority, up to `at_ns`, or up to the switch's time if that is later."""
        raw = ffi.new("tr_pfc_stats *")
        self._pfc_read(port, priority, at_ns, raw)
        return PfcStats(**fields(raw))

    def pfc_stats_all(self, port: int, at_ns: int = 0) -> dict[int, PfcStats]:
        """The result of `pfc_stats` for each priority of a port that had any PFC activity."""
        by_priority, raw = {}, ffi.new("tr_pfc_stats *")
        zeros = bytes(ffi.sizeof("tr_pfc_stats"))
        for priority in range(C.TR_MAX_PRIORITIES):
            self._pfc_read(port, priority, at_ns, raw)
            # comparing bytes is fast: nearly all ports of a large network have no activity
            if bytes(ffi.buffer(raw)) != zeros:
                by_priority[priority] = PfcStats(**fields(raw))
        return by_priority

    def _pfc_read(self, port: int, priority: int, at_ns: int, raw: Any) -> None:
        what = f"port {port}, PFC of priority {priority}"
        self._do(what, self._lib.tr_pfc_read, port, priority, ps(at_ns), raw)

    def paused_queues(self, at_ns: int) -> list[PausedQueue]:
        """The queues that are paused at `at_ns`, ordered by port and priority.

        There is an item for each ingress port and priority from which the queue has bytes.
        """
        count = ffi.new("uint32_t *")
        self._do("queues", self._lib.tr_paused_queues, ps(at_ns), ffi.NULL, 0, count)
        raw = ffi.new("tr_paused_queue[]", count[0])
        self._do("queues", self._lib.tr_paused_queues, ps(at_ns), raw, len(raw), count)
        return [PausedQueue(**fields(raw + i)) for i in range(min(len(raw), count[0]))]

    def buffer_config(self, buffer: BufferConfig) -> None:
        """Sets the size of the packet buffer that all ports share; 0 bytes: no limit."""
        alpha = buffer.alpha or Fraction(0)
        raw = (buffer.bytes, buffer.port_bytes, alpha.numerator, alpha.denominator)
        self._do("buffer", self._lib.tr_buffer_set, [raw])

    def buffer(self) -> BufferState:
        """The occupancy of the packet buffer."""
        raw = ffi.new("tr_buffer_state_t *")
        self._lib.tr_buffer_state(self.handle, raw)
        return BufferState(**fields(raw))

    def queue_config(
        self,
        port: int,
        priority: int | None = None,
        *,
        depth: tuple[int, int] | None = None,
        rate_pps: int | None = None,
    ) -> None:
        """Sets depth (packets, bytes; 0: no limit) or rate of one queue of a port; priority None: of all."""
        # TR_MAX_PRIORITIES: all queues of the port
        which = C.TR_MAX_PRIORITIES if priority is None else priority
        if depth is not None:
            self._do(f"port {port}, queue", self._lib.tr_queue_depth, port, which, *depth)
        if rate_pps is not None:
            self._do(f"port {port}, queue", self._lib.tr_queue_rate_pps, port, which, rate_pps)

    def queue_depth(self, port: int, priority: int = 0) -> tuple[int, int]:
        """The number of packets and of bytes that wait in a queue."""
        packets, bytes_ = ffi.new("uint32_t *"), ffi.new("uint64_t *")
        self._do(
            f"port {port}, queue {priority}",
            self._lib.tr_queue_level,
            port,
            priority,
            packets,
            bytes_,
        )
        return packets[0], bytes_[0]

    def port_stats(self, port: int) -> PortStats:
        """Frame and PFC counts of a port."""
        raw = ffi.new("tr_port_stats *")
        self._do(f"port {port}", self._lib.tr_port_stats_read, port, raw)
        return PortStats(**fields(raw))

    def drops(self) -> dict[str, int]:
        """Numbers of dropped packets by reason, without reasons that did not occur."""
        counts = ffi.new("uint64_t[]", C.TR_DROP_COUNT)
        self._lib.tr_drops_read(self.handle, counts)
        return {ffi.string(self._lib.tr_drop_name(i)).decode(): n for i, n in enumerate(counts) if n}

    def account(self) -> FrameAccount:
        """Counts of all frames that the switch received or made, by what became of them."""
        raw = ffi.new("tr_account *")
        self._lib.tr_account_read(self.handle, raw)
        return FrameAccount(**fields(raw))


def _raw(replicas: Sequence[Replica]) -> list[tuple[int, int]]:
    return [(r.port, r.instance) for r in replicas]

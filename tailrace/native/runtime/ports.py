# SPDX-License-Identifier: Apache-2.0
"""Ports and queues of a switch, replication, and where its frames are."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_uint32, c_uint64
from fractions import Fraction

from tailrace.native.runtime import lib
from tailrace.native.runtime.core import Core, checked, ps
from tailrace.native.runtime.types import (
    Account,
    BufferConfig,
    BufferLook,
    PfcConfig,
    PfcStats,
    PortStats,
    Replica,
    StateError,
)
from tailrace.words.watchdog import Watchdog


class Ports(Core):
    """What the traffic manager does."""

    def mcast_set(self, group: int, replicas: Sequence[Replica]) -> None:
        """Makes or replaces a multicast group (1..65535)."""
        rc = self._lib.tr_mcast_set(self.handle, group, _replicas(replicas), len(replicas))
        checked(rc, f"multicast group {group}")

    def mcast_delete(self, group: int) -> None:
        """Removes a multicast group."""
        checked(self._lib.tr_mcast_delete(self.handle, group), f"multicast group {group}")

    def clone_set(
        self, session: int, replicas: Sequence[Replica], *, class_of_service: int = 0, truncate_bytes: int = 0
    ) -> None:
        """Makes or replaces a clone session (0..32767); ``truncate_bytes`` 0: whole packets."""
        rc = self._lib.tr_clone_set(
            self.handle, session, _replicas(replicas), len(replicas), class_of_service, truncate_bytes
        )
        checked(rc, f"clone session {session}")

    def clone_delete(self, session: int) -> None:
        """Removes a clone session."""
        checked(self._lib.tr_clone_delete(self.handle, session), f"clone session {session}")

    def port_set(self, port: int, up: bool) -> None:
        """Takes a port up or down; what is sent to a port that is down is dropped."""
        self._lib.tr_switch_lock(self.handle)
        self._lib.tr_port_up(self.handle, port, int(up))
        self._lib.tr_switch_unlock(self.handle)

    def port_config(self, port: int, *, rate_bps: int | None = None, delay_ns: int | None = None) -> None:
        """Sets a port's rate (0: infinitely fast) and the delay after serialisation."""
        if rate_bps is not None:
            checked(self._lib.tr_port_rate(self.handle, port, rate_bps), f"port {port}")
        if delay_ns is not None:
            checked(self._lib.tr_port_delay(self.handle, port, ps(delay_ns)), f"port {port}")

    def port_pfc(self, port: int, pfc: PfcConfig) -> None:
        """Turns PFC on for some priorities of a port, or off with none; port 512 stands for all."""
        enabled = sum(1 << p for p in set(pfc.priorities) if 0 <= p < lib.MAX_PRIORITIES)
        raw = lib.CPfcConfig(enabled, pfc.quanta)
        for priority in range(lib.MAX_PRIORITIES):
            own = pfc.limits(priority)
            raw.of[priority] = lib.CPfcLimits(own.xoff_bytes, own.xon_bytes, own.headroom_bytes)
        watchdog = pfc.watchdog or Watchdog()
        share_ppm = round(watchdog.share * lib.ALWAYS_PPM)
        if not 0 < share_ppm <= lib.ALWAYS_PPM:
            raise StateError("range", f"port {port}, PFC watchdog: a share of {watchdog.share}")
        if watchdog.detect_ns < 0 or watchdog.restore_ns < 0:
            raise StateError("range", f"port {port}, PFC watchdog: a time below 0")
        raw.watchdog = lib.CPfcWatchdog(
            ps(watchdog.detect_ns), ps(watchdog.restore_ns), share_ppm, int(watchdog.action == "ignore")
        )
        checked(self._lib.tr_port_pfc(self.handle, port, byref(raw)), f"port {port}, PFC")

    def pfc_stats(self, port: int, priority: int, at_ns: int = 0) -> PfcStats:
        """PFC of a port and priority; what lasts is counted up to `at_ns`, or now if that is later."""
        raw = lib.CPfcStats()
        rc = self._lib.tr_pfc_read(self.handle, port, priority, ps(at_ns), byref(raw))
        checked(rc, f"port {port}, PFC of priority {priority}")
        counts = {field[0]: getattr(raw, field[0]) for field in lib.CPfcStats._fields_}
        times = {
            name.replace("_ps", "_ns"): counts.pop(name) // lib.PS_PER_NS
            for name in ("pausing_ps", "paused_ps", "storm_ps")
        }
        return PfcStats(**counts, **times)

    def buffer_config(self, buffer: BufferConfig) -> None:
        """Limits the memory of all ports together; 0 bytes: no limit."""
        alpha = buffer.alpha or Fraction(0)
        raw = lib.CBufferConfig(buffer.bytes, buffer.port_bytes, alpha.numerator, alpha.denominator)
        checked(self._lib.tr_buffer_set(self.handle, byref(raw)), "buffer")

    def buffer(self) -> BufferLook:
        """How much of the memory is taken."""
        raw = lib.CBufferLook()
        self._lib.tr_buffer_look(self.handle, byref(raw))
        return BufferLook(*(getattr(raw, field[0]) for field in lib.CBufferLook._fields_))

    def queue_config(
        self,
        port: int,
        priority: int | None = None,
        *,
        depth: tuple[int, int] | None = None,
        rate_pps: int | None = None,
    ) -> None:
        """Sets depth (packets, bytes; 0: no limit) or packets/s of a queue, or of all of a port."""
        which = lib.MAX_PRIORITIES if priority is None else priority
        if depth is not None:
            checked(self._lib.tr_queue_depth(self.handle, port, which, *depth), f"port {port}, queue")
        if rate_pps is not None:
            checked(self._lib.tr_queue_rate_pps(self.handle, port, which, rate_pps), f"port {port}, queue")

    def queue_depth(self, port: int, priority: int = 0) -> tuple[int, int]:
        """Packets and bytes that wait in a queue."""
        packets, bytes_ = c_uint32(), c_uint64()
        rc = self._lib.tr_queue_level(self.handle, port, priority, byref(packets), byref(bytes_))
        checked(rc, f"port {port}, queue {priority}")
        return packets.value, bytes_.value

    def port_stats(self, port: int) -> PortStats:
        """Counts of a port."""
        raw = lib.CPortStats()
        checked(self._lib.tr_port_stats_read(self.handle, port, byref(raw)), f"port {port}")
        counts = {field[0]: getattr(raw, field[0]) for field in lib.CPortStats._fields_}
        return PortStats(paused_ns=counts.pop("paused_ps") // lib.PS_PER_NS, **counts)

    def drops(self) -> dict[str, int]:
        """Packets that ended in the switch, by reason; reasons never seen are left out."""
        counts = (c_uint64 * lib.DROP_COUNT)()
        self._lib.tr_drops_read(self.handle, counts)
        return {self._lib.tr_drop_name(i).decode(): n for i, n in enumerate(counts) if n}

    def account(self) -> Account:
        """Where every frame is that ever came in or was made."""
        raw = lib.CAccount()
        self._lib.tr_account_read(self.handle, byref(raw))
        return Account(*(getattr(raw, field[0]) for field in lib.CAccount._fields_))


def _replicas(replicas: Sequence[Replica]) -> object:
    array = (lib.CReplica * max(len(replicas), 1))()
    for slot, r in zip(array, replicas, strict=False):
        slot.port, slot.instance = r.port, r.instance
    return array

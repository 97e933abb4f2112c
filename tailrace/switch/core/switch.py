# SPDX-License-Identifier: Apache-2.0
"""A v1model switch in this process, with packets, times and all state under the caller's control.

    program = load_program(Path("l3.json").read_bytes())
    switch = V1ModelSwitch(program)
    switch.table_insert(0, key, mask, prefix_bits=24, target=ActionCall(1, (0x020000000001, 2)))
    switch.inject(1, frame, at_ns=0)
    switch.run(1_000)
    switch.outputs()          # [SentFrame(port=2, data=b"...", time_ns=0)]

Every call takes an internal lock, so any thread may read and write state while a real-time
loop runs the same switch. Tables, action profiles and so on are identified by their index in the
program's model (``program.model.table("ingress.ipv4_lpm").index``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tailrace.spec.constants import PS_PER_NS
from tailrace.switch.compiler.model import Model, limbs_of
from tailrace.switch.compiler.program import SwitchProgram
from tailrace.switch.core import lib
from tailrace.switch.core.core import ps
from tailrace.switch.core.encoding import split_limbs
from tailrace.switch.core.externs import ExternControl
from tailrace.switch.core.lib import C, ffi
from tailrace.switch.core.ports import PortControl
from tailrace.switch.core.tables import TableControl
from tailrace.switch.core.types import (
    ActionCall,
    DigestRecord,
    PfcConfig,
    SentFrame,
    StateError,
    SwitchConfig,
)

LEVELS = ("trace", "info", "warning", "error")
# maximum number of calls of tr_run until the switch's time passes: tr_run returns early if packets loop
_MAX_CALLS_AT_ONE_TIME = 64
_MAX_DIGESTS = 1024
STORM_DIGESTS = ("pfc_storm_t", "pfc_restored_t")
"""Digests of p4src/pfc/watch.p4 that report begin and end of a PFC storm; fields: port, priority."""

LogCallback = Callable[[str, str], None]


class V1ModelSwitch(TableControl, ExternControl, PortControl):
    """A v1model switch. Close it after use, or use it in a ``with`` statement."""

    def __init__(self, program: SwitchProgram | None, config: SwitchConfig | None = None) -> None:
        self.config = config or SwitchConfig()
        c = self.config
        if not 1 <= c.priority_queues <= C.TR_MAX_PRIORITIES:
            raise StateError("range", f"priority_queues must be from 1 to {C.TR_MAX_PRIORITIES}")
        if c.tick_ns < 1:
            raise StateError("range", "tick_ns must be at least 1")
        self._lib = lib.load()
        self._code: ctypes.CDLL | None = None  # the shared object with the program's code
        self._log: object = None
        self.on_program: Callable[[], None] | None = None
        """Called when another program has been loaded, before other code uses that program."""
        self._program: SwitchProgram | None = None
        raw = {
            "drop_port": c.drop_port,
            "priorities": c.priority_queues,
            "tick_ps": ps(c.tick_ns),
            "queue_packets": c.queue_depth_packets,
            "queue_bytes": c.queue_depth_bytes,
            "port_rate_bps": c.port_rate_bps,
            "port_delay_ps": ps(c.port_delay_ns),
            "recirc_rate_bps": c.recirc_rate_bps,
            "seed": c.seed,
            "packet_bytes": c.packet_bytes,
        }
        try:
            self.handle = self._lib.tr_switch_new(ffi.NULL, [raw])
        except OverflowError as error:
            raise StateError("range", f"settings of the switch: {error}") from None
        if not self.handle:
            raise StateError("memory", "out of memory")
        self.load(program)
        if c.pfc is not None:
            self.port_pfc(C.TR_MAX_PORTS, c.pfc)
            if c.cpu_port is not None:
                # the CPU port has no PFC, and needs no headroom
                self.port_pfc(c.cpu_port, PfcConfig((), 0, 0, 0))
        if c.buffer is not None:
            self.buffer_config(c.buffer)

    def __enter__(self) -> V1ModelSwitch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees the switch. It must not be used afterwards."""
        handle, self.handle = self.handle, ffi.NULL
        self._lib.tr_switch_free(handle)

    def load(self, program: SwitchProgram | None) -> None:
        """Replaces the program and resets all state; ports keep their settings.

        With None, the switch has no program and drops every packet.
        """
        code, entry = None, ffi.NULL
        if program is not None:
            code = program.load()
            entry = ffi.cast("tr_program *", ctypes.addressof(ctypes.c_char.in_dll(code, "tr_program_entry")))
        self._do("program", self._lib.tr_switch_load, entry)
        self._code, self._program = code, program
        self._digest_bits: tuple[tuple[int, ...], ...] = ()
        if program is not None:
            self._digest_bits = tuple(digest.field_bits for digest in program.model.digests)
            self._set_storm_digests(program.model)
            self._install(program.model)
        if self.on_program is not None:
            self.on_program()

    def _set_storm_digests(self, model: Model) -> None:
        """Makes PFC storms send the digests of p4src/pfc/watch.p4, if the program declares them."""
        known = {digest.name: digest.index for digest in model.digests if len(digest.values) == 2}
        begin, end = (known.get(name, -1) for name in STORM_DIGESTS)
        self._do("digests of storms", self._lib.tr_pfc_storm_digests, begin, end)

    def _install(self, model: Model) -> None:
        """Installs the default actions and the constant entries that the program declares."""
        for t in model.tables:
            # p4c compiles a direct call of an action to a table, but the generated code calls the action
            if t.default_action is not None and not t.is_call:
                self.table_set_default(t.index, None)
            for e in t.entries:
                try:
                    self.table_insert(
                        t.index,
                        e.key,
                        e.mask,
                        prefix_bits=e.prefix_bits,
                        priority=e.priority,
                        target=ActionCall(e.action, e.data),
                    )
                except StateError as error:
                    if error.code != "exists":
                        raise
                    # a duplicate of an earlier entry can never match

    def exchange(self, other: V1ModelSwitch) -> None:
        """Exchanges program and state with another switch, which must not have received a packet yet.

        Packets in flight are lost; ports keep their settings. The call cannot fail and takes constant time.
        """
        self._lib.tr_switch_exchange(self.handle, other.handle)
        self._code, other._code = other._code, self._code
        self._program, other._program = other._program, self._program
        self._digest_bits, other._digest_bits = other._digest_bits, self._digest_bits
        if self.on_program is not None:
            self.on_program()

    def clock(self, now_ns: int) -> None:
        """Advances the switch's time, for entries and meters created before the next packet arrives."""
        self._lib.tr_switch_clock(self.handle, ps(now_ns))

    # ---- data plane ----

    def inject(self, port: int, data: bytes, at_ns: int, *, virtual_bytes: int = 0) -> None:
        """Delivers a frame to a port; its last bit arrives at ``at_ns``.

        Args:
            virtual_bytes: payload bytes after ``data`` that are only counted, not stored.

        Raises:
            StateError: the port does not exist, or the time is out of range (0 to 213 days).
        """
        if not 0 <= at_ns <= lib.MAX_NS:
            raise StateError("range", f"time {at_ns} ns: expected 0 to {lib.MAX_NS}")
        at_ps = at_ns * PS_PER_NS
        self._lib.tr_switch_lock(self.handle)
        try:
            self._do(f"port {port}", self._lib.tr_rx_virtual, port, data, len(data), virtual_bytes, at_ps)
        finally:
            self._lib.tr_switch_unlock(self.handle)

    @contextmanager
    def between_packets(self) -> Iterator[None]:
        """While the block runs, no packet is processed: its changes are atomic for packets."""
        self._lib.tr_switch_lock(self.handle)
        try:
            yield
        finally:
            self._lib.tr_switch_unlock(self.handle)

    def run(self, until_ns: int) -> int | None:
        """Processes all events up to ``until_ns``.

        Returns:
            the time of the next event, rounded up to ns; None: no event is pending.

        Raises:
            StateError: packets are resubmitted or recirculated endlessly without time passing.
        """
        until_ps = ps(until_ns)
        for _ in range(_MAX_CALLS_AT_ONE_TIME):
            self._lib.tr_switch_lock(self.handle)
            try:
                next_ps = int(self._lib.tr_run(self.handle, until_ps))
            finally:
                self._lib.tr_switch_unlock(self.handle)
            if next_ps > until_ps:
                return None if next_ps == C.TR_NEVER else -(-next_ps // PS_PER_NS)
        raise StateError("invalid", "packets are resubmitted or recirculated endlessly without time passing")

    def outputs(self) -> list[SentFrame]:
        """Removes and returns the sent frames, in the order in which they were sent."""
        frames: list[SentFrame] = []
        out = ffi.new("tr_out *")
        self._lib.tr_switch_lock(self.handle)
        try:
            while self._lib.tr_pop(self.handle, out):
                data = bytes(ffi.buffer(out.data, out.len)) if out.len else b""
                frames.append(SentFrame(out.port, data, out.time_ps // PS_PER_NS, out.virt))
                self._lib.tr_release(self.handle, out.slot)
        finally:
            self._lib.tr_switch_unlock(self.handle)
        return frames

    def digests(self) -> list[DigestRecord]:
        """Removes and returns the pending digest messages, at most 1024."""
        records: list[DigestRecord] = []
        if not self._digest_bits:
            return records
        most = max(sum(map(limbs_of, bits)) for bits in self._digest_bits)
        time_ps, raw = ffi.new("uint64_t *"), ffi.new("uint64_t[]", max(most, 1))
        for _ in range(_MAX_DIGESTS):  # new messages may arrive as fast as this loop removes messages
            index = self._lib.tr_digest_pop(self.handle, time_ps, raw, most)
            if index < 0:
                break
            values = tuple(split_limbs(ffi.unpack(raw, most), self._digest_bits[index]))
            records.append(DigestRecord(index, time_ps[0] // PS_PER_NS, values))
        return records

    def set_log(self, callback: LogCallback | None) -> None:
        """Passes log_msg output and errors to ``callback(level, text)``; packet traces: see switch.trace."""

        def call(_: object, level: int, text: Any) -> None:
            assert callback is not None
            callback(LEVELS[level], ffi.string(text).decode(errors="replace"))

        function = ffi.callback("tr_log_fn", call) if callback is not None else ffi.NULL
        self._lib.tr_set_log(self.handle, function, ffi.NULL)
        # C has only a pointer to the function: this reference keeps the function alive while C may call it
        self._log = function

# SPDX-License-Identifier: Apache-2.0
"""A v1model switch in this process: packets and times in, packets and times out, all state open.

    program = load_program(Path("l3.json").read_bytes())
    switch = Switch(program)
    switch.table_insert(0, key, mask, prefix_bits=24, target=ActionCall(1, (0x020000000001, 2)))
    switch.inject(1, frame, at_ns=0)
    switch.run(1_000)
    switch.outputs()          # [Output(port=2, data=b"...", time_ns=0)]

Every call takes an internal lock, so state may be read and written from any thread while a
real-time loop runs the same switch. Tables, profiles and so on are named by their index in the
program's model (``program.model.table("ingress.ipv4_lpm").index``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_int, c_uint32, c_uint64, c_void_p

from native.compiler.model import Model, limbs_of
from native.compiler.program import Program
from native.runtime import lib
from native.runtime.encoding import TargetEncoder, int_to_limbs, limbs_to_int
from native.runtime.types import (
    Account,
    ActionCall,
    DigestRecord,
    ErrorCode,
    MeterRates,
    Output,
    PfcConfig,
    PortStats,
    Replica,
    StateError,
    SwitchConfig,
    Target,
)

LEVELS = ("trace", "info", "warning", "error")
_CODES: dict[int, tuple[ErrorCode, str]] = {
    lib.EEXIST: ("exists", "exists already"),
    lib.ENOENT: ("not_found", "does not exist"),
    lib.EFULL: ("full", "is full"),
    lib.ERANGE: ("range", "index out of range"),
    lib.EINVAL: ("invalid", "invalid argument"),
    lib.ENOMEM: ("memory", "out of memory"),
}
# tr_run returns early when packets circle without time passing; so often it is called again
_IDLE_ROUNDS = 64
LogCallback = Callable[[str, str], None]


def _checked(result: int, what: str) -> int:
    """A C result that is no error.

    Raises:
        StateError: it is one.
    """
    if result < 0:
        code, text = _CODES[result]
        raise StateError(code, f"{what}: {text}")
    return result


class Switch:
    """One switch. Close it when it is no longer needed, or use it in a ``with`` statement."""

    def __init__(self, program: Program | None, config: SwitchConfig | None = None) -> None:
        self.config = config or SwitchConfig()
        c = self.config
        if not 1 <= c.priority_queues <= lib.MAX_PRIORITIES:
            raise StateError("range", f"priority_queues must be from 1 to {lib.MAX_PRIORITIES}")
        if c.tick_ns < 1:
            raise StateError("range", "tick_ns must be at least 1")
        self._lib = lib.load()
        self._code: ctypes.CDLL | None = None
        self._log: object = None
        self._program: Program | None = None
        raw = lib.CSwitchConfig(
            c.drop_port,
            c.priority_queues,
            _ps(c.tick_ns),
            c.queue_depth_packets,
            c.queue_depth_bytes,
            c.port_rate_bps,
            _ps(c.port_delay_ns),
            c.recirc_rate_bps,
            c.seed,
        )
        handle = self._lib.tr_switch_new(None, byref(raw))
        if not handle:
            raise StateError("memory", "out of memory")
        self.handle = c_void_p(handle)
        self.load(program)
        if c.pfc is not None:
            self.port_pfc(lib.MAX_PORTS, c.pfc)

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees the switch; it must not be used any more."""
        if self.handle.value is not None:
            self._lib.tr_switch_free(self.handle)
            self.handle = c_void_p(None)

    @property
    def program(self) -> Program | None:
        """The program that is loaded."""
        return self._program

    @property
    def model(self) -> Model:
        """The model of the program.

        Raises:
            StateError: no program is loaded.
        """
        if self._program is None:
            raise StateError("not_found", "no program is loaded")
        return self._program.model

    def load(self, program: Program | None) -> None:
        """Replaces the program; all state is that of a new switch, ports keep their settings.

        Without a program every packet is dropped.
        """
        entry = None
        code = None
        if program is not None:
            code = ctypes.CDLL(str(program.library))
            entry = ctypes.addressof(ctypes.c_char.in_dll(code, "tr_program_entry"))
        _checked(self._lib.tr_switch_load(self.handle, entry), "program")
        self._code, self._program = code, program
        if program is not None:
            self._encode = TargetEncoder(program.model)
            self._install(program.model)

    def _install(self, model: Model) -> None:
        for t in model.tables:
            if t.default_action is not None:
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
                    # of two equal entries the first one wins, the second can never match

    # ---- data plane ----

    def inject(self, port: int, data: bytes, at_ns: int, *, virtual_bytes: int = 0) -> None:
        """A frame arrives on a port, its last bit at ``at_ns``.

        Args:
            virtual_bytes: payload bytes behind ``data`` that exist as a length only.

        Raises:
            StateError: no such port, or a time that the switch cannot count (0 to 213 days).
        """
        if not 0 <= at_ns <= lib.MAX_NS:
            raise StateError("range", f"{at_ns} ns is no time that a switch can count")
        at_ps = at_ns * lib.PS_PER_NS
        self._lib.tr_switch_lock(self.handle)
        try:
            rc = self._lib.tr_rx_virtual(self.handle, port, data, len(data), virtual_bytes, at_ps)
        finally:
            self._lib.tr_switch_unlock(self.handle)
        _checked(rc, f"port {port}")

    def run(self, until_ns: int) -> int | None:
        """Does everything that is due up to ``until_ns``.

        Returns:
            the time of the next event, the first whole ns that is not before it; None when nothing waits.

        Raises:
            StateError: packets circle (resubmit, recirculate) without time passing.
        """
        until_ps = _ps(until_ns)
        for _ in range(_IDLE_ROUNDS):
            self._lib.tr_switch_lock(self.handle)
            try:
                next_ps = int(self._lib.tr_run(self.handle, until_ps))
            finally:
                self._lib.tr_switch_unlock(self.handle)
            if next_ps > until_ps:
                return None if next_ps == lib.NEVER else -(-next_ps // lib.PS_PER_NS)
        raise StateError("invalid", "packets circle through the switch without time passing")

    def outputs(self) -> list[Output]:
        """Takes the frames that have been sent, in the order of sending."""
        found: list[Output] = []
        out = lib.COut()
        self._lib.tr_switch_lock(self.handle)
        try:
            while self._lib.tr_pop(self.handle, byref(out)):
                data = ctypes.string_at(out.data, out.len) if out.len else b""
                found.append(Output(out.port, data, out.time_ps // lib.PS_PER_NS, out.virt))
                self._lib.tr_release(self.handle, out.slot)
        finally:
            self._lib.tr_switch_unlock(self.handle)
        return found

    # ---- tables ----

    def table_insert(
        self,
        table: int,
        key: bytes,
        mask: bytes,
        *,
        target: Target,
        prefix_bits: int = 0,
        priority: int = 0,
        timeout_ns: int = 0,
        now_ns: int = 0,
    ) -> int:
        """Adds an entry.

        Args:
            key: packed key fields; for a range field its lower bound.
            mask: packed masks; for a range field its upper bound. Not read by exact tables.
            prefix_bits: length of the prefix of an LPM table's entry.
            priority: of a ternary or range table's entry; larger wins.
            timeout_ns: after so long without a hit ``table_expired`` lists the entry; 0: never.

        Returns:
            the entry's handle.

        Raises:
            StateError: ``exists``, ``full``, or bad arguments.
        """
        raw = self._encode(target)
        rc: int = self._lib.tr_table_insert(
            self.handle, table, key, mask, prefix_bits, priority, byref(raw), _ps(timeout_ns), _ps(now_ns)
        )
        return rc if rc >= 0 else _checked(rc, f"table {table}, entry")

    def table_modify(self, table: int, handle: int, target: Target, timeout_ns: int = 0) -> None:
        """Gives an entry another target; its counters stay."""
        raw = self._encode(target)
        rc = self._lib.tr_table_modify(self.handle, table, handle, byref(raw), _ps(timeout_ns))
        _checked(rc, f"table {table}, entry {handle}")

    def table_delete(self, table: int, handle: int) -> None:
        """Removes an entry."""
        _checked(self._lib.tr_table_delete(self.handle, table, handle), f"table {table}, entry {handle}")

    def table_set_default(self, table: int, call: ActionCall | None) -> None:
        """Sets the action of a miss; None restores the program's own."""
        if call is None:
            t = self.model.tables[table]
            if t.default_action is None:
                _checked(self._lib.tr_table_default(self.handle, table, None), f"table {table}")
                return
            bits = [p.bits for p in self.model.actions[t.default_action].params]
            data = tuple(v & ((1 << b) - 1) for v, b in zip(t.default_data, bits, strict=True))
            call = ActionCall(t.default_action, data)
        raw = self._encode(call)
        _checked(self._lib.tr_table_default(self.handle, table, byref(raw)), f"table {table}")

    def table_count(self, table: int) -> int:
        """Number of entries, the default entry not counted."""
        return _checked(self._lib.tr_table_count(self.handle, table), f"table {table}")

    def table_resize(self, table: int, max_size: int) -> None:
        """Gives a table room for another number of entries than its program says.

        p4c sizes a table with initial entries by their number; P4Info has the size the program asks for.

        Raises:
            StateError: ``invalid`` when there are more entries already.
        """
        _checked(self._lib.tr_table_resize(self.handle, table, max_size), f"table {table}, size")

    def entry_counter(self, table: int, handle: int) -> tuple[int, int]:
        """Bytes and packets of an entry's direct counter; handle -1 is the default entry."""
        b, p = c_uint64(), c_uint64()
        rc = self._lib.tr_entry_counter(self.handle, table, handle, byref(b), byref(p))
        _checked(rc, f"table {table}, entry {handle}")
        return b.value, p.value

    def entry_counter_set(self, table: int, handle: int, bytes_: int, packets: int) -> None:
        """Sets an entry's direct counter."""
        rc = self._lib.tr_entry_counter_set(self.handle, table, handle, bytes_, packets)
        _checked(rc, f"table {table}, entry {handle}")

    def entry_meter_set(self, table: int, handle: int, rates: MeterRates | None) -> None:
        """Configures an entry's direct meter; None: every packet is green."""
        rc = self._lib.tr_entry_meter(self.handle, table, handle, _rates(rates))
        _checked(rc, f"table {table}, entry {handle}, meter")

    def entry_last_hit_ns(self, table: int, handle: int) -> int:
        """When an entry was last hit, or made if it never was."""
        t = c_uint64()
        rc = self._lib.tr_entry_last_hit(self.handle, table, handle, byref(t))
        _checked(rc, f"table {table}, entry {handle}")
        return t.value // lib.PS_PER_NS

    def table_expired(self, table: int, now_ns: int) -> list[int]:
        """Handles of the entries whose timeout has run out."""
        count = max(self.table_count(table), 1)
        handles = (c_int * count)()
        rc = self._lib.tr_table_expired(self.handle, table, _ps(now_ns), handles, count)
        return list(handles[: _checked(rc, f"table {table}")])

    # ---- action profiles ----

    def member_add(self, profile: int, call: ActionCall) -> int:
        """Adds a member; handles are the smallest free ones."""
        raw = self._encode(call)
        return _checked(self._lib.tr_member_add(self.handle, profile, byref(raw)), f"profile {profile}")

    def member_modify(self, profile: int, handle: int, call: ActionCall) -> None:
        """Gives a member another action."""
        raw = self._encode(call)
        rc = self._lib.tr_member_modify(self.handle, profile, handle, byref(raw))
        _checked(rc, f"profile {profile}, member {handle}")

    def member_delete(self, profile: int, handle: int) -> None:
        """Removes a member; entries that still name it do nothing."""
        rc = self._lib.tr_member_delete(self.handle, profile, handle)
        _checked(rc, f"profile {profile}, member {handle}")

    def group_add(self, profile: int) -> int:
        """Adds an empty group; a packet that hits an empty group goes on untouched."""
        return _checked(self._lib.tr_group_add(self.handle, profile), f"profile {profile}")

    def group_set(self, profile: int, handle: int, members: Sequence[int]) -> None:
        """Sets the members among which the hash chooses: ``members[hash % len(members)]``."""
        array = (c_int * max(len(members), 1))(*members)
        rc = self._lib.tr_group_set(self.handle, profile, handle, array, len(members))
        _checked(rc, f"profile {profile}, group {handle}")

    def group_delete(self, profile: int, handle: int) -> None:
        """Removes a group."""
        rc = self._lib.tr_group_delete(self.handle, profile, handle)
        _checked(rc, f"profile {profile}, group {handle}")

    # ---- externs ----

    def counter_read(self, counter: int, index: int) -> tuple[int, int]:
        """Bytes and packets of a counter's cell."""
        cell = (c_uint64 * 2)()
        rc = self._lib.tr_counter_read(self.handle, counter, index, 1, cell)
        _checked(rc, f"counter {counter}[{index}]")
        return cell[0], cell[1]

    def counter_read_all(self, counter: int) -> list[tuple[int, int]]:
        """Bytes and packets of all cells."""
        size = self.model.counters[counter].size
        cells = (c_uint64 * (2 * max(size, 1)))()
        _checked(self._lib.tr_counter_read(self.handle, counter, 0, size, cells), f"counter {counter}")
        return [(cells[2 * i], cells[2 * i + 1]) for i in range(size)]

    def counter_write(self, counter: int, index: int, bytes_: int, packets: int) -> None:
        """Sets a counter's cell."""
        rc = self._lib.tr_counter_write(self.handle, counter, index, bytes_, packets)
        _checked(rc, f"counter {counter}[{index}]")

    def register_read(self, register: int, index: int) -> int:
        """The number in a register's cell."""
        return self._cells(register, index, 1)[0]

    def register_read_all(self, register: int) -> list[int]:
        """The numbers of all cells."""
        return self._cells(register, 0, self.model.registers[register].size)

    def _cells(self, register: int, first: int, count: int) -> list[int]:
        per_cell = limbs_of(self.model.registers[register].bits)
        limbs = (c_uint64 * max(count * per_cell, 1))()
        rc = self._lib.tr_register_read(self.handle, register, first, count, limbs)
        _checked(rc, f"register {register}[{first}]")
        if per_cell == 1:
            return list(limbs[:count])
        return [limbs_to_int(limbs[i * per_cell : (i + 1) * per_cell]) for i in range(count)]

    def register_write(self, register: int, index: int, value: int) -> None:
        """Sets a register's cell.

        Raises:
            StateError: index or value out of range.
        """
        limbs = int_to_limbs(value, self.model.registers[register].bits)
        array = (c_uint64 * len(limbs))(*limbs)
        rc = self._lib.tr_register_write(self.handle, register, index, array)
        _checked(rc, f"register {register}[{index}]")

    def register_reset(self, register: int) -> None:
        """Sets all cells to zero."""
        _checked(self._lib.tr_register_reset(self.handle, register), f"register {register}")

    def meter_set(self, meter: int, index: int, rates: MeterRates | None) -> None:
        """Configures a meter's cell; None: every packet is green."""
        rc = self._lib.tr_meter_write(self.handle, meter, index, _rates(rates))
        _checked(rc, f"meter {meter}[{index}]")

    def vset_set(self, vset: int, members: Sequence[tuple[bytes, bytes]]) -> None:
        """Replaces the members of a value set: packed (value, mask) pairs."""
        values = b"".join(v for v, _ in members)
        masks = b"".join(m for _, m in members)
        expected = len(members) * self.model.vsets[vset].key_bytes
        if len(values) != expected or len(masks) != expected:
            raise StateError("invalid", f"value set {vset}: members have the wrong length")
        rc = self._lib.tr_vset_write(self.handle, vset, values, masks, len(members))
        _checked(rc, f"value set {vset}")

    # ---- packet replication ----

    def mcast_set(self, group: int, replicas: Sequence[Replica]) -> None:
        """Makes or replaces a multicast group (1..65535)."""
        rc = self._lib.tr_mcast_set(self.handle, group, _replicas(replicas), len(replicas))
        _checked(rc, f"multicast group {group}")

    def mcast_delete(self, group: int) -> None:
        """Removes a multicast group."""
        _checked(self._lib.tr_mcast_delete(self.handle, group), f"multicast group {group}")

    def clone_set(
        self, session: int, replicas: Sequence[Replica], *, class_of_service: int = 0, truncate_bytes: int = 0
    ) -> None:
        """Makes or replaces a clone session (0..32767); ``truncate_bytes`` 0: whole packets."""
        rc = self._lib.tr_clone_set(
            self.handle, session, _replicas(replicas), len(replicas), class_of_service, truncate_bytes
        )
        _checked(rc, f"clone session {session}")

    def clone_delete(self, session: int) -> None:
        """Removes a clone session."""
        _checked(self._lib.tr_clone_delete(self.handle, session), f"clone session {session}")

    # ---- out of band ----

    def digests(self) -> list[DigestRecord]:
        """Takes the digest messages that wait."""
        found: list[DigestRecord] = []
        if self._program is None or not self.model.digests:
            return found
        most = max(sum(limbs_of(b) for b in d.field_bits) for d in self.model.digests)
        time_ps, limbs = c_uint64(), (c_uint64 * max(most, 1))()
        while True:
            index = self._lib.tr_digest_pop(self.handle, byref(time_ps), limbs, most)
            if index < 0:
                return found
            values, at = [], 0
            for bits in self.model.digests[index].field_bits:
                values.append(limbs_to_int(limbs[at : at + limbs_of(bits)]))
                at += limbs_of(bits)
            found.append(DigestRecord(index, time_ps.value // lib.PS_PER_NS, tuple(values)))

    def port_set(self, port: int, up: bool) -> None:
        """Takes a port up or down; what is sent to a port that is down is dropped."""
        self._lib.tr_switch_lock(self.handle)
        self._lib.tr_port_up(self.handle, port, int(up))
        self._lib.tr_switch_unlock(self.handle)

    def port_config(self, port: int, *, rate_bps: int | None = None, delay_ns: int | None = None) -> None:
        """Sets a port's rate (0: infinitely fast) and the delay after serialisation."""
        if rate_bps is not None:
            _checked(self._lib.tr_port_rate(self.handle, port, rate_bps), f"port {port}")
        if delay_ns is not None:
            _checked(self._lib.tr_port_delay(self.handle, port, _ps(delay_ns)), f"port {port}")

    def port_pfc(self, port: int, pfc: PfcConfig) -> None:
        """Turns PFC on for some priorities of a port, or off with none; port 512 stands for all."""
        enabled = sum(1 << p for p in set(pfc.priorities) if 0 <= p < lib.MAX_PRIORITIES)
        raw = lib.CPfcConfig(enabled, pfc.xoff_bytes, pfc.xon_bytes, pfc.headroom_bytes, pfc.quanta)
        _checked(self._lib.tr_port_pfc(self.handle, port, byref(raw)), f"port {port}, PFC")

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
            _checked(self._lib.tr_queue_depth(self.handle, port, which, *depth), f"port {port}, queue")
        if rate_pps is not None:
            _checked(self._lib.tr_queue_rate_pps(self.handle, port, which, rate_pps), f"port {port}, queue")

    def queue_depth(self, port: int, priority: int = 0) -> tuple[int, int]:
        """Packets and bytes that wait in a queue."""
        packets, bytes_ = c_uint32(), c_uint64()
        rc = self._lib.tr_queue_level(self.handle, port, priority, byref(packets), byref(bytes_))
        _checked(rc, f"port {port}, queue {priority}")
        return packets.value, bytes_.value

    def port_stats(self, port: int) -> PortStats:
        """Counts of a port."""
        raw = lib.CPortStats()
        _checked(self._lib.tr_port_stats_read(self.handle, port, byref(raw)), f"port {port}")
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

    def set_log(self, callback: LogCallback | None, *, trace: bool = False) -> None:
        """Sends log_msg texts and errors to ``callback(level, text)``, with trace every packet's way."""

        def call(_: object, level: int, text: bytes) -> None:
            assert callback is not None
            callback(LEVELS[level], text.decode(errors="replace"))

        function = lib.LOG_FN(call) if callback is not None else lib.LOG_FN()
        self._lib.tr_set_log(self.handle, function, None, int(trace))
        # the C side holds a bare pointer: keep the function alive as long as it may be called
        self._log = function


def _ps(time_ns: int) -> int:
    """A time or span for the core, in its picoseconds; what is longer than it can count is its longest."""
    return min(time_ns, lib.MAX_NS) * lib.PS_PER_NS


def _rates(rates: MeterRates | None) -> object:
    if rates is None:
        return None
    return byref(lib.CMeterRates(rates.cir, rates.cburst, rates.pir, rates.pburst))


def _replicas(replicas: Sequence[Replica]) -> object:
    array = (lib.CReplica * max(len(replicas), 1))()
    for slot, r in zip(array, replicas, strict=False):
        slot.port, slot.instance = r.port, r.instance
    return array

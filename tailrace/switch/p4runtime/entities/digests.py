# SPDX-License-Identifier: Apache-2.0
"""Digest configuration and digest lists (P4Runtime specification 9.8).

A list is sent when it is full or when max_timeout_ns has passed since its first message. An unacknowledged
message is not repeated before `ack_timeout_ns`, as long as it is in the cache, which evicts the oldest
lists. With `bmv2_compat` (behave as simple_switch_grpc), `ack_timeout_ns` is the period of sweeps, which
remove old lists from the cache: see `_Enabled.expiry`. Times are on the context's clock.

A plan (schema.py) describes an object of P4Info: its id and name, and its index in the program. `Work`
(context.py) is a request in steps: a generator that yields the units of work of each step, ENTITY units for
an entity. `Undo` is the list of functions that roll back a batch; None: not needed.
"""

from __future__ import annotations

import logging
from itertools import islice

import msgspec

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import Code, P4RtError, invalid, not_found
from tailrace.spec.text import printable
from tailrace.switch.core import DigestRecord
from tailrace.switch.p4runtime.context import DELETE, ENTITY, INSERT, Context, Responses, Undo, Work
from tailrace.switch.p4runtime.entities.schema import DigestPlan, Schema, find

_log = logging.getLogger(__name__)

MAX_LIST = 4096
"""Most messages in one list, also if the configuration sets no limit or a larger one."""

MAX_UNACKNOWLEDGED = 1 << 14
"""Most messages of one digest in the cache of unacknowledged messages."""

MIN_SWEEP_NS = 100_000_000
"""The shortest period of a sweep, as in p4lang/PI (proto/frontend/src/digest_mgr.cpp)."""

Record = tuple[int, ...]


class _Enabled(msgspec.Struct):
    """One enabled digest.

    `buffer`: messages of the next list. `made_ns`: when the data plane generated the first of these messages;
    `first_ns`: when this class received it. `sent`: time and messages of unacknowledged lists by list id,
    oldest first. `cache`: the messages of all lists in `sent`; `forgotten`: how many messages were evicted
    from `cache`. `sweep_from_ns`: start of the periodic sweeps; None: each list times out separately. A
    modified `config` also applies to `buffer` and `sent`.
    """

    plan: DigestPlan
    config: p4r.DigestEntry.Config
    sweep_from_ns: int | None
    buffer: dict[Record, None] = msgspec.field(default_factory=dict)
    first_ns: int = 0
    made_ns: int = 0
    sent: dict[int, tuple[int, list[Record]]] = msgspec.field(default_factory=dict)
    cache: set[Record] = msgspec.field(default_factory=set)
    forgotten: int = 0

    @property
    def limit(self) -> int:
        return min(self.config.max_list_size or MAX_LIST, MAX_LIST)

    def is_full(self) -> bool:
        """Whether the buffer has a full list."""
        return len(self.buffer) >= self.limit

    def expiry(self, sent_ns: int) -> int:
        """The time at which the acknowledgement of a list times out.

        A sweep marks new lists and removes those marked before, so a list stays for one to two periods.
        """
        timeout = self.config.ack_timeout_ns
        if self.sweep_from_ns is None:
            return sent_ns + timeout
        period = max(timeout, MIN_SWEEP_NS)
        return sent_ns + 2 * period - (sent_ns - self.sweep_from_ns) % period

    def remember(self, list_id: int, now_ns: int, records: list[Record]) -> None:
        """Adds a sent list to the cache; evicts the oldest lists if the cache is full."""
        while self.sent and len(self.cache) + len(records) > MAX_UNACKNOWLEDGED:
            oldest = next(iter(self.sent))
            self.forgotten += len(self.sent[oldest][1])
            self.forget(oldest)
        self.sent[list_id] = (now_ns, records)
        self.cache.update(records)

    def forget(self, list_id: int) -> None:
        """Removes a list from the cache of unacknowledged messages."""
        for record in self.sent.pop(list_id, (0, []))[1]:
            self.cache.discard(record)


class Digests:
    """All digests of one pipeline."""

    def __init__(self, schema: Schema, context: Context) -> None:
        self._context = context
        self._plans = schema.digests
        self._by_index = {plan.index: plan.id for plan in schema.digests.values()}
        self._enabled: dict[int, _Enabled] = {}
        self._next_list = 1

    def write(self, kind: int, message: p4r.DigestEntry, undo: Undo | None) -> None:
        """Applies one update."""
        digest_id = message.digest_id
        plan = find(self._plans, digest_id, "digest")
        before = self._enabled.get(digest_id)
        if kind == INSERT and before is not None:
            raise P4RtError(Code.ALREADY_EXISTS, f"digest '{plan.name}' is enabled already")
        if kind != INSERT and before is None:
            raise not_found(f"digest '{plan.name}' is not enabled")
        config = None if kind == DELETE else self._config(plan, message.config)
        if undo is not None:
            settings = (before.config, before.sweep_from_ns) if before is not None else None
            undo.append(lambda: self._restore(digest_id, before, settings))
        if config is None:
            del self._enabled[digest_id]
            return
        sweep_from_ns = self._context.now_ns() if self._context.settings.bmv2_compat else None
        if before is None:
            self._enabled[digest_id] = _Enabled(plan, config, sweep_from_ns)
        else:
            before.config, before.sweep_from_ns = config, sweep_from_ns  # buffer and cache are unchanged

    @staticmethod
    def _config(plan: DigestPlan, given: p4r.DigestEntry.Config) -> p4r.DigestEntry.Config:
        for name in ("max_timeout_ns", "max_list_size", "ack_timeout_ns"):
            value = getattr(given, name)
            if value < 0:
                raise invalid(f"digest '{plan.name}': {name} is {value}; it cannot be negative")
        config = p4r.DigestEntry.Config()
        config.CopyFrom(given)
        config.DiscardUnknownFields()
        return config

    def _restore(
        self,
        digest_id: int,
        before: _Enabled | None,
        settings: tuple[p4r.DigestEntry.Config, int | None] | None,
    ) -> None:
        """Undoes a write; `settings`: configuration and start of the sweeps of a digest that was enabled."""
        if before is None or settings is None:
            self._enabled.pop(digest_id, None)
        else:
            self._enabled[digest_id] = before
            before.config, before.sweep_from_ns = settings

    def demand(self, message: p4r.DigestEntry) -> int:
        """The number of entities that a read request may return."""
        return 1 if message.digest_id else len(self._enabled)

    def read(self, message: p4r.DigestEntry, out: Responses) -> Work:
        """Reads one digest, if it is enabled, or for id 0 all enabled digests."""
        if message.digest_id:
            find(self._plans, message.digest_id, "digest")
        for digest_id in (message.digest_id,) if message.digest_id else tuple(self._enabled):
            enabled = self._enabled.get(digest_id)
            if enabled is not None:
                entry = out.add().digest_entry
                entry.digest_id = digest_id
                entry.config.CopyFrom(enabled.config)
                yield ENTITY

    def forgotten(self) -> int:
        """How many unacknowledged messages were evicted from the caches."""
        return sum(enabled.forgotten for enabled in self._enabled.values())

    # ---- the stream ----

    def record(self, message: DigestRecord, now_ns: int) -> p4r.DigestList | None:
        """Adds one message of the data plane; returns the list that it completes, or None."""
        values = message.values
        enabled = self._enabled.get(self._by_index.get(message.digest, 0))
        if enabled is None or values in enabled.cache or values in enabled.buffer:
            return None
        if not enabled.buffer:
            enabled.first_ns, enabled.made_ns = now_ns, message.time_ns
        enabled.buffer[values] = None
        if enabled.config.max_timeout_ns == 0 or enabled.is_full():
            return self._send(enabled, now_ns)
        return None

    def due(self, now_ns: int) -> list[p4r.DigestList]:
        """Returns the lists to send: those with an expired timeout, or full after a change of max_list_size.

        Also removes from the cache the lists whose acknowledgement has timed out.
        """
        lists = []
        for enabled in self._enabled.values():
            waited_ns = now_ns - enabled.first_ns
            while enabled.buffer and (waited_ns >= enabled.config.max_timeout_ns or enabled.is_full()):
                lists.append(self._send(enabled, now_ns))
            while enabled.sent:
                oldest = next(iter(enabled.sent))
                if now_ns < enabled.expiry(enabled.sent[oldest][0]):
                    break
                enabled.forget(oldest)
        return lists

    def acknowledge(self, message: p4r.DigestListAck) -> None:
        """Handles an acknowledgement.

        Raises:
            P4RtError: INVALID_ARGUMENT when P4Info has no such digest.
        """
        if message.digest_id not in self._plans:
            raise invalid(f"there is no digest with id {message.digest_id}")
        enabled = self._enabled.get(message.digest_id)
        if enabled is not None:
            enabled.forget(message.list_id)

    def _send(self, enabled: _Enabled, now_ns: int) -> p4r.DigestList:
        records = list(islice(enabled.buffer, enabled.limit))
        for record in records:
            del enabled.buffer[record]
        message = p4r.DigestList(digest_id=enabled.plan.id, list_id=self._next_list)
        message.timestamp = enabled.made_ns
        self._next_list += 1
        for values in records:
            enabled.plan.type.encode(iter(values), message.data.add())
        if enabled.config.ack_timeout_ns:
            before = enabled.forgotten
            enabled.remember(message.list_id, now_ns, records)
            if enabled.forgotten and not before:
                _log.warning(
                    "digest '%s': unacknowledged messages exceed the limit of %d; the oldest are forgotten",
                    printable(enabled.plan.name),
                    MAX_UNACKNOWLEDGED,
                )
        return message

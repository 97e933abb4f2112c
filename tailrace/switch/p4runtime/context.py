# SPDX-License-Identifier: Apache-2.0
"""The context that all kinds of entities share: switch, clock, ports, memory, undo log, and units of work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.status import Code, P4RtError, exhausted
from tailrace.spec.text import one_line
from tailrace.switch.core import StateError, V1ModelSwitch
from tailrace.switch.core.lib import MAX_PORT
from tailrace.switch.p4runtime.entities.bytestring import decode, shortest
from tailrace.switch.p4runtime.memory import MemoryAccount

if TYPE_CHECKING:
    from tailrace.switch.p4runtime.device import DeviceSettings
    from tailrace.switch.p4runtime.pins.references import ReferenceIndex
    from tailrace.switch.p4runtime.pins.strings import SdnStrings

_log = logging.getLogger(__name__)

_PORT_BITS = 32
"""Width of port numbers in messages."""

INSERT: int = p4r.Update.INSERT
MODIFY: int = p4r.Update.MODIFY
DELETE: int = p4r.Update.DELETE

QUANTUM = 512
"""Units of work in a quantum, after which a request pauses; a quantum takes some milliseconds.

A short call takes about eight iterations of the event loop, so it may wait for eight quanta of other calls.
"""
SKIPPED = 1
"""Units of work to skip an entry."""
ENTITY = 8
"""Units of work to read or write an entity."""
COPIES_PER_WORK = 8
"""Changes of copies of action profile members that count as one unit of work."""
TOKENS_PER_WORK = 40
"""Evaluated tokens (names, numbers, operators) of constraints (@entry_restriction, @action_restriction) per
unit of work.
"""

_T = TypeVar("_T")
Work = Generator[int, None, None]
"""A request in steps: it yields the units of work of each step. Between steps other calls are served."""


def in_quanta(steps: Work) -> Work:
    """The same work in fewer steps, each of a quantum or more."""
    done = 0
    try:
        for work in steps:
            done += work
            if done >= QUANTUM:
                yield done
                done = 0
    finally:
        steps.close()


def finish(steps: Generator[object, None, _T]) -> _T:
    """Runs all steps without pauses; returns what the last one returns."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: _T = end.value
            return result


MAX_METADATA_BYTES = 4096
"""Most bytes of an entity's metadata."""

_STATE_CODES = {
    "exists": Code.ALREADY_EXISTS,
    "not_found": Code.NOT_FOUND,
    "full": Code.RESOURCE_EXHAUSTED,
    "range": Code.OUT_OF_RANGE,
    "invalid": Code.INVALID_ARGUMENT,
    "memory": Code.RESOURCE_EXHAUSTED,
}


def as_p4rt_error(error: P4RtError | StateError) -> P4RtError:
    """The P4Runtime error for an error of the switch core, or the error itself."""
    return error if isinstance(error, P4RtError) else P4RtError(_STATE_CODES[error.code], str(error))


class Undo(list[Callable[[], None]]):
    """Undo log of a batch: functions that undo its changes. Methods take `undo=None` if none is needed."""

    MOST_CELLS = 1 << 16
    """Array cells whose old values one batch may log."""
    MOST_COPIES = 1 << 17
    """Changes of members' copies (Context.copy_changes) in one batch: packets may wait for all of them."""
    MOST_TOKENS = 1 << 21
    """Tokens of constraints that one batch may evaluate: packets may wait for all of them."""

    def __init__(self) -> None:
        super().__init__()
        self._cells = self._copies = self._tokens = 0

    def reserve_cells(self, count: int, what: str) -> None:
        """Counts array cells whose old values are logged.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: they are too many for one batch.
        """
        if self._cells + count > self.MOST_CELLS:
            raise exhausted(
                f"{what}: a ROLLBACK_ON_ERROR batch may change {self.MOST_CELLS} cells of arrays at most, "
                f"not {self._cells + count}"
            )
        self._cells += count

    def count_work(self, copies: int, tokens: int) -> None:
        """Counts copies of members that have changed, and tokens of constraints that have been evaluated.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: they are too many for one batch.
        """
        self._copies += copies
        self._tokens += tokens
        batch = "a ROLLBACK_ON_ERROR or DATAPLANE_ATOMIC batch may"
        if self._copies > self.MOST_COPIES:
            raise exhausted(
                f"{batch} change {self.MOST_COPIES} copies of "
                f"members at most, not {self._copies}: a member of weight N has N copies"
            )
        if self._tokens > self.MOST_TOKENS:
            raise exhausted(f"{batch} evaluate at most {self.MOST_TOKENS} tokens of constraints")

    def roll_back(self) -> None:
        """Undoes all changes; a change that cannot be undone is logged and skipped.

        Raises:
            P4RtError: INTERNAL: a change could not be undone.
        """
        failed = 0
        for step in reversed(self):
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the other changes are undone all the same
                failed += 1
                _log.error("cannot roll an update back: %s: %s", type(error).__name__, one_line(str(error)))
        if failed:
            raise P4RtError(
                Code.INTERNAL, f"{failed} changes of a failed batch are not rolled back; see the switch's log"
            )


class DevicePorts(msgspec.Struct):
    """The ports of the device, and those that are down. If `known` is empty, every port number is valid."""

    known: frozenset[int] = frozenset()
    down: set[int] = msgspec.field(default_factory=set)

    def exists(self, port: int) -> bool:
        """Whether the device has the port."""
        return port in self.known if self.known else 0 <= port <= MAX_PORT

    def is_up(self, port: int) -> bool:
        """Whether the port is up."""
        return port not in self.down


class Context(msgspec.Struct):
    """The switch of one pipeline, and what its entities share; `now_ns` is the switch's clock.

    `switch` is replaced when the pipeline becomes live. `port_names`: the strings of ports (sdn_string);
    None: ports are numbers. `copy_changes`: counts how often a copy of an action profile member was made,
    changed, deleted, put into a group or taken out of it (a member of weight N has N copies); packets may
    wait for this work.
    """

    switch: V1ModelSwitch
    now_ns: Callable[[], int]
    ports: DevicePorts
    memory: MemoryAccount
    settings: DeviceSettings
    references: ReferenceIndex | None = None
    port_names: SdnStrings | None = None
    copy_changes: int = 0

    def port(self, data: bytes, what: str) -> tuple[int, bytes]:
        """The port number that a bytestring encodes, and its canonical bytestring.

        Raises:
            P4RtError: INVALID_ARGUMENT, OUT_OF_RANGE, or RESOURCE_EXHAUSTED.
        """
        if self.port_names is not None:
            return self.port_names.to_wire(data, what), data
        return decode(data, _PORT_BITS, what), shortest(data)


_OWNERLESS = ("packet_replication_engine_entry", "extern_entry", None)


def owner_of(entity: p4r.Entity) -> int:
    """The id of the P4Info object that an entity belongs to; 0: it belongs to none, or is a wildcard."""
    which = entity.WhichOneof("entity")
    if which in _OWNERLESS:
        return 0
    message: Any = getattr(entity, which)
    if which.startswith("direct_"):
        message = message.table_entry
    # the id of the object, such as a table, is the first field of each kind of entity
    return int(getattr(message, message.DESCRIPTOR.fields[0].name))


def preambles_of(info: p4i.P4Info) -> Iterator[p4i.Preamble]:
    """The preambles of all objects of P4Info."""
    for field_, objects in info.ListFields():
        if field_.message_type is not None and "preamble" in field_.message_type.fields_by_name:
            yield from (entity.preamble for entity in objects)


class Responses:
    """Collects the entities of a Read; the caller takes them as one message per quantum of work."""

    def __init__(self) -> None:
        self._message = p4r.ReadResponse()
        self.empty = True

    def add(self) -> p4r.Entity:
        """Appends an empty entity."""
        self.empty = False
        return self._message.entities.add()

    def take(self) -> p4r.ReadResponse:
        """The message with the entities that were added since the last call."""
        message, self._message, self.empty = self._message, p4r.ReadResponse(), True
        return message


def long_metadata(metadata: bytes, what: str) -> P4RtError:
    """The error for metadata of more than MAX_METADATA_BYTES."""
    return exhausted(f"{what}: metadata has {len(metadata)} bytes; the limit is {MAX_METADATA_BYTES}")

# SPDX-License-Identifier: Apache-2.0
"""What all kinds of entities share: switch, clock, ports, memory accounts, undo logs, and quanta of work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from finsy.proto import p4r

from tailrace.p4rt.status import Code, P4RtError, exhausted
from tailrace.spec.text import one_line
from tailrace.switch.core import StateError, V1ModelSwitch
from tailrace.switch.core.lib import MAX_PORT
from tailrace.switch.p4runtime.entities.bytestring import decode, shortest
from tailrace.switch.p4runtime.memory import MemoryAccount

if TYPE_CHECKING:
    from tailrace.switch.p4runtime.pins.references import ReferenceIndex
    from tailrace.switch.p4runtime.pins.strings import SdnStrings

_log = logging.getLogger(__name__)

_PORT_BITS = 32
"""Width of port numbers in messages."""

INSERT: int = p4r.Update.INSERT
MODIFY: int = p4r.Update.MODIFY
DELETE: int = p4r.Update.DELETE

QUANTUM = 512
"""Work of a scheduler's quantum, in units of SKIPPED: some milliseconds.

A short call takes about eight iterations of the event loop, so it waits for as many quanta.
"""
SKIPPED = 1
"""The work of skipping an entry."""
ENTITY = 8
"""The work of reading or writing an entity."""
COPIES_PER_WORK = 8
"""Copies of members changed that are as much work as SKIPPED."""
TOKENS_PER_WORK = 40
"""Tokens of constraints evaluated that are as much work as SKIPPED."""

Work = Generator[int, None, None]
"""A request in steps; each yields its work when done. The scheduler serves other calls between steps."""


def in_quanta(steps: Work) -> Work:
    """The same work in fewer steps, of a quantum each."""
    done = 0
    try:
        for work in steps:
            done += work
            if done >= QUANTUM:
                yield done
                done = 0
    finally:
        steps.close()


def finish(steps: Work) -> None:
    """Runs all steps at once."""
    for _ in steps:
        pass


MAX_METADATA_BYTES = 4096
"""Bytes of an entity's metadata."""

_STATE_CODES = {
    "exists": Code.ALREADY_EXISTS,
    "not_found": Code.NOT_FOUND,
    "full": Code.RESOURCE_EXHAUSTED,
    "range": Code.OUT_OF_RANGE,
    "invalid": Code.INVALID_ARGUMENT,
    "memory": Code.RESOURCE_EXHAUSTED,
}


def from_state_error(error: StateError) -> P4RtError:
    """The P4Runtime error for an error of the switch core."""
    return P4RtError(_STATE_CODES[error.code], str(error))


class Undo(list[Callable[[], None]]):
    """Undo log of a batch, rolled back in reverse order; None: the batch is never rolled back."""

    MOST_CELLS = 1 << 16
    """Cells of arrays whose old values are kept for one batch."""
    MOST_COPIES = 1 << 17
    """Copies of members that one batch may change (see Context.copies): packets may wait for all of it."""
    MOST_TOKENS = 1 << 21
    """Tokens of constraints that one batch may evaluate: likewise."""

    def __init__(self) -> None:
        super().__init__()
        self._cells = self._copies = self._tokens = 0

    def reserve_cells(self, count: int, what: str) -> None:
        """Counts cells whose old values are kept.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: they are too many for one batch.
        """
        if self._cells + count > self.MOST_CELLS:
            raise exhausted(
                f"{what}: a ROLLBACK_ON_ERROR batch changes {self.MOST_CELLS} cells of arrays at most, "
                f"not {self._cells + count}"
            )
        self._cells += count

    def count_copies(self, count: int) -> None:
        """Counts copies of members that have changed.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: they are too many for one batch.
        """
        self._copies += count
        if self._copies > self.MOST_COPIES:
            raise exhausted(
                f"a ROLLBACK_ON_ERROR or DATAPLANE_ATOMIC batch touches {self.MOST_COPIES} copies of members "
                f"at most, not {self._copies}: a member of weight N is N copies"
            )

    def count_tokens(self, tokens: int) -> None:
        """Counts tokens of constraints that have been evaluated.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: they are too many for one batch.
        """
        self._tokens += tokens
        if self._tokens > self.MOST_TOKENS:
            raise exhausted(
                "a ROLLBACK_ON_ERROR or DATAPLANE_ATOMIC batch asks constraints of at most "
                f"{self.MOST_TOKENS} tokens"
            )

    def roll_back(self) -> None:
        """Rolls everything back; steps that fail are logged and skipped.

        Raises:
            P4RtError: INTERNAL: a step has failed.
        """
        failed = 0
        for step in reversed(self):
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the other steps are rolled back all the same
                failed += 1
                _log.error("an update stays: %s: %s", type(error).__name__, one_line(str(error)))
        if failed:
            raise P4RtError(
                Code.INTERNAL, f"{failed} of the changes of a batch that failed stay; see the switch's log"
            )


@dataclass(slots=True)
class DevicePorts:
    """The ports of the device, and the ports that are down. Without known ports, every number is a port."""

    known: frozenset[int] = frozenset()
    down: set[int] = field(default_factory=set)

    def exists(self, port: int) -> bool:
        """Whether the device has the port."""
        return port in self.known if self.known else 0 <= port <= MAX_PORT

    def is_up(self, port: int) -> bool:
        """Whether the port is up."""
        return port not in self.down


@dataclass(frozen=True, slots=True)
class EntityLimits:
    """Limits that P4Info does not give.

    `replicas`: of one multicast group or clone session. `rollback`: updates of a batch that can be rolled
    back, as other clients' Writes wait for all of it. `read_bytes`: of the responses to one Read.
    """

    multicast_groups: int = 4096
    group_weight: int = 16384
    replicas: int = 16384
    rollback: int = 4096
    read_bytes: int = 256 << 20


@dataclass(slots=True)
class Context:
    """The switch of one pipeline, for its entities; `now_ns` is the clock that the switch is called with.

    `switch` is replaced when the pipeline becomes live. `lenient`: accepts what simple_switch_grpc accepts
    beyond the specification. `strict`: an array is written at once, while packets wait.
    `selector_sizes`: P4Info's size of an action selector bounds the sum of its groups. `port_names`: the
    strings of ports (sdn_string); None: ports are numbers. `copies`: counts copies of action profile members
    that were made, changed, deleted or put into groups.
    """

    switch: V1ModelSwitch
    now_ns: Callable[[], int]
    ports: DevicePorts
    limits: EntityLimits
    memory: MemoryAccount
    lenient: bool = False
    strict: bool = False
    selector_sizes: bool = False
    references: ReferenceIndex | None = None
    port_names: SdnStrings | None = None
    copies: int = 0

    def port(self, data: bytes, what: str) -> tuple[int, bytes]:
        """The number of a port given as bytes, and its canonical bytestring.

        Raises:
            P4RtError: INVALID_ARGUMENT, OUT_OF_RANGE, or RESOURCE_EXHAUSTED.
        """
        if self.port_names is not None:
            return self.port_names.to_wire(data, what), data
        return decode(data, _PORT_BITS, what), shortest(data)


class Responses:
    """Collects the entities of a Read in messages of bounded size, one for each quantum."""

    def __init__(self) -> None:
        self._message = p4r.ReadResponse()
        self.empty = True

    def add(self) -> p4r.Entity:
        """Appends an empty entity."""
        self.empty = False
        return self._message.entities.add()

    def take(self) -> p4r.ReadResponse:
        """The message with the entities since the last call."""
        message, self._message, self.empty = self._message, p4r.ReadResponse(), True
        return message


def long_metadata(metadata: bytes, what: str) -> P4RtError:
    """The error for metadata of more than MAX_METADATA_BYTES."""
    return exhausted(f"{what}: metadata has {len(metadata)} bytes; at most {MAX_METADATA_BYTES} are kept")

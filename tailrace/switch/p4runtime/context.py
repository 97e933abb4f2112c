# SPDX-License-Identifier: Apache-2.0
"""What all kinds of entities share: the switch, the clock, the ports, memory, undoing, and slices of work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from finsy.proto import p4r

from tailrace.p4rt.status import Code, P4RtError, exhausted
from tailrace.spec.text import one_line
from tailrace.switch.core import StateError, Switch
from tailrace.switch.core.lib import MAX_PORT
from tailrace.switch.p4runtime.entities.bytestring import decode, shortest
from tailrace.switch.p4runtime.memory import MemoryAccount

if TYPE_CHECKING:
    from tailrace.switch.p4runtime.annotated.references import ReferenceIndex
    from tailrace.switch.p4runtime.entities.translation import SdnStrings

_log = logging.getLogger(__name__)

_PORT_BITS = 32
"""Of ports as controllers number them."""

INSERT: int = p4r.Update.INSERT
MODIFY: int = p4r.Update.MODIFY
DELETE: int = p4r.Update.DELETE

QUANTUM = 512
"""Work that is done between two turns of other clients, in units of LOOKED_AT: some milliseconds.

A call takes about eight turns of the event loop from its arrival to its answer, so it waits for as many.
"""
LOOKED_AT = 1
"""The work of passing an entry over."""
ENTITY = 8
"""The work of reading or writing an entity."""
COPIES_OF_WORK = 8
"""Copies of members touched that are as much work as LOOKED_AT."""
TOKENS_OF_WORK = 40
"""Tokens of constraints evaluated that are as much work as LOOKED_AT."""

Work = Generator[int, None, None]
"""Something that is done in steps: the work of each, when it is done. Between steps others may be served."""


def in_quanta(steps: Work) -> Work:
    """The same in fewer steps, each of a slice of work."""
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
    """Does all steps at once."""
    for _ in steps:
        pass


MAX_METADATA_BYTES = 4096
"""What a client may have kept beside an entity."""

_STATE_CODES = {
    "exists": Code.ALREADY_EXISTS,
    "not_found": Code.NOT_FOUND,
    "full": Code.RESOURCE_EXHAUSTED,
    "range": Code.OUT_OF_RANGE,
    "invalid": Code.INVALID_ARGUMENT,
    "memory": Code.RESOURCE_EXHAUSTED,
}


def from_state_error(error: StateError) -> P4RtError:
    """The P4Runtime error for one of the switch."""
    return P4RtError(_STATE_CODES[error.code], str(error))


class Undo(list[Callable[[], None]]):
    """What takes back the updates of a batch, in reverse order; None where nothing is ever taken back."""

    MOST_CELLS = 1 << 16
    """Cells of arrays whose old values are kept for one batch."""
    MOST_COPIES = 1 << 17
    """Copies of members that one batch may touch (see Context.copies): packets may wait for all of it."""
    MOST_TOKENS = 1 << 21
    """Tokens of the constraints that one batch may ask: likewise."""

    def __init__(self) -> None:
        super().__init__()
        self._cells = self._copies = self._tokens = 0

    def reserve_cells(self, count: int, what: str) -> None:
        """Makes room for the old values of cells.

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
        """Notes copies of members that have been touched.

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
        """Notes tokens of constraints that have been evaluated.

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
        """Takes back everything, whatever happens to one step: what is behind it is as it was, at least.

        Raises:
            P4RtError: INTERNAL: a step has failed, which the log tells.
        """
        failed = 0
        for step in reversed(self):
            try:
                step()
            except Exception as error:  # noqa: BLE001 - whatever it is, the others are to be taken back
                failed += 1
                _log.error("an update stays: %s: %s", type(error).__name__, one_line(str(error)))
        if failed:
            raise P4RtError(
                Code.INTERNAL, f"{failed} of the changes of a batch that failed stay; see the switch's log"
            )


@dataclass(slots=True)
class DevicePorts:
    """The ports of the device and which of them are down. With no known ports, every number is one."""

    known: frozenset[int] = frozenset()
    down: set[int] = field(default_factory=set)

    def exists(self, port: int) -> bool:
        """Whether the device has that port."""
        return port in self.known if self.known else 0 <= port <= MAX_PORT

    def is_up(self, port: int) -> bool:
        """Whether the port can carry packets."""
        return port not in self.down


@dataclass(frozen=True, slots=True)
class EntityLimits:
    """Sizes that P4Info does not give.

    `replicas` are those of one multicast group or clone session, `rollback` the updates of a batch that can
    be taken back: other clients' writes wait for all of it. `read_bytes` is what one Read may answer.
    """

    multicast_groups: int = 4096
    group_weight: int = 16384
    replicas: int = 16384
    rollback: int = 4096
    read_bytes: int = 256 << 20


@dataclass(slots=True)
class Context:
    """One switch as the entities see it; `now_ns` is the clock that the switch is called with.

    `switch` is another one from the moment on that the pipeline is live. `lenient`: where simple_switch_grpc
    takes more than the specification allows, so do the entities. `strict`: an array is written all at once,
    while packets wait. `references`: None without any in P4Info.
    `selector_sizes`: the size of an action selector in P4Info bounds all its groups together.
    `port_names`: the strings by which controllers call ports; None where they have numbers. `copies`: of
    members of action profiles, how many have been made, changed, dropped, or put into groups up to now.
    """

    switch: Switch
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
        """A port as controllers write it in bytes: its number, and the bytes in their canonical form.

        Raises:
            P4RtError: INVALID_ARGUMENT, OUT_OF_RANGE, or RESOURCE_EXHAUSTED.
        """
        if self.port_names is not None:
            return self.port_names.to_wire(data, what), data
        return decode(data, _PORT_BITS, what), shortest(data)


class Responses:
    """Collects the entities of a Read in messages of bounded size: one for each slice of work."""

    def __init__(self) -> None:
        self._message = p4r.ReadResponse()
        self.empty = True

    def add(self) -> p4r.Entity:
        """A new, empty entity at the end."""
        self.empty = False
        return self._message.entities.add()

    def take(self) -> p4r.ReadResponse:
        """The message with all entities since the last call."""
        message, self._message, self.empty = self._message, p4r.ReadResponse(), True
        return message


def check_metadata(metadata: bytes, what: str) -> None:
    """Refuses more than a client may have kept.

    Raises:
        P4RtError: RESOURCE_EXHAUSTED.
    """
    if len(metadata) > MAX_METADATA_BYTES:
        raise exhausted(f"{what}: metadata has {len(metadata)} bytes; at most {MAX_METADATA_BYTES} are kept")

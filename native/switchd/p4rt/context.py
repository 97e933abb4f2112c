# SPDX-License-Identifier: Apache-2.0
"""What all kinds of entities share: the switch, the clock, the ports, undoing, and the output of reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from finsy.proto import p4r

from native.runtime import StateError, Switch
from native.switchd.p4rt.errors import Code, P4RtError

INSERT: int = p4r.Update.INSERT
MODIFY: int = p4r.Update.MODIFY
DELETE: int = p4r.Update.DELETE

MAX_PORT = 511
"""v1model's ports are 9 bits wide."""

Undo = list[Callable[[], None]]
"""What takes back the updates of a batch, in reverse order; None where nothing is ever taken back."""

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


@dataclass(slots=True)
class Ports:
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
class Limits:
    """Sizes that P4Info does not give."""

    multicast_groups: int = 4096
    group_weight: int = 65536


@dataclass(frozen=True, slots=True)
class Context:
    """One switch as the entities see it; `now_ns` is the clock that the switch is called with.

    `lenient`: where simple_switch_grpc takes more than the specification allows, so do the entities.
    """

    switch: Switch
    now_ns: Callable[[], int]
    ports: Ports
    limits: Limits
    lenient: bool = False


class Responses:
    """Collects the entities of a Read in messages of bounded size."""

    ENTITIES = 500

    def __init__(self) -> None:
        self.messages: list[p4r.ReadResponse] = []
        self._left = 0

    def add(self) -> p4r.Entity:
        """A new, empty entity at the end."""
        if self._left == 0:
            self.messages.append(p4r.ReadResponse())
            self._left = self.ENTITIES
        self._left -= 1
        return self.messages[-1].entities.add()

    def entities(self) -> list[p4r.Entity]:
        """All entities so far."""
        return [entity for message in self.messages for entity in message.entities]

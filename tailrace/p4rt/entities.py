# SPDX-License-Identifier: Apache-2.0
"""P4Runtime entities by name, as schemes make them; `p4rt.encoding` makes messages of them.

A value is an int, or a string such as an address (by_name/parse.py); that of an LPM field may be a network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

P4TableMatch = dict[str, Any]
"""The key of an entry: values by match field. Fields that are left out match any value."""

Replica = int | tuple[int, int]
"""A port that gets a copy of a packet; or the port, and the instance (the copy's `egress_rid`), else 0."""


@dataclass(slots=True, init=False)
class P4TableAction:
    """An action, and its arguments by parameter."""

    name: str
    args: dict[str, Any]

    def __init__(self, name: str, /, **args: Any) -> None:
        self.name, self.args = name, args


class P4MeterConfig(msgspec.Struct, kw_only=True, frozen=True):
    """Rates of a meter in bytes/s or packets/s, and bursts in bytes or packets."""

    cir: int
    cburst: int
    pir: int
    pburst: int


class P4Entity(msgspec.Struct):
    """An entity of a switch."""


class P4TableEntry(P4Entity):
    """An entry of a table, or its default action."""

    table_id: str
    action: P4TableAction
    match: P4TableMatch | None = None
    is_default_action: bool = False
    priority: int = 0
    meter_config: P4MeterConfig | None = None


class P4MulticastGroupEntry(P4Entity):
    """A multicast group: the copies of its packets."""

    multicast_group_id: int
    replicas: Sequence[Replica] = ()


class P4CloneSessionEntry(P4Entity):
    """A clone session: the clones of its packets, and their priority."""

    session_id: int
    class_of_service: int = 0
    replicas: Sequence[Replica] = ()


class P4DigestEntry(P4Entity):
    """An enabled digest: the most messages of a list, and the time after which an equal one may follow."""

    digest_id: str
    max_list_size: int = 0
    ack_timeout_ns: int = 0

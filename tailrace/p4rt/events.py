# SPDX-License-Identifier: Apache-2.0
"""Events that a network, its controller and commands report: a line of text, and structured facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LINK_DOWN, LATE = "link-down", "late"
LINK_SET, WRITE, PUSH, PACKET_OUT = "link-set", "write", "push", "packet-out"
CHANGES = frozenset({LINK_SET, WRITE, PUSH, PACKET_OUT})
"""Changes by a user's commands or P4Runtime client during a run, which no spec of the run has."""

CONTROLLER = "controller"
"""The subject of events about the controller."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event.

    kind: switch-ready, switch-lost, backup, link-down, link-up, late (a switch's link probes are
        overdue, or the controller itself runs late), miswired, relay (in-band queries cannot be relayed),
        digest, failure-alert (of RLB: docs/schemes/rlb.md, and §IV-B.2 of its paper), path-out (a faulty
        path is removed from the groups), path-back (the path is used again), pfc-storm (a port is paused for
        too long), pfc-restored (the end of pfc-storm), deadlock (a cycle of paused switches), and CHANGES
    subject: the switch, the link as `leaf1-spine2`, `controller`, or the relay's socket
    text: the event as one line for people
    facts: values of the text by name, as in JSON; names have units
    """

    kind: str
    subject: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def structured(event: Event) -> dict[str, Any]:
    """An event as one JSON object: `event`, `subject`, `text`, and its facts."""
    return {"event": event.kind, "subject": event.subject, "text": event.text, **event.facts}


def event_of(message: dict[str, Any]) -> Event:
    """The event of an object that `structured` made. Raises KeyError if a key is missing."""
    facts = dict(message)
    return Event(facts.pop("event"), facts.pop("subject"), facts.pop("text"), facts)

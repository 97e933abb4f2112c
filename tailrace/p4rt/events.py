# SPDX-License-Identifier: Apache-2.0
"""Something that happened in a network, as its controller tells it: a line for people, and what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LINK_DOWN, LATE = "link-down", "late"
CONTROLLER = "controller"
"""The subject of what the controller tells of itself."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    kind: switch-ready, switch-lost, backup, link-down, link-up, late (a switch or the controller did not keep
        up with the watching of links), miswired, relay (questions cannot be relayed), digest, failure-alert
        (RLB §IV-B.2), path-out (found so) or path-back, pfc-storm or pfc-restored (pauses hold a port for too
        long), deadlock (switches pause each other in a circle)
    subject: the switch, the link as `leaf1-spine2`, `controller`, or the relay's socket
    text: one line for people
    facts: what the line says, by name, as JSON knows it; units are in the names
    """

    kind: str
    subject: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def structured(event: Event) -> dict[str, Any]:
    """An event as one JSON object: `event`, `subject`, `text`, and its facts."""
    return {"event": event.kind, "subject": event.subject, "text": event.text, **event.facts}


def event_of(message: dict[str, Any]) -> Event:
    """The event that `p4rt.events.structured` made an object of; KeyError where it did not."""
    facts = dict(message)
    return Event(facts.pop("event"), facts.pop("subject"), facts.pop("text"), facts)

# SPDX-License-Identifier: Apache-2.0
"""PFC storms (a neighbour pauses a port for too long), which switches report by digests (p4src/pfc/watch.p4,
tailrace/switch/core/c/tr_watch.c); a controller only logs them.
"""

from __future__ import annotations

from tailrace.p4rt.digests import DigestMessage
from tailrace.p4rt.events import Event
from tailrace.topology import Topology

_KINDS = {"pfc_storm_t": "pfc-storm", "pfc_restored_t": "pfc-restored"}
DIGESTS = frozenset(_KINDS)

_EVENT_TEXTS = {
    "pfc-storm": "{neighbour} has paused its port for too long: PFC storm",
    "pfc-restored": "{neighbour} asks for no pauses any more: PFC storm is over",
}


def storm_of(digest: DigestMessage, topology: Topology, now_ns: int) -> Event | None:
    """The event of a digest about a storm; None for other digests."""
    kind = _KINDS.get(digest.name)
    if kind is None:
        return None
    port, priority = digest.fields["port"], digest.fields["priority"]
    peer = topology.ports_of(digest.switch).get(port)
    neighbour = "nobody" if peer is None else peer.name
    facts = {
        "time_ns": digest.time_ns or now_ns,
        "switch": digest.switch,
        "port": port,
        "priority": priority,
        "neighbour": neighbour,
    }
    event_text = _EVENT_TEXTS[kind].format(neighbour=neighbour)
    text = f"{digest.switch}: {event_text}; port={port} priority={priority}"
    return Event(kind, f"{digest.switch}-{neighbour}", text, facts)

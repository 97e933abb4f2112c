# SPDX-License-Identifier: Apache-2.0
"""The controller's part in a run in virtual time: what all kinds of it have in common.

told    is told of links and switches, and has done what follows REACTION_RTTS later: nothing of it can fail,
        so runs are as papers assume, and comparisons are of data planes alone (told.py)
live    is the controller that runs in real time, with its sessions, over P4Runtime channels in memory; it
        finds out by probes, and its messages take their time (live.py)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tailrace.schemes.watch import LinkEnd, SuppressedPath
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import Down
from tailrace.topology.timing import base_rtt_ns

REACTION_RTTS = 10
"""How many base RTTs after a link has gone or come back the controller has written other routes. In real time
it finds out by missing LLDP frames (controller/linkwatch.py)."""


def reaction_ns(topology: Topology, frame_bytes: int) -> int:
    """How long after something the controller has done what follows from it, in a topology as it runs."""
    return REACTION_RTTS * base_rtt_ns(topology, frame_bytes)


class ControlPlane(Protocol):
    """A controller, of switches that hold already what they should while nothing has failed."""

    @property
    def down(self) -> Down:
        """The ends of links that it takes for dead now."""
        ...

    @property
    def suppressed(self) -> Sequence[SuppressedPath]:
        """The paths that it keeps out because a switch found them faulty."""
        ...

    def start(self) -> None:
        """From now on it looks after the network."""
        ...

    def catch_up(self) -> None:
        """Somebody is to look at the switches, and should find nothing that waits for this controller."""
        ...

    def links(self, ends: Sequence[LinkEnd], at_ns: int, *, dead: bool) -> None:
        """These ends of links will go or come back at a time; called before the network runs."""
        ...

    def left(self, switch: str) -> None:
        """A switch has lost everything just now, and is not there."""
        ...

    def restored(self, switch: str) -> None:
        """It is there again, and empty."""
        ...

    def check(self) -> None:
        """Whether it works still.

        Raises:
            ControllerError: it does not, for this reason.
        """
        ...

    def stop(self) -> None:
        """The run is over: ends whatever goes on."""
        ...

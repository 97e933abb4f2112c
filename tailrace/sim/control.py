# SPDX-License-Identifier: Apache-2.0
"""The interface of controllers in a run in virtual time.

ideal   is notified of link and switch failures, and always reconfigures the switches exactly REACTION_RTTS
        later, as papers assume (ideal_controller.py)
real    is the controller of real-time runs, with its P4Runtime sessions over in-memory channels with delays;
        it detects failures by missing probes (real_controller.py)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tailrace.controller.timing import Timing
from tailrace.schemes.watch import LinkEnd, SuppressedPath
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import Down
from tailrace.topology.timing import base_rtt_ns

REACTION_RTTS = 10
"""Base RTTs from a link failure or recovery until the ideal controller has written new routes."""


def reaction_ns(topology: Topology, frame_bytes: int) -> int:
    """The reaction time of the ideal controller; rates and times of `topology` include the time scale, the
    factor by which the run is slower than specified.
    """
    return REACTION_RTTS * base_rtt_ns(topology, frame_bytes)


def probe_interval_ns(topology: Topology, frame_bytes: int) -> int:
    """The real controller's default probe interval: it reacts about as fast as the ideal controller."""
    # a link is dead after `missed` intervals without a probe
    return reaction_ns(topology, frame_bytes) // (Timing().missed + 1)


class ControlPlane(Protocol):
    """A controller of switches that already hold the entries of a network without failures."""

    @property
    def down(self) -> Down:
        """The link ends that the controller considers dead."""
        ...

    @property
    def suppressed(self) -> Sequence[SuppressedPath]:
        """The paths that the controller has withdrawn because a switch reported them faulty."""
        ...

    def start(self) -> None:
        """Starts to control the network."""
        ...

    def catch_up(self) -> None:
        """Receives all pending digests; called before clients inspect the switches."""
        ...

    def notify_links(self, ends: Sequence[LinkEnd], at_ns: int, *, dead: bool) -> None:
        """Notifies the controller that link ends will fail or recover; called while it is stopped."""
        ...

    def switch_lost(self, switch: str) -> None:
        """A switch has lost its state and is unreachable."""
        ...

    def switch_restored(self, switch: str) -> None:
        """A switch is reachable again, without state."""
        ...

    def check(self) -> None:
        """Checks that the controller has not failed.

        Raises:
            ControllerError: the controller has failed.
        """
        ...

    def stop(self) -> None:
        """Stops the controller after the run."""
        ...

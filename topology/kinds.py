# SPDX-License-Identifier: Apache-2.0
"""The kinds of topologies that have bounded simple paths, those of Spritz §III."""

from __future__ import annotations

from spec import SpecError
from topology.model import Topology

DRAGONFLY, SLIM_FLY = "dragonfly", "slim-fly"


def check_kind(topology: Topology) -> None:
    """Refuses what has no such paths.

    Raises:
        SpecError: it is neither a Dragonfly nor a Slim Fly.
    """
    if topology.kind not in (DRAGONFLY, SLIM_FLY):
        raise SpecError(
            f"topology {topology.words} has no bounded simple paths;"
            " only dragonfly and slim-fly, made from words, have"
        )

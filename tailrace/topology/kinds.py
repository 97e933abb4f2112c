# SPDX-License-Identifier: Apache-2.0
"""The kinds of topologies that have bounded simple paths: those of Spritz §III, and trees of switches."""

from __future__ import annotations

from tailrace.spec import SpecError
from tailrace.topology.model import Topology

DRAGONFLY, SLIM_FLY = "dragonfly", "slim-fly"
TREES = LEAF_SPINE, FAT_TREE = ("leaf-spine", "fat-tree")
BOUNDED = (DRAGONFLY, SLIM_FLY, *TREES)


def check_kind(topology: Topology) -> None:
    """Refuses what has no such paths.

    Raises:
        SpecError: it is none of BOUNDED.
    """
    if topology.kind not in BOUNDED:
        raise SpecError(
            f"topology {topology.spec} has no bounded simple paths;"
            f" only {', '.join(BOUNDED)}, made from a spec, have"
        )

# SPDX-License-Identifier: Apache-2.0
"""The kinds of topologies for which bounded simple paths (loop-free paths of bounded length) are computed:
those of Spritz §III, and trees of switches.
"""

from __future__ import annotations

from tailrace.spec import SpecError
from tailrace.topology.model import Topology

DRAGONFLY, SLIM_FLY = "dragonfly", "slim-fly"
TREES = LEAF_SPINE, FAT_TREE = ("leaf-spine", "fat-tree")
BOUNDED = (DRAGONFLY, SLIM_FLY, *TREES)


def check_kind(topology: Topology) -> None:
    """Raises SpecError if the topology's kind is none of BOUNDED."""
    if topology.kind not in BOUNDED:
        raise SpecError(
            f"topology {topology.spec} has no bounded simple paths;"
            f" expected one of {', '.join(BOUNDED)}, made from a spec"
        )

# SPDX-License-Identifier: Apache-2.0
"""The keys `path` and `share`: which paths a scheme that supports Dragonflies uses."""

from __future__ import annotations

from fractions import Fraction

from tailrace.schemes.errors import IntentError
from tailrace.schemes.resolved import DragonflyPaths
from tailrace.spec import Spec, keys
from tailrace.topology import Topology
from tailrace.topology.kinds import DRAGONFLY

PATHS = ("shortest", "minimal", "valiant", "ugal-l", "mixed")
"""Rules for paths. All but `shortest` need a Dragonfly; `mixed` draws a minimal or a Valiant path at random,
and `ugal-l` chooses one by the queue lengths of the first switch (UGAL-L).
"""

SHORTEST, MINIMAL, MIXED, UGAL_L = "shortest", "minimal", "mixed", "ugal-l"
GRAINS = ("packet", "flow", "flowlet")
"""Units of traffic that stay on one path."""

PATH = keys.choice(
    "path", "kind of paths; mixed: minimal or Valiant paths, at random", PATHS, section="Flowcut §II-A"
)
DEFAULT_SHARE = 0.5
SHARE_STEPS = 256
"""The share of minimal paths is a multiple of 1/256."""

GAP = keys.time("gap", "idle time of a flow after which a new flowlet begins", least=1)


def stepped(name: str, meaning: str, values: str, parts: int, least: float = 0) -> keys.Key:
    """A key for a number from `least` to 1, rounded to a multiple of 1/`parts`, the switch's fixed point."""

    def parse(text: str) -> float:
        return float(Fraction(round(keys.parse_number(text, least, 1) * parts), parts))

    return keys.Key(name, meaning, values, parse, lambda value: f"{value:g}")


SHARE = stepped("share", "share of minimal paths with path=mixed", "0 to 1", SHARE_STEPS)


def check_share(spec: Spec, path: str | None) -> None:
    """Raises SpecError if `share` is given with a path rule that ignores it."""
    if path not in (None, MIXED):
        spec.refuse(("share",), f"path={MIXED}")


def paths_on(topology: Topology, path: str | None, usual: str) -> str:
    """The rule for paths in a topology; `usual` is the default in a Dragonfly."""
    if path is None:
        return usual if topology.kind == DRAGONFLY else SHORTEST
    return path


def require_dragonfly(topology: Topology, name: str, paths: DragonflyPaths | None) -> None:
    """Raises IntentError if the scheme of this name uses paths of a Dragonfly in another topology."""
    if paths is not None and topology.kind != DRAGONFLY:
        raise IntentError(f"scheme {name}: {paths.rule} paths need a Dragonfly, which {topology.spec} is not")

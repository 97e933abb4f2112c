# SPDX-License-Identifier: Apache-2.0
"""Where the paths of a scheme come from that may run in a Dragonfly: the keys `path` and `share`."""

from __future__ import annotations

from fractions import Fraction

from tailrace.schemes.errors import IntentError
from tailrace.schemes.resolved import DragonflyPaths
from tailrace.spec import Spec, keys
from tailrace.topology import Topology
from tailrace.topology.kinds import DRAGONFLY

PATHS = ("shortest", "minimal", "valiant", "ugal-l", "mixed")
"""Where paths come from. All but `shortest` are of a Dragonfly; `mixed` is minimal or Valiant's by a coin."""

SHORTEST, MINIMAL, MIXED, UGAL_L = "shortest", "minimal", "mixed", "ugal-l"
GRAINS = ("packet", "flow", "flowlet")

PATH = keys.choice(
    "path", "paths to take; mixed: minimal or Valiant's, by a coin", PATHS, section="Flowcut §II-A"
)
DEFAULT_SHARE = 0.5
SHARE_STEPS = 256
"""The share of minimal paths is a multiple of 1/256."""

GAP = keys.time("gap", "a pause of at least this begins a new flowlet", least=1)


def stepped(name: str, meaning: str, values: str, parts: int, least: float = 0) -> keys.Key:
    """A number from `least` to 1, rounded to a multiple of one over `parts`, which the switch can hold."""

    def parse(text: str) -> float:
        return float(Fraction(round(keys.parse_number(text, least, 1) * parts), parts))

    return keys.Key(name, meaning, values, parse, lambda value: f"{value:g}")


SHARE = stepped("share", "of minimal paths where path=mixed", "0 to 1", SHARE_STEPS)


def check_share(spec: Spec, path: str | None) -> None:
    """Raises SpecError where a share is given that nothing would heed."""
    if path not in (None, MIXED):
        spec.refuse(("share",), f"path is {MIXED}")


def paths_on(topology: Topology, path: str | None, usual: str) -> str:
    """Where paths come from in a topology; `usual` is what is meant in a Dragonfly if nothing is said."""
    if path is None:
        return usual if topology.kind == DRAGONFLY else SHORTEST
    return path


def checked_on(topology: Topology, name: str, paths: DragonflyPaths | None) -> None:
    """Raises IntentError where a scheme, by its name, has paths of a Dragonfly in another topology."""
    if paths is not None and topology.kind != DRAGONFLY:
        raise IntentError(
            f"scheme {name}: {paths.rule} paths are those of a Dragonfly, which {topology.spec} is not"
        )

# SPDX-License-Identifier: Apache-2.0
"""The controller of a run in virtual time: specs such as ``real:latency=20us`` -> what it is like.

ideal                           is notified of link and switch failures, and has reacted ten base RTTs
                                later; the default
real:latency=TIME,interval=TIME the real controller, over P4Runtime channels in memory

latency     mean time of a message between it and a switch, one way; a tenth of the interval without it
interval    between the probes of a link, of which it misses three before the link is dead, and the measure
            of all its other times; without it a dead link is noticed about ten base RTTs later, as by ideal
"""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.sim.job import RealControllerConfig
from tailrace.spec import SpecError, keys, parse

IDEAL, REAL = KINDS = ("ideal", "real")


@dataclass(frozen=True, slots=True)
class _Ideal:
    """Has no keys."""


def parse_controller(text: str) -> RealControllerConfig | None:
    """The controller as its spec describes it; None is `ideal`.

    Raises:
        SpecError: an unknown controller, or an unknown or bad option; one line says which.
    """
    spec = parse(text, "controller")
    if spec.name not in KINDS:
        raise SpecError(f"expected one of {', '.join(KINDS)}, found {spec.name!r}")
    if spec.name == REAL:
        return keys.read(spec, RealControllerConfig)
    keys.read(spec, _Ideal)
    return None

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
from typing import Annotated

from tailrace.sim.job import RealControllerConfig
from tailrace.spec import SpecError, keys, parse

IDEAL, REAL = KINDS = ("ideal", "real")

LEAST_NS = 100
"""Of a latency or an interval; far below anything that a controller could keep up with."""


@dataclass(frozen=True, slots=True)
class _Ideal:
    """Has no keys."""


@dataclass(frozen=True, slots=True)
class _Real:
    latency_ns: Annotated[int | None, keys.time("latency", "of a message, one way", least=LEAST_NS)] = None
    interval_ns: Annotated[int | None, keys.time("interval", "between probes", least=LEAST_NS)] = None


def parse_controller(text: str) -> RealControllerConfig | None:
    """The controller as its spec describes it; None is `ideal`.

    Raises:
        SpecError: an unknown controller, or an unknown or bad option; one line says which.
    """
    spec = parse(text, "controller")
    if spec.name not in KINDS:
        raise SpecError(f"expected one of {', '.join(KINDS)}, found {spec.name!r}")
    if spec.name == IDEAL:
        keys.read(spec, _Ideal)
        return None
    real = keys.read(spec, _Real)
    return RealControllerConfig(real.latency_ns, real.interval_ns)

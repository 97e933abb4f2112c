# SPDX-License-Identifier: Apache-2.0
"""The controller of a run in virtual time: specs such as ``live:latency=20us`` -> what it is like.

told                            is told of links and switches, and has done what follows ten base RTTs
                                later; the default
live:latency=TIME,interval=TIME the one that runs in real time, over P4Runtime channels in memory

latency     mean time of a message between it and a switch, one way; a tenth of the interval without it
interval    between the probes of a link, of which it misses three before the link is dead, and the measure
            of all its other times; without it a dead link is noticed about ten base RTTs later, as by told
"""

from __future__ import annotations

from tailrace.sim.job import RealControllerConfig
from tailrace.spec import SpecError, SpecOptions, parse

TOLD, LIVE = KINDS = ("told", "live")

LEAST_NS = 100
"""Of a latency or an interval; far below anything that a controller could keep up with."""


def parse_controller(text: str) -> RealControllerConfig | None:
    """The controller as its spec describes it; None is `told`.

    Raises:
        SpecError: an unknown controller, or an unknown or bad option; one line says which.
    """
    spec = parse(text, "controller")
    if spec.name not in KINDS:
        raise SpecError(f"expected one of {', '.join(KINDS)}, found {spec.name!r}")
    options = SpecOptions(spec, ("latency", "interval") if spec.name == LIVE else ())

    def time(name: str) -> int | None:
        return options.time_ns(name, least=LEAST_NS) if name in options else None

    return RealControllerConfig(time("latency"), time("interval")) if spec.name == LIVE else None

# SPDX-License-Identifier: Apache-2.0
"""The controller of a run in virtual time: parses specs such as ``real:latency=20us``.

ideal                           (default) is notified of link and switch failures, and its reaction takes
                                effect ten base RTTs later
real:latency=TIME,interval=TIME the real controller, over P4Runtime channels in memory

latency     mean one-way time of a message between controller and switch; default: a tenth of the interval
interval    time between probes of a link, which is declared dead after three missed probes; all other times
            are derived from it. By default a dead link is noticed about ten base RTTs later, as with `ideal`
"""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.sim.job import RealControllerConfig
from tailrace.spec import SpecError, keys, parse

IDEAL, REAL = KINDS = ("ideal", "real")


@dataclass(frozen=True, slots=True)
class _Ideal:
    """The spec `ideal`, which has no keys."""


def parse_controller(text: str) -> RealControllerConfig | None:
    """The settings of the real controller that a spec describes; None for `ideal`.

    Raises:
        SpecError: an unknown controller, or an unknown or bad option; the message, one line, names it.
    """
    spec = parse(text, "controller")
    if spec.name not in KINDS:
        raise SpecError(f"expected one of {', '.join(KINDS)}, found {spec.name!r}")
    if spec.name == REAL:
        return keys.read(spec, RealControllerConfig)
    keys.read(spec, _Ideal)
    return None

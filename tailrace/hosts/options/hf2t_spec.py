# SPDX-License-Identifier: Apache-2.0
"""The keys of HF2T, for any scheme: NICs stretch gaps so that switches see flowlets (HF2T §4).

All keys except the first, `hf2t`, require that key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from tailrace.hosts.options.hf2t import LEAST_TRAIN_GAPS
from tailrace.spec import Spec, SpecError, keys
from tailrace.spec.errors import ExpectedError

HF2T = "hf2t"
ON, OFF = "on", "off"

LEAST_PERCENTILE = 50.0
DEFAULT_PERCENTILE = 99.0
PERCENTILE_STEPS = 100
"""A percentile is a multiple of 1/100."""

_LEARNING = ("train", "retrain")
_SECTION = "HF2T §4, §5.1"


def stretches(options: Mapping[str, str]) -> bool:
    """Whether NICs stretch gaps under a scheme with these options."""
    return options.get(HF2T, OFF) != OFF or options.get("variant") == HF2T


def _parse_percentile(text: str) -> float:
    if text == ON:
        return DEFAULT_PERCENTILE
    problem = ExpectedError(f"{ON}, {OFF} or a percentile from {LEAST_PERCENTILE:g} to below 100")
    try:
        steps = round(keys.parse_number(text) * PERCENTILE_STEPS)
    except ExpectedError:
        raise problem from None
    if not LEAST_PERCENTILE * PERCENTILE_STEPS <= steps < 100 * PERCENTILE_STEPS:
        raise problem
    return steps / PERCENTILE_STEPS


_PERCENTILE = keys.Key(
    HF2T,
    "NICs stretch gaps of at least T, which is this percentile of all gaps",
    f"{LEAST_PERCENTILE:g} to 99.99, {ON} or {OFF}",
    _parse_percentile,
    lambda value: f"{value:g}",
    section=_SECTION,
)
_MIN_THR = keys.integer(
    "min_thr",
    "number of packets since the last stretched gap below which the threshold is above T (eq. 1)",
    least=1,
    values="packets",
    section=_SECTION,
)
_MAX_THR = keys.integer(
    "max_thr",
    "number of packets above which the threshold is below T (eq. 1)",
    least=1,
    values="packets",
    section=_SECTION,
)
_STRETCH = keys.time(
    "stretch",
    "length to which gaps are stretched",
    least=1,
    absent="flowlet gap, or base RTT",
    section="HF2T §3",
)
_TRAIN = keys.integer(
    "train", "number of gaps from which a NIC learns T", least=LEAST_TRAIN_GAPS, absent=f"depends on {HF2T}"
)
_T = keys.time("t", "fixed threshold T, without learning", least=1, absent="learnt")


class Hf2tSpec(msgspec.Struct, frozen=True, kw_only=True):
    """HF2T as requested in a spec."""

    percentile: Annotated[float, _PERCENTILE] = DEFAULT_PERCENTILE
    min_thr: Annotated[int, _MIN_THR] = 20
    max_thr: Annotated[int, _MAX_THR] = 80
    dynamic: Annotated[
        bool, keys.flag("dynamic", "the threshold depends on min_thr and max_thr; off: it is T")
    ] = True
    stretch_ns: Annotated[int | None, _STRETCH] = None
    train: Annotated[int | None, _TRAIN] = None
    t_ns: Annotated[int | None, _T] = None
    spare_bytes: Annotated[int, keys.size("spare", "flow size up to which gaps are not stretched")] = 0
    retrain: Annotated[
        bool, keys.flag("retrain", "NICs learn T again when the distribution of gaps has changed")
    ] = True

    def __post_init__(self) -> None:
        """Raises SpecError if the thresholds contradict each other."""
        if self.min_thr > self.max_thr:
            raise SpecError(
                f"min_thr must be at most max_thr, which is {self.max_thr}, found '{self.min_thr}'"
            )


KEYS = tuple(key.name for key in keys.keys_of(Hf2tSpec))


def hf2t_requested(spec: Spec) -> bool:
    """Whether the options of a scheme request HF2T, by the key or by a variant of that name.

    Raises:
        SpecError: there are keys that require HF2T, or learning, which is off.
    """
    wanted = spec.options.get(HF2T, ON if spec.options.get("variant") == HF2T else OFF)
    if wanted == OFF:
        for key in KEYS[1:]:
            if key in spec.options:
                raise spec.refused(key, f"together with {HF2T}=on or {HF2T}=PERCENTILE")
        return False
    if "t" in spec.options:
        if wanted != ON:
            raise spec.error(HF2T, f"{ON} if t is given, since nothing is learnt then")
        for key in _LEARNING:
            if key in spec.options:
                raise spec.refused(key, "without t, since nothing is learnt with t")
    return True

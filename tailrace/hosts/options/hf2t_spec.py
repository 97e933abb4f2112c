# SPDX-License-Identifier: Apache-2.0
"""The spec keys of HF2T (Chen et al., APNet 2024), for every scheme: NICs stretch gaps between packets to
begin flowlets (§4).

The key `hf2t` turns HF2T on; the other keys require it. NICs stretch gaps of at least T, or with the key
`dynamic` of T times a factor that depends on min_thr and max_thr (eq. 1, see hosts.gaps.hf2t).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from tailrace.hosts.options.hf2t import LEAST_TRAIN_GAPS
from tailrace.spec import Spec, SpecError, keys
from tailrace.spec.errors import ExpectedError

HF2T = "hf2t"
DELAY = "delay"
ON, OFF = "on", "off"

LEAST_PERCENTILE = 50.0
DEFAULT_PERCENTILE = 99.0
PERCENTILE_STEPS = 100
"""A percentile is a multiple of 1/100."""

_LEARNING_KEYS = ("train", "retrain")
_SECTION = "HF2T §4, §5.1"


def stretches(options: Mapping[str, str]) -> bool:
    """Whether NICs stretch gaps under a scheme with these options."""
    return options.get(HF2T, OFF) != OFF or options.get("variant") == HF2T


def _parse_percentile(text: str) -> float:
    """The percentile that a value of `hf2t` other than OFF requests, rounded to 1/100."""
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
    """The values of the keys of HF2T in a spec.

    percentile: T is this percentile of the gaps.
    stretch_ns: length to which gaps are stretched; None: the scheme's flowlet gap, or the base RTT.
    train: number of gaps from which T is learnt; None: it follows from the percentile.
    t_ns: a fixed T, without learning; None: T is learnt.
    """

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
    delay: Annotated[
        bool, keys.flag(DELAY, "gaps are stretched; off: the packet goes at once with a new UDP source port")
    ] = True

    def __post_init__(self) -> None:
        """Raises SpecError if the thresholds contradict each other."""
        if self.min_thr > self.max_thr:
            raise SpecError(
                f"min_thr must be at most max_thr, which is {self.max_thr}, found '{self.min_thr}'"
            )


KEYS = tuple(key.name for key in keys.keys_of(Hf2tSpec))


def hf2t_requested(spec: Spec) -> bool:
    """Whether the options of a scheme request HF2T, by the key `hf2t` or by variant=hf2t.

    Raises:
        SpecError: a key requires HF2T, but HF2T is off; or a key requires that T is learnt, but T is fixed.
    """
    value = spec.options.get(HF2T, ON if spec.options.get("variant") == HF2T else OFF)
    if value == OFF:
        for key in KEYS[1:]:
            if key in spec.options:
                raise spec.refused(key, f"together with {HF2T}=on or {HF2T}=PERCENTILE")
        return False
    if "t" in spec.options:
        if value != ON:
            raise spec.error(HF2T, f"{ON} if t is given, since a fixed T is not learnt")
        for key in _LEARNING_KEYS:
            if key in spec.options:
                raise spec.refused(key, "without t, since a fixed T is not learnt")
    return True

# SPDX-License-Identifier: Apache-2.0
"""HF2T in words: NICs that stretch gaps until switches see flowlets (HF2T §4), under whatever scheme.

    hf2t=99        on: T is this percentile of the gaps, from 50 to below 100; `on` is 99, `off` none
    min_thr=20     and max_thr=80, in packets: of alpha, eq. 1
    dynamic=on     off: T is not multiplied by alpha ("No Dynamic T")
    stretch=TIME   the flowlet threshold that gaps are stretched to; without it that of the scheme's own
                   flowlets, or a base RTT where it has none
    train=COUNT    gaps from which a NIC learns T; without it as many as put 100 of them beyond T
    t=TIME         T itself: nothing is learnt
    spare=SIZE     flows of at most this size are left alone
    retrain=on     off: T is learnt once

All but the first need it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.words import Options, SpecError

HF2T = "hf2t"
ON, OFF = "on", "off"
KEYS = (HF2T, "min_thr", "max_thr", "dynamic", "stretch", "train", "t", "spare", "retrain")

DEFAULT_PERCENTILE = 99.0
DEFAULT_MIN_THR = 20
DEFAULT_MAX_THR = 80
"""HF2T §5.1."""

LEAST_PERCENTILE = 50.0
PERCENTILE_STEPS = 100
"""A percentile is a multiple of 1/100."""

LEAST_TRAIN = 100
_LEARNING = ("train", "retrain")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hf2tWords:
    """HF2T as it was asked for.

    percentile: T is this one of the gaps, a multiple of 1/100 from 50 to below 100
    min_thr, max_thr: of eq. 1, in packets
    dynamic: T is multiplied by alpha of eq. 1
    stretch_ns: the flowlet threshold; None: that of the scheme or of the topology
    train: gaps from which T is learnt; None: as the percentile needs
    t_ns: T; None: it is learnt
    spare_bytes: flows of at most this size are left alone
    retrain: T is learnt anew when gaps have changed
    """

    percentile: float = DEFAULT_PERCENTILE
    min_thr: int = DEFAULT_MIN_THR
    max_thr: int = DEFAULT_MAX_THR
    dynamic: bool = True
    stretch_ns: int | None = None
    train: int | None = None
    t_ns: int | None = None
    spare_bytes: int = 0
    retrain: bool = True


def hf2t_options(options: Options, *, on: bool = False) -> Hf2tWords | None:
    """What the words say of HF2T; None: there is none.

    Args:
        options: of any scheme.
        on: it is there although no key `hf2t` says so.

    Raises:
        SpecError: a bad value, or values that contradict each other.
    """
    wanted = options.text(HF2T, ON if on else OFF)
    if wanted == OFF:
        for key in KEYS[1:]:
            if key in options:
                raise options.error(key, f"given only where {HF2T} is, as {HF2T}=on or a percentile")
        return None
    percentile = DEFAULT_PERCENTILE if wanted == ON else _percentile(options)
    if "t" in options:
        if wanted != ON:
            raise options.error(HF2T, f"{ON} where t is given, for nothing is learnt then")
        for key in _LEARNING:
            if key in options:
                raise options.error(key, "given only where t is not, for nothing is learnt then")
    min_thr = options.integer("min_thr", DEFAULT_MIN_THR, least=1)
    max_thr = options.integer("max_thr", DEFAULT_MAX_THR, least=1)
    if min_thr > max_thr:
        raise options.error("min_thr", f"at most max_thr, which is {max_thr}")
    return Hf2tWords(
        percentile=percentile,
        min_thr=min_thr,
        max_thr=max_thr,
        dynamic=options.flag("dynamic", default=True),
        stretch_ns=options.time_ns("stretch", least=1) if "stretch" in options else None,
        train=options.integer("train", least=LEAST_TRAIN) if "train" in options else None,
        t_ns=options.time_ns("t", least=1) if "t" in options else None,
        spare_bytes=options.size_bytes("spare", 0),
        retrain=options.flag("retrain", default=True),
    )


def _percentile(options: Options) -> float:
    try:
        found = options.number(HF2T)
    except SpecError:
        raise _no_percentile(options) from None
    steps = round(found * PERCENTILE_STEPS)
    if not LEAST_PERCENTILE * PERCENTILE_STEPS <= steps < 100 * PERCENTILE_STEPS:
        raise _no_percentile(options)
    return steps / PERCENTILE_STEPS


def _no_percentile(options: Options) -> SpecError:
    return options.error(HF2T, f"{ON}, {OFF} or a percentile from {LEAST_PERCENTILE:g} to below 100")

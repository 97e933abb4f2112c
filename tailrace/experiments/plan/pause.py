# SPDX-License-Identifier: Apache-2.0
"""A scheme that predicts PFC and the switches that pause agree on the threshold (RLB §III-B.1: Q_PFC).

Without PFC there is nothing to predict, so such a scheme brings it along, with its own threshold; a threshold
that only the switches were given becomes the scheme's.
"""

from __future__ import annotations

from dataclasses import replace

from tailrace.experiments.plan.pfc import Pfc, Thresholds, parse_pfc
from tailrace.experiments.plan.words import with_option
from tailrace.p4rt import programs
from tailrace.p4rt.errors import ControllerError
from tailrace.schemes.blocks import pfc as emulation
from tailrace.schemes.defaults import resolve
from tailrace.schemes.registry import RlbConfig, SchemeConfig, parse_scheme
from tailrace.topology import Topology
from tailrace.words import SpecError


def pfc_of(words: str | None, scheme: SchemeConfig, topology: Topology) -> Pfc | None:
    """PFC as the experiment and the scheme want it; None: neither does.

    Raises:
        SpecError: bad words, or two thresholds.
    """
    given = None if words is None else parse_pfc(words)
    if not isinstance(scheme, RlbConfig):
        return given
    given = given or Pfc()
    if given.xoff_bytes is None:
        return replace(given, xoff_bytes=_pause_bytes(scheme, topology))
    if scheme.pause_bytes not in (None, given.xoff_bytes):
        raise SpecError(
            f"pfc: xoff is {given.xoff_bytes} bytes, expected those of the scheme, pfc={scheme.pause_bytes}"
        )
    return given


def check_emulated(pfc: Pfc, scheme: SchemeConfig) -> None:
    """Whether a program can stand in for the PFC that BMv2's traffic manager does not have (p4src/pfc).

    Raises:
        SpecError: it cannot, or not for memory that ports share.
    """
    if pfc.buffer_bytes is not None:
        raise SpecError("pfc: buffer: BMv2 has no memory that ports share; use --target native or virtual")
    try:
        emulates = programs.load(scheme.program).has_table(emulation.TABLE)
    except ControllerError as error:
        raise SpecError(str(error)) from error
    if not emulates:
        raise SpecError(
            f"pfc: BMv2's traffic manager has none, and the program {scheme.program} does not stand in for"
            " it; use --target native or virtual"
        )


def _pause_bytes(scheme: RlbConfig, topology: Topology) -> int:
    try:
        found = resolve(scheme, topology)
    except ControllerError as error:
        raise SpecError(str(error)) from error
    assert isinstance(found, RlbConfig) and found.pause_bytes is not None
    return found.pause_bytes


def with_pause(words: str, thresholds: Thresholds) -> str:
    """The words of a scheme, with the switches' threshold where it predicts when that is reached."""
    scheme = parse_scheme(words)
    if isinstance(scheme, RlbConfig) and scheme.pause_bytes is None:
        return with_option(words, "pfc", str(thresholds.xoff_bytes))
    return words

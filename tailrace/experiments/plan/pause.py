# SPDX-License-Identifier: Apache-2.0
"""PFC settings on which experiment and scheme must agree: the threshold xoff, and channels.

A scheme that predicts pauses (RLB) uses the same threshold as the switches that pause (its paper, §III-B.1:
Q_PFC).

Without PFC there is nothing to predict, so such a scheme turns PFC on with its own threshold; a threshold
that is given for the switches alone applies to the scheme, too (SchemeContext.pause_bytes).
"""

from __future__ import annotations

from msgspec.structs import replace

from tailrace.experiments.plan.pfc import NoPfc, Pfc
from tailrace.hosts.options.transport import Transport
from tailrace.p4rt import programs
from tailrace.p4rt.errors import ControllerError
from tailrace.schemes.base import SchemeConfig
from tailrace.schemes.blocks import pfc as emulation
from tailrace.schemes.blocks.channels import MOST_CHANNELS
from tailrace.schemes.resolved import Resolved
from tailrace.spec import SpecError
from tailrace.topology import Topology


def given_pfc(
    given: Pfc | NoPfc | None, scheme: SchemeConfig, transport: Transport, topology: Topology, target: str
) -> Pfc | None:
    """The PFC settings of an experiment; None: no PFC.

    By default a scheme that predicts pauses has PFC, and so has a transport that is made for lossless
    networks, unless queues trim packets or the scheme's spec limits them; but not on BMv2, where only some
    programs emulate PFC.

    Raises:
        SpecError: PFC is off, but the scheme needs it.
    """
    if given is None and target == "bmv2":
        return None
    if isinstance(given, NoPfc):
        if scheme.predicts_pauses:
            raise SpecError(f"pfc: off, but the scheme {scheme.name} predicts pauses of PFC")
        return None
    if given is not None or scheme.predicts_pauses:
        return (given or Pfc()).bounded()
    drops = scheme.limits_queues or scheme.trims_on(topology)
    return Pfc() if transport.lossless and not drops else None


def pfc_of(given: Pfc | None, scheme: Resolved) -> Pfc | None:
    """The PFC settings of experiment and scheme together; None if neither uses PFC.

    Raises:
        SpecError: their thresholds differ.
    """
    xoff = scheme.pauses_at_bytes
    if xoff is None:
        return given
    if given is None or given.xoff_bytes is None:
        return replace(given or Pfc(), xoff_bytes=xoff)
    if xoff != given.xoff_bytes:
        raise SpecError(f"pfc: xoff is {given.xoff_bytes} bytes, expected the scheme's threshold, pfc={xoff}")
    return given


def channels_of(given: Pfc, scheme: Resolved, topology: Topology, target: str) -> int:
    """Number of channels, the lossless priorities of links between switches (schemes.blocks.channels).

    0: there are no channels, and data has one lossless priority on all links.

    Raises:
        SpecError: the given number is too small, the target or the scheme has no channels, or the scheme
            needs more than MOST_CHANNELS.
    """
    needed = scheme.channels(topology)
    emulated = target == "bmv2"  # p4src/pfc has one lossless priority
    if given.channels is None:
        if not emulated and needed > MOST_CHANNELS:
            raise SpecError(
                f"pfc: {scheme.name} needs {needed} channels in {topology.spec}, expected {MOST_CHANNELS} at"
                " most; channels=off has none, and can deadlock"
            )
        return 0 if emulated else needed
    if not given.channels:
        return 0
    if emulated:
        raise SpecError("pfc: channels: BMv2 has none; use --target native or virtual")
    if not needed:
        raise SpecError(f"pfc: channels: {scheme.name} has none in {topology.spec}")
    if given.channels < needed:
        raise SpecError(f"pfc: channels={given.channels}: {scheme.name} needs {needed} in {topology.spec}")
    return given.channels


def check_emulated(pfc: Pfc, scheme: Resolved) -> None:
    """Checks that the scheme's program emulates PFC (p4src/pfc), which BMv2's traffic manager lacks.

    Raises:
        SpecError: the program does not, or ports are to share a buffer, which no program can emulate.
    """
    if pfc.buffer_bytes is not None:
        raise SpecError("pfc: buffer: BMv2 has no memory that ports share; use --target native or virtual")
    try:
        emulates = not scheme.is_foreign and programs.load(scheme.program).has_table(emulation.TABLE)
    except ControllerError as error:
        raise SpecError(str(error)) from error
    if not emulates:
        raise SpecError(
            f"pfc: BMv2's traffic manager has none, and the program {scheme.program} does not emulate"
            " it; use --target native or virtual"
        )

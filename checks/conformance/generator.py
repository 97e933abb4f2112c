# SPDX-License-Identifier: Apache-2.0
"""The random input of one program: what a controller installs, and packets that hit it."""

from __future__ import annotations

from collections.abc import Iterator

from checks.conformance.make_plan import make_plan
from checks.conformance.packets import Packet, PacketMaker
from checks.conformance.plan import ControlPlan
from checks.conformance.pools import Pools
from checks.conformance.program import CompiledProgram


def generate(program: CompiledProgram, seed: int) -> tuple[ControlPlan, Iterator[Packet]]:
    """The entries, and endless packets; the same seed makes the same ones."""
    pools = Pools(program, seed)
    return make_plan(program, pools, seed), iter(PacketMaker(program, pools, seed))

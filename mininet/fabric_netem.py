# SPDX-License-Identifier: Apache-2.0
"""Delays of links for BMv2, which has none of its own: the kernel's netem, where it is built in."""

from __future__ import annotations

import subprocess

from fabric_plan import Plan

_QUEUE_PACKETS = 100_000
"""What is under way on a link must fit; netem is not to be the one that drops."""


def _tc(interface: str, delay_ns: int) -> bool:
    words = ["tc", "qdisc", "add", "dev", interface, "root", "netem"]
    words += ["limit", str(_QUEUE_PACKETS), "delay", f"{delay_ns}ns"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def add_delays(plan: Plan) -> bool:
    """Delays what leaves each port by its link's delay; whether the kernel does it everywhere."""
    ports = [port for switch in plan.switches for port in switch.ports if port.delay_ns]
    return all(_tc(port.interface, port.delay_ns) for port in ports)

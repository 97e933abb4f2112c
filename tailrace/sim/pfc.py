# SPDX-License-Identifier: Apache-2.0
"""Summary of the switches' PFC counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tailrace.sim.outcome import PfcSeen

LOST = ("pfc_headroom", "buffer_full", "NO_WAITING_ROOM")
"""The drop reasons (native core and emulated PFC) that mean the loss of a packet of a lossless class."""


def waiting_line(queues: Sequence[str]) -> str:
    """A deadlock as one line: each of these queues waits for the next one, and the last for the first."""
    return " waits for ".join([*queues, queues[0]])


def pfc_seen(switches: Sequence[Mapping[str, Any]], priorities: Sequence[int], span_ns: int) -> PfcSeen:
    """Sums up the PFC counters of a run.

    Args:
        switches: the statistics of each switch, in the format of tailrace/switch/p4runtime/statistics.py.
        priorities: the lossless priorities.
        span_ns: the duration of the run.
    """
    ports = [port for switch in switches for port in switch["ports"].values()]
    names = [str(priority) for priority in priorities]
    lossless = [port["pfc"][name] for port in ports for name in names if name in port["pfc"]]
    paused_ns = sum(counts["paused_ns"] for counts in lossless)
    # P4 programs that emulate PFC do not count the pauses of a port
    are_counted = all("times_paused" in counts for counts in lossless)
    total_ns = len(ports) * len(names) * span_ns
    buffers = [switch["buffer"] for switch in switches]  # the most memory used, by part of the buffer
    return PfcSeen(
        frames=sum(port["pfc_sent"] for port in ports),
        pauses=sum(counts["xoff_sent"] for counts in lossless),
        received=sum(port["pfc_received"] for port in ports),
        paused_ns=paused_ns,
        pause_share=paused_ns / total_ns if total_ns else 0.0,
        lost=sum(switch["drops"].get(reason, 0) for switch in switches for reason in LOST),
        ignored=sum(port["pfc_ignored"] for port in ports),
        times_paused=sum(counts["times_paused"] for counts in lossless) if are_counted else None,
        headroom_most_bytes=max((counts["headroom_most_bytes"] for counts in lossless), default=0),
        storms=sum(counts["storms"] for counts in lossless),
        storm_dropped=sum(counts["storm_dropped"] for counts in lossless),
        buffer_most_bytes=max(
            (taken["shared_most_bytes"] + taken["headroom_most_bytes"] for taken in buffers), default=0
        ),
    )

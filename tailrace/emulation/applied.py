# SPDX-License-Identifier: Apache-2.0
"""Settings of a job that targets in real time do not apply."""

from __future__ import annotations

from tailrace.codec.sizes import HEADER_BYTES
from tailrace.sim.job import Job


def not_applied(job: Job, *, delays: bool) -> tuple[str, ...]:
    """What a job asks for and its target does not apply, or applies in another way, a line each.

    Args:
        job: what ran in real time.
        delays: whether the links between switches had their propagation delays.
    """
    return (*(_bmv2(job) if job.target == "bmv2" else ()), *_real_time(job, delays=delays))


def _real_time(job: Job, *, delays: bool) -> list[str]:
    lines = []
    if not delays:
        lines.append("delay: links have none behind switches, since this kernel has no netem")
    if job.sample_ns is not None:
        lines.append("sample: only virtual time has samples")
    if job.watch:
        lines.append("follow: only virtual time has paths of flows")
    return lines


def _bmv2(job: Job) -> list[str]:
    """BMv2's traffic manager has limits in packets and no PFC, and gives programs no queue lengths."""
    frame_bytes = job.nic.mtu_bytes + HEADER_BYTES
    lines = [
        f"rate: in packets/s, so that a data frame takes as long as one of {frame_bytes} bytes,"
        " and control frames have no limit",
        "queues: what programs know of their length lags behind by what waits for BMv2's egress threads",
    ]
    if job.pfc is not None:
        lines.append("pfc: by the program, without headroom; a paused port drains the packet in egress first")
        if not job.pfc.channels and job.scheme.channels(job.topology):
            lines.append("pfc channels: none, so that pauses can deadlock")
    if job.scheme.recirculates:
        lines.append("priority of CNMs: that of data, since BMv2 has no class of service for clones")
    return lines

# SPDX-License-Identifier: Apache-2.0
"""Lists the settings of a job that a real-time target ignores, or applies in another way."""

from __future__ import annotations

from tailrace.codec.sizes import HEADER_BYTES
from tailrace.sim.job import Job


def not_applied(job: Job, *, delays: bool) -> tuple[str, ...]:
    """The settings of a job that its target ignored, or applied in another way; a line each.

    Args:
        job: a job that has run in real time.
        delays: whether the links between switches had their propagation delays.
    """
    return (*(_bmv2(job) if job.target == "bmv2" else ()), *_real_time(job, delays=delays))


def _real_time(job: Job, *, delays: bool) -> list[str]:
    lines = []
    if not delays:
        lines.append("delay: links between switches have no delay, since this kernel has no netem")
    if job.sample_ns is not None:
        lines.append("sample: samples are taken in virtual time only")
    if job.watch:
        lines.append("follow: paths of flows are recorded in virtual time only")
    if job.record is not None:
        lines.append("record: frames are recorded in virtual time only")
    return lines


def _bmv2(job: Job) -> list[str]:
    """BMv2's traffic manager has limits in packets and no PFC, and gives programs no exact queue lengths."""
    frame_bytes = job.nic.mtu_bytes + HEADER_BYTES
    lines = [
        f"rate: in packets/s, so that every data frame takes as long as one of {frame_bytes} bytes;"
        f" {'other frames, too' if job.scheme.is_foreign else 'control frames have no rate limit'}",
        "queues: the lengths that programs see do not include packets that wait for BMv2's egress threads",
    ]
    if job.scheme.is_foreign and job.time_scale != 1:
        lines.append("tick: the program's clock runs at full speed, though everything else is slower")
    if job.pfc is not None:
        lines.append("pfc: by the P4 program, without headroom; a paused port still sends what is in egress")
        if not job.pfc.channels and job.scheme.channels(job.topology):
            lines.append("pfc channels: none, so that pauses can deadlock")
    if job.scheme.recirculates:
        lines.append(
            "priority of RLB's warnings (CNMs): that of data, since BMv2 has no class of service for clones"
        )
    return lines

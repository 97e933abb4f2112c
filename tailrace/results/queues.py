# SPDX-License-Identifier: Apache-2.0
"""The bounds of queues in a run: the P4 program's queue limit, ECN marking, priority flow control."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType, structs

from tailrace.experiments.plan.nic import waiting_bytes
from tailrace.schemes.program import ResolvedProgram
from tailrace.spec.units import format_bytes

if TYPE_CHECKING:
    from tailrace.results.result import Result
    from tailrace.sim.job import Job

MOST_LINES = 4
MOST_LABELS = 6
PER_MILLE = 1000


class Queues(Struct, frozen=True, kw_only=True):
    """Bounds of the egress queues of switches, in bytes; an absent field means that there is no such bound.

    limit_bytes: limit of a queue; data packets beyond the limit are dropped or, if `trims`, trimmed
    limit_packets: the same in packets, of a queue of any packets (schemes.program)
    program_marks: whether a user's program decides on ECN marks, so that their thresholds are not known
    holds_all: whether the limit is at least all data that senders may have in flight, so that no queue fills
    kmin_bytes, kmax_bytes, pmax: ECN marking by RED; pmax from 0 to 1
    xoff_bytes, xon_bytes, headroom_bytes: PFC thresholds of an ingress port
    buffer_bytes: memory of a switch, shared by its ports
    """

    limit_bytes: int | UnsetType = UNSET
    limit_packets: int | UnsetType = UNSET
    program_marks: bool | UnsetType = UNSET
    holds_all: bool = False
    trims: bool = False
    kmin_bytes: int | UnsetType = UNSET
    kmax_bytes: int | UnsetType = UNSET
    pmax: float | UnsetType = UNSET
    xoff_bytes: int | UnsetType = UNSET
    xon_bytes: int | UnsetType = UNSET
    headroom_bytes: int | UnsetType = UNSET
    buffer_bytes: int | UnsetType = UNSET


def queues_of(job: Job) -> Queues:
    """The bounds of the queues of a job."""
    scheme, red, pfc, nic = job.scheme, job.scheme.red, job.pfc, job.nic
    limit = scheme.queue_limit_bytes
    needed = waiting_bytes(job.flows, window=nic.window_bytes, mtu=nic.mtu_bytes)
    bounds = Queues(limit_bytes=limit or UNSET, holds_all=limit >= needed, trims=scheme.trims and limit > 0)
    if isinstance(scheme, ResolvedProgram):
        bounds = Queues(
            limit_bytes=limit or UNSET, limit_packets=scheme.depth_packets or UNSET, program_marks=True
        )
    if red is not None:
        pmax = red.pmax_permille / PER_MILLE
        bounds = structs.replace(bounds, kmin_bytes=red.kmin_bytes, kmax_bytes=red.kmax_bytes, pmax=pmax)
    if pfc is not None:
        bounds = structs.replace(
            bounds,
            xoff_bytes=pfc.xoff_bytes,
            xon_bytes=pfc.xon_bytes,
            headroom_bytes=pfc.headroom_bytes,
            buffer_bytes=UNSET if pfc.buffer_bytes is None else pfc.buffer_bytes,
        )
    return bounds


def queue_text(bounds: Sequence[Queues]) -> str:
    """A description of bounds; they may differ only in their limits."""
    first = bounds[0]
    sizes = sorted({each.limit_bytes for each in bounds if not isinstance(each.limit_bytes, UnsetType)})
    size = " to ".join(dict.fromkeys(map(format_bytes, (sizes[0], sizes[-1])))) if sizes else ""
    if not isinstance(first.limit_packets, UnsetType):
        parts = [f"packets beyond {first.limit_packets} are dropped"]
    elif not sizes:
        parts = ["no limit"]
    elif first.holds_all:
        parts = [f"room for all data in flight ({size})"]
    else:
        parts = [f"data beyond {size} are {'trimmed' if first.trims else 'dropped'}"]
    if first.program_marks:
        parts.append("ECN marks as the program sets them")
    elif isinstance(first.kmin_bytes, UnsetType) or isinstance(first.kmax_bytes, UnsetType):
        parts.append("no ECN marks")
    else:
        parts.append(f"ECN marks from {format_bytes(first.kmin_bytes)} to {format_bytes(first.kmax_bytes)}")
    if isinstance(first.xoff_bytes, UnsetType):
        parts.append("no PFC")
    else:
        memory = first.buffer_bytes
        shared = "" if isinstance(memory, UnsetType) else f" (a switch has {format_bytes(memory)})"
        parts.append(f"PFC pauses beyond {format_bytes(first.xoff_bytes)}{shared}")
    return ", ".join(parts)


def queue_lines(results: Sequence[Result]) -> list[str]:
    """The bounds of queues in some runs: a line for each kind of bounds, with the labels of its runs."""
    kinds: dict[Queues, list[tuple[str, Queues]]] = {}
    for result in results:
        bounds = result.summary.queues
        if not isinstance(bounds, UnsetType):
            kind = structs.replace(bounds, limit_bytes=UNSET)
            kinds.setdefault(kind, []).append((result.label, bounds))
    lines = []
    for runs in list(kinds.values())[:MOST_LINES]:
        names = list(dict.fromkeys(label for label, _ in runs))
        more = f" and {len(names) - MOST_LABELS} others" if len(names) > MOST_LABELS else ""
        whose = f" of {', '.join(names[:MOST_LABELS])}{more}" if len(kinds) > 1 else ""
        lines.append(f"queues{whose}: {queue_text([bounds for _, bounds in runs])}")
    if len(kinds) > MOST_LINES:
        lines.append(f"queues: {len(kinds) - MOST_LINES} other bounds are in summary.json of each run")
    return lines

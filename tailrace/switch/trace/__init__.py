# SPDX-License-Identifier: Apache-2.0
"""What a switch does to a packet, step by step, as its program says it (tr_tracer.h)."""

from tailrace.switch.trace.dry_run import MOST_OUTCOMES, TraceError, outcomes, try_packet
from tailrace.switch.trace.events import Event, Trace

__all__ = ["MOST_OUTCOMES", "Event", "Trace", "TraceError", "outcomes", "try_packet"]

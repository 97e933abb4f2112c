# SPDX-License-Identifier: Apache-2.0
"""What a switch does to a packet, step by step, as its program says it (tr_glass.h)."""

from tailrace.switch.trace.events import Event, Trace
from tailrace.switch.trace.trying import MOST_OUTCOMES, TraceError, outcomes, try_packet

__all__ = ["MOST_OUTCOMES", "Event", "Trace", "TraceError", "outcomes", "try_packet"]

# SPDX-License-Identifier: Apache-2.0
"""Packet traces: what a switch does to a packet, step by step (tr_tracer.h)."""

from tailrace.switch.trace.dry_run import MOST_OUTCOMES, TraceError, dry_run_packet, outcomes
from tailrace.switch.trace.events import Event, Trace

__all__ = ["MOST_OUTCOMES", "Event", "Trace", "TraceError", "dry_run_packet", "outcomes"]

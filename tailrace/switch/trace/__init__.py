# SPDX-License-Identifier: Apache-2.0
"""Packet traces: what a switch does to a packet, step by step (tr_tracer.h)."""

from tailrace.switch.trace.dry_run import MOST_OUTCOMES, dry_run_packet, dry_runs
from tailrace.switch.trace.events import Event, Trace
from tailrace.switch.trace.watcher import TraceError

__all__ = ["MOST_OUTCOMES", "Event", "Trace", "TraceError", "dry_run_packet", "dry_runs"]

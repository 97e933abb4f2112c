# SPDX-License-Identifier: Apache-2.0
"""What flows are there for: classes by which results are told apart (column `class` of flows.parquet)."""

from __future__ import annotations

NO_CLASS = ""
"""All flows of a workload that makes no difference between them."""

MONITORED = "monitored"
"""The flows for whose sake there are others (Spritz Fig. 5)."""

INCAST = "incast"
BYSTANDER = "bystander"
"""The flows to one receiver, and those that have nothing to do with it (Spritz Fig. 8)."""

BACKGROUND = "background"
"""Flows that are there to load the network. They are no part of what is measured: completion times leave
them out, and a run is over when all other flows are complete."""

CLASSES = (MONITORED, INCAST, BYSTANDER, BACKGROUND)

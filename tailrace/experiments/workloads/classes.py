# SPDX-License-Identifier: Apache-2.0
"""Classes of flows by their purpose; results are given for each class (column `class` of flows.parquet)."""

from __future__ import annotations

NO_CLASS = ""
"""The class of all flows of a workload that does not distinguish between them."""

MONITORED = "monitored"
"""The flows that are measured while other flows load the network (Spritz Fig. 5)."""

INCAST = "incast"
BYSTANDER = "bystander"
"""The flows to the receiver of an incast, and flows between other hosts (Spritz Fig. 8)."""

BACKGROUND = "background"
"""Flows that only load the network. They are not measured: completion times leave them out, and a run ends
when all other flows are complete."""

CLASSES = (MONITORED, INCAST, BYSTANDER, BACKGROUND)

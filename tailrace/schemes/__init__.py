# SPDX-License-Identifier: Apache-2.0
"""Schemes: their specs, what follows from the topology, and what they put into switches."""

# SPDX-License-Identifier: Apache-2.0
"""Schemes: their words, what follows from the topology, and what they put into switches."""

# SPDX-License-Identifier: Apache-2.0
"""Tailrace: load balancing without reordering, in P4."""

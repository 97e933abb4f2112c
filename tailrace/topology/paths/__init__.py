# SPDX-License-Identifier: Apache-2.0
"""Paths through a topology: shortest, minimal in a Dragonfly, bounded; and default routes."""

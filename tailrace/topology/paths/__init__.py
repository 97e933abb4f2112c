# SPDX-License-Identifier: Apache-2.0
"""Paths through a topology: shortest paths, minimal ones of a Dragonfly, bounded simple paths; default
routes.
"""

# SPDX-License-Identifier: Apache-2.0
"""Spritz, and other schemes whose switches run the program `spritz`: ops, flicr, ECMP over all paths."""

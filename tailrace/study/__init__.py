# SPDX-License-Identifier: Apache-2.0
"""Carries out one experiment or many."""

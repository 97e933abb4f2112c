# SPDX-License-Identifier: Apache-2.0
"""Faults, and where they are."""

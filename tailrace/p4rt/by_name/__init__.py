# SPDX-License-Identifier: Apache-2.0
"""Entries by names and values to P4Runtime messages."""

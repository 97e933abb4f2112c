# SPDX-License-Identifier: Apache-2.0
"""Saved traces: a file with a packet and its read set, its replay on a switch, and its export as a test."""

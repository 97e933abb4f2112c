# SPDX-License-Identifier: Apache-2.0
"""Saved traces: a packet with its read set in one file, its replay, and exports as tests."""
